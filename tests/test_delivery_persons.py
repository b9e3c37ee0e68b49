"""Asking a person: the delivery waits without a worker, the right answer goes on, a wrong one is refused."""

from __future__ import annotations

import math
import threading
from contextlib import suppress
from functools import partial
from typing import Annotated, Any

import anyio
import anyio.from_thread
import anyio.lowlevel
import anyio.to_thread
import pytest
from pydantic import AfterValidator, BaseModel

from support.clock import FakeClock
from support.jobs import (
    JobGiven,
    PieceDone,
    WorkDone,
    WorkGiven,
    WorkSeen,
    gatherer,
    job_swarm,
    started,
    worker_swarm,
)
from swarmbus import (
    CLIENT,
    Event,
    EventTable,
    External,
    Joined,
    Retry,
    Retryable,
    Role,
    RoleContext,
    Run,
    RunCancelled,
    RunFailed,
    RunStopped,
    RunTimedOut,
    Swarm,
    join,
    on,
    tool,
)
from swarmbus.delivery.journal import MemoryJournal
from swarmbus.errors import HandlerTimedOut, QuestionError
from swarmbus.messages import ToolCall, ToolMessage
from swarmbus.models import ScriptedModel, call


class Approval(BaseModel, frozen=True):
    granted: bool
    by: str = "nobody"


class Question(BaseModel, frozen=True):
    text: str


class Odd(BaseModel, frozen=True):
    number: float


class Approved(Event):
    text: str = ""


class Asker(Role):
    """Asks before it goes on, and keeps count of what it did."""

    name = "worker"

    def __init__(self) -> None:
        self.seen: list[Any] = []

    @on
    async def work(self, event: WorkGiven, ctx: RoleContext) -> WorkDone:
        self.seen.append(("begin", ctx.attempt))
        await ctx.once("effect", self.effect)
        answer = await ctx.ask_person(Question(text="May I?"), reply=Approval)
        return WorkDone(text=f"{answer.granted} by {answer.by}")

    async def effect(self) -> str:
        self.seen.append("effect")
        return "done"


def question_of(run: Run[Any]) -> str:
    (question,) = run.questions
    return question


async def test_the_delivery_goes_on_with_the_answer_in_the_same_attempt() -> None:
    worker = Asker()
    async with started(worker_swarm(worker), WorkGiven(), run_id="r") as (_, run):
        assert run.questions[question_of(run)]["question"] == {"text": "May I?"}
        assert question_of(run).startswith("r/0>worker.work?")
        await run.answer(question_of(run), Approval(granted=True, by="Ann"))
        assert (await run.result()).output.text == "True by Ann"
    assert worker.seen == [("begin", 1), "effect", ("begin", 1)]


@pytest.mark.parametrize("answer", [{"granted": "perhaps"}, "yes", None], ids=repr)
async def test_an_answer_of_another_type_is_refused_and_the_question_stays(answer: Any) -> None:
    async with started(worker_swarm(Asker()), WorkGiven()) as (_, run):
        with pytest.raises(QuestionError, match="is not of the type that was asked for"):
            await run.answer(question_of(run), answer)
        await run.answer(question_of(run), {"granted": False})
        assert (await run.result()).output.text == "False by nobody"


@pytest.mark.parametrize("given", [1, "1"], ids=repr)
async def test_an_answer_is_read_once(given: Any) -> None:
    class Worker(Role):
        @on
        async def work(self, event: WorkGiven, ctx: RoleContext) -> WorkDone:
            number = await ctx.ask_person("?", reply=Annotated[int, AfterValidator(lambda number: number + 1)])
            return WorkDone(text=str(number))

    async with started(worker_swarm(Worker()), WorkGiven()) as (_, run):
        await run.answer(question_of(run), given)
        assert (await run.result()).output.text == "2"


journals = pytest.mark.parametrize("journal", [None, MemoryJournal()], ids=["no journal", "journal"])


