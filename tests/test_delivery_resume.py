"""What a run that is resumed from its records keeps of what it was given: its time limit."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import anyio
import pytest

from support.clock import FakeClock
from support.jobs import WorkDone, WorkGiven, worker_swarm
from swarmbus import Role, RoleContext, RunTimedOut, on
from swarmbus.delivery.journal import MemoryJournal

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from swarmbus import Run, Swarm


class Napper(Role):
    """Sleeps a long time at the first attempts, and asks before if it is told to."""

    name = "worker"

    def __init__(self, clock: FakeClock) -> None:
        self.clock = clock

    @on(timeout=10_000)
    async def work(self, event: WorkGiven, ctx: RoleContext) -> WorkDone:
        answer = await ctx.ask_person("?", reply=str) if event.text == "asks" else ""
        await self.clock.sleep_until(5_000)
        return WorkDone(text=answer)


def napping(clock: FakeClock, journal: MemoryJournal) -> Swarm[WorkDone]:
    return worker_swarm(Napper(clock), clock=clock, journal=journal)


async def begin(clock: FakeClock, journal: MemoryJournal, seconds: float, text: str = "") -> None:
    """Start a run that has 30 seconds, and close the swarm after some."""
    async with napping(clock, journal).open(grace=0) as live:
        await live.submit(WorkGiven(text=text), run_id="r", timeout=30)
        await clock.advance(seconds)


@asynccontextmanager
async def resumed(clock: FakeClock, journal: MemoryJournal) -> AsyncIterator[Run[Any]]:
    async with napping(clock, journal).open(grace=0) as live:
        run = await live.resume("r")
        await anyio.wait_all_tasks_blocked()
        yield run


async def times_out_after(clock: FakeClock, run: Run[Any], seconds: float) -> None:
    await clock.advance(seconds - 1)
    assert run.status == "running"
    await clock.advance(1)
    with pytest.raises(RunTimedOut, match=r"no result within 30 s; busy: worker\.work for work_given 0"):
        await run.result()


@pytest.mark.parametrize("closed", [0, 1000])
async def test_what_is_left_of_its_time_while_the_swarm_was_closed_not_counted(closed: float) -> None:
    clock, journal = FakeClock(), MemoryJournal()
    await begin(clock, journal, 10)
    await clock.advance(closed)
    async with resumed(clock, journal) as run:
        await clock.advance(5)
    await clock.advance(closed)
    async with resumed(clock, journal) as run:
        await times_out_after(clock, run, 15)


async def test_time_between_a_crash_and_going_on_does_not_count_either() -> None:
    clock, journal = FakeClock(), MemoryJournal()
    await begin(clock, journal, 10)
    del journal.records["r"][-1]  # as if the process had died at the last record before, when the attempt began
    await clock.advance(1000)
    async with resumed(clock, journal):
        await clock.advance(20)
    async with resumed(clock, journal) as run:
        await times_out_after(clock, run, 10)


async def test_nor_does_the_time_for_which_a_person_was_waited_for() -> None:
    clock, journal = FakeClock(), MemoryJournal()
    await begin(clock, journal, 100, "asks")
    await clock.advance(1000)
    async with resumed(clock, journal) as run:
        await clock.advance(1000)
        (question,) = run.questions
        await run.answer(question, "yes")
        await clock.advance(10)
    async with resumed(clock, journal) as run:
        await times_out_after(clock, run, 20)


async def test_a_run_without_a_time_limit_has_none_later_on() -> None:
    clock, journal = FakeClock(), MemoryJournal()
    async with napping(clock, journal).open(grace=0) as live:
        await live.submit(WorkGiven(), run_id="r")
        await clock.advance(10)
    async with resumed(clock, journal) as run:
        await clock.advance(4_990)
        assert (await run.result()).output == WorkDone()
