from __future__ import annotations

import contextlib
import re
from typing import Any, assert_type

import anyio
import pytest

from swarmbus.errors import AgentStopped, ServerFault
from swarmbus.messages import AssistantMessage, Message, ModelRequest, ToolMessage, UserMessage
from swarmbus.thinking.agent import Agent, AgentResult
from swarmbus.thinking.hooks import Hooks
from swarmbus.thinking.limits import Limits
from swarmbus.thinking.loop_events import LoopEvent
from swarmbus.thinking.models.scripted import ScriptedModel, call
from swarmbus.thinking.tools import tool

pytestmark = pytest.mark.anyio

LETTERS = {
    "agent_start": "A",
    "turn_start": "T",
    "message_start": "M",
    "message_update": "u",
    "message_end": "m",
    "tool_execution_start": "X",
    "tool_execution_update": "p",
    "tool_execution_end": "x",
    "turn_end": "t",
    "agent_end": "a",
}
GRAMMAR = re.compile(r"A(T(Mu*m)?([Xpx])*t)*a")


@tool
async def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@tool
async def hang() -> None:
    """Hang."""
    await anyio.sleep_forever()


def sentence(events: list[LoopEvent]) -> str:
    return "".join(LETTERS[event.type] for event in events)


def texts(request: ModelRequest) -> list[str]:
    return [str(message.content) for message in request.messages]


async def test_the_type_of_the_output_is_the_type_asked_for() -> None:
    result = await Agent(ScriptedModel([3])).run("x", output=int)
    assert_type(result, AgentResult[int])
    text = await Agent(ScriptedModel(["x"])).run("x")
    assert_type(text.output, str)
    union = await Agent(ScriptedModel([3])).run("x", output=int | None)
    assert_type(union.output, int | None)


async def test_a_run_goes_on_from_the_runs_before() -> None:
    model = ScriptedModel(["Anna", "Anna again"])
    agent = Agent(model, "Remember.")
    await agent.run("My name is Anna")
    await agent.run("What is my name?")
    assert texts(model.requests[1]) == ["Remember.", "My name is Anna", "Anna", "What is my name?"]


async def test_a_history_can_be_given_and_leaves_the_agents_own_alone() -> None:
    model = ScriptedModel(["x"])
    agent = Agent(model)
    result = await agent.run("q", history=[UserMessage("h"), AssistantMessage("i")])
    assert texts(model.requests[0]) == ["h", "i", "q"]
    assert len(result.messages) == 4
    assert agent.history == ()


async def test_runs_that_overlap_fork_the_history() -> None:
    model = ScriptedModel(["first", *[lambda request: f"after {len(request.messages)}"] * 3])
    agent = Agent(model)
    await agent.run("base")
    results: dict[str, AgentResult[str]] = {}

    async def ask(prompt: str) -> None:
        results[prompt] = await agent.run(prompt)

    async with anyio.create_task_group() as group:
        group.start_soon(ask, "left")
        group.start_soon(ask, "right")
    assert [results[side].output for side in ("left", "right")] == ["after 3", "after 3"]
    assert [message.content for message in results["left"].messages] == ["base", "first", "left", "after 3"]
    assert [message.content for message in agent.history] == ["base", "first"]
    assert (await agent.run("trunk")).output == "after 3"


async def test_a_failed_run_leaves_a_history_to_go_on_from() -> None:
    model = ScriptedModel([call("add", a=1, b=2), ServerFault("x"), "three"])
    agent = Agent(model, tools=[add])
    with pytest.raises(ServerFault):
        await agent.run("1 + 2?")
    assert (await agent.run("well?")).output == "three"
    assert texts(model.requests[-1])[-2:] == ["3", "well?"]


async def test_a_steering_text_enters_after_the_tools_and_before_the_next_call() -> None:
    agent: Agent

    @tool
    async def interrupt() -> str:
        """Let the user speak."""
        agent.steer("in French, please")
        return "done"

    model = ScriptedModel([call("interrupt"), "bonjour"])
    agent = Agent(model, tools=[interrupt])
    await agent.run("greet")
    assert texts(model.requests[1])[-2:] == ["done", "in French, please"]


async def test_a_steering_text_that_comes_with_the_answer_keeps_the_loop_going() -> None:
    agent: Agent

    def answer(request: ModelRequest) -> str:
        agent.steer("wait")
        return "early"

    model = ScriptedModel([answer, "late"])
    agent = Agent(model)
    assert (await agent.run("go")).output == "late"


@pytest.mark.parametrize(("mode", "requests"), [("all", 2), ("one", 3)])
async def test_follow_ups_enter_when_the_loop_would_stop(mode: Any, requests: int) -> None:
    model = ScriptedModel([call("add", a=1, b=2), "three", "and four", "and five"][1:])
    agent = Agent(model, tools=[add], queues=mode)
    agent.follow_up("then?")
    agent.follow_up("and then?")
    await agent.run("go")
    assert len(model.requests) == requests
    assert texts(model.requests[-1])[-1] == "and then?"


