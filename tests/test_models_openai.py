from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Callable, Iterator
from itertools import chain, count, repeat
from typing import Any

import anyio
import pytest
from pydantic import BaseModel

from support.fake_openai import (
    ChatRequest,
    Chunk,
    Reply,
    ToolUse,
    delta,
    events,
    fake_server,
    piece,
    refuse,
    say,
    threaded_fake_server,
    usage,
    use,
)
from swarmbus.errors import (
    AgentStopped,
    AnswerFiltered,
    ContextOverflow,
    IncompleteAnswer,
    ModelError,
    ModelsSwitchedOff,
    NotAuthorised,
    NotTheApi,
    RateLimited,
    RequestRefused,
    ServerFault,
    ServerSilent,
    ServerUnreachable,
)
from swarmbus.messages import (
    AssistantMessage,
    ModelReply,
    ModelRequest,
    ModelSettings,
    Restarted,
    StreamPart,
    TextDelta,
    ToolCall,
    ToolMessage,
    Usage,
    UserMessage,
)
from swarmbus.thinking.agent import Agent
from swarmbus.thinking.agent_stream import AgentStream
from swarmbus.thinking.limits import Limits
from swarmbus.thinking.models.openai import OpenAIModel
from swarmbus.thinking.models.retry import Retries
from swarmbus.thinking.models.servers import SERVERS
from swarmbus.thinking.tools import tool

pytestmark = pytest.mark.anyio

QUICK = Retries(attempts=2, first_delay=0.001)
HELLO = ModelRequest((UserMessage("hello"),))


@tool
async def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


def model_at(url: str, family: str = "generic", retries: Retries = QUICK) -> OpenAIModel:
    return OpenAIModel("m", family=SERVERS[family], url=url, key="", retries=retries)


async def parts_of(url: str, request: ModelRequest = HELLO, **options: Any) -> list[StreamPart]:
    return [part async for part in model_at(url, **options).stream(request)]


async def reply_of(url: str, request: ModelRequest = HELLO, **options: Any) -> ModelReply:
    last = (await parts_of(url, request, **options))[-1]
    assert isinstance(last, ModelReply)
    return last


async def test_a_text_streams_in_pieces_and_ends_in_a_reply_with_its_usage() -> None:
    async with fake_server(lambda request: "hello there") as server:
        parts = await parts_of(server.url)
    assert [part.text for part in parts if isinstance(part, TextDelta)] == ["hel", "lo ", "there"]
    assert parts[-1] == ModelReply(AssistantMessage("hello there"), Usage(10, 5, calls=1), "stop", f"{server.url}#m")


async def test_an_agent_uses_tools_over_http() -> None:
    def answer(request: ChatRequest) -> str | list[ToolUse]:
        results = request.texts("tool")
        return f"the sum is {results[-1]}" if results else [ToolUse("add", {"a": 1, "b": 2})]

    async with fake_server(answer) as server:
        result = await Agent(model_at(server.url), "Be exact.", [add]).run("1 + 2?")
    assert (result.output, result.usage) == ("the sum is 3", Usage(20, 10, calls=2))
    assert server.requests[0].messages[0] == {"role": "system", "content": "Be exact."}
    assert server.requests[0].tool_names == ["add"]


CALLS = [ToolCall("a", "add", '{"a": 1, "b": 2}'), ToolCall("b", "mul", '{"c": 3}')]


