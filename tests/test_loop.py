from __future__ import annotations

import json
import threading
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Literal

import anyio
import pytest
from pydantic import BaseModel

from support.histories import history_faults
from support.prices import know_prices
from swarmbus.calls import CallKind, CallRecord
from swarmbus.errors import AgentStopped, AnswerFiltered, IncompleteAnswer, ServerFault, UnknownPrice
from swarmbus.messages import (
    AssistantMessage,
    ModelReply,
    ModelRequest,
    ModelSettings,
    StreamPart,
    SystemMessage,
    ToolCall,
    ToolMessage,
    Usage,
    UserMessage,
)
from swarmbus.thinking.agent import Agent
from swarmbus.thinking.hooks import Block, Change, Hooks, NextTurn, Progress
from swarmbus.thinking.limits import Limits
from swarmbus.thinking.loop_events import LoopEvent, ToolExecutionEnd
from swarmbus.thinking.models.base import ModelProfile
from swarmbus.thinking.models.scripted import ScriptedModel, call
from swarmbus.thinking.models.servers import SERVERS
from swarmbus.thinking.models.wire import request_body
from swarmbus.thinking.tool_result import ToolResult
from swarmbus.thinking.tools import ToolContext, read_result, tool

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

pytestmark = pytest.mark.anyio


@tool
async def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


def valid(request: ModelRequest) -> None:
    faults = history_faults(request_body(request, "m", SERVERS["generic"])["messages"])
    assert not faults, faults


def results(request: ModelRequest) -> list[tuple[str, bool]]:
    last = max(position for position, message in enumerate(request.messages) if message.role == "assistant")
    found = request.messages[last + 1 :]
    return [(message.content, message.ok) for message in found if isinstance(message, ToolMessage)]


async def test_a_tool_call_is_answered_and_the_model_asked_again() -> None:
    model = ScriptedModel([call("add", a=1, b=2), "three"])
    result = await Agent(model, "Add.", [add]).run("1 + 2?")
    assert (result.output, result.stop_reason) == ("three", "done")
    assert result.messages == (
        UserMessage("1 + 2?"),
        AssistantMessage("", (ToolCall("call_1_1", "add", '{"a": 1, "b": 2}'),)),
        ToolMessage("call_1_1", "add", "3"),
        AssistantMessage("three"),
    )
    for request in model.requests:
        valid(request)


async def test_what_one_tool_found_is_what_another_is_used_for(tmp_path: Path) -> None:
    note = tmp_path / "note.txt"

    @tool
    async def look_up(project: str) -> dict[str, str]:
        """Look up a project."""
        return {"owner": "Zoë", "state": "late"}

    @tool
    async def remind(owner: str, text: str) -> str:
        """Remind an owner."""
        note.write_text(f"{owner}: {text}", encoding="utf-8")
        return "sent"

    def decide(request: ModelRequest) -> ToolCall:
        found = json.loads(results(request)[0][0])
        return call("remind", owner=found["owner"], text=f"you are {found['state']}")

    model = ScriptedModel([call("look_up", project="North"), decide, "Zoë was reminded."])
    result = await Agent(model, "Be polite.", [look_up, remind]).run("See to the project North.")
    assert note.read_text(encoding="utf-8") == "Zoë: you are late"
    assert (result.stop_reason, result.messages[-1]) == ("done", AssistantMessage("Zoë was reminded."))
    used = [
        wish.name for message in result.messages if isinstance(message, AssistantMessage) for wish in message.tool_calls
    ]
    assert used == ["look_up", "remind"]
    for number, request in enumerate(model.requests):
        assert request.messages == (SystemMessage("Be polite."), *result.messages[: 1 + 2 * number])
        assert [spec.name for spec in request.tools] == ["look_up", "remind"]


@pytest.mark.parametrize("arguments", ["", " ", "{}"], ids=["empty", "blank", "empty-object"])
async def test_no_arguments_are_an_empty_object(arguments: str) -> None:
    @tool
    async def tell_time() -> str:
        """Tell the time."""
        return "noon"

    model = ScriptedModel([ToolCall("a", "tell_time", arguments), "done"])
    await Agent(model, tools=[tell_time]).run("go")
    assert results(model.requests[-1]) == [("noon", True)]
    sent = request_body(model.requests[-1], "m", SERVERS["generic"])["messages"][1]
    assert sent["tool_calls"][0]["function"] == {"name": "tell_time", "arguments": "{}"}