@journals
@pytest.mark.parametrize("answer", [object(), math.nan, 10**5000, b"\xff"], ids=["object", "nan", "huge", "bytes"])
async def test_an_answer_that_no_record_can_hold_is_refused(answer: Any, journal: MemoryJournal | None) -> None:
    class Worker(Role):
        @on
        async def work(self, event: WorkGiven, ctx: RoleContext) -> WorkDone:
            return WorkDone(text=str(await ctx.ask_person("How many?", reply=float)))

    async with started(worker_swarm(Worker(), journal=journal), WorkGiven()) as (_, run):
        with pytest.raises(QuestionError, match="can't be recorded"):
            await run.answer(question_of(run), answer)
        await run.answer(question_of(run), 2)
        assert (await run.result()).output.text == "2.0"


@journals
async def test_what_no_text_can_hold_is_replaced_in_question_and_answer(journal: MemoryJournal | None) -> None:
    class Worker(Role):
        @on
        async def work(self, event: WorkGiven, ctx: RoleContext) -> WorkDone:
            first = await ctx.ask_person("caf\udce9?", reply=str)
            return WorkDone(text=first + str(await ctx.ask_person(Question(text="caf\udce9?"), reply=list[str])))

    async with started(worker_swarm(Worker(), journal=journal), WorkGiven()) as (_, run):
        assert run.questions[question_of(run)]["question"] == "caf\ufffd?"
        await run.answer(question_of(run), "\ud800")
        await anyio.wait_all_tasks_blocked()
        assert run.questions[question_of(run)]["question"] == {"text": "caf\ufffd?"}
        await run.answer(question_of(run), ["\ud800"])
        assert (await run.result()).output.text == "\ufffd['\ufffd']"


@journals
async def test_a_question_that_no_record_can_hold_fails_the_handler(journal: MemoryJournal | None) -> None:
    class Worker(Role):
        @on
        async def work(self, event: WorkGiven, ctx: RoleContext) -> WorkDone:
            return WorkDone(text=await ctx.ask_person(Odd(number=math.nan), reply=str))

    with pytest.raises(RunFailed, match=r"ctx\.ask_person\(Odd\(number=nan\), \.\.\.\) can't be recorded"):
        await worker_swarm(Worker(), journal=journal).run(WorkGiven())


async def test_a_second_answer_and_an_unknown_question_are_refused() -> None:
    class Worker(Role):
        @on
        async def work(self, event: WorkGiven, ctx: RoleContext) -> WorkDone:
            first = await ctx.ask_person("first?", reply=str)
            return WorkDone(text=first + await ctx.ask_person("second?", reply=str))

    async with started(worker_swarm(Worker()), WorkGiven()) as (_, run):
        first = question_of(run)
        await run.answer(first, "a")
        await anyio.wait_all_tasks_blocked()
        with pytest.raises(QuestionError, match="was answered already; open questions"):
            await run.answer(first, "b")
        with pytest.raises(QuestionError, match="is not known"):
            await run.answer("r?9", "b")
        await run.answer(question_of(run), "c")
        assert (await run.result()).output.text == "ac"


async def test_an_answer_to_a_run_that_was_drained_is_refused_for_it_would_be_lost() -> None:
    swarm = worker_swarm(Asker(), journal=MemoryJournal())
    async with started(swarm, WorkGiven(), run_id="r") as (live, run):
        question = question_of(run)
        await live.drain()
        with pytest.raises(RunStopped, match=r"run r is over: stopped; its question .* is open when it is resumed"):
            await run.answer(question, {"granted": True})
    async with swarm.open() as live:
        resumed = await live.resume("r")
        await resumed.answer(question, {"granted": True})
        assert (await resumed.result()).output.text == "True by nobody"


