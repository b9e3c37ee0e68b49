"""What an agent and a run may use up, and the three counters that notice an agent turning in circles."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any, Literal, Protocol

from swarmbus.arguments import require, seconds, shown

if TYPE_CHECKING:
    from collections.abc import Iterable

    from swarmbus.messages import ToolCall, Usage
    from swarmbus.thinking.tool_result import ToolResult

StopReason = Literal[
    "done",
    "turns",
    "tokens",
    "usd",
    "seconds",
    "tool_calls",
    "repeated_calls",
    "repeated_results",
    "errors_per_tool",
    "length",
    "empty",
    "invalid_output",
    "should_stop",
    "hook_failed",
    "model_failed",
    "cancelled",
    "failed",
]
"""Why a loop ended. A limit's reason is the name of its field."""


def _require_positive(limits: Any) -> None:
    """Refuse what is no limit; what a field takes is read from its annotation."""
    for item in fields(limits):
        value = getattr(limits, item.name)
        call = f"{type(limits).__name__}({item.name}={{}})"
        if value is None and "None" in item.type:
            continue
        whole = "float" not in item.type
        require(call, value, int if whole else (int, float), "a whole number" if whole else "a number")
        if not (value if whole else seconds(value)) > 0:
            raise ValueError(f"{call.replace('{}', shown(value))}: a limit is above 0, or None for no limit")


@dataclass(frozen=True, slots=True)
class Limits:
    """What one run of an agent may use up; None means without limit. All are checked before the next call starts.

    Attributes:
        turns: model calls; the last of them asks the model to finish with what it has.
        tokens: tokens read and written.
        usd: US dollars, which needs a model whose price is known.
        seconds: seconds from the start; a model call still under way then is given up.
        tool_calls: tool calls, over all tools.
        tool_timeout: seconds that a tool may run, unless it says otherwise or reports progress.
        idle_timeout: seconds that a model may be silent; bytes of a server that make no whole line are no sign of life.
        repeated_calls: how often the same call may fail, and how often it may bring the same result.
        errors_per_tool: in how many turns in a row of its use a tool may fail.
    """

    turns: int | None = 20
    tokens: int | None = 150_000
    usd: float | None = None
    seconds: float | None = 600
    tool_calls: int | None = None
    tool_timeout: float | None = 60
    idle_timeout: float | None = 60
    repeated_calls: int | None = 3
    errors_per_tool: int | None = 3

    def __post_init__(self) -> None:
        _require_positive(self)


DEFAULT_LIMITS = Limits()


@dataclass(frozen=True, slots=True)
class Budget:
    """What one run of a swarm may use up, over all its roles; None means without limit.

    Attributes:
        tokens: tokens read and written. Before a call its prompt, as estimated, and its reply are set aside, so that a
            call that could pass the budget is not made: for the reply `ModelSettings(max_tokens=)` of the question, or
            1000 where it says nothing. What is not used comes back once the reply is there.
        usd: US dollars, which needs models whose prices are known.
        calls: model calls.
        seconds: seconds from the run's start.
        hops: how many events may stand in one line of causes.
    """

    tokens: int | None = None
    usd: float | None = None
    calls: int | None = None
    seconds: float | None = None
    hops: int = 1000

    def __post_init__(self) -> None:
        _require_positive(self)


class Spending(Protocol):
    """A purse outside the agent, such as a run's budget, that every model call is paid from."""

    async def reserve(self, tokens: int, model: str) -> None:
        """Set tokens aside for a call of this model; what this raises ends the loop before the call."""
        ...

    def settle(self, reserved: int, usage: Usage, model: str) -> None:
        """Give back what was set aside and book what the call really cost; a failed call costs an empty usage."""
        ...


@dataclass(slots=True)
class Repetition:
    """Counts, over the turns of one run, what happens again and again."""

    limits: Limits
    _failures: dict[tuple[str, str], int] = field(default_factory=dict)
    _results: dict[tuple[str, str], tuple[str, int]] = field(default_factory=dict)
    _errors: dict[str, int] = field(default_factory=dict)

    def observe(self, outcomes: Iterable[tuple[ToolCall, ToolResult]]) -> tuple[StopReason, str] | None:
        """Count one turn's results and return the reason to stop and its details, if there is one.

        A turn counts once per call and once per tool, however often it made the call or the tool failed.
        """
        calls = {(call.name, _as_value(call.arguments)): result for call, result in outcomes}
        tools: dict[str, bool] = {}
        for (name, _), result in calls.items():
            tools[name] = tools.get(name, True) and result.ok
        for key, result in calls.items():
            self._count_call(key, result)
        for name, succeeded in tools.items():
            self._errors[name] = 0 if succeeded else self._errors.get(name, 0) + 1
        return self._reached(calls)

    def _count_call(self, key: tuple[str, str], result: ToolResult) -> None:
        if not result.ok:
            self._failures[key] = self._failures.get(key, 0) + 1
            return
        self._failures.pop(key, None)
        text, count = self._results.get(key, ("", 0))
        self._results[key] = (result.text, count + 1 if result.text == text or not count else 1)

    def _reached(self, calls: Iterable[tuple[str, str]]) -> tuple[StopReason, str] | None:
        most, errors = self.limits.repeated_calls, self.limits.errors_per_tool
        for key in calls:
            name, arguments = key
            if most is not None and self._failures.get(key, 0) >= most:
                return "repeated_calls", f"{name}({arguments}) failed {most} times"
            if most is not None and self._results.get(key, ("", 0))[1] >= most:
                return "repeated_results", f"{name}({arguments}) brought the same result {most} times"
            if errors is not None and self._errors[name] >= errors:
                return "errors_per_tool", f"{name} failed in {errors} turns running"
        return None


def _as_value(arguments: str) -> str:
    """Return the arguments of a call, which a model writes in any order and with any spaces, in one way."""
    try:
        return json.dumps(json.loads(arguments), sort_keys=True, ensure_ascii=False)
    except (ValueError, RecursionError):
        return arguments
