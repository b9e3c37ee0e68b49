"""The bus: keeps the ledger of every open run, writes records before their effects show, and carries them out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import anyio

from swarmbus.delivery.attempt import Attempt, AttemptPort, Handled
from swarmbus.delivery.codec import Codec
from swarmbus.delivery.deliveries import Delivery, MapCursor
from swarmbus.delivery.endings import Endings
from swarmbus.delivery.home import Home
from swarmbus.delivery.ledger import Ledger
from swarmbus.delivery.pacing import Pacer
from swarmbus.delivery.pressure import Pressure
from swarmbus.delivery.rebuilding import in_order, rebuild
from swarmbus.delivery.reopening import NOT_FINAL
from swarmbus.delivery.runs import RunState
from swarmbus.delivery.stalling import outside_lacks
from swarmbus.delivery.supervisor import Policy, Supervisor
from swarmbus.delivery.timekeeper import Timekeeper
from swarmbus.delivery.watching import tell
from swarmbus.errors import PublishError, RecordError, RoleError, SubmitError
from swarmbus.events import event_name
from swarmbus.records import Answered, Called, Ended, Fired, Submitted
from swarmbus.text import error_text

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from anyio.abc import TaskGroup, TaskStatus

    from swarmbus.delivery.clock import Clock
    from swarmbus.delivery.deliveries import Timer
    from swarmbus.delivery.effects import Effects
    from swarmbus.delivery.journal import Journal
    from swarmbus.delivery.topology import Topology
    from swarmbus.delivery.transports.base import Transport
    from swarmbus.events import Event
    from swarmbus.records import Record


PATIENCE = 2.0
"""Seconds, or the grace where that is more, that the journal gets to take a run's last record."""


