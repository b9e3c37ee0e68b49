"""Reading a run's events: what is shown, that it ends in every case, and that a reader holds up nobody."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import anyio
import pytest

from support.clock import FakeClock
from support.jobs import (
    JobGiven,
    PieceDone,
    WorkDone,
    WorkGiven,
    events_in,
    gatherer,
    job_swarm,
    kinds,
    read_all,
    worker_swarm,
)
from swarmbus import CLIENT, Event, EventTable, Lifecycle, Retry, Retryable, Role, RoleContext, Run, Swarm, on
from swarmbus.delivery.journal import MemoryJournal
from swarmbus.models import ScriptedModel

if TYPE_CHECKING:
    from collections.abc import AsyncIterator


class Obedient(Role):
    """Does what the event says."""

    name = "worker"

    @on
    async def work(self, event: WorkGiven) -> WorkDone | None:
        if event.text == "fail":
            raise ValueError("told to")
        if event.text == "hang":
            await anyio.sleep_forever()
        return WorkDone() if event.text == "succeed" else None


async def stop(run: Run[Any], clock: FakeClock, how: str) -> None:
    if how == "cancel":
        await run.cancel("enough")
    else:
        await clock.advance(60)


ENDS = [
    ("succeed", "", "run_done"),
    ("fail", "", "run_failed"),
    ("nothing", "", "run_stalled"),
    ("hang", "cancel", "run_cancelled"),
    ("hang", "time", "run_timed_out"),
]


@pytest.mark.parametrize(("order", "how", "last"), ENDS, ids=[end[2] for end in ENDS])
async def test_every_end_can_be_told_apart_and_ends_the_reading(order: str, how: str, last: str) -> None:
    clock, seen = FakeClock(), list[Any]()
    async with worker_swarm(Obedient(), clock=clock).open() as live, anyio.create_task_group() as group:
        run = await live.submit(WorkGiven(text=order), timeout=30)

        async def read() -> None:
            seen.extend(await read_all(run))

        group.start_soon(read)
        await anyio.wait_all_tasks_blocked()
        if how:
            await stop(run, clock, how)
        await anyio.wait_all_tasks_blocked()
        assert kinds(seen)[-1] == last
        assert kinds(await read_all(run)) == [last]  # who comes late is told the same
        assert run.status == last.removeprefix("run_")


async def test_a_drained_run_ends_the_reading_too() -> None:
    async with worker_swarm(Obedient(), clock=FakeClock()).open(grace=0) as live:
        run = await live.submit(WorkGiven(text="hang"))
        reading = run.events()
        await anyio.wait_all_tasks_blocked()
    assert kinds([item async for item in reading]) == ["delivery_started", "run_stopped"]


async def test_envelopes_and_what_happens_to_deliveries_are_shown_in_order() -> None:
    async with job_swarm().open() as live:
        run = await live.submit(JobGiven(pieces=(1, 2)))
        seen = await read_all(run)
    assert [kind for kind in kinds(seen) if kind != "JobGiven"] == [
        "delivery_started",
        "PieceDone",
        "delivery_committed",
        "delivery_started",
        "PieceDone",
        "delivery_committed",
        "delivery_started",
        "JobDone",
        "delivery_committed",
        "run_done",
    ]
    lifecycle = [item for item in seen if isinstance(item, Lifecycle)]
    assert [(item.role, item.handler, item.envelope, item.item) for item in lifecycle[:4]] == [
        ("worker", "work", 0, 0),
        ("worker", "work", 0, 0),
        ("worker", "work", 0, 1),
        ("worker", "work", 0, 1),
    ]


@pytest.mark.parametrize("journal", [None, MemoryJournal()], ids=["nothing kept", "journal"])
async def test_each_attempt_is_seen_to_begin_and_to_end_once(journal: MemoryJournal | None) -> None:
    class Worker(Role):
        concurrency = 3

        @on(JobGiven, each="pieces")
        async def work(self, piece: int, ctx: RoleContext) -> PieceDone:
            if piece == 0 and ctx.attempt == 1:
                raise Retryable("once more")
            if piece == 1:
                await anyio.sleep_forever()
            return PieceDone(piece=piece)

    swarm = job_swarm(Worker(), gatherer(quorum=2), retry=Retry(delay=0), journal=journal)
    async with swarm.open() as live:
        run = await live.submit(JobGiven(pieces=(0, 1, 2)))
        seen = [item for item in await read_all(run) if getattr(item, "handler", None) == "work"]
    assert {number: [item.type.partition("_")[2] for item in seen if item.item == number] for number in range(3)} == {
        0: ["started", "retried", "started", "committed"],
        1: ["started", "cancelled"],
        2: ["started", "committed"],
    }


async def test_what_came_too_late_to_count_is_not_shown() -> None:
    failing, gate = anyio.Event(), anyio.Event()

    class Slow(MemoryJournal):
        async def append(self, run_id: str, record: bytes) -> None:
            if json.loads(record)["record"] == "failed":
                failing.set()
                await gate.wait()
            await super().append(run_id, record)

    class Worker(Role):
        @on
        async def work(self, event: WorkGiven, ctx: RoleContext) -> WorkDone:
            await failing.wait()
            return WorkDone(text=await ctx.ask_person("when all is over?", reply=str))

    class Breaker(Role):
        @on
        async def work(self, event: WorkGiven) -> WorkDone:
            raise ValueError("before the question is recorded")

    table = EventTable(
        (CLIENT, WorkGiven, ("worker", "breaker")), (("worker", "breaker"), WorkDone, CLIENT), result=WorkDone
    )
    async with Swarm(Worker(), Breaker(), table=table, journal=Slow()).open() as live:
        run = await live.submit(WorkGiven())
        async with anyio.create_task_group() as group:

            async def open_gate() -> None:
                await anyio.wait_all_tasks_blocked()
                gate.set()

            group.start_soon(open_gate)
            seen = [(item.role, item.type) for item in await read_all(run)]
    assert sorted(seen[:2]) == [("breaker", "delivery_started"), ("worker", "delivery_started")]
    assert seen[2:] == [("worker", "delivery_cancelled"), ("breaker", "delivery_failed"), (None, "run_failed")]


async def test_the_loops_events_and_progress_are_shown() -> None:
    class Worker(Role):
        @on
        async def work(self, event: WorkGiven, ctx: RoleContext) -> WorkDone:
            ctx.progress("about to ask")
            return WorkDone(text=await ctx.ask("?"))

    async with worker_swarm(Worker(), model=ScriptedModel(["!"])).open() as live:
        run = await live.submit(WorkGiven())
        seen = kinds(await read_all(run))
    assert seen[:2] == ["delivery_started", "progress"]
    assert seen.index("agent_start") < seen.index("turn_start") < seen.index("agent_end") < seen.index("run_done")


async def test_a_slow_reader_holds_up_nobody_and_loses_the_oldest() -> None:
    async with job_swarm().open() as live:
        run = await live.submit(JobGiven(pieces=tuple(range(6000))))
        reader = run.events()
        first = await anext(reader)
        await run.result()
        seen = [first, *[item async for item in reader]]
    assert kinds(seen)[-1] == "run_done"
    assert len(seen) <= 10_001


async def test_leaving_a_reading_early_leaves_the_run_alone() -> None:
    async with job_swarm().open() as live:
        run = await live.submit(JobGiven(pieces=(1, 2, 3)))
        async for _ in run.events():
            break
        assert run._state.watchers == []
        assert (await run.result()).output.done == (1, 2, 3)


@pytest.mark.parametrize("how", ["break", "cancel"])
async def test_leaving_readings_early_in_tasks_of_their_own_leaves_the_run_alone(how: str) -> None:
    async def read(reading: AsyncIterator[Any]) -> None:
        with anyio.CancelScope() as scope:
            async for _ in reading:
                if how == "break":
                    break
                scope.cancel()

    async with worker_swarm(Obedient()).open() as live:
        run = await live.submit(WorkGiven(text="hang"))
        async with anyio.create_task_group() as group:
            for _ in range(10):
                group.start_soon(read, run.events())
        assert (run.status, run._state.watchers) == ("running", [])
        await run.cancel("enough")


async def test_many_readers_see_the_same() -> None:
    async with job_swarm().open() as live:
        run = await live.submit(JobGiven(pieces=(1, 2, 3)))
        readings = [run.events() for _ in range(3)]
        await run.result()
        seen = [events_in([item async for item in reading], Event) for reading in readings]
    assert seen[0] == seen[1] == seen[2]
    assert len(seen[0]) == 4


async def test_a_second_task_that_waits_on_one_iterator_is_refused() -> None:
    seen = list[Any]()
    async with worker_swarm(Obedient()).open() as live, anyio.create_task_group() as group:
        run = await live.submit(WorkGiven(text="hang"))
        reading = run.events()

        async def read() -> None:
            seen.extend([item async for item in reading])

        group.start_soon(read)
        await anyio.wait_all_tasks_blocked()
        with pytest.raises(RuntimeError, match="another task waits for these events already"):
            await anext(reading)
        await run.cancel("enough")
    assert kinds(seen)[-1] == "run_cancelled"


async def test_who_stopped_waiting_makes_way_for_another() -> None:
    async with worker_swarm(Obedient()).open() as live:
        run = await live.submit(WorkGiven(text="hang"))
        reading = run.events()
        with anyio.move_on_after(0):
            await anext(reading)
        await run.cancel("enough")
        assert kinds([item async for item in reading])[-1] == "run_cancelled"


async def test_what_is_under_way_is_counted_by_handler() -> None:
    async with worker_swarm(Obedient(), clock=FakeClock()).open() as live:
        run = await live.submit(WorkGiven(text="hang"))
        await anyio.wait_all_tasks_blocked()
        assert run.under_way == {"worker.work": 1}
        await run.cancel("enough")
        assert run.under_way == {}
