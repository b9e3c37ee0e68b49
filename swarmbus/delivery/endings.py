"""How runs end in time: the grace for what is still under way, time limits of runs, and draining."""

from __future__ import annotations

import math
from collections import Counter
from typing import TYPE_CHECKING, Any

import anyio

from swarmbus.delivery.effects import Outcome
from swarmbus.delivery.watching import tell_end
from swarmbus.events import event_name
from swarmbus.records import Ended
from swarmbus.text import brief

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from swarmbus.delivery.clock import Clock
    from swarmbus.delivery.deliveries import Delivery
    from swarmbus.delivery.ledger import Ledger
    from swarmbus.delivery.runs import RunState
    from swarmbus.delivery.timekeeper import Timekeeper
    from swarmbus.delivery.transports.base import Slot, Transport
    from swarmbus.records import EndStatus, Record

UNWINDING = 2.0
"""Seconds at most that what is under way gets to stop when told, once the grace of a drain is over."""
MOST = 10
"""Deliveries that a message names."""


class Endings:
    """Sees runs to their end.

    Args:
        runs: the open runs, by id; a run that has ended is taken out.
        watch: has the attempts looked at once the clock's monotonic seconds have come to this.
        grace: seconds that what is still under way gets.

    Attributes:
        closed: no further run may begin.
        abandoned: what those are told who wait for a run when the bus ends undrained.
    """

    def __init__(
        self,
        runs: dict[str, RunState],
        write: Callable[[RunState, Record], Awaitable[Any]],
        *,
        watch: Callable[[float], None],
        clock: Clock,
        timekeeper: Timekeeper,
        transport: Transport,
        grace: float,
    ) -> None:
        self._runs = runs
        self._write = write
        self._watch_attempts = watch
        self._clock = clock
        self._timekeeper = timekeeper
        self._transport = transport
        self._grace = grace
        self.closed = False
        self.abandoned = "the swarm ended without being drained"

    async def end(self, run: RunState, status: EndStatus, reason: str) -> None:
        """End a run from outside, unless its end is decided already."""
        if run.ledger.ended is None and run.ledger.outcome is None:
            await self._write(run, Ended(self._clock.time(), status, reason))

    async def close(self, run: RunState) -> None:
        """See a run to its end: what is still under way gets the grace time."""
        ledger = run.ledger
        if ledger.ended is not None:
            drained = ledger.ended.status == "stopped"
            self._transport.drop(run, self.stop_by(UNWINDING if drained else math.inf))
        await self._landing([run])
        run.cut = [describe(delivery) for delivery in ledger.pending.values() if delivery.live]
        outcome = ledger.outcome
        assert outcome is not None
        if ledger.ended is None:
            await self._write(run, Ended(self._clock.time(), outcome.status, outcome.reason))
        self._transport.drop(run, self.stop_by())
        await self._landing([run])
        if outcome.status != "stopped":
            ledger.warnings += [f"cut when the run ended: {what}" for what in run.cut]
        ledger.warnings += run.blocked.warnings()
        if run.host is not None:
            ledger.warnings += await run.host.close(self._grace)
        self._let_go(run)

    def stop_by(self, most: float = math.inf) -> float:
        """Return when what is told to stop now is given up: after the grace, or `most` seconds where that is less."""
        by = self._clock.monotonic() + min(self._grace, most)
        self._watch_attempts(by)
        return by

    async def drain(self) -> None:
        """Start nothing new, let what runs finish within the grace time, and stop the runs that are left."""
        self.closed = True
        self._transport.pause()
        await self._landing([run for run in self._runs.values() if run.flights])
        for run in list(self._runs.values()):
            if run.ledger.ended is None:
                now = self._clock.time()
                pending = ", ".join(_left_to_do(run.ledger, now)[:MOST]) or "nothing"
                await self._write(run, Ended(now, "stopped", f"drained; pending: {pending}"))
        for run in list(self._runs.values()):
            await run.ended.wait()

    def abandon(self) -> None:
        """Let go of all runs without a record, as the bus ends undrained, and tell those who wait for them."""
        self.closed = True
        for run in list(self._runs.values()):
            if run.ledger.outcome is None:
                run.ledger.outcome = Outcome("stopped", reason=self.abandoned)
            self._transport.drop(run, self._clock.monotonic())  # who waits for room need not wait any longer
            self._let_go(run)

    def _let_go(self, run: RunState) -> None:
        del self._runs[run.id]
        for alarm in run.alarms:
            alarm.cancel()
        run.pacers.clear()
        tell_end(run, self._clock.time())
        run.ended.set()

    def limit_seconds(self, run: RunState, seconds: float) -> None:
        """End a run that is still going on after so many seconds."""
        run.budget, run.budget_over = seconds, self._clock.monotonic() + seconds
        run.keep(self._timekeeper.call_at(run.budget_over, lambda: self.check_time(run)))

    def limit_time(self, run: RunState, seconds: float) -> None:
        """End a run that has no result within so many seconds, while all of it waits for a person not counted."""
        run.deadline = self._clock.monotonic() + seconds
        self._watch(run)

    def pause_for_people(self, run: RunState) -> None:
        """Stop the run's clock while all that is left of it waits for a person."""
        if run.pause_for_people(self._clock.monotonic()):
            self._watch(run)

    def _watch(self, run: RunState) -> None:
        run.keep(self._timekeeper.call_at(run.deadline, lambda: self.check_time(run)))

    async def check_time(self, run: RunState) -> None:
        """End a run whose time is over, naming what was busy."""
        now = self._clock.monotonic()
        if now >= run.budget_over and run.budget_over <= run.deadline:
            await self.end(run, "limit", f"seconds: the budget of {run.budget:g} s is over")
        elif now >= run.deadline:
            await self.end(run, "timed_out", f"no result within {run.timeout:g} s; {self._busy(run, now)}")

    def under_way(self, run: RunState) -> dict[str, int]:
        """Return how many deliveries of a run each handler is at work on, by the handler's name."""
        slots = [slot for slot in self._transport.slots() if slot.run is run]
        return dict(Counter(slot.delivery.handler.qualified for slot in slots if slot.delivery is not None))

    def _busy(self, run: RunState, now: float) -> str:
        if busy := [_occupied(slot, now) for slot in self._transport.slots() if slot.run is run]:
            return f"busy: {', '.join(busy)}"
        return self._held_up(run, now) or "nothing was under way"

    def _held_up(self, run: RunState, now: float) -> str:
        """Say which attempts of other runs take up the roles that have yet to begin with what waits for them."""
        ledger = run.ledger
        roles = {delivery.handler.role for delivery in ledger.pending.values()}
        roles |= {cursor.handler.role for cursor in ledger.maps.values()}
        others = [
            f"{_occupied(slot, now)} of run {slot.run.id}"
            for slot in self._transport.slots()
            if slot.run is not None and slot.delivery is not None and slot.delivery.handler.role in roles
        ]
        return (
            f"nothing was under way, for other runs kept its roles busy: {', '.join(others[:MOST])}" if others else ""
        )

    async def _landing(self, runs: list[RunState]) -> None:
        """Wait until nothing of these runs is under way or left to do, or the grace time is over."""
        over = anyio.Event()

        async def stop() -> None:
            over.set()
            for run in runs:
                run.landed()

        if all(self._landed(run) for run in runs):
            return
        alarm = self._timekeeper.call_at(self._clock.monotonic() + self._grace, stop)
        for run in runs:
            while not over.is_set() and not self._landed(run):
                await run.landing()
        alarm.cancel()

    def _landed(self, run: RunState) -> bool:
        quiet = run.ledger.finished or run.ledger.outcome is None
        return quiet and not run.flights


def _occupied(slot: Slot, now: float) -> str:
    assert slot.delivery is not None
    stopped = ", and was told to stop" if slot.stopped is not None else ""
    trouble = f", and tries a model call again that failed: {slot.trouble}" if slot.trouble else ""
    return f"{describe(slot.delivery)} (for {now - slot.since:.0f} s{stopped}{trouble})"


def _left_to_do(ledger: Ledger, now: float) -> list[str]:
    """Name what a run has yet to do: its deliveries, then what is set for a time."""
    return [describe(delivery) for delivery in ledger.pending.values()] + [
        f"{event_name(timer.event) if timer.event else 'the deadline of a join'} in {max(0.0, timer.due - now):.0f} s"
        for timer in ledger.timers.values()
    ]


def describe(delivery: Delivery) -> str:
    """Name a delivery for a person."""
    item = f" item {delivery.item} ({brief(delivery.value)})" if delivery.item >= 0 else ""
    return f"{delivery.handler.qualified}{item} for {event_name(delivery.envelope.event)} {delivery.envelope.number}"