class Bus:
    """Keeps runs going.

    Args:
        invoke: calls the handler of an attempt; assembly's half.
        policies: by handler number.
        limits: by role, how many items of one run's maps may be open.
        journal: where records are kept; None keeps none.
        around: what is cancelled when something breaks the bus: the block of whoever opened it.
        attended: whether somebody can answer a person's questions and send events; else runs stop where they wait.
        grace: seconds that what is still under way gets when a run ends or the bus stops.

    Attributes:
        home: the thread that everything here goes on in; who calls from outside asks it first.
        room: waits until the roles that an event goes to have room.
        broken: what ended the bus from within, for whoever opened it to raise; else None.
    """

    def __init__(
        self,
        topology: Topology,
        transport: Transport,
        invoke: Callable[[Attempt], Coroutine[Any, Any, Handled]],
        *,
        policies: tuple[Policy, ...],
        limits: dict[str, int],
        clock: Clock,
        journal: Journal | None = None,
        around: anyio.CancelScope | None = None,
        attended: bool = True,
        grace: float = 10.0,
    ) -> None:
        self.topology = topology
        self.clock = clock
        self.home = Home()
        self.runs: dict[str, RunState] = {}
        self.broken: BaseException | None = None
        self._transport = transport
        self._limits = limits
        self._journal = journal
        self._around = around
        self._attended = attended
        self._patience = max(grace, PATIENCE)
        self._codec = Codec(topology) if journal is not None else None
        self._timekeeper = Timekeeper(clock)
        self._group: TaskGroup | None = None
        pressure = Pressure(topology, transport)
        self.room = pressure.room
        self._fresh = frozenset(number for number, policy in enumerate(policies) if policy.retry.fresh)
        shared: Any = {"clock": clock, "timekeeper": self._timekeeper, "transport": transport}
        port = AttemptPort(topology.prepare, pressure, self.write, clock=clock, home=self.home, grace=grace)
        durable = journal is not None
        self._supervisor = Supervisor(port, invoke, policies, give_up=self.give_up, durable=durable, **shared)
        self.endings = Endings(self.runs, self.write, watch=self._supervisor.watch, grace=grace, **shared)

    # --- life

    async def serve(self, *, task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        """Keep time, carry deliveries and close runs, until cancelled, or until something breaks the bus."""
        try:
            async with anyio.create_task_group() as group:
                self._group = group
                await group.start(self._transport.serve, self._supervisor.work)
                group.start_soon(self._timekeeper.serve)
                task_status.started()
                try:
                    await anyio.sleep_forever()
                finally:
                    self._group = None
        except BaseExceptionGroup as errors:
            error = _first(errors)
            self.give_up(error, f"the swarm broke: {error_text(error)}")
        finally:
            self.endings.abandon()

    def give_up(self, error: BaseException, reason: str) -> None:
        """Start nothing more and end at once, without a record, as in a crash: all runs can be resumed."""
        if self.broken is None:
            self.broken = error
            self.endings.abandoned = reason
        self._transport.pause()
        if self._around is not None:  # before those who wait for a run are told, so that the error is what is raised
            self._around.cancel()
        if self._group is not None:
            self._group.cancel_scope.cancel()

    # --- from outside

    async def submit(
        self, run_id: str, event: Event, *, timeout: float | None = None, max_hops: int = 1000, host: Any = None
    ) -> RunState:
        """Open a run with its first event, waiting for room where its receivers are full.

        Raises:
            SubmitError: the bus has been drained, or ended without.
        """
        routes = self.topology.prepare("client", event)
        await self.room(None, "client", event)
        if self.endings.closed:
            raise SubmitError("the swarm was closed; open it again for further runs")
        run = RunState(Ledger(self.topology, run_id), timeout, fresh=self._fresh)
        run.host = host
        self.runs[run_id] = run
        if timeout is not None:
            self.endings.limit_time(run, timeout)
        await self.write(run, Submitted(self.clock.time(), event, "client", None, routes, max_hops, timeout))
        if run.lost is not None:
            raise SubmitError(f"run {run_id} did not start, for its journal can't be written: {run.lost}") from run.lost
        return run

    async def send(self, run: RunState, event: Event, source: str, cause: int | None) -> Effects | None:
        """Bring a further event from outside into a run; None where the run is over."""
        routes = self.topology.prepare(source, event)
        return await self.write(run, Submitted(self.clock.time(), event, source, cause, routes))

    async def answer(self, run: RunState, question: str, value: Any) -> Effects | None:
        """Give a person's answer to an open question; None where the run is over."""
        return await self.write(run, Answered(self.clock.time(), question, value))

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
        return records[0].event, in_order(records)

    async def keeps(self, run_id: str) -> bool:
        """Whether the journal holds records of a run."""
        return self._journal is not None and bool(await self._journal.read(run_id))

    async def restore(self, run_id: str, records: list[Record], *, reopen: bool = False, host: Any = None) -> RunState:
        """Rebuild a run from its records and go on with it; with `reopen` also where it failed or reached a limit.

        Raises:
            RecordError: a record does not fit.
        """
        run = RunState(Ledger(self.topology, run_id), fresh=self._fresh)
        run.host = host
        left = rebuild(run, records, reopen=reopen)
        self.runs[run_id] = run
        if left is not None:
            self.endings.limit_time(run, left)
        self._reopen(run)
        return run

    # --- records

    async def write(self, run: RunState, record: Record) -> Effects | None:
        """Keep a record, apply it and carry out what follows; None where it came too late.

        A record that comes after the run's time is over, for who brings it had blocked the event loop, is too late. A
        call that outlasted the run is kept all the same, for when the run is resumed.
        """
        now = self.clock.monotonic()
        if (now > run.deadline or now > run.budget_over) and not isinstance(record, Submitted | Ended):
            await self.endings.check_time(run)
        if self._journal is None or self._codec is None:
            return self._apply(run, record)
        data = self._codec.encode(record)
        try:
            with anyio.CancelScope(shield=True) as scope:
                if isinstance(record, Ended) or run.ledger.ended is not None:
                    scope.deadline = anyio.current_time() + self._patience  # for a journal that does not answer
                async with run.lock:
                    if run.ledger.ended is not None and not _outlasted(run, record):
                        return None
                    run.writing = scope
                    await self._journal.append(run.id, data)
                    return self._apply(run, record)
        except (OSError, RecordError) as error:
            return self._lose(run, record, error)
        except anyio.get_cancelled_exc_class():  # not by us, for it is shielded: the journal's own, or a handler's
            return self._lose(run, record, TimeoutError("its writing was cancelled from outside"))
        return self._lose(run, record, TimeoutError(f"it did not answer within {self._patience:g} s"))

    def _lose(self, run: RunState, record: Record, error: Exception) -> Effects | None:
        """End a run whose record could not be kept: in memory alone, so that it can be resumed."""
        kind = type(record).__name__.lower()
        reason = f"its journal could not keep a `{kind}` record: {error_text(error)}"
        if run.writing is not None:
            run.writing.cancel()
        if run.ledger.ended is not None:
            return None
        run.lost = error
        if isinstance(record, Ended):
            run.ledger.warnings.append(reason)
            return self._apply(run, record)
        self._apply(run, Ended(self.clock.time(), "failed", reason))
        return None

    def _apply(self, run: RunState, record: Record) -> Effects | None:
        if run.ledger.ended is not None:
            return None
        effects = run.ledger.apply(record)
        if not effects.ignored:
            run.calls.follow(record)
        self._carry_out(run, effects)
        if not self._attended and (run.ledger.questions or run.ledger.quiet):
            self._stop_waiting(run)
        if run.watchers:
            tell(self.topology, run, record, effects)
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
        if effects.cancelled:
            self._take_back(run, effects)
        if effects.decided:
            self._close(run)
        elif run.ledger.outcome is not None:
            run.landed()
        if run.timeout is not None:
            self.endings.pause_for_people(run)

    def _stop_waiting(self, run: RunState) -> None:
        """Stop a run that nothing within can bring on."""
        ledger = run.ledger
        if self._group is None or ledger.outcome is not None:
            return
        if ledger.waiting or run.waits_for_people:
            self._group.start_soon(self.endings.end, run, "stopped", outside_lacks(run.ledger))

    def _take_back(self, run: RunState, effects: Effects) -> None:
        by = self.endings.stop_by()
        for gone in effects.cancelled:
            if isinstance(gone, Delivery):
                run.calls.forget(gone.key)
                self._transport.stop(run, gone, "cancelled", by)
            elif isinstance(gone, MapCursor):
                self._pacer(run, gone.handler.role).dropped()

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
            self._close(run)
        elif not self._attended:
            self._stop_waiting(run)

    def _close(self, run: RunState) -> None:
        if self._group is not None:  # else the bus is ending, and lets go of its runs itself
            self._group.start_soon(self.endings.close, run)

    def _later(self, run: RunState, delivery: Delivery) -> None:
        attempt = delivery.attempt

        async def again() -> None:
            if delivery.live and delivery.attempt == attempt:
                self._transport.send(run, delivery)

        run.keep(self._timekeeper.call_at(self._monotonic_at(delivery.not_before), again))
        self._transport.release(run, delivery)

    def _set_alarm(self, run: RunState, timer: Timer) -> None:
        async def fire() -> None:
            if timer.number not in run.ledger.timers:
                return
            if timer.event is not None and timer.delivery is not None:
                try:  # once more, for what user code decides by may have changed
                    self.topology.prepare(timer.delivery.handler.role, timer.event)
                except PublishError as error:
                    await self.endings.end(run, "failed", f"{event_name(timer.event)} came due, but {error}")
                    return
            await self.write(run, Fired(self.clock.time(), timer.number))

        run.keep(self._timekeeper.call_at(self._monotonic_at(timer.due), fire))

    def _monotonic_at(self, due: float) -> float:
        return self.clock.monotonic() + max(0.0, due - self.clock.time())


def _outlasted(run: RunState, record: Record) -> bool:
    """Whether this is a call that outlasted its run, and that the run needs to know of when it is resumed."""
    ended = run.ledger.ended
    return isinstance(record, Called) and run.lost is None and ended is not None and ended.status in NOT_FINAL


def _first(error: BaseException) -> BaseException:
    """Return the first error that task groups put into groups of groups, cancellations left out."""
    cancelled = anyio.get_cancelled_exc_class()
    while isinstance(error, BaseExceptionGroup):
        errors = error.exceptions
        error = next((each for each in errors if not isinstance(each, cancelled)), errors[0])
    if isinstance(error.__context__, RoleError):  # a scope left open upsets those around it as well
        return error.__context__
    return error
