"""How runs end, and what the one who waits is told."""

from __future__ import annotations

import gc
import re

import anyio
import anyio.lowlevel
import pytest
from pydantic import BaseModel

from support.clock import FakeClock
from support.jobs import JobGiven, PieceDone, WorkDone, WorkGiven, WorkSeen, gatherer, job_swarm, started, worker_swarm
from swarmbus import (
    CLIENT,
    Event,
    EventTable,
    External,
    Joined,
    Role,
    RoleContext,
    RunFailed,
    RunStalled,
    Swarm,
    SwarmbusError,
    join,
    on,
)
from swarmbus.errors import SubmitError


class Step(BaseModel, frozen=True):
    id: str
    text: str


class Picky(Role):
    """Fails on the second piece."""

    name = "worker"

    @on(JobGiven, each="pieces")
    async def work(self, piece: int) -> PieceDone:
        if piece == 2:
            raise ValueError("x")
        return PieceDone(piece=piece)


async def test_a_handler_that_raises_fails_the_run_with_its_error_as_the_cause() -> None:
    with pytest.raises(RunFailed, match=r"worker\.work for job_given .*/0 item 1 \(2\): ValueError: x") as caught:
        await job_swarm(Picky()).run(JobGiven(pieces=(1, 2, 3)), run_id="r")
    assert repr(caught.value.__cause__) == "ValueError('x')"
    (failure,) = caught.value.result.failures
    assert (failure.role, failure.handler, failure.event_id, failure.item) == ("worker", "work", "r/0", 1)
    assert caught.value.result.output is None


@pytest.mark.parametrize("error", [KeyError("odd"), StopAsyncIteration(), AssertionError("no")], ids=repr)
async def test_whatever_error_a_handler_raises_is_a_failure_and_no_hang(error: Exception) -> None:
    class Worker(Role):
        @on
        async def work(self, event: WorkGiven) -> WorkDone:
            raise error

    with anyio.fail_after(5), pytest.raises(RunFailed) as caught:
        await worker_swarm(Worker()).run(WorkGiven())
    assert caught.value.__cause__ is error


async def test_a_handler_that_cancels_itself_has_failed() -> None:
    class Worker(Role):
        @on
        async def work(self, event: WorkGiven) -> WorkDone:
            raise anyio.get_cancelled_exc_class()

    with anyio.fail_after(5), pytest.raises(RunFailed):
        await worker_swarm(Worker()).run(WorkGiven())


@pytest.mark.parametrize(("tasks", "cause"), [(1, ValueError), (2, ExceptionGroup)])
async def test_errors_in_a_group_of_the_handlers_own_stay_its_own(tasks: int, cause: type[Exception]) -> None:
    class Worker(Role):
        @on
        async def work(self, event: WorkGiven) -> WorkDone:
            async with anyio.create_task_group() as group:
                for _ in range(tasks):
                    group.start_soon(self.fail)
            return WorkDone()

        async def fail(self) -> None:
            with anyio.CancelScope(shield=True):
                await anyio.lowlevel.checkpoint()
            raise ValueError("inside")

    with pytest.raises(RunFailed) as caught:
        await worker_swarm(Worker()).run(WorkGiven())
    assert type(caught.value.__cause__) is cause


async def test_a_callers_own_error_leaves_the_block_as_it_is() -> None:
    with pytest.raises(KeyError, match="mine"):
        async with started(job_swarm(), JobGiven(pieces=(1,))):
            raise KeyError("mine")


async def test_the_result_ends_the_run_when_it_is_published_early() -> None:
    clock, ticks = FakeClock(), list[float]()

    class Worker(Role):
        @on
        async def work(self, event: WorkGiven, ctx: RoleContext[WorkDone]) -> None:
            await ctx.publish(WorkDone(text="early"))
            await anyio.sleep_forever()

    class Auditor(Role):
        @on
        async def note(self, event: WorkGiven) -> None:
            await clock.sleep_until(5)
            ticks.append(clock.monotonic())

    table = EventTable((CLIENT, WorkGiven, ("worker", "auditor")), ("worker", WorkDone, CLIENT), result=WorkDone)
    async with started(Swarm(Worker(), Auditor(), table=table, clock=clock), WorkGiven()) as (_, run):
        assert run.status == "running"  # the auditor, which can't reach the result, may finish within the grace time
        await clock.advance(5)
        assert ((await run.result()).output.text, ticks) == ("early", [5])


async def test_what_outlasts_the_grace_time_is_cut_and_named() -> None:
    clock = FakeClock()

    class Worker(Role):
        @on
        async def work(self, event: WorkGiven) -> WorkDone:
            return WorkDone()

    class Auditor(Role):
        @on
        async def note(self, event: WorkGiven) -> None:
            await anyio.sleep_forever()

    table = EventTable((CLIENT, WorkGiven, ("worker", "auditor")), ("worker", WorkDone, CLIENT), result=WorkDone)
    async with started(Swarm(Worker(), Auditor(), table=table, clock=clock), WorkGiven()) as (_, run):
        await clock.advance(10)
        result = await run.result()
    assert result.warnings == ("cut when the run ended: auditor.note for work_given 0",)