@pytest.mark.parametrize(
    ("chunks", "expected"),
    [
        pytest.param(
            [piece(0, "a", "add", '{"a": 1, "b": 2}'), piece(0, "b", "mul", '{"c": 3}')], CALLS, id="same-index"
        ),
        pytest.param(
            [piece(None, "a", "add", '{"a": 1, "b": 2}'), piece(None, "b", "mul", '{"c": 3}')], CALLS, id="no-index"
        ),
        pytest.param(
            [piece(0, "a", "add", '{"a": 1, "b": 2}'), piece(2, "b", "mul", '{"c": 3}')], CALLS, id="index-jumps"
        ),
        pytest.param(
            [
                piece(0, "a", "add", '{"a": 1,'),
                piece(1, "b", "mul", '{"c":'),
                piece(0, None, None, ' "b": 2}'),
                piece(1, None, None, " 3}"),
            ],
            CALLS,
            id="interleaved",
        ),
        pytest.param(
            [
                piece(0, "a", "add", '{"a": 1,'),
                piece(0, "b", "mul", '{"c":'),
                piece(0, "a", None, ' "b": 2}'),
                piece(0, "b", None, " 3}"),
            ],
            CALLS,
            id="interleaved-by-id-at-one-index",
        ),
        pytest.param(
            [piece(0, None, "add", "{}"), piece(0, None, "mul", "{}")],
            [ToolCall("", "add", "{}"), ToolCall("", "mul", "{}")],
            id="no-ids-at-one-index",
        ),
        pytest.param(
            [piece(None, None, "add", "{}"), piece(None, None, "add", "{}")],
            [ToolCall("", "add", "{}"), ToolCall("", "add", "{}")],
            id="neither-id-nor-index",
        ),
        pytest.param(
            [piece(0, "a", "add", ""), piece(0, "a", "add", '{"a": 1, '), piece(0, "a", "add", '"b": 2}')],
            CALLS[:1],
            id="id-and-name-repeated-in-each-piece",
        ),
        pytest.param(
            [piece(0, "a", "add", "{}"), piece(1, "a", "add", "{}")],
            [ToolCall("a", "add", "{}"), ToolCall("a", "add", "{}")],
            id="one-id-twice",
        ),
    ],
)
async def test_tool_calls_are_put_together_however_the_server_numbers_them(
    chunks: list[dict[str, Any]], expected: list[ToolCall]
) -> None:
    async with fake_server(lambda request: events(*chunks, delta("tool_calls"))) as server:
        reply = await reply_of(server.url)
    assert list(reply.message.tool_calls) == expected


async def test_arguments_given_as_an_object_become_text() -> None:
    call = {"index": 0, "id": "a", "function": {"name": "add", "arguments": {"a": 1}}}
    async with fake_server(lambda request: events(delta(tool_calls=[call]), delta("stop"))) as server:
        reply = await reply_of(server.url)
    assert reply.message.tool_calls == (ToolCall("a", "add", '{"a": 1}'),)


async def test_an_answer_that_does_not_stream_is_read_all_the_same() -> None:
    whole = {"choices": [{"message": {"role": "assistant", "content": "hi"}, "finish_reason": "stop"}]}
    reply = Reply([json.dumps(whole).encode()], headers={"content-type": "application/json"})
    async with fake_server(lambda request: reply) as server:
        answer = await reply_of(server.url)
    assert (answer.message.content, answer.usage) == ("hi", None)


async def test_thinking_text_is_kept_apart_from_the_answer() -> None:
    chunks = [delta(reasoning_content="hm"), delta(content="yes"), delta("stop")]
    async with fake_server(lambda request: events(*chunks)) as server:
        reply = await reply_of(server.url)
    assert reply.message == AssistantMessage("yes", reasoning="hm")


@pytest.mark.parametrize(
    ("reply", "partial"),
    [
        pytest.param(events(delta(content="half"), done=False), "half", id="no-end-reason"),
        pytest.param(Reply([]), "", id="empty-body"),
        pytest.param(events(), "", id="only-done"),
        pytest.param(events(usage()), "", id="empty-choices"),
        pytest.param(Reply(events(delta(content="ha"), done=False).chunks, cut=True), "ha", id="connection-cut"),
    ],
)
async def test_an_answer_without_an_end_is_never_an_answer(reply: Reply, partial: str) -> None:
    async with fake_server(lambda request: reply) as server:
        with pytest.raises(IncompleteAnswer) as caught:
            await parts_of(server.url)
    assert (caught.value.partial, caught.value.retryable, len(server.requests)) == (partial, True, 2)


@pytest.mark.parametrize(
    ("reply", "shown"),
    [
        pytest.param(
            Reply([b"<html><body>Sign in</body></html>"], headers={"content-type": "text/html"}),
            ["200", "text/html", "Sign in", "base URL"],
            id="html-page",
        ),
        pytest.param(
            Reply([b"<html>not found</html>"], 404, {"content-type": "text/html"}), ["404", "base URL"], id="html-404"
        ),
        pytest.param(
            events(delta(content="x"), '{"choices": [', done=False),
            ["200", "text/event-stream", "choices"],
            id="broken-json-line",
        ),
        pytest.param(Reply([b"[1]"], headers={"content-type": "application/json"}), ["200"], id="a-list"),
    ],
)
async def test_what_is_not_the_api_is_shown_with_a_hint(reply: Reply, shown: list[str]) -> None:
    async with fake_server(lambda request: reply) as server:
        with pytest.raises(NotTheApi) as caught:
            await parts_of(server.url)
    assert all(text in str(caught.value) for text in shown), str(caught.value)
    assert len(server.requests) == 1