@pytest.mark.parametrize("second", ["answer", "send"])
async def test_what_comes_from_outside_while_the_last_record_is_written_is_refused(second: str) -> None:
    class Slow(MemoryJournal):
        async def append(self, run_id: str, record: bytes) -> None:
            if b'"ended"' in record:
                await release.wait()
            await super().append(run_id, record)

    async def give() -> None:
        with pytest.raises(RunCancelled, match="run r is over: cancelled"):
            await (run.answer(question, {"granted": True}) if second == "answer" else run.send(WorkGiven()))

    release = anyio.Event()
    async with started(worker_swarm(Asker(), journal=Slow()), WorkGiven(), run_id="r") as (_, run):
        question = question_of(run)
        async with anyio.create_task_group() as group:
            group.start_soon(run.cancel)
            await anyio.wait_all_tasks_blocked()
            group.start_soon(give)
            await anyio.wait_all_tasks_blocked()
            release.set()


async def test_of_two_answers_given_at_once_the_second_is_refused() -> None:
    class Slow(MemoryJournal):
        async def append(self, run_id: str, record: bytes) -> None:
            await anyio.lowlevel.checkpoint()
            await super().append(run_id, record)

    async def give() -> None:
        try:
            await run.answer(question, {"granted": True})
        except QuestionError as error:
            refused.append(str(error))

    refused: list[str] = []
    async with started(worker_swarm(Asker(), journal=Slow()), WorkGiven()) as (_, run):
        question = question_of(run)
        async with anyio.create_task_group() as group:
            group.start_soon(give)
            group.start_soon(give)
        assert len(refused) == 1
        assert "was answered already" in refused[0]
        assert (await run.result()).output.text == "True by nobody"


async def test_a_run_that_waits_for_a_person_is_neither_stalled_nor_timed_out() -> None:
    clock = FakeClock()
    async with started(worker_swarm(Asker(), clock=clock), WorkGiven(), timeout=60) as (_, run):
        await clock.advance(3 * 24 * 3600)
        assert run.status == "running"
        await run.answer(question_of(run), Approval(granted=True))
        assert (await run.result()).output.text == "True by nobody"


async def test_the_time_before_and_after_the_question_counts() -> None:
    clock = FakeClock()

    async def slow() -> str:
        await clock.sleep_until(40)
        return "at last"

    class Worker(Role):
        @on
        async def work(self, event: WorkGiven, ctx: RoleContext) -> WorkDone:
            await ctx.once("slow", slow)
            await ctx.ask_person("?", reply=str)
            await clock.sleep_until(clock.monotonic() + 40)
            return WorkDone()

    async with started(worker_swarm(Worker(), clock=clock), WorkGiven(), timeout=60) as (_, run):
        await clock.advance(1000)
        await run.answer(question_of(run), "x")
        await clock.advance(19)
        assert run.status == "running"
        await clock.advance(1)
        with pytest.raises(RunTimedOut):
            await run.result()


async def test_three_time_limits_each_count_their_own() -> None:
    """A handler's for the one attempt that is slow, the run's for all but the wait for a person, who has none."""
    clock, attempts = FakeClock(), list[tuple[int, int]]()

    class Worker(Role):
        concurrency = 3
        timeout = 0.2
        retry = Retry(attempts=2, delay=0, on=(HandlerTimedOut,))

        @on(JobGiven, each="pieces")
        async def work(self, piece: int, ctx: RoleContext) -> PieceDone:
            attempts.append((piece, ctx.attempt))
            if piece == 1 and ctx.attempt == 1:
                await anyio.sleep_forever()
            if piece == 2:
                await ctx.ask_person("?", reply=str)
            await clock.sleep_until(clock.monotonic() + 0.1)
            return PieceDone(piece=piece)

    async with started(job_swarm(Worker(), clock=clock), JobGiven(pieces=(1, 2, 3)), timeout=1) as (_, run):
        await clock.advance(3)
        assert (run.status, attempts) == ("running", [(1, 1), (2, 1), (3, 1), (1, 2)])
        await run.answer(question_of(run), "yes")
        await clock.advance(0.1)
        result = await run.result()
    assert (result.output.done, attempts[4:]) == ((1, 2, 3), [(2, 1)])
    assert result.ended - result.started == pytest.approx(3.1)


