"""Alarms: called at their time, whatever else was set or cancelled meanwhile."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import anyio
import anyio.lowlevel

from support.clock import FakeClock
from swarmbus.delivery.timekeeper import Alarm, Timekeeper

if TYPE_CHECKING:
    from collections.abc import AsyncIterator


class Bell:
    """Sets alarms, and keeps when each of them was called."""

    def __init__(self, clock: FakeClock, timekeeper: Timekeeper) -> None:
        self.clock = clock
        self.timekeeper = timekeeper
        self.rung: list[tuple[float, float]] = []

    def at(self, seconds: float) -> Alarm:
        async def ring() -> None:
            self.rung.append((seconds, self.clock.monotonic()))

        return self.timekeeper.call_at(seconds, ring)


@asynccontextmanager
async def serving() -> AsyncIterator[Bell]:
    clock = FakeClock()
    timekeeper = Timekeeper(clock)
    async with anyio.create_task_group() as group:
        group.start_soon(timekeeper.serve)
        yield Bell(clock, timekeeper)
        group.cancel_scope.cancel()


async def test_alarms_are_called_at_their_time_in_whatever_order_they_were_set() -> None:
    async with serving() as bell:
        for seconds in (20, 30, 10):
            bell.at(seconds)
            await anyio.lowlevel.checkpoint()
        await bell.clock.advance(9)
        assert bell.rung == []
        await bell.clock.advance(100)
    assert bell.rung == [(10, 10), (20, 20), (30, 30)]


async def test_one_that_comes_sooner_than_the_one_waited_for_is_called_in_time() -> None:
    async with serving() as bell:
        bell.at(50)
        await bell.clock.advance(1)
        bell.at(5)
        await bell.clock.advance(4)
    assert bell.rung == [(5, 5)]


async def test_of_thousands_those_are_called_that_were_not_cancelled() -> None:
    async with serving() as bell:
        for number in range(5000):
            alarm = bell.at(1 + number % 7)
            if number % 10:
                alarm.cancel()
        await bell.clock.advance(10)
    assert sorted(bell.rung) == sorted((1 + number % 7, 1 + number % 7) for number in range(0, 5000, 10))


async def test_of_thousands_none_is_lost() -> None:
    async with serving() as bell:
        for number in range(5000):
            bell.at(1 + number % 7)
        await bell.clock.advance(10)
    assert len(bell.rung) == 5000
