"""What an attempt has already paid for, done or published is not paid for, done or published again by the next."""

from __future__ import annotations

import json
import math
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import anyio
import anyio.from_thread
import pytest
from pydantic import BaseModel

from support.clock import FakeClock
from support.jobs import WorkDone, WorkGiven, WorkSeen, events_in, read_all, worker_swarm
from swarmbus import (
    Event,
    External,
    Retry,
    Retryable,
    Role,
    RoleContext,
    RunFailed,
    RunResult,
    RunStopped,
    RunTimedOut,
    on,
    tool,
)
from swarmbus.delivery.journal import MemoryJournal
from swarmbus.errors import HandlerTimedOut, RoleError
from swarmbus.events import to_json
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


class Buyer(Role):
    """Buys once, and fails until its last attempt."""

    name = "worker"

    def __init__(self, buy: Callable[[], Any], attempts: int = 3) -> None:
        self.buy = buy
        self.attempts = attempts

    @on
    async def work(self, event: WorkGiven, ctx: RoleContext) -> WorkDone:
        bought = await ctx.once("buy", self.buy)
        if ctx.attempt < self.attempts:
            raise Retryable("after it was bought")
        return WorkDone(text=str(bought))


def endless() -> list[Any]:
    made: list[Any] = []
    made.append(made)
    return made


@pytest.mark.parametrize("journal", [None, MemoryJournal()], ids=["no journal", "journal"])
@pytest.mark.parametrize(
    "value",
    [object(), b"\xff", endless(), "\ud800", math.nan, 10**5000],
    ids=["object", "bytes", "loop", "surrogate", "nan", "huge"],
)
async def test_an_effect_whose_value_can_not_be_kept_is_not_had_again(
    value: Any, journal: MemoryJournal | None
) -> None:
    bought: list[int] = []

    def buy() -> Any:
        bought.append(1)
        return value

    swarm = worker_swarm(Buyer(buy), retry=Retry(delay=0, on=(Exception,)), journal=journal)
    with pytest.raises(RunFailed, match="took effect, but what its function returned can't be kept") as caught:
        await swarm.run(WorkGiven())
    assert isinstance(caught.value.__cause__, RoleError)
    assert bought == [1]


async def test_a_resumed_run_knows_of_an_effect_whose_value_could_not_be_kept() -> None:
    bought: list[int] = []

    def buy() -> object:
        bought.append(1)
        return object()

    swarm = worker_swarm(Buyer(buy), journal=MemoryJournal())
    with pytest.raises(RunFailed):
        await swarm.run(WorkGiven(), run_id="r")
    async with swarm.open() as live:
        run = await live.resume("r")
        with pytest.raises(RunFailed, match="can't be kept"):
            await run.result()
    assert bought == [1]


async def test_what_is_done_to_a_value_changes_it_for_nobody_else() -> None:
    seen: list[list[int]] = []

    class Worker(Role):
        @on
        async def work(self, event: WorkGiven, ctx: RoleContext) -> WorkDone:
            for _ in range(2):
                seen.append(await ctx.once("list", lambda: [1]))
                seen[-1].append(ctx.attempt)
            if ctx.attempt == 1:
                raise Retryable("again")
            return WorkDone()

    await run(Worker())
    assert seen == [[1, 1], [1, 1], [1, 2], [1, 2]]


class Slow:
    """Buys in a thread, taking as long as the test wants."""

    def __init__(self) -> None:
        self.bought: list[str] = []
        self.begun = anyio.Event()
        self.go_on = threading.Event()

    def __call__(self) -> str:
        anyio.from_thread.run_sync(self.begun.set)
        self.bought.append("bought")
        self.go_on.wait(5)
        return f"receipt {len(self.bought)}"


async def test_an_effect_that_outlasts_its_attempt_is_waited_for_by_the_next() -> None:
    clock, slow = FakeClock(), Slow()

    class Hurried(Buyer):
        name = "worker"
        timeout = 10
        retry = Retry(delay=0, on=(HandlerTimedOut,))

    async with worker_swarm(Hurried(slow, 1), clock=clock).open(grace=1) as live:
        run = await live.submit(WorkGiven())
        await slow.begun.wait()
        await clock.advance(10)  # told to stop
        await clock.advance(2)  # given up, and tried again
        assert run.under_way == {"worker.work": 1}
        slow.go_on.set()
        assert (await run.result()).output.text == "receipt 1"
    assert slow.bought == ["bought"]


