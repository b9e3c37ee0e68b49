"""Roles with a state of their own for each run."""

from __future__ import annotations

import datetime as dt
import math
from typing import Any
from uuid import UUID

import anyio
import pytest
from pydantic import BaseModel, ValidationError

from support.jobs import JobGiven, PieceDone, WorkDone, WorkGiven, job_swarm, worker_swarm
from swarmbus import FrozenDict, Retry, Retryable, Role, RoleContext, RunFailed, on
from swarmbus.delivery.journal import MemoryJournal
from swarmbus.errors import RoleError
from swarmbus.testing import context


class Tally(BaseModel, frozen=True):
    count: int = 0
    seen: FrozenDict[str, int] = FrozenDict()


class Counter(Role):
    """Counts the pieces; the n-th brings n."""

    name = "worker"
    concurrency = 4
    State = Tally

    @on(JobGiven, each="pieces")
    async def work(self, piece: int, state: Tally, ctx: RoleContext) -> PieceDone:
        await anyio.lowlevel.checkpoint()
        changed = ctx.update(count=state.count + 1)
        assert ctx.put("seen", str(piece), changed.count).seen[str(piece)] == changed.count
        return PieceDone(piece=changed.count)


async def test_deliveries_of_a_run_see_each_others_changes_one_after_the_other() -> None:
    assert sorted((await job_swarm(Counter()).run(JobGiven(pieces=(7,) * 20))).output.done) == list(range(1, 21))


async def test_every_run_has_a_state_of_its_own_and_runs_go_on_in_parallel() -> None:
    inside, most = list[str](), 0

    class Meeting(Role):
        name = "worker"
        concurrency = 1
        State = Tally

        @on(JobGiven, each="pieces")
        async def work(self, piece: int, state: Tally, ctx: RoleContext) -> PieceDone:
            nonlocal most
            assert ctx.run_id not in inside, "two deliveries of one run at a time"
            inside.append(ctx.run_id)
            most = max(most, len(inside))
            for _ in range(3):
                await anyio.lowlevel.checkpoint()
            inside.remove(ctx.run_id)
            return PieceDone(piece=ctx.update(count=state.count + 1).count)

    async with job_swarm(Meeting()).open() as live:
        runs = [await live.submit(JobGiven(pieces=(1, 2, 3))) for _ in range(10)]
        for run in runs:
            assert (await run.result()).output.done == (1, 2, 3)
    assert most > 1


async def test_what_a_failed_attempt_changed_is_gone() -> None:
    class Failing(Role):
        name = "worker"
        State = Tally
        retry = Retry(delay=0)

        @on
        async def work(self, event: WorkGiven, state: Tally, ctx: RoleContext) -> WorkDone:
            changed = ctx.update(count=state.count + 1)
            if ctx.attempt < 3:
                raise Retryable("again")
            return WorkDone(text=str(changed.count))

    assert (await worker_swarm(Failing()).run(WorkGiven())).output.text == "1"


async def test_entries_are_put_and_removed() -> None:
    class Keeping(Role):
        name = "worker"
        State = Tally

        @on(JobGiven, each="pieces")
        async def work(self, piece: int, state: Tally, ctx: RoleContext) -> PieceDone:
            ctx.put("seen", str(piece), piece)
            changed = ctx.remove("seen", str(piece - 1)) if piece > 1 else ctx.put("seen", "0", 0)
            return PieceDone(piece=len(changed.seen))

    journal = MemoryJournal()
    assert (await job_swarm(Keeping(), journal=journal).run(JobGiven(pieces=(1, 2, 3)))).output.done == (2, 2, 2)
    changes = [record.split(b'"changes":')[1] for record in journal.records.popitem()[1] if b'"changes":[[' in record]
    assert changes[-1] == b'[["put","seen","3",3],["remove","seen","2"]]}'


