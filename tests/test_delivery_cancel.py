"""Cancelling a run: at any moment, leaving nothing behind."""

from __future__ import annotations

import anyio
import pytest

from support.clock import FakeClock
from support.jobs import JobGiven, PieceDone, WorkDone, WorkGiven, gatherer, job_swarm, started, worker_swarm
from swarmbus import Retry, Retryable, Role, RoleContext, RunCancelled, on
from swarmbus.models import ScriptedModel


class Steady(Role):
    """Takes a second for each piece, and tells how many are under way and how many came to an end."""

    name = "worker"
    concurrency = 3

    def __init__(self, clock: FakeClock) -> None:
        self.clock = clock
        self.counts = {"busy": 0, "done": 0}

    @on(JobGiven, each="pieces")
    async def work(self, piece: int, ctx: RoleContext) -> PieceDone:
        self.counts["busy"] += 1
        try:
            await self.clock.sleep_until(self.clock.monotonic() + 1)
            if ctx.attempt == 1 and piece == 4:
                raise Retryable("again")
            self.counts["done"] += 1
            return PieceDone(piece=piece)
        finally:
            self.counts["busy"] -= 1


@pytest.mark.parametrize("after", [0, 0.5, 1, 1.5, 2, 2.5, 3, 3.5])
async def test_a_run_cancelled_at_any_moment_leaves_no_task_and_starts_nothing_more(after: float) -> None:
    clock = FakeClock()
    worker = Steady(clock)
    async with started(job_swarm(worker, clock=clock), JobGiven(pieces=tuple(range(9)))) as (live, run):
        await clock.advance(after)
        await run.cancel("no longer needed")
        assert worker.counts["busy"] == 0
        done = worker.counts["done"]
        await clock.advance(60)
        assert worker.counts == {"busy": 0, "done": done}
        assert live.bus.runs == {}
        with pytest.raises(RunCancelled, match="was cancelled: no longer needed") as caught:
            await run.result()
    assert caught.value.result.output is None


async def test_a_run_cancelled_before_anything_started_ends_too() -> None:
    async with job_swarm().open() as live:
        run = await live.submit(JobGiven(pieces=tuple(range(9))))
        await run.cancel()
        with pytest.raises(RunCancelled):
            await run.result()


async def test_cancelling_a_finished_run_changes_nothing() -> None:
    async with started(job_swarm(), JobGiven(pieces=(1,))) as (_, run):
        await run.result()
        await run.cancel()
        assert ((await run.result()).output.done, run.status) == ((1,), "done")


async def test_cancelling_twice_is_harmless() -> None:
    clock = FakeClock()
    async with started(job_swarm(Steady(clock), clock=clock), JobGiven(pieces=(1,))) as (_, run):
        async with anyio.create_task_group() as group:
            group.start_soon(run.cancel, "first")
            group.start_soon(run.cancel, "second")
        with pytest.raises(RunCancelled, match=r"first|second"):
            await run.result()


async def test_other_runs_are_left_alone() -> None:
    clock = FakeClock()
    async with job_swarm(Steady(clock), clock=clock).open() as live:
        first, second = [await live.submit(JobGiven(pieces=(1, 2, 3))) for _ in range(2)]
        await anyio.wait_all_tasks_blocked()
        await first.cancel()
        await clock.advance(10)
        assert (await second.result()).output.done == (1, 2, 3)


async def test_a_model_call_under_way_is_cut_and_no_further_one_is_made() -> None:
    async def never(_: object) -> str:
        await anyio.sleep_forever()
        return ""

    class Worker(Role):
        @on
        async def work(self, event: WorkGiven, ctx: RoleContext) -> WorkDone:
            return WorkDone(text=await ctx.ask("?"))

    model = ScriptedModel([never, "not asked"])
    async with started(worker_swarm(Worker(), model=model), WorkGiven()) as (_, run):
        await run.cancel()
    assert len(model.requests) == 1


async def test_a_handler_that_does_not_stop_when_told_is_waited_for_and_reported() -> None:
    clock = FakeClock()

    class Worker(Role):
        @on
        async def work(self, event: WorkGiven) -> WorkDone:
            with anyio.CancelScope(shield=True):
                await clock.sleep_until(100)
            return WorkDone()

    async with started(worker_swarm(Worker(), clock=clock), WorkGiven()) as (_, run):
        async with anyio.create_task_group() as group:
            group.start_soon(run.cancel)
            await clock.advance(25)
        with pytest.raises(RunCancelled) as caught:
            await run.result()
        await clock.advance(100)
    assert "did not stop when told" in caught.value.result.warnings[-1]


async def test_the_first_failure_cancels_the_siblings_and_waits_for_them() -> None:
    clock, cut = FakeClock(), list[int]()

    class Worker(Role):
        concurrency = 10
        retry = Retry(attempts=1)

        @on(JobGiven, each="pieces")
        async def work(self, piece: int) -> PieceDone:
            try:
                await clock.sleep_until(piece)
            except anyio.get_cancelled_exc_class():
                cut.append(piece)
                raise
            if piece == 4:
                raise ValueError("the fourth")
            return PieceDone(piece=piece)

    async with started(job_swarm(Worker(), gatherer(), clock=clock), JobGiven(pieces=tuple(range(1, 11)))) as (_, run):
        await clock.advance(4)
        assert run.status == "failed"
    assert sorted(cut) == [5, 6, 7, 8, 9, 10]
