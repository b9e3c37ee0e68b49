"""Going on with a run from its records: what is left of its time limit, and taking back an end that is not final."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import anyio
import pytest

from support.clock import FakeClock
from support.jobs import JobDone, JobGiven, PieceDone, WorkDone, WorkGiven, WorkSeen, gatherer, job_swarm, worker_swarm
from swarmbus import (
    CLIENT,
    SYSTEM,
    Budget,
    EventTable,
    HandlerFailed,
    LimitReached,
    Retry,
    Retryable,
    Role,
    RoleContext,
    RunCancelled,
    RunFailed,
    RunStalled,
    RunTimedOut,
    Swarm,
    on,
)
from swarmbus.delivery.journal import MemoryJournal
from swarmbus.live_swarm import OPEN_ITEMS
from swarmbus.models import ScriptedModel

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from swarmbus import Run


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


async def test_a_run_that_timed_out_has_all_of_its_time_again() -> None:
    clock, journal = FakeClock(), MemoryJournal()
    await begin(clock, journal, 40)
    async with resumed(clock, journal) as run:
        await clock.advance(10)
    async with resumed(clock, journal) as run:
        await times_out_after(clock, run, 20)
    await clock.advance(4_920)
    async with resumed(clock, journal) as run:
        await clock.advance(29)
        assert (await run.result()).output == WorkDone()


class Faulty(Role):
    """Fails at pieces that are out of order, and notes what it does."""

    name = "worker"

    def __init__(self, *broken: int) -> None:
        self.broken = set(broken)
        self.begun: list[tuple[int, int]] = []

    @on(JobGiven, each="pieces")
    async def work(self, piece: int, ctx: RoleContext) -> PieceDone:
        self.begun.append((piece, ctx.attempt))
        if piece in self.broken:
            raise ValueError(f"{piece} is broken")
        return PieceDone(piece=piece)


JOB = JobGiven(pieces=(1, 2, 3, 4))


async def fail(swarm: Swarm[Any], match: str) -> None:
    """Start or resume a run that fails."""
    async with swarm.open() as live:
        run = await (live.resume("r") if await live.bus.keeps("r") else live.submit(JOB, run_id="r"))
        with pytest.raises(RunFailed, match=match):
            await run.result()


async def test_a_run_that_failed_tries_again_what_failed_it_and_does_the_rest() -> None:
    worker = Faulty(2, 4)
    swarm = job_swarm(worker, journal=MemoryJournal())
    await fail(swarm, "2 is broken")
    assert worker.begun == [(1, 1), (2, 1)]
    await fail(swarm, "2 is broken")
    worker.broken.remove(2)
    await fail(swarm, "4 is broken")
    worker.broken.clear()
    async with swarm.open() as live:
        result = await (await live.resume("r")).result()
    assert (result.output.done, result.failures) == ((1, 2, 3, 4), ())
    assert worker.begun == [(1, 1), (2, 1), (2, 2), (2, 3), (3, 1), (4, 1), (4, 2)]


async def test_it_does_so_while_the_swarm_is_open_and_the_old_handle_stays_what_it_was() -> None:
    worker = Faulty(2)
    async with job_swarm(worker, journal=MemoryJournal()).open() as live:
        failed = await live.submit(JOB, run_id="r")
        with pytest.raises(RunFailed):
            await failed.result()
        worker.broken.clear()
        again = await live.resume("r")
        assert (await again.result()).output.done == (1, 2, 3, 4)
        assert await live.resume("r") is again
        with pytest.raises(RunFailed):
            await failed.result()


async def test_submitting_it_again_does_not() -> None:
    worker = Faulty(2)
    swarm = job_swarm(worker, journal=MemoryJournal())
    await fail(swarm, "2 is broken")
    worker.broken.clear()
    with pytest.raises(RunFailed, match="2 is broken"):
        await swarm.run(JOB, run_id="r")


async def test_failures_that_left_a_join_short_of_its_quorum_are_tried_again_one_by_one() -> None:
    worker = Faulty(2, 4)
    swarm = job_swarm(worker, gatherer(quorum=3), journal=MemoryJournal())
    await fail(swarm, "2 is broken")
    worker.broken.clear()
    async with swarm.open() as live:
        assert (await (await live.resume("r")).result()).output.done == (1, 2, 3)


async def test_what_went_on_after_the_failure_is_not_done_again() -> None:
    seen, worker, go = list[str](), Faulty(1), anyio.Event()

    class Auditor(Role):
        @on
        async def note(self, event: JobGiven) -> WorkSeen:
            await go.wait()
            return WorkSeen(text="noted")

        @on
        async def see(self, event: WorkSeen) -> None:
            seen.append(event.text)

    rows = [(CLIENT, JobGiven, "auditor"), ("auditor", WorkSeen, "auditor")]
    swarm = job_swarm(worker, gatherer(), Auditor(), rows=rows, journal=MemoryJournal())
    async with swarm.open() as live:
        run = await live.submit(JOB, run_id="r")
        await anyio.wait_all_tasks_blocked()
        go.set()
        with pytest.raises(RunFailed, match="1 is broken"):
            await run.result()
    worker.broken.clear()
    async with swarm.open() as live:
        assert (await (await live.resume("r")).result()).output.done == (1, 2, 3, 4)
    assert seen == ["noted"]


async def test_two_failures_at_the_same_time_are_both_tried_again() -> None:
    class Slow(MemoryJournal):
        async def append(self, run_id: str, record: bytes) -> None:
            if b'"failed"' in record:
                await go.wait()
            await super().append(run_id, record)

    go, worker = anyio.Event(), Faulty(1, 2)
    swarm = job_swarm(worker.named("worker", concurrency=2), journal=Slow())
    async with swarm.open() as live:
        run = await live.submit(JobGiven(pieces=(1, 2)), run_id="r")
        await anyio.wait_all_tasks_blocked()
        go.set()
        with pytest.raises(RunFailed, match="1 is broken"):
            await run.result()
    worker.broken.clear()
    async with swarm.open() as live:
        assert (await (await live.resume("r")).result()).output.done == (1, 2)


async def test_a_failure_that_somebody_was_asked_to_mend_stays() -> None:
    worker = Faulty(2)

    class Mender(Role):
        @on
        async def mend(self, event: HandlerFailed) -> PieceDone | None:
            return None

    rows = [(SYSTEM, HandlerFailed, "mender"), ("mender", PieceDone, "gatherer")]
    journal = MemoryJournal()
    swarm = job_swarm(worker, gatherer(), Mender(), rows=rows, journal=journal)
    await fail(swarm, "2 is broken")
    worker.broken.clear()
    kept = list(journal.records["r"])
    await fail(swarm, "2 is broken")
    assert journal.records["r"] == kept


async def test_a_run_that_reached_a_limit_goes_on_under_a_higher_one() -> None:
    journal = MemoryJournal()

    class Asker(Role):
        name = "worker"

        @on
        async def work(self, event: WorkGiven, ctx: RoleContext) -> WorkDone:
            return WorkDone(text=await ctx.ask("One.") + await ctx.ask("Two."))

    def asking(calls: int, *replies: str) -> Swarm[WorkDone]:
        return worker_swarm(Asker(), model=ScriptedModel(list(replies)), budget=Budget(calls=calls), journal=journal)

    with pytest.raises(LimitReached):
        await asking(1, "a").run(WorkGiven(), run_id="r")
    async with asking(2, "b").open() as live:
        assert (await (await live.resume("r")).result()).output.text == "ab"


@pytest.mark.parametrize("ending", ["cancelled", "stalled", "hops"])
async def test_other_ends_are_final(ending: str) -> None:
    journal = MemoryJournal()

    class Worker(Role):
        @on
        async def work(self, event: WorkGiven) -> WorkDone | WorkGiven | None:
            if ending == "cancelled":
                await anyio.sleep_forever()
            return WorkGiven() if ending == "hops" else None

    budget = Budget(hops=3)
    swarm = worker_swarm(Worker(), ("worker", WorkGiven, "worker"), budget=budget, journal=journal)
    error = {"cancelled": RunCancelled, "stalled": RunStalled, "hops": LimitReached}[ending]
    async with swarm.open() as live:
        run = await live.submit(WorkGiven(), run_id="r")
        if ending == "cancelled":
            await run.cancel()
        with pytest.raises(error):
            await run.result()
    kept = list(journal.records["r"])
    async with swarm.open() as live:
        with pytest.raises(error):
            await (await live.resume("r")).result()
    assert journal.records["r"] == kept


async def crash(swarm: Swarm[Any], journal: MemoryJournal) -> None:
    """Start a run or go on with it as far as it gets, and let the process die then."""
    async with swarm.open(grace=0) as live:
        await (live.resume("r") if await live.bus.keeps("r") else live.submit(WorkGiven(), run_id="r"))
        await anyio.wait_all_tasks_blocked()
    assert b'"ended"' in journal.records["r"].pop()


class Deadly(Role):
    """Takes its process down at the first attempts, and fails then as often as it is told to."""

    name = "worker"
    retry = Retry(attempts=2, delay=20, jitter=0)

    def __init__(self, deaths: int, failures: int = 0) -> None:
        self.deaths = deaths
        self.failures = failures
        self.begun: list[int] = []

    @on
    async def work(self, event: WorkGiven, ctx: RoleContext) -> WorkDone:
        self.begun.append(ctx.attempt)
        if len(self.begun) <= self.deaths:
            await anyio.sleep_forever()
        if len(self.begun) <= self.deaths + self.failures:
            raise Retryable("again")
        return WorkDone()


async def test_a_delivery_that_three_crashes_took_is_not_tried_a_fourth_time() -> None:
    journal, worker = MemoryJournal(), Deadly(3)
    swarm = worker_swarm(worker, journal=journal)
    for _ in range(3):
        await crash(swarm, journal)
    async with swarm.open() as live:
        with pytest.raises(RunFailed, match="LostToCrash: 3 attempts were lost to crashes") as caught:
            await (await live.resume("r")).result()
    assert worker.begun == [1, 2, 3]
    assert [failure.error_type for failure in caught.value.result.failures] == ["LostToCrash"]


async def test_attempts_lost_to_a_crash_are_not_counted_as_tries() -> None:
    clock, journal, worker = FakeClock(), MemoryJournal(), Deadly(2, failures=1)
    swarm = worker_swarm(worker, journal=journal, clock=clock)
    for _ in range(2):
        await crash(swarm, journal)
    async with swarm.open() as live:
        run = await live.resume("r")
        await clock.advance(20)
        assert (await run.result()).output == WorkDone()
    assert worker.begun == [1, 2, 3, 4]


async def test_the_pause_before_another_attempt_outlasts_a_crash() -> None:
    clock, journal, worker = FakeClock(), MemoryJournal(), Deadly(0, failures=1)
    swarm = worker_swarm(worker, journal=journal, clock=clock)
    await crash(swarm, journal)
    await clock.advance(15)
    async with swarm.open() as live:
        run = await live.resume("r")
        await clock.advance(4)
        assert worker.begun == [1]
        await clock.advance(1)
        assert (await run.result()).output == WorkDone()
    assert worker.begun == [1, 2]


async def test_items_that_were_open_before_a_crash_are_counted_among_those_that_may_be() -> None:
    begun, go = list[int](), anyio.Event()

    class Worker(Role):
        @on(JobGiven, each="pieces")
        async def work(self, piece: int) -> WorkSeen:
            begun.append(piece)
            return WorkSeen(text=str(piece))

    class Checker(Role):
        @on
        async def check(self, event: WorkSeen) -> PieceDone:
            await go.wait()
            return PieceDone(piece=int(event.text))

    pieces = tuple(range(3 * OPEN_ITEMS))
    table = EventTable(
        (CLIENT, JobGiven, ("worker", "gatherer")),
        ("worker", WorkSeen, "checker"),
        ("checker", PieceDone, "gatherer"),
        ("gatherer", JobDone, CLIENT),
        result=JobDone,
    )
    swarm = Swarm(Worker(), gatherer(), Checker(), table=table, journal=MemoryJournal())
    for _ in range(2):
        async with swarm.open(grace=0) as live:
            await (live.resume("r") if begun else live.submit(JobGiven(pieces=pieces), run_id="r"))
            await anyio.wait_all_tasks_blocked()
        assert begun == list(range(OPEN_ITEMS))
    go.set()
    async with swarm.open() as live:
        assert (await (await live.resume("r")).result()).output.done == pieces


async def test_attempts_that_a_drain_cut_are_neither_lost_to_a_crash_nor_counted_as_tries() -> None:
    journal, attempts = MemoryJournal(), list[int]()
    gate = anyio.Event()

    class Worker(Role):
        retry = Retry(attempts=2, delay=0)

        @on
        async def work(self, event: WorkGiven, ctx: RoleContext) -> WorkDone:
            attempts.append(ctx.attempt)
            await gate.wait()
            if ctx.attempt == 6:
                raise Retryable("again")
            return WorkDone()

    swarm = worker_swarm(Worker(), journal=journal)
    for _ in range(5):
        async with swarm.open(grace=0) as live:
            await live.submit(WorkGiven(), run_id="r")
            await anyio.wait_all_tasks_blocked()
    gate.set()
    assert (await swarm.run(WorkGiven(), run_id="r")).output == WorkDone()
    assert attempts == [1, 2, 3, 4, 5, 6, 7]
