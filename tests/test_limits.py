from __future__ import annotations

from typing import Any

import anyio
import pytest

from swarmbus.errors import AgentStopped, UnknownPrice
from swarmbus.messages import AssistantMessage, ModelReply, ToolCall, Usage, UserMessage
from swarmbus.thinking.agent import Agent
from swarmbus.thinking.limits import Budget, Limits, Repetition
from swarmbus.thinking.models.scripted import ScriptedModel, call
from swarmbus.thinking.tool_result import ToolResult
from swarmbus.thinking.tools import tool

pytestmark = pytest.mark.anyio

FREE = {"turns": None, "tokens": None, "repeated_calls": None, "errors_per_tool": None}


@tool
async def count(n: int) -> int:
    """Count."""
    return n


def reply(tokens: int, n: int) -> ModelReply:
    return ModelReply(AssistantMessage("", (call("count", n=n),)), Usage(tokens, calls=1), "tool_calls")


async def stopped(script: list[Any], **limits: Any) -> tuple[AgentStopped, ScriptedModel]:
    model = ScriptedModel(script)
    with pytest.raises(AgentStopped) as caught:
        await Agent(model, tools=[count], limits=Limits(**{**FREE, **limits})).run("go")
    return caught.value, model


def test_an_agent_is_limited_where_nothing_is_said() -> None:
    assert Limits() == Limits(
        turns=20,
        tokens=150_000,
        usd=None,
        seconds=600,
        tool_calls=None,
        tool_timeout=60,
        idle_timeout=60,
        repeated_calls=3,
        errors_per_tool=3,
    )


@pytest.mark.parametrize(
    ("script", "reason", "told"),
    [
        ([call("fetch", page=1)] * 9, "repeated_calls", 'fetch({"page": 1}) failed 3 times'),
        ([call("fetch", page=n) for n in range(9)], "errors_per_tool", "fetch failed in 3 turns running"),
        ([call("count", n=1)] * 9, "repeated_results", 'count({"n": 1}) brought the same result 3 times'),
    ],
    ids=["same-call-fails", "reworded-call-fails", "same-result"],
)
async def test_a_model_that_turns_in_circles_is_stopped_the_third_time(
    script: list[Any], reason: str, told: str
) -> None:
    @tool
    async def fetch(page: int) -> str:
        """Fetch a page."""
        raise LookupError("no such page")

    model = ScriptedModel(script)
    with pytest.raises(AgentStopped) as caught:
        await Agent(model, tools=[count, fetch]).run("go")
    assert (caught.value.reason, len(model.requests)) == (reason, 3)
    assert f": {told}; allow more with Limits(" in str(caught.value)
    assert [message.role for message in caught.value.messages] == ["user", *["assistant", "tool"] * 3]


async def test_the_last_turn_asks_for_the_answer_without_tools() -> None:
    model = ScriptedModel([call("count", n=1), call("count", n=2), "what I have"])
    result = await Agent(model, tools=[count], limits=Limits(turns=3)).run("go")
    assert (result.output, result.stop_reason) == ("what I have", "turns")
    assert [len(request.tools) for request in model.requests] == [1, 1, 0]
    last = model.requests[-1].messages[-1]
    assert isinstance(last, UserMessage)
    assert "last turn" in last.text


async def test_a_model_that_never_stops_calling_makes_as_many_requests_as_the_limit() -> None:
    error, model = await stopped([call("count", n=n) for n in range(9)], turns=4)
    assert (error.reason, len(model.requests)) == ("turns", 4)
    assert error.messages[-1].content.startswith('{"ok":false,"error":"skipped"')  # type: ignore[union-attr]


async def test_a_single_turn_keeps_its_tools() -> None:
    model = ScriptedModel(["42"])
    result = await Agent(model, tools=[count], limits=Limits(turns=1)).run("go")
    assert (result.stop_reason, len(model.requests[0].tools)) == ("done", 1)


async def test_tokens_are_checked_before_the_tools_of_a_reply_run() -> None:
    error, model = await stopped([reply(60, 1), reply(60, 2), "never"], tokens=100)
    assert (error.reason, len(model.requests)) == ("tokens", 2)
    results = [message.content for message in error.messages if message.role == "tool"]
    assert results[0] == "1"
    assert "120 of 100 tokens" in str(results[1])


async def test_an_answer_that_crosses_the_limit_is_still_an_answer() -> None:
    model = ScriptedModel([ModelReply(AssistantMessage("42"), Usage(500, calls=1))])
    assert (await Agent(model, limits=Limits(tokens=100)).run("go")).output == "42"


async def test_tokens_that_the_server_does_not_count_are_estimated_and_marked() -> None:
    error, _ = await stopped([call("count", n=n) for n in range(99)], tokens=1000)
    assert error.reason == "tokens"
    result = await Agent(ScriptedModel(["four"])).run("twelve characters")
    assert result.usage == Usage(input_tokens=9, output_tokens=5, calls=1, estimated=True)


async def test_tool_calls_beyond_the_limit_do_not_run() -> None:
    error, _ = await stopped([call("count", n=1), [call("count", n=2), call("count", n=3)]], tool_calls=2)
    assert error.reason == "tool_calls"
    contents = [message.content for message in error.messages if message.role == "tool"]
    assert contents[:2] == ["1", "2"]
    assert "more than 2 tool calls" in str(contents[2])


