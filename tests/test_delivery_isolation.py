"""What goes wrong with one run, or is its own, stays with it: no other run of the open swarm is touched."""

from __future__ import annotations

import asyncio
import json
import re
from contextlib import asynccontextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

import anyio
import anyio.lowlevel
import pytest
from pydantic import BaseModel

from support.clock import FakeClock
from support.jobs import JobGiven, PieceDone, WorkDone, WorkGiven, job_swarm, worker_swarm
from swarmbus import (
    Budget,
    Event,
    LimitReached,
    Role,
    RoleContext,
    RunCancelled,
    RunFailed,
    RunTimedOut,
    Swarm,
    on,
    tool,
)
from swarmbus.delivery.journal import Journal, MemoryJournal
from swarmbus.models import ScriptedModel, call

if TYPE_CHECKING:
    from collections.abc import AsyncIterator


class Mute(Exception):
    """Raises whenever somebody wants to show it."""

    def __str__(self) -> str:
        return str(self.detail)  # type: ignore[attr-defined]  # a common slip

    __repr__ = __str__


class Stopping(Exception):
    """Raises what stops a task whenever somebody wants to show it."""

    def __str__(self) -> str:
        raise asyncio.CancelledError


class Masked(ValueError):
    """Does not even say of which class it is."""

    @property
    def __class__(self) -> Any:
        raise RuntimeError("no class")

    @__class__.setter
    def __class__(self, value: Any) -> None:
        raise RuntimeError("no class")


class Nameless(type):
    """Makes classes that do not say what they are called."""

    @property
    def __name__(cls) -> str:  # type: ignore[override]
        raise ValueError("no name")


class Unnamed(Exception, metaclass=Nameless):
    """Its class raises whenever somebody asks for its name."""


ERRORS: dict[str, tuple[Exception, str]] = {
    "str raises": (Mute(), "Mute: <Mute that can't be shown: AttributeError>"),
    "str cancels": (Stopping(), "Stopping: <Stopping that can't be shown: CancelledError>"),
    "huge int": (ValueError("", 10**5000), "ValueError: <ValueError that can't be shown: ValueError>"),
    "surrogate": (ValueError("no file caf\udce9.txt"), "ValueError: no file caf\ufffd.txt"),
    "class raises": (Masked("masked"), "Masked: masked"),
    "name raises": (Unnamed("secret"), "Unnamed: secret"),
}

errors = pytest.mark.parametrize(("error", "told"), ERRORS.values(), ids=ERRORS)
tellable = pytest.mark.parametrize(("error", "told"), list(ERRORS.values())[:4], ids=list(ERRORS)[:4])
journals = pytest.mark.parametrize("journal", [None, MemoryJournal()], ids=["no journal", "journal"])


async def fails_alone(swarm: Swarm[WorkDone], told: str) -> None:
    """Run what fails beside what does not."""
    async with swarm.open() as live:
        bad = await live.submit(WorkGiven(text="bad"))
        good = await live.submit(WorkGiven(text="good"))
        with pytest.raises(RunFailed, match=r"worker\.work for work_given") as failed:
            await bad.result()
        (failure,) = failed.value.result.failures
        assert f"{failure.error_type}: {failure.message}" == told
        assert (await good.result()).output == WorkDone(text="good")


@errors
@journals
async def test_an_error_of_a_handler_fails_its_run_alone(journal: Journal | None, error: Exception, told: str) -> None:
    class Worker(Role):
        @on
        async def work(self, event: WorkGiven) -> WorkDone:
            if event.text == "bad":
                raise error
            return WorkDone(text=event.text)

    await fails_alone(worker_swarm(Worker(), journal=journal), told)


@errors
@journals
async def test_an_error_of_instructions_fails_its_run_alone(
    journal: Journal | None, error: Exception, told: str
) -> None:
    def instruct(_context: RoleContext) -> str:
        raise error

    class Worker(Role):
        instructions = staticmethod(instruct)

        @on
        async def work(self, event: WorkGiven, ctx: RoleContext) -> WorkDone:
            return WorkDone(text=event.text if event.text == "good" else await ctx.ask(event.text))

    await fails_alone(worker_swarm(Worker(), journal=journal, model=ScriptedModel([])), told)


@errors
@journals
async def test_an_error_of_dependencies_fails_its_run_alone(
    journal: Journal | None, error: Exception, told: str
) -> None:
    @asynccontextmanager
    async def deps(event: Any) -> AsyncIterator[None]:
        if event.text == "bad":
            raise error
        yield

    class Worker(Role):
        @on
        async def work(self, event: WorkGiven) -> WorkDone:
            return WorkDone(text=event.text)

    await fails_alone(worker_swarm(Worker(), journal=journal, deps=deps), told)