async def test_while_it_waits_the_worker_takes_others() -> None:
    order: list[int] = []

    class Worker(Role):
        @on(JobGiven, each="pieces")
        async def work(self, piece: int, ctx: RoleContext) -> PieceDone:
            if piece == 1:
                await ctx.ask_person("one?", reply=str)
            order.append(piece)
            return PieceDone(piece=piece)

    async with started(job_swarm(Worker()), JobGiven(pieces=(1, 2, 3))) as (_, run):
        assert order == [2, 3]
        await run.answer(question_of(run), "go on")
        assert (await run.result()).output.done == (1, 2, 3)


async def test_a_role_with_state_keeps_its_turn_while_it_waits() -> None:
    order: list[tuple[int, int]] = []

    class Worker(Role):
        class State(BaseModel, frozen=True):
            count: int = 0

        @on(JobGiven, each="pieces")
        async def work(self, piece: int, state: State, ctx: RoleContext) -> PieceDone:
            if piece == 1:
                await ctx.ask_person("one?", reply=str)
            order.append((piece, state.count))
            ctx.update(count=state.count + 1)
            return PieceDone(piece=piece)

    async with started(job_swarm(Worker()), JobGiven(pieces=(1, 2, 3))) as (_, run):
        assert order == []
        await run.answer(question_of(run), "go on")
        await run.result()
    assert order == [(1, 0), (2, 1), (3, 2)]


@pytest.mark.parametrize("moment", [*range(12), math.inf], ids=str)
async def test_a_role_with_state_gets_its_turn_back_when_its_question_is_no_longer_needed(moment: float) -> None:
    asked = anyio.Event()

    class Worker(Role):
        class State(BaseModel, frozen=True):
            count: int = 0

        @on
        async def ask(self, event: WorkGiven, ctx: RoleContext) -> WorkSeen:
            return WorkSeen(text=await ctx.ask_person("?", reply=str))

        @on
        async def end(self, event: Approved) -> WorkDone:
            return WorkDone(text=event.text)

    class Guesser(Role):
        @on
        async def guess(self, event: WorkGiven, ctx: RoleContext[WorkSeen]) -> None:
            for _ in range(0 if moment == math.inf else int(moment)):  # maybe just as the question is asked
                await anyio.lowlevel.checkpoint()
            if moment == math.inf:
                await asked.wait()
            await ctx.publish(WorkSeen(text="guessed"))

    class Chooser(Role):
        @join(WorkSeen, per=WorkGiven, quorum=1)
        async def choose(self, event: WorkGiven, seen: Joined[WorkSeen]) -> Approved:
            return Approved(text=seen.done[0].text)

    table = EventTable(
        (CLIENT, WorkGiven, ("worker", "guesser", "chooser")),
        (("worker", "guesser"), WorkSeen, "chooser"),
        ("chooser", Approved, "worker"),
        ("worker", WorkDone, CLIENT),
        result=WorkDone,
    )
    async with started(Swarm(Worker(), Guesser(), Chooser(), table=table), WorkGiven()) as (_, run):
        assert moment < math.inf or question_of(run)
        asked.set()
        await anyio.wait_all_tasks_blocked()
        assert (run.status, dict(run.questions)) == ("done", {})
        assert (await run.result()).output.text == "guessed"


async def test_the_model_is_not_asked_again_when_the_answer_comes() -> None:
    class Worker(Role):
        @on
        async def work(self, event: WorkGiven, ctx: RoleContext) -> WorkDone:
            draft = await ctx.ask("Draft.")
            better = await ctx.ask_person(draft, reply=str)
            return WorkDone(text=await ctx.ask(f"Improve: {better}"))

    model = ScriptedModel(["draft", "final"])
    async with started(worker_swarm(Worker(), model=model), WorkGiven()) as (_, run):
        await run.answer(question_of(run), "more")
        assert (await run.result()).output.text == "final"
    assert len(model.requests) == 2


