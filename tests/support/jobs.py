"""The two smallest swarms that delivery is tested with: one worker, and a mapped job whose pieces are gathered."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, TypeVar

import anyio

from swarmbus import CLIENT, Event, EventTable, Joined, Role, Swarm, join, on

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from swarmbus import LiveSwarm, Run


E = TypeVar("E", bound=Event)


class WorkGiven(Event):
    text: str = ""


class WorkSeen(Event):
    text: str = ""


class WorkDone(Event):
    text: str = ""


def worker_swarm(worker: Role, *rows: Any, **options: Any) -> Swarm[WorkDone]:
    """One role named `worker` takes `WorkGiven` and publishes `WorkDone`, the result; further rows may be given."""
    table = EventTable((CLIENT, WorkGiven, "worker"), ("worker", WorkDone, CLIENT), *rows, result=WorkDone)
    return Swarm(worker, table=table, **options)


class JobGiven(Event):
    pieces: tuple[int, ...]


class PieceDone(Event):
    piece: int


class JobDone(Event):
    done: tuple[int, ...] = ()
    failed: tuple[int, ...] = ()
    missing: tuple[int, ...] = ()
    cancelled: tuple[int, ...] = ()


class Worker(Role):
    """Does each piece at once; tests override `work`."""

    @on(JobGiven, each="pieces")
    async def work(self, piece: int) -> PieceDone | None:
        return PieceDone(piece=piece)


class Gatherer(Role):
    """Waits for every piece; tests make one with other policies."""

    @join(PieceDone, per=JobGiven)
    async def gather(self, job: JobGiven, pieces: Joined[PieceDone]) -> JobDone:
        return gathered(pieces)


def gathered(pieces: Joined[PieceDone]) -> JobDone:
    """Say what a join was given."""
    return JobDone(
        done=tuple(piece.piece for piece in pieces.done),
        failed=tuple(failed.item for failed in pieces.failed),
        missing=tuple(missing.item for missing in pieces.missing),
        cancelled=tuple(cancelled.item for cancelled in pieces.cancelled),
    )


def gatherer(**policy: Any) -> Role:
    """A gatherer whose join has this policy."""

    class Gatherer(Role):
        @join(PieceDone, per=JobGiven, **policy)
        async def gather(self, job: JobGiven, pieces: Joined[PieceDone]) -> JobDone:
            return gathered(pieces)

    return Gatherer()


def job_swarm(
    worker: Role | None = None, gatherer: Role | None = None, *others: Role, **options: Any
) -> Swarm[JobDone]:
    """The client's job goes to a worker piece by piece, and to the gatherer of the pieces."""
    table = EventTable(
        (CLIENT, JobGiven, ("worker", "gatherer")),
        ("worker", PieceDone, "gatherer"),
        ("gatherer", JobDone, CLIENT),
        *options.pop("rows", ()),
        result=JobDone,
    )
    return Swarm(worker or Worker(), gatherer or Gatherer(), *others, table=table, **options)


@asynccontextmanager
async def started(swarm: Swarm[Any], event: Event, **options: Any) -> AsyncIterator[tuple[LiveSwarm[Any], Run[Any]]]:
    """Open a swarm, start a run, and let it get as far as it can without time passing."""
    async with swarm.open() as live:
        run = await live.submit(event, **options)
        await anyio.wait_all_tasks_blocked()
        yield live, run


async def read_all(run: Run[Any]) -> list[Any]:
    """Read a run's events to their end."""
    return [item async for item in run.events()]


def events_in(seen: list[Any], cls: type[E]) -> list[E]:
    """Return the events of a class among what was seen, in order."""
    events = (getattr(item, "event", None) for item in seen)
    return [event for event in events if isinstance(event, cls)]


def kinds(seen: list[Any]) -> list[str]:
    """Return the types of the lifecycle events, and the names of the classes of the envelopes' events."""
    return [_kind(item) for item in seen]


def _kind(item: Any) -> str:
    event = getattr(item, "event", None)
    return type(event).__name__ if event is not None else str(item.type)
