"""What those who watch a run are shown: envelopes, what happens to deliveries, and how the run ended."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any

import anyio

from swarmbus.delivery.deliveries import Delivery
from swarmbus.records import Asked, Called, Committed, Failed
from swarmbus.results import Lifecycle
from swarmbus.text import brief

if TYPE_CHECKING:
    from typing import Self

    from swarmbus.delivery.clock import Clock
    from swarmbus.delivery.effects import Effects
    from swarmbus.delivery.home import Home
    from swarmbus.delivery.runs import RunState
    from swarmbus.delivery.topology import Topology
    from swarmbus.records import DeliveryKey, Record

_KINDS: dict[type[Any], str] = {
    Called: "call_recorded",
    Committed: "delivery_committed",
    Failed: "delivery_failed",
    Asked: "question_asked",
}

WATCH_LIMIT = 10_000
"""Items a reader of a run's events may fall behind before the oldest are dropped."""


class Watcher:
    """What one reader of a run's events has yet to read; it never holds up the run."""

    def __init__(self) -> None:
        self._waiting: deque[Any] = deque(maxlen=WATCH_LIMIT)
        self._news: anyio.Event | None = None
        self.closed = False
        self.skipped = 0

    def put(self, item: Any) -> None:
        """Add an item, dropping the oldest where the reader is too far behind."""
        if len(self._waiting) == WATCH_LIMIT:
            self.skipped += 1
        self._waiting.append(item)
        if self._news is not None:
            self._news.set()

    @property
    def exhausted(self) -> bool:
        """The last item was read."""
        return self.closed and not self._waiting

    def close(self, last: Any) -> None:
        """Add the last item."""
        self.put(last)
        self.closed = True

    async def get(self) -> Any:
        """Return the next item, waiting for one.

        Raises:
            RuntimeError: another task waits for it already.
        """
        if self._news is not None:
            raise RuntimeError("another task waits for these events already; let each reader call run.events() itself")
        while not self._waiting:
            self._news = anyio.Event()
            try:
                await self._news.wait()
            finally:
                self._news = None
        return self._waiting.popleft()


class Reading:
    """An iterator over what a watcher is shown, from when it was made; the watcher leaves when it is let go."""

    def __init__(self, watchers: list[Watcher], home: Home) -> None:
        self._home = home
        self._watchers = watchers
        self._watcher = Watcher()
        watchers.append(self._watcher)

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Any:
        self._home.require("the iterator of run.events()")
        if self._watcher.exhausted:
            raise StopAsyncIteration
        return await self._watcher.get()

    def __del__(self) -> None:
        if self._watcher in self._watchers:
            self._watchers.remove(self._watcher)


def tell(topology: Topology, run: RunState, record: Record, effects: Effects) -> None:
    """Show what a record did; of one that came too late to count, nothing."""
    for envelope in effects.published:
        run.tell(envelope)
    for cancelled in effects.cancelled:
        if isinstance(cancelled, Delivery):
            run.tell(_lifecycle("delivery_cancelled", run, cancelled, record.at))
    kind = _KINDS.get(type(record))
    key = getattr(record, "delivery", None)
    if kind is None or key is None or effects.ignored:
        return
    handler = topology.handlers[key[1]]
    item = key[2] if key[2] >= 0 else None
    detail = value = ""
    if isinstance(record, Failed):
        value = _value(run, key) if item is not None else ""
        detail = f"{record.error.type}: {record.error.message}"
        kind = "delivery_failed" if record.retry_at is None else "delivery_retried"
    run.tell(Lifecycle(kind, run.id, record.at, handler.role, handler.name, key[0], item, detail, value))


def tell_start(run: RunState, delivery: Delivery, clock: Clock) -> None:
    """Show that an attempt begins."""
    if run.watchers:
        run.tell(_lifecycle("delivery_started", run, delivery, clock.time()))


def _lifecycle(kind: str, run: RunState, delivery: Delivery, at: float) -> Lifecycle:
    handler, item = delivery.handler, delivery.item if delivery.item >= 0 else None
    return Lifecycle(kind, run.id, at, handler.role, handler.name, delivery.envelope.number, item)


def _value(run: RunState, key: DeliveryKey) -> str:
    """Return in short the item of a delivery that failed, be it for good or to be tried again."""
    delivery = run.ledger.pending.get(key)
    if delivery is not None:
        return brief(delivery.value)
    return next((failure.value for failure in reversed(run.ledger.dead) if failure.item == key[2]), "")


def tell_end(run: RunState, at: float) -> None:
    """Show how the run ended, as the last thing."""
    outcome = run.ledger.outcome
    assert outcome is not None
    last = Lifecycle(f"run_{outcome.status}", run.id, at, detail=outcome.reason)
    for watcher in run.watchers:
        watcher.close(last)
    run.watchers.clear()
