"""Supervises attempts: calls the handler, and turns whatever comes of it into a record.

Results, errors, time limits and cancellation all end here; nothing a handler raises is only logged. What no run can
end with, such as `SystemExit`, goes on to whoever opened the bus.
"""

from __future__ import annotations

import math
import random
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import anyio

from swarmbus.delivery.attempt import Attempt
from swarmbus.delivery.blocking import Stretches
from swarmbus.delivery.endings import describe
from swarmbus.delivery.watching import tell_start
from swarmbus.errors import RoleError
from swarmbus.records import Committed, ErrorInfo, Failed, Started
from swarmbus.task_groups import lone
from swarmbus.text import error_text, text_of, traceback_text, type_name

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Sequence

    from swarmbus.delivery.attempt import AttemptPort, Handled
    from swarmbus.delivery.clock import Clock
    from swarmbus.delivery.deliveries import Delivery
    from swarmbus.delivery.runs import RunState
    from swarmbus.delivery.timekeeper import Alarm, Timekeeper
    from swarmbus.delivery.transports.base import Slot, Transport
    from swarmbus.handlers import Retry
    from swarmbus.records import Routes

MAX_LOST = 3
"""Attempts lost to crashes after which a delivery is given up."""


@dataclass(frozen=True, slots=True)
class Policy:
    """How one handler's deliveries are tried: the retry and the time limit (seconds) of each attempt."""

    retry: Retry
    timeout: float


