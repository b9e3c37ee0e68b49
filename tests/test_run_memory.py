"""Roles that remember over a run: what a delivery adds counts with its commit, and is in the run's records."""

from __future__ import annotations

from typing import Any

import anyio
import pytest

from support.jobs import JobGiven, PieceDone, WorkDone, WorkGiven, gatherer, job_swarm, worker_swarm
from swarmbus import Retry, Retryable, Role, RoleContext, Swarm, on
from swarmbus.delivery.journal import MemoryJournal
from swarmbus.messages import Message, UserMessage
from swarmbus.models import ScriptedModel
from swarmbus.thinking.hooks import Hooks, NextTurn
from swarmbus.thinking.limits import Limits


class Rememberer(Role):
    """Asks its model about each piece, and remembers the pieces before."""

    name = "worker"
    history = "run"
    retry = Retry(delay=0)

    @on(JobGiven, each="pieces")
    async def work(self, piece: int, ctx: RoleContext) -> PieceDone:
        await ctx.ask(f"piece {piece}")
        await self.after(piece, ctx)
        return PieceDone(piece=piece)

    async def after(self, piece: int, ctx: RoleContext) -> None:
        """Do nothing; tests override it."""


class Halting(Rememberer):
    """Never comes to an end with piece 3."""

    name = "worker"

    async def after(self, piece: int, ctx: RoleContext) -> None:
        if piece == 3:
            await anyio.sleep_forever()


def replies(count: int) -> ScriptedModel:
    return ScriptedModel([f"reply {number}" for number in range(1, count + 1)])


def asked(model: ScriptedModel) -> list[list[Any]]:
    """Return the texts of every request."""
    return [[message.content for message in request.messages] for request in model.requests]


async def left_by_a_crash(swarm: Swarm[Any], pieces: tuple[int, ...], journal: MemoryJournal) -> MemoryJournal:
    """Begin a run that halts, and return the records that the end of its process would leave."""
    async with swarm.open(grace=0) as live:
        await live.submit(JobGiven(pieces=pieces), run_id="r")
        await anyio.wait_all_tasks_blocked()
        return MemoryJournal({run: list(records) for run, records in journal.records.items()})


async def test_each_delivery_goes_on_from_those_before() -> None:
    model = replies(2)
    await job_swarm(Rememberer(), model=model).run(JobGiven(pieces=(1, 2)))
    assert asked(model) == [["piece 1"], ["piece 1", "reply 1", "piece 2"]]


async def test_another_attempt_asks_the_same_and_pays_nothing() -> None:
    class Failing(Rememberer):
        name = "worker"

        async def after(self, piece: int, ctx: RoleContext) -> None:
            if piece == 2 and ctx.attempt == 1:
                raise Retryable("after it was paid for")

    model = replies(2)
    result = await job_swarm(Failing(), model=model).run(JobGiven(pieces=(1, 2)))
    assert asked(model) == [["piece 1"], ["piece 1", "reply 1", "piece 2"]]
    assert (result.usage.calls, result.warnings) == (2, ())


async def test_what_a_delivery_that_failed_has_said_is_not_remembered() -> None:
    class Failing(Rememberer):
        name = "worker"
        retry = Retry(attempts=1)

        async def after(self, piece: int, ctx: RoleContext) -> None:
            if piece == 1:
                raise ValueError("not this one")

    model = replies(2)
    await job_swarm(Failing(), gatherer(partial="proceed"), model=model).run(JobGiven(pieces=(1, 2)))
    assert asked(model) == [["piece 1"], ["piece 2"]]


async def test_runs_remember_nothing_of_each_other() -> None:
    model = replies(2)
    async with job_swarm(Rememberer(), model=model).open() as live:
        for piece in (1, 2):
            await (await live.submit(JobGiven(pieces=(piece,)))).result()
    assert asked(model) == [["piece 1"], ["piece 2"]]


