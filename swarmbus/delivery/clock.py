"""The clock that delivery lives by, so that a test can put another one in its place."""

from __future__ import annotations

import time
from typing import Protocol

import anyio


class Clock(Protocol):
    """Tells the time and waits for it."""

    def time(self) -> float:
        """Return the seconds since the epoch."""
        ...

    def monotonic(self) -> float:
        """Return seconds that never run backwards; only differences mean something."""
        ...

    async def sleep_until(self, deadline: float) -> None:
        """Wait until `monotonic()` has reached the deadline."""
        ...


class SystemClock:
    """The machine's clock; its methods are the functions of `time` themselves, for they are asked at every event."""

    def __init__(self) -> None:
        self.time = time.time
        self.monotonic = time.monotonic

    async def sleep_until(self, deadline: float) -> None:
        """Wait until `monotonic()` has reached the deadline."""
        await anyio.sleep(max(0.0, deadline - time.monotonic()))
