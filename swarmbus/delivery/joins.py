"""One open join: what was contributed, what failed, and what its handler gets when it fires.

When it fires is the ledger's to decide; this module only keeps the contents and names the items.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from swarmbus.results import FailedItem, Joined, MissingItem
from swarmbus.text import brief, text_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from swarmbus.delivery.deliveries import MapCursor
    from swarmbus.delivery.scopes import Node
    from swarmbus.delivery.topology import Handler
    from swarmbus.events import Event
    from swarmbus.records import Envelope
    from swarmbus.results import Failure


@dataclass(frozen=True, slots=True)
class Trouble:
    """Why something did not come about: a failure on its way up the ladder.

    Attributes:
        failure: the first failure, as it is reported.
        event: the event whose handling failed, for the name it gives.
        stalled: nothing raised; something stayed silent.
    """

    failure: Failure
    event: Event
    stalled: bool = False


@dataclass(frozen=True, slots=True)
class Lack:
    """What should have contributed to a join and did not.

    Attributes:
        cursor, index: the map and the item; None and -1 for a key that the opener promised.
        key: the item's key, or the promised one; None where the join names none.
    """

    cursor: MapCursor | None
    index: int
    key: str | None

    @property
    def value(self) -> Any:
        """The item."""
        return self.cursor.items[self.index] if self.cursor is not None else None

    @property
    def source(self) -> str:
        """Which handler was given the item, as `role.method`; nothing for a promised key."""
        return self.cursor.handler.qualified if self.cursor is not None else ""

    def __str__(self) -> str:
        if self.cursor is None:
            return f"the promised key {self.key!r}"
        key = f", key {self.key!r}" if self.key is not None else ""
        return f"item {self.index} ({brief(self.value)}{key})"


class Join:
    """One join, opened by one envelope.

    Attributes:
        handler: the join handler; opener: the envelope that opened it.
        node: where its firing lives, the node the opener was published into; scope: the node the opener opened.
        size: how many items there are so far; count: how many contributions.
        open: it has neither fired nor been closed; fired: what its handler gets does not change any more.
        first_trouble: the failure that was noted first, if any.
    """

    __slots__ = (
        "cancelled", "count", "cursors", "failures", "fired", "first_items", "first_trouble", "firsts", "handler",
        "loose", "loose_failures", "node", "open", "opener", "overdue", "partial", "quorum", "scope", "size", "taken",
    )  # fmt: skip

    def __init__(self, handler: Handler, opener: Envelope, node: Node, scope: Node) -> None:
        self.handler = handler
        self.opener = opener
        self.node = node
        self.scope = scope
        self.partial = handler.wiring.partial
        self.quorum = handler.wiring.quorum
        self.open = True
        self.fired = False
        self.first_trouble: Trouble | None = None
        self.overdue = False
        self.count = 0
        self.size = 0
        self.cursors: list[MapCursor] = []
        self.first_items: dict[MapCursor, int] = {}
        self.firsts: list[int] = []
        self.taken: dict[int, Event | list[Event]] = {}
        self.loose: list[Event] = []
        self.failures: dict[int, Trouble] = {}
        self.loose_failures: list[Trouble] = []
        self.cancelled: set[int] = set()

    @property
    def quiet(self) -> bool:
        """Nothing below the opener still reaches the contribution."""
        return self.handler.column not in self.scope.counts

    @property
    def broken(self) -> bool:
        """A failure it may not fire with was noted."""
        return self.partial == "fail" and self.quorum is None and bool(self.failures or self.loose_failures)

    @property
    def enough(self) -> bool:
        """Its quorum is reached."""
        return self.quorum is not None and self.count >= self.quorum

    @property
    def rank(self) -> tuple[int, int]:
        """Its place among joins to decide: the latest opener, then the lower handler number, is the greatest."""
        return (self.opener.number, -self.handler.number)

    def add_items(self, cursor: MapCursor) -> None:
        """Count the items of a map among its own."""
        self.first_items[cursor] = self.size
        self.firsts.append(self.size)
        self.cursors.append(cursor)
        self.size += len(cursor.items)

    def item_of(self, cursor: MapCursor, index: int) -> int:
        """Return the number of a map's item among the join's items, or -1 for a map that came after it was closed."""
        first = self.first_items.get(cursor, -1)
        return first + index if first >= 0 else -1

    def contribute(self, item: int, event: Event) -> None:
        """Take a contribution of an item, or (-1) from outside any item."""
        self.count += 1
        if item < 0:
            self.loose.append(event)
            return
        held = self.taken.get(item)
        if held is None:
            self.taken[item] = event
        elif isinstance(held, list):
            held.append(event)
        else:
            self.taken[item] = [held, event]

    def note(self, item: int, trouble: Trouble) -> None:
        """Note that a delivery in an item, or (-1) outside any item, failed for good."""
        self.first_trouble = self.first_trouble or trouble
        if item < 0:
            self.loose_failures.append(trouble)
        else:
            self.failures.setdefault(item, trouble)

    def silent_items(self) -> list[int]:
        """Return the items that neither contributed nor failed nor were cancelled."""
        accounted = self.taken.keys() | self.failures.keys() | self.cancelled
        return [] if len(accounted) == self.size else [i for i in range(self.size) if i not in accounted]

    def lacking(self) -> tuple[Lack, ...]:
        """Return what should have contributed and did not: silent items, then promised keys."""
        items = tuple(self._lack(item) for item in self.silent_items())
        promised = self._promised()
        if not promised:
            return items
        named = {self.key_of(event) for event in self._contributions()} | {item.key for item in items}
        named |= {self.key_of(self._value(i), *self._of_item(i), t.event) for i, t in self.failures.items()}
        named |= {self.key_of(trouble.event) for trouble in self.loose_failures}
        named |= {self.key_of(self._value(item)) for item in self.cancelled}
        return items + tuple(Lack(None, -1, key) for key in promised if key not in named)

    def missing(self) -> tuple[MissingItem, ...]:
        """Return the same as the handler gets it."""
        return tuple(MissingItem(lack.value, lack.key) for lack in self.lacking())

    def joined(self) -> Joined[Any]:
        """Return what the handler gets."""
        done: list[Event] = []
        for item in sorted(self.taken):
            if item not in self.failures:
                done += self._of_item(item)
        failed = [
            FailedItem(
                self._value(item),
                self.key_of(self._value(item), *self._of_item(item), trouble.event),
                trouble.failure,
                tuple(self._of_item(item)),
            )
            for item, trouble in sorted(self.failures.items())
        ]
        failed += [FailedItem(None, self.key_of(trouble.event), trouble.failure, ()) for trouble in self.loose_failures]
        cut = sorted(self.cancelled - self.taken.keys() - self.failures.keys())
        return Joined(
            done=(*done, *self.loose),
            failed=tuple(failed),
            missing=self.missing(),
            cancelled=tuple(MissingItem(lack.value, lack.key) for lack in map(self._lack, cut)),
        )

    def _of_item(self, item: int) -> list[Event]:
        held = self.taken.get(item)
        if held is None:
            return []
        return held if isinstance(held, list) else [held]

    def _contributions(self) -> Iterator[Event]:
        for item in self.taken:
            yield from self._of_item(item)
        yield from self.loose

    def _value(self, item: int) -> Any:
        place = bisect_right(self.firsts, item) - 1
        return self.cursors[place].items[item - self.firsts[place]]

    def _lack(self, item: int) -> Lack:
        place = bisect_right(self.firsts, item) - 1
        return Lack(self.cursors[place], item - self.firsts[place], self.key_of(self._value(item)))

    def key_of(self, *sources: Any) -> str | None:
        """Return the key that the first source with a field of that name carries; None where the join names none."""
        field = self.handler.wiring.key
        if field is None:
            return None
        for source in sources:
            key = getattr(source, field, None)
            if key is not None:
                return text_of(key)
        return None

    def _promised(self) -> tuple[str, ...]:
        expect = self.handler.wiring.expect
        if expect is None:
            return ()
        keys = getattr(self.opener.event, expect) if isinstance(expect, str) else expect(self.opener.event)
        return tuple(text_of(key) for key in keys)

    def __repr__(self) -> str:
        state = "open" if self.open else "closed"
        return f"<Join {self.opener.number} for {self.handler.qualified}: {state}, {self.count} of {self.size}>"
