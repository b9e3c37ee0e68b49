"""One task that calls what comes due: retries, timers, time limits. Everything else only tells it when."""

from __future__ import annotations

import heapq
import math
from itertools import count
from typing import TYPE_CHECKING

import anyio

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from swarmbus.delivery.clock import Clock

    Call = Callable[[], Awaitable[None]]


class Timekeeper:
    """Alarms in order of their time (seconds of the clock's `monotonic`)."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._alarms: list[tuple[float, int, Call]] = []
        self._order = count()
        self._sleep: anyio.CancelScope | None = None
        self._idle: anyio.Event | None = None

    def call_at(self, deadline: float, call: Call) -> None:
        """Call an async function once the clock has reached the deadline."""
        sooner = not self._alarms or deadline < self._alarms[0][0]
        heapq.heappush(self._alarms, (deadline, next(self._order), call))
        if sooner:
            self._wake()

    async def serve(self) -> None:
        """Call what comes due, until cancelled."""
        while True:
            while self._alarms and self._alarms[0][0] <= self._clock.monotonic():
                _, _, call = heapq.heappop(self._alarms)
                await call()
            await self._wait(self._alarms[0][0] if self._alarms else math.inf)

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