async def test_a_follow_up_that_no_turn_is_left_for_waits_for_the_next_prompt() -> None:
    model = ScriptedModel([call("add", a=1, b=2), "three", "four", "five"])
    agent = Agent(model, tools=[add], limits=Limits(turns=2))
    agent.follow_up("and one more?")
    result = await agent.run("go")
    assert (result.output, result.stop_reason) == ("three", "turns")
    await agent.run("go on")
    assert "and one more?" in texts(model.requests[-1])


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        (["hello"], "ATMumta"),
        ([call("add", a=1, b=2), "three"], "ATMumXxtTMumta"),
        ([[call("add", a=1, b=2), call("nope")], "x"], "ATMuumXXxxta"),
        ([ServerFault("x")], "ATMmta"),
        ([call("hang")], "ATMumXxta"),
        ([call("add", a=1, b=2), call("add", a=1, b=2), "x"], "ATMumXxtTMumXxta"),
        ([""], "ATMmta"),
    ],
    ids=["text", "tool", "two-tools", "model-fails", "tool-times-out", "limit", "empty"],
)
async def test_events_follow_the_grammar(script: list[Any], expected: str) -> None:
    events: list[LoopEvent] = []
    limits = Limits(tool_timeout=0.01, errors_per_tool=1, repeated_calls=2)
    agent = Agent(
        ScriptedModel(script),
        tools=[add, hang],
        limits=limits,
        on_event=events.append,
        run_id="R",
        role="r",
        delivery="d",
    )
    with contextlib.suppress(AgentStopped, ServerFault):
        await agent.run("go")
    assert sentence(events) == expected
    assert GRAMMAR.fullmatch(sentence(events))
    assert [event.sequence for event in events] == list(range(1, len(events) + 1))
    assert {(event.run_id, event.role, event.delivery) for event in events} == {("R", "r", "d")}
    assert events[1].turn == 1


@pytest.mark.parametrize("where", ["model", "tool"])
async def test_events_follow_the_grammar_when_cancelled(where: str) -> None:
    async def never(request: object) -> str:
        await anyio.sleep_forever()
        return ""

    events: list[LoopEvent] = []
    script = [never] if where == "model" else [[call("hang"), call("hang")]]
    agent = Agent(ScriptedModel(script), tools=[hang], on_event=events.append)
    async with anyio.create_task_group() as group:
        group.start_soon(agent.run, "go")
        await anyio.wait_all_tasks_blocked()
        group.cancel_scope.cancel()
    assert sentence(events) == {"model": "ATMmta", "tool": "ATMuumXXxxta"}[where]
    last = events[-1]
    assert last.type == "agent_end"
    assert last.stop_reason == "cancelled"


async def test_a_stream_yields_the_events_and_then_has_the_result() -> None:
    stream = Agent(ScriptedModel([call("add", a=1, b=2), "three"]), tools=[add]).stream("1 + 2?")
    events = [event async for event in stream]
    assert sentence(events) == "ATMumXxtTMumta"
    assert stream.result is not None
    assert stream.result.output == "three"


async def test_a_stream_shows_a_tools_start_while_it_runs() -> None:
    seen = anyio.Event()

    @tool
    async def wait() -> str:
        """Wait until somebody has seen the start."""
        await seen.wait()
        return "seen"

    stream = Agent(ScriptedModel([call("wait"), "x"]), tools=[wait]).stream("go")
    async with stream as events:
        async for event in events:
            if event.type == "tool_execution_start":
                seen.set()
    assert stream.result is not None
    assert stream.result.messages[2] == ToolMessage("call_1_1", "wait", "seen")


async def test_a_stream_raises_what_ended_the_run() -> None:
    events: list[LoopEvent] = []

    async def watch() -> None:
        async for event in Agent(ScriptedModel([ServerFault("x")])).stream("go"):
            events.append(event)  # noqa: PERF401  # a list made at the end would lose them

    with pytest.raises(ServerFault):
        await watch()
    assert sentence(events) == "ATMmta"


async def test_what_a_stream_raises_keeps_its_cause() -> None:
    def broken(messages: object) -> list[Message]:
        raise RuntimeError("oh")

    with pytest.raises(AgentStopped) as caught:
        async for _ in Agent(ScriptedModel(["x"]), hooks=Hooks(transform_context=broken)).stream("go"):
            pass
    assert isinstance(caught.value.__cause__, RuntimeError)


async def test_leaving_a_stream_cancels_the_run() -> None:
    ends: list[str] = []

    @tool
    async def linger() -> str:
        """Wait for ever, and say when that is over."""
        try:
            await anyio.sleep_forever()
        finally:
            ends.append("cut")
        return "never"

    model = ScriptedModel([call("linger"), "never asked"])
    stream = Agent(model, tools=[linger]).stream("go")
    async with stream as events:
        async for event in events:
            if event.type == "tool_execution_start":
                await anyio.wait_all_tasks_blocked()
                break
    assert (ends, stream.result, len(model.requests)) == (["cut"], None, 1)


async def test_an_error_of_the_watcher_comes_out_as_it_is() -> None:
    async def watch() -> None:
        async with Agent(ScriptedModel([call("hang")]), tools=[hang]).stream("go") as events:
            async for _ in events:
                raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        await watch()


async def test_a_plain_function_becomes_a_tool() -> None:
    def double(n: int) -> int:
        """Double a number."""
        return 2 * n

    result = await Agent(ScriptedModel([call("double", n=21), "x"]), tools=[double]).run("go")
    assert result.messages[2] == ToolMessage("call_1_1", "double", "42")


async def test_hooks_reach_the_model_call() -> None:
    model = ScriptedModel(["x"])
    hooks = Hooks(before_model_call=lambda request: ModelRequest((UserMessage("other"),)))
    await Agent(model, hooks=hooks).run("go")
    assert texts(model.requests[0]) == ["other"]
