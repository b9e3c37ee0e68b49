"""What is no error, such as `SystemExit`, ends the swarm wherever it is raised, and reaches its caller as it is."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import anyio
import pytest

from support.jobs import JobGiven, PieceDone, WorkDone, WorkGiven, job_swarm, kinds, read_all, worker_swarm
from swarmbus import Event, Role, RoleContext, RunStopped, on, tool
from swarmbus.delivery.journal import MemoryJournal
from swarmbus.models import ScriptedModel, call

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from swarmbus import Run

EXITS = [SystemExit(3), KeyboardInterrupt(), GeneratorExit(), BaseException("odd")]


class Raising(Role):
    """Raises what it is given, or answers where that is nothing."""

    name = "worker"

    def __init__(self, error: BaseException | None) -> None:
        self.error = error

    @on
    async def work(self, event: WorkGiven) -> WorkDone:
        if self.error is not None:
            raise self.error
        return WorkDone(text="done")


class RaisingInAThread(Role):
    """Raises what it is given in a thread."""

    name = "worker"

    def __init__(self, error: BaseException) -> None:
        self.error = error

    @on
    def work(self, event: WorkGiven) -> WorkDone:
        raise self.error


@pytest.mark.parametrize("worker", [Raising, RaisingInAThread])
@pytest.mark.parametrize("error", EXITS, ids=repr)
async def test_what_a_handler_raises_that_is_no_error_reaches_the_caller_alone(
    worker: type[Raising | RaisingInAThread], error: BaseException
) -> None:
    with anyio.fail_after(5), pytest.raises(type(error)) as caught:
        await worker_swarm(worker(error)).run(WorkGiven())
    assert caught.value is error


async def test_it_reaches_the_caller_from_a_tool_too() -> None:
    error = SystemExit(3)

    @tool(effects="read_only")
    async def leave() -> str:
        """Leave."""
        raise error

    class Asker(Role):
        name = "worker"
        tools = (leave,)

        @on
        async def work(self, event: WorkGiven, ctx: RoleContext) -> WorkDone:
            return WorkDone(text=await ctx.ask("Go on."))

    model = ScriptedModel([[call("leave"), call("leave")], "text"])
    with anyio.fail_after(5), pytest.raises(SystemExit) as caught:
        await worker_swarm(Asker(), model=model).run(WorkGiven())
    assert caught.value is error


@pytest.mark.parametrize("error", [*EXITS[:2], EXITS[3], ExceptionGroup("mine", [KeyError("x")])], ids=repr)
async def test_what_the_callers_own_block_raises_leaves_it_as_it_is(error: BaseException) -> None:
    with anyio.fail_after(5), pytest.raises(type(error)) as caught:  # noqa: PT012  # the block is what is tested
        async with worker_swarm(Raising(None)).open() as live:
            await live.submit(WorkGiven())
            raise error
    assert caught.value is error


async def test_whoever_waits_for_a_run_is_told_what_ended_the_swarm() -> None:
    told, seen = list[str](), list[Any]()
    runs: list[Run[Any]] = []
    begun, leave = anyio.Event(), anyio.Event()

    class Mixed(Role):
        name = "worker"
        concurrency = 2

        @on
        async def work(self, event: WorkGiven) -> WorkDone:
            await leave.wait()
            if event.text == "exits":
                raise SystemExit(3)
            await anyio.sleep_forever()
            return WorkDone()

    async def keep_open() -> None:
        with pytest.raises(SystemExit):  # noqa: PT012
            async with worker_swarm(Mixed()).open() as live:
                runs.extend([await live.submit(WorkGiven(text=text)) for text in ("exits", "waits")])
                begun.set()
                await anyio.sleep_forever()

    async def wait(run: Run[Any]) -> None:
        with pytest.raises(RunStopped) as caught:
            await run.result()
        told.append(str(caught.value).removeprefix(f"run {run.id} "))

    async def read(run: Run[Any]) -> None:
        seen.extend(await read_all(run))

    with anyio.fail_after(5):
        async with anyio.create_task_group() as group:
            group.start_soon(keep_open)
            await begun.wait()
            for run in runs:
                group.start_soon(wait, run)
            group.start_soon(read, runs[1])
            await anyio.wait_all_tasks_blocked()
            leave.set()
    assert told == ["was stopped: worker.work for work_given 0 raised SystemExit: 3, which ended the swarm"] * 2
    assert kinds(seen)[-1] == "run_stopped"


async def test_nothing_new_starts_and_the_run_goes_on_when_it_is_resumed() -> None:
    journal, begun = MemoryJournal(), list[int]()

    class Leaving(Role):
        name = "worker"
        exits = True

        @on(JobGiven, each="pieces")
        async def work(self, piece: int, ctx: RoleContext) -> PieceDone:
            begun.append(piece)
            if piece == 2 and ctx.attempt == 1:
                raise SystemExit(3)
            return PieceDone(piece=piece)

    swarm = job_swarm(Leaving(), journal=journal)
    with anyio.fail_after(5), pytest.raises(SystemExit):
        await swarm.run(JobGiven(pieces=(1, 2, 3, 4)), run_id="r")
    assert begun == [1, 2]
    async with swarm.open() as live:
        assert (await (await live.resume("r")).result()).output.done == (1, 2, 3, 4)
    assert begun == [1, 2, 2, 3, 4]


@pytest.mark.parametrize("when", ["opened", "closed"])
async def test_dependencies_that_exit_do_the_same(when: str) -> None:
    error = SystemExit("no database")

    @asynccontextmanager
    async def connect(event: Event) -> AsyncIterator[None]:
        if when == "opened":
            raise error
        yield
        raise error

    with anyio.fail_after(5), pytest.raises(SystemExit) as caught:
        await worker_swarm(Raising(None), deps=connect).run(WorkGiven())
    assert caught.value is error


async def test_dependencies_that_exit_after_the_time_to_close_them_do_the_same() -> None:
    error, leave = SystemExit("no database"), anyio.Event()

    @asynccontextmanager
    async def connect(event: Event) -> AsyncIterator[None]:
        yield
        await leave.wait()
        raise error

    with anyio.fail_after(5), pytest.raises(SystemExit) as caught:  # noqa: PT012  # the block is what is tested
        async with worker_swarm(Raising(None), deps=connect).open(grace=0) as live:
            result = await (await live.submit(WorkGiven())).result()
            assert result.warnings == ("the run's dependencies were not closed within 0 s",)
            leave.set()
            await anyio.sleep_forever()
    assert caught.value is error


@pytest.mark.parametrize("when", ["opened", "closed"])
async def test_a_model_that_exits_ends_the_swarm_and_nothing_else(when: str) -> None:
    error = SystemExit("no server")

    class Exiting(ScriptedModel):
        @asynccontextmanager
        async def open(self) -> AsyncIterator[None]:
            if when == "opened":
                raise error
            yield
            raise error

    class Asker(Role):
        name = "worker"

        @on
        async def work(self, event: WorkGiven, ctx: RoleContext) -> WorkDone:
            answer = await ctx.ask("Go on.")
            await anyio.wait_all_tasks_blocked()
            return WorkDone(text=answer)

    with anyio.fail_after(5), pytest.raises(SystemExit) as caught:
        await worker_swarm(Asker(), model=Exiting(["text"])).run(WorkGiven())
    assert caught.value is error


class OddJournal(MemoryJournal):
    """Raises what no journal is to raise."""

    def __init__(self, kind: bytes) -> None:
        super().__init__()
        self.kind = kind

    async def append(self, run_id: str, record: bytes) -> None:
        if self.kind in record:
            raise ZeroDivisionError
        await super().append(run_id, record)


@pytest.mark.parametrize("kind", [b"submitted", b"started", b"ended"])
async def test_a_fault_of_the_swarms_own_parts_reaches_the_caller_alone(kind: bytes) -> None:
    with anyio.fail_after(5), pytest.raises(ZeroDivisionError):
        await worker_swarm(Raising(None), journal=OddJournal(kind)).run(WorkGiven())
