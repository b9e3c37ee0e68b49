"""What one run may use up: model calls, tokens, time and hops; and which limits one question of a role has."""

from __future__ import annotations

from typing import Any

import anyio
import pytest

from support.clock import FakeClock
from support.jobs import JobGiven, PieceDone, WorkDone, WorkGiven, job_swarm, started, worker_swarm
from support.prices import know_prices
from swarmbus import (
    CLIENT,
    AgentStopped,
    Budget,
    Event,
    EventTable,
    LimitReached,
    Limits,
    Retry,
    Retryable,
    Role,
    RoleContext,
    RunFailed,
    Swarm,
    on,
)
from swarmbus.delivery.journal import MemoryJournal
from swarmbus.messages import AssistantMessage, ModelReply, Usage
from swarmbus.models import ModelSettings, ScriptedModel, call
from swarmbus.thinking.asking import REPLY_TOKENS


class Asker(Role):
    """Asks its model once for every piece."""

    name = "worker"

    @on(JobGiven, each="pieces")
    async def work(self, piece: int, ctx: RoleContext) -> PieceDone:
        await ctx.ask(f"piece {piece}")
        return PieceDone(piece=piece)


async def test_a_call_beyond_the_budget_is_never_made() -> None:
    model = ScriptedModel(["yes"] * 10)
    swarm = job_swarm(Asker(), model=model, budget=Budget(calls=3))
    with pytest.raises(LimitReached, match=r"calls: 3 model calls were made, the budget allows 3") as caught:
        await swarm.run(JobGiven(pieces=tuple(range(10))))
    assert len(model.requests) == 3
    assert caught.value.result.usage.calls == 3


async def test_a_budget_of_one_call_says_so_in_the_singular() -> None:
    swarm = job_swarm(Asker(), model=ScriptedModel(["yes"]), budget=Budget(calls=1))
    with pytest.raises(LimitReached, match=r"calls: 1 model call was made, the budget allows 1"):
        await swarm.run(JobGiven(pieces=(1, 2)))


async def test_a_budget_that_is_just_enough_is_enough() -> None:
    model = ScriptedModel(["yes"] * 3)
    result = await job_swarm(Asker(), model=model, budget=Budget(calls=3)).run(JobGiven(pieces=(1, 2, 3)))
    assert result.output.done == (1, 2, 3)


async def test_what_calls_under_way_may_cost_is_set_aside() -> None:
    class Many(Asker):
        concurrency = 8
        name = "worker"

    async def slow(request: object) -> str:
        await anyio.sleep_forever()
        return ""

    model = ScriptedModel([slow] * 8)
    swarm = job_swarm(Many(), model=model, budget=Budget(tokens=3 * REPLY_TOKENS))
    async with started(swarm, JobGiven(pieces=tuple(range(8)))) as (_, run):
        assert run.status == "limit"
        with pytest.raises(LimitReached, match=r"tokens: 0 spent, 2\d+ set aside for calls under way, 1\d+ wanted for"):
            await run.result()
    assert len(model.requests) == 2


async def test_a_budget_of_tokens_says_what_is_set_aside_for_a_reply_and_what_makes_it_less() -> None:
    class Brief(Role):
        name = "worker"

        @on
        async def work(self, event: WorkGiven, ctx: RoleContext) -> WorkDone:
            return WorkDone(text=await ctx.ask("?", settings=ModelSettings(max_tokens=100)))

    class Long(Role):
        name = "worker"

        @on
        async def work(self, event: WorkGiven, ctx: RoleContext) -> WorkDone:
            return WorkDone(text=await ctx.ask("?"))

    model, budget = ScriptedModel(["yes"]), Budget(tokens=500)
    told = (
        r"tokens: 0 spent, 0 set aside for calls under way, 10\d\d wanted for the next one: its prompt, and its reply"
        r" as long as it may be; the budget is 500\. A reply takes 1000 unless ctx\.ask\(\.\.\., settings="
        r"ModelSettings\(max_tokens=\)\) says less; Budget\(tokens=\) allows more$"
    )
    with pytest.raises(LimitReached, match=told):
        await worker_swarm(Long(), model=model, budget=budget).run(WorkGiven())
    assert (await worker_swarm(Brief(), model=model, budget=budget).run(WorkGiven())).output.text == "yes"


async def test_every_run_has_a_budget_of_its_own() -> None:
    model = ScriptedModel(["yes"] * 4)
    async with job_swarm(Asker(), model=model, budget=Budget(calls=2)).open() as live:
        for _ in range(2):
            assert (await (await live.submit(JobGiven(pieces=(1, 2)))).result()).output.done == (1, 2)


