"""Runs take turns, and a role handles as many deliveries at a time as it may."""

from __future__ import annotations

import anyio
import anyio.lowlevel
import pytest

from support.clock import FakeClock
from support.jobs import JobGiven, PieceDone, WorkDone, WorkGiven, job_swarm, started, worker_swarm
from swarmbus import Role, on


class Counting(Role):
    """Keeps in which order pieces are begun, and how many are under way at most."""

    name = "worker"

    def __init__(self, clock: FakeClock | None = None) -> None:
        self.clock = clock
        self.begun: list[int] = []
        self.counts = {"now": 0, "most": 0}

    @on(JobGiven, each="pieces")
    async def work(self, piece: int) -> PieceDone:
        self.begun.append(piece)
        self.counts["now"] += 1
        self.counts["most"] = max(self.counts.values())
        if self.clock is None:
            await anyio.lowlevel.checkpoint()
        else:
            await self.clock.sleep_until(self.clock.monotonic() + 0.5)
        self.counts["now"] -= 1
        return PieceDone(piece=piece)


async def test_a_run_of_five_thousand_items_does_not_starve_a_run_of_five() -> None:
    worker = Counting()
    async with job_swarm(worker).open() as live:
        large = await live.submit(JobGiven(pieces=tuple(range(5000))))
        small = await live.submit(JobGiven(pieces=(-1, -2, -3, -4, -5)))
        assert (await small.result()).output.done == (-1, -2, -3, -4, -5)
        handled_meanwhile = len(worker.begun)
        assert len((await large.result()).output.done) == 5000
    assert handled_meanwhile < 100


async def test_a_run_that_comes_in_the_middle_is_served_at_once() -> None:
    worker = Counting()
    async with job_swarm(worker).open() as live:
        large = await live.submit(JobGiven(pieces=tuple(range(2000))))
        while len(worker.begun) < 500:
            await anyio.lowlevel.checkpoint()
        before = len(worker.begun)
        await (await live.submit(JobGiven(pieces=(-1,)))).result()
        assert len(worker.begun) - before < 50
        await large.result()


async def test_many_runs_take_turns() -> None:
    worker = Counting()
    async with job_swarm(worker).open() as live:
        runs = [await live.submit(JobGiven(pieces=(number,) * 10)) for number in range(10)]
        for run in runs:
            await run.result()
    for turn in range(10):
        assert sorted(worker.begun[10 * turn : 10 * turn + 10]) == list(range(10))


@pytest.mark.parametrize("concurrency", [1, 2, 4, 100])
async def test_no_more_deliveries_run_at_once_than_the_role_allows(concurrency: int) -> None:
    clock = FakeClock()
    worker = Counting(clock).named("worker", concurrency=concurrency)
    async with started(job_swarm(worker, clock=clock), JobGiven(pieces=tuple(range(6)))) as (_, run):
        await clock.advance(3)
        assert (await run.result()).output.done == tuple(range(6))
    assert worker.counts["most"] == min(concurrency, 6)


@pytest.mark.parametrize(("concurrency", "seconds"), [(3, 0.5), (1, 1.5)])
async def test_three_deliveries_take_as_long_as_the_concurrency_says(concurrency: int, seconds: float) -> None:
    clock = FakeClock()
    worker = Counting(clock).named("worker", concurrency=concurrency)
    async with started(job_swarm(worker, clock=clock), JobGiven(pieces=(1, 2, 3))) as (_, run):
        await clock.advance(seconds - 0.1)
        assert run.status == "running"
        await clock.advance(0.1)
        assert run.status == "done"
    assert worker.begun == [1, 2, 3]


async def test_the_limit_holds_over_all_runs() -> None:
    clock = FakeClock()
    worker = Counting(clock).named("worker", concurrency=2)
    async with job_swarm(worker, clock=clock).open() as live:
        runs = [await live.submit(JobGiven(pieces=(1, 2))) for _ in range(5)]
        await clock.advance(2.5)
        assert [run.status for run in runs] == ["done"] * 5
    assert worker.counts["most"] == 2


async def test_with_a_concurrency_of_one_first_attempts_keep_the_order_of_arrival() -> None:
    order: list[str] = []

    class Worker(Role):
        @on
        async def work(self, event: WorkGiven) -> WorkDone:
            await anyio.lowlevel.checkpoint()
            order.append(event.text)
            return WorkDone()

    async with worker_swarm(Worker()).open() as live:
        runs = [await live.submit(WorkGiven(text=str(number))) for number in range(50)]
        for run in runs:
            await run.result()
    assert order == [str(number) for number in range(50)]
