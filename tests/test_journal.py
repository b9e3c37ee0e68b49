"""The durable sequence of records: what the bus writes to it and when, and going on from it."""

from __future__ import annotations

import json

import anyio
import pytest

from support.jobs import JobGiven, PieceDone, WorkDone, Worker, WorkGiven, WorkSeen, job_swarm, worker_swarm
from swarmbus import External, Retry, Retryable, Role, RoleContext, RunFailed, RunTimedOut, on
from swarmbus.delivery.journal import Journal, MemoryJournal
from swarmbus.errors import RecordError, SubmitError


class Waiter(Role):
    """Works once the gate is open."""

    name = "worker"

    def __init__(self, gate: anyio.Event) -> None:
        self.gate = gate

    @on
    async def work(self, event: WorkGiven, ctx: RoleContext) -> WorkDone:
        await ctx.once("effect", lambda: event.text)
        await self.gate.wait()
        return WorkDone(text=event.text)


def kinds(records: list[bytes]) -> list[str]:
    return [json.loads(record)["record"] for record in records]


async def test_it_keeps_records_in_their_order_run_by_run() -> None:
    journal: Journal = MemoryJournal()
    for run, record in (("b", b"1"), ("a", b"2"), ("b", b"3")):
        await journal.append(run, record)
    assert await journal.runs() == ["b", "a"]
    assert (await journal.read("b"), await journal.read("a"), await journal.read("c")) == ([b"1", b"3"], [b"2"], [])


async def test_what_was_read_is_not_changed_by_what_is_appended() -> None:
    journal = MemoryJournal()
    await journal.append("a", b"1")
    read = await journal.read("a")
    await journal.append("a", b"2")
    assert read == [b"1"]


async def test_the_records_of_a_run() -> None:
    journal = MemoryJournal()

    class Failing(Role):
        name = "worker"
        retry = Retry(delay=0)

        @on
        async def work(self, event: WorkGiven, ctx: RoleContext) -> WorkDone:
            await ctx.once("effect", lambda: None)
            if ctx.attempt == 1:
                raise Retryable("again")
            return WorkDone()

    await worker_swarm(Failing(), journal=journal).run(WorkGiven(), run_id="r")
    assert kinds(journal.records["r"]) == ["submitted", "started", "called", "failed", "started", "committed", "ended"]


async def test_a_record_is_kept_before_its_effect_shows() -> None:
    held, release = anyio.Event(), anyio.Event()

    class SlowJournal(MemoryJournal):
        async def append(self, run_id: str, record: bytes) -> None:
            if json.loads(record)["record"] == "committed":
                held.set()
                await release.wait()
            await super().append(run_id, record)

    gate = anyio.Event()
    gate.set()
    async with worker_swarm(Waiter(gate), journal=SlowJournal()).open() as live:
        run = await live.submit(WorkGiven())
        await held.wait()
        await anyio.wait_all_tasks_blocked()
        assert run.status == "running"
        release.set()
        assert (await run.result()).output == WorkDone()


async def test_a_resumed_run_goes_on_where_the_records_end() -> None:
    journal, gate = MemoryJournal(), anyio.Event()
    async with worker_swarm(Waiter(gate), journal=journal).open(grace=0) as live:
        await live.submit(WorkGiven(text="a"), run_id="r")
        await anyio.wait_all_tasks_blocked()
    gate.set()
    async with worker_swarm(Waiter(gate), journal=journal).open() as live:
        run = await live.resume("r")
        assert (await run.result()).output == WorkDone(text="a")
    assert kinds(journal.records["r"]).count("called") == 1


async def test_a_finished_run_can_be_resumed_for_its_result() -> None:
    journal = MemoryJournal()
    first = await job_swarm(Worker(), journal=journal).run(JobGiven(pieces=(1, 2)), run_id="r")
    before = list(journal.records["r"])
    async with job_swarm(Worker(), journal=journal).open() as live:
        again = await (await live.resume("r")).result()
    assert (again.output, again.started, again.ended) == (first.output, first.started, first.ended)
    assert journal.records["r"] == before


async def test_resuming_a_run_that_is_open_is_the_run_itself() -> None:
    gate = anyio.Event()
    async with worker_swarm(Waiter(gate), journal=MemoryJournal()).open() as live:
        run = await live.submit(WorkGiven(), run_id="r")
        assert await live.resume("r") is run
        gate.set()


async def test_an_unknown_run_is_refused_with_those_there_are() -> None:
    journal = MemoryJournal()
    await job_swarm(Worker(), journal=journal).run(JobGiven(pieces=()), run_id="known")
    async with job_swarm(Worker(), journal=journal).open() as live:
        with pytest.raises(RecordError, match="the journal has no run 'other'; it has: known"):
            await live.resume("other")


async def test_without_a_journal_nothing_can_be_resumed() -> None:
    async with job_swarm(Worker()).open() as live:
        with pytest.raises(RecordError, match="keeps no journal"):
            await live.resume("r")


async def test_a_damaged_record_is_refused_and_nothing_starts() -> None:
    journal, done = MemoryJournal(), list[int]()

    class Noting(Worker):
        name = "worker"

        @on(JobGiven, each="pieces")
        async def work(self, piece: int) -> PieceDone:
            done.append(piece)
            return PieceDone(piece=piece)

    await job_swarm(Worker(), journal=journal).run(JobGiven(pieces=(1,)), run_id="r")
    journal.records["r"][1] = journal.records["r"][1][:20]
    async with job_swarm(Noting(), journal=journal).open() as live:
        with pytest.raises(RecordError, match="not a record of this swarm"):
            await live.resume("r")
    assert done == []


