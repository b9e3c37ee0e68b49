"""Time limits: of a handler, of a handler in a thread, and of a run."""

from __future__ import annotations

import re
import threading
import time
from contextlib import suppress
from contextvars import ContextVar
from functools import partial
from typing import TYPE_CHECKING, Any

import anyio
import anyio.lowlevel
import anyio.to_thread
import pytest

from support.clock import FakeClock
from support.jobs import (
    JobGiven,
    PieceDone,
    WorkDone,
    Worker,
    WorkGiven,
    WorkSeen,
    gatherer,
    job_swarm,
    started,
    worker_swarm,
)
from swarmbus import (
    CLIENT,
    Budget,
    EventTable,
    LimitReached,
    Retry,
    Role,
    RoleContext,
    RunFailed,
    RunTimedOut,
    Swarm,
    on,
    tool,
)
from swarmbus.delivery.blocking import LONG, Blocked
from swarmbus.delivery.journal import MemoryJournal
from swarmbus.delivery.topology import Topology
from swarmbus.errors import HandlerTimedOut, RateLimited, RoleError
from swarmbus.live_swarm import INBOX_LIMIT
from swarmbus.messages import AssistantMessage, ModelReply, Usage
from swarmbus.models import ScriptedModel, call
from swarmbus.thinking.models.retry import DEFAULT_RETRIES, MOST_UNDER_WAY, Gate, retried

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from swarmbus import Run
    from swarmbus.messages import ModelRequest, StreamPart

ONE_ATTEMPT = Retry(attempts=1)


class CountingClock(FakeClock):
    """Counts how often it is asked."""

    def __init__(self) -> None:
        super().__init__()
        self.asked = 0

    def monotonic(self) -> float:
        self.asked += 1
        return super().monotonic()


async def test_many_time_limits_that_end_in_any_order_are_looked_after_in_few_steps() -> None:
    clock, count = CountingClock(), 16

    class Worker(Role):
        concurrency = count
        timeout = 100.0

        @on(JobGiven, each="pieces")
        async def work(self, piece: int, ctx: RoleContext) -> PieceDone:
            await clock.sleep_until(count - piece)
            ctx.progress()  # so that those begun first have the latest limit
            await anyio.sleep_forever()
            return PieceDone(piece=piece)

    swarm = job_swarm(Worker(), gatherer(partial="proceed"), clock=clock, retry=ONE_ATTEMPT)
    async with started(swarm, JobGiven(pieces=tuple(range(count)))) as (_, run):
        await clock.advance(100)
        before = clock.asked
        await clock.advance(count)
        assert clock.asked - before < 20 * count
        assert (await run.result()).output.failed == tuple(range(count))


class Sleeper(Role):
    """Never comes back."""

    name = "worker"

    @on
    async def work(self, event: WorkGiven) -> WorkDone:
        await anyio.sleep_forever()
        return WorkDone()


async def test_a_handler_may_take_ten_minutes_where_nothing_else_is_said() -> None:
    clock = FakeClock()
    async with started(worker_swarm(Sleeper(), clock=clock, retry=ONE_ATTEMPT), WorkGiven()) as (_, run):
        await clock.advance(599)
        assert run.status == "running"
        await clock.advance(1)
        with pytest.raises(RunFailed) as caught:
            await run.result()
    assert isinstance(caught.value.__cause__, HandlerTimedOut)
    assert "worker.work" in str(caught.value.__cause__)
    assert "longer than its 600 s for work_given" in str(caught.value.__cause__)


@pytest.mark.parametrize("level", ["handler", "role", "swarm"])
async def test_the_nearest_time_limit_counts(level: str) -> None:
    seconds = {"swarm": 30.0, "role": 20.0, "handler": 10.0}

    class Worker(Role):
        timeout = None if level == "swarm" else seconds["role"]

        @on(timeout=seconds["handler"] if level == "handler" else None)
        async def work(self, event: WorkGiven) -> WorkDone:
            await anyio.sleep_forever()
            return WorkDone()

    clock = FakeClock()
    swarm = worker_swarm(Worker(), clock=clock, timeout=seconds["swarm"], retry=ONE_ATTEMPT)
    async with started(swarm, WorkGiven()) as (_, run):
        await clock.advance(seconds[level] - 1)
        assert run.status == "running"
        await clock.advance(1)
        assert run.status == "failed"


