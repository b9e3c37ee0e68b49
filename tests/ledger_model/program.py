"""What a random program is: handlers, table rows and the facts that travel, in words of its own.

Nothing of the framework is imported, so that the naive model rests on the rules alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

CLIENT = "client"
SYSTEM = "system"
HANDLER_FAILED = "HandlerFailed"
RESULT = "result"
"""The column of the run's result, beside the numbers of the joins."""


@dataclass(frozen=True, slots=True)
class Fact:
    """An event, told apart by its serial; `items` is what a map runs over, `promises` the keys an opener expects."""

    serial: int
    name: str
    items: tuple[str, ...] = ()
    key: str = ""
    promises: tuple[str, ...] = ()


def picked(serial: int) -> bool:
    """Whether picky handlers take the fact with this serial."""
    return serial % 2 == 0


@dataclass(frozen=True, slots=True)
class Handler:
    """One method of one role: an `on` handler (`per` is None), a map (`each`), or a join (`per` names its opener).

    A `counted` map finds its items by a function, so that their number travels in the record; a `picky` handler takes
    only the events that `picked` names.
    """

    role: str
    name: str
    takes: str
    returns: tuple[str, ...] = ()
    early: tuple[str, ...] = ()
    each: bool = False
    counted: bool = False
    picky: bool = False
    per: str | None = None
    partial: Literal["fail", "proceed"] = "fail"
    quorum: int | None = None
    deadline: float | None = None
    keyed: bool = False
    expects: bool = False

    @property
    def publishes(self) -> tuple[str, ...]:
        """Every class it may publish, early or returned."""
        return tuple(dict.fromkeys(self.returns + self.early))


@dataclass(frozen=True, slots=True)
class Row:
    """A row of the event table."""

    publishers: tuple[str, ...]
    event: str
    handlers: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Program:
    """A wiring: classes with their parents, handlers in the order of their numbers, rows, the result and the start.

    The client may submit the `start`, and later also the `sends`.
    """

    parents: dict[str, str | None]
    handlers: tuple[Handler, ...]
    rows: tuple[Row, ...]
    result: str | None
    start: str
    sends: tuple[str, ...] = ()
    max_hops: int = 1000

    def is_a(self, name: str, ancestor: str) -> bool:
        """Whether class `name` is `ancestor` or a child of it."""
        at: str | None = name
        while at is not None:
            if at == ancestor:
                return True
            at = self.parents.get(at)
        return False

    def receivers(self, publisher: str, name: str) -> frozenset[str]:
        """The addresses that the rows name for an event of class `name` from `publisher`."""
        return frozenset(
            address
            for row in self.rows
            if publisher in row.publishers and name == row.event
            for address in row.handlers
        )

    def candidates(self, publisher: str, name: str) -> list[list[int]]:
        """For each receiving role the `on` handlers that may get the event: nearest class first, picky ones before.

        The first that takes all it is offered is the last that may.
        """
        groups = []
        for role in sorted(self.receivers(publisher, name)):
            offered = [
                (self.distance(name, handler.takes), not handler.picky, number)
                for number, handler in enumerate(self.handlers)
                if handler.per is None and handler.role == role and self.is_a(name, handler.takes)
            ]
            group = []
            for _, takes_all, number in sorted(offered):
                group.append(number)
                if takes_all:
                    break
            if group:
                groups.append(group)
        return groups

    def takers(self, publisher: str, fact: Fact) -> list[int]:
        """The `on` handlers that get the event, one for each role."""
        return sorted(
            next(number for number in group if not self.handlers[number].picky or picked(fact.serial))
            for group in self.candidates(publisher, fact.name)
        )

    def distance(self, name: str, ancestor: str) -> int:
        """How many classes lie between a class and one above it."""
        return 0 if name == ancestor else 1 + self.distance(self.parents[name] or "", ancestor)

    def opened(self, publisher: str, name: str) -> list[int]:
        """The joins whose opener the event is."""
        roles = self.receivers(publisher, name)
        return [
            number
            for number, handler in enumerate(self.handlers)
            if handler.per is not None and handler.role in roles and self.is_a(name, handler.per)
        ]

    def fed(self, publisher: str, name: str) -> list[int]:
        """The joins that the event is a contribution to."""
        roles = self.receivers(publisher, name)
        return [
            number
            for number, handler in enumerate(self.handlers)
            if handler.per is not None and handler.role in roles and self.is_a(name, handler.takes)
        ]

    def ends(self, publisher: str, name: str) -> bool:
        """Whether the event is the run's result."""
        return self.result is not None and name == self.result and CLIENT in self.receivers(publisher, name)
