"""Maps and joins as a user sees them: when a join fires, with what, and what its policies do."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

import anyio
import pytest

from support.jobs import JobDone, JobGiven, PieceDone, Worker, events_in, gatherer, job_swarm, read_all, started
from swarmbus import (
    CLIENT,
    Event,
    EventTable,
    Joined,
    Retry,
    Retryable,
    Role,
    RoleContext,
    RunFailed,
    RunStalled,
    Swarm,
    join,
    on,
)
from swarmbus.delivery.journal import MemoryJournal
from swarmbus.models import ScriptedModel

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable


def worker(work: Callable[[int], Awaitable[PieceDone | None]], *, at_once: int = 8) -> Role:
    """A worker that does this with each piece."""

    class Worker(Role):
        concurrency = at_once

        @on(JobGiven, each="pieces")
        async def work(self, piece: int) -> PieceDone | None:
            return await work(piece)

    return Worker()


async def test_a_join_fires_once_with_everything_whatever_the_order() -> None:
    chance, fired = random.Random(29), list[int]()

    async def work(piece: int) -> PieceDone:
        for _ in range(chance.randrange(6)):
            await anyio.lowlevel.checkpoint()
        return PieceDone(piece=piece)

    class Gatherer(Role):
        @join(PieceDone, per=JobGiven)
        async def gather(self, job: JobGiven, pieces: Joined[PieceDone]) -> JobDone:
            fired.append(len(pieces.done))
            return JobDone(done=tuple(piece.piece for piece in pieces.done))

    async with job_swarm(worker(work), Gatherer()).open() as live:
        runs = [await live.submit(JobGiven(pieces=(3, 1, 4, 1, 5))) for _ in range(200)]
        for run in runs:
            assert (await run.result()).output.done == (3, 1, 4, 1, 5)
    assert fired == [5] * 200


async def test_an_empty_map_fires_the_join_with_nothing() -> None:
    assert (await job_swarm().run(JobGiven(pieces=()))).output == JobDone()


async def test_items_that_bring_nothing_stall_the_run_which_names_them() -> None:
    async def work(piece: int) -> PieceDone | None:
        return PieceDone(piece=piece) if piece % 2 else None

    with pytest.raises(RunStalled, match=r"gatherer\.gather") as caught:
        await job_swarm(worker(work)).run(JobGiven(pieces=(1, 2, 3, 4)))
    assert "2" in str(caught.value)
    assert "4" in str(caught.value)


async def test_a_join_that_proceeds_is_told_what_is_missing_and_what_failed() -> None:
    async def work(piece: int) -> PieceDone | None:
        if piece == 2:
            return None
        if piece == 4:
            raise ValueError("x")
        return PieceDone(piece=piece)

    swarm = job_swarm(worker(work), gatherer(partial="proceed"))
    result = await swarm.run(JobGiven(pieces=(1, 2, 3, 4)))
    assert result.output == JobDone(done=(1, 3), failed=(4,), missing=(2,))
    assert [(failure.item, failure.message) for failure in result.failures] == [(3, "x")]


async def test_one_failed_item_of_ten_fails_the_run_and_starts_nothing_more() -> None:
    started: list[int] = []

    async def work(piece: int) -> PieceDone:
        started.append(piece)
        if piece == 4:
            raise ValueError("number 4")
        return PieceDone(piece=piece)

    with pytest.raises(RunFailed, match="number 4") as caught:
        await job_swarm(worker(work, at_once=1)).run(JobGiven(pieces=tuple(range(10))))
    assert started == [0, 1, 2, 3, 4]
    assert isinstance(caught.value.__cause__, ValueError)
    assert [failure.item for failure in caught.value.result.failures] == [4]


class Stubborn(Role):
    """Asks about its piece first; the fourth fails at each attempt."""

    name = "worker"
    retry = Retry(attempts=3, delay=0)

    @on(JobGiven, each="pieces")
    async def work(self, piece: int, ctx: RoleContext) -> PieceDone:
        await ctx.ask(f"piece {piece}")
        if piece == 4:
            raise Retryable("number 4")
        return PieceDone(piece=piece)


async def test_a_join_that_proceeds_gets_what_nine_brought_and_why_the_tenth_failed_after_its_attempts() -> None:
    failed: list[tuple[int, int, str]] = []

    class Gatherer(Role):
        @join(PieceDone, per=JobGiven, partial="proceed")
        async def gather(self, job: JobGiven, pieces: Joined[PieceDone]) -> JobDone:
            failed.extend((item.item, item.error.attempt, item.error.message) for item in pieces.failed)
            return JobDone(done=tuple(piece.piece for piece in pieces.done))

    model = ScriptedModel(["yes"] * 10)
    result = await job_swarm(Stubborn(), Gatherer(), model=model).run(JobGiven(pieces=tuple(range(10))))
    assert result.output.done == (0, 1, 2, 3, 5, 6, 7, 8, 9)
    assert failed == [(4, 3, "number 4")]
    assert len(model.requests) == 10


async def test_a_join_that_fails_with_one_item_makes_no_further_model_call() -> None:
    class Twice(Stubborn):
        name = "worker"
        concurrency = 10

        @on(JobGiven, each="pieces")
        async def work(self, piece: int, ctx: RoleContext) -> PieceDone:
            done = await super().work(piece, ctx)
            for _ in range(100):
                await anyio.lowlevel.checkpoint()
            await ctx.ask("once more")
            return done

    model = ScriptedModel(["yes"] * 20)
    async with started(job_swarm(Twice(), model=model), JobGiven(pieces=tuple(range(10)))) as (_, run):
        assert run.status == "failed"
        assert len(model.requests) == 10
    with pytest.raises(RunFailed, match=r"item 4 \(4\) \(attempt 3\): Retryable: number 4"):
        await run.result()


async def test_a_quorum_that_can_not_be_reached_any_more_goes_by_the_policy() -> None:
    async def work(piece: int) -> PieceDone:
        if piece:
            raise ValueError("x")
        return PieceDone(piece=piece)

    proceeding = job_swarm(worker(work), gatherer(quorum=2, partial="proceed"))
    assert (await proceeding.run(JobGiven(pieces=(0, 1, 2)))).output == JobDone(done=(0,), failed=(1, 2))
    with pytest.raises(RunFailed, match=r"item 1 \(1\): ValueError: x"):  # the first that made it impossible
        await job_swarm(worker(work), gatherer(quorum=2)).run(JobGiven(pieces=(0, 1, 2)))


async def test_a_quorum_missed_by_silence_stalls_the_run() -> None:
    async def work(piece: int) -> PieceDone | None:
        return None if piece else PieceDone(piece=piece)

    with pytest.raises(
        RunStalled, match=r"has 1 of 2 piece_done and lacks item 1 \(1\), item 2 \(2\) of worker\.work; "
    ):
        await job_swarm(worker(work), gatherer(quorum=2)).run(JobGiven(pieces=(0, 1, 2)))


async def test_the_same_record_twice_counts_once() -> None:
    journal = MemoryJournal()
    pieces = (1, 2, 3)
    first = await job_swarm(journal=journal).run(JobGiven(pieces=pieces), run_id="r")
    records = journal.records["r"]
    committed = [place for place, record in enumerate(records) if b'"record":"committed"' in record]
    for place in committed:
        twice = [*records[: place + 1], records[place], *records[place + 1 : -1]]
        async with job_swarm(journal=MemoryJournal({"r": twice})).open() as live:
            result = await (await live.resume("r")).result()
        assert result.output == first.output == JobDone(done=pieces)


class Started(Event):
    pass


class ShortDone(Event):
    pass


class LongBegun(Event):
    left: int


class Brought(Event):
    by: str


class Merged(Event):
    by: tuple[str, ...]


class Starter(Role):
    @on
    async def short(self, event: Started) -> Brought:
        return Brought(by="short")


class Walker(Role):
    @on
    async def begin(self, event: Started) -> LongBegun:
        return LongBegun(left=3)

    @on
    async def walk(self, event: LongBegun) -> LongBegun | Brought:
        return LongBegun(left=event.left - 1) if event.left else Brought(by="long")


class Merger(Role):
    @join(Brought, per=Started)
    async def merge(self, started: Started, brought: Joined[Brought]) -> Merged:
        return Merged(by=tuple(each.by for each in brought.done))


@pytest.mark.parametrize("in_one_row", [True, False], ids=["one row", "rows"])
async def test_branches_of_different_length_are_merged_once(*, in_one_row: bool) -> None:
    rows: tuple[Any, ...] = (
        ((("starter", "walker"), Brought, "merger"),)
        if in_one_row
        else (("starter", Brought, "merger"), ("walker", Brought, "merger"))
    )
    table: EventTable[Event] = EventTable(
        (CLIENT, Started, ("starter", "walker", "merger")),
        ("walker", LongBegun, "walker"),
        *rows,
        ("merger", Merged, CLIENT),
    )
    async with Swarm(Starter(), Walker(), Merger(), table=table).open() as live:
        merges = events_in(await read_all(await live.submit(Started())), Merged)
    assert [sorted(merged.by) for merged in merges] == [["long", "short"]]


class RoundBegun(Event):
    number: int


class HalfDone(Event):
    number: int
    half: str


class RoundsDone(Event):
    rounds: tuple[tuple[int, ...], ...]


class RoundsAsked(Event):
    rounds: int


class Half(Role):
    """Does its half of a round; the late one after the other, and whether it is still wanted or not."""

    def __init__(self, *, late: bool) -> None:
        self.late = late

    @on
    async def work(self, event: RoundBegun) -> HalfDone:
        with anyio.CancelScope(shield=True):
            for _ in range(25 * self.late):
                await anyio.lowlevel.checkpoint()
        return HalfDone(number=event.number, half=str(self.late))


@pytest.mark.parametrize(
    ("quorum", "rounds"), [(None, ((1, 1), (2, 2), (3, 3))), (1, ((1,), (2,), (3,)))], ids=["all", "the first"]
)
async def test_each_round_of_a_loop_is_merged_by_itself(
    quorum: int | None, rounds: tuple[tuple[int, ...], ...]
) -> None:
    merges: list[tuple[int, ...]] = []

    class Referee(Role):
        @on
        async def start(self, event: RoundsAsked) -> RoundBegun:
            return RoundBegun(number=1)

        @join(HalfDone, per=RoundBegun, quorum=quorum)
        async def merge(self, begun: RoundBegun, halves: Joined[HalfDone]) -> RoundBegun | RoundsDone:
            merges.append(tuple(half.number for half in halves.done))
            if begun.number < 3:
                return RoundBegun(number=begun.number + 1)
            return RoundsDone(rounds=tuple(merges))

    table = EventTable(
        (CLIENT, RoundsAsked, "referee"),
        ("referee", RoundBegun, ("early", "late", "referee")),
        (("early", "late"), HalfDone, "referee"),
        ("referee", RoundsDone, CLIENT),
        result=RoundsDone,
    )
    swarm = Swarm(Referee(), Half(late=False).named("early"), Half(late=True).named("late"), table=table)
    assert (await swarm.run(RoundsAsked(rounds=3))).output.rounds == rounds


async def test_a_handler_of_two_events_runs_once_for_each_that_comes() -> None:
    heard: list[str] = []

    class Speaker(Role):
        @on
        async def speak(self, event: Started, ctx: RoleContext[Brought | LongBegun]) -> None:
            await ctx.publish(Brought(by="a"))
            await ctx.publish(LongBegun(left=1))
            await ctx.publish(Brought(by="b"))

    class Listener(Role):
        @on
        async def listen(self, event: Brought | LongBegun) -> None:
            heard.append(type(event).__name__)

    table = EventTable(
        (CLIENT, Started, "speaker"), ("speaker", Brought, "listener"), ("speaker", LongBegun, "listener"), result=None
    )
    await Swarm(Speaker(), Listener(), table=table).run(Started())
    assert heard == ["Brought", "LongBegun", "Brought"]


class Trip(Event):
    legs: tuple[int, ...]


class LegPlanned(Event):
    leg: int
    stops: tuple[int, ...]


class StopDone(Event):
    stop: int


class LegDone(Event):
    leg: int
    stops: tuple[int, ...]


class TripDone(Event):
    legs: tuple[tuple[int, tuple[int, ...]], ...]


class Guide(Role):
    concurrency = 2

    @on(Trip, each="legs")
    async def plan(self, leg: int) -> LegPlanned:
        return LegPlanned(leg=leg, stops=tuple(range(leg)))

    @on(LegPlanned, each="stops")
    async def go(self, planned: LegPlanned, stop: int) -> StopDone:
        if (planned.leg, stop) == (2, 1):
            raise ValueError("road closed")
        return StopDone(stop=stop)


def trip(**inner: Any) -> Swarm[TripDone]:
    """A map and a join within a map and a join; the inner join has this policy, the outer one proceeds."""

    class Diary(Role):
        @join(StopDone, per=LegPlanned, **inner)
        async def leg(self, planned: LegPlanned, stops: Joined[StopDone]) -> LegDone:
            return LegDone(leg=planned.leg, stops=tuple(stop.stop for stop in stops.done))

        @join(LegDone, per=Trip, partial="proceed")
        async def trip(self, trip: Trip, legs: Joined[LegDone]) -> TripDone:
            return TripDone(legs=tuple((leg.leg, leg.stops) for leg in legs.done))

    table = EventTable(
        (CLIENT, Trip, ("guide", "diary")),
        ("guide", LegPlanned, ("guide", "diary")),
        ("guide", StopDone, "diary"),
        ("diary", LegDone, "diary"),
        ("diary", TripDone, CLIENT),
        result=TripDone,
    )
    return Swarm(Guide(), Diary(), table=table)


async def test_a_join_within_an_item_counts_for_the_item_of_the_outer_one() -> None:
    result = await trip(partial="proceed").run(Trip(legs=(0, 3, 2)))
    assert result.output.legs == ((0, ()), (3, (0, 1, 2)), (2, (0,)))


async def test_the_failure_of_an_inner_join_is_the_outer_ones_to_take() -> None:
    result = await trip().run(Trip(legs=(0, 3, 2)))
    assert result.output.legs == ((0, ()), (3, (0, 1, 2)))
    assert [failure.message for failure in result.failures] == ["road closed"]


async def test_items_may_be_many() -> None:
    pieces = tuple(range(3000))
    assert (await job_swarm(Worker()).run(JobGiven(pieces=pieces))).output.done == pieces