class Supervisor:
    """Tries deliveries.

    Args:
        port: what attempts may do.
        invoke: calls the handler of an attempt.
        policies: by handler number.
        give_up: ends the bus, with the error for whoever opened it and the reason for whoever waits for a run.
        durable: whether starts are recorded, so that attempts lost to a crash are counted.
    """

    def __init__(
        self,
        port: AttemptPort,
        invoke: Callable[[Attempt], Coroutine[Any, Any, Handled]],
        policies: Sequence[Policy],
        *,
        give_up: Callable[[BaseException, str], None],
        durable: bool,
        clock: Clock,
        timekeeper: Timekeeper,
        transport: Transport,
    ) -> None:
        self._port = port
        self._invoke = invoke
        self._policies = policies
        self._give_up = give_up
        self._durable = durable
        self._clock = clock
        self._timekeeper = timekeeper
        self._transport = transport
        self._write = port.write
        self._next_check = math.inf
        self._alarm: Alarm | None = None

    async def work(self, slot: Slot, run: RunState, delivery: Delivery) -> None:
        """Try a delivery once."""
        if run.ledger.ended is not None:
            return
        policy = self._policies[delivery.handler.number]
        slot.since = self._clock.monotonic()
        if self._durable and not await self._start(slot, run, delivery):
            return
        slot.timeout = policy.timeout
        slot.since = self._clock.monotonic()
        slot.trouble = ""
        slot.deadline = slot.since + policy.timeout
        if slot.deadline < self._next_check:
            self.watch(slot.deadline)
        tell_start(run, delivery, self._clock)
        attempt = Attempt(self._port, slot, run, delivery, self.watch)
        error: BaseException | None = None
        try:
            handled = await Stretches(self._invoke(attempt), attempt)
            if self._clock.monotonic() > slot.deadline:  # it blocked the loop, so that nobody could stop it
                slot.stop("timed_out", self._gone())
            if slot.stopped is None:
                await self._commit(attempt, handled)
                return
        except anyio.get_cancelled_exc_class():
            if await self._was_cancelled(attempt, slot):
                raise
            return
        except GeneratorExit:
            raise
        except BaseException as raised:  # noqa: BLE001  # whatever it is, it ends in a record
            error = raised
        try:
            await self._not_handled(attempt, slot, error)
        finally:
            del error  # whose traceback leads to here

    async def _was_cancelled(self, attempt: Attempt, slot: Slot) -> bool:
        """Record what a cancellation means to an attempt; say whether it came from outside and has to go on."""
        if slot.stopped is not None:
            await self._stopped(attempt)
            return True
        if anyio.current_effective_deadline() == -float("inf"):
            return True
        await self._fail(attempt, RoleError(f"{attempt.delivery.handler.qualified} cancelled itself"))
        return False

    async def _not_handled(self, attempt: Attempt, slot: Slot, error: BaseException | None) -> None:
        if error is not None and not isinstance(error, Exception):
            self._give_up(error, f"{describe(attempt.delivery)} raised {error_text(error)}, which ended the swarm")
        elif slot.stopped is not None:
            await self._stopped(attempt)
        elif error is not None:
            await self._fail(attempt, error)

    async def _start(self, slot: Slot, run: RunState, delivery: Delivery) -> bool:
        slot.renew(math.inf)
        attempt = delivery.attempt + 1 if delivery.started else delivery.attempt
        if await self._write(run, Started(self._clock.time(), delivery.key, attempt)) is None:
            return False
        if delivery.lost < MAX_LOST:
            return True
        error = ErrorInfo("LostToCrash", f"{delivery.lost} attempts were lost to crashes")
        await self._write(run, Failed(self._clock.time(), delivery.key, delivery.attempt, error))
        return False

    async def _commit(self, attempt: Attempt, handled: Handled) -> None:
        outputs = handled.outputs
        delivery, run = attempt.delivery, attempt.run
        routes: tuple[Routes | None, ...] | None = None
        if outputs:
            chosen = [self._port.prepare(delivery.handler.role, event) for event in outputs]
            if any(route is not None for route in chosen):
                routes = tuple(chosen)
        if attempt.has_calls:
            await attempt.flush()
        if attempt.number > 1 or delivery.early:
            run.ledger.warnings += attempt.differences()
        record = Committed(self._clock.time(), delivery.key, attempt.number, outputs, routes, handled.changes)
        effects = await self._write(run, record)
        if handled.committed is not None and effects is not None and not effects.ignored:
            handled.committed()

    async def _stopped(self, attempt: Attempt) -> None:
        if attempt.slot.stopped == "timed_out":
            with anyio.CancelScope(shield=True):
                await self._fail(attempt, attempt.timed_out())

    async def _fail(self, attempt: Attempt, error: BaseException) -> None:
        delivery, run = attempt.delivery, attempt.run
        error = lone(error)  # of a task group in which one task failed, that task's
        retry = self._policies[delivery.handler.number].retry
        tries = attempt.number - delivery.lost - delivery.cut
        retry_at: float | None = None
        if issubclass(type(error), retry.on) and tries < retry.attempts:
            retry_at = self._clock.time() + retry.pause(tries, random.random())  # noqa: S311  # spreads, no secret
        await attempt.flush()
        info = ErrorInfo(type_name(error), text_of(error), traceback_text(error))
        await self._write(run, Failed(self._clock.time(), delivery.key, attempt.number, info, retry_at, error))

    async def _check_attempts(self) -> None:
        now, later = self._clock.monotonic(), math.inf
        self._next_check, self._alarm = math.inf, None
        for slot in self._transport.slots():
            if slot.deadline > now:
                later = min(later, slot.deadline)
            elif slot.stopped is None:
                slot.stop("timed_out", self._gone())
            else:
                await self._give_up_on(slot)
        self.watch(later)

    async def _give_up_on(self, slot: Slot) -> None:
        """Go on without an attempt that neither ends nor heeds being stopped; what it still brings is not wanted."""
        run, delivery, reason = slot.run, slot.delivery, slot.stopped
        assert run is not None
        assert delivery is not None
        attempt = Attempt(self._port, slot, run, delivery, self.watch)
        self._transport.give_up(slot)
        run.ledger.warn(f"{describe(delivery)} did not stop when told, and was left to itself")
        if reason == "timed_out":
            await self._fail(attempt, attempt.timed_out())

    def _gone(self) -> float:
        """Return until when what is told to stop now has to be gone, and look then."""
        gone = self._clock.monotonic() + self._port.grace
        self.watch(gone)
        return gone

    def watch(self, deadline: float) -> None:
        """Look at all attempts once the clock has come to a time in its monotonic seconds, or before."""
        if deadline < self._next_check:
            if self._alarm is not None:  # else each would set others when it comes due, more and more of them
                self._alarm.cancel()
            self._next_check = deadline
            self._alarm = self._timekeeper.call_at(deadline, self._check_attempts)
