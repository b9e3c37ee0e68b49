"""A full inbox slows those who publish to it, and nobody else; waiting can't become a deadlock."""

from __future__ import annotations

import gc
import sys
import weakref
from dataclasses import dataclass
from typing import Any

import anyio
import anyio.lowlevel
import pytest
from pydantic import BaseModel

from support.clock import FakeClock
from support.jobs import (
    Gatherer,
    JobDone,
    JobGiven,
    PieceDone,
    WorkDone,
    WorkGiven,
    WorkSeen,
    gatherer,
    job_swarm,
    started,
    worker_swarm,
)
from swarmbus import (
    CLIENT,
    SYSTEM,
    Event,
    EventTable,
    External,
    HandlerFailed,
    Joined,
    LiveSwarm,
    Role,
    RoleContext,
    Run,
    RunCancelled,
    RunStopped,
    Swarm,
    join,
    on,
)
from swarmbus.delivery.pacing import BACKLOG
from swarmbus.errors import SubmitError
from swarmbus.live_swarm import INBOX_LIMIT, OPEN_ITEMS
from swarmbus.records import Envelope


class Ping(Event):
    number: int


class Pong(Event):
    number: int


class Batch(Event):
    numbers: tuple[int, ...]


class Answers(Event):
    numbers: tuple[int, ...]


class Source(Role):
    """Publishes as many events, one after the other, as it is told."""

    def __init__(self, count: int) -> None:
        self.count = count
        self.published: list[int] = []

    @on
    async def pour(self, event: WorkGiven, ctx: RoleContext[Ping]) -> None:
        for number in range(self.count):
            await ctx.publish(Ping(number=number))
            self.published.append(number)


class Sink(Role):
    """Takes an event at a time and keeps how far the source was ahead of it."""

    def __init__(self, source: Source, last: int) -> None:
        self.source = source
        self.last = last
        self.seen: list[int] = []
        self.ahead: list[int] = []

    @on
    async def take(self, event: Ping) -> WorkDone | None:
        await anyio.lowlevel.checkpoint()
        self.seen.append(event.number)
        self.ahead.append(len(self.source.published) - len(self.seen))
        return WorkDone() if event.number == self.last else None


POURING = EventTable(
    (CLIENT, WorkGiven, "source"), ("source", Ping, "sink"), ("sink", WorkDone, CLIENT), result=WorkDone
)


class PickySink(Sink):
    """Says of each event whether it takes it."""

    name = "sink"

    @on(Ping, when=lambda ping: ping.number >= 0)
    async def take(self, event: Ping) -> WorkDone | None:
        return await super().take(event)


@pytest.mark.parametrize("kind", [Sink, PickySink])
async def test_ten_thousand_events_to_a_slow_role_are_all_handled_and_slow_their_publisher(kind: type[Sink]) -> None:
    source = Source(10_000)
    sink = kind(source, 9_999)
    await Swarm(source, sink, table=POURING).run(WorkGiven(), timeout=60)
    assert sink.seen == list(range(10_000))
    assert INBOX_LIMIT / 2 < max(sink.ahead) <= INBOX_LIMIT


async def test_a_role_whose_joins_an_event_opens_slows_its_publisher_too() -> None:
    class Ponger(Role):
        concurrency = 100

        @on
        async def pong(self, event: Ping) -> Pong:
            return Pong(number=event.number)

    class Joiner(Sink):
        name = "sink"

        @join(Pong, per=Ping)
        async def take(  # type: ignore[override]  # it waits for more
            self, event: Ping, pongs: Joined[Pong]
        ) -> WorkDone | None:
            for _ in range(5):
                await anyio.lowlevel.checkpoint()
            return await super().take(event)

    source = Source(3 * INBOX_LIMIT)
    table = EventTable(
        (CLIENT, WorkGiven, "source"),
        ("source", Ping, ("ponger", "sink")),
        ("ponger", Pong, "sink"),
        ("sink", WorkDone, CLIENT),
        result=WorkDone,
    )
    sink = Joiner(source, 3 * INBOX_LIMIT - 1)
    await Swarm(source, Ponger(), sink, table=table).run(WorkGiven(), timeout=60)
    assert INBOX_LIMIT / 2 < max(sink.ahead) <= 2 * INBOX_LIMIT