async def test_progress_renews_the_limit() -> None:
    clock = FakeClock()

    class Worker(Role):
        @on(timeout=10)
        async def work(self, event: WorkGiven, ctx: RoleContext) -> WorkDone:
            for part in range(5):
                await clock.sleep_until(8.0 * (part + 1))
                ctx.progress(f"part {part}")
            return WorkDone()

    async with started(worker_swarm(Worker(), clock=clock), WorkGiven()) as (_, run):
        await clock.advance(40)
        assert (await run.result()).output == WorkDone()


async def test_a_timed_out_attempt_is_tried_again_as_another() -> None:
    clock, attempts = FakeClock(), list[int]()

    class Worker(Role):
        @on(timeout=10)
        async def work(self, event: WorkGiven, ctx: RoleContext) -> WorkDone:
            attempts.append(ctx.attempt)
            if ctx.attempt == 1:
                await anyio.sleep_forever()
            return WorkDone()

    async with started(worker_swarm(Worker(), clock=clock), WorkGiven()) as (_, run):
        await clock.advance(11)
        await run.result()
    assert attempts == [1, 2]


async def test_the_time_that_a_journal_takes_to_keep_a_start_does_not_count() -> None:
    clock = FakeClock()

    class Slow(MemoryJournal):
        async def append(self, run_id: str, record: bytes) -> None:
            if b'"started"' in record:
                await clock.sleep_until(clock.monotonic() + 12)
            await super().append(run_id, record)

    worker = Worker().named("worker", timeout=10, retry=ONE_ATTEMPT)
    async with started(job_swarm(worker, clock=clock, journal=Slow()), JobGiven(pieces=(1, 2, 3))) as (_, run):
        await clock.advance(4 * 12)
        assert (await run.result()).output.done == (1, 2, 3)


async def test_the_limit_hits_the_slow_handler_alone() -> None:
    clock = FakeClock()

    class Slow(Worker):
        name = "worker"
        concurrency = 4
        timeout = 10
        retry = ONE_ATTEMPT

        @on(JobGiven, each="pieces")
        async def work(self, piece: int) -> PieceDone:
            if piece == 2:
                await anyio.sleep_forever()
            return PieceDone(piece=piece)

    swarm = job_swarm(Slow(), gatherer(partial="proceed"), clock=clock)
    async with started(swarm, JobGiven(pieces=(1, 2, 3))) as (_, run):
        await clock.advance(10)
        output = (await run.result()).output
    assert (output.done, output.failed) == ((1, 3), (2,))


async def test_a_handler_that_swallows_its_cancellation_has_timed_out_all_the_same() -> None:
    clock = FakeClock()

    class Worker(Role):
        @on(timeout=10)
        async def work(self, event: WorkGiven) -> WorkDone:
            try:
                await anyio.sleep_forever()
            except anyio.get_cancelled_exc_class():
                return WorkDone(text="too late")
            return WorkDone()

    async with started(worker_swarm(Worker(), clock=clock, retry=ONE_ATTEMPT), WorkGiven()) as (_, run):
        await clock.advance(10)
        with pytest.raises(RunFailed):
            await run.result()


async def test_a_run_that_takes_too_long_names_what_was_busy() -> None:
    clock = FakeClock()
    async with started(worker_swarm(Sleeper(), clock=clock), WorkGiven(), timeout=30) as (_, run):
        await clock.advance(29)
        assert run.status == "running"
        await clock.advance(1)
        with pytest.raises(
            RunTimedOut, match=r"no result within 30 s; busy: worker.work for work_given 0 \(for 30 s\)"
        ) as caught:
            await run.result()
    assert caught.value.result.output is None