async def test_a_bystanders_failure_is_a_warning() -> None:
    class Worker(Role):
        @on
        async def work(self, event: WorkGiven) -> WorkDone:
            return WorkDone()

    class Auditor(Role):
        @on
        async def note(self, event: WorkGiven) -> None:
            raise ValueError("not important")

    table = EventTable((CLIENT, WorkGiven, ("auditor", "worker")), ("worker", WorkDone, CLIENT), result=WorkDone)
    result = await Swarm(Worker(), Auditor(), table=table).run(WorkGiven())
    assert [failure.role for failure in result.failures] == ["auditor"]
    assert "failed, but nothing waited for it" in result.warnings[0]


async def test_without_a_result_a_run_is_done_when_it_is_quiet() -> None:
    seen: list[str] = []

    class Worker(Role):
        @on
        async def work(self, event: WorkGiven) -> WorkSeen | None:
            return WorkSeen(text=event.text)

        @on
        async def see(self, event: WorkSeen) -> None:
            seen.append(event.text)

    table = EventTable((CLIENT, WorkGiven, "worker"), ("worker", WorkSeen, "worker"))
    result = await Swarm(Worker(), table=table).run(WorkGiven(text="a"))
    assert [result.output, seen] == [None, ["a"]]


async def test_a_run_with_nothing_left_to_do_stalls_at_once_and_names_what_its_join_lacks() -> None:
    class Silent(Role):
        name = "worker"

        @on(JobGiven, each="pieces")
        async def work(self, piece: int) -> PieceDone | None:
            return PieceDone(piece=piece) if piece != 2 else None

    with (
        anyio.fail_after(5),
        pytest.raises(RunStalled) as caught,
    ):
        await job_swarm(Silent()).run(JobGiven(pieces=(1, 2, 3)), run_id="r")
    told = re.sub(r"\([^ ]*/([a-z_]+\.py):\d+\)", r"(\1)", str(caught.value))
    assert told == (
        "run r stalled: join gatherer.gather (jobs.py) for job_given 0 has 2 piece_done and lacks item 1 (2) of"
        " worker.work; piece_done was to come from worker.work (test_delivery_endings.py). Publish it for each of them,"
        ' or say partial="proceed" to go on without'
    )


async def test_what_a_join_lacks_is_named_by_item_key_and_value_and_who_was_to_publish_it() -> None:
    class Planned(Event):
        steps: tuple[Step, ...]

        @property
        def keys(self) -> tuple[str, ...]:
            return (*(step.id for step in self.steps), "later")

    class StepSeen(Event):
        id: str

    class StepDone(Event):
        id: str

    class Worker(Role):
        @on(Planned, each="steps")
        async def begin(self, step: Step) -> StepSeen:
            return StepSeen(id=step.id)

    class Finisher(Role):
        @on
        async def finish(self, event: StepSeen) -> StepDone | None:
            return StepDone(id="s0") if event.id == "s0" else None

    class Gatherer(Role):
        @join(StepDone, per=Planned, key="id", expect=lambda planned: planned.keys)
        async def gather(self, event: Planned, steps: Joined[StepDone]) -> WorkDone:
            return WorkDone()

    table = EventTable(
        (CLIENT, Planned, ("worker", "gatherer")),
        ("worker", StepSeen, "finisher"),
        ("finisher", StepDone, "gatherer"),
        ("gatherer", WorkDone, CLIENT),
        result=WorkDone,
    )
    steps = tuple(Step(id=f"s{number}", text="read" * 50 * number) for number in range(13))
    with pytest.raises(RunStalled) as caught:
        await Swarm(Worker(), Finisher(), Gatherer(), table=table).run(Planned(steps=steps))
    told = str(caught.value)
    assert re.search(
        r"has 1 step_done and lacks item 1 \(Step\(id='s1', text='r[^ ]*\.\.\.[^ ]*d'\), key 's1'\), item 2 .*"
        r" of worker\.begin and 3 more; step_done was to come from finisher\.finish \(",
        told,
    )
    assert len(told) < 1500


async def test_a_promised_key_that_never_came_is_named() -> None:
    class Worker(Role):
        @on
        async def work(self, event: JobGiven) -> PieceDone | None:
            return PieceDone(piece=1)

    with pytest.raises(RunStalled, match="has 1 piece_done and lacks the promised key '2', the promised key '3'; "):
        await job_swarm(Worker(), gatherer(key="piece", expect="pieces")).run(JobGiven(pieces=(1, 2, 3)))


async def test_an_event_that_reached_nobody_is_named_when_the_run_stalls() -> None:
    class Worker(Role):
        @on
        async def work(self, event: WorkGiven) -> WorkDone | None:
            return None

    said = r"nothing is left to do, and no work_done was published; it was to come from worker\.work \(.*\.py:\d+\)"
    with pytest.raises(RunStalled, match=said):
        await worker_swarm(Worker()).run(WorkGiven())