async def test_events_of_a_handler_that_publishes_on_and_on_are_let_go_once_they_are_handled() -> None:
    kept: list[weakref.ref[Ping]] = []
    alive: list[int] = []

    class Keeping(Source):
        name = "source"

        @on
        async def pour(self, event: WorkGiven, ctx: RoleContext[Ping]) -> None:
            for number in range(self.count):
                ping = Ping(number=number)
                kept.append(weakref.ref(ping))
                await ctx.publish(ping)
                if not number % INBOX_LIMIT:
                    alive.append(sum(reference() is not None for reference in kept))

    source = Keeping(4 * INBOX_LIMIT + 1)
    await Swarm(source, Sink(source, 4 * INBOX_LIMIT), table=POURING).run(WorkGiven(), timeout=60)
    assert len(alive) == 5
    assert max(alive) <= INBOX_LIMIT + 2


async def test_of_an_event_that_was_handled_one_mark_is_kept_and_that_while_its_publisher_goes_on() -> None:
    """The mark, 16 bytes, is by what another attempt at the publisher would know the event."""
    blocks: list[int] = []  # of memory

    class Measuring(Role):
        name = "sink"

        @on
        async def take(self, event: Ping) -> WorkDone | None:
            await anyio.lowlevel.checkpoint()
            if event.number in (3000, 8999):  # both times the inbox is full
                gc.collect()
                blocks.append(sys.getallocatedblocks())
            return WorkDone() if event.number == 9_999 else None

    class Pouring(Source):
        name = "source"

        @on
        async def pour(self, event: WorkGiven, ctx: RoleContext[Ping]) -> None:
            for number in range(self.count):
                await ctx.publish(Ping(number=number))

    await Swarm(Pouring(10_000), Measuring(), table=POURING).run(WorkGiven(), timeout=60)
    assert blocks[1] - blocks[0] < 1.5 * 5999


@pytest.mark.parametrize("sender", [CLIENT, External("desk")], ids=["client", "external"])
async def test_who_sends_from_outside_is_slowed_too(sender: Any) -> None:
    source = Source(0)
    sink = Sink(source, 3 * INBOX_LIMIT)
    table = EventTable(*POURING.rows, (sender, Ping, "sink"), result=WorkDone)
    async with Swarm(source, sink, table=table).open() as live:
        run = await live.submit(WorkGiven())
        for number in range(3 * INBOX_LIMIT + 1):
            await run.send(Ping(number=number), source=sender)
            source.published.append(number)
        await run.result()
    assert sink.seen == list(range(3 * INBOX_LIMIT + 1))
    assert max(sink.ahead) <= INBOX_LIMIT


class Stuck(Role):
    """Handles nothing, so that its inbox fills."""

    name = "worker"

    @on
    async def work(self, event: WorkGiven) -> WorkDone:
        await anyio.sleep_forever()
        return WorkDone()


async def fill(live: LiveSwarm[Any]) -> Run[Any]:
    run = await live.submit(WorkGiven())
    await anyio.wait_all_tasks_blocked()
    for _ in range(INBOX_LIMIT):
        await run.send(WorkGiven())
    return run


@pytest.mark.parametrize("again", [False, True], ids=["who sends", "who submits"])
async def test_who_waits_for_room_goes_on_when_the_run_that_took_it_ends(again: bool) -> None:
    async with worker_swarm(Stuck()).open(grace=0.01) as live, anyio.create_task_group() as group:
        run = await fill(live)

        async def cancel() -> None:
            await anyio.wait_all_tasks_blocked()
            await run.cancel()

        group.start_soon(cancel)
        with anyio.fail_after(30):
            if again:
                assert (await live.submit(WorkGiven())).id != run.id
            else:
                with pytest.raises(RunCancelled, match="is over: cancelled"):
                    await run.send(WorkGiven())


async def test_who_waits_for_room_goes_on_when_the_swarm_ends_undrained() -> None:
    async def send(run: Run[Any]) -> None:
        with pytest.raises(RunStopped):
            await run.send(WorkGiven())

    async def submit(live: LiveSwarm[Any]) -> None:
        with pytest.raises(SubmitError):
            await live.submit(WorkGiven())

    with anyio.fail_after(30):
        async with anyio.create_task_group() as group:
            with anyio.CancelScope() as scope:
                async with worker_swarm(Stuck()).open(grace=0.01) as live:
                    group.start_soon(send, await fill(live))
                    group.start_soon(submit, live)
                    await anyio.wait_all_tasks_blocked()
                    scope.cancel()
                    await anyio.sleep_forever()


