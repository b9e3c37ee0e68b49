"""The ledger and the naive model side by side: both are told the same, and all that can be seen of them is compared."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ledger_model.naive import NaiveRun
from ledger_model.program import Program
from ledger_model.translate import roles_of, serial_of, table_of
from ledger_model.tree import Contents, Delivery, Ident, Join, Map, Origin, Thing, Timer
from swarmbus.delivery.effects import Effects
from swarmbus.delivery.ledger import Ledger
from swarmbus.delivery.topology import Topology
from swarmbus.events import HandlerFailed
from swarmbus.records import DeliveryKey, Envelope, Record


class Difference(AssertionError):
    """The ledger and the naive model do not agree."""


@dataclass(frozen=True, slots=True)
class Engine:
    """The ledger that is driven: the real one, or a copy with a bug planted in it, whose classes are its own."""

    ledger: Callable[..., Any] = Ledger
    topology: Callable[..., Any] = Topology


REAL = Engine()


class Pair:
    """One program on both. What the ledger numbers is matched by what it is: serials of facts, handlers, items.

    Attributes:
        told: each record in words; keys, cursors, timers: the ledger's side of deliveries, maps and delayed events.
        effects: what the ledger said to the last record.
    """

    def __init__(self, program: Program, engine: Engine) -> None:
        self.program = program
        self.topology = engine.topology(roles_of(program), table_of(program))
        assert [one.name for one in self.topology.handlers] == [one.name for one in program.handlers]
        self.ledger = engine.ledger(self.topology, "run")
        self.naive = NaiveRun(program)
        self.told: list[str] = []
        self.effects = Effects()
        self.keys: dict[Ident, DeliveryKey] = {}
        self.cursors: dict[tuple[Origin, int], Any] = {}
        self.timers: dict[int, Timer] = {}
        self._origins: dict[int, Origin] = {}
        self._fired: Counter[Ident] = Counter()

    def tell(self, text: str, record: Record, naive: Callable[[], object], failed: Delivery | None = None) -> None:
        """Tell both, and compare; `failed` is the delivery whose failing the record is about.

        Raises:
            Difference: they do not agree.
        """
        self.told.append(text)
        before = set(self.naive.living())
        self.effects = self.ledger.apply(record)
        naive()
        for envelope in self.effects.published:
            if isinstance(envelope.event, HandlerFailed):
                assert failed is not None
                self._origins[envelope.number] = ("failed", failed.ident)
            else:
                self._origins[envelope.number] = serial_of(envelope.event)
        delayed = [timer for timer in self.naive.living() if isinstance(timer, Timer) and timer not in before]
        self.timers.update((one.number, timer) for one, timer in zip(self.effects.timers, delayed, strict=False))
        self._compare_effects(before)
        self._compare_state()

    def open_next(self, cursor: Map) -> None:
        """Open the next item of a map on both."""
        actual = self.cursors[cursor.ident].open_next()
        expected = self.naive.open(cursor)
        self.told.append(f"{expected.ident} opened")
        self.same("opened", expected.ident, actual and self._ident(actual))
        self.same("item", cursor.envelope.fact.items[expected.item], actual.value)
        self.keys[expected.ident] = actual.key

    def envelope_number(self, serial: int) -> int:
        """The number that the ledger gave to the event with this serial."""
        return next(number for number, origin in self._origins.items() if origin == serial)

    def deadline_of(self, join: Join) -> int:
        """The number of the ledger's timer for the deadline of an open join."""
        timers: dict[int, Any] = self.ledger.timers
        deadlines = {number: timer.join for number, timer in timers.items() if timer.join is not None}
        return next(number for number, opened in deadlines.items() if self._opened(opened) == join.ident)

    def compare_end(self) -> None:
        """Compare what can only be said when all is over: no join has fired twice."""
        self.same("firings", {}, {ident: times for ident, times in self._fired.items() if times > 1})

    def _compare_effects(self, before: set[Thing]) -> None:
        step, effects = self.naive.step, self.effects
        cancelled = {self._name_of(one) for one in effects.cancelled}
        delivered = [one for one in effects.deliver if self._ident(one) not in cancelled]
        self.same(
            "delivered",
            Counter(one.ident for one in step.delivered if one.live),
            Counter(map(self._ident, delivered)),
        )
        for one in effects.deliver:
            ident = self._ident(one)
            if one.joined is not None and ident not in self.keys:
                self._fired[ident] += 1
            self.keys.setdefault(ident, one.key)
        maps = {(self._origin(one.envelope), one.handler.number): one for one in effects.maps}
        self.cursors.update(maps)
        self.same(
            "new maps",
            {one.ident for one in step.maps if one.live},
            {ident for ident in maps if ("map", *ident) not in cancelled},
        )
        known = {_name(one) for one in before if not isinstance(one, Join)}
        self.same("cancelled", {_name(one) for one in step.cancelled} & known, cancelled & known)

    def _compare_state(self) -> None:
        naive, ledger = self.naive, self.ledger
        live = {one.ident for one in naive.deliveries()}
        self.same("live deliveries", live, set(map(self._ident, ledger.pending.values())))
        opened = {self._opened(one) for one in ledger.joins.values() if one.open}
        self.same("open joins", {one.ident for one in naive.joins()}, opened)
        delayed = {self.timers[number] for number, timer in ledger.timers.items() if timer.join is None}
        self.same("timers", {one for one in naive.living() if isinstance(one, Timer)}, delayed)
        for one in naive.deliveries():
            actual = self._contents(ledger.pending[self.keys[one.ident]])
            self.same(f"contents of {one.ident}", one.joined, actual)
        self.same("outcome", naive.outcome, ledger.outcome and ledger.outcome.status)
        self.same("finished", naive.finished, ledger.finished)
        failure = ledger.outcome and ledger.outcome.failure
        self.same("what ended it", naive.cause, failure and _error(failure))
        self.same("given up", naive.dead, list(map(_error, ledger.dead)))
        self.same("mended", naive.mended, list(map(_error, ledger.mended)))
        self.same("number of warnings", naive.warnings, len(ledger.warnings))

    def _contents(self, delivery: Any) -> Contents | None:
        joined = delivery.joined
        if joined is None:
            return None
        return Contents(
            opener=serial_of(delivery.envelope.event),
            done=list(map(serial_of, joined.done)),
            failed=[(one.item, one.key, _error(one.error), tuple(map(serial_of, one.done))) for one in joined.failed],
            missing=[(one.item, one.key) for one in joined.missing],
            cancelled=[(one.item, one.key) for one in joined.cancelled],
        )

    def _origin(self, envelope: Envelope) -> Origin:
        return self._origins[envelope.number]

    def _ident(self, delivery: Any) -> Ident:
        return (self._origin(delivery.envelope), delivery.handler.number, delivery.item)

    def _opened(self, join: Any) -> Ident:
        return (self._origin(join.opener), join.handler.number, -1)

    def _name_of(self, thing: Any) -> object:
        """Name what the ledger cancelled as `_name` does; its classes may be those of a copy."""
        if hasattr(thing, "item"):
            return self._ident(thing)
        if hasattr(thing, "items"):
            return ("map", self._origin(thing.envelope), thing.handler.number)
        return ("timer", self.timers.get(thing.number))

    def same(self, what: str, expected: object, actual: object) -> None:
        """Compare one thing.

        Raises:
            Difference: with the program and all that was told.
        """
        if expected == actual:
            return
        handlers = (f"{number}: {one}" for number, one in enumerate(self.program.handlers))
        story = "\n  ".join((f"result {self.program.result}", *handlers, *map(str, self.program.rows), *self.told))
        raise Difference(f"{what}: expected {expected}, got {actual}\n  {story}")


def _name(thing: Thing) -> object:
    if isinstance(thing, Delivery):
        return thing.ident
    return ("map", *thing.ident) if isinstance(thing, Map) else ("timer", thing)


def _error(failure: Any) -> str:
    """A failure's own words where it had some; that something is merely missing is told in the ledger's."""
    return " ".join(re.findall(r"boom \d+", failure.message)) or "missing"