@pytest.mark.parametrize(("agreed", "sent"), [(True, ["Ann"]), (False, [])], ids=["agreed", "refused"])
async def test_a_person_may_be_asked_before_a_tool_runs(*, agreed: bool, sent: list[str]) -> None:
    done: list[str] = []

    @tool(approval=True, effects="at_most_once")
    def send(to: str) -> str:
        """Send a letter."""
        done.append(to)
        return "sent"

    class Worker(Role):
        tools = (send,)

        @on
        async def work(self, event: WorkGiven, ctx: RoleContext) -> WorkDone:
            async def approve(wish: ToolCall, arguments: dict[str, Any]) -> bool:
                return await ctx.ask_person(f"{wish.name} to {arguments['to']}?", reply=bool)

            return WorkDone(text=await ctx.ask("go", approve=approve))

    model = ScriptedModel([call("send", to="Ann"), "done"])
    async with started(worker_swarm(Worker(), model=model), WorkGiven()) as (_, run):
        assert (run.questions[question_of(run)]["question"], done) == ("send to Ann?", [])
        await run.answer(question_of(run), agreed)
        assert (await run.result()).output.text == "done"
    assert (done, len(model.requests)) == (sent, 2)


class Sender(Role):
    """Asks its agent without saying who approves what the agent wants to do."""

    name = "worker"

    def __init__(self) -> None:
        self.sent: list[str] = []

    @tool(approval=True, effects="at_most_once")
    async def send(self, to: str) -> str:
        """Send a letter."""
        self.sent.append(to)
        return "sent"

    @tool(effects="at_most_once")
    async def note(self, text: str) -> str:
        """Write it down."""
        self.sent.append(text)
        await anyio.lowlevel.checkpoint()
        return "noted"

    tools = (send, note)

    @on
    async def work(self, event: WorkGiven, ctx: RoleContext) -> WorkDone:
        return WorkDone(text=await ctx.ask("go"))


MAY_SEND = 'May worker run the tool send with {"to": "Ann"}?'


@pytest.mark.parametrize(("agreed", "sent"), [(True, ["Ann"]), (False, [])], ids=["agreed", "refused"])
async def test_a_tool_that_needs_approval_asks_a_person_where_the_handler_says_nothing(
    *, agreed: bool, sent: list[str]
) -> None:
    worker, model = Sender(), ScriptedModel([call("send", to="Ann"), "done"])
    async with started(worker_swarm(worker, model=model), WorkGiven()) as (_, run):
        assert (run.questions[question_of(run)]["question"], worker.sent) == (MAY_SEND, [])
        await run.answer(question_of(run), agreed)
        result = await run.result()
    assert (result.output.text, worker.sent, result.warnings) == ("done", sent, ())
    assert (len(model.requests), result.usage.calls) == (2, 2)  # the reply that wanted the tool was paid for once
    answer = model.requests[-1].messages[-1]
    assert isinstance(answer, ToolMessage)
    assert (answer.ok, "a person refused this call" in answer.content) == (agreed, not agreed)


async def test_an_approval_goes_on_in_another_process_and_is_not_asked_for_again() -> None:
    journal, worker = MemoryJournal(), Sender()
    swarm = worker_swarm(worker, model=ScriptedModel([call("send", to="Ann")]), journal=journal)
    async with started(swarm, WorkGiven(), run_id="r"):
        pass
    late = ScriptedModel([call("send", to="Bob"), "done"])
    async with worker_swarm(worker, model=late, journal=journal).open() as live:
        run = await live.resume("r")
        await anyio.wait_all_tasks_blocked()
        await run.answer(question_of(run), True)
        await anyio.wait_all_tasks_blocked()
        assert (worker.sent, run.questions[question_of(run)]["question"]) == (["Ann"], MAY_SEND.replace("Ann", "Bob"))
        await run.answer(question_of(run), False)
        assert (await run.result()).output.text == "done"
    assert worker.sent == ["Ann"]


async def test_each_of_two_like_calls_needs_an_approval_of_its_own() -> None:
    worker, model = Sender(), ScriptedModel([call("send", to="Ann"), call("send", to="Ann"), "done"])
    async with started(worker_swarm(worker, model=model), WorkGiven()) as (_, run):
        for agreed in (True, False):
            await run.answer(question_of(run), agreed)
            await anyio.wait_all_tasks_blocked()
        assert (await run.result()).output.text == "done"
    assert worker.sent == ["Ann"]


