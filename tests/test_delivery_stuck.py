"""Handlers that don't stop when told: their run ends all the same, others get their place, and what they bring is lost.

Where nobody can be told to stop any more, for a handler left a cancel scope open, that is what ends the swarm.
"""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import anyio
import anyio.lowlevel
import pytest

from support.clock import FakeClock
from support.jobs import WorkDone, WorkGiven, worker_swarm
from swarmbus import Retry, Role, RoleContext, RunCancelled, RunFailed, RunTimedOut, on
from swarmbus.errors import HandlerTimedOut, RoleError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

    from swarmbus.delivery.clock import Clock

    Stuck = Callable[[Clock], Awaitable[None]]

LONG = 100.0


async def shielded(clock: Clock) -> None:
    with anyio.CancelScope(shield=True):
        await clock.sleep_until(LONG)


async def swallowing(clock: Clock) -> None:
    while clock.monotonic() < LONG:
        try:
            await clock.sleep_until(LONG)
        except anyio.get_cancelled_exc_class():
            with anyio.CancelScope(shield=True):
                await clock.sleep_until(LONG)


stuck_in = pytest.mark.parametrize("stuck", [shielded, swallowing])


class Stubborn(Role):
    """Does not heed being stopped where it is given no text."""

    name = "worker"
    timeout = 3.0
    retry = Retry(attempts=1)

    def __init__(self, stuck: Stuck, clock: Clock) -> None:
        self.stuck = stuck
        self.clock = clock
        self.ended: list[str] = []

    @on
    async def work(self, event: WorkGiven) -> WorkDone:
        if not event.text:
            await self.stuck(self.clock)
            self.ended.append("late")
        return WorkDone(text=event.text)


LEFT = "worker.work for work_given 0 did not stop when told, and was left to itself"


@stuck_in
async def test_an_attempt_that_goes_on_after_its_time_fails_and_another_takes_its_place(stuck: Stuck) -> None:
    clock = FakeClock()
    role = Stubborn(stuck, clock)
    async with worker_swarm(role, clock=clock).open(grace=5) as live:
        first, second = await live.submit(WorkGiven()), await live.submit(WorkGiven(text="next"))
        await anyio.wait_all_tasks_blocked()
        await clock.advance(7.9)
        assert (first.status, second.status) == ("running", "running")
        await clock.advance(0.2)
        with pytest.raises(RunFailed) as failed:
            await first.result()
        assert isinstance(failed.value.__cause__, HandlerTimedOut)
        assert failed.value.result.warnings == (LEFT,)
        assert (await second.result()).output == WorkDone(text="next")
        await clock.advance(LONG)
    assert role.ended == ["late"]


@stuck_in
async def test_a_cancelled_run_ends_after_the_grace_and_its_place_is_free(stuck: Stuck) -> None:
    clock = FakeClock()
    role = Stubborn(stuck, clock)
    role.timeout = LONG
    async with worker_swarm(role, clock=clock).open(grace=5) as live:
        run = await live.submit(WorkGiven())
        await anyio.wait_all_tasks_blocked()
        async with anyio.create_task_group() as group:
            group.start_soon(run.cancel)
            await anyio.wait_all_tasks_blocked()
            await clock.advance(5)
        with pytest.raises(RunCancelled) as cancelled:
            await run.result()
        assert cancelled.value.result.warnings == (LEFT,)
        assert (await (await live.submit(WorkGiven(text="next"))).result()).output == WorkDone(text="next")
        await clock.advance(LONG)


async def test_a_run_that_waits_for_a_place_says_who_has_it() -> None:
    clock = FakeClock()
    async with worker_swarm(Stubborn(shielded, clock), clock=clock).open(grace=20) as live:
        first, second = await live.submit(WorkGiven()), await live.submit(WorkGiven(text="next"), timeout=8)
        await anyio.wait_all_tasks_blocked()
        await clock.advance(3)
        await clock.advance(5)
        with pytest.raises(RunTimedOut) as late:
            await second.result()
        assert str(late.value).endswith(
            "no result within 8 s; nothing was under way, for other runs kept its roles busy:"
            f" worker.work for work_given 0 (for 8 s, and was told to stop) of run {first.id}"
        )
        await clock.advance(LONG)


async def test_one_that_swallows_the_wait_for_a_person_is_left_to_itself() -> None:
    clock = FakeClock()

    class Worker(Role):
        @on
        async def work(self, event: WorkGiven, ctx: RoleContext) -> WorkDone:
            try:
                return WorkDone(text=await ctx.ask_person("?", reply=str))
            except anyio.get_cancelled_exc_class():
                await shielded(clock)
                raise

    async with worker_swarm(Worker(), clock=clock).open(grace=5) as live:
        run = await live.submit(WorkGiven())
        await anyio.wait_all_tasks_blocked()
        await clock.advance(5)
        await run.answer(next(iter(run.questions)), "yes")
        result = await run.result()
        assert (result.output, result.warnings) == (WorkDone(text="yes"), (LEFT,))
        await clock.advance(LONG)


@pytest.mark.parametrize("cancelled", [True, False], ids=["cancelled", "open"])
async def test_a_handler_that_leaves_a_cancel_scope_open_ends_the_swarm_by_its_name(cancelled: bool) -> None:
    class Worker(Role):
        @on
        async def work(self, _event: WorkGiven) -> WorkDone:
            scope = anyio.CancelScope()
            scope.__enter__()
            if cancelled:
                scope.cancel()
            return WorkDone()

    with pytest.raises(RoleError, match="a handler of worker left a cancel scope or a task group open"):
        await worker_swarm(Worker()).run(WorkGiven())


class Held(Role):
    """Does not close what it has opened."""

    name = "worker"

    @asynccontextmanager
    async def lifespan(self) -> AsyncIterator[None]:
        try:
            yield
        finally:
            await anyio.sleep_forever()

    @on
    async def work(self, event: WorkGiven) -> WorkDone:
        return WorkDone(text=event.text)


async def test_what_a_role_does_not_close_in_time_is_cancelled_and_told() -> None:
    seen: list[Any] = []
    with pytest.raises(TimeoutError, match=r"worker.lifespan\(\) was not closed within 1 s"):
        async with worker_swarm(Held()).open(grace=0) as live:
            seen.append((await (await live.submit(WorkGiven(text="done"))).result()).output)
    assert seen == [WorkDone(text="done")]


async def test_an_error_of_the_block_comes_before_what_was_not_closed() -> None:
    with pytest.raises(ValueError, match="mine"):
        async with worker_swarm(Held()).open(grace=0):
            raise ValueError("mine")