async def test_synchronous_handlers_run_in_threads_and_block_nobody() -> None:
    inside, go, names = threading.Semaphore(0), threading.Event(), list[str]()

    class Worker(Role):
        concurrency = 2

        @on(JobGiven, each="pieces")
        def work(self, piece: int) -> PieceDone:
            names.append(threading.current_thread().name)
            inside.release()
            assert go.wait(10)
            return PieceDone(piece=piece)

    async with started(job_swarm(Worker()), JobGiven(pieces=(1, 2))) as (_, run):
        for _ in range(2):  # both are under way at the same time, and this task still runs
            await anyio.to_thread.run_sync(inside.acquire)
        go.set()
        assert (await run.result()).output.done == (1, 2)
    assert threading.current_thread().name not in names


TENANT = ContextVar("TENANT", default="nobody")


@pytest.mark.parametrize("blocks", ["handlers", "tools"])
async def test_while_what_is_not_async_blocks_the_loop_goes_on_and_the_run_ends_on_time(blocks: str) -> None:
    clock, inside, go, beats, seen = FakeClock(), threading.Semaphore(0), threading.Event(), list[float](), list[str]()

    def block() -> None:
        """Block."""
        seen.append(TENANT.get())
        inside.release()
        assert go.wait(30)

    class Blocking(Worker):
        name = "worker"
        concurrency = 2

        @on(JobGiven, each="pieces")
        def work(self, piece: int) -> PieceDone:  # type: ignore[override]  # it is not async
            block()
            return PieceDone(piece=piece)

    class Asking(Worker):
        name = "worker"
        concurrency = 2
        tools = (tool(block),)

        @on(JobGiven, each="pieces")
        async def work(self, piece: int, ctx: RoleContext) -> PieceDone:  # type: ignore[override]  # it asks
            await ctx.ask("Block.")
            return PieceDone(piece=piece)

    async def beat() -> None:
        for number in range(1, 21):
            await clock.sleep_until(number / 20)
            beats.append(clock.monotonic())

    worker, token = Blocking() if blocks == "handlers" else Asking(), TENANT.set("mine")
    swarm = job_swarm(worker, clock=clock, model=ScriptedModel([call("block")] * 2))
    try:
        async with swarm.open(grace=0) as live, anyio.create_task_group() as group:
            run = await live.submit(JobGiven(pieces=(1, 2)), timeout=0.5)
            for _ in range(2):  # both are under way at the same time
                await anyio.to_thread.run_sync(inside.acquire)
            group.start_soon(beat)
            await clock.advance(1)
            with pytest.raises(RunTimedOut) as caught:
                await run.result()
    finally:
        go.set()
        TENANT.reset(token)
    assert beats == [number / 20 for number in range(1, 21)]
    assert caught.value.result.ended - caught.value.result.started == pytest.approx(0.5)
    assert seen == ["mine", "mine"]


async def test_a_thread_that_cannot_be_stopped_is_abandoned_and_its_result_discarded() -> None:
    clock, entered, go = FakeClock(), threading.Event(), threading.Event()

    class Worker(Role):
        @on(timeout=10)
        def work(self, event: WorkGiven, ctx: RoleContext) -> WorkDone:
            entered.set()
            if ctx.attempt == 1:
                assert go.wait(10)
            return WorkDone(text=f"from attempt {ctx.attempt}")

    try:
        async with started(worker_swarm(Worker(), clock=clock), WorkGiven()) as (_, run):
            await anyio.to_thread.run_sync(entered.wait)
            await clock.advance(11)
            result = await run.result()
    finally:
        go.set()
    assert result.output == WorkDone(text="from attempt 2")
    assert any("abandoned" in warning for warning in result.warnings)


async def test_progress_from_a_thread_renews_the_limit() -> None:
    clock, steps, done = FakeClock(), threading.Semaphore(0), threading.Semaphore(0)

    class Worker(Role):
        @on(timeout=10)
        def work(self, event: WorkGiven, ctx: RoleContext) -> WorkDone:
            for _ in range(3):
                assert steps.acquire(timeout=10)
                ctx.progress()
                done.release()
            return WorkDone()

    async with started(worker_swarm(Worker(), clock=clock, retry=ONE_ATTEMPT), WorkGiven()) as (_, run):
        for _ in range(3):
            await clock.advance(8)
            steps.release()
            await anyio.to_thread.run_sync(done.acquire)
        assert (await run.result()).output == WorkDone()


