"""The agent loop: ask the model, run the tools it calls, ask again, until it answers or a limit says stop.

All variation is injected: the loop itself knows no server, no tool, no role and no bus.
"""

from __future__ import annotations

import math
from contextlib import AsyncExitStack
from types import NoneType
from typing import TYPE_CHECKING, Any, Final, cast

from anyio import CancelScope, get_cancelled_exc_class

from swarmbus.errors import AgentStopped, AnswerFiltered, ModelError
from swarmbus.messages import ToolMessage, UserMessage
from swarmbus.text import text_of
from swarmbus.thinking.asking import ask, build_request
from swarmbus.thinking.batch import Batch
from swarmbus.thinking.context import cut
from swarmbus.thinking.hooks import HookFailed, NextTurn, Progress, ask_hook
from swarmbus.thinking.loop_events import AgentEnd, AgentStart, TurnEnd, TurnStart
from swarmbus.thinking.models.base import ANSWER_TOOL, kept_open
from swarmbus.thinking.models.registry import resolve_model
from swarmbus.thinking.tools import MAX_RESULT, read_result, toolset
from swarmbus.thinking.verdict import NO_ANSWER, judge, stopped_at_limit

if TYPE_CHECKING:
    from swarmbus.messages import ModelReply, ToolCall
    from swarmbus.thinking.limits import StopReason
    from swarmbus.thinking.loop_state import LoopSetup, LoopState
    from swarmbus.thinking.tool_result import ToolResult
    from swarmbus.thinking.verdict import Verdict

FINISH: Final = (
    "This is the last turn: there will be no further tool calls. Give the final answer now, from what you have."
)


async def run_loop(setup: LoopSetup, state: LoopState, prompt: UserMessage) -> tuple[Any, StopReason]:
    """Run the loop for a prompt and return the answer and why the loop ended: `done`, or `turns` for a last word.

    The history in `state.messages` is valid to go on from however this ends.

    Raises:
        AgentStopped: a limit, a hook or the model's way of answering ended the loop without an answer.
        ModelError: the model layer gave up.
    """
    state.reporter.emit(AgentStart, prompt=prompt)
    reason: StopReason = "failed"
    problem: str | None = None
    try:
        state.messages.append(prompt)
        answer, reason = await _within_seconds(setup, state)
    except get_cancelled_exc_class():
        reason = "cancelled"
        raise
    except HookFailed as failure:
        reason, problem = "hook_failed", str(failure)
        raise state.stopped(reason, problem) from failure.__cause__
    except Exception as failure:
        problem = text_of(failure)
        if isinstance(failure, AgentStopped):
            reason = cast("StopReason", failure.reason)
        elif isinstance(failure, ModelError):
            reason = "model_failed"
        raise
    else:
        return answer, reason
    finally:
        state.reporter.emit(AgentEnd, stop_reason=reason, usage=state.usage, error=problem)


async def _within_seconds(setup: LoopSetup, state: LoopState) -> tuple[Any, StopReason]:
    with CancelScope(deadline=state.deadline) as clock:
        async with AsyncExitStack() as opened:
            return await _turns(setup, state, clock, opened)
    raise state.stopped("seconds", f"{setup.limits.seconds} seconds")


async def _turns(
    setup: LoopSetup, state: LoopState, clock: CancelScope, opened: AsyncExitStack
) -> tuple[Any, StopReason]:
    while True:
        state.messages.extend(setup.steering.take())
        if stop := stopped_at_limit(setup, state):
            raise stop
        if state.turn and setup.hooks.prepare_next_turn is not None:
            asked = ask_hook(setup.hooks.prepare_next_turn, _progress(setup, state), returns=(NextTurn, NoneType))
            await _change(setup, state, await asked, opened)
        state.reporter.turn += 1
        last = state.turn == setup.limits.turns and state.turn > 1
        if last:
            state.messages.append(UserMessage(FINISH))
        answer = await _turn(setup, state, clock, last=last)
        if answer is NO_ANSWER:
            if setup.hooks.should_stop is not None and await ask_hook(setup.hooks.should_stop, _progress(setup, state)):
                raise state.stopped("should_stop", "the hook said so")
            continue
        further = [] if last else setup.steering.take() or setup.follow_ups.take()
        if not further:
            return answer, "turns" if last else "done"
        state.messages.extend(further)


async def _turn(setup: LoopSetup, state: LoopState, clock: CancelScope, *, last: bool) -> Any:
    """Ask once and deal with the reply; return the answer, or `NO_ANSWER` where there is none yet."""
    state.reporter.emit(TurnStart, messages=len(state.messages))
    try:
        request = await build_request(setup, state, last=last)
        reply = await ask(setup, state, request)
        if reply.finish == "content_filter":
            raise AnswerFiltered(f"a content filter stopped the answer of {reply.model or setup.model.name}")
        state.messages.append(reply.message)
        verdict = judge(setup, state, reply, last=last)
        if reply.message.tool_calls:
            await _answer_calls(setup, state, reply, verdict, clock)
        elif verdict.correction is not None:
            state.messages.append(UserMessage(verdict.correction))
        if verdict.stop is not None:
            raise state.stopped(*verdict.stop)
        return verdict.answer
    finally:
        state.reporter.emit(TurnEnd)


async def _answer_calls(
    setup: LoopSetup, state: LoopState, reply: ModelReply, verdict: Verdict, clock: CancelScope
) -> None:
    """Give each call its result, in the order of the calls, in every case; note what repeats itself."""
    calls = reply.message.tool_calls
    batch = Batch(setup, state, calls)
    if state.now + setup.longest_tool >= state.deadline:
        clock.deadline = math.inf  # tools have time limits of their own; only model calls are given up
    try:
        await batch.run(verdict.results)
    finally:
        if clock.deadline != state.deadline:
            clock.deadline = state.deadline
        for position, call in enumerate(calls):
            state.messages.append(_message(setup, state, call, batch.results[position]))
    if verdict.answer is NO_ANSWER:
        state.tool_calls += len(calls) - len(verdict.results)
        outcomes = [(call, batch.results[i]) for i, call in enumerate(calls) if call.name != ANSWER_TOOL]
        verdict.stop = verdict.stop or state.repetition.observe(outcomes)


def _message(setup: LoopSetup, state: LoopState, call: ToolCall, result: ToolResult) -> ToolMessage:
    tool = setup.tools.get(call.name)
    most = MAX_RESULT if tool is None else tool.options.max_result
    text = result.text
    if len(text) > most:
        state.whole_results[call.id] = text
        text = cut(text, most, call.id, readable_on=read_result.name in setup.tools)
    return ToolMessage(call.id, call.name, text, result.ok)


async def _change(setup: LoopSetup, state: LoopState, change: NextTurn | None, opened: AsyncExitStack) -> None:
    if change is None:
        return
    if change.model is not None:
        setup.use_model(resolve_model(change.model))
        await opened.aclose()
        await opened.enter_async_context(kept_open(setup.model))
    if change.tools is not None:
        setup.use_tools(toolset(change.tools))
    if change.messages is not None:
        state.replace_messages(change.messages)


def _progress(setup: LoopSetup, state: LoopState) -> Progress:
    return Progress(state.turn, tuple(state.messages), state.usage, setup.deps)
