"""Starting runs: what is accepted, what a run's id stands for, and many runs at a time."""

from __future__ import annotations

from typing import Any

import anyio
import pytest

from support.jobs import JobGiven, PieceDone, WorkDone, Worker, WorkGiven, job_swarm, worker_swarm
from swarmbus import CLIENT, EventTable, Role, Swarm, WiringError, on
from swarmbus.delivery.journal import MemoryJournal
from swarmbus.errors import SubmitError


class Noting(Role):
    """Notes what it is given."""

    name = "worker"

    def __init__(self) -> None:
        self.given: list[str] = []

    @on
    async def work(self, event: WorkGiven) -> WorkDone:
        self.given.append(event.text)
        return WorkDone(text=event.text)


@pytest.mark.parametrize("journal", [None, MemoryJournal], ids=["no journal", "journal"])
async def test_submitting_twice_under_one_id_is_one_run(journal: type[MemoryJournal] | None) -> None:
    worker = Noting()
    async with worker_swarm(worker, journal=journal and journal()).open() as live:
        first = await live.submit(WorkGiven(text="a"), run_id="r")
        second = await live.submit(WorkGiven(text="a"), run_id="r")
        assert (await first.result()).output == (await second.result()).output == WorkDone(text="a")
    assert worker.given == ["a"]


async def test_submitting_again_after_the_end_returns_the_same_result() -> None:
    worker = Noting()
    async with worker_swarm(worker, journal=MemoryJournal()).open() as live:
        first = await (await live.submit(WorkGiven(text="a"), run_id="r")).result()
        again = await (await live.submit(WorkGiven(text="a"), run_id="r")).result()
    assert (first.output, first.started) == (again.output, again.started)
    assert worker.given == ["a"]


async def test_submitting_again_in_another_process_goes_on_with_the_recorded_run() -> None:
    worker, journal = Noting(), MemoryJournal()
    await worker_swarm(worker, journal=journal).run(WorkGiven(text="a"), run_id="r")
    assert (await worker_swarm(worker, journal=journal).run(WorkGiven(text="a"), run_id="r")).output.text == "a"
    assert worker.given == ["a"]


class SlowJournal(MemoryJournal):
    """Lets others run before it answers, as one on a disk does."""

    async def append(self, run_id: str, record: bytes) -> None:
        await anyio.lowlevel.checkpoint()
        await super().append(run_id, record)

    async def read(self, run_id: str) -> list[bytes]:
        await anyio.lowlevel.checkpoint()
        return await super().read(run_id)

    async def runs(self) -> list[str]:
        await anyio.lowlevel.checkpoint()
        return await super().runs()


async def test_several_that_submit_at_once_under_one_id_get_one_run() -> None:
    worker, runs = Noting(), list[Any]()

    async with worker_swarm(worker, journal=SlowJournal()).open() as live:

        async def submit() -> None:
            runs.append(await live.submit(WorkGiven(text="a"), run_id="r"))

        async with anyio.create_task_group() as group:
            for _ in range(5):
                group.start_soon(submit)
        for run in runs:
            await run.result()
    assert worker.given == ["a"]


@pytest.mark.parametrize("event", [WorkDone(), PieceDone(piece=1), "text", None], ids=str)
async def test_what_the_table_does_not_accept_is_refused_and_leaves_nothing(event: Any) -> None:
    journal = MemoryJournal()
    async with worker_swarm(Noting(), journal=journal).open() as live:
        with pytest.raises(SubmitError, match="accept"):
            await live.submit(event, run_id="r")
    assert journal.records == {}


async def test_a_swarm_with_faults_in_its_wiring_does_not_open() -> None:
    swarm = Swarm(Noting(), table=EventTable((CLIENT, WorkGiven, "wroker"), result=None))
    with pytest.raises(WiringError) as caught:
        async with swarm.open():
            raise AssertionError("it opened")
    assert {finding.severity for finding in caught.value.findings} >= {"error"}


async def test_many_runs_at_a_time_each_get_their_own() -> None:
    async with job_swarm(Worker()).open() as live:
        runs = [await live.submit(JobGiven(pieces=tuple(range(number)))) for number in range(50)]
        for number, run in enumerate(runs):
            assert (await run.result()).output.done == tuple(range(number))
    assert len({run.id for run in runs}) == 50


async def test_one_swarm_can_be_opened_again_and_by_two_at_a_time() -> None:
    swarm = job_swarm(Worker())
    async with swarm.open() as one, swarm.open() as other:
        for live in (one, other):
            assert (await (await live.submit(JobGiven(pieces=(1,)))).result()).output.done == (1,)
    assert (await swarm.run(JobGiven(pieces=(2,)))).output.done == (2,)


async def test_unfit_characters_are_replaced_and_reported() -> None:
    result = await worker_swarm(Noting()).run(WorkGiven.model_construct(text="a\ud800\x00b"))
    assert result.output.text.startswith("a")
    assert result.output.text.endswith("b")
    assert result.warnings == ("2 characters that no text can hold were replaced in work_given",)
