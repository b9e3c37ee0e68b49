"""What handlers depend on: opened for each run from its first event, closed before its result, and roles' resources."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Never

import anyio
import pytest

from support.clock import FakeClock
from support.jobs import JobGiven, PieceDone, WorkDone, WorkGiven, job_swarm, started, worker_swarm
from swarmbus import Event, Retry, Retryable, Role, RoleContext, RunFailed, ToolContext, on, tool
from swarmbus.delivery.journal import MemoryJournal
from swarmbus.models import ScriptedModel, call

if TYPE_CHECKING:
    from collections.abc import AsyncIterator


class Shop:
    """Makes dependencies, and says what became of them."""

    def __init__(self, *, opening: list[Exception] | None = None, closing: Exception | None = None) -> None:
        self.log: list[str] = []
        self.opening = opening or []
        self.closing = closing

    @asynccontextmanager
    async def open(self, event: Event) -> AsyncIterator[str]:
        if self.opening:
            raise self.opening.pop(0)
        assert isinstance(event, WorkGiven | JobGiven)
        name = event.text if isinstance(event, WorkGiven) else "job"
        self.log.append(f"open {name}")
        try:
            yield f"deps of {name}"
        finally:
            await anyio.lowlevel.checkpoint()
            if self.closing is not None:
                raise self.closing
            self.log.append(f"close {name}")


class Teller(Role):
    """Tells what it depends on."""

    name = "worker"

    @on
    async def work(self, event: WorkGiven, ctx: RoleContext[Never, str]) -> WorkDone:
        return WorkDone(text=ctx.deps)


async def test_they_are_made_from_the_first_event_and_closed_before_the_result_is_there() -> None:
    shop = Shop()
    async with worker_swarm(Teller(), deps=shop.open).open() as live:
        first, second = [await live.submit(WorkGiven(text=text)) for text in "ab"]
        assert (await first.result()).output.text == "deps of a"
        assert (await second.result()).output.text == "deps of b"
        assert sorted(shop.log) == ["close a", "close b", "open a", "open b"]


async def test_all_handlers_of_a_run_share_them() -> None:
    shop, seen = Shop(), set[str]()

    class Sharer(Role):
        name = "worker"
        concurrency = 4

        @on(JobGiven, each="pieces")
        async def work(self, piece: int, ctx: RoleContext[Never, str]) -> PieceDone:
            seen.add(ctx.deps)
            return PieceDone(piece=piece)

    await job_swarm(Sharer(), deps=shop.open).run(JobGiven(pieces=tuple(range(20))))
    assert (shop.log, seen) == (["open job", "close job"], {"deps of job"})


async def test_a_run_may_bring_its_own() -> None:
    shop = Shop()
    result = await worker_swarm(Teller(), deps=shop.open).run(WorkGiven(text="a"), deps="mine")
    assert (result.output.text, shop.log) == ("mine", [])


async def test_tools_find_them_too() -> None:
    @tool(effects="read_only")
    def look(ctx: ToolContext[str]) -> str:
        """Look at what there is."""
        return ctx.deps

    class Asker(Role):
        name = "worker"
        tools = (look,)

        @on
        async def work(self, event: WorkGiven, ctx: RoleContext) -> WorkDone:
            return WorkDone(text=await ctx.ask("What is there?"))

    model = ScriptedModel([call("look"), lambda request: request.messages[-1].content])
    result = await worker_swarm(Asker(), deps=Shop().open, model=model).run(WorkGiven(text="a"))
    assert "deps of a" in result.output.text


async def test_what_can_not_be_opened_fails_those_who_need_it() -> None:
    with pytest.raises(RunFailed, match="no shop") as caught:
        await worker_swarm(Teller(), deps=Shop(opening=[ValueError("no shop")]).open).run(WorkGiven(text="a"))
    assert isinstance(caught.value.__cause__, ValueError)


async def test_opening_is_tried_again_where_the_error_allows_it() -> None:
    shop = Shop(opening=[Retryable("not yet")])
    result = await worker_swarm(Teller(), deps=shop.open, retry=Retry(delay=0)).run(WorkGiven(text="a"))
    assert result.output.text == "deps of a"


async def test_what_can_not_be_closed_is_a_warning_and_harms_no_other_run() -> None:
    shop = Shop(closing=OSError("stuck"))
    async with worker_swarm(Teller(), deps=shop.open).open() as live:
        for text in "ab":
            result = await (await live.submit(WorkGiven(text=text))).result()
            assert result.output.text == f"deps of {text}"
            assert result.warnings == ("the run's dependencies could not be closed: OSError: stuck",)


async def test_they_are_closed_when_a_run_fails_or_is_cancelled() -> None:
    shop = Shop()

    class Failing(Role):
        name = "worker"

        @on
        async def work(self, event: WorkGiven) -> WorkDone:
            if event.text == "fails":
                raise ValueError("x")
            await anyio.sleep_forever()
            return WorkDone()

    async with worker_swarm(Failing(), deps=shop.open).open() as live:
        failing = await live.submit(WorkGiven(text="fails"))
        with pytest.raises(RunFailed):
            await failing.result()
        assert shop.log == ["open fails", "close fails"]
        hanging = await live.submit(WorkGiven(text="hangs"))
        await anyio.wait_all_tasks_blocked()
        await hanging.cancel()
        assert shop.log[2:] == ["open hangs", "close hangs"]


async def test_the_time_it_takes_to_open_them_does_not_count() -> None:
    clock = FakeClock()

    @asynccontextmanager
    async def slow(event: Event) -> AsyncIterator[str]:
        await clock.sleep_until(100)
        yield "slow"

    class Quick(Teller):
        name = "worker"
        timeout = 10

    async with started(worker_swarm(Quick(), deps=slow, clock=clock), WorkGiven()) as (_, run):
        await clock.advance(100)
        assert (await run.result()).output.text == "slow"


async def test_a_resumed_run_makes_them_again_from_the_recorded_event() -> None:
    shop, journal = Shop(), MemoryJournal()
    async with worker_swarm(Sleeper(), deps=shop.open, journal=journal).open(grace=0.5) as live:
        await live.submit(WorkGiven(text="a"), run_id="r")
        await anyio.wait_all_tasks_blocked()
    async with worker_swarm(Teller(), deps=shop.open, journal=journal).open() as live:
        assert (await (await live.resume("r")).result()).output.text == "deps of a"
    assert shop.log == ["open a", "close a"] * 2


class Sleeper(Role):
    """Never comes back."""

    name = "worker"

    @on
    async def work(self, event: WorkGiven) -> WorkDone:
        await anyio.sleep_forever()
        return WorkDone()


async def test_a_roles_resources_are_open_as_long_as_the_swarm() -> None:
    log: list[str] = []

    class Owner(Role):
        name = "worker"

        @asynccontextmanager
        async def lifespan(self) -> AsyncIterator[None]:
            log.append("open")
            self.thing = "thing"
            yield
            log.append("close")

        @on
        async def work(self, event: WorkGiven) -> WorkDone:
            return WorkDone(text=self.thing)

    async with worker_swarm(Owner()).open() as live:
        for _ in range(2):
            assert (await (await live.submit(WorkGiven())).result()).output.text == "thing"
        assert log == ["open"]
    assert log == ["open", "close"]