@pytest.mark.parametrize("before", [[], [call("count", n=1)]], ids=["at-once", "after-a-tool"])
async def test_the_seconds_end_a_model_call_under_way(before: list[Any]) -> None:
    async def slow(request: object) -> str:
        await anyio.sleep(5)
        return "too late"

    error, _ = await stopped([*before, slow], seconds=0.2)
    assert error.reason == "seconds"


async def test_a_tool_under_way_is_not_cut_by_the_seconds() -> None:
    done = []

    @tool
    async def slow() -> str:
        """Wait."""
        await anyio.sleep(0.05)
        done.append("slow")
        return "x"

    model = ScriptedModel([call("slow"), "never"])
    with pytest.raises(AgentStopped) as caught:
        await Agent(model, tools=[slow], limits=Limits(seconds=0.02)).run("go")
    assert (caught.value.reason, done, len(model.requests)) == ("seconds", ["slow"], 1)


async def test_a_money_limit_without_a_known_price_is_an_error_at_the_start() -> None:
    with pytest.raises(UnknownPrice):
        Agent(ScriptedModel(["x"]), limits=Limits(usd=1.0))


@pytest.mark.parametrize(
    ("replies", "limits", "told"),
    [
        ([call("count", n=n) for n in range(3)], {"turns": 1}, "(turns): 1 turn"),
        ([reply(60, 1), reply(60, 2)], {"tokens": 100}, "(tokens): 120 of 100 tokens"),
        ([[call("count", n=1), call("count", n=2)]], {"tool_calls": 1}, "(tool_calls): more than 1 tool call"),
        (
            [call("count", n=1)] * 2,
            {"repeated_calls": 2},
            '(repeated_results): count({"n": 1}) brought the same result 2 ti',
        ),
        ([call("count", n="x")] * 2, {"errors_per_tool": 2}, "(errors_per_tool): count failed in 2 turns running"),
    ],
    ids=["turns", "tokens", "tool_calls", "repeated_calls", "errors_per_tool"],
)
async def test_a_limit_that_is_met_names_the_setting(replies: list[Any], limits: dict[str, Any], told: str) -> None:
    error, _ = await stopped(replies, **limits)
    assert str(error).startswith(f"the agent stopped without an answer {told}")
    assert str(error).endswith(f"; allow more with Limits({next(iter(limits))}=)")


async def test_what_stops_a_loop_beside_its_limits_names_none() -> None:
    error, _ = await stopped([""])
    assert str(error) == "the agent stopped without an answer (empty): the model answered with nothing"


async def test_a_reply_that_is_cut_names_the_setting_of_its_length() -> None:
    error, _ = await stopped([ModelReply(AssistantMessage("half an"), finish="length")])
    assert str(error).endswith("its length limit; ModelSettings(max_tokens=) allows more, as far as the model does")


@pytest.mark.parametrize("wrong", [{"turns": 0}, {"seconds": -1}, {"repeated_calls": 0}])
def test_a_limit_of_nothing_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=next(iter(wrong))):
        Limits(**wrong)


def test_a_budget_limits_hops_by_default() -> None:
    assert Budget() == Budget(tokens=None, usd=None, calls=None, seconds=None, hops=1000)


OK = ToolResult.returned("same")
BAD = ToolResult.failed("raised", "no")


def used(result: ToolResult, arguments: str = "{}", name: str = "f") -> tuple[ToolCall, ToolResult]:
    return ToolCall("id", name, arguments), result


@pytest.mark.parametrize(
    ("turns", "reason"),
    [
        pytest.param([[used(BAD)], [used(BAD)], [used(BAD)]], "repeated_calls", id="same-call-fails"),
        pytest.param([[used(OK)], [used(OK)], [used(OK)]], "repeated_results", id="same-result"),
        pytest.param(
            [[used(BAD, "1")], [used(BAD, "2")], [used(BAD, "3")]], "errors_per_tool", id="tool-fails-in-each-turn"
        ),
        pytest.param([[used(BAD)] * 5, [used(BAD)] * 5], None, id="one-turn-counts-once"),
        pytest.param(
            [[used(BAD, "1")], [used(BAD, "2")], [used(OK, "3")], [used(BAD, "4")]], None, id="success-starts-anew"
        ),
        pytest.param([[used(BAD)], [used(BAD)], [used(OK)], [used(BAD)]], None, id="same-call-succeeds-in-between"),
        pytest.param(
            [[used(OK)], [used(OK)], [used(ToolResult.returned("other"))], [used(OK)]], None, id="result-changes"
        ),
        pytest.param(
            [[used(BAD, name="a"), used(OK, "1")], [used(BAD, name="b"), used(OK, "2")], [used(OK, "3")]],
            None,
            id="each-tool-for-itself",
        ),
    ],
)
def test_repetition_is_noticed(turns: list[list[tuple[ToolCall, ToolResult]]], reason: str | None) -> None:
    repetition = Repetition(Limits())
    noticed = [repetition.observe(turn) for turn in turns]
    assert noticed[:-1] == [None] * (len(turns) - 1)
    assert (noticed[-1] or [None])[0] == reason


def test_a_call_is_the_same_whatever_the_order_and_the_spaces_of_its_arguments() -> None:
    repetition = Repetition(Limits())
    written = ['{"a": 1, "b": 2}', '{"b":2,"a":1}', '{ "a":1, "b":2 }']
    noticed = [repetition.observe([(ToolCall("1", "f", text), ToolResult(ok=True, text="same"))]) for text in written]
    assert [stop and stop[0] for stop in noticed] == [None, None, "repeated_results"]