async def test_a_publisher_that_waits_for_room_does_not_time_out() -> None:
    clock = FakeClock()

    class Pouring(Source):
        name = "source"
        timeout = 10

    class Blocked(Role):
        name = "sink"
        timeout = 100_000

        @on
        async def take(self, event: Ping) -> WorkDone | None:
            if event.number == 0:
                await clock.sleep_until(1000)
            return WorkDone() if event.number == 2 * INBOX_LIMIT - 1 else None

    source = Pouring(2 * INBOX_LIMIT)
    async with started(Swarm(source, Blocked(), table=POURING, clock=clock), WorkGiven()) as (_, run):
        await clock.advance(999)
        assert (run.status, len(source.published)) == ("running", INBOX_LIMIT)
        await clock.advance(1)
        assert (await run.result()).output == WorkDone()


async def test_submitting_waits_too() -> None:
    go, taken, submitted = anyio.Event(), list[str](), list[int]()

    class Worker(Role):
        @on
        async def work(self, event: WorkGiven) -> WorkDone:
            await go.wait()
            taken.append(event.text)
            return WorkDone()

    table = EventTable((CLIENT, WorkGiven, "worker"), ("worker", WorkDone, CLIENT), result=WorkDone)
    async with Swarm(Worker(), table=table).open() as live, anyio.create_task_group() as group:

        async def submit_many() -> None:
            runs = []
            for number in range(INBOX_LIMIT + 50):
                runs.append(await live.submit(WorkGiven(text=str(number))))
                submitted.append(number)
            for run in runs:
                await run.result()

        group.start_soon(submit_many)
        await anyio.wait_all_tasks_blocked()
        waiting = len(submitted)
        go.set()
    assert waiting == INBOX_LIMIT
    assert taken == [str(number) for number in range(INBOX_LIMIT + 50)]


async def test_two_full_roles_that_publish_to_each_other_do_not_deadlock() -> None:
    rounds = 3 * INBOX_LIMIT
    seen = {"left": 0, "right": 0}

    class Left(Role):
        @on
        async def begin(self, event: WorkGiven, ctx: RoleContext[Ping]) -> None:
            for number in range(rounds):
                await ctx.publish(Ping(number=number))

        @on
        async def take(self, event: Pong, ctx: RoleContext[Ping]) -> WorkDone | None:
            seen["left"] += 1
            return WorkDone() if seen["left"] == 2 * rounds else None

    class Right(Role):
        @on
        async def take(self, event: Ping, ctx: RoleContext[Pong]) -> None:
            seen["right"] += 1
            for _ in range(2):
                await ctx.publish(Pong(number=event.number))

    table = EventTable(
        (CLIENT, WorkGiven, "left"),
        ("left", Ping, "right"),
        ("right", Pong, "left"),
        ("left", WorkDone, CLIENT),
        result=WorkDone,
    )
    with anyio.fail_after(30):
        await Swarm(Left(), Right(), table=table).run(WorkGiven())
    assert seen == {"left": 2 * rounds, "right": rounds}


async def test_a_role_that_feeds_itself_does_not_wait_for_itself() -> None:
    class Worker(Role):
        @on
        async def work(self, event: WorkGiven, ctx: RoleContext[WorkSeen]) -> WorkDone:
            for number in range(2 * INBOX_LIMIT):
                await ctx.publish(WorkSeen(text=str(number)))
            return WorkDone()

        @on
        async def see(self, event: WorkSeen) -> None: ...

    table = EventTable(
        (CLIENT, WorkGiven, "worker"), ("worker", WorkSeen, "worker"), ("worker", WorkDone, CLIENT), result=WorkDone
    )
    with anyio.fail_after(30):
        await Swarm(Worker(), table=table).run(WorkGiven())


@pytest.mark.parametrize(("concurrency", "open_at_most"), [(1, OPEN_ITEMS), (100, 200)])
async def test_a_map_keeps_few_items_open_whatever_its_size(concurrency: int, open_at_most: int) -> None:
    most = 0

    class Worker(Role):
        @on(JobGiven, each="pieces")
        async def work(self, piece: int) -> PieceDone:
            nonlocal most
            most = max(most, len(live.bus.runs[run.id].ledger.pending))
            await anyio.lowlevel.checkpoint()
            return PieceDone(piece=piece)

    pieces = tuple(range(1000))
    worker = Worker().named("worker", concurrency=concurrency)
    async with job_swarm(worker, gatherer()).open() as live:
        run = await live.submit(JobGiven(pieces=pieces))
        assert (await run.result()).output.done == pieces
    assert most == open_at_most


@dataclass
class Tally:
    """What was poured and done so far, in pieces, and how far the one was ahead of the other at most."""

    poured: int = 0
    done: int = 0
    behind: int = 0