async def test_every_call_has_its_result_whatever_is_wrong_with_it(caplog: pytest.LogCaptureFixture) -> None:
    @tool
    async def fail(why: str) -> str:
        """Fail."""
        raise LookupError(why)

    script = [
        call("add", a=1, b=1),
        ToolCall("", "add", '{"a": 1,'),
        call("add", a="x", b=1),
        call("subtract", a=1),
        call("fail", why="no such thing"),
        call("add", a=2, b=2),
    ]
    model = ScriptedModel([script, "done"])
    await Agent(model, tools=[add, fail]).run("go")
    valid(model.requests[-1])
    found = results(model.requests[-1])
    assert [ok for _, ok in found] == [True, False, False, False, False, True]
    assert "Invalid JSON" in found[1][0]
    assert "a: Input should be a valid integer" in found[2][0]
    assert "'subtract' does not exist; available: add, fail" in found[3][0]
    assert "LookupError: no such thing" in found[4][0]
    assert sorted(record.getMessage().split(":")[0] for record in caplog.records) == [
        "call call_1_2 of tool add has arguments that do not fit",
        "call call_1_3 of tool add has arguments that do not fit",
        "call call_1_5 of tool fail raised LookupError",
    ]


async def test_calls_run_side_by_side_and_go_back_in_order() -> None:
    ends: list[str] = []
    gate = anyio.Event()

    @tool
    async def step(name: str) -> str:
        """Do one step."""
        if name == "first":
            await gate.wait()
        if name == "second":
            raise RuntimeError(name)
        if name == "third":
            gate.set()
        return name

    def note(event: LoopEvent) -> None:
        if event.type == "tool_execution_end":
            ends.append(event.call.arguments)

    model = ScriptedModel([[call("step", name=name) for name in ("first", "second", "third")], "done"])
    await Agent(model, tools=[step], on_event=note).run("go")
    valid(model.requests[-1])
    first, second, third = results(model.requests[-1])
    assert (first, second[1], third) == (("first", True), False, ("third", True))
    assert ends.index('{"name": "third"}') < ends.index('{"name": "first"}')


async def test_a_sequential_tool_makes_its_batch_sequential() -> None:
    running = most = 0

    async def enter() -> None:
        nonlocal running, most
        running += 1
        most = max(most, running)
        await anyio.lowlevel.checkpoint()
        running -= 1

    @tool(sequential=True)
    async def write() -> None:
        """Write."""
        await enter()

    @tool
    async def read() -> None:
        """Read."""
        await enter()

    model = ScriptedModel([[call("read"), call("write"), call("read")], [call("read"), call("read")], "done"])
    await Agent(model, tools=[write, read]).run("go")
    assert most == 2
    model = ScriptedModel([[call("read"), call("write"), call("read")], "done"])
    most = 0
    await Agent(model, tools=[write, read]).run("go")
    assert most == 1


async def test_a_tool_that_is_not_async_runs_in_a_thread_with_its_context() -> None:
    seen: list[Any] = []

    @tool
    def work(ctx: ToolContext[str]) -> str:
        """Work."""
        ctx.progress({"done": 1})
        seen.extend([threading.current_thread() is threading.main_thread(), ctx.deps, ctx.call_id, ctx.role])
        return "ok"

    updates = []

    def note(event: LoopEvent) -> None:
        if event.type == "tool_execution_update":
            updates.append(event.data)

    await Agent(ScriptedModel([call("work"), "done"]), tools=[work], deps="D", role="r", on_event=note).run("go")
    assert seen == [False, "D", "call_1_1", "r"]
    assert updates == [{"done": 1}]


async def test_a_tool_beyond_its_time_is_answered_for() -> None:
    @tool(timeout=0.01)
    async def hang() -> None:
        """Hang."""
        await anyio.sleep_forever()

    model = ScriptedModel([[call("hang"), call("add", a=1, b=2)], "done"])
    await Agent(model, tools=[hang, add]).run("go")
    found = results(model.requests[-1])
    assert "timed_out" in found[0][0]
    assert found[1] == ("3", True)


async def test_a_plain_tool_that_blocks_beyond_its_time_is_answered_for_and_left_to_itself() -> None:
    go = threading.Event()

    @tool(timeout=0.01)
    def block() -> str:
        """Block."""
        go.wait(5)
        return "too late"

    model = ScriptedModel([call("block"), "done"])
    try:
        await Agent(model, tools=[block]).run("go")
    finally:
        go.set()
    ((content, ok),) = results(model.requests[-1])
    assert (ok, "timed_out" in content) == (False, True)


@pytest.mark.parametrize(("sequential", "begun"), [(True, 1), (False, 100)])
async def test_no_tool_call_begins_after_the_time_that_the_loop_has(sequential: bool, begun: int) -> None:
    ran: list[int] = []

    @tool(sequential=sequential)
    async def work(number: int) -> int:
        """Work longer than the loop has time."""
        ran.append(number)
        await anyio.sleep(0.3)
        return number

    model = ScriptedModel([[call("work", number=number) for number in range(250)]])
    with pytest.raises(AgentStopped, match="seconds") as caught:
        await Agent(model, tools=[work], limits=Limits(seconds=0.2, tokens=None)).run("go")
    said = [message.content for message in caught.value.messages if isinstance(message, ToolMessage)]
    assert ran == list(range(len(ran)))
    assert 1 <= len(ran) <= begun
    assert said == [
        *map(str, ran),
        *['{"ok":false,"error":"skipped","message":"not run: a limit is met (0.2 seconds)"}'] * (250 - len(ran)),
    ]


