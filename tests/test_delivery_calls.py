"""What an attempt has already paid for, done or published is not paid for, done or published again by the next."""

from __future__ import annotations

from typing import Any

import anyio

from support.jobs import WorkDone, WorkGiven, WorkSeen, events_in, read_all, worker_swarm
from swarmbus import Event, External, Retry, Retryable, Role, RoleContext, RunResult, on, tool
from swarmbus.delivery.journal import MemoryJournal
from swarmbus.frozen import FrozenDict
from swarmbus.models import ScriptedModel, call

SEEN = ("worker", WorkSeen, External("screen"))


async def run(worker: Role, *rows: Any, **options: Any) -> RunResult[WorkDone]:
    return await worker_swarm(worker, *rows, retry=Retry(delay=0), **options).run(WorkGiven())


async def test_a_function_called_once_is_not_called_by_the_next_attempt() -> None:
    effects: list[str] = []

    class Worker(Role):
        @on
        async def work(self, event: WorkGiven, ctx: RoleContext) -> WorkDone:
            def send() -> str:
                effects.append("sent")
                return f"receipt {len(effects)}"

            first = await ctx.once("send", send)
            if ctx.attempt < 3:
                raise Retryable("after the effect")
            return WorkDone(text=first)

    assert (await run(Worker())).output.text == "receipt 1"
    assert effects == ["sent"]


async def test_every_attempt_gets_the_same_value_from_a_function_called_once() -> None:
    seen: list[Any] = []

    class Worker(Role):
        @on
        async def work(self, event: WorkGiven, ctx: RoleContext) -> WorkDone:
            seen.append(await ctx.once("pair", lambda: (1, WorkSeen(text="a"))))
            if ctx.attempt == 1:
                raise Retryable("again")
            return WorkDone()

    await run(Worker())
    assert seen == [[1, {"text": "a"}]] * 2


async def test_a_function_that_failed_is_called_again() -> None:
    effects: list[int] = []

    class Worker(Role):
        @on
        async def work(self, event: WorkGiven, ctx: RoleContext) -> WorkDone:
            async def send() -> str:
                effects.append(ctx.attempt)
                if ctx.attempt == 1:
                    raise Retryable("line is down")
                return "sent"

            return WorkDone(text=await ctx.once("send", send))

    assert (await run(Worker())).output.text == "sent"
    assert effects == [1, 2]


async def test_a_function_called_once_by_several_tasks_is_called_once() -> None:
    effects: list[int] = []
    seen: list[list[Any]] = []

    class Worker(Role):
        @on
        async def work(self, event: WorkGiven, ctx: RoleContext) -> WorkDone:
            async def pay() -> int:
                await anyio.lowlevel.checkpoint()
                effects.append(ctx.attempt)
                return len(effects)

            async def call_it() -> None:
                values.append(await ctx.once("pay", pay))

            values: list[Any] = []
            seen.append(values)
            async with anyio.create_task_group() as tasks:
                for _ in range(5):
                    tasks.start_soon(call_it)
            if ctx.attempt == 1:
                raise Retryable("after the effect")
            return WorkDone(text=str(await ctx.once("pay", pay)))

    result = await run(Worker())
    assert (result.output.text, result.warnings) == ("1", ())
    assert (effects, seen) == ([1], [[1] * 5] * 2)


async def test_where_a_function_failed_the_next_task_that_waits_calls_it() -> None:
    effects: list[str] = []

    class Worker(Role):
        @on
        async def work(self, event: WorkGiven, ctx: RoleContext) -> WorkDone:
            async def pay() -> str:
                await anyio.lowlevel.checkpoint()
                effects.append("tried")
                if len(effects) == 1:
                    raise ValueError("line is down")
                return "paid"

            async def call_it() -> None:
                try:
                    got.append(await ctx.once("pay", pay))
                except ValueError as error:
                    got.append(str(error))

            got: list[str] = []
            async with anyio.create_task_group() as tasks:
                for _ in range(3):
                    tasks.start_soon(call_it)
            return WorkDone(text=", ".join(sorted(got)))

    assert (await run(Worker())).output.text == "line is down, paid, paid"
    assert effects == ["tried", "tried"]


