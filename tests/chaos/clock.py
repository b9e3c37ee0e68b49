"""Time that moves only when nothing else can: as soon as all tasks wait, it is the time of whoever wakes next.

`time()` is another one with each call, so that what happened in a run can be put in order by its times alone;
`monotonic()` stands still meanwhile, so that all that is due at one moment is due at once.
"""

from __future__ import annotations

import asyncio
import heapq
from itertools import count
from typing import Any

import anyio
import anyio.lowlevel

from support.clock import FakeClock

EPOCH = 1000.0
"""Small, so that a float tells ticks apart."""
TICK = 1e-11
MARGIN = 1e-6
"""Seconds by which `monotonic()` is ahead of the ticks; there are never as many between two moments."""


class VirtualClock(FakeClock):
    """The clock of a swarm and of all that disturbs it; its times are in seconds."""

    def __init__(self) -> None:
        super().__init__()
        self._ticks = count(1)

    def monotonic(self) -> float:
        """Return the seconds since the clock was made."""
        return self._elapsed + MARGIN

    def time(self) -> float:
        """Return the seconds since the epoch, a tick more with each call."""
        return EPOCH + self._elapsed + next(self._ticks) * TICK

    def stamp(self) -> float:
        """Return the seconds since the clock was made, a tick more with each call, as records have them."""
        return self.time() - EPOCH

    async def sleep(self, seconds: float) -> None:
        """Wait for so many seconds."""
        await self.sleep_until(self.monotonic() + seconds)

    @property
    def next_alarm(self) -> float:
        """When the next sleeper wakes, or infinity."""
        return self._sleepers[0][0] if self._sleepers else float("inf")

    def move_to(self, moment: float) -> None:
        """Move time forward to a moment, and wake who sleeps until then."""
        self._elapsed, self._ticks = max(moment, self.monotonic()), count(1)
        while self._sleepers and self._sleepers[0][0] <= self._elapsed:
            heapq.heappop(self._sleepers)[2].set()


async def all_tasks_wait(backend: str) -> None:
    """Return once every other task waits; on asyncio without the 0.1 s that anyio's own function takes for it."""
    if backend == "trio":
        await anyio.wait_all_tasks_blocked()
        return
    this, quiet = asyncio.current_task(), 0
    while quiet < 3:  # what the loop has yet to call may let a task run that waits
        await anyio.lowlevel.checkpoint()
        quiet = 0 if any(task is not this and _can_run(task) for task in asyncio.all_tasks()) else quiet + 1


def _can_run(task: Any) -> bool:
    waiter = task._fut_waiter
    return waiter is None or waiter.done()