@tellable
@journals
async def test_an_error_of_a_model_fails_its_run_alone(journal: Journal | None, error: Exception, told: str) -> None:
    def fail(_request: object) -> str:
        raise error

    class Worker(Role):
        @on
        async def work(self, event: WorkGiven, ctx: RoleContext) -> WorkDone:
            return WorkDone(text=event.text if event.text == "good" else await ctx.ask(event.text))

    await fails_alone(worker_swarm(Worker(), journal=journal, model=ScriptedModel([fail])), told)


@tellable
async def test_an_error_of_a_tool_is_told_to_the_model(error: Exception, told: str) -> None:
    @tool(effects="read_only")
    async def look() -> str:
        """Look at it."""
        raise error

    class Worker(Role):
        tools = (look,)

        @on
        async def work(self, event: WorkGiven, ctx: RoleContext) -> WorkDone:
            return WorkDone(text=await ctx.ask(event.text))

    model = ScriptedModel([call("look"), lambda request: json.loads(request.messages[-1].content)["message"]])
    result = await worker_swarm(Worker(), model=model).run(WorkGiven())
    assert result.output.text == told


@errors
async def test_an_error_in_closing_dependencies_is_a_warning(error: Exception, told: str) -> None:
    @asynccontextmanager
    async def deps(_event: Any) -> AsyncIterator[None]:
        yield
        raise error

    class Worker(Role):
        @on
        async def work(self, event: WorkGiven) -> WorkDone:
            return WorkDone(text=event.text)

    result = await worker_swarm(Worker(), deps=deps).run(WorkGiven())
    assert result.warnings == (f"the run's dependencies could not be closed: {told}",)


@journals
async def test_a_reason_for_cancelling_may_hold_any_character(journal: Journal | None) -> None:
    class Worker(Role):
        @on
        async def work(self, event: WorkGiven, ctx: RoleContext) -> WorkDone:
            return WorkDone(text=await ctx.ask_person("?", reply=str))

    async with worker_swarm(Worker(), journal=journal).open() as live:
        run = await live.submit(WorkGiven())
        await run.cancel("no file caf\udce9")
        with pytest.raises(RunCancelled, match="no file caf\ufffd"):
            await run.result()


TENANT = ContextVar("TENANT", default="nobody")


class Marked(Role):
    """Says what the context variable holds, and sets it."""

    name = "worker"

    @on
    async def work(self, event: WorkGiven) -> WorkDone:
        seen = TENANT.get()
        TENANT.set(f"set by {event.text}")
        await anyio.lowlevel.checkpoint()
        assert TENANT.get() == f"set by {event.text}"
        return WorkDone(text=seen)


class MarkedThread(Role):
    """Does the same in a thread."""

    name = "worker"

    @on
    def work(self, event: WorkGiven) -> WorkDone:
        seen = TENANT.get()
        TENANT.set(f"set by {event.text}")
        return WorkDone(text=seen)


@pytest.mark.parametrize("role", [Marked, MarkedThread])
async def test_a_handler_sees_the_context_variables_of_who_submitted_the_run_and_sets_its_own(role: type[Role]) -> None:
    async with worker_swarm(role()).open() as live:
        for tenant in ("a", "b"):
            token = TENANT.set(tenant)
            run = await live.submit(WorkGiven(text=tenant))
            TENANT.reset(token)
            assert (await run.result()).output == WorkDone(text=tenant)
    assert TENANT.get() == "nobody"