def pouring(tally: Tally, jobs: int, pieces: int, *others: Role, rows: Any = (), **policy: Any) -> Swarm[WorkDone]:
    """One role publishes jobs before it returns, another one does their pieces; done when all jobs are."""

    class Pourer(Role):
        concurrency = 2

        @on
        async def pour(self, event: WorkGiven, ctx: RoleContext[JobGiven]) -> None:
            for _ in range(jobs):
                await ctx.publish(JobGiven(pieces=tuple(range(pieces))))
                tally.poured += pieces

    class Worker(Role):
        @on(JobGiven, each="pieces")
        async def work(self, piece: int) -> PieceDone:
            tally.behind = max(tally.behind, tally.poured - tally.done)
            await anyio.lowlevel.checkpoint()
            tally.done += 1
            return PieceDone(piece=piece)

    class Gatherer(Role):
        class State(BaseModel, frozen=True):
            jobs: int = 0

        @join(PieceDone, per=JobGiven, **policy)
        async def gather(
            self, job: JobGiven, pieces: Joined[PieceDone], state: State, ctx: RoleContext
        ) -> WorkDone | None:
            return WorkDone() if ctx.update(jobs=state.jobs + 1).jobs == jobs else None

    table = EventTable(
        (CLIENT, WorkGiven, "pourer"),
        ("pourer", JobGiven, ("worker", "gatherer")),
        ("worker", PieceDone, "gatherer"),
        ("gatherer", WorkDone, CLIENT),
        *rows,
        result=WorkDone,
    )
    given = {role.name: role for role in others}
    return Swarm(given.get("pourer", Pourer()), given.get("worker", Worker()), Gatherer(), table=table)


@pytest.mark.parametrize(("jobs", "pieces"), [(60, 100), (3, 5000)])
async def test_items_that_are_not_open_yet_hold_up_whoever_publishes_more(jobs: int, pieces: int) -> None:
    tally = Tally()
    with anyio.fail_after(30):
        await pouring(tally, jobs, pieces).run(WorkGiven())
    assert tally.done == jobs * pieces
    assert BACKLOG < tally.behind <= BACKLOG + pieces + OPEN_ITEMS


async def test_they_do_not_hold_up_another_run() -> None:
    tally = Tally()
    async with pouring(tally, 2, 5000).open() as live:
        runs = [await live.submit(WorkGiven())]
        while tally.done < 10:
            await anyio.lowlevel.checkpoint()
        runs.append(await live.submit(WorkGiven()))
        while tally.poured < 10_000:  # the first job of each
            await anyio.lowlevel.checkpoint()
        assert tally.done < 100
        for run in runs:
            await run.cancel()


async def test_whoever_waits_for_items_goes_on_when_they_are_cancelled() -> None:
    tally = Tally()
    with anyio.fail_after(10):
        await pouring(tally, 3, 5000, quorum=3).run(WorkGiven())
    assert tally.done < 3 * OPEN_ITEMS


async def test_a_mender_does_not_wait_for_items_that_wait_for_it() -> None:
    class Pourer(Role):
        @on
        async def pour(self, event: WorkGiven, ctx: RoleContext[JobGiven]) -> None:
            for _ in range(3):
                await ctx.publish(JobGiven(pieces=tuple(range(BACKLOG))))

        @on
        async def mend(self, event: HandlerFailed) -> None: ...

    class Worker(Role):
        @on(JobGiven, each="pieces")
        async def work(self, piece: int) -> PieceDone:
            raise ValueError("no piece")

    rows = [(SYSTEM, HandlerFailed, "pourer")]
    with anyio.fail_after(30):
        await pouring(Tally(), 3, BACKLOG, Pourer(), Worker(), rows=rows, partial="proceed").run(WorkGiven())


async def test_a_role_does_not_wait_for_items_whose_answers_from_outside_it_takes() -> None:
    desk, sent = External("desk"), anyio.Event()

    class Pourer(Role):
        @on
        async def pour(self, event: WorkGiven, ctx: RoleContext[JobGiven]) -> None:
            for _ in range(2):
                await ctx.publish(JobGiven(pieces=tuple(range(BACKLOG + OPEN_ITEMS))))

        @on
        async def take(self, event: Pong) -> PieceDone:
            return PieceDone(piece=event.number)

    class Worker(Role):
        concurrency = OPEN_ITEMS // 2

        @on(JobGiven, each="pieces")
        async def work(self, piece: int, ctx: RoleContext[Ping]) -> PieceDone | None:
            if piece >= OPEN_ITEMS:
                return PieceDone(piece=piece)
            await ctx.publish(Ping(number=piece))
            await sent.wait()
            return None

    rows = ("worker", Ping, desk), (desk, Pong, "pourer"), ("pourer", PieceDone, "gatherer")
    async with pouring(Tally(), 2, BACKLOG, Pourer(), Worker(), rows=rows, partial="proceed").open() as live:
        run = await live.submit(WorkGiven())
        with anyio.fail_after(30):
            async for item in run.events():
                if isinstance(item, Envelope) and isinstance(item.event, Ping):
                    await run.send(Pong(number=item.event.number), source=desk, cause=item.number)
                    if item.event.number == OPEN_ITEMS // 2 - 1:
                        sent.set()
            await run.result()


