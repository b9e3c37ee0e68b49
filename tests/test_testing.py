"""What is shipped for users' own tests: a context without a bus, and the fake clock that the tests here use too."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Never

import pytest
from pydantic import AfterValidator, BaseModel

from swarmbus import Event, FrozenDict, Joined, Retryable, Role, RoleContext, join, on, tool
from swarmbus.errors import PublishError, QuestionError, RoleError, UnknownModel
from swarmbus.models import ScriptedModel, call
from swarmbus.testing import START, EarlyEvent, FakeClock, context

if TYPE_CHECKING:
    from swarmbus.delivery.clock import Clock


class NoteTaken(Event):
    text: str


class NoteKept(Event):
    text: str


class Keeper(Role):
    instructions = "Be brief."

    class State(BaseModel, frozen=True):
        notes: FrozenDict[str, str] = FrozenDict()
        count: int = 0

    @on
    async def keep(self, event: NoteTaken, state: State, ctx: RoleContext[NoteKept, list[str]]) -> NoteKept:
        await ctx.publish(NoteKept(text="soon"), after=5, key="k")
        ctx.put("notes", event.text, "kept")
        ctx.update(count=state.count + 1)
        ctx.progress("half")
        ctx.deps.append(event.text)
        return NoteKept(text=event.text)


async def test_a_handler_is_called_without_a_bus_and_what_it_does_is_kept() -> None:
    deps: list[str] = []
    ctx = context("keeper", state=Keeper.State(count=4), deps=deps)
    assert await Keeper().keep(NoteTaken(text="a"), Keeper.State(count=4), ctx) == NoteKept(text="a")
    assert ctx.published == (EarlyEvent(NoteKept(text="soon"), after=5, key="k"),)
    assert ctx.state == Keeper.State(notes=FrozenDict({"a": "kept"}), count=5)
    assert [change.field for change in ctx.changes] == ["notes", "count"]
    assert (ctx.details, deps, ctx.role, ctx.attempt) == (("half",), ["a"], "keeper", 1)


class Other(Event):
    text: str = ""


async def test_what_no_handler_of_the_role_declares_is_not_published_early() -> None:
    ctx = context(Keeper())
    told = r"keeper\.keep declares NoteKept for early publishing, but published Other; annotate the context as"
    with pytest.raises(PublishError, match=told):
        await ctx.publish(Other())
    assert ctx.published == ()
    await ctx.publish(NoteKept(text="declared"))
    await context("keeper").publish(Other())  # of a name it is not known what its handlers declare


async def test_with_several_handlers_what_one_of_them_declares_may_be_published() -> None:
    class Both(Keeper):
        @on
        async def more(self, event: Other, ctx: RoleContext[Other]) -> None:
            """Handles another event."""

    ctx = context(Both())
    await ctx.publish(Other())
    await ctx.publish(NoteKept(text="a"))
    with pytest.raises(
        PublishError, match=r"^both\.keep or more declares NoteKept, Other for early publishing, but pub"
    ):
        await ctx.publish(NoteTaken(text="a"))


def test_a_role_brings_its_state_and_a_name_has_none() -> None:
    assert context(Keeper()).state == Keeper.State()
    assert context("keeper").state is None
    with pytest.raises(RoleError, match="keeper has no State"):
        context("keeper").update(count=1)


async def test_the_roles_model_and_tools_answer() -> None:
    @tool(effects="read_only")
    def look(place: str) -> str:
        """Look somewhere."""
        return f"nothing at {place}"

    class Looker(Role):
        instructions = staticmethod(lambda ctx: f"You are {ctx.role}.")
        tools = (look,)

    model = ScriptedModel([call("look", place="home"), "nothing there", "still nothing"])
    ctx = context(Looker(), model=model)
    assert await ctx.ask("Where?") == "nothing there"
    assert await ctx.ask("Sure?", history=(), instructions="Doubt.") == "still nothing"
    assert [str(request.messages[0].content) for request in model.requests] == ["You are looker."] * 2 + ["Doubt."]


async def test_a_role_that_remembers_over_a_run_goes_on_from_what_the_delivery_before_left() -> None:
    class Rememberer(Role):
        history = "run"

    model = ScriptedModel(["Anna", "Anna again"])
    first = context(Rememberer(), model=model)
    await first.ask("My name is Anna.")
    second = context(Rememberer(), model=model, history=first.history)
    await second.ask("What is my name?", instructions="Be brief.")
    texts = ["My name is Anna.", "Anna", "What is my name?"]
    assert [message.content for message in model.requests[1].messages] == ["Be brief.", *texts]
    assert [message.content for message in second.history] == [*texts, "Anna again"]
    assert second.again().history == first.history
    with pytest.raises(ValueError, match=r"context\(history=...\) is for a role with history = \"run\""):
        context("role", history=first.history)


async def test_without_a_model_asking_is_an_error_that_says_what_to_give() -> None:
    with pytest.raises(UnknownModel, match=r"role has no model: give context\(model=...\)"):
        await context().ask("?")


async def test_a_person_answers_in_order_and_then_no_more() -> None:
    ctx = context(answers=[1, 2])
    assert [await ctx.ask_person("first?", reply=int), await ctx.ask_person("second?", reply=int)] == [1, 2]
    with pytest.raises(QuestionError, match=r"role asked 'third\?', and context\(answers=...\) has 2 answers"):
        await ctx.ask_person("third?", reply=int)
    assert ctx.questions == ("first?", "second?", "third?")


async def test_a_person_approves_of_a_tool_in_a_context_too() -> None:
    @tool(approval=True, effects="idempotent")
    def pay(sum: int) -> str:  # noqa: A002  # what its author would call it
        """Pay."""
        return f"paid {sum}"

    class Payer(Role):
        tools = (pay,)

    ctx = context(Payer(), model=ScriptedModel([call("pay", sum=3), "paid"]), answers=[True])
    assert await ctx.ask("Pay.") == "paid"
    assert ctx.questions == ('May payer run the tool pay with {"sum": 3}?',)
    assert ctx.history[-2].content == "paid 3"


async def test_a_persons_answer_is_read_as_a_run_reads_it() -> None:
    ctx = context(answers=["3", "three"])
    assert await ctx.ask_person("How many?", reply=Annotated[int, AfterValidator(lambda number: number + 1)]) == 4
    with pytest.raises(QuestionError, match="the answer 'three' is not of the type that was asked for: "):
        await ctx.ask_person("How many?", reply=int)


async def test_another_attempt_finds_what_was_recorded() -> None:
    paid: list[str] = []

    class Payer(Role):
        @on
        async def pay(self, event: NoteTaken, ctx: RoleContext) -> NoteKept:
            await ctx.once("pay", lambda: paid.append(event.text))
            text = await ctx.ask("?")
            if ctx.attempt == 1:
                raise Retryable("after paying")
            return NoteKept(text=f"{text} {ctx.now():%Y} {ctx.new_id()}")

    ctx = context(Payer(), model=ScriptedModel(["thanks"]))
    with pytest.raises(Retryable):
        await Payer().pay(NoteTaken(text="a"), ctx)
    kept = await Payer().pay(NoteTaken(text="a"), ctx.again())
    assert kept.text == f"thanks 2031 {ctx.new_id()}"
    assert paid == ["a"]


async def test_a_join_is_called_like_any_handler() -> None:
    class Counter(Role):
        @join(NoteKept, per=NoteTaken)
        async def add_up(self, taken: NoteTaken, kept: Joined[NoteKept], ctx: RoleContext[Never, int]) -> NoteKept:
            return NoteKept(text=f"{taken.text} {len(kept.done) + ctx.deps}")

    joined = Joined(done=(NoteKept(text="x"),))
    assert await Counter().add_up(NoteTaken(text="a"), joined, context(deps=4)) == NoteKept(text="a 5")


def test_the_context_tells_the_time_it_is_given() -> None:
    assert context().now() == START
    assert context(time=datetime(2040, 1, 2, tzinfo=UTC)).now() == datetime(2040, 1, 2, tzinfo=UTC)


def test_the_fake_clock_is_a_clock() -> None:
    clock: Clock = FakeClock(datetime(2040, 1, 2, tzinfo=UTC))
    assert (clock.time(), clock.monotonic()) == (datetime(2040, 1, 2, tzinfo=UTC).timestamp(), 0)