@pytest.mark.parametrize(
    ("chunk", "told"),
    [
        ({"choices": {"a": 1}}, r"choices is \{'a': 1\}, which is no list"),
        ({"choices": 5}, "choices is 5"),
        ({"choices": ["text"]}, "a choice is 'text', which is no dict"),
        ({"choices": [{"message": "text"}]}, "a choice's message is 'text', which is no dict"),
        ({"choices": [{"delta": ["x"]}]}, r"a choice's message is \['x'\]"),
        ({"choices": [{"finish_reason": {"a": 1}}]}, "finish_reason is .*, which is no str"),
        (delta(tool_calls="search"), "tool_calls is 'search', which is no list"),
        (delta(tool_calls={"id": "a"}), "tool_calls is .*, which is no list"),
        (delta(tool_calls=[None, 5]), "a tool call is 5, which is no dict"),
        (delta(tool_calls=[{"id": "a", "function": "search"}]), "a tool call's function is 'search'"),
        (delta(tool_calls=[{"id": "a", "function": {"name": ["x"]}}]), r"a function's name is \['x'\]"),
    ],
)
async def test_what_is_of_a_type_that_it_never_is_is_not_the_api(chunk: dict[str, Any], told: str) -> None:
    async with fake_server(lambda request: events(chunk, delta("stop"))) as server:
        with pytest.raises(NotTheApi, match=told):
            await parts_of(server.url)


async def test_what_tells_nothing_may_be_of_any_type() -> None:
    call = {"index": 0, "id": 7, "function": {"name": "add", "arguments": None}}
    odd = delta("stop", content=5, tool_calls=[None, call])
    async with fake_server(lambda request: events({**odd, "model": 3, "usage": "lots"})) as server:
        reply = await reply_of(server.url)
    assert (reply.message, reply.usage) == (AssistantMessage("", (ToolCall("7", "add", ""),)), None)


@pytest.mark.parametrize(
    ("reply", "error", "requests"),
    [
        pytest.param(refuse(401, "no key"), NotAuthorised, 1, id="401"),
        pytest.param(refuse(404, "no such model"), RequestRefused, 1, id="404"),
        pytest.param(refuse(408, "too slow"), ServerFault, 2, id="408"),
        pytest.param(refuse(409, "in conflict"), ServerFault, 2, id="409"),
        pytest.param(refuse(425, "too early"), ServerFault, 2, id="425"),
        pytest.param(refuse(500, "oops"), ServerFault, 2, id="500"),
        pytest.param(refuse(503, "busy"), ServerFault, 2, id="503"),
        pytest.param(refuse(429, "no money", code="insufficient_quota"), RateLimited, 1, id="quota"),
        pytest.param(refuse(400, "filtered", code="content_filter"), AnswerFiltered, 1, id="filter-400"),
        pytest.param(events(delta("content_filter", content=None)), AnswerFiltered, 1, id="filter-200"),
        pytest.param(events(delta(refusal="I will not")), AnswerFiltered, 1, id="refusal"),
        pytest.param(events(delta(refusal="I will"), done=False), AnswerFiltered, 1, id="cut-refusal"),
        pytest.param(refuse(400, "maximum context length is 8192 tokens"), ContextOverflow, 1, id="overflow"),
        pytest.param(refuse(413, "too large"), ContextOverflow, 1, id="413"),
        pytest.param(events({"error": {"message": "engine died"}}), ServerFault, 2, id="error-in-200"),
        pytest.param(events({"error": {"message": "slow down", "code": 402}}), RequestRefused, 1, id="code-in-200"),
    ],
)
async def test_each_failure_has_its_own_error(reply: Reply, error: type[ModelError], requests: int) -> None:
    async with fake_server(lambda request: reply) as server:
        with pytest.raises(error):
            await parts_of(server.url)
    assert len(server.requests) == requests