async def test_progress_renews_the_time_limit() -> None:
    @tool(timeout=0.2)
    async def long(ctx: ToolContext) -> str:
        """Take long, but show signs of life."""
        for _ in range(6):
            await anyio.sleep(0.05)
            ctx.progress("still here")
        return "finished"

    model = ScriptedModel([call("long"), "done"])
    await Agent(model, tools=[long]).run("go")
    assert results(model.requests[-1]) == [("finished", True)]


@pytest.mark.parametrize("beside", [0, 1], ids=["alone", "beside-another"])
async def test_a_cancelled_run_leaves_a_history_to_go_on_from(beside: int) -> None:
    started = anyio.Event()

    @tool
    async def hang() -> None:
        """Hang."""
        started.set()
        await anyio.sleep_forever()

    events: list[str] = []
    calls = [call("hang"), *[call("add", a=1, b=2)] * beside]
    model = ScriptedModel([calls, "go on"])
    agent = Agent(model, tools=[hang, add], on_event=lambda event: events.append(event.type))
    async with anyio.create_task_group() as group:
        group.start_soon(agent.run, "go")
        await started.wait()
        await anyio.wait_all_tasks_blocked()
        group.cancel_scope.cancel()
    assert events[-3:] == ["tool_execution_end", "turn_end", "agent_end"]
    await agent.run("and now?")
    valid(model.requests[-1])
    cancelled = [message for message in model.requests[-1].messages if isinstance(message, ToolMessage)]
    assert "cancelled" in cancelled[0].content
    assert len(cancelled) == 1 + beside


@pytest.mark.parametrize("anyio_backend", ["asyncio"])  # no other lets a task raise its own cancellation
async def test_a_tool_that_cancels_itself_is_a_tool_that_failed() -> None:
    import asyncio

    @tool
    async def give_up() -> None:
        """Give up."""
        raise asyncio.CancelledError

    model = ScriptedModel([call("give_up"), [call("give_up"), call("add", a=1, b=2)], "done"])
    assert (await Agent(model, tools=[give_up, add]).run("go")).output == "done"
    assert "cancelled from within" in results(model.requests[1])[0][0]
    assert results(model.requests[2])[1] == ("3", True)


@pytest.mark.parametrize("anyio_backend", ["asyncio"])  # the only one with cancellation from outside of scopes
async def test_a_cancellation_from_outside_of_scopes_is_a_real_one() -> None:
    import asyncio

    @tool
    async def hang() -> None:
        """Hang."""
        await anyio.sleep_forever()

    model = ScriptedModel([call("hang"), "go on"])
    agent = Agent(model, tools=[hang])
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(agent.run("go"), 0.05)
    assert (await agent.run("and?")).output == "go on"
    valid(model.requests[-1])


class Suspended(BaseException):
    """Stands for what is no error but leaves the handler, such as waiting for a person."""


@pytest.mark.parametrize("beside", [0, 1], ids=["alone", "beside-another"])
async def test_what_is_no_error_passes_through_as_it_is(beside: int) -> None:
    @tool
    async def wait() -> None:
        """Wait for a person."""
        raise Suspended

    model = ScriptedModel([[call("wait"), *[call("add", a=1, b=2)] * beside], "go on"])
    agent = Agent(model, tools=[wait, add])
    with pytest.raises(Suspended):
        await agent.run("go")
    await agent.run("and?")
    valid(model.requests[-1])


async def test_a_call_cut_by_the_length_limit_does_not_run() -> None:
    ran = []

    @tool
    async def write(text: str) -> None:
        """Write."""
        ran.append(text)

    cut = ModelReply(AssistantMessage("", (ToolCall("a", "write", '{"text": "whole"}'),)), finish="length")
    wrong = ModelReply(AssistantMessage("", (ToolCall("b", "write", '{"text": "ha'),)), finish="tool_calls")
    model = ScriptedModel([cut, wrong, "done"])
    await Agent(model, tools=[write]).run("go")
    assert ran == []
    assert "cut by its length limit" in results(model.requests[1])[0][0]
    assert "Invalid JSON" in results(model.requests[2])[0][0]


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        (ModelReply(AssistantMessage("half an ans"), finish="length"), "length"),
        (ModelReply(AssistantMessage("")), "empty"),
    ],
    ids=["cut", "empty"],
)
async def test_half_an_answer_is_none(reply: ModelReply, reason: str) -> None:
    with pytest.raises(AgentStopped) as caught:
        await Agent(ScriptedModel([reply])).run("go")
    assert (caught.value.reason, caught.value.partial) == (reason, reply.message.content)
    assert caught.value.messages[0] == UserMessage("go")