async def test_an_effect_that_a_cancel_overtakes_is_not_forgotten() -> None:
    effects: list[int] = []

    class Worker(Role):
        @on
        async def work(self, event: WorkGiven, ctx: RoleContext) -> WorkDone:
            async def pay() -> str:
                effects.append(ctx.attempt)
                scope.cancel()
                return "paid"

            with anyio.CancelScope() as scope:
                await ctx.once("pay", pay)
            if ctx.attempt == 1:
                raise Retryable("after the effect")
            return WorkDone(text=await ctx.once("pay", pay))

    journal = MemoryJournal()
    assert (await run(Worker(), journal=journal)).output.text == "paid"
    assert effects == [1]


async def test_a_models_replies_and_its_tools_results_are_used_again() -> None:
    runs: list[int] = []

    @tool(effects="at_most_once")
    def send(number: int) -> str:
        """Send a number."""
        runs.append(number)
        return f"sent {number}"

    class Worker(Role):
        tools = (send,)

        @on
        async def work(self, event: WorkGiven, ctx: RoleContext) -> WorkDone:
            answer = await ctx.ask("Send 7.")
            if ctx.attempt == 1:
                raise Retryable("after it was paid for")
            return WorkDone(text=answer)

    model = ScriptedModel([call("send", number=7), "it is sent"])
    result = await run(Worker(), model=model)
    assert (result.output.text, len(model.requests), runs) == ("it is sent", 2, [7])
    assert result.usage.calls == 2


async def test_the_call_that_failed_is_made_again_and_only_that_one() -> None:
    class Worker(Role):
        @on(retry=Retry(delay=0, on=(RuntimeError,)))
        async def work(self, event: WorkGiven, ctx: RoleContext) -> WorkDone:
            return WorkDone(text=await ctx.ask("first") + await ctx.ask("second"))

    model = ScriptedModel(["a", RuntimeError("boom"), "b"])
    result = await worker_swarm(Worker(), model=model).run(WorkGiven())
    assert (result.output.text, len(model.requests)) == ("ab", 3)


async def test_a_fresh_retry_pays_for_everything_again() -> None:
    class Worker(Role):
        @on(retry=Retry(delay=0, fresh=True))
        async def work(self, event: WorkGiven, ctx: RoleContext) -> WorkDone:
            answer = await ctx.ask("?")
            if ctx.attempt == 1:
                raise Retryable("a bad answer")
            return WorkDone(text=answer)

    model = ScriptedModel(["bad", "good"])
    assert (await worker_swarm(Worker(), model=model).run(WorkGiven())).output.text == "good"


async def test_time_chance_and_ids_are_the_same_at_every_attempt() -> None:
    seen: list[tuple[Any, ...]] = []

    class Worker(Role):
        @on
        async def work(self, event: WorkGiven, ctx: RoleContext) -> WorkDone:
            seen.append((ctx.now(), ctx.random(), ctx.new_id(), ctx.new_id(), ctx.random()))
            if ctx.attempt == 1:
                raise Retryable("again")
            return WorkDone()

    await run(Worker())
    assert seen[0] == seen[1]
    assert len({seen[0][1], seen[0][4]}) == len({seen[0][2], seen[0][3]}) == 2


async def test_ids_and_chance_under_a_key_do_not_depend_on_the_order_of_calls() -> None:
    seen: list[dict[str, tuple[Any, ...]]] = []

    class Worker(Role):
        @on
        async def work(self, event: WorkGiven, ctx: RoleContext) -> WorkDone:
            keys = ("a", "b", "") if ctx.attempt == 1 else ("", "b", "a")
            seen.append({key: (ctx.new_id(key=key), ctx.new_id(key=key), ctx.random(key=key)) for key in keys})
            if ctx.attempt == 1:
                raise Retryable("again")
            return WorkDone()

    await run(Worker())
    assert seen[0] == seen[1]
    assert len({value for values in seen[0].values() for value in values}) == 9