@pytest.mark.parametrize(
    ("counts", "reported"),
    [
        ('{"prompt_tokens": "7", "completion_tokens": null}', Usage(7, 0, calls=1)),
        ('{"prompt_tokens": 7.0, "prompt_tokens_details": [1]}', Usage(7, 0, calls=1)),
        ('{"prompt_tokens": 7, "prompt_tokens_details": {"cached_tokens": NaN}}', Usage(7, 0, calls=1)),
        ('{"prompt_tokens": NaN, "completion_tokens": 1}', None),
        ('{"prompt_tokens": 1e999}', None),
        (f'{{"prompt_tokens": {10**400}}}', None),
        ('{"prompt_tokens": 7, "completion_tokens": -1}', None),
        ('{"prompt_tokens": {}}', None),
        ('{"prompt_tokens": [1]}', None),
        ('{"prompt_tokens": "many"}', None),
        ("[1]", None),
    ],
)
async def test_counts_that_can_not_be_are_none(counts: str, reported: Usage | None) -> None:
    last = f'{{"choices": [], "usage": {counts}}}'
    async with fake_server(lambda request: events(delta("stop", content="hi"), last)) as server:
        assert (await reply_of(server.url)).usage == reported


async def test_a_refusal_is_told_whole() -> None:
    pieces = events(delta(refusal="I will "), delta(refusal="not."), delta("stop"))
    async with fake_server(lambda request: pieces) as server:
        with pytest.raises(AnswerFiltered, match=r"the model refused: I will not\."):
            await parts_of(server.url)


async def test_silence_is_an_error_after_the_idle_time() -> None:
    request = ModelRequest(HELLO.messages, idle_timeout=0.05)
    async with fake_server(lambda request: events(delta(content="x"), 5.0, delta("stop"))) as server:
        with pytest.raises(ServerSilent, match=r"Limits\(idle_timeout=\)"):
            await parts_of(server.url, request)


def dripping(drop: bytes, first: bytes = b"", **given: Any) -> Reply:
    """Return an answer that has no end, and never falls silent for long."""
    drops: Iterator[Chunk] = (piece for _ in count() for piece in (drop, 0.02))
    return Reply(chain([first], drops), **given)


@pytest.mark.parametrize(
    "reply",
    [
        pytest.param(lambda: dripping(b"a", b"data: "), id="a-line-without-end"),
        pytest.param(lambda: dripping(b"\n"), id="blank-lines"),
        pytest.param(lambda: dripping(b" ", headers={"content-type": "application/json"}), id="whole-answer"),
        pytest.param(lambda: dripping(b" ", status=500), id="error"),
        pytest.param(lambda: dripping(b"X-A: b\r\n", b"HTTP/1.1 200 OK\r\n", raw=True), id="headers"),
        pytest.param(lambda: dripping(b"HTTP/1.1 100 Continue\r\n\r\n", raw=True), id="continue"),
    ],
)
async def test_bytes_that_come_to_nothing_are_no_sign_of_life(reply: Callable[[], Reply]) -> None:
    request = ModelRequest(HELLO.messages, idle_timeout=0.2)
    with anyio.fail_after(10):
        async with fake_server(lambda request: reply()) as server:
            with pytest.raises(ServerSilent, match=r"Limits\(idle_timeout=\)"):
                await parts_of(server.url, request)


async def test_what_a_server_says_to_be_known_alive_is_a_sign_of_life() -> None:
    request = ModelRequest(HELLO.messages, idle_timeout=0.2)
    alive: list[Chunk] = [b": at it\n\n", 0.1, b"event: ping\n\n", 0.1] * 3
    said = Reply([*alive, *say("at last").chunks])
    async with fake_server(lambda request: said) as server:
        assert (await reply_of(server.url, request)).message.content == "at last"


async def test_an_answer_that_has_its_end_is_one_though_the_connection_stays_open() -> None:
    request = ModelRequest(HELLO.messages, idle_timeout=0.1)
    async with fake_server(lambda request: Reply([*say("whole").chunks, 60.0])) as server:
        assert (await reply_of(server.url, request)).message.content == "whole"


async def test_a_call_that_never_ends_is_given_up_when_the_seconds_of_its_agent_are_over() -> None:
    drop = f"data: {json.dumps(delta(content=' '))}\n\n".encode()
    async with fake_server(lambda request: dripping(drop)) as server:
        with pytest.raises(AgentStopped, match=r"0\.3 seconds"):
            await Agent(model_at(server.url), limits=Limits(seconds=0.3)).run("go on")


