"""Another attempt at a delivery: when there is one, when it comes, and what it is told."""

from __future__ import annotations

import anyio
import pytest

from support.clock import FakeClock
from support.jobs import JobGiven, PieceDone, WorkDone, WorkGiven, gatherer, job_swarm, started, worker_swarm
from swarmbus import Retry, Retryable, Role, RoleContext, RunFailed, on


def failing(times: int, error: type[Exception], retry: Retry | None = None) -> tuple[Role, list[int]]:
    """A worker that fails so often before it succeeds, and the numbers of its attempts."""
    attempts: list[int] = []

    class Worker(Role):
        @on(retry=retry)
        async def work(self, event: WorkGiven, ctx: RoleContext) -> WorkDone:
            attempts.append(ctx.attempt)
            if len(attempts) <= times:
                raise error("not now")
            return WorkDone(text="done")

    return Worker(), attempts


async def test_a_retryable_error_is_tried_again_up_to_three_times_with_growing_pauses() -> None:
    worker, attempts = failing(2, Retryable)
    clock = FakeClock()
    async with started(worker_swarm(worker, clock=clock, retry=Retry(jitter=0)), WorkGiven()) as (_, run):
        assert attempts == [1]
        await clock.advance(0.9)
        assert attempts == [1]
        await clock.advance(0.1)
        assert attempts == [1, 2]
        await clock.advance(1.9)
        assert attempts == [1, 2]
        await clock.advance(0.1)
        assert attempts == [1, 2, 3]
        assert (await run.result()).output == WorkDone(text="done")


async def test_the_only_error_of_a_task_group_is_the_handler_s() -> None:
    attempts: list[int] = []

    class Worker(Role):
        @on(retry=Retry(attempts=2, delay=0))
        async def work(self, event: WorkGiven, ctx: RoleContext) -> WorkDone:
            attempts.append(ctx.attempt)
            async with anyio.create_task_group() as group:
                group.start_soon(self.fail)
            return WorkDone()

        async def fail(self) -> None:
            raise Retryable("not now")

    with pytest.raises(RunFailed, match=r"worker\.work for work_given .*: Retryable: not now") as caught:
        await worker_swarm(Worker()).run(WorkGiven())
    assert attempts == [1, 2]
    assert isinstance(caught.value.__cause__, Retryable)


async def test_when_the_attempts_are_used_up_the_last_error_is_the_cause() -> None:
    worker, attempts = failing(9, Retryable, Retry(attempts=2, delay=0))
    with pytest.raises(RunFailed) as caught:
        await worker_swarm(worker).run(WorkGiven())
    assert attempts == [1, 2]
    assert isinstance(caught.value.__cause__, Retryable)
    assert [failure.attempt for failure in caught.value.result.failures] == [2]


async def test_an_error_that_is_not_retryable_is_final() -> None:
    worker, attempts = failing(9, ValueError)
    with pytest.raises(RunFailed):
        await worker_swarm(worker).run(WorkGiven())
    assert attempts == [1]


async def test_a_retry_names_the_errors_worth_another_attempt() -> None:
    worker, attempts = failing(1, ValueError, Retry(delay=0, on=(ValueError,)))
    await worker_swarm(worker).run(WorkGiven())
    assert attempts == [1, 2]


async def test_a_delivery_in_back_off_steps_aside_for_those_behind_it() -> None:
    clock, order = FakeClock(), list[int]()

    class Worker(Role):
        @on(JobGiven, each="pieces")
        async def work(self, piece: int, ctx: RoleContext) -> PieceDone:
            order.append(piece)
            if piece == 0 and ctx.attempt == 1:
                raise Retryable("later")
            return PieceDone(piece=piece)

    async with started(job_swarm(Worker(), clock=clock), JobGiven(pieces=(0, 1, 2))) as (_, run):
        assert order == [0, 1, 2]
        await clock.advance(1)
        assert (await run.result()).output.done == (0, 1, 2)
    assert order == [0, 1, 2, 0]


async def test_every_item_has_attempts_of_its_own() -> None:
    seen: dict[int, list[int]] = {}

    class Worker(Role):
        retry = Retry(attempts=2, delay=0)

        @on(JobGiven, each="pieces")
        async def work(self, piece: int, ctx: RoleContext) -> PieceDone:
            seen.setdefault(piece, []).append(ctx.attempt)
            if piece % 2 or ctx.attempt == 1:
                raise Retryable("again")
            return PieceDone(piece=piece)

    swarm = job_swarm(Worker(), gatherer(partial="proceed"))
    output = (await swarm.run(JobGiven(pieces=(0, 1, 2)))).output
    assert (output.done, output.failed) == ((0, 2), (1,))
    assert seen == {0: [1, 2], 1: [1, 2], 2: [1, 2]}


async def test_a_retry_waits_for_no_other_run() -> None:
    clock, attempts = FakeClock(), list[str]()

    class Worker(Role):
        @on
        async def work(self, event: WorkGiven, ctx: RoleContext) -> WorkDone:
            attempts.append(f"{event.text}{ctx.attempt}")
            if event.text == "a" and ctx.attempt == 1:
                raise Retryable("later")
            return WorkDone()

    async with worker_swarm(Worker(), clock=clock).open() as live:
        slow = await live.submit(WorkGiven(text="a"))
        quick = await live.submit(WorkGiven(text="b"))
        with anyio.fail_after(5):
            await quick.result()
        await clock.advance(60)
        await slow.result()
    assert attempts == ["a1", "b1", "a2"]