@pytest.mark.parametrize("calls", [(), (ToolCall("a", "never", "{}"),)], ids=["a text", "a call"])
@pytest.mark.parametrize("answer", [str, int], ids=["text wanted", "number wanted"])
async def test_what_a_content_filter_stopped_is_no_answer(calls: tuple[ToolCall, ...], answer: Any) -> None:
    @tool
    def never() -> None:
        """Must not run."""
        raise AssertionError

    reply = ModelReply(AssistantMessage("5", calls), Usage(3, 2, calls=1), "content_filter")
    ends: list[Any] = []
    agent = Agent(ScriptedModel([reply]), tools=[never], on_event=ends.append)
    with pytest.raises(AnswerFiltered, match="a content filter stopped the answer of scripted"):
        await agent.run("go", answer)
    assert (ends[-1].stop_reason, ends[-1].usage) == ("model_failed", Usage(3, 2, calls=1))
    assert agent.history == (UserMessage("go"),)


async def test_ids_are_made_unique_and_good_ones_kept() -> None:
    first = [ToolCall(i, "add", f'{{"a": {n}, "b": 0}}') for n, i in enumerate(["good", "", "", "good"])]
    again = [ToolCall("good", "add", '{"a": 9, "b": 0}')]
    model = ScriptedModel([lambda r: ModelReply(AssistantMessage("", tuple(first))), again, "done"])
    await Agent(model, tools=[add]).run("go")
    valid(model.requests[-1])
    ids = [message.call_id for message in model.requests[-1].messages if isinstance(message, ToolMessage)]
    assert ids[0] == "good"
    assert len(set(ids)) == 5


async def test_a_long_result_is_cut_in_the_middle_and_can_be_read_on() -> None:
    @tool(max_result=30)
    async def read() -> str:
        """Read."""
        return "A" * 20 + "middle" + "Z" * 20

    def read_on(request: ModelRequest) -> ToolCall:
        content = results(request)[0][0]
        assert content.startswith("A" * 20)
        assert content.endswith("Z" * 10)
        assert "16 of 46 characters left out" in content
        return call("read_result", handle="call_1_1", start=20, length=6)

    model = ScriptedModel([call("read"), read_on, "done"])
    await Agent(model, tools=[read, read_result]).run("go")
    assert results(model.requests[-1])[0][0].endswith("middle")


async def test_a_projection_decides_what_the_model_sees() -> None:
    @tool(project=lambda rows: {"count": len(rows)})
    async def rows() -> list[int]:
        """Give rows."""
        return [1, 2, 3]

    model = ScriptedModel([call("rows"), "done"])
    await Agent(model, tools=[rows]).run("go")
    assert results(model.requests[-1]) == [('{"count":3}', True)]


async def test_unfit_characters_are_replaced_where_they_come_in() -> None:
    @tool
    async def read() -> str:
        """Read."""
        return "a\x00b\ud835c"

    model = ScriptedModel([call("read"), "x\ud835"])
    result = await Agent(model, tools=[read]).run("g\ud800o")
    assert result.messages[0] == UserMessage("g\ufffdo")
    assert results(model.requests[-1]) == [("a�b�c", True)]
    assert result.output == "x�"


# --- typed answers ---------------------------------------------------------------------------------------------------


class Plan(BaseModel):
    steps: tuple[str, ...]


PLAN = Plan(steps=("a", "b"))
MODES = [ModelProfile("native", "native"), ModelProfile("tool", "tool"), ModelProfile("prompted", "prompted")]


@pytest.mark.parametrize("profile", MODES, ids=["native", "tool", "prompted"])
@pytest.mark.parametrize(
    ("form", "value"),
    [
        (Plan, PLAN),
        (list[str], ["a", "b"]),
        (int | str, 3),
        (Literal["yes", "no"], "yes"),
        (Plan | None, None),
    ],
    ids=["model", "list", "union", "literal", "optional"],
)
async def test_an_answer_has_the_type_asked_for(profile: ModelProfile, form: Any, value: Any) -> None:
    if value == "yes" and profile.output != "tool":
        model = ScriptedModel(["yes"], profile=profile)
    elif value == "yes":
        model = ScriptedModel([call("final_answer", result="yes")], profile=profile)
    else:
        model = ScriptedModel([value], profile=profile)
    result = await Agent(model).run("go", output=form)
    assert result.output == value
    valid(model.requests[0])
    request = model.requests[0]
    shown = (request.output is not None, len(request.tools), "JSON schema" in str(request.messages[0].content))
    assert (
        shown == {"native": (True, 0, False), "tool": (False, 1, False), "prompted": (False, 0, True)}[profile.output]
    )


