"""Events that are published later, and joins with a deadline."""

from __future__ import annotations

import gc
import math

import anyio
import pytest

from support.clock import FakeClock
from support.jobs import JobGiven, PieceDone, WorkDone, WorkGiven, WorkSeen, gatherer, job_swarm, started, worker_swarm
from swarmbus import Retry, Retryable, Role, RoleContext, on

AGAIN = ("worker", WorkSeen, "worker")


class Later(Role):
    """Finishes when an event of its own comes, a minute after."""

    name = "worker"

    @on
    async def begin(self, event: WorkGiven, ctx: RoleContext[WorkSeen]) -> None:
        await ctx.publish(WorkSeen(text="later"), after=60)

    @on
    async def end(self, event: WorkSeen) -> WorkDone:
        return WorkDone(text=event.text)


async def test_an_event_published_after_a_while_comes_then_and_the_run_waits_for_it() -> None:
    clock = FakeClock()
    async with started(worker_swarm(Later(), AGAIN, clock=clock), WorkGiven()) as (_, run):
        await clock.advance(59)
        assert run.status == "running"
        await clock.advance(1)
        assert (await run.result()).output.text == "later"


@pytest.mark.parametrize("again", ["timer", "retry"])
async def test_what_came_due_is_let_go_while_the_run_goes_on(again: str) -> None:
    class Worker(Role):
        @on(WorkGiven, WorkSeen)
        async def see(self, event: WorkGiven | WorkSeen, ctx: RoleContext[WorkSeen]) -> WorkDone | None:
            if again == "retry" and ctx.attempt == 1:
                raise Retryable("once more")
            await ctx.publish(WorkSeen(text=f"{event.text}+"), after=1)
            return None

    clock, gone = FakeClock(), 120
    swarm = worker_swarm(Worker(), AGAIN, clock=clock, retry=Retry(delay=1, jitter=0))
    async with started(swarm, WorkGiven()) as (_, run):
        for _ in range(2 * gone):
            await clock.advance(1)
        gc.collect()
        held = [one for one in gc.get_objects() if type(one) is WorkSeen]
        assert len(held) < gone
        await run.cancel()


async def test_a_timer_goes_with_a_cancelled_run() -> None:
    clock = FakeClock()
    async with started(worker_swarm(Later(), AGAIN, clock=clock), WorkGiven()) as (_, run):
        await run.cancel()
        await clock.advance(120)
        assert run.status == "cancelled"


async def test_a_time_in_the_past_is_refused() -> None:
    class Worker(Role):
        @on
        async def work(self, event: WorkGiven, ctx: RoleContext[WorkSeen]) -> WorkDone:
            with pytest.raises(ValueError, match="after=-1 lies in the past"):
                await ctx.publish(WorkSeen(), after=-1)
            for seconds in (math.inf, math.nan, 10**400):
                with pytest.raises(ValueError, match=r"after=.* never comes; give seconds from now"):
                    await ctx.publish(WorkSeen(), after=seconds)
            return WorkDone()

        @on
        async def see(self, event: WorkSeen) -> None: ...

    await worker_swarm(Worker(), AGAIN).run(WorkGiven())


async def test_timers_come_in_the_order_of_their_time() -> None:
    clock, seen = FakeClock(), list[str]()

    class Worker(Role):
        @on
        async def work(self, event: WorkGiven, ctx: RoleContext[WorkSeen]) -> None:
            for seconds in (30, 10, 20):
                await ctx.publish(WorkSeen(text=str(seconds)), after=seconds)

        @on
        async def see(self, event: WorkSeen) -> WorkDone | None:
            seen.append(event.text)
            return WorkDone() if len(seen) == 3 else None

    async with started(worker_swarm(Worker(), AGAIN, clock=clock), WorkGiven()) as (_, run):
        await clock.advance(30)
        await run.result()
    assert seen == ["10", "20", "30"]


async def test_a_timer_counts_for_the_join_it_can_reach() -> None:
    clock = FakeClock()

    class Worker(Role):
        @on(JobGiven, each="pieces")
        async def work(self, piece: int, ctx: RoleContext[WorkSeen]) -> None:
            await ctx.publish(WorkSeen(text=str(piece)), after=piece)

        @on
        async def finish(self, event: WorkSeen) -> PieceDone:
            return PieceDone(piece=int(event.text))

    async with started(job_swarm(Worker(), rows=[AGAIN], clock=clock), JobGiven(pieces=(5, 3))) as (_, run):
        await clock.advance(5)
        assert (await run.result()).output.done == (5, 3)


class Late(Role):
    """Takes as many seconds for a piece as its number says."""

    name = "worker"
    concurrency = 10

    def __init__(self, clock: FakeClock) -> None:
        self.clock = clock
        self.cut: list[int] = []

    @on(JobGiven, each="pieces")
    async def work(self, piece: int) -> PieceDone:
        try:
            await self.clock.sleep_until(piece)
        except anyio.get_cancelled_exc_class():
            self.cut.append(piece)
            raise
        return PieceDone(piece=piece)


async def test_at_its_deadline_a_join_fires_with_what_it_has_and_cancels_the_rest() -> None:
    clock = FakeClock()
    worker = Late(clock)
    swarm = job_swarm(worker, gatherer(partial="proceed", deadline=4), clock=clock)
    async with started(swarm, JobGiven(pieces=(9, 1, 3, 5))) as (_, run):
        await clock.advance(4)
        output = (await run.result()).output
    assert (output.done, output.cancelled, output.missing, sorted(worker.cut)) == ((1, 3), (9, 5), (), [5, 9])


async def test_a_deadline_that_is_not_needed_changes_nothing() -> None:
    clock = FakeClock()
    swarm = job_swarm(Late(clock), gatherer(partial="proceed", deadline=100), clock=clock)
    async with started(swarm, JobGiven(pieces=(1, 2))) as (_, run):
        await clock.advance(2)
        assert (await run.result()).output.done == (1, 2)


async def test_a_quorum_fires_as_soon_as_it_is_reached_and_cancels_the_rest() -> None:
    clock = FakeClock()
    worker = Late(clock)
    swarm = job_swarm(worker, gatherer(quorum=2), clock=clock)
    async with started(swarm, JobGiven(pieces=(9, 1, 3, 5))) as (_, run):
        await clock.advance(3)
        output = (await run.result()).output
    assert (output.done, output.cancelled, sorted(worker.cut)) == ((1, 3), (9, 5), [5, 9])
