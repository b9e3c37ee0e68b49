"""Closing a swarm with work in flight: nothing new starts, what runs may finish, the rest stays pending."""

from __future__ import annotations

from typing import Any

import anyio
import pytest

from support.clock import FakeClock
from support.jobs import JobGiven, PieceDone, WorkDone, WorkGiven, job_swarm, worker_swarm
from swarmbus import CLIENT, EventTable, Role, RoleContext, Run, RunStopped, Swarm, on
from swarmbus.delivery.endings import UNWINDING
from swarmbus.delivery.journal import MemoryJournal


class Timed(Role):
    """Takes ten seconds for each piece, one at a time."""

    name = "worker"

    def __init__(self, clock: FakeClock) -> None:
        self.clock = clock
        self.begun: list[int] = []
        self.done: list[int] = []

    @on(JobGiven, each="pieces")
    async def work(self, piece: int) -> PieceDone:
        self.begun.append(piece)
        await self.clock.sleep_until(self.clock.monotonic() + 10)
        self.done.append(piece)
        return PieceDone(piece=piece)


async def drain(swarm: Swarm[Any], clock: FakeClock, run_id: str, *, grace: float, seconds: float) -> RunStopped:
    """Start a job, leave the swarm while its first piece is under way, and return what the waiting caller is told."""
    told: list[RunStopped] = []
    leave = anyio.Event()
    async with anyio.create_task_group() as group:

        async def close() -> None:
            async with swarm.open(grace=grace) as live:
                group.start_soon(wait, await live.submit(JobGiven(pieces=(1, 2, 3)), run_id=run_id))
                await leave.wait()

        async def wait(run: Run[Any]) -> None:
            with pytest.raises(RunStopped) as caught:
                await run.result()
            told.append(caught.value)

        group.start_soon(close)
        await anyio.wait_all_tasks_blocked()
        leave.set()
        await clock.advance(seconds)
    return told[0]


async def test_what_runs_may_finish_and_the_run_says_what_is_pending() -> None:
    clock = FakeClock()
    worker = Timed(clock)
    stopped = await drain(job_swarm(worker, clock=clock), clock, "r", grace=15, seconds=12)
    assert (worker.begun, worker.done) == ([1], [1])
    assert str(stopped).startswith(
        "run r was stopped: drained; pending: worker.work item 1 (2) for job_given 0, worker.work"
    )
    assert stopped.result.output is None


async def test_what_outlasts_the_grace_time_is_cut() -> None:
    clock = FakeClock()
    worker = Timed(clock)
    stopped = await drain(job_swarm(worker, clock=clock), clock, "r", grace=5, seconds=6)
    assert (worker.begun, worker.done, clock.monotonic()) == ([1], [], 6)
    assert "pending: worker.work item 0 (1) for job_given 0, worker.work item 1 (2)" in str(stopped)


async def test_what_does_not_stop_when_told_at_the_end_of_a_drain_holds_nobody_up_for_another_grace_time() -> None:
    clock, leave, told = FakeClock(), anyio.Event(), list[float]()

    class Deaf(Role):
        name = "worker"

        @on
        async def work(self, event: WorkGiven) -> WorkDone:
            with anyio.CancelScope(shield=True):
                await clock.sleep_until(1000)
            return WorkDone()

    async def close() -> None:
        async with worker_swarm(Deaf(), clock=clock).open(grace=15) as live:
            group.start_soon(wait, await live.submit(WorkGiven()))
            await leave.wait()

    async def wait(run: Run[Any]) -> None:
        with pytest.raises(RunStopped):
            await run.result()
        told.append(clock.monotonic())

    async with anyio.create_task_group() as group:
        group.start_soon(close)
        await anyio.wait_all_tasks_blocked()
        leave.set()
        await clock.advance(2000)
    assert told == [15 + UNWINDING]