@pytest.mark.parametrize(
    "text",
    [
        '{"steps": ["a", "b"]}',
        '```json\n{"steps": ["a", "b"]}\n```',
        '```json\n{"steps": ["a", "b"]}',
        'Here is {my} plan:\n{"steps": ["a", "b"]}\nGood luck!',
        '{"result": {"steps": ["a", "b"]}}\n\n```\n{"steps": ["a", "b"]}\n```',
    ],
    ids=["plain", "fence", "open-fence", "prose", "wrapped-and-fenced"],
)
async def test_the_form_of_an_answer_is_forgiven(text: str) -> None:
    model = ScriptedModel([text])
    assert (await Agent(model).run("go", output=Plan)).output == PLAN


@pytest.mark.parametrize(
    "text", ['["a"]', '{"steps": "a\nb"}', "no idea", '{"steps": 1}'], ids=["list", "line-break", "prose", "wrong-type"]
)
async def test_an_answer_of_another_type_goes_back_with_the_error(text: str) -> None:
    model = ScriptedModel([text, PLAN])
    assert (await Agent(model).run("go", output=Plan)).output == PLAN
    valid(model.requests[1])
    assert "not of the form asked for" in str(model.requests[1].messages[-1].content)


@pytest.mark.parametrize("profile", MODES[:2], ids=["native", "tool"])
async def test_an_answer_goes_back_twice_and_no_more(profile: ModelProfile) -> None:
    wrong = call("final_answer", steps=1) if profile.output == "tool" else "no"
    model = ScriptedModel([wrong, wrong, wrong, PLAN], profile=profile)
    with pytest.raises(AgentStopped) as caught:
        await Agent(model).run("go", output=Plan)
    assert (caught.value.reason, len(model.requests)) == ("invalid_output", 3)


@pytest.mark.parametrize(
    "replies",
    [
        [call("add", a=1, b=2), call("final_answer", steps=1), PLAN],
        [[call("final_answer", steps=1), call("add", a=1, b=2)], PLAN],
    ],
    ids=["after-a-call", "beside-a-call"],
)
async def test_a_wrong_answer_does_not_count_as_a_tool_call(replies: list[Any]) -> None:
    model = ScriptedModel(replies, profile=MODES[1])
    result = await Agent(model, tools=[add], limits=Limits(tool_calls=1)).run("go", output=Plan)
    assert result.output == PLAN
    assert ("add", "3") in [(m.name, m.content) for m in result.messages if isinstance(m, ToolMessage)]


async def test_a_call_too_many_beside_a_wrong_answer_does_not_run() -> None:
    model = ScriptedModel([[call("final_answer", steps=1), *[call("add", a=1, b=b) for b in (2, 3)]]], profile=MODES[1])
    with pytest.raises(AgentStopped, match="more than 1 tool call;") as caught:
        await Agent(model, tools=[add], limits=Limits(tool_calls=1)).run("go", output=Plan)
    answers = [message.ok for message in caught.value.messages if isinstance(message, ToolMessage)]
    assert answers == [False, True, False]


async def test_an_empty_typed_answer_fails_at_once() -> None:
    model = ScriptedModel(["", PLAN])
    with pytest.raises(AgentStopped, match="empty"):
        await Agent(model).run("go", output=Plan)
    assert len(model.requests) == 1


async def test_calls_beside_a_final_answer_do_not_run() -> None:
    ran = []

    @tool
    async def act() -> None:
        """Act."""
        ran.append(1)

    model = ScriptedModel([[call("act"), call("final_answer", steps=["a", "b"])], "next"], profile=MODES[1])
    agent = Agent(model, tools=[act])
    assert (await agent.run("go", output=Plan)).output == PLAN
    assert ran == []
    await agent.run("and?")
    valid(model.requests[-1])


# --- recorded calls --------------------------------------------------------------------------------------------------


class MemoryLog:
    """A call log of one delivery: each attempt counts the occurrences of a key anew."""

    def __init__(self) -> None:
        self.kept: list[CallRecord] = []
        self.asked: dict[tuple[str, str], int] = {}

    def next_attempt(self) -> MemoryLog:
        self.asked = {}
        return self

    async def recorded(self, kind: CallKind, key: str) -> CallRecord | None:
        number = self.asked.get((kind, key), 0)
        self.asked[kind, key] = number + 1
        found = [record for record in self.kept if (record.kind, record.key) == (kind, key)]
        return found[number] if number < len(found) else None

    async def record(self, record: CallRecord) -> None:
        self.kept.append(record)


