"""What the ledger hands out: deliveries, the cursors over maps, and timers."""

from __future__ import annotations

import dataclasses
import hashlib
from types import NoneType
from typing import TYPE_CHECKING, Any, TypeAlias

from pydantic import BaseModel

from swarmbus.events import to_json
from swarmbus.frozen import FrozenDict

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from swarmbus.delivery.joins import Join
    from swarmbus.delivery.scopes import Node
    from swarmbus.delivery.topology import Handler
    from swarmbus.events import Event
    from swarmbus.records import DeliveryKey, Envelope, Published
    from swarmbus.results import Joined


Mark: TypeAlias = "str | bytes | Event"
"""What is kept of an event to know it again: its key, a digest of it, or itself where equal ones differ in theirs."""


class Early:
    """What a delivery published before it returned, so that a later try can repeat it; no event is kept without need.

    Attributes:
        kinds: the classes of the events; marks: what is kept of each.
    """

    __slots__ = ("kinds", "marks")

    def __init__(self, kinds: Iterable[type[Event]] = (), marks: Iterable[Mark] = ()) -> None:
        self.kinds = list(kinds)
        self.marks = list(marks)

    def add(self, event: Event, key: str | None) -> None:
        """Take note of an event."""
        self.kinds.append(type(event))
        self.marks.append(_mark(event) if key is None else key)

    def take(self, event: Event, key: str | None) -> bool:
        """Take out the first one that this one repeats, by its key where it has one; say whether there was one."""
        mark = _mark(event) if key is None else key
        for place, (kind, other) in enumerate(zip(self.kinds, self.marks, strict=True)):
            if other == mark and (key is not None or kind is type(event)):
                del self.kinds[place], self.marks[place]
                return True
        return False


def _mark(event: Event) -> Mark:
    if all(map(_is_ordered, event.__dict__.values())):
        return hashlib.blake2b(to_json(event), digest_size=16).digest()
    return event


_SCALARS = frozenset({str, int, float, bool, bytes, NoneType})


def _is_ordered(value: Any) -> bool:
    """Whether a value holds nothing that equals what is ordered otherwise: no set, and no map, of several entries."""
    kind = type(value)
    if kind in _SCALARS:
        return True
    if kind is FrozenDict or kind is frozenset:
        return len(value) <= 1 and all(map(_is_ordered, value.values() if kind is FrozenDict else value))
    if issubclass(kind, BaseModel):
        return all(map(_is_ordered, value.__dict__.values()))
    if issubclass(kind, (tuple, frozenset)):
        return (len(value) <= 1 or issubclass(kind, tuple)) and all(map(_is_ordered, value))
    if dataclasses.is_dataclass(value):
        return all(_is_ordered(getattr(value, field.name)) for field in dataclasses.fields(value))
    return True


class Delivery:
    """One envelope, or one item of it, on its way to one handler.

    Attributes:
        key: (envelope number, handler number, item or -1).
        node: where it lives; what it publishes goes into `place()`.
        cursor: the map it is an item of, or None; join: the join whose firing it is, or None.
        attempt: the number of the coming or current try, from 1; lost: how many tries a crash took; cut: how many ended
            with the run, before it went on.
        started: the current try is known to have begun.
        not_before: the earliest time of the coming try, in seconds since the epoch.
        early: what it published before returning, over all tries.
        question: the id of the question it waits on, or None; asked: what it asks.
        answers: those it has, by question id.
        failed: it failed for good and waits to be mended.
        live: it still counts.
    """

    __slots__ = (
        "answers", "asked", "attempt", "cursor", "cut", "early", "envelope", "failed", "handler", "inner", "item",
        "join", "key", "live", "lost", "node", "not_before", "question", "started",
    )  # fmt: skip

    def __init__(self, envelope: Envelope, handler: Handler, node: Node, item: int = -1) -> None:
        self.key: DeliveryKey = (envelope.number, handler.number, item)
        self.envelope = envelope
        self.handler = handler
        self.item = item
        self.node = node
        self.inner: Node | None = None
        self.cursor: MapCursor | None = None
        self.join: Join | None = None
        self.attempt = 1
        self.lost = 0
        self.cut = 0
        self.started = False
        self.not_before = 0.0
        self.early: Early | None = None
        self.question: str | None = None
        self.asked: Mapping[str, Any] | None = None
        self.answers: dict[str, Any] | None = None
        self.failed = False
        self.live = True

    @property
    def value(self) -> Any:
        """The item of a map; None elsewhere."""
        return self.cursor.items[self.item] if self.cursor is not None else None

    @property
    def joined(self) -> Joined[Any] | None:
        """What a join's firing brings; None for other deliveries."""
        return self.join.joined() if self.join is not None else None

    def __repr__(self) -> str:
        item = f"[{self.item}]" if self.item >= 0 else ""
        return f"<Delivery {self.envelope.number} to {self.handler.qualified}{item} attempt {self.attempt}>"


UNOPENED, OPEN, DONE, QUIET = 0, 1, 2, 3


class MapCursor:
    """One event handled once per item; which items are open is pacing and no record.

    Attributes:
        items: the items; marks: for each UNOPENED, OPEN, DONE (it was handled) or QUIET (so was all that followed, even
            if an event from outside wakes it again); left: how many are not done.
        active: how many items are opened and not quiet.
        live: it still counts.
    """

    __slots__ = ("active", "envelope", "handler", "items", "left", "live", "marks", "node", "pending", "upcoming")

    def __init__(
        self,
        envelope: Envelope,
        handler: Handler,
        node: Node,
        items: Sequence[Any],
        pending: dict[DeliveryKey, Delivery],
    ) -> None:
        self.envelope = envelope
        self.handler = handler
        self.node = node
        self.items = items
        self.pending = pending
        self.marks = bytearray(len(items))
        self.left = len(items)
        self.active = 0
        self.upcoming = 0
        self.live = True

    @property
    def unopened(self) -> int:
        """How many items are not open yet; an estimate from above where some were opened out of turn by a rebuild."""
        return len(self.marks) - self.upcoming if self.live else 0

    def open_next(self) -> Delivery | None:
        """Open the next item, or return None where all are open or done."""
        if not self.live:
            return None
        item = self.marks.find(UNOPENED, self.upcoming)
        if item < 0:
            self.upcoming = len(self.marks)
            return None
        self.upcoming = item + 1
        return self.open(item)

    def open(self, item: int) -> Delivery:
        """Open one item that is not open yet."""
        delivery = Delivery(self.envelope, self.handler, self.node, item)
        delivery.cursor = self
        self.marks[item] = OPEN
        self.active += 1
        self.pending[delivery.key] = delivery
        return delivery

    def __repr__(self) -> str:
        return f"<MapCursor {self.envelope.number} to {self.handler.qualified}: {self.left} of {len(self.items)} left>"


class Timer:
    """Something that comes due: an event published with a delay, or a join's deadline.

    Attributes:
        due: seconds since the epoch.
        published: the event to publish, with the delivery that published it; None for a deadline.
    """

    __slots__ = ("columns", "delivery", "due", "join", "node", "number", "published")

    def __init__(self, number: int, due: float) -> None:
        self.number = number
        self.due = due
        self.published: Published | None = None
        self.delivery: Delivery | None = None
        self.node: Node | None = None
        self.columns: tuple[int, ...] = ()
        self.join: Join | None = None

    @property
    def event(self) -> Event | None:
        """The event to publish, if it is not a deadline."""
        return self.published.event if self.published is not None else None