@pytest.mark.parametrize("how", ["break", "cancel"])
async def test_streams_that_are_left_in_tasks_of_their_own_close_their_connections(how: str) -> None:
    drop = f"data: {json.dumps(delta(content='x'))}\n\n".encode()
    gone = anyio.Event()
    left = 0

    def drops() -> Iterator[Chunk]:
        nonlocal left
        try:
            yield from (piece for _ in count() for piece in (drop, 0.02))
        finally:  # nobody reads it any more
            left += 1
            if left == 10:
                gone.set()

    async def read(stream: AgentStream) -> None:
        with anyio.CancelScope() as scope:
            async with stream as events:
                async for event in events:
                    if event.type == "message_update":
                        if how == "break":
                            break
                        scope.cancel()
        assert stream.result is None

    async with fake_server(lambda request: Reply(drops())) as server, model_at(server.url).open():
        streams = [Agent(model_at(server.url)).stream("go on") for _ in range(10)]
        async with anyio.create_task_group() as group:
            for stream in streams:
                group.start_soon(read, stream)
        with anyio.fail_after(30):
            await gone.wait()
    assert len(server.requests) == 10


JSON = {"content-type": "application/json"}
STREAM = {"content-type": "text/event-stream"}
MEGABYTE = 2**20


def endless(chunk: bytes, headers: dict[str, str], status: int = 200, first: bytes = b"") -> Reply:
    return Reply(chain([first], repeat(chunk)), status, headers)


@pytest.mark.parametrize(
    ("reply", "told"),
    [
        pytest.param(lambda: endless(b"a" * MEGABYTE, JSON), "200 with more than 32 MiB", id="whole-answer"),
        pytest.param(lambda: endless(b"a" * MEGABYTE, JSON, 500), "500 with more than 32 MiB", id="error"),
        pytest.param(lambda: endless(b"a" * MEGABYTE, STREAM, first=b"data: "), "more than 32 MiB", id="line"),
        pytest.param(lambda: endless(b": at it" * MEGABYTE + b"\n", STREAM), "more than 256 MiB", id="stream"),
        pytest.param(
            lambda: Reply([gzip.compress(bytes(64 * MEGABYTE))], 200, {**JSON, "content-encoding": "gzip"}),
            "200 with more than 32 MiB",
            id="compressed",
        ),
    ],
)
async def test_an_answer_larger_than_any_is_not_read_on(reply: Callable[[], Reply], told: str) -> None:
    async with fake_server(lambda request: reply()) as server:
        with pytest.raises(NotTheApi, match=told):
            await parts_of(server.url)


@pytest.mark.parametrize(
    ("encoding", "body", "told"),
    [
        ("gzip", b"not gzip", "a body that is not in the encoding 'gzip', as it says"),
        ("br", b"\x0b\x02", "a body in the encoding 'br', which nobody asked for"),
    ],
)
async def test_a_body_that_can_not_be_decompressed_is_not_the_api(encoding: str, body: bytes, told: str) -> None:
    async with fake_server(lambda request: Reply([body], 200, {**JSON, "content-encoding": encoding})) as server:
        with pytest.raises(NotTheApi, match=told):
            await parts_of(server.url)


