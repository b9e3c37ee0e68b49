"""A clock that moves only when a test says so, on either event loop; it takes the place of `SystemClock`."""

from __future__ import annotations

import heapq
from datetime import UTC, datetime
from itertools import count

import anyio
import anyio.lowlevel

START = datetime(2031, 3, 14, 9, 26, 53, tzinfo=UTC)


class FakeClock:
    """Time that stands still: sleepers wake, in order of their time, while the test moves it."""

    def __init__(self, start: datetime = START) -> None:
        self._start = start
        self._elapsed = 0.0
        self._sleepers: list[tuple[float, int, anyio.Event]] = []
        self._order = count()

    def time(self) -> float:
        """Return the seconds since the epoch."""
        return self._start.timestamp() + self._elapsed

    def monotonic(self) -> float:
        """Return the seconds since the clock was made."""
        return self._elapsed

    async def sleep_until(self, deadline: float) -> None:
        """Wait until `monotonic()` has reached `deadline`."""
        if deadline <= self._elapsed:
            await anyio.lowlevel.checkpoint()
            return
        alarm = anyio.Event()
        sleeper = (deadline, next(self._order), alarm)
        heapq.heappush(self._sleepers, sleeper)
        try:
            await alarm.wait()
        finally:
            if not alarm.is_set():
                self._sleepers.remove(sleeper)
                heapq.heapify(self._sleepers)

    async def advance(self, seconds: float) -> None:
        """Move time forward; after each alarm, and at the end, wait until every other task waits for something."""
        target = self._elapsed + seconds
        await anyio.wait_all_tasks_blocked()
        while self._sleepers and self._sleepers[0][0] <= target:
            self._elapsed, _, alarm = heapq.heappop(self._sleepers)
            alarm.set()
            await anyio.wait_all_tasks_blocked()
        self._elapsed = target