async def test_an_answer_from_outside_that_comes_late_opens_no_further_item() -> None:
    desk, go, begun = External("desk"), anyio.Event(), list[int]()

    class Worker(Role):
        @on(JobGiven, each="pieces")
        async def work(self, piece: int) -> WorkSeen | Ping:
            begun.append(piece)
            return Ping(number=piece) if piece < 10 else WorkSeen(text=str(piece))

    class Finisher(Role):
        @on
        async def finish(self, event: WorkSeen) -> PieceDone:
            await go.wait()
            return PieceDone(piece=int(event.text))

        @on
        async def take(self, event: Pong) -> None: ...

    table = EventTable(
        (CLIENT, JobGiven, ("worker", "gatherer")),
        ("worker", WorkSeen, "finisher"),
        ("worker", Ping, desk),
        (desk, Pong, "finisher"),
        ("finisher", PieceDone, "gatherer"),
        ("gatherer", JobDone, CLIENT),
        result=JobDone,
    )
    swarm = Swarm(Worker(), Finisher().named("finisher", concurrency=100), gatherer(partial="proceed"), table=table)
    async with started(swarm, JobGiven(pieces=tuple(range(200)))) as (_, run):
        assert len(begun) == 10 + OPEN_ITEMS
        for number in range(10):
            await run.send(Pong(number=number), source=desk, cause=1 + number)
        await anyio.wait_all_tasks_blocked()
        assert len(begun) == 10 + OPEN_ITEMS
        go.set()
        assert len((await run.result()).output.done) == 190


async def test_full_roles_that_publish_maps_to_each_other_do_not_deadlock() -> None:
    class Left(Role):
        @on
        async def begin(self, event: WorkGiven, ctx: RoleContext[Batch]) -> None:
            for _ in range(5):
                await ctx.publish(Batch(numbers=tuple(range(BACKLOG))))

        @on(Answers, each="numbers")
        async def take(self, number: int) -> WorkSeen:
            return WorkSeen(text=str(number))

    class Right(Role):
        @on(Batch, each="numbers")
        async def take(self, number: int, ctx: RoleContext[Answers]) -> None:
            await ctx.publish(Answers(numbers=(number, number)))

    seen: list[str] = []

    class Watcher(Role):
        @on
        async def see(self, event: WorkSeen) -> WorkDone | None:
            seen.append(event.text)
            return WorkDone() if len(seen) == 10 * BACKLOG else None

    table = EventTable(
        (CLIENT, WorkGiven, "left"),
        ("left", Batch, "right"),
        ("right", Answers, "left"),
        ("left", WorkSeen, "watcher"),
        ("watcher", WorkDone, CLIENT),
        result=WorkDone,
    )
    with anyio.fail_after(30):
        await Swarm(Left(), Right(), Watcher(), table=table).run(WorkGiven())


async def test_an_item_makes_room_for_the_next_only_when_all_it_caused_is_quiet() -> None:
    clock, begun = FakeClock(), list[int]()

    class Worker(Role):
        @on(JobGiven, each="pieces")
        async def work(self, piece: int) -> WorkSeen:
            begun.append(piece)
            return WorkSeen(text=str(piece))

    class Finisher(Role):
        concurrency = 4

        @on
        async def finish(self, event: WorkSeen) -> PieceDone:
            await clock.sleep_until(clock.monotonic() + 1)
            return PieceDone(piece=int(event.text))

    table = EventTable(
        (CLIENT, JobGiven, ("worker", "gatherer")),
        ("worker", WorkSeen, "finisher"),
        ("finisher", PieceDone, "gatherer"),
        ("gatherer", JobDone, CLIENT),
        result=JobDone,
    )
    swarm = Swarm(Worker(), Finisher(), Gatherer(), table=table, clock=clock)
    pieces = tuple(range(OPEN_ITEMS + 10))
    async with started(swarm, JobGiven(pieces=pieces)) as (_, run):
        assert len(begun) == OPEN_ITEMS
        await clock.advance(1)
        assert len(begun) == OPEN_ITEMS + 4
        await clock.advance(60)
        assert (await run.result()).output.done == pieces