@pytest.mark.parametrize("encoding", ["gzip", "deflate", "identity"])
async def test_a_compressed_answer_is_read(encoding: str) -> None:
    body = b"".join(chunk for chunk in say("x" * 300_000).chunks if isinstance(chunk, bytes))
    packed = {"gzip": gzip.compress(body), "deflate": zlib.compress(body), "identity": body}[encoding]
    halves = [packed[: len(packed) // 2], packed[len(packed) // 2 :]]
    async with fake_server(lambda request: Reply(halves, headers={**STREAM, "content-encoding": encoding})) as server:
        assert (await reply_of(server.url)).message.content == "x" * 300_000
    assert server.requests[0].headers["accept-encoding"] == "gzip"


async def test_a_server_that_is_not_there_is_an_error() -> None:
    async with fake_server(lambda request: "x") as server:
        url = server.url
    with pytest.raises(ServerUnreachable):
        await parts_of(url)


async def test_a_failed_try_is_announced_and_made_again() -> None:
    def answer(request: ChatRequest) -> Reply:
        return events(delta(content="ha"), done=False) if request.number == 1 else say("whole")

    async with fake_server(answer) as server:
        parts = await parts_of(server.url)
    assert [type(part) for part in parts[:2]] == [TextDelta, Restarted]
    assert isinstance(parts[-1], ModelReply)
    assert parts[-1].message.content == "whole"


async def test_a_rate_limit_is_waited_out() -> None:
    def answer(request: ChatRequest) -> Reply | str:
        return refuse(429, "slow down", {"retry-after-ms": "20"}) if request.number < 4 else "ok"

    async with fake_server(answer) as server:
        reply = await reply_of(server.url)
    assert (reply.message.content, len(server.requests)) == ("ok", 4)


async def test_fields_that_the_server_refuses_are_left_out_and_remembered(caplog: pytest.LogCaptureFixture) -> None:
    def answer(request: ChatRequest) -> Reply | str:
        for name in ("stream_options", "parallel_tool_calls", "response_format"):
            if name in request.body:
                return refuse(422, f"extra field not permitted: {name}")
        return '{"n": 3}'

    class Number(BaseModel):
        n: int

    async with fake_server(answer) as server:
        model = model_at(server.url)
        agent = Agent(model, settings=ModelSettings(extra={"parallel_tool_calls": False}))
        async with model.open():
            assert (await agent.run("how many?", output=Number)).output == Number(n=3)
            assert len(server.requests) == 4
            assert (await agent.run("and now?", output=Number)).output == Number(n=3)
    assert len(server.requests) == 5
    assert [record.getMessage().split(" refuses the field ")[1].split(";")[0] for record in caplog.records] == [
        "stream_options",
        "parallel_tool_calls",
        "response_format",
    ]
    assert "JSON schema" in server.requests[-1].messages[0]["content"]


async def test_a_refused_field_that_changes_the_meaning_is_not_dropped() -> None:
    async with fake_server(lambda request: refuse(400, "tools are not supported")) as server:
        with pytest.raises(RequestRefused):
            await Agent(model_at(server.url), tools=[add]).run("x")
    assert len(server.requests) == 1


HISTORY = (
    UserMessage("1 + 2?"),
    AssistantMessage("", (ToolCall("a", "add", '{"a": 1,'),), reasoning="let me see"),
    ToolMessage("a", "add", "3"),
)


@pytest.mark.parametrize(
    ("family", "content", "reasoning"),
    [("generic", "", None), ("openai", None, None), ("deepseek", "", "let me see")],
)
async def test_the_family_says_in_which_form_a_history_is_sent(
    family: str, content: str | None, reasoning: str | None
) -> None:
    async with fake_server(lambda request: "ok") as server:
        await parts_of(server.url, ModelRequest(HISTORY), family=family)
    sent = server.requests[0].messages[1]
    assert (sent["content"], sent.get("reasoning_content")) == (content, reasoning)
    assert sent["tool_calls"][0]["function"]["arguments"] == '{"malformed_arguments": "{\\"a\\": 1,"}'


async def test_arguments_that_lie_too_deep_within_each_other_are_sent_as_malformed() -> None:
    deep = '{"a": ' + "[" * 20_000 + "]" * 20_000 + "}"
    history = (UserMessage("1 + 2?"), AssistantMessage("", (ToolCall("a", "add", deep),)), ToolMessage("a", "add", "3"))
    async with fake_server(lambda request: "ok") as server:
        await parts_of(server.url, ModelRequest(history))
    sent = server.requests[0].messages[1]["tool_calls"][0]["function"]["arguments"]
    assert json.loads(sent) == {"malformed_arguments": deep}


async def test_no_real_model_is_called_where_the_environment_forbids_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SWARMBUS_NO_MODELS", "1")
    async with fake_server(lambda request: "x") as server:
        with pytest.raises(ModelsSwitchedOff):
            await parts_of(server.url)
    assert server.requests == []


async def test_a_history_that_a_server_would_refuse_is_refused() -> None:
    orphan = ModelRequest((UserMessage("x"), ToolMessage("z", "add", "3")))
    async with fake_server(lambda request: "x", strict=False) as server:
        with pytest.raises(RequestRefused, match="no open call"):
            await parts_of(server.url, orphan)
    assert server.faults == ["request 1: message 1: a result for 'z', which is no open call"]


def test_the_server_also_runs_in_a_thread(anyio_backend: str) -> None:
    with threaded_fake_server(lambda request: use(ToolUse("x", {}))) as server:
        reply = anyio.run(reply_of, server.url, backend=anyio_backend)
    assert reply.finish == "tool_calls"