class Blocker(Role):
    """Blocks the event loop, and then says or brings something, or does not."""

    name = "worker"

    def __init__(self, brings: str = "nothing", seconds: float = 0.05) -> None:
        self.brings = brings
        self.seconds = seconds

    @on
    async def work(self, event: WorkGiven, ctx: RoleContext[WorkDone]) -> WorkDone | None:
        time.sleep(self.seconds)  # noqa: ASYNC251  # this is what must not be done
        if self.brings == "published":
            await ctx.publish(WorkDone())
        elif self.brings == "raised":
            raise ValueError("late")
        return WorkDone() if self.brings == "returned" else None


@pytest.mark.parametrize("brings", ["nothing", "returned", "published", "raised"])
async def test_a_run_whose_time_passes_while_a_handler_blocks_the_loop_has_timed_out(brings: str) -> None:
    with pytest.raises(RunTimedOut, match=r"no result within 0.02 s; busy: worker.work for work_given 0"):
        await worker_swarm(Blocker(brings)).run(WorkGiven(), timeout=0.02)


async def test_a_budget_of_seconds_is_kept_by_a_handler_that_blocks_the_loop_too() -> None:
    with pytest.raises(LimitReached, match=r"seconds: the budget of 0.02 s is over"):
        await worker_swarm(Blocker(), budget=Budget(seconds=0.02)).run(WorkGiven())


async def test_a_handler_that_blocks_the_loop_has_a_time_limit_all_the_same() -> None:
    swarm = worker_swarm(Blocker("returned").named("worker", timeout=0.02), retry=ONE_ATTEMPT)
    with pytest.raises(RunFailed, match=r"worker.work .* ran longer than its 0.02 s for work_given"):
        await swarm.run(WorkGiven())


async def test_whoever_blocks_the_loop_for_long_is_named_with_what_to_do() -> None:
    result = await worker_swarm(Blocker("returned", LONG + 0.05)).run(WorkGiven())
    (warning,) = result.warnings
    assert re.fullmatch(
        r"worker\.work \(.*test_delivery_timeouts\.py:\d+\) blocked the event loop for 1\.\d s: nothing else could go"
        r" on, and no time limit could act; await what it waits for, or run the blocking part with `await"
        r" anyio\.to_thread\.run_sync\(\.\.\.\)`",
        warning,
    )


def test_a_handler_that_blocks_the_loop_again_and_again_is_named_once() -> None:
    swarm = worker_swarm(Blocker())
    (handler,) = Topology(swarm.wiring, swarm.table).handlers
    blocked = Blocked()
    for seconds in (1.5, 3.04, 2):
        blocked.add(handler, seconds)
    (warning,) = blocked.warnings()
    assert "blocked the event loop 3 times, for up to 3.0 s" in warning


async def test_a_handler_that_takes_long_but_awaits_is_not_named() -> None:
    class Worker(Role):
        @on
        async def work(self, event: WorkGiven) -> WorkDone:
            await anyio.to_thread.run_sync(time.sleep, LONG + 0.05)
            return WorkDone()

    assert (await worker_swarm(Worker()).run(WorkGiven())).warnings == ()


async def test_a_synchronous_handler_that_sleeps_does_not_hold_up_the_runs_end() -> None:
    class Worker(Role):
        @on
        def work(self, event: WorkGiven) -> WorkDone:
            time.sleep(0.3)
            return WorkDone()

    with pytest.raises(RunTimedOut, match=r"no result within 0.02 s") as caught:
        await worker_swarm(Worker()).run(WorkGiven(), timeout=0.02)
    assert caught.value.result.ended - caught.value.result.started < 0.2


