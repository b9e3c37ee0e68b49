"""One task that calls what comes due: retries, timers, time limits. Everything else only tells it when."""

from __future__ import annotations

import heapq
import math
from itertools import count
from typing import TYPE_CHECKING, Any

import anyio

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from swarmbus.delivery.clock import Clock

    Call = Callable[[], Coroutine[Any, Any, None]]


class Alarm:
    """A call to be made at a time, unless it is cancelled before."""

    __slots__ = ("call", "deadline", "order")

    def __init__(self, deadline: float, order: int, call: Call) -> None:
        self.deadline = deadline
        self.order = order
        self.call: Call | None = call

    def cancel(self) -> None:
        """Let the call go; what it holds is free at once."""
        self.call = None

    def __lt__(self, other: Alarm) -> bool:
        return (self.deadline, self.order) < (other.deadline, other.order)


class Timekeeper:
    """Alarms in order of their time (seconds of the clock's `monotonic`)."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._alarms: list[Alarm] = []
        self._order = count()
        self._sweep_at = 1000
        self._sleep: anyio.CancelScope | None = None
        self._idle: anyio.Event | None = None

    def call_at(self, deadline: float, call: Call) -> Alarm:
        """Call an async function once the clock has reached the deadline."""
        alarm = Alarm(deadline, next(self._order), call)
        sooner = not self._alarms or deadline < self._alarms[0].deadline
        if len(self._alarms) >= self._sweep_at:
            self._sweep()
        heapq.heappush(self._alarms, alarm)
        if sooner:
            self._wake()
        return alarm

    async def serve(self) -> None:
        """Call what comes due, until cancelled; no call waits for another, which may have to wait for a journal."""
        async with anyio.create_task_group() as group:
            while True:
                while self._alarms and self._alarms[0].deadline <= self._clock.monotonic():
                    alarm = heapq.heappop(self._alarms)
                    if alarm.call is not None:
                        group.start_soon(alarm.call)
                        alarm.cancel()  # what it holds is needed no longer, however long the alarm is kept
                await self._wait(self._alarms[0].deadline if self._alarms else math.inf)

    def _sweep(self) -> None:
        """Drop cancelled alarms, so that those of finished runs don't pile up."""
        self._alarms = [alarm for alarm in self._alarms if alarm.call is not None]
        heapq.heapify(self._alarms)
        self._sweep_at = 1000 + 2 * len(self._alarms)

    async def _wait(self, deadline: float) -> None:
        if deadline == math.inf:
            self._idle = anyio.Event()
            await self._idle.wait()
            return
        with anyio.CancelScope() as self._sleep:
            await self._clock.sleep_until(deadline)
        self._sleep = None

    def _wake(self) -> None:
        if self._sleep is not None:
            self._sleep.cancel()
        if self._idle is not None:
            self._idle.set()
