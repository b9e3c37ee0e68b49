"""What opening a swarm raises: the user's own error, once, as it was raised, wherever it happened."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import anyio
import pytest

from support.jobs import WorkDone, WorkGiven, worker_swarm
from swarmbus import Event, Role, RoleContext, RunFailed, on
from swarmbus.models import ScriptedModel

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

pytestmark = pytest.mark.anyio


class OwnError(Exception):
    """Something of the user's own went wrong."""


class Worker(Role):
    """Holds something that may fail when it is opened or closed, and notes how it was left."""

    def __init__(self, opening: Exception | None = None, closing: Exception | None = None) -> None:
        self.opening = opening
        self.closing = closing
        self.left: list[BaseException | None] = []

    @asynccontextmanager
    async def lifespan(self) -> AsyncIterator[None]:
        if self.opening is not None:
            raise self.opening
        try:
            yield
        except BaseException as error:
            self.left.append(error)
            raise
        else:
            self.left.append(None)
        if self.closing is not None:
            raise self.closing

    @on
    async def work(self, event: WorkGiven) -> WorkDone:
        return WorkDone()


class Asker(Role):
    name = "worker"

    @on
    async def work(self, event: WorkGiven, ctx: RoleContext) -> WorkDone:
        return WorkDone(text=await ctx.ask("What now?"))


OWN = OwnError("own")
GROUPED = ExceptionGroup("the lifespan's own task group", [OWN])


@pytest.mark.parametrize("error", [OWN, ExceptionGroup("two", [OWN, OSError()])], ids=["one", "group"])
async def test_an_error_of_the_block_comes_out_as_it_is(error: Exception) -> None:
    worker = Worker()
    with pytest.raises(type(error)) as caught:
        async with worker_swarm(worker).open():
            raise error
    assert caught.value is error
    assert worker.left == [error]


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit], ids=lambda error: str(error.__name__))
async def test_a_stop_of_the_program_comes_out_as_it_is(error: type[BaseException]) -> None:
    with pytest.raises(error):
        async with worker_swarm(Worker()).open():
            raise error


@pytest.mark.parametrize(
    "worker", [Worker(opening=OWN), Worker(closing=OWN)], ids=["when it is opened", "when it is closed"]
)
async def test_an_error_of_a_roles_resources_comes_out_as_it_is(worker: Worker) -> None:
    with pytest.raises(OwnError) as caught:
        await worker_swarm(worker).run(WorkGiven())
    assert caught.value is OWN


async def test_an_error_while_closing_does_not_hide_the_one_before_it() -> None:
    with pytest.raises(OwnError) as caught:
        async with worker_swarm(Worker(closing=OwnError("later"))).open():
            raise OWN
    assert caught.value is OWN


async def test_resources_that_are_no_context_manager_are_refused() -> None:
    class Odd(Worker):
        name = "worker"

        async def lifespan(self) -> AsyncIterator[None]:  # type: ignore[override]
            yield

    with pytest.raises(TypeError, match=r"worker\.lifespan\(\) has to return an async context manager.*@asyncc"):
        await worker_swarm(Odd()).run(WorkGiven())


@pytest.mark.parametrize("error", [OWN, GROUPED], ids=["plain", "group"])
async def test_an_error_of_the_dependencies_is_the_cause_of_the_failed_run(error: Exception | None) -> None:
    @asynccontextmanager
    async def deps(event: Event) -> AsyncIterator[None]:
        if error is not None:
            raise error
        yield

    with pytest.raises(RunFailed, match="OwnError: own") as caught:
        await worker_swarm(Worker(), deps=deps).run(WorkGiven())
    assert caught.value.__cause__ is OWN


async def test_dependencies_that_are_no_context_manager_fail_the_run() -> None:
    async def deps(event: Event) -> int:
        return 3

    with pytest.raises(RunFailed, match="the function given as deps= has to return an async context manager"):
        await worker_swarm(Worker(), deps=deps).run(WorkGiven())


async def test_an_error_of_a_model_that_is_opened_comes_out_as_it_is() -> None:
    class Closed(ScriptedModel):
        @asynccontextmanager
        async def open(self) -> AsyncIterator[None]:
            if self.name:
                raise OWN
            yield

    with pytest.raises(OwnError) as caught:
        await worker_swarm(Asker(), model=Closed(["on"])).run(WorkGiven())
    assert caught.value is OWN


@pytest.mark.anyio(False)
def test_run_sync_runs_where_no_event_loop_does() -> None:
    assert worker_swarm(Worker()).run_sync(WorkGiven()).output == WorkDone()


async def test_run_sync_says_what_to_write_where_an_event_loop_runs() -> None:
    with pytest.raises(RuntimeError, match=r"write `await swarm\.run\(\.\.\.\)` instead of run_sync"):
        worker_swarm(Worker()).run_sync(WorkGiven())


async def test_run_sync_runs_in_a_thread_beside_an_event_loop() -> None:
    swarm: Any = worker_swarm(Worker())
    result = await anyio.to_thread.run_sync(swarm.run_sync, WorkGiven())
    assert result.output == WorkDone()


async def test_an_override_is_used_within_its_block_and_may_be_nested() -> None:
    swarm = worker_swarm(Asker(), model=ScriptedModel(["own"]))
    with swarm.override(model=ScriptedModel(["outer"])):
        with swarm.override(model=ScriptedModel(["inner"])):
            assert (await swarm.run(WorkGiven())).output.text == "inner"
        assert (await swarm.run(WorkGiven())).output.text == "outer"
    assert (await swarm.run(WorkGiven())).output.text == "own"


async def test_an_override_beside_another_is_refused_and_none_is_left_behind() -> None:
    swarm = worker_swarm(Asker(), model=ScriptedModel(["own"]))
    entered, refused = anyio.Event(), anyio.Event()

    async def first() -> None:
        with swarm.override(model=ScriptedModel(["first"])):
            entered.set()
            await refused.wait()
            assert (await swarm.run(WorkGiven())).output.text == "first"

    async def second() -> None:
        await entered.wait()
        with pytest.raises(RuntimeError, match="in use in another task or thread"), swarm.override(model="offline"):
            pass
        refused.set()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(first)
        tasks.start_soon(second)
    assert (await swarm.run(WorkGiven())).output.text == "own"


@pytest.mark.anyio(False)
def test_an_override_around_an_event_loop_may_have_another_within() -> None:
    swarm = worker_swarm(Asker(), model="openai:never")

    async def main() -> str:
        with swarm.override(model=ScriptedModel(["inner"])):
            return (await swarm.run(WorkGiven())).output.text

    with swarm.override(model=ScriptedModel(["outer"])):
        assert anyio.run(main) == "inner"
        assert swarm.run_sync(WorkGiven()).output.text == "outer"
