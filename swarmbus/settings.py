"""What a swarm's settings have to be: one of the wrong type is refused where it is given, before anything runs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from swarmbus.arguments import refusal, require_seconds
from swarmbus.handlers import Retry
from swarmbus.role_models import require_model_setting
from swarmbus.table import EventTable
from swarmbus.thinking.limits import Budget, Limits

if TYPE_CHECKING:
    from collections.abc import Callable


def require_settings(call: str, **settings: Any) -> None:
    """Refuse settings of the wrong type; None says nothing, and fits all but the table.

    Args:
        call: to what they are given, such as `Swarm`.
        **settings: the settings by their names.

    Raises:
        TypeError: the first that does not fit; says what it takes.
        ValueError: a timeout that is not above 0.
    """
    for name, value in settings.items():
        given = f"{call}({name}={{}})"
        if name == "model":
            require_model_setting(given, value)
        elif name == "timeout":
            require_seconds(given, value)
        elif (value is not None or name == "table") and not _FITS[name][0](value):
            raise refusal(given, value, _FITS[name][1])


def _has(*methods: str) -> Callable[[Any], bool]:
    return lambda value: not isinstance(value, type) and all(callable(getattr(value, name, None)) for name in methods)


_FITS: dict[str, tuple[Callable[[Any], bool], str]] = {
    "table": (lambda value: isinstance(value, EventTable), "an EventTable(row, row, ..., result=...)"),
    "limits": (lambda value: isinstance(value, Limits), "Limits, such as Limits(turns=5)"),
    "budget": (lambda value: isinstance(value, Budget), "a Budget, such as Budget(tokens=100_000)"),
    "retry": (lambda value: isinstance(value, Retry), "a Retry, such as Retry(attempts=3)"),
    "deps": (callable, "a function from the run's first event to an async context manager"),
    "journal": (_has("append", "read", "runs"), "a journal, such as MemoryJournal()"),
    "transport": (callable, "a function from the roles' stations to a transport"),
    "clock": (_has("time", "monotonic", "sleep_until"), "a clock, such as swarmbus.testing.FakeClock()"),
}
"""For each setting, what it has to be, as a test and in words."""