async def test_a_question_with_settings_is_remembered_and_one_with_a_history_is_not() -> None:
    class Worker(Role):
        history = "run"

        @on
        async def work(self, event: WorkGiven, ctx: RoleContext) -> WorkDone:
            await ctx.ask("a", limits=Limits(turns=1))
            await ctx.ask("b", history=())
            await ctx.agent.run("c")
            return WorkDone(text=await ctx.ask("d"))

    model = replies(4)
    await worker_swarm(Worker(), model=model).run(WorkGiven())
    assert asked(model)[1:] == [["b"], ["a", "reply 1", "c"], ["a", "reply 1", "c", "reply 3", "d"]]


@pytest.mark.parametrize("grace", [0, 10], ids=["cut", "drained"])
async def test_a_resumed_run_remembers_what_was_committed(grace: float) -> None:
    journal, model = MemoryJournal(), replies(4)
    kept = await left_by_a_crash(job_swarm(Halting(), model=model, journal=journal), (1, 2, 3, 4), journal)
    async with job_swarm(Rememberer(), model=model, journal=kept).open(grace=grace) as live:
        result = await (await live.resume("r")).result()
    assert result.output.done == (1, 2, 3, 4)
    assert asked(model)[-1] == ["piece 1", "reply 1", "piece 2", "reply 2", "piece 3", "reply 3", "piece 4"]
    assert (len(model.requests), result.warnings) == (4, ())


async def test_a_history_that_a_hook_replaced_is_remembered_as_it_was_left() -> None:
    def forget(progress: Any) -> NextTurn:
        kept: list[Message] = [UserMessage("summary")]
        return NextTurn(messages=[*kept, *progress.messages[-2:]])

    class Forgetful(Halting):
        name = "worker"

        @on(JobGiven, each="pieces")
        async def work(self, piece: int, ctx: RoleContext) -> PieceDone:
            answer = await ctx.ask(f"piece {piece}", output=int, hooks=Hooks(prepare_next_turn=forget))
            await self.after(piece, ctx)
            return PieceDone(piece=answer)

    journal, model = MemoryJournal(), ScriptedModel(["one", 1, 2, 3, 4])
    kept = await left_by_a_crash(job_swarm(Forgetful(), model=model, journal=journal), (1, 2, 3), journal)
    before = asked(model)[-1]
    async with job_swarm(Forgetful(), model=(again := ScriptedModel([3])), journal=kept).open(grace=0) as live:
        await live.resume("r")
        await anyio.wait_all_tasks_blocked()
    assert before[0] == "summary"
    assert again.requests == []  # it asked the very same, and found the reply


async def test_what_came_too_late_to_count_is_not_remembered() -> None:
    class Failing(Rememberer):
        name = "worker"

        async def after(self, piece: int, ctx: RoleContext) -> None:
            if ctx.attempt == 1:
                raise Retryable("after it was paid for")

    journal = MemoryJournal()
    await job_swarm(Failing(), model=replies(1), journal=journal).run(JobGiven(pieces=(1,)), run_id="r")
    submitted, started, asked_, failed, _, noted, committed, *_ = journal.records["r"]
    late = committed.replace(b'"attempt":2', b'"attempt":1')
    assert [b'"history"' in noted, late != committed] == [True, True]
    kept = MemoryJournal({"r": [submitted, started, asked_, noted, failed, late]})
    async with job_swarm(Rememberer(), model=ScriptedModel([]), journal=kept).open() as live:
        result = await (await live.resume("r")).result()
    assert (result.output.done, result.usage.calls) == ((1,), 1)


async def test_what_an_attempt_noted_before_a_crash_counts_once() -> None:
    journal, model = MemoryJournal(), replies(2)
    await job_swarm(Rememberer(), model=model, journal=journal).run(JobGiven(pieces=(1, 2)), run_id="r")
    records = journal.records["r"]
    commits = [place for place, record in enumerate(records) if b'"committed"' in record]
    kept = MemoryJournal({"r": records[: commits[0]]})
    async with job_swarm(Rememberer(), model=(again := replies(2)), journal=kept).open() as live:
        result = await (await live.resume("r")).result()
    assert asked(again) == [["piece 1", "reply 1", "piece 2"]]
    assert result.warnings == ()
