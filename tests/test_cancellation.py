"""A cancellation exception that somebody's code lets out of its own accord is an error, and is never obeyed."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import anyio
import pytest

from support.jobs import WorkDone, WorkGiven, worker_swarm
from swarmbus import Agent, Event, Role, RoleContext, RunFailed, on
from swarmbus.models import ScriptedModel

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

pytestmark = [pytest.mark.anyio, pytest.mark.parametrize("anyio_backend", ["asyncio"])]  # elsewhere there is none

STRAY = "CancelledError was raised though nobody had cancelled this"


class Careless:
    """A resource that cancels what it had begun and awaits it, so that it raises what that raised."""

    def __init__(self, when: str) -> None:
        self.when = when

    async def slip(self, when: str) -> None:
        if when == self.when:
            task = asyncio.create_task(asyncio.sleep(60))
            await asyncio.sleep(0)
            task.cancel()
            await task

    @asynccontextmanager
    async def open(self, event: Event | None = None) -> AsyncIterator[None]:
        await self.slip("opening")
        yield
        await self.slip("closing")


class Worker(Role):
    @on
    async def work(self, event: WorkGiven) -> WorkDone:
        return WorkDone(text=event.text)


class Owner(Worker):
    """Has a resource as long as the swarm is open."""

    name = "worker"

    def __init__(self, resource: Careless) -> None:
        self.resource = resource

    def lifespan(self):  # type: ignore[no-untyped-def]
        return self.resource.open()


class Asker(Role):
    name = "worker"

    @on
    async def work(self, event: WorkGiven, ctx: RoleContext) -> WorkDone:
        return WorkDone(text=await ctx.ask("What now?"))


class CarelessModel(ScriptedModel):
    """A model with a careless connection."""

    def __init__(self, resource: Careless) -> None:
        super().__init__(["a", "b"])
        self.resource = resource

    def open(self):  # type: ignore[no-untyped-def]
        return self.resource.open()


async def test_dependencies_that_let_one_out_when_closed_are_a_warning_and_the_block_goes_on() -> None:
    done: list[str] = []
    async with worker_swarm(Worker(), deps=Careless("closing").open).open() as live:
        for text in "ab":
            result = await (await live.submit(WorkGiven(text=text))).result()
            assert f"the run's dependencies could not be closed: RuntimeError: {STRAY}" in result.warnings[0]
            await anyio.wait_all_tasks_blocked()
            done.append(result.output.text)
    assert done == ["a", "b"]


async def test_dependencies_that_let_one_out_when_opened_fail_the_run() -> None:
    with pytest.raises(RunFailed, match=STRAY):
        await worker_swarm(Worker(), deps=Careless("opening").open).run(WorkGiven())


@pytest.mark.parametrize("when", ["opening", "closing"])
async def test_a_roles_resources_that_let_one_out_are_an_error_of_the_swarm(when: str) -> None:
    with pytest.raises(RuntimeError, match=STRAY) as caught:
        await worker_swarm(Owner(Careless(when))).run(WorkGiven())
    assert isinstance(caught.value.__cause__, asyncio.CancelledError)


@pytest.mark.parametrize("when", ["opening", "closing"])
async def test_a_models_connection_that_lets_one_out_is_an_error_of_the_swarm(when: str) -> None:
    with pytest.raises(RuntimeError, match=STRAY):
        await worker_swarm(Asker(), model=CarelessModel(Careless(when))).run(WorkGiven())


async def test_what_a_streamed_agent_lets_out_is_an_error_for_who_reads() -> None:
    async def read() -> None:
        async for _ in Agent(CarelessModel(Careless("closing"))).stream("go"):
            pass

    with pytest.raises(RuntimeError, match=STRAY):
        await read()


async def test_one_of_the_callers_own_block_comes_out_as_it_is() -> None:
    with pytest.raises(asyncio.CancelledError):
        async with worker_swarm(Owner(Careless("never"))).open():
            raise asyncio.CancelledError


async def test_a_cancellation_from_outside_is_obeyed() -> None:
    async def keep_open() -> None:
        async with worker_swarm(Owner(Careless("never"))).open():
            await anyio.sleep_forever()

    task = asyncio.create_task(keep_open())
    await anyio.wait_all_tasks_blocked()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(keep_open(), 0.01)