async def test_waiting_at_the_gate_of_a_model_server_does_not_count() -> None:
    clock, gate = FakeClock(), Gate()
    permits = [await gate.enter() for _ in range(MOST_UNDER_WAY)]

    class Worker(Role):
        @on(timeout=10)
        async def work(self, event: WorkGiven, ctx: RoleContext) -> WorkDone:
            async with anyio.create_task_group() as group:  # at the same time, and they leave one after the other
                for _ in range(3):
                    group.start_soon(ctx.ask, "Say something.")
            if event.text == "hangs":
                await anyio.sleep_forever()
            return WorkDone()

    for text, ending in (("", "done"), ("hangs", "failed")):
        swarm = worker_swarm(Worker(), clock=clock, retry=ONE_ATTEMPT, model=Gated(gate))
        async with started(swarm, WorkGiven(text=text)) as (_, run):
            await clock.advance(9)
            await clock.advance(100)
            assert run.status == "running"
            for _ in permits:
                gate.leave()
            await clock.advance(9.5)
            assert run.status == ("done" if not text else "running")
            await clock.advance(0.5)
            assert run.status == ending
            permits = [await gate.enter() for _ in range(MOST_UNDER_WAY)]


class Gated:
    """A model behind a gate, which says nothing of interest."""

    name = "gated"

    def __init__(self, gate: Gate) -> None:
        self.gate = gate

    def stream(self, request: ModelRequest) -> AsyncGenerator[StreamPart, None]:
        return retried(self._attempt, self.gate, DEFAULT_RETRIES)

    async def _attempt(self) -> AsyncGenerator[StreamPart, None]:
        yield ModelReply(AssistantMessage("something"), Usage(calls=1), "stop", self.name)


async def test_progress_beside_a_wait_that_does_not_count_gives_all_of_the_limit_again() -> None:
    clock, gate = FakeClock(), Gate()
    for _ in range(MOST_UNDER_WAY):
        await gate.enter()

    class Worker(Role):
        @on(timeout=10)
        async def work(self, event: WorkGiven, ctx: RoleContext) -> WorkDone:
            await clock.sleep_until(8)
            async with anyio.create_task_group() as group:
                group.start_soon(ctx.ask, "Say something.")
                await clock.sleep_until(9)
                ctx.progress()
            await anyio.sleep_forever()
            return WorkDone()

    swarm = worker_swarm(Worker(), clock=clock, retry=ONE_ATTEMPT, model=Gated(gate))
    async with started(swarm, WorkGiven()) as (_, run):
        await clock.advance(100)
        gate.leave()
        await clock.advance(9.5)
        assert run.status == "running"
        await clock.advance(0.5)
        assert run.status == "failed"


@pytest.mark.parametrize("does", ["comes to a gate", "leaves a gate"])
async def test_what_a_handler_left_behind_moves_the_time_limit_of_no_other(does: str) -> None:
    clock, gate, refuse = FakeClock(), Gate(), anyio.Event()
    if does == "leaves a gate":
        for _ in range(MOST_UNDER_WAY):
            await gate.enter()

    class Refusing(Gated):
        async def _attempt(self) -> AsyncGenerator[StreamPart, None]:
            await refuse.wait()
            if gate is self.gate:
                raise RateLimited("slowly", retry_after=30)
            yield ModelReply(AssistantMessage("never"))

    class Careless(Role):
        name = "worker"

        @on(JobGiven, each="pieces", timeout=10)
        async def work(self, piece: int, ctx: RoleContext) -> PieceDone:
            if piece == 2:
                await anyio.sleep_forever()
            behind.start_soon(ask, ctx)
            await clock.sleep_until(5)
            return PieceDone(piece=piece)

    async def ask(ctx: RoleContext) -> None:
        with suppress(RoleError):
            await ctx.ask("Say something.")

    swarm = job_swarm(Careless(), clock=clock, retry=ONE_ATTEMPT, model=Refusing(gate))
    async with anyio.create_task_group() as behind:
        async with started(swarm, JobGiven(pieces=(1, 2))) as (_, run):
            await clock.advance(10)
            if does == "leaves a gate":
                gate.leave()
            refuse.set()
            await clock.advance(4.5)
            assert run.status == "running"
            await clock.advance(0.5)
            assert run.status == "failed"
        behind.cancel_scope.cancel()


