"""What is wrapped around every delivery."""

from __future__ import annotations

from typing import Any

import pytest

from support.jobs import JobGiven, PieceDone, WorkDone, Worker, WorkGiven, job_swarm, worker_swarm
from swarmbus import Event, Retry, Retryable, Role, RoleContext, RunFailed, on


class Plain(Role):
    """Takes no context."""

    name = "worker"

    @on
    async def work(self, event: WorkGiven) -> WorkDone:
        return WorkDone(text=event.text)


async def test_it_wraps_every_attempt_the_first_outermost() -> None:
    log: list[str] = []

    def named(name: str) -> Any:
        async def wrap(ctx: RoleContext[Any, Any], event: Event, handle: Any) -> Any:
            log.append(f"{name} in {ctx.role} {type(event).__name__} {ctx.attempt}")
            try:
                return await handle()
            finally:
                log.append(f"{name} out")

        return wrap

    class Failing(Role):
        name = "worker"
        retry = Retry(delay=0)

        @on
        async def work(self, event: WorkGiven, ctx: RoleContext) -> WorkDone:
            log.append("handler")
            if ctx.attempt == 1:
                raise Retryable("again")
            return WorkDone()

    swarm = worker_swarm(Failing())
    swarm.middleware += [named("a"), named("b")]
    await swarm.run(WorkGiven())
    once = ["handler", "b out", "a out"]
    assert log == [
        "a in worker WorkGiven 1",
        "b in worker WorkGiven 1",
        *once,
        "a in worker WorkGiven 2",
        "b in worker WorkGiven 2",
        *once,
    ]


async def test_it_may_change_what_is_returned_and_skip_the_handler() -> None:
    async def answer(ctx: RoleContext[Any, Any], event: Event, handle: Any) -> Any:
        return WorkDone(text="from the cache")

    swarm = worker_swarm(Plain())
    swarm.middleware.append(answer)
    assert (await swarm.run(WorkGiven(text="x"))).output.text == "from the cache"


async def test_what_it_returns_has_to_be_declared_as_well() -> None:
    async def stray(ctx: RoleContext[Any, Any], event: Event, handle: Any) -> Any:
        await handle()
        return PieceDone(piece=1)

    swarm = worker_swarm(Plain())
    swarm.middleware.append(stray)
    with pytest.raises(RunFailed, match="declares that it returns WorkDone, but returned PieceDone"):
        await swarm.run(WorkGiven())


async def test_what_it_raises_is_the_deliverys_failure() -> None:
    async def guard(ctx: RoleContext[Any, Any], event: Event, handle: Any) -> Any:
        raise PermissionError("not today")

    swarm = worker_swarm(Plain())
    swarm.middleware.append(guard)
    with pytest.raises(RunFailed, match="not today") as caught:
        await swarm.run(WorkGiven())
    assert isinstance(caught.value.__cause__, PermissionError)


async def test_maps_and_joins_are_wrapped_like_the_rest() -> None:
    seen: list[str] = []

    async def note(ctx: RoleContext[Any, Any], event: Event, handle: Any) -> Any:
        seen.append(f"{ctx.role} {type(event).__name__}")
        return await handle()

    swarm = job_swarm(Worker())
    swarm.middleware.append(note)
    await swarm.run(JobGiven(pieces=(1, 2)))
    assert sorted(seen) == ["gatherer JobGiven", "worker JobGiven", "worker JobGiven"]
