"""The bus: keeps the ledger of every open run, writes records before their effects show, and carries the effects out."""

from __future__ import annotations

import random
import traceback
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import anyio

from swarmbus.delivery.attempt import Attempt, AttemptPort, Handled
from swarmbus.delivery.codec import Codec
from swarmbus.delivery.deliveries import Delivery
from swarmbus.delivery.ledger import Ledger
from swarmbus.delivery.pacing import Pacer
from swarmbus.delivery.runs import RunState
from swarmbus.delivery.timekeeper import Timekeeper
from swarmbus.errors import RecordError, RoleError
from swarmbus.events import event_name
from swarmbus.records import (
    Answered,
    Asked,
    Called,
    Committed,
    Ended,
    ErrorInfo,
    Failed,
    Fired,
    Started,
    Submitted,
)
from swarmbus.results import Lifecycle

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from anyio.abc import TaskGroup, TaskStatus

    from swarmbus.delivery.clock import Clock
    from swarmbus.delivery.deliveries import Timer
    from swarmbus.delivery.effects import Effects
    from swarmbus.delivery.journal import Journal
    from swarmbus.delivery.topology import Topology
    from swarmbus.delivery.transports.base import Slot, Transport
    from swarmbus.events import Event
    from swarmbus.handlers import Retry
    from swarmbus.records import EndStatus, Record, Routes

MAX_LOST = 3
"""Attempts lost to crashes after which a delivery is given up."""


_KINDS: dict[type[Any], str] = {
    Started: "delivery_started",
    Called: "call_recorded",
    Committed: "delivery_committed",
    Failed: "delivery_failed",
    Asked: "question_asked",
}


@dataclass(frozen=True, slots=True)
class Policy:
    """How one handler's deliveries are tried: the retry and the time limit (seconds) of each attempt."""

    retry: Retry
    timeout: float