async def test_an_effect_that_outlasts_a_suspension_is_waited_for_when_the_answer_is_there() -> None:
    clock, slow = FakeClock(), Slow()

    class Asker(Role):
        name = "worker"

        @on
        async def work(self, event: WorkGiven, ctx: RoleContext) -> WorkDone:
            got: list[Any] = []

            async def buy() -> None:
                got.append(await ctx.once("buy", slow))

            async def ask() -> None:
                await slow.begun.wait()
                await ctx.ask_person("Fine?", reply=bool)

            async with anyio.create_task_group() as tasks:
                tasks.start_soon(buy)
                tasks.start_soon(ask)
            return WorkDone(text=str(got))

    async with worker_swarm(Asker(), clock=clock).open(grace=1) as live:
        run = await live.submit(WorkGiven())
        await slow.begun.wait()
        await clock.advance(2)
        (question,) = run.questions
        await run.answer(question, value=True)
        await anyio.wait_all_tasks_blocked()
        slow.go_on.set()
        assert (await run.result()).output.text == "['receipt 1']"
    assert slow.bought == ["bought"]


@pytest.mark.parametrize("end", ["timed out", "drained"])
async def test_an_effect_that_outlasts_its_run_is_known_when_it_is_resumed(end: str) -> None:
    clock, slow, journal = FakeClock(), Slow(), MemoryJournal()
    swarm = worker_swarm(Buyer(slow, 1), clock=clock, journal=journal)
    async with swarm.open(grace=1) as live, anyio.create_task_group() as tasks:
        run = await live.submit(WorkGiven(), run_id="r", timeout=60)
        await slow.begun.wait()
        if end == "drained":
            tasks.start_soon(live.drain)
        await anyio.wait_all_tasks_blocked()
        await clock.advance(60)
        await clock.advance(2)
        with pytest.raises(RunTimedOut if end == "timed out" else RunStopped):
            await run.result()
        slow.go_on.set()
    async with swarm.open() as live:
        assert (await (await live.resume("r")).result()).output.text == "receipt 1"
    async with swarm.open() as live:
        assert (await (await live.resume("r")).result()).output.text == "receipt 1"
    assert slow.bought == ["bought"]


@pytest.mark.parametrize("beside", [False, True], ids=["within", "in a task within"])
async def test_a_function_called_once_can_not_call_itself_once(beside: bool) -> None:
    class Worker(Role):
        @on
        async def work(self, event: WorkGiven, ctx: RoleContext) -> WorkDone:
            async def outer() -> None:
                if not beside:
                    await ctx.once("key", inner)
                async with anyio.create_task_group() as tasks:
                    tasks.start_soon(ctx.once, "key", inner)

            async def inner() -> int:
                return await ctx.once("other", lambda: 1)

            assert await ctx.once("inner", inner) == 1
            await ctx.once("key", outer)
            return WorkDone()

    with pytest.raises(RunFailed, match=r"ctx\.once\('key', \.\.\.\) was called within its own function"):
        await run(Worker(), timeout=5)


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


async def test_a_fresh_retry_repeats_no_effect_and_keeps_its_time() -> None:
    receipts = iter("abc")
    seen: list[Any] = []

    class Worker(Role):
        @on(retry=Retry(delay=0, fresh=True))
        async def work(self, event: WorkGiven, ctx: RoleContext) -> WorkDone:
            seen.append((await ctx.once("buy", lambda: next(receipts)), ctx.now(), ctx.new_id()))
            if ctx.attempt < 3:
                raise Retryable("again")
            return WorkDone(text=seen[-1][0])

    result = await worker_swarm(Worker()).run(WorkGiven())
    assert (result.output.text, result.warnings, len(set(seen))) == ("a", (), 1)


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