class FullJournal(MemoryJournal):
    """Has no space for one kind of record."""

    def __init__(self, kind: str, error: Exception | None = None) -> None:
        super().__init__()
        self.kind = kind
        self.error = error or OSError("no space left")

    async def append(self, run_id: str, record: bytes) -> None:
        if json.loads(record)["record"] == self.kind:
            raise self.error
        await super().append(run_id, record)


@pytest.mark.parametrize("kind", ["started", "called", "published", "committed", "failed"])
async def test_a_record_that_can_not_be_kept_ends_the_run_and_can_be_made_good(kind: str) -> None:
    journal, starts = FullJournal(kind), list[int]()

    class Busy(Role):
        name = "worker"

        @on(retry=Retry(delay=0))
        async def work(self, event: WorkGiven, ctx: RoleContext[WorkSeen]) -> WorkDone:
            starts.append(ctx.attempt)
            await ctx.once("effect", lambda: None)
            await ctx.publish(WorkSeen())
            if ctx.attempt == 1 and kind == "failed":
                raise Retryable("again")
            return WorkDone(text="done")

    seen = ("worker", WorkSeen, External("screen"))
    with pytest.raises(RunFailed, match=f"its journal could not keep a `{kind}` record: OSError: no space") as caught:
        await worker_swarm(Busy(), seen, journal=journal).run(WorkGiven(), run_id="r")
    assert isinstance(caught.value.__cause__, OSError)
    assert len(starts) == (kind != "started")
    journal.kind = "none"
    async with worker_swarm(Busy(), seen, journal=journal).open() as live:
        assert (await (await live.resume("r")).result()).output == WorkDone(text="done")


async def test_a_journal_may_say_in_its_own_words_that_it_can_not_keep_a_record() -> None:
    journal = FullJournal("committed", RecordError("too long"))
    with pytest.raises(RunFailed, match="its journal could not keep a `committed` record: RecordError: too long"):
        await job_swarm(Worker(), journal=journal).run(JobGiven(pieces=(1,)))


async def test_a_submit_that_can_not_be_kept_makes_no_run() -> None:
    async with job_swarm(Worker(), journal=FullJournal("submitted")).open() as live:
        with pytest.raises(SubmitError, match="no space left") as caught:
            await live.submit(JobGiven(pieces=(1,)))
        assert isinstance(caught.value.__cause__, OSError)


async def test_an_end_that_can_not_be_kept_is_an_end_all_the_same() -> None:
    journal = FullJournal("ended")
    result = await job_swarm(Worker(), journal=journal).run(JobGiven(pieces=(1,)), run_id="r")
    assert result.warnings == ("its journal could not keep a `ended` record: OSError: no space left",)
    journal.kind = "none"
    async with job_swarm(Worker(), journal=journal).open() as live:
        assert (await (await live.resume("r")).result()).output == result.output


async def test_a_full_journal_fails_no_other_run() -> None:
    journal, gate = FullJournal("none"), anyio.Event()
    async with worker_swarm(Waiter(gate), journal=journal).open() as live:
        first = await live.submit(WorkGiven())
        await anyio.wait_all_tasks_blocked()
        journal.kind = "committed"
        gate.set()
        with pytest.raises(RunFailed):
            await first.result()
        journal.kind = "none"
        assert (await (await live.submit(WorkGiven(text="b"))).result()).output == WorkDone(text="b")


class Cancelled(MemoryJournal):
    """Cancels, once, whoever has it keep a record, as a library does whose own task was cancelled."""

    def __init__(self) -> None:
        super().__init__()
        self.cancels = True

    async def append(self, run_id: str, record: bytes) -> None:
        if self.cancels and b'"started"' in record:
            self.cancels = False
            raise anyio.get_cancelled_exc_class()
        await super().append(run_id, record)


@pytest.mark.parametrize("anyio_backend", ["asyncio"])  # trio lets nobody raise its `Cancelled`
async def test_a_journal_that_cancels_who_writes_to_it_costs_that_run_alone() -> None:
    gate = anyio.Event()
    gate.set()
    async with worker_swarm(Waiter(gate), journal=Cancelled()).open() as live:
        lost = await live.submit(WorkGiven())
        with pytest.raises(
            RunFailed, match="could not keep a `started` record: TimeoutError: its writing was cancelled"
        ):
            await lost.result()
        assert (await (await live.submit(WorkGiven(text="on"))).result()).output == WorkDone(text="on")


class Silent(MemoryJournal):
    """Never comes back from keeping one kind of record of one run."""

    def __init__(self, kind: str) -> None:
        super().__init__()
        self.kind = kind

    async def append(self, run_id: str, record: bytes) -> None:
        if run_id == "held" and json.loads(record)["record"] == self.kind:
            await anyio.sleep_forever()
        await super().append(run_id, record)


class Later(Role):
    """Has its work done a moment later."""

    name = "worker"

    @on
    async def work(self, event: WorkGiven, ctx: RoleContext[WorkDone]) -> None:
        await ctx.publish(WorkDone(text=event.text), after=0.01)


@pytest.mark.parametrize("kind", ["started", "published", "committed", "fired", "ended"])
async def test_a_journal_that_does_not_answer_keeps_neither_its_run_nor_others_from_their_end(kind: str) -> None:
    async with worker_swarm(Later(), journal=Silent(kind)).open(grace=0.1) as live:
        held = await live.submit(WorkGiven(), run_id="held", timeout=0.1)
        free = await live.submit(WorkGiven(text="free"), timeout=20)
        assert (await free.result()).output == WorkDone(text="free")
        if kind == "ended":
            result = await held.result()
            assert result.warnings == (
                "its journal could not keep a `ended` record: TimeoutError: it did not answer within 2 s",
            )
        else:
            with pytest.raises(RunTimedOut):
                await held.result()
        await held.cancel()