async def test_recorded_calls_of_an_earlier_attempt_cost_nothing() -> None:
    class Again(Role):
        name = "worker"
        retry = Retry(delay=0)

        @on
        async def work(self, event: WorkGiven, ctx: RoleContext) -> WorkDone:
            answer = await ctx.ask("?")
            if ctx.attempt == 1:
                raise Retryable("again")
            return WorkDone(text=answer)

    model = ScriptedModel(["yes"])
    result = await worker_swarm(Again(), model=model, budget=Budget(calls=1)).run(WorkGiven())
    assert (result.output.text, result.usage.calls) == ("yes", 1)


async def test_what_was_spent_before_a_run_is_resumed_counts() -> None:
    class Halting(Asker):
        name = "worker"

        @on(JobGiven, each="pieces")
        async def work(self, piece: int, ctx: RoleContext) -> PieceDone:
            if piece == 2:
                await anyio.sleep_forever()
            return await super().work(piece, ctx)

    journal, model, budget = MemoryJournal(), ScriptedModel(["yes"] * 9), Budget(calls=3)
    async with job_swarm(Halting(), model=model, budget=budget, journal=journal).open(grace=0) as live:
        await live.submit(JobGiven(pieces=(1, 2, 3, 4)), run_id="r")
        await anyio.wait_all_tasks_blocked()
    async with job_swarm(Asker(), model=model, budget=budget, journal=journal).open() as live:
        run = await live.resume("r")
        with pytest.raises(LimitReached, match="calls: 3 model calls were made"):
            await run.result()
    assert len(model.requests) == 3


async def test_money_is_counted_over_all_models_of_a_run(monkeypatch: pytest.MonkeyPatch) -> None:
    know_prices(monkeypatch, cheap=0.001, dear=0.01)

    class Choosing(Role):
        name = "worker"

        @on
        async def work(self, event: WorkGiven, ctx: RoleContext) -> WorkDone:
            await ctx.ask("cheap")
            await ctx.ask("dear", model=dear)
            return WorkDone(text=await ctx.ask("dear", model=dear))

    reply = ModelReply(AssistantMessage("yes"), Usage(100, 0, calls=1))
    cheap, dear = ScriptedModel([reply], name="shop:cheap"), ScriptedModel([reply] * 2, name="shop:dear")
    swarm = worker_swarm(Choosing(), model=cheap, budget=Budget(usd=1.0))
    with pytest.raises(LimitReached, match=r"usd: 1\.1000 US dollars were spent, the budget is 1\.0"):
        await swarm.run(WorkGiven())
    assert len(dear.requests) == 1


async def test_a_run_ends_when_its_time_is_used_up() -> None:
    class Sleeper(Role):
        name = "worker"

        @on
        async def work(self, event: WorkGiven) -> WorkDone:
            await anyio.sleep_forever()
            return WorkDone()

    clock = FakeClock()
    async with started(worker_swarm(Sleeper(), clock=clock, budget=Budget(seconds=30)), WorkGiven()) as (_, run):
        await clock.advance(29)
        assert run.status == "running"
        await clock.advance(1)
        with pytest.raises(LimitReached, match="seconds: the budget of 30 s is over"):
            await run.result()


class Lapped(Event):
    lap: int


class Runner(Role):
    @on
    async def start(self, event: WorkGiven) -> Lapped:
        return Lapped(lap=0)

    @on
    async def run(self, event: Lapped) -> Lapped | WorkDone:
        return Lapped(lap=event.lap + 1) if event.lap >= 0 else WorkDone()


@pytest.mark.parametrize(("budget", "laps"), [(Budget(hops=10), 10), (None, 1000)], ids=["ten", "default"])
async def test_a_circle_without_end_is_ended_by_its_hops(budget: Budget | None, laps: int) -> None:
    table = EventTable(
        (CLIENT, WorkGiven, "runner"), ("runner", Lapped, "runner"), ("runner", WorkDone, CLIENT), result=WorkDone
    )
    with pytest.raises(LimitReached, match=f"lapped is {laps + 1} hops from the start, the limit is {laps}"):
        await Swarm(Runner(), table=table, budget=budget).run(WorkGiven())


@pytest.mark.parametrize(
    ("swarms", "own", "asked", "requests"),
    [(4, None, {}, 4), (4, 3, {}, 3), (4, 3, {"limits": Limits(turns=2)}, 2)],
    ids=["the swarm's", "the role's", "the question's"],
)
async def test_the_nearest_limits_count(swarms: int, own: int | None, asked: dict[str, Any], requests: int) -> None:
    class Worker(Role):
        limits = None if own is None else Limits(turns=own)

        @on
        async def work(self, event: WorkGiven, ctx: RoleContext) -> WorkDone:
            return WorkDone(text=await ctx.ask("go", **asked))

    model = ScriptedModel([call(f"tool_{number}") for number in range(9)])
    with pytest.raises(RunFailed, match=f"{requests} turns") as caught:
        await worker_swarm(Worker(), model=model, limits=Limits(turns=swarms)).run(WorkGiven())
    assert isinstance(caught.value.__cause__, AgentStopped)
    assert (caught.value.__cause__.reason, len(model.requests)) == ("turns", requests)