def runs_named(text: str) -> set[int]:
    """Return the runs of which pieces are named: the piece 123 belongs to run 12."""
    return {int(piece) // 10 for piece in re.findall(r"piece\W+(\d+)", text)}


async def test_twenty_runs_at_once_share_nothing_but_their_swarm() -> None:
    numbers, late, greedy = range(10, 30), 10, 29
    clock, journal, inside, all_inside = FakeClock(), MemoryJournal(), set[str](), anyio.Event()
    model = ScriptedModel([lambda request: str(request.messages[-1].content)] * 100)
    states: dict[str, tuple[int, ...]] = {}

    class Worker(Role):
        concurrency = len(numbers)
        history = "run"

        class State(BaseModel, frozen=True):
            pieces: tuple[int, ...] = ()

        @on(JobGiven, each="pieces")
        async def work(self, piece: int, state: State, ctx: RoleContext) -> PieceDone:
            inside.add(ctx.run_id)
            if len(inside) == len(numbers):
                all_inside.set()
            await all_inside.wait()
            assert await ctx.ask(f"piece {piece}") == f"piece {piece}"
            states[ctx.run_id] = ctx.update(pieces=(*state.pieces, piece)).pieces
            if piece // 10 == late:
                await anyio.sleep_forever()
            return PieceDone(piece=piece)

    jobs = {number: tuple(range(10 * number, 10 * number + 3 + (number == greedy))) for number in numbers}
    swarm = job_swarm(Worker(), clock=clock, journal=journal, model=model, budget=Budget(calls=3))
    async with swarm.open() as live:
        runs = {
            number: await live.submit(JobGiven(pieces=pieces), run_id=str(number), timeout=5 if number == late else 10)
            for number, pieces in jobs.items()
        }
        readings = {number: run.events() for number, run in runs.items()}
        await clock.advance(5)
        with pytest.raises(RunTimedOut, match="no result within 5 s"):
            await runs.pop(late).result()
        with pytest.raises(LimitReached, match="3 model calls were made, the budget allows 3"):
            await runs.pop(greedy).result()
        for number, run in runs.items():
            result = await run.result()
            assert (result.output.done, result.usage.calls, result.warnings) == (jobs[number], 3, ())
            assert states[run.id] == jobs[number]
        for number, reading in readings.items():
            assert runs_named(str([item async for item in reading])) == {number}
    for run_id, records in journal.records.items():
        assert runs_named(b"".join(records).decode()) == {int(run_id)}
    for request in model.requests:
        assert len(runs_named(str(request.messages))) == 1


FILES: dict[int, tuple[int, ...]] = {1: (1, 2)}


class Listing(Event):
    number: int


class Lister(Role):
    """Has what a dictionary holds handled one by one, a moment later."""

    name = "worker"

    @on
    async def work(self, event: WorkGiven, ctx: RoleContext[Listing]) -> None:
        await ctx.publish(Listing(number=int(event.text)), after=60)

    @on(Listing, each=lambda listing: FILES[listing.number])
    async def take(self, item: int) -> WorkDone:
        return WorkDone(text=str(item))


async def test_what_decides_about_an_event_and_raises_when_its_time_comes_fails_that_run_alone() -> None:
    FILES[2], clock = (), FakeClock()
    async with worker_swarm(Lister(), ("worker", Listing, "worker"), clock=clock).open() as live:
        failed = await live.submit(WorkGiven(text="2"))
        whole = await live.submit(WorkGiven(text="1"))
        await anyio.wait_all_tasks_blocked()
        del FILES[2]
        await clock.advance(60)
        with pytest.raises(RunFailed, match=r"listing came due, but `each` of worker.take .* raised KeyError: 2"):
            await failed.result()
        assert (await whole.result()).output == WorkDone(text="1")


@pytest.mark.parametrize("anyio_backend", ["asyncio"])  # where a task can be cancelled by whoever holds it
async def test_a_task_that_a_handler_kept_and_that_is_cancelled_too_late_costs_nothing() -> None:
    kept: list[asyncio.Task[Any]] = []

    class Keeper(Role):
        name = "worker"
        concurrency = 2

        @on
        async def work(self, event: WorkGiven) -> WorkDone:
            task = asyncio.current_task()
            assert task is not None
            kept.append(task)
            if event.text == "itself":
                task.cancel()
            return WorkDone()

    async with worker_swarm(Keeper()).open() as live:
        for text in ("", "itself", "", "", "itself", ""):
            run = await live.submit(WorkGiven(text=text), timeout=20)
            assert (await run.result()).output == WorkDone()
            await anyio.wait_all_tasks_blocked()
            kept[-1].cancel()
            await anyio.wait_all_tasks_blocked()


@pytest.mark.parametrize("anyio_backend", ["asyncio"])  # where a task can be cancelled by whoever holds it
async def test_a_task_that_was_left_to_itself_and_is_cancelled_later_makes_no_room_for_a_further_one() -> None:
    kept: list[asyncio.Task[Any]] = []
    under_way, most = 0, 0

    class Stuck(Role):
        name = "worker"

        @on
        async def work(self, event: WorkGiven) -> WorkDone:
            nonlocal under_way, most
            if event.text == "stuck":
                task = asyncio.current_task()
                assert task is not None
                kept.append(task)
                with anyio.CancelScope(shield=True):
                    await anyio.sleep_forever()
            under_way += 1
            most = max(most, under_way)
            await anyio.sleep(0.02)
            under_way -= 1
            return WorkDone()

    async with worker_swarm(Stuck()).open(grace=0.05) as live:
        stuck = await live.submit(WorkGiven(text="stuck"))
        await anyio.wait_all_tasks_blocked()
        await stuck.cancel()
        kept[0].cancel()
        await anyio.wait_all_tasks_blocked()
        for run in [await live.submit(WorkGiven()) for _ in range(5)]:
            assert (await run.result()).output == WorkDone()
    assert most == 1
