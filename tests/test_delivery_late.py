"""A context that is used after its attempt, or its run, is over says so, whatever is asked of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import anyio
import pytest
from pydantic import BaseModel

from support.jobs import WorkDone, WorkGiven, WorkSeen, worker_swarm
from swarmbus import External, FrozenDict, Retry, Retryable, Role, RoleContext, RunCancelled, on
from swarmbus.delivery.journal import MemoryJournal
from swarmbus.errors import RoleError
from swarmbus.models import ScriptedModel

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

SEEN = ("worker", WorkSeen, External("screen"))

CALLS: dict[str, Callable[[Any], Awaitable[Any] | None]] = {
    "publish": lambda ctx: ctx.publish(WorkSeen()),
    "publish later": lambda ctx: ctx.publish(WorkSeen(), after=1),
    "ask": lambda ctx: ctx.ask("?"),
    "agent": lambda ctx: ctx.agent.run("?"),
    "once": lambda ctx: ctx.once("key", lambda: None),
    "ask_person": lambda ctx: ctx.ask_person("?", reply=str),
    "progress": lambda ctx: ctx.progress("still here"),
    "update": lambda ctx: ctx.update(count=1),
    "put": lambda ctx: ctx.put("notes", "a", 1),
    "remove": lambda ctx: ctx.remove("notes", "a"),
}


class Keeper(Role):
    """Keeps its contexts, and fails at its first attempt."""

    name = "worker"

    class State(BaseModel, frozen=True):
        count: int = 0
        notes: FrozenDict[str, int] = FrozenDict()

    def __init__(self) -> None:
        self.kept: list[RoleContext[WorkSeen]] = []
        self.late: Callable[[], Awaitable[None]] | None = None

    @on
    async def work(self, event: WorkGiven, ctx: RoleContext[WorkSeen]) -> WorkDone:
        self.kept.append(ctx)
        if ctx.attempt == 1:
            raise Retryable("again")
        if self.late is not None:
            await self.late()
        return WorkDone()


async def refused(name: str, ctx: RoleContext[WorkSeen]) -> None:
    async def late() -> None:
        answer = CALLS[name](ctx)
        if answer is not None:
            await answer

    call = name.partition(" ")[0]
    with pytest.raises(RoleError, match=rf"ctx\.{call}.* came too late: worker\.work is over, or its run is"):
        await late()


@pytest.mark.parametrize("name", CALLS)
async def test_a_context_is_of_no_use_once_its_run_is_over(name: str) -> None:
    worker, model = Keeper(), ScriptedModel(["never said"])
    async with worker_swarm(worker, SEEN, model=model, retry=Retry(delay=0)).open() as live:
        run = await live.submit(WorkGiven())
        await run.result()
        await refused(name, worker.kept[1])
    assert (model.requests, dict(run.questions)) == ([], {})


@pytest.mark.parametrize("name", CALLS)
async def test_a_context_is_of_no_use_once_its_attempt_is_over(name: str) -> None:
    async def late() -> None:
        await refused(name, worker.kept[0])

    worker, model = Keeper(), ScriptedModel(["never said"])
    worker.late = late
    result = await worker_swarm(worker, SEEN, model=model, retry=Retry(delay=0)).run(WorkGiven())
    assert (model.requests, result.usage.calls, result.warnings) == ([], 0, ())


async def test_an_agent_that_was_kept_is_of_no_use_either() -> None:
    agents: list[Any] = []

    class Worker(Role):
        @on
        async def work(self, event: WorkGiven, ctx: RoleContext) -> WorkDone:
            agents.append(ctx.agent)
            return WorkDone()

    model = ScriptedModel(["never said"])
    await worker_swarm(Worker(), model=model).run(WorkGiven())
    with pytest.raises(RoleError, match="what a handler awaits of its context came too late"):
        await agents[0].run("?")
    assert model.requests == []


@pytest.mark.parametrize("kept", [None, MemoryJournal], ids=["memory", "journal"])
async def test_what_goes_on_after_the_run_was_cancelled_is_told(kept: Any) -> None:
    model = ScriptedModel(["never said"])
    begun = anyio.Event()
    told: list[str] = []

    class Worker(Role):
        @on
        async def work(self, event: WorkGiven, ctx: RoleContext[WorkSeen]) -> WorkDone:
            try:
                begun.set()
                await anyio.sleep_forever()
            finally:
                with anyio.CancelScope(shield=True):
                    for name in ("publish", "publish later", "ask", "once", "ask_person"):
                        await refused(name, ctx)
                        told.append(name)
            return WorkDone()

    async with worker_swarm(Worker(), SEEN, model=model, journal=kept and kept()).open() as live:
        run = await live.submit(WorkGiven())
        await begun.wait()
        await run.cancel()
        with pytest.raises(RunCancelled):
            await run.result()
    assert (len(told), model.requests) == (5, [])


async def test_what_waits_on_behind_its_handler_leaves_the_time_of_the_next_alone() -> None:
    """A task of a handler that is over still waited, uncounted, in the slot that the next handler has."""
    waiting: list[Any] = []

    class Worker(Role):
        concurrency = 1

        @on
        async def work(self, event: WorkGiven, ctx: RoleContext) -> WorkDone:
            attempt: Any = ctx._port._attempt  # type: ignore[attr-defined]
            if not waiting:
                pause = attempt.pause_clock()
                pause.__enter__()
                waiting.append(pause)
            else:
                before = attempt.slot.deadline
                waiting[0].__exit__()
                assert attempt.slot.deadline == before
            return WorkDone()

    async with worker_swarm(Worker(), timeout=60).open() as live:
        for _ in range(2):
            await (await live.submit(WorkGiven())).result()


class Stubborn(Role):
    """Does not go when it is suspended, and publishes later."""

    name = "worker"

    def __init__(self) -> None:
        self.refused: list[str] = []
        self.over = anyio.Event()

    @on
    async def work(self, event: WorkGiven, ctx: RoleContext[WorkSeen]) -> WorkDone:
        try:
            return WorkDone(text=await ctx.ask_person("?", reply=str))
        except anyio.get_cancelled_exc_class():
            with anyio.CancelScope(shield=True):
                await anyio.sleep(0.2)
                for after in (None, 0.0):
                    try:
                        await ctx.publish(WorkSeen(), after=after)
                    except RoleError as error:
                        self.refused.append(str(error))
                self.over.set()
            raise


@pytest.mark.parametrize("grace", [0.05, 10], ids=["left to itself", "waited for"])
async def test_a_suspended_attempt_that_goes_on_publishes_nothing(grace: float) -> None:
    worker = Stubborn()
    async with worker_swarm(worker, SEEN).open(grace=grace) as live:
        run = await live.submit(WorkGiven())
        await worker.over.wait()
        await run.answer(next(iter(run.questions)), "yes")
        assert (await run.result()).output == WorkDone(text="yes")
    assert len(worker.refused) == 2
    assert all("came too late" in refused for refused in worker.refused)