async def test_all_approvals_of_a_reply_are_asked_for_before_any_tool_runs() -> None:
    script = [[call("note", text="x"), call("send", to="Ann"), call("send", to="Bob")], "done"]
    worker = Sender()
    async with started(worker_swarm(worker, model=ScriptedModel(script)), WorkGiven()) as (_, run):
        for agreed in (True, False):
            assert worker.sent == []
            await run.answer(question_of(run), agreed)
            await anyio.wait_all_tasks_blocked()
        assert (await run.result()).output.text == "done"
    assert sorted(worker.sent) == ["Ann", "x"]


@pytest.mark.parametrize("kept", [None, MemoryJournal], ids=["memory", "journal"])
async def test_tasks_that_ask_side_by_side_get_each_its_own_answer(kept: Any) -> None:
    class Worker(Role):
        @on
        async def work(self, event: WorkGiven, ctx: RoleContext) -> WorkDone:
            async def ask(item: str, delay: int) -> None:
                for _ in range(delay):
                    await anyio.lowlevel.checkpoint()
                prices[item] = await ctx.ask_person(f"Price of {item}?", reply=int)

            prices: dict[str, int] = {}
            begun.append(ctx.attempt)
            async with anyio.create_task_group() as tasks:
                for place, item in enumerate("abc"):
                    tasks.start_soon(ask, item, (place + len(begun)) % 3)
            return WorkDone(text=str(sorted(prices.items())))

    begun: list[int] = []
    answers = {"Price of a?": 1, "Price of b?": 2, "Price of c?": 3}
    swarm = worker_swarm(Worker(), journal=kept and kept())
    async with started(swarm, WorkGiven()) as (_, run):
        for _ in answers:
            await anyio.wait_all_tasks_blocked()
            await run.answer(question_of(run), answers[run.questions[question_of(run)]["question"]])
        assert (await run.result()).output.text == "[('a', 1), ('b', 2), ('c', 3)]"


async def test_a_question_that_is_asked_twice_is_answered_twice() -> None:
    class Worker(Role):
        @on
        async def work(self, event: WorkGiven, ctx: RoleContext) -> WorkDone:
            return WorkDone(text="".join([await ctx.ask_person("more?", reply=str) for _ in range(3)]))

    async with started(worker_swarm(Worker()), WorkGiven()) as (_, run):
        for answer in "abc":
            await anyio.wait_all_tasks_blocked()
            await run.answer(question_of(run), answer)
        assert (await run.result()).output.text == "abc"


async def test_where_a_question_can_not_be_kept_the_next_task_asks_its_own() -> None:
    class Worker(Role):
        @on
        async def work(self, event: WorkGiven, ctx: RoleContext) -> WorkDone:
            async def ask(question: str | Odd) -> None:
                with suppress(ValueError):
                    got.append(await ctx.ask_person(question, reply=str))

            got: list[str] = []
            async with anyio.create_task_group() as tasks:
                for question in (Odd(number=math.nan), "well?"):
                    tasks.start_soon(ask, question)
            return WorkDone(text=", ".join(got))

    async with started(worker_swarm(Worker(), journal=MemoryJournal()), WorkGiven()) as (_, run):
        await run.answer(question_of(run), "yes")
        assert (await run.result()).output.text == "yes"


async def test_an_answer_is_there_for_a_later_attempt_too() -> None:
    asked: list[int] = []

    class Worker(Role):
        @on
        async def work(self, event: WorkGiven, ctx: RoleContext) -> WorkDone:
            asked.append(ctx.attempt)
            answer = await ctx.ask_person("?", reply=str)
            if ctx.attempt == 1:
                raise Retryable("after the answer")
            return WorkDone(text=answer)

    clock = FakeClock()
    async with started(worker_swarm(Worker(), clock=clock), WorkGiven()) as (_, run):
        await run.answer(question_of(run), "yes")
        await clock.advance(1)
        assert (await run.result()).output.text == "yes"
    assert asked == [1, 1, 2]


