"""Several threads with an event loop each: a swarm may be open in all, and is not called in another than its own."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING, Any

import anyio
import anyio.from_thread
import anyio.to_thread
import pytest

from support.jobs import WorkDone, WorkGiven, WorkSeen, started, worker_swarm
from swarmbus import CLIENT, LiveSwarm, Role, RoleContext, Run, RunFailed, on
from swarmbus.models import ScriptedModel

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    Call = Callable[[LiveSwarm[Any], Run[Any]], Awaitable[Any]]


class Asker(Role):
    """Waits for a person."""

    name = "worker"

    @on
    async def work(self, event: WorkGiven, ctx: RoleContext) -> WorkDone:
        return WorkDone(text=await ctx.ask_person(event.text, reply=str))


class Detour(Role):
    """Uses its context in an event loop of its own."""

    name = "worker"

    def __init__(self, call: Callable[[RoleContext[WorkSeen]], Awaitable[Any]], backend: str) -> None:
        self.call = call
        self.backend = backend

    @on
    def work(self, _event: WorkGiven, ctx: RoleContext[WorkSeen]) -> WorkDone | None:
        anyio.run(self.call, ctx, backend=self.backend)
        return None


CALLS: dict[str, Call] = {
    "submit()": lambda live, _: live.submit(WorkGiven()),
    "resume()": lambda live, run: live.resume(run.id),
    "run.send()": lambda _, run: run.send(WorkGiven()),
    "run.answer()": lambda _, run: run.answer(next(iter(run.questions)), "no"),
    "run.cancel()": lambda _, run: run.cancel(),
    "run.result()": lambda _, run: run.result(),
    "run.events()": lambda _, run: anext(run.events()),
}


async def in_another_thread(call: Callable[[], Awaitable[Any]], backend: str) -> Any:
    async def main() -> Any:
        return await call()

    return await anyio.to_thread.run_sync(lambda: anyio.run(main, backend=backend))


@pytest.mark.parametrize(("name", "call"), CALLS.items(), ids=CALLS)
async def test_a_call_from_another_thread_is_refused(name: str, call: Call, anyio_backend: str) -> None:
    async with started(worker_swarm(Asker()), WorkGiven(text="?")) as (live, run):
        with pytest.raises(RuntimeError, match="another thread than the one the swarm was opened in") as refused:
            await in_another_thread(lambda: call(live, run), anyio_backend)
        assert str(refused.value).startswith(f"{name} was called in ")
        await run.answer(next(iter(run.questions)), "yes")
        assert (await run.result()).output == WorkDone(text="yes")


async def test_a_call_from_another_thread_is_made_through_the_event_loop_of_the_swarm() -> None:
    async with worker_swarm(Asker()).open() as live:

        def elsewhere() -> None:
            run = anyio.from_thread.run(live.submit, WorkGiven(text="?"))
            anyio.from_thread.run(anyio.wait_all_tasks_blocked)
            anyio.from_thread.run(run.answer, next(iter(run.questions)), "yes")
            runs.append(run)

        runs = list[Run[Any]]()
        await anyio.to_thread.run_sync(elsewhere)
        assert (await runs[0].result()).output == WorkDone(text="yes")


async def test_an_iterator_is_not_read_in_another_thread(anyio_backend: str) -> None:
    async with started(worker_swarm(Asker()), WorkGiven(text="?")) as (_, run):
        reading = run.events()
        with pytest.raises(RuntimeError, match=r"the iterator of run.events\(\) was called in"):
            await in_another_thread(lambda: anext(reading), anyio_backend)
        await run.cancel()


async def test_what_a_run_that_is_over_brought_can_be_had_everywhere(anyio_backend: str) -> None:
    async with started(worker_swarm(Asker()), WorkGiven(text="?")) as (_, run):
        await run.answer(next(iter(run.questions)), "yes")
        result = await run.result()
        assert await in_another_thread(run.result, anyio_backend) == result


uses = pytest.mark.parametrize(
    "call",
    [
        lambda ctx: ctx.publish(WorkSeen()),
        lambda ctx: ctx.ask_person("?", reply=str),
        lambda ctx: ctx.ask("?"),
        lambda ctx: ctx.once("key", lambda: 1),
    ],
    ids=["publish", "ask_person", "ask", "once"],
)


@uses
async def test_a_context_is_not_used_in_another_event_loop(call: Any, anyio_backend: str) -> None:
    swarm = worker_swarm(Detour(call, anyio_backend), ("worker", WorkSeen, CLIENT), model=ScriptedModel(["yes"]))
    async with swarm.open() as live:
        run = await live.submit(WorkGiven())
        with pytest.raises(RunFailed, match="another thread than the one the swarm was opened in"):
            await run.result()


@uses
async def test_a_context_is_not_used_in_a_thread_without_an_event_loop(call: Any) -> None:
    class Worker(Role):
        @on
        def work(self, event: WorkGiven, ctx: RoleContext[WorkSeen]) -> WorkDone:
            call(ctx).send(None)
            return WorkDone()

    with pytest.raises(RunFailed, match="another thread than the one the swarm was opened in"):
        await worker_swarm(Worker(), ("worker", WorkSeen, CLIENT), model=ScriptedModel(["yes"])).run(WorkGiven())


class Parent(Role):
    """Publishes a child and waits until it was handled, and notes in which thread either happens."""

    name = "worker"
    concurrency = 2

    def __init__(self) -> None:
        self.threads: set[tuple[str, int]] = set()
        self.handled: dict[str, anyio.Event] = {}

    @on
    async def work(self, event: WorkGiven, ctx: RoleContext[WorkSeen]) -> WorkDone:
        self.threads.add((event.text, threading.get_ident()))
        self.handled[ctx.run_id] = anyio.Event()
        await ctx.publish(WorkSeen(text=event.text))
        await self.handled[ctx.run_id].wait()
        return WorkDone(text=event.text)

    @on
    async def see(self, event: WorkSeen, ctx: RoleContext) -> None:
        self.threads.add((event.text, threading.get_ident()))
        self.handled[ctx.run_id].set()


def test_one_swarm_opened_in_two_threads_stays_in_the_event_loop_of_each(anyio_backend: str) -> None:
    parent, both = Parent(), threading.Barrier(2, timeout=30)
    swarm = worker_swarm(parent, ("worker", WorkSeen, "worker"))

    async def rounds(name: str) -> int:
        async with swarm.open() as live:
            both.wait()  # so that neither is over before the other begins
            for _ in range(100):
                run = await live.submit(WorkGiven(text=name))
                assert (await run.result()).output == WorkDone(text=name)
        return threading.get_ident()

    with ThreadPoolExecutor(2) as pool:
        run = partial(anyio.run, backend=anyio_backend)
        loops = {name: pool.submit(run, partial(rounds, name)) for name in ("one", "other")}
        homes = {(name, loop.result()) for name, loop in loops.items()}
    assert (parent.threads, len({thread for _, thread in homes})) == (homes, 2)