async def test_a_handler_that_hangs_after_it_waited_for_room_has_a_time_limit_still() -> None:
    clock, go = FakeClock(), anyio.Event()

    class Source(Role):
        @on(timeout=10)
        async def pour(self, event: WorkGiven, ctx: RoleContext[WorkSeen]) -> WorkDone:
            for _ in range(INBOX_LIMIT + 2):
                await ctx.publish(WorkSeen())
            await anyio.sleep_forever()
            return WorkDone()

    class Sink(Role):
        @on(timeout=1000)
        async def take(self, event: WorkSeen) -> None:
            await go.wait()

    table = EventTable((CLIENT, WorkGiven, "source"), ("source", WorkSeen, "sink"), ("source", WorkDone, CLIENT))
    swarm = Swarm(Source(), Sink(), table=table, clock=clock, retry=ONE_ATTEMPT)
    async with started(swarm, WorkGiven()) as (_, run):
        await clock.advance(100)
        go.set()
        await anyio.wait_all_tasks_blocked()
        assert run.status == "running"
        await clock.advance(10)
        assert [failure.error_type for failure in (await raised(run)).result.failures] == ["HandlerTimedOut"]


async def raised(run: Run[Any]) -> RunFailed:
    with pytest.raises(RunFailed) as caught:
        await run.result()
    return caught.value


async def test_as_many_synchronous_handlers_run_as_the_role_says_even_beside_threads_that_hang() -> None:
    inside, go = threading.Semaphore(0), threading.Event()

    class Worker(Role):
        concurrency = 60

        @on(JobGiven, each="pieces")
        def work(self, piece: int) -> PieceDone:
            inside.release()
            assert go.wait(10)
            return PieceDone(piece=piece)

    pieces = tuple(range(60))
    try:
        async with job_swarm(Worker()).open(grace=0) as live:
            for _ in range(2):
                run = await live.submit(JobGiven(pieces=pieces))
                for _ in pieces:
                    assert await anyio.to_thread.run_sync(partial(inside.acquire, timeout=5))
                await run.cancel()
    finally:
        go.set()


async def test_thirty_threads_that_hang_each_time_out_are_all_reported_and_hold_up_no_later_work() -> None:
    clock, inside, go = FakeClock(), threading.Semaphore(0), threading.Event()

    class Worker(Role):
        concurrency = 30

        @on(JobGiven, each="pieces", timeout=0.2)
        def work(self, piece: int) -> PieceDone:
            if piece < 30:
                inside.release()
                assert go.wait(30)
            return PieceDone(piece=piece)

    hanging, later = tuple(range(30)), tuple(range(30, 60))
    try:
        async with job_swarm(Worker(), gatherer(partial="proceed"), clock=clock, retry=ONE_ATTEMPT).open() as live:
            run = await live.submit(JobGiven(pieces=hanging))
            for _ in hanging:
                await anyio.to_thread.run_sync(inside.acquire)
            await clock.advance(0.2)
            result = await run.result()
            after = await (await live.submit(JobGiven(pieces=later))).result()
    finally:
        go.set()
    assert (result.output.failed, after.output.done) == (hanging, later)
    assert [failure.error_type for failure in result.failures] == ["HandlerTimedOut"] * 30
    assert sum("can't be stopped and was abandoned" in warning for warning in result.warnings) == 30


@pytest.mark.parametrize(
    ("timeout", "told"),
    [
        (None, r"worker\.work .* ran longer than its 10 s for work_given"),
        (5, r"no result within 5 s; busy: worker\.work for work_given 0 \(for 5 s\)"),
    ],
    ids=["its own limit", "the run's, which is shorter"],
)
async def test_a_handler_that_waits_for_its_own_queue_ends_with_its_time_and_is_named(
    timeout: float | None, told: str
) -> None:
    clock, answered = FakeClock(), anyio.Event()

    class Waiter(Role):
        name = "worker"

        @on(timeout=10)
        async def work(self, event: WorkGiven, ctx: RoleContext[WorkSeen]) -> WorkDone:
            await ctx.publish(WorkSeen())
            await answered.wait()
            return WorkDone()

        @on
        async def answer(self, event: WorkSeen) -> None:
            answered.set()

    swarm = worker_swarm(Waiter(), ("worker", WorkSeen, "worker"), clock=clock, retry=ONE_ATTEMPT)
    async with started(swarm, WorkGiven(), timeout=timeout) as (_, run):
        await clock.advance(10)
        with pytest.raises((RunFailed, RunTimedOut), match=told):
            await run.result()