async def test_the_answer_may_come_days_later_in_another_process() -> None:
    journal, clock, first, second = MemoryJournal(), FakeClock(), Asker(), Asker()
    async with worker_swarm(first, journal=journal, clock=clock).open() as live:
        asked = await live.submit(WorkGiven(), run_id="r")
        await anyio.wait_all_tasks_blocked()
        question = question_of(asked)
    await clock.advance(3 * 24 * 3600)
    kept = MemoryJournal({run: list(records) for run, records in journal.records.items()})
    async with worker_swarm(second, journal=kept, clock=clock).open() as live:
        run = await live.resume("r")
        await anyio.wait_all_tasks_blocked()
        assert second.seen == []
        await run.answer(question, Approval(granted=True, by="Ann"))
        assert (await run.result()).output.text == "True by Ann"
    assert (first.seen, second.seen) == ([("begin", 1), "effect"], [("begin", 1)])


async def test_a_wrong_answer_given_where_its_type_is_not_known_is_asked_for_again() -> None:
    journal = MemoryJournal()
    async with worker_swarm(Asker(), journal=journal).open() as live:
        await live.submit(WorkGiven(), run_id="r")
        await anyio.wait_all_tasks_blocked()
    async with worker_swarm(Asker(), journal=journal).open() as live:
        run = await live.resume("r")
        question = question_of(run)
        await run.answer(question, {"granted": "perhaps"})
        await anyio.wait_all_tasks_blocked()
        assert question_of(run) == f"{question}'"
        with pytest.raises(QuestionError):
            await run.answer(question_of(run), {"granted": "perhaps"})
        await run.answer(question_of(run), {"granted": True})
        assert (await run.result()).output.text == "True by nobody"


UNATTENDED = r"Where nobody holds the run this can't come: open the swarm, live\.submit\(event\), and run\."


async def test_a_run_that_nobody_holds_stops_where_it_can_only_wait_for_a_person() -> None:
    worker = Asker()
    wanted = (
        rf"was stopped: it waits for a person: worker\.work asks .*May I\?.*\. {UNATTENDED}answer\(question, value\)"
    )
    with pytest.raises(RunStopped, match=wanted):
        await worker_swarm(worker).run(WorkGiven(), timeout=0.2)
    assert worker.seen == [("begin", 1), "effect"]


async def test_a_run_that_nobody_holds_goes_on_beside_a_question_and_may_do_without_the_answer() -> None:
    class Worker(Role):
        concurrency = 2

        @on(JobGiven, each="pieces")
        async def work(self, piece: int, ctx: RoleContext) -> PieceDone:
            if piece == 1:
                await ctx.ask_person("one?", reply=str)
            for _ in range(10):
                await anyio.lowlevel.checkpoint()
            return PieceDone(piece=piece)

    result = await job_swarm(Worker(), gatherer(quorum=2)).run(JobGiven(pieces=(1, 2, 3)))
    assert result.output.done == (2, 3)


class Patient(Role):
    """Asks, and goes on without the answer once enough time has passed."""

    name = "worker"

    @on
    async def work(self, event: WorkGiven, ctx: RoleContext[Approved]) -> WorkDone:
        await ctx.publish(Approved(text="nobody objected"), after=20)
        return WorkDone(text=await ctx.ask_person("Any objection?", reply=str))

    @on
    async def go_on(self, event: Approved) -> WorkDone:
        return WorkDone(text=event.text)


async def test_a_run_that_nobody_holds_goes_on_with_what_is_set_for_a_time_beside_a_question() -> None:
    clock = FakeClock()
    swarm, ended = worker_swarm(Patient(), ("worker", Approved, "worker"), clock=clock), list[str]()

    async def unattended() -> None:
        ended.append((await swarm.run(WorkGiven(), timeout=60)).output.text)

    async with anyio.create_task_group() as group:
        group.start_soon(unattended)
        await clock.advance(20)
    assert ended == ["nobody objected"]