async def test_another_attempt_pays_for_nothing_that_succeeded() -> None:
    ran = []

    @tool(effects="at_most_once")
    async def send(to: str) -> str:
        """Send."""
        ran.append(to)
        return f"sent to {to}"

    log = MemoryLog()
    script = [[call("send", to="a"), call("send", to="b")], ServerFault("broke"), "both sent"]
    model = ScriptedModel(script)
    with pytest.raises(ServerFault):
        await Agent(model, tools=[send], calls=log).run("go")
    kept = list(log.kept)
    result = await Agent(model, tools=[send], calls=log.next_attempt()).run("go")
    assert (result.output, sorted(ran), len(model.requests)) == ("both sent", ["a", "b"], 3)
    assert [record.kind for record in kept] == ["model", "tool", "tool"]
    assert kept[0].usage["calls"] == 1
    assert result.usage.calls == 2
    before = len(log.kept)
    again = await Agent(ScriptedModel([]), tools=[send], calls=log.next_attempt()).run("go")
    assert (again, len(log.kept), len(ran)) == (result, before, 2)


async def test_a_failed_tool_call_is_not_recorded_and_is_made_again() -> None:
    tries = []

    @tool
    async def flaky() -> str:
        """Fail at first."""
        tries.append(1)
        if len(tries) == 1:
            raise OSError("not yet")
        return "now"

    log = MemoryLog()
    await Agent(ScriptedModel([call("flaky"), "failed"]), tools=[flaky], calls=log).run("go")
    assert [record.kind for record in log.kept] == ["model", "model"]
    result = await Agent(ScriptedModel(["worked"]), tools=[flaky], calls=log.next_attempt()).run("go")
    assert (result.output, len(tries)) == ("worked", 2)


async def test_equal_questions_asked_side_by_side_match_in_any_order() -> None:
    log = MemoryLog()
    model = ScriptedModel(["one", "two"])
    for source in (model, ScriptedModel([])):
        answers: list[str] = []

        async def ask(source: ScriptedModel = source, answers: list[str] = answers) -> None:
            answers.append((await Agent(source, calls=log).run("same")).output)

        log.next_attempt()
        async with anyio.create_task_group() as group:
            group.start_soon(ask)
            group.start_soon(ask)
        assert sorted(answers) == ["one", "two"]


async def test_a_question_with_another_history_tools_model_or_settings_is_another_question() -> None:
    log = MemoryLog()
    await Agent(ScriptedModel(["1"]), calls=log).run("q")
    await Agent(ScriptedModel(["2"]), "Be brief.", calls=log.next_attempt()).run("q")
    await Agent(ScriptedModel(["3"]), tools=[add], calls=log.next_attempt()).run("q")
    await Agent(ScriptedModel(["4"], name="other"), calls=log.next_attempt()).run("q")
    await Agent(ScriptedModel(["5"]), history=[UserMessage("before")], calls=log.next_attempt()).run("q")
    await Agent(ScriptedModel(["6"]), settings=ModelSettings(temperature=0), calls=log.next_attempt()).run("q")
    assert len({record.key for record in log.kept}) == 6


async def test_what_was_paid_for_or_took_effect_is_recorded_though_a_cancel_overtakes_it() -> None:
    class SlowLog(MemoryLog):
        async def record(self, record: CallRecord) -> None:
            await anyio.lowlevel.checkpoint()
            await super().record(record)

    async def reply(request: ModelRequest) -> ToolCall:
        scope.cancel()
        return call("send")

    async def never(request: ModelRequest) -> str:
        await anyio.sleep_forever()
        return ""

    @tool
    async def send() -> str:
        """Send."""
        return "sent"

    log = SlowLog()
    with anyio.CancelScope() as scope:
        await Agent(ScriptedModel([reply, never]), tools=[send], calls=log).run("go")
    assert scope.cancelled_caught
    assert [record.kind for record in log.kept] == ["model", "tool"]


async def test_the_idempotency_key_is_the_same_in_every_attempt() -> None:
    keys = []

    @tool
    async def pay(ctx: ToolContext) -> None:
        """Pay."""
        keys.append(ctx.idempotency_key)
        raise OSError("connection lost")

    log = MemoryLog()
    for model in (ScriptedModel([call("pay"), "x"]), ScriptedModel([])):
        await Agent(model, tools=[pay], calls=log.next_attempt(), delivery="d1").run("go")
    await Agent(ScriptedModel([]), tools=[pay], calls=log.next_attempt(), delivery="d2").run("go")
    assert keys[0] == keys[1] != keys[2]


# --- hooks -----------------------------------------------------------------------------------------------------------


