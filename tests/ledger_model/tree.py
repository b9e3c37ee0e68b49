"""What a run consists of for the naive model: places, and things that live in them.

All of it is kept for good; what is over is only no longer `live`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from ledger_model.program import Fact

Origin: TypeAlias = "int | tuple[str, Ident]"
"""An envelope: the serial of its fact, or that of a failure, named by the delivery that failed."""

Ident: TypeAlias = "tuple[Origin, int, int]"
"""A delivery: (envelope, handler number, item or -1)."""

Column: TypeAlias = "int | str"

Named: TypeAlias = "tuple[str | None, str | None]"
"""An item's text and key."""


@dataclass(eq=False)
class Node:
    """A place in the run's tree: the root, the scope of an opener, or one item of a map."""

    parent: Node | None = None
    joins: list[Join] = field(default_factory=list)
    map: Map | None = None
    index: int = -1

    def up(self) -> Iterator[Node]:
        """This node and all above it."""
        at: Node | None = self
        while at is not None:
            yield at
            at = at.parent


@dataclass(eq=False)
class Envelope:
    """An event on the bus, in order of publication."""

    origin: Origin
    fact: Fact
    hops: int


@dataclass(eq=False, repr=False)
class Thing:
    """Something that counts while it lives."""

    handler: int
    node: Node
    envelope: Envelope
    live: bool = field(default=True, init=False)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {self.envelope.origin} for {self.handler}>"


@dataclass(eq=False, repr=False)
class Delivery(Thing):
    """An envelope, or an item of it, on its way to a handler; or a join that has fired.

    Attributes:
        asked: the question it waits on; failure: why it failed for good, while it waits to be mended.
        wanted: the columns of which its menders have to reach one; menders: these, decided or not.
        mends: the failed delivery that it may mend; hopeful: it has published what reaches; verdict: once decided.
    """

    item: int = -1
    attempt: int = 1
    joined: Contents | None = None
    asked: str | None = None
    failure: Failure | None = None
    wanted: frozenset[Column] = frozenset()
    menders: list[Delivery] = field(default_factory=list)
    mends: Delivery | None = None
    hopeful: bool = False
    verdict: bool | None = None

    @property
    def ident(self) -> Ident:
        """What tells it apart in any bookkeeping."""
        return (self.envelope.origin, self.handler, self.item)


@dataclass(eq=False, repr=False)
class Map(Thing):
    """A map, live while it has items that are not open yet."""

    unopened: list[int] = field(default_factory=list)
    size: int = 0

    @property
    def ident(self) -> tuple[Origin, int]:
        """What tells it apart in any bookkeeping."""
        return (self.envelope.origin, self.handler)


@dataclass(eq=False, repr=False)
class Timer(Thing):
    """An event that will be published later; `handler` is its publisher."""

    fact: Fact


@dataclass(eq=False, repr=False)
class Join(Thing):
    """A join that waits: its own scope, and all that arrived for it; `cut` are items that lost something."""

    scope: Node
    arrived: list[tuple[Spot, Fact]] = field(default_factory=list)
    failures: list[tuple[Spot, Failure]] = field(default_factory=list)
    cut: list[Spot] = field(default_factory=list)
    overdue: bool = False

    @property
    def ident(self) -> Ident:
        """The identity of the delivery that it will become."""
        return (self.envelope.origin, self.handler, -1)


Spot: TypeAlias = "tuple[Map, int] | None"
"""An item of a join, or None outside any item."""


@dataclass(frozen=True)
class Failure:
    """Why something failed: the error's text, and whether it is a failure or just something missing."""

    kind: Literal["failed", "missing"]
    error: str
    key: str | None = None


@dataclass
class Contents:
    """What a firing hands to its handler: serials of facts, and items by their text and key."""

    opener: int
    done: list[int] = field(default_factory=list)
    failed: list[tuple[str | None, str | None, str, tuple[int, ...]]] = field(default_factory=list)
    missing: list[Named] = field(default_factory=list)
    cancelled: list[Named] = field(default_factory=list)


@dataclass
class Step:
    """What one record brought about."""

    delivered: list[Delivery] = field(default_factory=list)
    maps: list[Map] = field(default_factory=list)
    cancelled: list[Thing] = field(default_factory=list)
