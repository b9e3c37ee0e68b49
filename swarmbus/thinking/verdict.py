"""Decides over a reply before anything is done about it: is it the answer, which calls may run, must the loop stop."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import anyio

from swarmbus.thinking.asking import output_mode
from swarmbus.thinking.models.base import ANSWER_TOOL
from swarmbus.thinking.output import REPAIRS, InvalidAnswer, correction
from swarmbus.thinking.tool_result import ToolResult

if TYPE_CHECKING:
    from swarmbus.errors import AgentStopped
    from swarmbus.messages import ModelReply
    from swarmbus.thinking.limits import StopReason
    from swarmbus.thinking.loop_state import LoopSetup, LoopState

NO_ANSWER: Final = object()
"""Stands for: there is no answer yet. (None may be an answer.)"""

CUT_CALL = "not run: the reply was cut by its length limit, and this call may be incomplete; call again, with less text"
CUT_REPLY = "the reply was cut by its length limit; ModelSettings(max_tokens=) allows more, as far as the model does"
TOO_LATE = "not run: the final answer was given in the same reply"


@dataclass(slots=True)
class Verdict:
    """What to do about a reply.

    Attributes:
        answer: the answer, or `NO_ANSWER`.
        results: the calls that must not run, by position, with the results they get instead.
        stop: why the loop must end once the calls have their results.
        correction: what the model has to be told about its answer.
    """

    answer: Any = NO_ANSWER
    results: dict[int, ToolResult] = field(default_factory=dict)
    stop: tuple[StopReason, str] | None = None
    correction: str | None = None


def judge(setup: LoopSetup, state: LoopState, reply: ModelReply, *, last: bool) -> Verdict:
    """Return what to do about a reply; in the last turn no call may run."""
    calls = reply.message.tool_calls
    if not calls:
        return _judge_text(setup, state, reply)
    if reply.finish == "length":
        return Verdict(results={position: ToolResult.failed("truncated", CUT_CALL) for position in range(len(calls))})
    verdict = Verdict()
    if setup.output is not None and any(call.name == ANSWER_TOOL for call in calls):
        verdict = _judge_answer_call(setup, state, reply)
    if verdict.answer is NO_ANSWER:
        _hold_back(verdict, setup, state, len(calls), last=last)
    return verdict


def limit_met(setup: LoopSetup, state: LoopState) -> tuple[StopReason, str] | None:
    """Return the limit that forbids a further call, if there is one."""
    limits = setup.limits
    if limits.turns is not None and state.turn >= limits.turns:
        return "turns", _counted(limits.turns, "turn")
    if limits.tokens is not None and state.usage.total_tokens >= limits.tokens:
        return "tokens", f"{state.usage.total_tokens} of {limits.tokens} tokens"
    if limits.usd is not None and state.usd >= limits.usd:
        return "usd", f"{state.usd:.4f} of {limits.usd} US dollars"
    state.now = anyio.current_time()
    if state.now >= state.deadline:
        return "seconds", f"{limits.seconds} seconds"
    return None


def stopped_at_limit(setup: LoopSetup, state: LoopState) -> AgentStopped | None:
    """Return the error for a limit that forbids a further model call, if there is one."""
    met = limit_met(setup, state)
    return None if met is None else state.stopped(*met)


def _judge_text(setup: LoopSetup, state: LoopState, reply: ModelReply) -> Verdict:
    text = reply.message.content
    if reply.finish == "length":
        return Verdict(stop=("length", CUT_REPLY))
    if not text.strip():
        return Verdict(stop=("empty", "the model answered with nothing"))
    if setup.output is None:
        return Verdict(answer=text)
    try:
        return Verdict(answer=setup.output.parse(text))
    except InvalidAnswer as error:
        return _invalid(setup, state, str(error))


def _judge_answer_call(setup: LoopSetup, state: LoopState, reply: ModelReply) -> Verdict:
    """Read the first typed answer that is right; otherwise each wrong one gets its result, and other calls may run."""
    assert setup.output is not None
    calls = reply.message.tool_calls
    errors: dict[int, str] = {}
    for position, call in enumerate(calls):
        if call.name != ANSWER_TOOL:
            continue
        try:
            answer = setup.output.parse(call.arguments)
        except InvalidAnswer as error:
            errors[position] = str(error)
            continue
        results = {other: ToolResult.failed("skipped", TOO_LATE) for other in range(len(calls))}
        return Verdict(answer, {**results, position: ToolResult.returned("accepted")})
    verdict = _invalid(setup, state, next(iter(errors.values())))
    verdict.results = {position: ToolResult.failed("invalid_arguments", error) for position, error in errors.items()}
    verdict.correction = None
    return verdict


def _invalid(setup: LoopSetup, state: LoopState, error: str) -> Verdict:
    if state.repairs >= REPAIRS:
        return Verdict(stop=("invalid_output", f"the answer still does not validate: {error}"))
    state.repairs += 1
    return Verdict(correction=correction(error, output_mode(setup)))


def _hold_back(verdict: Verdict, setup: LoopSetup, state: LoopState, count: int, *, last: bool) -> None:
    """Keep the calls that have no result yet from running where a limit forbids it, and say which."""
    waiting = [position for position in range(count) if position not in verdict.results]
    most = setup.limits.tool_calls
    room = len(waiting) if most is None else max(most - state.tool_calls, 0)
    if last and waiting:
        verdict.stop = "turns", f"{_counted(setup.limits.turns, 'turn')}, and tools called in the last one"
    verdict.stop = verdict.stop or _limit_before_tools(setup, state)
    if verdict.stop is not None:
        room = 0
    elif room < len(waiting):
        verdict.stop = "tool_calls", f"more than {_counted(most, 'tool call')}"
    for position in waiting[room:]:
        assert verdict.stop is not None
        verdict.results[position] = ToolResult.failed("skipped", f"not run: a limit is met ({verdict.stop[1]})")


def _limit_before_tools(setup: LoopSetup, state: LoopState) -> tuple[StopReason, str] | None:
    """Return the limit met before tools; the turns do not count here, since this turn's calls are part of it."""
    met = limit_met(setup, state)
    return None if met is None or met[0] == "turns" else met


def _counted(number: int | None, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"
