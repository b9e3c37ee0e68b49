"""A run, or the caller of a swarm, that is cancelled after any number of steps: nothing hangs and nothing is left."""

from __future__ import annotations

from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any

import anyio
import anyio.lowlevel
import pytest
from pydantic import BaseModel

from support.jobs import (
    Gatherer,
    JobDone,
    JobGiven,
    PieceDone,
    WorkDone,
    WorkGiven,
    WorkSeen,
    kinds,
    read_all,
    worker_swarm,
)
from swarmbus import CLIENT, EventTable, Retry, Retryable, Role, RoleContext, RunCancelled, RunStopped, Swarm, on
from swarmbus.delivery.journal import MemoryJournal
from swarmbus.errors import SubmitError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from swarmbus import Event, Run


class Store:
    """Counts how often it is open."""

    def __init__(self) -> None:
        self.open = 0

    @asynccontextmanager
    async def connect(self, opening: Event) -> AsyncIterator[Store]:
        self.open += 1
        try:
            await anyio.lowlevel.checkpoint()
            yield self
        finally:
            self.open -= 1


class Worker(Role):
    """Keeps state, publishes early, is retried, and takes a few steps for all of it."""

    class State(BaseModel, frozen=True):
        pieces: tuple[int, ...] = ()

    retry = Retry(delay=0)

    @on(JobGiven, each="pieces")
    async def work(self, piece: int, state: State, ctx: RoleContext[WorkSeen]) -> PieceDone:
        assert ctx.deps.open == 1
        await ctx.publish(WorkSeen(text=str(piece)))
        await anyio.lowlevel.checkpoint()
        if ctx.attempt == 1 and piece == 1:
            raise Retryable("again")
        ctx.update(pieces=(*state.pieces, piece))
        return PieceDone(piece=piece)


class Watcher(Role):
    """Handles what is published early."""

    concurrency = 2

    @on
    async def see(self, event: WorkSeen, ctx: RoleContext) -> None:
        await ctx.once("note", self.note)

    async def note(self) -> str:
        await anyio.lowlevel.checkpoint()
        return "noted"


def make(store: Store) -> Swarm[JobDone]:
    table = EventTable(
        (CLIENT, JobGiven, ("worker", "gatherer")),
        ("worker", WorkSeen, "watcher"),
        ("worker", PieceDone, "gatherer"),
        ("gatherer", JobDone, CLIENT),
        result=JobDone,
    )
    return Swarm(Worker(), Watcher(), Gatherer(), table=table, deps=store.connect, journal=MemoryJournal())


JOB = JobGiven(pieces=(0, 1, 2))
MOMENTS = range(0, 60, 2)


class Endless(Role):
    """Never comes back."""

    name = "worker"

    @on
    async def work(self, event: WorkGiven) -> WorkDone:
        await anyio.sleep_forever()
        return WorkDone()


async def steps(count: int) -> None:
    for _ in range(count):
        await anyio.lowlevel.checkpoint()


@pytest.mark.parametrize("moment", MOMENTS)
async def test_a_run_can_be_cancelled_at_any_step(moment: int) -> None:
    store = Store()
    with anyio.fail_after(5):
        async with make(store).open() as live:
            run = await live.submit(JOB)
            await steps(moment)
            finished = run.status == "done"
            await run.cancel()
            assert (run.status, live.bus.runs) == ("done" if finished else run.status, {})
            if run.status == "cancelled":
                with pytest.raises(RunCancelled):
                    await run.result()
            else:
                assert (await run.result()).output.done == (0, 1, 2)
            again = await live.submit(JOB)
            assert (await again.result()).output.done == (0, 1, 2)
    assert store.open == 0


@pytest.mark.parametrize("moment", MOMENTS)
async def test_the_caller_can_be_cancelled_at_any_step(moment: int) -> None:
    store, results = Store(), list[Any]()
    with anyio.fail_after(5):
        async with anyio.create_task_group() as group:

            async def call() -> None:
                results.append(await make(store).run(JOB))

            group.start_soon(call)
            await steps(moment)
            group.cancel_scope.cancel()
    assert (store.open, len(results) <= 1) == (0, True)


@pytest.mark.parametrize("moment", MOMENTS)
async def test_a_swarm_can_be_left_at_any_step_and_the_run_goes_on_elsewhere(moment: int) -> None:
    store = Store()
    swarm = make(store)
    with anyio.fail_after(5):
        async with swarm.open() as live:
            await live.submit(JOB, run_id="r")
            await steps(moment)
        async with swarm.open() as live:
            run = await live.resume("r")
            assert (await run.result()).output.done == (0, 1, 2)
    assert store.open == 0


@pytest.mark.parametrize("how", ["cancelled", "raised"])
async def test_whoever_else_waits_for_a_run_is_told_when_the_swarm_ends_undrained(how: str) -> None:
    told, seen = list[str](), list[Any]()
    submitted, leave = anyio.Event(), anyio.Event()
    runs: list[Run[Any]] = []

    async def keep_open() -> None:
        with anyio.CancelScope() as scope, suppress(ZeroDivisionError):
            async with worker_swarm(Endless()).open() as live:
                runs.append(await live.submit(WorkGiven()))
                submitted.set()
                await leave.wait()
                if how == "raised":
                    raise ZeroDivisionError
                scope.cancel()
                await anyio.sleep_forever()

    async def wait() -> None:
        with pytest.raises(RunStopped, match="the swarm ended without being drained"):
            await runs[0].result()
        told.append(runs[0].status)

    async def read() -> None:
        seen.extend(await read_all(runs[0]))

    with anyio.fail_after(5):
        async with anyio.create_task_group() as group:
            group.start_soon(keep_open)
            await submitted.wait()
            group.start_soon(wait)
            group.start_soon(read)
            await anyio.wait_all_tasks_blocked()
            leave.set()
    assert (told, kinds(seen)[-1]) == (["stopped"], "run_stopped")


async def test_a_closed_swarm_takes_no_further_runs() -> None:
    async with worker_swarm(Endless()).open(grace=0) as live:
        pass
    with pytest.raises(SubmitError, match="the swarm was closed"):
        await live.submit(WorkGiven())