async def test_a_drained_run_goes_on_when_it_is_resumed() -> None:
    clock, journal = FakeClock(), MemoryJournal()
    worker = Timed(clock)
    swarm = job_swarm(worker, clock=clock, journal=journal)
    await drain(swarm, clock, "r", grace=15, seconds=12)
    async with swarm.open() as live:
        run = await live.resume("r")
        await clock.advance(20)
        assert (await run.result()).output.done == (1, 2, 3)
    assert worker.begun == [1, 2, 3]


async def test_it_can_be_drained_and_resumed_again_and_again() -> None:
    clock, journal = FakeClock(), MemoryJournal()
    worker = Timed(clock)
    swarm = job_swarm(worker, clock=clock, journal=journal)
    await drain(swarm, clock, "r", grace=15, seconds=12)
    async with swarm.open(grace=0) as live:
        run = await live.resume("r")
        await anyio.wait_all_tasks_blocked()
    with pytest.raises(RunStopped):
        await run.result()
    async with swarm.open() as live:
        run = await live.resume("r")
        await clock.advance(40)
        assert (await run.result()).output.done == (1, 2, 3)


async def test_an_idle_swarm_closes_at_once() -> None:
    with anyio.fail_after(5):
        async with job_swarm().open() as live:
            run = await live.submit(JobGiven(pieces=(1,)))
            await run.result()


async def test_opened_again_it_does_not_see_what_was_left() -> None:
    clock = FakeClock()
    worker = Timed(clock)
    swarm = job_swarm(worker, clock=clock)
    await drain(swarm, clock, "r", grace=15, seconds=12)
    async with swarm.open() as live:
        run = await live.submit(JobGiven(pieces=(7,)), run_id="r")
        await clock.advance(10)
        assert (await run.result()).output.done == (7,)
    assert worker.begun == [1, 7]


async def test_events_in_the_last_moment_are_kept_but_not_handled() -> None:
    clock, handled = FakeClock(), list[str]()

    class Worker(Role):
        @on
        async def first(self, event: WorkGiven, ctx: RoleContext[WorkDone]) -> None:
            await clock.sleep_until(1)
            await ctx.publish(WorkDone(text="late"))

        @on
        async def second(self, event: WorkDone) -> None:
            handled.append(event.text)

    table = EventTable((CLIENT, WorkGiven, "worker"), ("worker", WorkDone, "worker"))
    swarm = Swarm(Worker(), table=table, clock=clock)
    leave = anyio.Event()
    async with anyio.create_task_group() as group:

        async def close() -> None:
            async with swarm.open() as live:
                run = await live.submit(WorkGiven())
                await leave.wait()
            with pytest.raises(RunStopped, match=r"pending: worker.second for work_done 1"):
                await run.result()

        group.start_soon(close)
        await anyio.wait_all_tasks_blocked()
        leave.set()
        await clock.advance(2)
    assert handled == []


async def test_a_worker_that_waits_for_a_person_does_not_hold_up_the_closing() -> None:
    class Worker(Role):
        @on
        async def work(self, event: WorkGiven, ctx: RoleContext) -> WorkDone:
            return WorkDone(text=await ctx.ask_person("?", reply=str))

    with anyio.fail_after(5):
        async with worker_swarm(Worker()).open() as live:
            run = await live.submit(WorkGiven())
            await anyio.wait_all_tasks_blocked()
    with pytest.raises(RunStopped):
        await run.result()


class Later(Role):
    """Has its work done in an hour."""

    name = "worker"

    @on
    async def work(self, event: WorkGiven, ctx: RoleContext[WorkDone]) -> None:
        await ctx.publish(WorkDone(), after=3600)


async def test_what_is_set_for_a_time_is_pending_too() -> None:
    swarm = worker_swarm(Later(), clock=FakeClock())
    async with swarm.open() as live:
        run = await live.submit(WorkGiven(), run_id="r")
        await anyio.wait_all_tasks_blocked()
        await live.drain()
        with pytest.raises(RunStopped, match=r"drained; pending: work_done in 3600 s$"):
            await run.result()