async def test_the_clock_of_a_run_goes_on_while_something_is_set_for_a_time_beside_a_question() -> None:
    clock = FakeClock()
    swarm = worker_swarm(Patient(), ("worker", Approved, "worker"), clock=clock)
    async with started(swarm, WorkGiven(), timeout=10) as (_, run):
        await clock.advance(10)
        assert run.status == "timed_out"


async def test_what_stopped_at_a_question_is_resumed_and_answered() -> None:
    journal, first = MemoryJournal(), Asker()
    for _ in range(2):  # the second finds the question open
        with pytest.raises(RunStopped, match="it waits for a person"):
            await worker_swarm(first, journal=journal).run(WorkGiven(), run_id="r")
    async with worker_swarm(Asker(), journal=journal).open() as live:
        run = await live.resume("r")
        await run.answer(question_of(run), Approval(granted=True, by="Ann"))
        assert (await run.result()).output.text == "True by Ann"
    assert first.seen == [("begin", 1), "effect"]


async def test_a_run_that_nobody_holds_stops_where_it_can_only_wait_for_an_event_from_outside() -> None:
    class Worker(Role):
        @on
        async def begin(self, event: WorkGiven) -> None: ...

        @on
        async def end(self, event: Approved) -> WorkDone:
            return WorkDone(text=event.text)

    table = EventTable(
        (CLIENT, WorkGiven, "worker"),
        (External("desk"), Approved, "worker"),
        ("worker", WorkDone, CLIENT),
        result=WorkDone,
    )
    wanted = rf"it waits for an event from outside that could lead to its result\. {UNATTENDED}send\(event\)"
    with pytest.raises(RunStopped, match=wanted):
        await Swarm(Worker(), table=table).run(WorkGiven())
    async with Swarm(Worker(), table=table).open() as live:
        run = await live.submit(WorkGiven())
        await anyio.wait_all_tasks_blocked()
        await run.send(Approved(text="yes"), source=External("desk"))
        assert (await run.result()).output.text == "yes"


async def test_a_synchronous_handler_that_asks_is_suspended_and_not_abandoned() -> None:
    left: list[str] = []
    gone = threading.Semaphore(0)

    class Worker(Role):
        @on
        def work(self, event: WorkGiven, ctx: RoleContext) -> WorkDone:
            try:
                first = anyio.from_thread.run(partial(ctx.ask_person, "One?", reply=int))
                return WorkDone(text=f"{first} {anyio.from_thread.run(partial(ctx.ask_person, 'Two?', reply=int))}")
            except Exception as error:
                left.append(repr(error))  # whoever catches errors does not go on beside the next call
                raise
            finally:
                gone.release()

    async with started(worker_swarm(Worker()), WorkGiven()) as (_, run):
        for answer in (1, 2):
            await anyio.to_thread.run_sync(gone.acquire)
            await run.answer(question_of(run), answer)
            await anyio.wait_all_tasks_blocked()
        result = await run.result()
    assert (result.output.text, result.warnings, left) == ("1 2", (), [])


async def test_of_two_threads_that_ask_each_gets_its_answer() -> None:
    class Worker(Role):
        @on
        def work(self, event: WorkGiven, ctx: RoleContext) -> WorkDone:
            async def ask() -> None:
                async with anyio.create_task_group() as tasks:
                    for name in "ab":
                        tasks.start_soon(note, name)

            async def note(name: str) -> None:
                got[name] = await ctx.ask_person(f"{name}?", reply=str)

            got: dict[str, str] = {}
            anyio.from_thread.run(ask)
            return WorkDone(text=got["a"] + got["b"])

    async with worker_swarm(Worker()).open() as live:
        run = await live.submit(WorkGiven())
        with anyio.fail_after(5):
            while run.status == "running":
                for question, asked in list(run.questions.items()):
                    await run.answer(question, asked["question"].upper())
                await anyio.sleep(0.01)
        result = await run.result()
    assert (result.output.text, result.warnings) == ("A?B?", ())