async def test_hooks_before_and_after_a_tool_call() -> None:
    def before(wish: ToolCall, arguments: dict[str, Any]) -> Block | Change | None:
        match arguments["a"]:
            case 1:
                return Block("not that")
            case 2:
                return Change({"a": 20, "b": 2})
            case 3:
                return Change({"a": "x"})
            case 4:
                raise RuntimeError("broken")
            case _:
                return None

    async def after(wish: ToolCall, result: ToolResult) -> ToolResult:
        return ToolResult.returned("redacted") if result.data == 22 else result

    model = ScriptedModel([[call("add", a=a, b=2) for a in (1, 2, 3, 4, 5)], "done"])
    ends: list[ToolExecutionEnd] = []

    def note(event: LoopEvent) -> None:
        if isinstance(event, ToolExecutionEnd):
            ends.append(event)

    hooks = Hooks(before_tool_call=before, after_tool_call=after)
    await Agent(model, tools=[add], hooks=hooks, on_event=note).run("go")
    found = results(model.requests[-1])
    assert "not that" in found[0][0]
    assert found[1] == ("redacted", True)
    assert "invalid_arguments" in found[2][0]
    assert "broken" in found[3][0]
    assert found[4] == ("7", True)
    assert {end.call.arguments[6]: end.result.outcome for end in ends} == {
        "1": "not_run",
        "2": "returned",
        "3": "not_run",
        "4": "not_run",
        "5": "returned",
    }


@pytest.mark.parametrize("answer", [True, False, None], ids=["agreed", "refused", "nobody-to-ask"])
async def test_a_tool_that_needs_approval_runs_only_with_it(answer: bool | None) -> None:
    asked = []

    @tool(approval=True)
    async def delete(path: str) -> str:
        """Delete."""
        return f"deleted {path}"

    async def approve(wish: ToolCall, arguments: dict[str, Any]) -> bool:
        asked.append(arguments)
        assert answer is not None
        return answer

    model = ScriptedModel([call("delete", path="/x"), "done"])
    await Agent(model, tools=[delete], approve=None if answer is None else approve).run("go")
    assert results(model.requests[-1])[0][1] is (answer is True)
    assert asked == ([] if answer is None else [{"path": "/x"}])


async def test_what_an_approval_raises_is_no_fault_of_the_arguments() -> None:
    @tool(approval=True)
    def delete(path: str) -> str:
        """Delete."""
        return path

    async def approve(wish: ToolCall, arguments: dict[str, Any]) -> bool:
        raise ValueError("no line to anybody")

    with pytest.raises(ValueError, match="no line to anybody"):
        await Agent(ScriptedModel([call("delete", path="/x")]), tools=[delete], approve=approve).run("go")


async def test_a_hook_changes_the_context_for_one_request_only() -> None:
    model = ScriptedModel(["ok"])
    hooks = Hooks(transform_context=lambda messages: [*messages, UserMessage("(psst)")])
    result = await Agent(model, hooks=hooks).run("go")
    assert model.requests[0].messages[-1] == UserMessage("(psst)")
    assert result.messages == (UserMessage("go"), AssistantMessage("ok"))


async def test_a_reply_that_a_hook_made_costs_what_the_models_did() -> None:
    paid = ModelReply(AssistantMessage("five words of the model"), Usage(30, 5, calls=1))
    hooks = Hooks(after_model_call=lambda reply: ModelReply(AssistantMessage("redacted")))
    result = await Agent(ScriptedModel([paid]), hooks=hooks).run("go")
    assert (result.output, result.usage) == ("redacted", Usage(30, 5, calls=1))


async def test_a_hook_changes_model_and_tools_for_the_next_turn() -> None:
    cheap = ScriptedModel(["cheap answer"])
    dear = ScriptedModel([call("add", a=1, b=2)])
    hooks = Hooks(prepare_next_turn=lambda progress: NextTurn(model=cheap, tools=[]))
    result = await Agent(dear, tools=[add], hooks=hooks).run("go")
    assert result.output == "cheap answer"
    assert cheap.requests[0].tools == ()


class Guarded(ScriptedModel):
    """Tells when it is opened and closed."""

    def __init__(self, name: str, replies: list[Any], told: list[str]) -> None:
        super().__init__(replies, name=f"shop:{name}")
        self.told = told

    @asynccontextmanager
    async def open(self) -> AsyncIterator[None]:
        self.told.append(f"open {self.name}")
        yield
        self.told.append(f"close {self.name}")


def costing(tokens: int, *calls: ToolCall) -> ModelReply:
    return ModelReply(AssistantMessage("", calls), Usage(tokens, 0, calls=1), "tool_calls")


async def test_the_model_of_the_next_turn_is_kept_open_while_it_is_asked() -> None:
    told: list[str] = []
    third = Guarded("third", ["done"], told)
    second = Guarded("second", [call("add", a=1, b=2)], told)
    later = iter([second, third])
    hooks = Hooks(prepare_next_turn=lambda progress: NextTurn(model=next(later)))
    await Agent(Guarded("first", [call("add", a=1, b=1)], told), tools=[add], hooks=hooks).run("go")
    second_closed = told.index("close shop:second")
    assert told[:2] == ["open shop:first", "open shop:second"]
    assert second_closed < told.index("open shop:third")
    assert told[-2:] == ["close shop:third", "close shop:first"]


