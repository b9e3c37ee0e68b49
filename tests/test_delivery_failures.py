"""The ladder of a failure: those who may mend it, the join it counted for, the run; and lines of causes without end."""

from __future__ import annotations

import anyio
import anyio.lowlevel
import pytest

from support.clock import FakeClock
from support.jobs import JobGiven, PieceDone, WorkDone, WorkGiven, WorkSeen, gatherer, job_swarm, started, worker_swarm
from swarmbus import (
    SYSTEM,
    Budget,
    Event,
    HandlerFailed,
    LimitReached,
    Role,
    RoleContext,
    RunFailed,
    Swarm,
    on,
)

TO_MENDER = (SYSTEM, HandlerFailed, "mender")


class Picky(Role):
    """Fails on pieces with an odd number."""

    name = "worker"

    @on(JobGiven, each="pieces")
    async def work(self, piece: int) -> PieceDone:
        if piece % 2:
            raise ValueError(f"{piece} is odd")
        return PieceDone(piece=piece)


async def test_a_mender_that_publishes_what_was_missing_mends() -> None:
    asked: list[HandlerFailed] = []

    class Mender(Role):
        @on
        async def mend(self, event: HandlerFailed) -> PieceDone | None:
            asked.append(event)
            return PieceDone(piece=-1)

    swarm = job_swarm(Picky(), gatherer(), Mender(), rows=[TO_MENDER, ("mender", PieceDone, "gatherer")])
    result = await swarm.run(JobGiven(pieces=(0, 1, 2)))
    assert (result.output.done, result.failures) == ((0, -1, 2), ())
    assert result.warnings == ("worker.work failed and was mended: 1 is odd",)
    assert [(event.role, event.item, event.error_type, event.message) for event in asked] == [
        ("worker", 1, "ValueError", "1 is odd")
    ]


async def test_a_mender_that_says_nothing_leaves_the_failure_as_it_was() -> None:
    class Mender(Role):
        @on
        async def mend(self, event: HandlerFailed) -> PieceDone | None:
            return None

    swarm = job_swarm(Picky(), gatherer(), Mender(), rows=[TO_MENDER, ("mender", PieceDone, "gatherer")])
    with pytest.raises(RunFailed, match="1 is odd") as caught:
        await swarm.run(JobGiven(pieces=(0, 1, 2)))
    assert isinstance(caught.value.__cause__, ValueError)


async def test_the_error_of_a_mender_that_fails_is_attached_to_the_first() -> None:
    class Mender(Role):
        @on
        async def mend(self, event: HandlerFailed) -> PieceDone | None:
            raise KeyError("no needle")

    swarm = job_swarm(Picky(), gatherer(), Mender(), rows=[TO_MENDER, ("mender", PieceDone, "gatherer")])
    with pytest.raises(RunFailed, match=r"1 is odd \(while mending: mender\.mend failed too: KeyError: 'no needle'\)"):
        await swarm.run(JobGiven(pieces=(0, 1, 2)))


async def test_the_join_waits_while_a_mender_is_at_work() -> None:
    clock = FakeClock()

    class Mender(Role):
        @on
        async def mend(self, event: HandlerFailed) -> PieceDone:
            await clock.sleep_until(30)
            return PieceDone(piece=-1)

    swarm = job_swarm(Picky(), gatherer(), Mender(), rows=[TO_MENDER, ("mender", PieceDone, "gatherer")], clock=clock)
    async with started(swarm, JobGiven(pieces=(0, 1))) as (_, run):
        await clock.advance(29)
        assert run.status == "running"
        await clock.advance(1)
        assert (await run.result()).output.done == (0, -1)


async def test_where_nobody_joins_a_mender_mends_with_the_result() -> None:
    class Worker(Role):
        @on
        async def work(self, event: WorkGiven) -> WorkDone:
            raise ValueError("no")

        @on
        async def mend(self, event: HandlerFailed) -> WorkDone:
            return WorkDone(text="instead")

    result = await worker_swarm(Worker(), (SYSTEM, HandlerFailed, "worker")).run(WorkGiven())
    assert result.output.text == "instead"


@pytest.mark.parametrize("pieces", [(0, 1, 2, 3), (1,)], ids=["some", "all"])
async def test_a_join_that_proceeds_is_told_what_failed(pieces: tuple[int, ...]) -> None:
    result = await job_swarm(Picky(), gatherer(partial="proceed")).run(JobGiven(pieces=pieces))
    assert result.output.failed == tuple(piece for piece in pieces if piece % 2)
    assert result.output.done == tuple(piece for piece in pieces if not piece % 2)
    assert [failure.message for failure in result.failures] == [f"{piece} is odd" for piece in pieces if piece % 2]


async def test_no_further_piece_begins_after_a_failure_that_fails_the_join() -> None:
    begun: list[int] = []

    class Worker(Role):
        @on(JobGiven, each="pieces")
        async def work(self, piece: int) -> PieceDone:
            begun.append(piece)
            if piece == 4:
                raise ValueError("the fourth")
            return PieceDone(piece=piece)

    with pytest.raises(RunFailed):
        await job_swarm(Worker()).run(JobGiven(pieces=tuple(range(1, 11))))
    assert begun == [1, 2, 3, 4]


class Looped(Event):
    count: int


async def test_a_line_of_causes_that_never_ends_reaches_its_limit() -> None:
    class Worker(Role):
        @on
        async def work(self, event: WorkGiven) -> Looped:
            return Looped(count=0)

        @on
        async def again(self, event: Looped) -> Looped | WorkDone:
            return Looped(count=event.count + 1)

    swarm = worker_swarm(Worker(), ("worker", Looped, "worker"), budget=Budget(hops=50))
    with pytest.raises(
        LimitReached, match=r"looped is 51 hops from the start, the limit is 50; allow more with Budget\(hops=\)"
    ):
        await swarm.run(WorkGiven())


async def test_a_failure_in_a_fork_without_result_does_not_hide_the_result() -> None:
    class Worker(Role):
        @on
        async def work(self, event: WorkGiven) -> tuple[WorkSeen | WorkDone, ...]:
            return (WorkSeen(), WorkDone(text="kept"))

        @on
        async def see(self, event: WorkSeen, ctx: RoleContext) -> None:
            await anyio.lowlevel.checkpoint()
            raise ValueError("beside the point")

    swarm: Swarm[WorkDone] = worker_swarm(Worker(), ("worker", WorkSeen, "worker"))
    result = await swarm.run(WorkGiven())
    assert result.output.text == "kept"
    assert [failure.message for failure in result.failures] == ["beside the point"]