@pytest.mark.parametrize(
    ("change", "error"),
    [
        (lambda ctx: ctx.update(cuont=1), RoleError),
        (lambda ctx: ctx.update(count="many"), ValidationError),
        (lambda ctx: ctx.put("sene", "a", 1), RoleError),
    ],
    ids=["no such field", "wrong type", "no such mapping"],
)
async def test_what_the_state_can_not_hold_is_refused_where_it_is_set(change: Any, error: type[Exception]) -> None:
    class Mistaken(Role):
        name = "worker"
        State = Tally

        @on
        async def work(self, event: WorkGiven, ctx: RoleContext) -> WorkDone:
            change(ctx)
            return WorkDone()

    with pytest.raises(RunFailed) as caught:
        await worker_swarm(Mistaken()).run(WorkGiven())
    assert isinstance(caught.value.__cause__, error)


class Place(BaseModel, frozen=True):
    x: int


class Exact(Place, frozen=True):
    y: int = 0


class Loose(BaseModel, frozen=True):
    places: FrozenDict[int | str, int] = FrozenDict()
    at: dt.datetime | None = None
    share: float = 0.0
    place: Place | None = None
    data: bytes = b""
    more: Any = None
    owners: FrozenDict[UUID | str, int] = FrozenDict()


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda ctx: ctx.update(places=FrozenDict({1: 1})), "Loose.places holds a int, which JSON would bring back as"),
        (lambda ctx: ctx.put("places", 1, 1), "Loose.places holds a int, which JSON would bring back as str"),
        (lambda ctx: ctx.update(at=dt.datetime(2026, 1, 1)), "Loose.at holds a time without time zone"),  # noqa: DTZ001
        (lambda ctx: ctx.update(share=math.nan), "Loose.share holds nan"),
        (lambda ctx: ctx.update(place=Exact(x=1)), "Loose.place holds a Exact"),
        (lambda ctx: ctx.update(data=b"\xff"), "Loose.data 'utf-8' codec can't decode"),
        (lambda ctx: ctx.update(more=[1]), "Loose.more holds a list, which no record keeps; give the field its own"),
    ],
    ids=["mapping", "key", "time", "number", "subclass", "bytes", "any"],
)
def test_what_a_resumed_run_would_not_find_again_is_refused_where_it_is_set(change: Any, told: str) -> None:
    class Keeper(Role):
        State = Loose

    ctx = context(Keeper())
    with pytest.raises(ValueError, match=told):
        change(ctx)
    assert (ctx.state, ctx.changes) == (Loose(), ())


async def test_keys_of_an_entry_come_back_as_they_were() -> None:
    found: list[Any] = []

    class Keeper(Role):
        name = "worker"
        State = Loose

        @on(JobGiven, each="pieces")
        async def work(self, piece: int, state: Loose, ctx: RoleContext) -> PieceDone:
            found.append(state.owners)
            if piece == 2 and len(found) == 2:
                raise ValueError("not yet")
            ctx.put("owners", UUID(int=5), 1)
            ctx.put("owners", "nobody", 2)
            return PieceDone(piece=piece)

    async with job_swarm(Keeper(), journal=MemoryJournal()).open() as live:
        with pytest.raises(RunFailed):
            await (await live.submit(JobGiven(pieces=(1, 2)), run_id="r")).result()
        await (await live.resume("r")).result()
    assert found[1:] == [FrozenDict({UUID(int=5): 1, "nobody": 2})] * 2


async def test_a_role_without_state_is_told_to_get_one() -> None:
    class Stateless(Role):
        name = "worker"

        @on
        async def work(self, event: WorkGiven, ctx: RoleContext) -> WorkDone:
            ctx.update(count=1)
            return WorkDone()

    with pytest.raises(RunFailed, match="worker has no State"):
        await worker_swarm(Stateless()).run(WorkGiven())


async def test_attributes_of_a_running_role_can_not_be_set() -> None:
    class Writing(Role):
        name = "worker"

        @on
        async def work(self, event: WorkGiven) -> WorkDone:
            self.count = 1
            return WorkDone()

    with pytest.raises(RunFailed, match="use State"):
        await worker_swarm(Writing()).run(WorkGiven())