async def test_each_model_is_charged_at_its_own_price(monkeypatch: pytest.MonkeyPatch) -> None:
    know_prices(monkeypatch, cheap=0.001, dear=0.01)
    again = ToolCall("", "add", '{"a": 1, "b": 2}')
    cheap = ScriptedModel([costing(100, again)], name="shop:cheap")
    dear = ScriptedModel([costing(50, again), costing(50, again), costing(50, again)], name="shop:dear")
    hooks = Hooks(prepare_next_turn=lambda progress: NextTurn(model=dear))
    purse = Purse(100_000)
    limits = Limits(usd=1.0, repeated_calls=None)
    with pytest.raises(AgentStopped, match=r"1\.1000 of 1\.0 US dollars") as caught:
        await Agent(cheap, tools=[add], hooks=hooks, limits=limits, spending=purse).run("go")
    assert (caught.value.reason, len(dear.requests)) == ("usd", 2)
    assert purse.booked == [("shop:cheap", 100), ("shop:dear", 50), ("shop:dear", 50)]


async def test_a_model_without_a_price_is_not_asked_where_money_is_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    know_prices(monkeypatch, cheap=0.001)
    cheap = ScriptedModel([call("add", a=1, b=2)], name="shop:cheap")
    unknown = ScriptedModel(["never"], name="shop:unknown")
    hooks = Hooks(prepare_next_turn=lambda progress: NextTurn(model=unknown))
    with pytest.raises(UnknownPrice, match="the price of shop:unknown is not known"):
        await Agent(cheap, tools=[add], hooks=hooks, limits=Limits(usd=1.0)).run("go")
    assert unknown.requests == []


async def test_a_hook_stops_the_loop() -> None:
    hooks = Hooks(should_stop=lambda progress: progress.turn >= 1)
    with pytest.raises(AgentStopped) as caught:
        await Agent(ScriptedModel([call("add", a=1, b=2)]), tools=[add], hooks=hooks).run("go")
    assert caught.value.reason == "should_stop"


async def test_a_hook_stops_the_loop_when_the_work_is_done_whatever_the_model_says() -> None:
    rows: list[int] = []
    seen: list[tuple[int, int, object]] = []

    @tool
    async def write(row: int) -> str:
        """Write a row."""
        rows.append(row)
        return "written"

    def is_done(progress: Progress) -> bool:
        seen.append((progress.turn, progress.usage.calls, progress.messages[-1].content))
        return len(progress.deps) == 2

    model = ScriptedModel([call("write", row=row) for row in range(9)])
    with pytest.raises(AgentStopped) as caught:
        await Agent(model, tools=[write], deps=rows, hooks=Hooks(should_stop=is_done)).run("go")
    assert (caught.value.reason, rows) == ("should_stop", [0, 1])
    assert seen == [(1, 1, "written"), (2, 2, "written")]
    assert caught.value.messages[-1] == ToolMessage("call_2_1", "write", "written")


async def test_a_hook_that_raises_is_a_stop_and_never_a_hang() -> None:
    def broken(messages: Any) -> Any:
        raise RuntimeError("oh")

    with pytest.raises(AgentStopped, match="oh") as caught:
        await Agent(ScriptedModel(["x"]), hooks=Hooks(transform_context=broken)).run("go")
    assert caught.value.reason == "hook_failed"
    assert isinstance(caught.value.__cause__, RuntimeError)


# --- spending and failures -------------------------------------------------------------------------------------------


class Purse:
    def __init__(self, tokens: int) -> None:
        self.left = tokens
        self.booked: list[tuple[str, int]] = []

    async def reserve(self, tokens: int, model: str) -> None:
        if tokens > self.left:
            raise RuntimeError("the purse is empty")
        self.left -= tokens

    def settle(self, reserved: int, usage: Usage, model: str) -> None:
        self.left += reserved - usage.total_tokens
        self.booked.append((model, usage.total_tokens))


async def test_every_call_is_paid_from_the_purse_and_an_empty_one_ends_the_loop() -> None:
    purse = Purse(2500)
    reply = ModelReply(AssistantMessage("", (call("add", a=1, b=1),)), Usage(900, 100, calls=1), "tool_calls")
    model = ScriptedModel([reply, reply, reply])
    with pytest.raises(RuntimeError, match="empty"):
        await Agent(model, tools=[add], spending=purse, limits=Limits(repeated_calls=None)).run("go")
    assert len(model.requests) == 2
    assert purse.left == 500


async def test_a_failed_call_gives_back_what_was_set_aside() -> None:
    purse = Purse(5000)
    with pytest.raises(ServerFault):
        await Agent(ScriptedModel([ServerFault("x")]), spending=purse).run("go")
    assert purse.left == 5000


async def test_a_stream_without_a_reply_is_an_error() -> None:
    class Mute:
        name = "mute"

        async def stream(self, request: ModelRequest) -> Any:
            nothing: tuple[StreamPart, ...] = ()
            for part in nothing:
                yield part

    with pytest.raises(IncompleteAnswer):
        await Agent(Mute()).run("go")
