"""What a model of one's own says of its reply and of what it cost is checked, whatever it says."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pytest

from support.jobs import JobGiven, PieceDone, job_swarm
from swarmbus import Budget, LimitReached, Role, RoleContext, on
from swarmbus.messages import AssistantMessage, ModelReply, ModelRequest, StreamPart, TextDelta, ToolCall, Usage
from swarmbus.models import ScriptedModel
from swarmbus.thinking.agent import Agent
from swarmbus.thinking.hooks import Hooks

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

ANY: Any = None
NAN, ENDLESS = float("nan"), float("inf")


class Own:
    """A model of one's own, which yields what it is told to."""

    name = "own"

    def __init__(self, *parts: Any) -> None:
        self.parts = parts
        self.asked = 0

    async def stream(self, request: ModelRequest) -> AsyncIterator[StreamPart]:
        self.asked += 1
        for part in self.parts:
            yield part


def saying(content: Any = "ok", calls: Any = (), **facts: Any) -> ModelReply:
    return ModelReply(AssistantMessage(content, calls), **facts)


def said(usage: Any) -> ModelReply:
    return saying(usage=usage)


WRONG: dict[str, tuple[Any, str]] = {
    "no message": (ModelReply(ANY), "ModelReply(None) takes an AssistantMessage"),
    "a text as message": (ModelReply("text"), "ModelReply('text') takes an AssistantMessage"),  # type: ignore[arg-type]
    "no content": (saying(None), 'AssistantMessage(None) takes a text, "" where there is none'),
    "calls that are none": (saying("", 5), "AssistantMessage(tool_calls=5) takes a tuple of ToolCall"),
    "a call that is none": (saying("", ("add",)), "AssistantMessage(tool_calls=('add', )) takes ToolCall"),
    "no arguments": (saying("", (ToolCall("1", "add", ANY),)), "ToolCall(arguments=None) takes JSON text"),
    "no id": (saying("", (ToolCall(ANY, "add"),)), "ToolCall(id=None) takes a text"),
    "no name": (saying("", (ToolCall("1", ANY),)), "ToolCall(name=None) takes the name of a tool"),
    "no usage": (said({"input_tokens": 5}), "ModelReply(usage={'input_tokens': 5}) takes Usage, or None"),
    "no finish": (saying(finish=None), "ModelReply(finish=None) takes one of stop, tool_calls, length, content_filter"),
    "an unhashable finish": (saying(finish=[]), "ModelReply(finish=[]) takes one of stop"),
    "no model": (saying(model=None), "ModelReply(model=None) takes a text"),
    "no part": (5, "yield 5 takes a part of a reply, such as TextDelta(text), and at last a ModelReply"),
}


@pytest.mark.parametrize(("part", "told"), WRONG.values(), ids=WRONG)
async def test_a_reply_of_another_type_is_refused_by_name(part: Any, told: str) -> None:
    with pytest.raises(TypeError, match=rf"model own: {re.escape(told)}"):
        await Agent(Own(part, saying())).run("go") if part == 5 else await Agent(Own(part)).run("go")


async def test_a_script_and_a_hook_are_held_to_it_too() -> None:
    wrong = saying(None)
    with pytest.raises(TypeError, match=r"AssistantMessage\(None\) takes a text"):
        await Agent(ScriptedModel([wrong])).run("go")
    with pytest.raises(TypeError, match=r"as the hook changed it: AssistantMessage\(None\) takes a text"):
        await Agent(ScriptedModel(["a"]), hooks=Hooks(after_model_call=lambda reply: wrong)).run("go")


async def test_a_list_of_calls_is_taken() -> None:
    model = ScriptedModel([saying("", [ToolCall("1", "none")]), "done"])
    assert (await Agent(model).run("go")).output == "done"


ESTIMATED = Usage(5, 5, calls=1, estimated=True)
REPORTED: dict[str, tuple[Usage, Usage]] = {
    "as it should be": (Usage(3, 2, 1, 1, calls=1), Usage(3, 2, 1, 1, calls=1)),
    "no calls": (Usage(3, 2), Usage(3, 2, calls=1)),
    "several calls": (Usage(3, 2, calls=1000), Usage(3, 2, calls=1)),
    "calls below zero": (Usage(3, 2, calls=-3), Usage(3, 2, calls=1)),
    "tokens below zero": (Usage(-3, 2), ESTIMATED),
    "an answer below zero": (Usage(3, -2), ESTIMATED),
    "no number": (Usage(3, NAN), ESTIMATED),  # type: ignore[arg-type]
    "endless": (Usage(ENDLESS, 2), ESTIMATED),  # type: ignore[arg-type]
    "more than can be": (Usage(10**400, 2), ESTIMATED),
    "a text": (Usage("3", 2), ESTIMATED),  # type: ignore[arg-type]
    "a detail below zero": (Usage(3, 2, -1, -1), Usage(3, 2, calls=1)),
    "details above the whole": (Usage(3, 2, 9, 9), Usage(3, 2, 3, 2, calls=1)),
    "nothing": (Usage(0, 0), ESTIMATED),
    "a fraction": (Usage(3.0, 2.5), Usage(3, 2, calls=1)),  # type: ignore[arg-type]
}


@pytest.mark.parametrize(("reported", "counted"), REPORTED.values(), ids=REPORTED)
async def test_counts_that_can_not_be_are_estimated(reported: Usage, counted: Usage) -> None:
    usage = (await Agent(Own(said(reported))).run("go")).usage
    assert usage == counted
    assert all(type(count) is int for count in (usage.input_tokens, usage.output_tokens, usage.calls))


async def test_a_hook_that_says_nothing_of_the_usage_does_not_make_a_call_free() -> None:
    hooks = Hooks(after_model_call=lambda reply: ModelReply(reply.message))
    assert (await Agent(Own(said(Usage(3, 2))), hooks=hooks).run("go")).usage == Usage(3, 2, calls=1)


class Asker(Role):
    name = "worker"

    @on(JobGiven, each="pieces")
    async def work(self, piece: int, ctx: RoleContext) -> PieceDone:
        await ctx.ask(f"piece {piece}", history=())
        return PieceDone(piece=piece)


@pytest.mark.parametrize("reported", [Usage(-5000, -5000), Usage(NAN, 1), Usage(0, 0, calls=-1)], ids=str)  # type: ignore[arg-type]
async def test_no_report_defeats_a_budget_or_ends_a_swarm(reported: Usage) -> None:
    model = Own(said(reported))
    async with job_swarm(Asker(), model=model, budget=Budget(calls=3)).open() as live:
        for _ in range(2):
            run = await live.submit(JobGiven(pieces=tuple(range(10))))
            with pytest.raises(LimitReached, match="calls: 3 model calls were made, the budget allows 3") as caught:
                await run.result()
            assert caught.value.result.usage.calls == 3
            assert caught.value.result.usage.total_tokens >= 0
    assert model.asked == 6


async def test_tokens_below_zero_refill_no_budget() -> None:
    model = Own(TextDelta("ok"), said(Usage(-5000, -5000)))
    with pytest.raises(LimitReached, match=r"tokens: \d+ spent"):
        await job_swarm(Asker(), model=model, budget=Budget(tokens=1100)).run(JobGiven(pieces=tuple(range(99))))


async def test_a_report_of_nothing_defeats_no_budget() -> None:
    with pytest.raises(LimitReached, match=r"tokens: \d+ spent"):
        await job_swarm(Asker(), model=Own(said(Usage())), budget=Budget(tokens=1100)).run(
            JobGiven(pieces=tuple(range(99)))
        )
