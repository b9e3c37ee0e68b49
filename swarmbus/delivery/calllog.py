"""The recorded calls of one run's live deliveries, and the port through which one attempt asks for them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from swarmbus.once import Effect
from swarmbus.records import Called, Committed, Failed

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from swarmbus.calls import CallKind, CallRecord
    from swarmbus.records import DeliveryKey, Record

    Kept = dict[tuple[CallKind, str], list[CallRecord]]

_REPLIES: frozenset[CallKind] = frozenset({"model", "tool"})


class RunCalls:
    """What the deliveries of a run have asked of the outside, until each is handled.

    Args:
        fresh: the numbers of the handlers whose further attempts forget what models and tools told the failed ones.
    """

    def __init__(self, fresh: frozenset[int]) -> None:
        self._fresh = fresh
        self._kept: dict[DeliveryKey, Kept] = {}
        self._effects: dict[DeliveryKey, dict[str, Effect]] = {}

    def follow(self, record: Record) -> None:
        """Keep the call that a record brings, or drop those that it makes useless."""
        if not (self._kept or self._effects or type(record) is Called):
            return
        if isinstance(record, Called):
            kept = self._kept.setdefault(record.delivery, {})
            kept.setdefault((record.call.kind, record.call.key), []).append(record.call)
        elif isinstance(record, Committed) or (isinstance(record, Failed) and record.retry_at is None):
            self.forget(record.delivery)
        elif isinstance(record, Failed) and record.delivery[1] in self._fresh:
            kept = self.of(record.delivery)
            for place in [place for place in kept if place[0] in _REPLIES]:
                del kept[place]

    def of(self, delivery: DeliveryKey) -> Kept:
        """Return the calls of one delivery."""
        return self._kept.get(delivery, {})

    def forget(self, delivery: DeliveryKey) -> None:
        """Drop the calls of a delivery that was handled or cancelled."""
        self._kept.pop(delivery, None)
        self._effects.pop(delivery, None)

    def effect(self, delivery: DeliveryKey, key: str) -> Effect:
        """Return what all attempts at a delivery know of one of its effects."""
        return self._effects.setdefault(delivery, {}).setdefault(key, Effect())


class AttemptCalls:
    """The call log of one attempt: the n-th question for a key is answered with the n-th record under it.

    Args:
        run: the calls of the run.
        require: refuses a call that comes too late, or from another thread.
    """

    def __init__(
        self,
        delivery: DeliveryKey,
        run: RunCalls,
        time: Callable[[], float],
        write: Callable[[Called], Awaitable[None]],
        require: Callable[[str], None],
    ) -> None:
        self._delivery = delivery
        self._run = run
        self._kept = {key: tuple(calls) for key, calls in run.of(delivery).items()}
        self._asked: dict[tuple[CallKind, str], int] = {}
        self._noted: list[CallRecord] = []
        self._time = time
        self._write = write
        self._require = require

    def find(self, kind: CallKind, key: str) -> CallRecord | None:
        """Return the record for the next occurrence of this key, or None."""
        place = (kind, key)
        calls = self._kept.get(place)
        if calls is None:
            return None
        asked = self._asked.get(place, 0)
        if asked == len(calls):
            return None
        self._asked[place] = asked + 1
        return calls[asked]

    async def recorded(self, kind: CallKind, key: str) -> CallRecord | None:
        """Return the record for the next occurrence of this key, or None where the call has yet to be made."""
        self._require("what a handler awaits of its context")
        if self._noted:
            await self.flush()
        return self.find(kind, key)

    def effect(self, key: str) -> Effect:
        """Return what all attempts at the delivery know of the effect under this key."""
        self._require("ctx.once()")
        return self._run.effect(self._delivery, key)

    def note(self, call: CallRecord) -> None:
        """Keep a value, such as a clock reading, before anything that could depend on it becomes visible."""
        self._noted.append(call)

    async def flush(self) -> None:
        """Write what was noted."""
        noted, self._noted = self._noted, []
        for call in noted:
            await self.record(call)

    async def record(self, call: CallRecord) -> None:
        """Keep a successful call."""
        await self._write(Called(self._time(), self._delivery, call))

    def unused(self) -> int:
        """Return how many recorded calls the attempt did not ask for."""
        return sum(len(calls) - self._asked.get(place, 0) for place, calls in self._kept.items())
