"""The bus alone, with a handler of the test's own behind it: records before effects, and a journal that fails."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import anyio
import pytest

from support.jobs import Gatherer, JobDone, JobGiven, PieceDone, Worker
from swarmbus import CLIENT, EventTable, Retry
from swarmbus.delivery.attempt import Attempt, Handled
from swarmbus.delivery.bus import Bus
from swarmbus.delivery.clock import SystemClock
from swarmbus.delivery.journal import MemoryJournal
from swarmbus.delivery.supervisor import Policy
from swarmbus.delivery.topology import Topology
from swarmbus.delivery.transports.base import Station
from swarmbus.delivery.transports.memory import MemoryTransport
from swarmbus.errors import PublishError, RecordError
from swarmbus.wiring import read_role

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Coroutine

TABLE = EventTable(
    (CLIENT, JobGiven, ("worker", "gatherer")),
    ("worker", PieceDone, "gatherer"),
    ("gatherer", JobDone, CLIENT),
    result=JobDone,
)


async def handle(attempt: Attempt) -> Handled:
    """Stand in for assembly: do a piece, or gather what was done."""
    joined = attempt.delivery.joined
    if joined is None:
        return Handled((PieceDone(piece=attempt.delivery.value),))
    return Handled((JobDone(done=tuple(piece.piece for piece in joined.done)),))


@asynccontextmanager
async def serving(
    invoke: Callable[[Attempt], Coroutine[Any, Any, Handled]] = handle, journal: Any = None
) -> AsyncIterator[Bus]:
    topology = Topology((read_role(Worker()), read_role(Gatherer())), TABLE)
    bus = Bus(
        topology,
        MemoryTransport([Station(role, 1, False, 100) for role in ("worker", "gatherer")]),
        invoke,
        policies=(Policy(Retry(), 60.0),) * len(topology.handlers),
        limits={"worker": 4, "gatherer": 4},
        clock=SystemClock(),
        journal=journal,
    )
    async with anyio.create_task_group() as group:
        await group.start(bus.serve)
        yield bus
        group.cancel_scope.cancel()


def result_of(run: Any) -> Any:
    outcome = run.ledger.outcome
    return outcome.envelope.event if outcome.envelope is not None else outcome.status


async def test_a_run_ends_with_its_result_and_is_forgotten() -> None:
    async with serving() as bus:
        run = await bus.submit("r", JobGiven(pieces=(1, 2, 3)))
        await run.ended.wait()
        assert (result_of(run), bus.runs) == (JobDone(done=(1, 2, 3)), {})


async def test_what_the_table_does_not_allow_makes_no_run() -> None:
    async with serving() as bus:
        with pytest.raises(PublishError):
            await bus.submit("r", PieceDone(piece=1))
        assert bus.runs == {}


async def test_no_effect_of_a_record_shows_before_it_is_kept() -> None:
    journal = MemoryJournal()
    seen: list[tuple[str, int]] = []

    async def look(attempt: Attempt) -> Handled:
        started = [b'"record":"started"' in record for record in journal.records["r"]]
        seen.append((attempt.delivery.handler.role, sum(started)))
        return await handle(attempt)

    async with serving(look, journal) as bus:
        await (await bus.submit("r", JobGiven(pieces=(1, 2)))).ended.wait()
    assert seen == [("worker", 1), ("worker", 2), ("gatherer", 3)]


async def test_a_run_is_rebuilt_from_any_number_of_its_records() -> None:
    journal = MemoryJournal()
    async with serving(journal=journal) as bus:
        await (await bus.submit("r", JobGiven(pieces=(1, 2, 3)))).ended.wait()
    records = journal.records["r"]
    for kept in range(1, len(records) + 1):
        async with serving(journal=MemoryJournal({"r": records[:kept]})) as bus:
            _, read = await bus.recorded("r")
            run = await bus.restore("r", read)
            await run.ended.wait()
            assert result_of(run) == JobDone(done=(1, 2, 3)), kept


async def test_a_run_that_the_journal_does_not_hold_can_not_be_read() -> None:
    async with serving(journal=MemoryJournal({"other": []})) as bus:
        with pytest.raises(RecordError, match="the journal has no run 'r'; it has: other"):
            await bus.recorded("r")
    async with serving() as bus:
        with pytest.raises(RecordError, match="keeps no journal"):
            await bus.recorded("r")


async def test_records_that_come_after_the_end_change_nothing() -> None:
    async with serving() as bus:
        run = await bus.submit("r", JobGiven(pieces=()))
        await run.ended.wait()
        before = run.ledger.records
        await bus.send(run, JobGiven(pieces=(1,)), "client", None)
        assert run.ledger.records == before
