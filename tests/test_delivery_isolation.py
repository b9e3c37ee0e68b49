"""Errors that can't be told as they are: they fail the run that they belong to, and no other run of the open swarm."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest

from support.jobs import JobDone, JobGiven, PieceDone, WorkDone, WorkGiven, gatherer, job_swarm, worker_swarm
from swarmbus import Role, RoleContext, RunCancelled, RunFailed, Swarm, on
from swarmbus.delivery.journal import Journal, MemoryJournal
from swarmbus.models import ScriptedModel

if TYPE_CHECKING:
    from collections.abc import AsyncIterator


class Mute(Exception):
    """Raises whenever somebody wants to show it."""

    def __str__(self) -> str:
        return str(self.detail)  # type: ignore[attr-defined]  # a common slip

    __repr__ = __str__


class Masked(ValueError):
    """Does not even say of which class it is."""

    @property
    def __class__(self) -> Any:
        raise RuntimeError("no class")

    @__class__.setter
    def __class__(self, value: Any) -> None:
        raise RuntimeError("no class")


ERRORS: dict[str, tuple[Exception, str]] = {
    "str raises": (Mute(), "Mute: <Mute that can't be shown: AttributeError>"),
    "huge int": (ValueError("", 10**5000), "ValueError: <ValueError that can't be shown: ValueError>"),
    "surrogate": (ValueError("no file caf\udce9.txt"), "ValueError: no file caf\ufffd.txt"),
    "class raises": (Masked("masked"), "Masked: masked"),
}

errors = pytest.mark.parametrize(("error", "told"), ERRORS.values(), ids=ERRORS)
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


async def test_an_item_that_can_not_be_shown_fails_alone() -> None:
    class Worker(Role):
        @on(JobGiven, each="pieces")
        async def work(self, piece: int) -> PieceDone:
            if piece:
                raise ValueError("too many")
            return PieceDone(piece=piece)

    swarm = job_swarm(Worker(), gatherer(partial="proceed"))
    result = await swarm.run(JobGiven(pieces=(0, 1, 10**5000)))
    assert result.output == JobDone(done=(0,), failed=(1, 10**5000))
    assert result.failures[1].value == "<int that can't be shown: ValueError>"


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