async def test_what_was_handled_last_and_published_nothing_is_named_when_the_run_stalls() -> None:
    class Worker(Role):
        @on
        async def work(self, event: WorkGiven) -> WorkSeen | WorkDone:
            return WorkSeen()

        @on
        async def see(self, event: WorkSeen) -> WorkDone | None:
            return None

    said = r"; worker\.see \(.*\.py:\d+\), at work on work_seen 1, was the last to publish nothing$"
    with pytest.raises(RunStalled, match=said):
        await worker_swarm(Worker(), ("worker", WorkSeen, "worker")).run(WorkGiven())


async def test_a_busy_role_is_no_stall() -> None:
    clock = FakeClock()

    class Worker(Role):
        @on
        async def work(self, event: WorkGiven) -> WorkDone:
            await clock.sleep_until(300)
            return WorkDone()

    async with started(worker_swarm(Worker(), clock=clock), WorkGiven()) as (_, run):
        await clock.advance(299)
        assert run.status == "running"
        await clock.advance(1)
        assert (await run.result()).output == WorkDone()


class Approved(Event):
    by: str


async def test_a_run_waits_for_an_event_that_only_an_outside_program_can_bring() -> None:
    class Worker(Role):
        @on
        async def work(self, event: WorkGiven) -> WorkSeen:
            return WorkSeen()

        @on
        async def finish(self, event: Approved) -> WorkDone:
            return WorkDone(text=event.by)

    desk = External("desk")
    rows = ("worker", WorkSeen, desk), (desk, Approved, "worker")
    async with started(worker_swarm(Worker(), *rows), WorkGiven()) as (_, run):
        assert run.status == "waiting"
        await run.send(Approved(by="Ann"), source=desk, cause=1)
        assert (await run.result()).output.text == "Ann"


async def test_an_event_sent_to_a_finished_run_is_refused() -> None:
    class Worker(Role):
        @on
        async def work(self, event: WorkGiven) -> WorkDone:
            return WorkDone()

    async with started(worker_swarm(Worker()), WorkGiven()) as (_, run):
        await run.result()
        with pytest.raises(SwarmbusError, match="is over: done"):
            await run.send(WorkGiven())


async def test_an_event_that_the_table_does_not_accept_is_refused_and_makes_no_run() -> None:
    async with job_swarm().open() as live:
        with pytest.raises(SubmitError, match="does not accept piece_done from the client; it accepts: job_given"):
            await live.submit(PieceDone(piece=1), run_id="r")
        assert live.bus.runs == {}
        run = await live.submit(JobGiven(pieces=(1,)), run_id="r")
        assert (await run.result()).output.done == (1,)


async def test_events_to_the_client_other_than_the_result_are_progress() -> None:
    class Worker(Role):
        @on
        async def work(self, event: WorkGiven) -> tuple[WorkSeen | WorkDone, ...]:
            return (WorkSeen(text="half"), WorkDone(text="whole"))

    result = await worker_swarm(Worker(), ("worker", WorkSeen, CLIENT)).run(WorkGiven())
    assert result.output == WorkDone(text="whole")


async def test_nothing_is_lost_to_the_garbage_collector() -> None:
    class Worker(Role):
        concurrency = 8

        @on(JobGiven, each="pieces")
        async def work(self, piece: int) -> PieceDone:
            gc.collect(0)
            await anyio.lowlevel.checkpoint()
            if piece % 5 == 4:
                raise ValueError("every fifth")
            return PieceDone(piece=piece)

    output = (await job_swarm(Worker(), gatherer(partial="proceed")).run(JobGiven(pieces=tuple(range(200))))).output
    assert (len(output.done), len(output.failed)) == (160, 40)


async def test_what_tasks_of_a_handler_publish_arrives_whatever_is_collected(caplog: pytest.LogCaptureFixture) -> None:
    class Worker(Role):
        @on(JobGiven, each="pieces")
        async def work(self, piece: int, ctx: RoleContext[PieceDone]) -> None:
            async with anyio.create_task_group() as group:
                try:
                    await self.fail(piece)
                except ValueError as error:
                    group.start_soon(ctx.publish, PieceDone(piece=error.args[0]))
                gc.collect()

        async def fail(self, piece: int) -> None:
            raise ValueError(piece)

    gc.collect()
    gc.freeze()  # what the other tests hold need not be looked at
    try:
        output = (await job_swarm(Worker()).run(JobGiven(pieces=tuple(range(200))))).output
    finally:
        gc.unfreeze()
    assert output.done == tuple(range(200))
    assert caplog.records == []  # an event loop logs what became of tasks that nobody held


async def test_many_runs_share_a_swarm_and_nothing_crosses_or_stays() -> None:
    async with job_swarm().open() as live:
        jobs = [tuple(range(marker * 100, marker * 100 + 20)) for marker in range(20)]
        runs = [await live.submit(JobGiven(pieces=job)) for job in jobs]
        assert [(await run.result()).output.done for run in runs] == jobs
        assert live.bus.runs == {}


def test_a_swarm_runs_from_code_that_is_not_async() -> None:
    assert job_swarm().run_sync(JobGiven(pieces=(3, 4)), timeout=30).output.done == (3, 4)