@pytest.mark.parametrize("shown", ["asked", "done", "published", "question"])
async def test_the_time_is_kept_before_anything_shows_that_depends_on_it(shown: str) -> None:
    clock, journal, model = FakeClock(), MemoryJournal(), ScriptedModel(["fine"])

    class Worker(Role):
        @on
        async def work(self, event: WorkGiven, ctx: RoleContext[WorkSeen]) -> WorkDone:
            async def act() -> None:
                effects.append(ctx.attempt)

            now = str(ctx.now())
            if shown == "asked":
                await ctx.ask(now)
            elif shown == "done":
                await ctx.once(now, act)
            elif shown == "published":
                await ctx.publish(WorkSeen(text=now))
            else:
                await ctx.ask_person(now, reply=str)
            await anyio.sleep_forever()
            return WorkDone()

    effects: list[int] = []
    for process in range(2):
        async with worker_swarm(Worker(), SEEN, model=model, journal=journal, clock=clock).open(grace=0) as live:
            run = await (live.resume("r") if journal.records else live.submit(WorkGiven(), run_id="r"))
            await anyio.wait_all_tasks_blocked()
            for question in tuple(run.questions) if process else ():
                await run.answer(question, "yes")
                await anyio.wait_all_tasks_blocked()
        del journal.records["r"][-1]  # as if the process had died
        await clock.advance(60)
    kept = [json.loads(record)["record"] for record in journal.records["r"]]
    shows = {"asked": len(model.requests), "done": len(effects)}.get(
        shown, kept.count(shown.replace("question", "asked"))
    )
    assert shows == 1


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


async def test_a_commit_that_comes_too_late_has_nothing_paid_for_again() -> None:
    clock, model = FakeClock(), ScriptedModel(["paid"])

    class Slow(MemoryJournal):
        async def append(self, run_id: str, record: bytes) -> None:
            if b'"now"' in record and clock.monotonic() < 10:
                await clock.sleep_until(30)
            await super().append(run_id, record)

    class Worker(Role):
        @on(timeout=10, retry=Retry(delay=60, on=(HandlerTimedOut,)))
        async def work(self, event: WorkGiven, ctx: RoleContext) -> WorkDone:
            answer = await ctx.ask("?")
            ctx.now()  # is kept with the commit
            return WorkDone(text=answer)

    async with worker_swarm(Worker(), model=model, journal=Slow(), clock=clock).open(grace=1) as live:
        run = await live.submit(WorkGiven())
        await clock.advance(200)
        result = await run.result()
    assert (result.output.text, len(model.requests)) == ("paid", 1)


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


@dataclass(frozen=True)
class Pair:
    numbers: frozenset[int]


class Triple(BaseModel, frozen=True):
    all_numbers: frozenset[int]


class Counted(Event):
    counts: FrozenDict[int, int] | FrozenDict[str, frozenset[int]] | frozenset[int] | tuple[frozenset[int], ...] | None
    pair: Pair | Triple | None = None


@pytest.mark.parametrize(
    "counted",
    [
        lambda numbers: Counted(counts=FrozenDict(dict.fromkeys(numbers, 1))),
        lambda numbers: Counted(counts=FrozenDict({"a": frozenset(numbers)})),
        lambda numbers: Counted(counts=frozenset(numbers)),
        lambda numbers: Counted(counts=(frozenset(numbers),)),
        lambda numbers: Counted(counts=None, pair=Pair(frozenset(numbers))),
        lambda numbers: Counted(counts=None, pair=Triple(all_numbers=frozenset(numbers))),
    ],
    ids=["a map", "a set in a map", "a set", "a set in a tuple", "a set in a dataclass", "a set in a model"],
)
async def test_what_was_published_early_is_matched_whatever_the_order_of_its_entries(
    counted: Callable[[tuple[int, int]], Counted],
) -> None:
    first, second = counted((0, 8)), counted((8, 0))  # which are written in the order they came in
    assert (first == second, to_json(first) == to_json(second)) == (True, False)

    class Worker(Role):
        @on
        async def work(self, event: WorkGiven, ctx: RoleContext[Counted]) -> WorkDone:
            await ctx.publish(first if ctx.attempt == 1 else second)
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
