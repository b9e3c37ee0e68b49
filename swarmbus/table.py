"""The event table: who publishes which event, and who handles it. The contract, written before any role exists.

Plain data. Whether the code does what the table says is found out by `checks`.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Generic, NamedTuple, TypeAlias

from typing_extensions import TypeVar

from swarmbus.arguments import refusal, require_text, shown
from swarmbus.events import Event
from swarmbus.text import near_match

R = TypeVar("R", bound=Event, default=Event)


@dataclass(frozen=True, slots=True)
class Party:
    """Somebody beside the roles who publishes or handles events: `CLIENT` or `SYSTEM`."""

    name: str

    @property
    def address(self) -> str:
        """The name under which rows and envelopes know it."""
        return self.name


@dataclass(frozen=True, slots=True)
class External:
    """A program outside the swarm that publishes or handles events."""

    name: str

    def __post_init__(self) -> None:
        require_text("External({})", self.name, "the name of a program")

    @property
    def address(self) -> str:
        """The name under which rows and envelopes know it."""
        return f"external:{self.name}"


CLIENT = Party("client")
"""Whoever submits the first event and receives the result."""

SYSTEM = Party("system")
"""The framework, which publishes events such as `HandlerFailed`."""

Address: TypeAlias = str | Party | External
"""A role by its name, or somebody beside the roles."""


class Row(NamedTuple):
    """One row of an event table."""

    publishers: Address | tuple[Address, ...]
    event: type[Event]
    handlers: Address | tuple[Address, ...]


@dataclass(frozen=True, slots=True)
class Entry:
    """A row that can be used: publishers and handlers are tuples, the event is an event class.

    Attributes:
        publishers: who may publish the event.
        event: the exact class; a subclass needs a row of its own.
        handlers: who handles it.
        index: position of the row in the table, from 0.
    """

    publishers: tuple[Address, ...]
    event: type[Event]
    handlers: tuple[Address, ...]
    index: int


class EventTable(Generic[R]):
    """Rows of (publishers, event, handlers), and the event that ends a run.

    Publishers and handlers are a role name, `CLIENT`, `SYSTEM` or `External("name")`, or a tuple of them. A row is
    about exactly its event class: every class that travels is named in the table, so that any process can tell
    by its name what it received. A handler of a class takes its subclasses too, and a handler of an open generic
    event (`Result`) all its forms (`Result[int]`). Rows that make no sense are kept, and reported by the check.

    Attributes:
        rows: the rows as they were written.
        entries: those rows whose event is an event class, with only the publishers and handlers that can be any.
        result: the event whose arrival at the client ends a run; None where a run ends when it is quiet.
        where: `"file:line"` at which the table was made, where Python tells.

    Raises:
        ValueError: a row is not a tuple of three.
        TypeError: the result is no class.
    """

    def __init__(self, *rows: Row | tuple[Any, Any, Any], result: type[R] | None = None) -> None:
        written: tuple[Any, ...] = rows
        for index, row in enumerate(written):
            if not isinstance(row, tuple) or len(row) != 3:
                many = isinstance(row, (list, tuple)) and row and all(isinstance(each, tuple) for each in row)
                hint = "EventTable(*rows, result=...)" if many else "(publishers, Event, handlers)"
                raise ValueError(f"row {index + 1} of the event table is {shown(row)}; write {hint}")
        written_result: Any = result
        if written_result is not None and not isinstance(written_result, type):
            own = f": {type(written_result).__name__}" if isinstance(written_result, Event) else ""
            raise refusal("EventTable(result={})", written_result, f"an event class itself{own}")
        self.rows = tuple(Row(*row) for row in rows)
        self.result = result
        self.entries = tuple(
            Entry(known(row.publishers), row.event, known(row.handlers), index)
            for index, row in enumerate(self.rows)
            if is_event(row.event)
        )
        frame = inspect.currentframe()
        caller = frame.f_back if frame is not None else None
        self.where = f"{caller.f_code.co_filename}:{caller.f_lineno}" if caller is not None else None

    def __repr__(self) -> str:
        return f"<EventTable of {len(self.rows)} rows, result {self.result.__name__ if self.result else None}>"


def is_event(candidate: object) -> bool:
    """Whether this is an event class that can be published or handled."""
    return isinstance(candidate, type) and issubclass(candidate, Event)


def address(party: Address) -> str:
    """Return the string that stands for a party: a role's name, `client`, `system`, or `external:NAME`."""
    return party if isinstance(party, str) else party.address


def parties(named: object) -> tuple[object, ...]:
    """Return what a row says about publishers or handlers as a tuple."""
    return tuple(named) if isinstance(named, (tuple, list)) else (named,)


def meant(party: object, roles: Iterable[str]) -> Address | None:
    """Return whom a row means by what is no party: CLIENT or SYSTEM as text, a role itself, or a name misspelt."""
    if isinstance(party, str):
        return {"client": CLIENT, "system": SYSTEM}.get(party.lower()) or near_match(party, roles)
    name = getattr(party, "name", None)  # a role, or the class of one
    return name if isinstance(name, str) and name in roles else None


def known(named: object) -> tuple[Address, ...]:
    """Return those publishers or handlers of a row that can be any."""
    return tuple(party for party in parties(named) if isinstance(party, (str, Party, External)))


def row_text(entry: Entry) -> str:
    """Return how messages call a row, such as `row 2 (planner -> TaskPlanned -> executor)`."""
    publishers = ", ".join(map(address, entry.publishers)) or "nobody"
    handlers = ", ".join(map(address, entry.handlers)) or "nobody"
    return f"row {entry.index + 1} ({publishers} -> {entry.event.__name__} -> {handlers})"