class Bus:
    """Keeps runs going.

    Args:
        invoke: calls the handler of an attempt; assembly's half.
        policies: by handler number.
        limits: by role, how many items of one run's maps may be open.
        journal: where records are kept; None keeps none.
        grace: seconds that what is still under way gets when a run ends or the bus stops.
    """

    def __init__(
        self,
        topology: Topology,
        transport: Transport,
        invoke: Callable[[Attempt], Awaitable[Handled]],
        *,
        policies: tuple[Policy, ...],
        limits: dict[str, int],
        clock: Clock,
        journal: Journal | None = None,
        grace: float = 10.0,
    ) -> None:
        self.topology = topology
        self.clock = clock
        self.runs: dict[str, RunState] = {}
        self.grace = grace
        self._transport = transport
        self._invoke = invoke
        self._policies = policies
        self._limits = limits
        self._journal = journal
        self._codec = Codec(topology) if journal is not None else None
        self._timekeeper = Timekeeper(clock)
        self._next_check = float("inf")
        self._group: TaskGroup | None = None
        self._waits_for = _back_pressure(topology)
        self._port = AttemptPort(topology.prepare, self._room, self.write, clock.time, clock.monotonic)

    # --- life

    async def serve(self, *, task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        """Keep time, carry deliveries and close runs, until cancelled."""
        async with anyio.create_task_group() as self._group:
            await self._group.start(lambda *, task_status: self._transport.serve(self._work, task_status=task_status))
            self._group.start_soon(self._timekeeper.serve)
            task_status.started()
            await anyio.sleep_forever()

    async def drain(self) -> None:
        """Start nothing new, let what runs finish within the grace time, and stop the runs that are left."""
        self._transport.pause()
        await self._landing([run for run in self.runs.values() if self._transport.in_flight(run)])
        for run in list(self.runs.values()):
            if run.ledger.ended is None:
                pending = ", ".join(_describe(delivery) for delivery in list(run.ledger.pending.values())[:10])
                await self.write(run, Ended(self.clock.time(), "stopped", f"drained; pending: {pending or 'nothing'}"))
        for run in list(self.runs.values()):
            await run.ended.wait()

    # --- from outside

    async def submit(
        self, run_id: str, event: Event, *, timeout: float | None = None, max_hops: int = 1000, host: Any = None
    ) -> RunState:
        """Open a run with its first event, waiting for room where its receivers are full."""
        routes = self.topology.prepare("client", event)
        await self._room("client", event)
        run = RunState(Ledger(self.topology, run_id), timeout)
        run.host = host
        self.runs[run_id] = run
        if timeout is not None:
            run.deadline = self.clock.monotonic() + timeout
            self._timekeeper.call_at(run.deadline, lambda: self._check_run(run))
        await self.write(run, Submitted(self.clock.time(), event, "client", None, routes, max_hops))
        return run

    async def send(self, run: RunState, event: Event, source: str, cause: int | None) -> None:
        """Bring a further event from outside into a run."""
        routes = self.topology.prepare(source, event)
        await self.write(run, Submitted(self.clock.time(), event, source, cause, routes))

    async def answer(self, run: RunState, question: str, value: Any) -> None:
        """Give a person's answer to an open question."""
        await self.write(run, Answered(self.clock.time(), question, value))

    async def end(self, run: RunState, status: EndStatus, reason: str) -> None:
        """End a run from outside."""
        if run.ledger.ended is None and run.ledger.outcome is None:
            await self.write(run, Ended(self.clock.time(), status, reason))

    async def recorded(self, run_id: str) -> tuple[Event, list[Record]]:
        """Return a run's first event, and all records that the journal holds of it.

        Raises:
            RecordError: there is no journal, no such run in it, or a record can't be read.
        """
        if self._journal is None or self._codec is None:
            raise RecordError("this swarm keeps no journal; give Swarm(journal=...)")
        records = [self._codec.decode(data) for data in await self._journal.read(run_id)]
        if not records or not isinstance(records[0], Submitted):
            known = ", ".join(await self._journal.runs()) or "none"
            raise RecordError(f"the journal has no run {run_id!r}; it has: {known}")
        return records[0].event, records

    async def restore(self, run_id: str, records: list[Record], *, host: Any = None) -> RunState:
        """Rebuild a run from its records and go on with it.

        Raises:
            RecordError: a record does not fit.
        """
        ledger = Ledger(self.topology, run_id)
        run = RunState(ledger)
        run.host = host
        for record in records:
            if isinstance(record, Called):
                run.calls.keep(record)
            ledger.apply(record)
        self.runs[run_id] = run
        self._reopen(run)
        return run

    def limit_seconds(self, run: RunState, seconds: float) -> None:
        """End a run that is still going on after so many seconds."""

        async def over() -> None:
            await self.end(run, "limit", f"seconds: the budget of {seconds:g} s is over")

        self._timekeeper.call_at(self.clock.monotonic() + seconds, over)

    # --- records

    async def write(self, run: RunState, record: Record) -> Effects | None:
        """Keep a record, apply it and carry out what follows; None where it came too late."""
        if self._journal is None or self._codec is None:
            return self._apply(run, record)
        data = self._codec.encode(record)
        effects: Effects | None = None
        with anyio.CancelScope(shield=True):
            async with run.lock:
                if run.ledger.ended is None:
                    await self._journal.append(run.id, data)
                    effects = self._apply(run, record)
        return effects

    def _apply(self, run: RunState, record: Record) -> Effects | None:
        if run.ledger.ended is not None:
            return None
        if type(record) is Called:
            run.calls.keep(record)
        effects = run.ledger.apply(record)
        self._carry_out(run, effects)
        if run.watchers:
            self._tell(run, record, effects)
        return effects

    def _carry_out(self, run: RunState, effects: Effects) -> None:
        for delivery in effects.deliver:
            self._transport.send(run, delivery, first=delivery.answers is not None)
        for cursor in effects.maps:
            self._pacer(run, cursor.handler.role).add(cursor)
        for cursor in effects.ready:
            self._pacer(run, cursor.handler.role).quiet()
        for delivery in effects.retry:
            self._later(run, delivery)
        for timer in effects.timers:
            self._set_alarm(run, timer)
        for gone in effects.cancelled:
            if isinstance(gone, Delivery):
                run.calls.forget(gone.key)
                self._transport.stop(run, gone, "cancelled")
        if effects.decided:
            assert self._group is not None
            self._group.start_soon(self._close, run)
        elif run.ledger.outcome is not None:
            run.landed()
        if run.deadline is not None:
            self._pause_for_people(run)

    def _pacer(self, run: RunState, role: str) -> Pacer:
        pacer = run.pacers.get(role)
        if pacer is None:
            pacer = run.pacers[role] = Pacer(self._limits[role], lambda delivery: self._transport.send(run, delivery))
        return pacer

    def _reopen(self, run: RunState) -> None:
        """Carry out, after a rebuild, what the records left open."""
        ledger = run.ledger
        for delivery in list(ledger.pending.values()):
            if delivery.failed or delivery.question is not None:
                continue
            if delivery.not_before > self.clock.time():
                self._later(run, delivery)
            else:
                self._transport.send(run, delivery)
        for cursor in list(ledger.maps.values()):
            self._pacer(run, cursor.handler.role).add(cursor)
        for timer in list(ledger.timers.values()):
            self._set_alarm(run, timer)
        if ledger.outcome is not None:
            assert self._group is not None
            self._group.start_soon(self._close, run)

    # --- time

    def _later(self, run: RunState, delivery: Delivery) -> None:
        attempt = delivery.attempt

        async def again() -> None:
            if delivery.live and delivery.attempt == attempt:
                self._transport.send(run, delivery)

        self._timekeeper.call_at(self._monotonic_at(delivery.not_before), again)
        self._transport.release(run, delivery)

    def _set_alarm(self, run: RunState, timer: Timer) -> None:
        async def fire() -> None:
            if timer.number in run.ledger.timers:
                await self.write(run, Fired(self.clock.time(), timer.number))

        self._timekeeper.call_at(self._monotonic_at(timer.due), fire)

    def _monotonic_at(self, due: float) -> float:
        return self.clock.monotonic() + max(0.0, due - self.clock.time())

    async def _check_attempts(self) -> None:
        now = self.clock.monotonic()
        self._next_check = float("inf")
        for slot in self._transport.slots():
            if slot.deadline <= now:
                slot.stop("timed_out")
            elif slot.stopped is None:
                self._watch(slot.deadline)

    def _watch(self, deadline: float) -> None:
        if deadline < self._next_check:
            self._next_check = deadline
            self._timekeeper.call_at(deadline, self._check_attempts)

    async def _check_run(self, run: RunState) -> None:
        if run.deadline is None or run.paused_at is not None or run.ledger.outcome is not None:
            return
        now = self.clock.monotonic()
        if now < run.deadline:
            self._timekeeper.call_at(run.deadline, lambda: self._check_run(run))
            return
        busy = [_describe(slot.delivery) for slot in self._transport.slots() if slot.run is run and slot.delivery]
        doing = f"busy: {', '.join(busy)}" if busy else "nothing was under way"
        await self.end(run, "timed_out", f"no result within {run.timeout:g} s; {doing}")

    def _pause_for_people(self, run: RunState) -> None:
        """Stop the run's clock while all that is left of it waits for a person."""
        ledger = run.ledger
        waits = bool(ledger.questions) and len(ledger.questions) == len(ledger.pending) and not ledger.timers
        if waits and run.paused_at is None:
            run.paused_at = self.clock.monotonic()
        elif not waits and run.paused_at is not None and run.deadline is not None:
            run.deadline += self.clock.monotonic() - run.paused_at
            run.paused_at = None
            self._timekeeper.call_at(run.deadline, lambda: self._check_run(run))

    # --- attempts

    async def _room(self, role: str, event: Event) -> None:
        routing = self.topology.routing(role, type(event))
        if routing is None:
            return
        for handler in (*routing.handlers, *routing.opens):
            if handler.role in self._waits_for.get(role, ()):
                await self._transport.room(handler.role)

    async def _work(self, slot: Slot, run: RunState, delivery: Delivery) -> None:
        if run.ledger.ended is not None:
            return
        policy = self._policies[delivery.handler.number]
        if self._journal is not None and not await self._start(run, delivery):
            return
        slot.timeout = policy.timeout
        slot.deadline = self.clock.monotonic() + policy.timeout
        self._watch(slot.deadline)
        attempt = Attempt(self._port, slot, run, delivery, fresh=policy.retry.fresh and delivery.attempt > 1)
        try:
            handled = await self._invoke(attempt)
            if slot.stopped is None:
                await self._commit(attempt, handled)
        except anyio.get_cancelled_exc_class():
            if slot.stopped is None and anyio.current_effective_deadline() == -float("inf"):
                raise
            if slot.stopped is None:
                await self._fail(attempt, RoleError(f"{delivery.handler.qualified} cancelled itself"))
                return
            await self._stopped(attempt)
            raise
        except (KeyboardInterrupt, SystemExit, GeneratorExit):
            raise
        except BaseException as error:  # noqa: BLE001 - the delivery supervisor: whatever a handler raises is recorded
            if slot.stopped is None:
                await self._fail(attempt, error)
        if slot.stopped is not None:
            await self._stopped(attempt)

    async def _start(self, run: RunState, delivery: Delivery) -> bool:
        attempt = delivery.attempt + 1 if delivery.started else delivery.attempt
        await self.write(run, Started(self.clock.time(), delivery.key, attempt))
        if delivery.lost < MAX_LOST:
            return True
        error = ErrorInfo("LostToCrash", f"{delivery.lost} attempts were lost to crashes")
        await self.write(run, Failed(self.clock.time(), delivery.key, delivery.attempt, error))
        return False

    async def _commit(self, attempt: Attempt, handled: Handled) -> None:
        outputs = handled.outputs
        role = attempt.delivery.handler.role
        routes: tuple[Routes | None, ...] | None = None
        if outputs:
            chosen = [self.topology.prepare(role, event) for event in outputs]
            if any(route is not None for route in chosen):
                routes = tuple(chosen)
        delivery, run = attempt.delivery, attempt.run
        await attempt.calls.flush()
        unused = attempt.calls.unused()
        if unused:
            run.ledger.warnings.append(
                f"{unused} recorded calls of {delivery.handler.qualified} were not asked for again"
            )
        record = Committed(self.clock.time(), delivery.key, attempt.number, outputs, routes, handled.changes)
        if await self.write(run, record) is not None:
            run.calls.forget(delivery.key)

    async def _stopped(self, attempt: Attempt) -> None:
        if attempt.slot.stopped == "timed_out":
            with anyio.CancelScope(shield=True):
                await self._fail(attempt, attempt.timed_out())

    async def _fail(self, attempt: Attempt, error: BaseException) -> None:
        delivery, run = attempt.delivery, attempt.run
        retry = self._policies[delivery.handler.number].retry
        tries = attempt.number - delivery.lost
        retry_at: float | None = None
        if isinstance(error, retry.on) and tries < retry.attempts:
            retry_at = self.clock.time() + retry.pause(tries, random.random())  # noqa: S311  # spreads, no secret
        info = ErrorInfo(type(error).__name__, str(error), "".join(traceback.format_exception(error)))
        await self.write(run, Failed(self.clock.time(), delivery.key, attempt.number, info, retry_at, error))
        if retry_at is None:
            run.calls.forget(delivery.key)

    # --- ends

    async def _close(self, run: RunState) -> None:
        """See a run to its end: what is still under way gets the grace time."""
        await self._landing([run])
        ledger = run.ledger
        run.cut = [_describe(delivery) for delivery in ledger.pending.values() if delivery.live]
        outcome = ledger.outcome
        assert outcome is not None
        if ledger.ended is None:
            await self.write(run, Ended(self.clock.time(), outcome.status, outcome.reason))
        self._transport.drop(run)
        await self._landing([run])
        if self._transport.in_flight(run):
            run.cut.append(f"{self._transport.in_flight(run)} handlers did not stop when told")
        if outcome.status != "stopped":
            ledger.warnings += [f"cut when the run ended: {what}" for what in run.cut]
        del self.runs[run.id]
        run.pacers.clear()
        self._tell_end(run)
        run.ended.set()

    async def _landing(self, runs: list[RunState]) -> None:
        """Wait until nothing of these runs is under way or left to do, or the grace time is over."""
        over = anyio.Event()

        async def stop() -> None:
            over.set()
            for run in runs:
                run.landed()

        self._timekeeper.call_at(self.clock.monotonic() + self.grace, stop)
        for run in runs:
            while not over.is_set() and not self._landed(run):
                await run.landing()

    def _landed(self, run: RunState) -> bool:
        quiet = run.ledger.finished or run.ledger.outcome is None
        return quiet and not self._transport.in_flight(run)

    # --- watching

    def _tell(self, run: RunState, record: Record, effects: Effects) -> None:
        for envelope in effects.published:
            run.tell(envelope)
        kind = _KINDS.get(type(record))
        key = getattr(record, "delivery", None)
        if kind is None or key is None:
            return
        handler = self.topology.handlers[key[1]]
        item = key[2] if key[2] >= 0 else None
        detail = ""
        if isinstance(record, Failed):
            detail = f"{record.error.type}: {record.error.message}"
            kind = "delivery_failed" if record.retry_at is None else "delivery_retried"
        run.tell(Lifecycle(kind, run.id, record.at, handler.role, handler.name, key[0], item, detail))

    def _tell_end(self, run: RunState) -> None:
        outcome = run.ledger.outcome
        assert outcome is not None
        last = Lifecycle(f"run_{outcome.status}", run.id, self.clock.time(), detail=outcome.reason)
        for watcher in run.watchers:
            watcher.close(last)
        run.watchers.clear()


def _describe(delivery: Delivery) -> str:
    item = f"[{delivery.item}]" if delivery.item >= 0 else ""
    return f"{delivery.handler.qualified}{item} for {event_name(delivery.envelope.event)} {delivery.envelope.number}"


def _back_pressure(topology: Topology) -> dict[str, frozenset[str]]:
    """Return, for each publisher, the roles it waits for when they are full: those that nothing leads from back to it.

    Waiting only downstream can't deadlock: who waits is never upstream of those it waits for.
    """
    onward: dict[str, set[str]] = {"client": set()}
    for handler in topology.handlers:
        onward.setdefault(handler.role, set())
    for source, target in topology.edges():
        onward.setdefault(source, set()).add(target)
    below = {role: _below(role, onward) for role in onward}
    return {role: frozenset(other for other in below[role] if role not in below.get(other, ())) for role in onward}


def _below(role: str, onward: dict[str, set[str]]) -> set[str]:
    seen: set[str] = set()
    queue = [role]
    while queue:
        fresh = onward.get(queue.pop(), set()) - seen
        seen |= fresh
        queue += fresh
    return seen