async def test_a_recorded_call_that_is_not_asked_for_again_is_a_warning() -> None:
    class Worker(Role):
        @on
        async def work(self, event: WorkGiven, ctx: RoleContext) -> WorkDone:
            if ctx.attempt == 1:
                await ctx.once("only at first", lambda: None)
                raise Retryable("again")
            return WorkDone()

    assert (await run(Worker())).warnings == ("1 recorded calls of worker.work were not asked for again",)


async def test_a_call_that_is_made_more_often_does_not_hide_one_that_is_not_asked_for_again() -> None:
    class Worker(Role):
        @on
        async def work(self, event: WorkGiven, ctx: RoleContext) -> WorkDone:
            await ctx.once("each time", lambda: None)
            if ctx.attempt == 1:
                await ctx.once("only at first", lambda: None)
                raise Retryable("again")
            await ctx.once("each time", lambda: None)
            return WorkDone()

    assert (await run(Worker())).warnings == ("1 recorded calls of worker.work were not asked for again",)


class Publisher(Role):
    """Publishes `WorkSeen` with the texts that the attempt's number stands for, failing before the last."""

    name = "worker"

    def __init__(self, *attempts: str, keys: bool = False) -> None:
        self.attempts = attempts
        self.keys = keys

    @on
    async def work(self, event: WorkGiven, ctx: RoleContext[WorkSeen]) -> WorkDone:
        for place, text in enumerate(self.attempts[ctx.attempt - 1]):
            await ctx.publish(WorkSeen(text=text), key=str(place) if self.keys else None)
        if ctx.attempt < len(self.attempts):
            raise Retryable("again")
        return WorkDone()


async def seen_by_a_reader(worker: Role) -> tuple[list[str], tuple[str, ...]]:
    async with worker_swarm(worker, SEEN, retry=Retry(delay=0)).open() as live:
        run = await live.submit(WorkGiven())
        seen = events_in(await read_all(run), WorkSeen)
        return [event.text for event in seen], (await run.result()).warnings


async def test_what_was_published_early_is_matched_by_content_and_not_repeated() -> None:
    seen, warnings = await seen_by_a_reader(Publisher("aba", "aab"))
    assert (seen, warnings) == (["a", "b", "a"], ())


class Counted(Event):
    counts: FrozenDict[str, int]


async def test_what_was_published_early_is_matched_whatever_the_order_of_its_entries() -> None:
    class Worker(Role):
        @on
        async def work(self, event: WorkGiven, ctx: RoleContext[Counted]) -> WorkDone:
            names = ("a", "b") if ctx.attempt == 1 else ("b", "a")
            await ctx.publish(Counted(counts=FrozenDict(dict.fromkeys(names, 1))))
            if ctx.attempt == 1:
                raise Retryable("again")
            return WorkDone()

    async with worker_swarm(Worker(), ("worker", Counted, External("screen")), retry=Retry(delay=0)).open() as live:
        run = await live.submit(WorkGiven())
        assert len(events_in(await read_all(run), Counted)) == 1
        assert (await run.result()).warnings == ()


async def test_what_is_new_in_a_later_attempt_is_added() -> None:
    seen, warnings = await seen_by_a_reader(Publisher("a", "ab"))
    assert (seen, warnings) == (["a", "b"], ())


async def test_an_attempt_that_leaves_out_what_an_earlier_one_published_is_shown_as_diverged() -> None:
    seen, warnings = await seen_by_a_reader(Publisher("ab", "ac"))
    assert seen == ["a", "b", "c"]
    assert warnings == (
        "attempt 2 of worker.work diverged: an earlier one had published work_seen, this one did not but work_seen",
    )


async def test_a_key_matches_what_differs_in_content() -> None:
    seen, warnings = await seen_by_a_reader(Publisher("ab", "xy", keys=True))
    assert (seen, warnings) == (["a", "b"], ())
