"""Whoever calls the public names with something else than they take is told what they take, where it was given."""

from __future__ import annotations

import functools
import importlib
import math
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest
from pydantic import BaseModel, ValidationError

from support.jobs import WorkDone, WorkGiven, WorkSeen, worker_swarm
from swarmbus import CLIENT, AgentStopped, Budget, EventTable, FrozenDict, Limits, Role, Run, RunFailed, on
from swarmbus.arguments import require, require_manager, require_seconds, require_text, shown
from swarmbus.errors import RoleError, SubmitError, ToolDefinitionError
from swarmbus.models import ScriptedModel
from swarmbus.testing import FakeClock

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

pytestmark = pytest.mark.anyio

sb, models, testing = map(importlib.import_module, ("swarmbus", "swarmbus.models", "swarmbus.testing"))  # untyped


class Plain:
    """A class that JSON does not know."""

    def __init__(self, content: str) -> None:
        self.content = content


class Worker(Role):
    @on
    async def work(self, event: WorkGiven) -> WorkDone:
        return WorkDone()


TABLE = EventTable((CLIENT, WorkGiven, "worker"), ("worker", WorkDone, CLIENT), result=WorkDone)
MODEL = ScriptedModel([])


def swarm(*roles: Any, **settings: Any) -> Callable[[], object]:
    return lambda: sb.Swarm(*(roles or (Worker(),)), **{"table": TABLE, **settings})


def agent(**settings: Any) -> Callable[[], object]:
    return lambda: sb.Agent(**{"model": MODEL, **settings})


def role(**settings: Any) -> Callable[[], object]:
    return lambda: Worker().named("worker", **settings)


def plain(a: int) -> int:
    return a


async def awaited(value: object) -> str:
    return str(value)


def yielding(self: Any, event: WorkGiven) -> Any:
    yield event


def anything(value: Any) -> Any:
    """Return a value that mypy says nothing about."""
    return value


def told(value: object) -> str:
    """Name a case after what its author is told."""
    return value[:60] if isinstance(value, str) else ""


def refused(make: Callable[[], object], told: str, kind: type[Exception] = TypeError) -> None:
    with pytest.raises(kind) as caught:
        make()
    assert told in str(caught.value)


SWARMS: list[tuple[Callable[[], object], str]] = [
    (swarm(Worker), "Swarm(Worker, table=...) takes roles; Worker is a class: give an instance, Worker()"),
    (swarm([Worker()]), "Swarm([<role worker>], table=...) takes roles one by one: Swarm(*roles, ...)"),
    (swarm("worker"), "Swarm('worker', table=...) takes roles"),
    (swarm(Worker(), None), "Swarm(None, table=...) takes roles"),
    (swarm(Worker(), TABLE), "Swarm(<EventTable of 2 rows, result WorkDone>, table=...) takes roles"),
    (swarm(table=None), "Swarm(table=None) takes an EventTable("),
    (swarm(table=[(CLIENT, WorkGiven, "worker")]), "takes an EventTable("),
    (
        swarm(model=3),
        'Swarm(model=3) takes a model (with `name` and `stream`), or the name of one such as "openai:gpt-5-mini"',
    ),
    (swarm(model=ScriptedModel), "ScriptedModel is a class: give an instance, ScriptedModel(...)"),
    (swarm(model={"worker": 3}), "Swarm(model={'worker': 3}) takes a model"),
    (swarm(model={3: MODEL}), "takes the names of roles as keys"),
    (swarm(limits=3), "Swarm(limits=3) takes Limits, such as Limits(turns=5)"),
    (swarm(limits=Budget(hops=1)), "takes Limits"),
    (swarm(budget=Limits()), "takes a Budget"),
    (swarm(retry=3), "Swarm(retry=3) takes a Retry"),
    (swarm(timeout="3"), "Swarm(timeout='3') takes a number of seconds, above 0"),
    (swarm(deps={}), "Swarm(deps={}) takes a function from the run's first event"),
    (swarm(journal="runs.sqlite"), "Swarm(journal='runs.sqlite') takes a journal"),
    (swarm(transport="memory"), "takes a function from the roles' stations"),
    (swarm(clock=FakeClock), "takes a clock, such as swarmbus.testing.FakeClock(); FakeClock is a class"),
    (lambda: anything(worker_swarm(Worker())).override(model=3).__enter__(), "override(model=3) takes a model"),
    (lambda: sb.EventTable(TABLE.rows[0], result="WorkDone"), "EventTable(result='WorkDone') takes an event class"),
    (lambda: sb.EventTable(TABLE.rows[0], result=WorkDone()), "takes an event class itself: WorkDone"),
    (lambda: sb.External(3), "External(3) takes the name of a program"),
]

THINKING: list[tuple[Callable[[], object], str]] = [
    (agent(model=3), "model=3 takes a model (with `name` and `stream`), or the name of one"),
    (agent(model=None), "model=None takes a model"),
    (agent(instructions=3), "Agent(instructions=3) takes a text"),
    (agent(tools=plain), "takes a list of tools, such as [search]"),
    (agent(tools="search"), "tools='search' takes a list of tools"),
    (agent(hooks=None), "Agent(hooks=None) takes Hooks"),
    (agent(limits=3), "Agent(limits=3) takes Limits"),
    (agent(settings={}), "Agent(settings={}) takes ModelSettings"),
    (agent(history="before"), "Agent(history='before') takes messages"),
    (agent(history=["before"]), "Agent(history='before') takes messages"),
    (agent(queues="none"), 'Agent(queues=\'none\') takes "all" or "one"'),
    (lambda: sb.Agent(MODEL).steer(3), "steer(3) takes a text"),
    (lambda: sb.Agent(MODEL).follow_up(3), "follow_up(3) takes a text"),
    (lambda: models.ScriptedModel("text"), "ScriptedModel('text') takes a list of replies: ScriptedModel(['text'])"),
    (lambda: models.ScriptedModel(3), "ScriptedModel(3) takes a list of replies: ScriptedModel([3])"),
    (lambda: models.ScriptedModel({"a": "b"}), "takes a list of replies"),
    (lambda: models.ScriptedModel(models.call("look")), "takes a list of replies"),
    (lambda: models.ScriptedModel(WorkDone()), "takes a list of replies"),
    (lambda: models.ScriptedModel([], name=3), "ScriptedModel(name=3) takes a text"),
    (lambda: models.call(3), "call(3, ...) takes the name of a tool"),
    (lambda: models.resolve_model(3), "model=3 takes a model (with `name` and `stream`), or the name of one"),
    (lambda: models.register_model(3, plain), "takes a prefix as text"),
    (lambda: models.register_model("x", 3), "register_model('x', 3) takes a function"),
    (lambda: models.FallbackModel("openai:a"), "FallbackModel('openai:a') takes a list of models"),
    (lambda: models.FallbackModel(["openai:a"]), "of names, resolve_model("),
    (lambda: sb.Limits(turns="3"), "Limits(turns='3') takes a whole number"),
    (lambda: sb.Limits(turns=1.5), "Limits(turns=1.5) takes a whole number"),
    (lambda: sb.Limits(seconds="3"), "Limits(seconds='3') takes a number"),
    (lambda: sb.Budget(hops=None), "Budget(hops=None) takes a whole number"),
    (lambda: sb.Hooks(should_stop=True), "Hooks(should_stop=True) takes a function"),
    (lambda: sb.tool("search"), "a name is given as @tool(name='search')"),
    (lambda: sb.tool(3), "3 can't be a tool; give a function or a method"),
    (lambda: sb.tool(functools.partial(plain, 1)), "can't be a tool"),
    (lambda: sb.tool(Plain), "Plain can't be a tool"),
    (lambda: sb.tool(effect="read_only"), "@tool has no option 'effect' (did you mean `effects`?)"),
    (lambda: sb.tool(effects="none")(plain), "takes one of read_only, idempotent, at_most_once"),
    (lambda: sb.tool(timeout="3")(plain), "@tool(timeout='3') takes a number of seconds"),
    (lambda: sb.tool(max_result="3")(plain), "takes a number of characters"),
    (lambda: sb.tool(name=3)(plain), "@tool(name=3) takes a text"),
    (lambda: sb.tool(project=3)(plain), "takes a function of what the tool returned"),
    (lambda: sb.tool(project=awaited)(plain), "takes a plain function of what the tool returned, not an async one"),
    (lambda: sb.tool(approval="yes")(plain), "@tool(approval='yes') takes True or False"),
]

ROLES: list[tuple[Callable[[], object], str]] = [
    (lambda: sb.Retry(attempts="3"), "Retry(attempts='3') takes a whole number"),
    (lambda: sb.Retry(delay="1"), "Retry(delay='1') takes a number"),
    (lambda: sb.Retry(on=OSError), "Retry(on=OSError) takes a tuple of exception classes, such as (OSError,)"),
    (lambda: sb.Retry(on=[OSError]), "takes a tuple of exception classes"),
    (lambda: sb.Retry(on=(3,)), "takes a tuple of exception classes"),
    (lambda: sb.join(WorkSeen, per=WorkGiven, key=3), "@join(key=3) takes the name of a field"),
    (lambda: sb.join(WorkSeen, per=WorkGiven, expect=3), "@join(expect=3) takes the name of a field, or a function"),
    (lambda: sb.on(sb.on(plain)), "plain is decorated twice; name all its events in one decorator: @on(E1, E2)"),
    (lambda: sb.on(yielding), "yielding yields; return a tuple of events, or publish each with ctx.publish"),
    (lambda: testing.context(Worker), "context(Worker) takes a role, or the name of one; Worker is a class"),
    (lambda: testing.context(time=3), "context(time=3) takes a time"),
    (lambda: testing.FakeClock(3), "FakeClock(3) takes a time"),
]


@pytest.mark.parametrize(("make", "told"), [*SWARMS, *THINKING, *ROLES], ids=told)
def test_what_something_else_was_given_to_says_what_it_takes(make: Callable[[], object], told: str) -> None:
    refused(make, told)


@pytest.mark.parametrize(
    ("make", "told"),
    [
        (role(model=3), "Worker.model is 3; it has to be a model (with `name` and `stream`), or the name of one"),
        (role(limits=3), "it has to be Limits, such as Limits(turns=5), or None"),
        (role(instructions=3), "it has to be a text, or a function from the context to one"),
        (role(instructions=awaited), "it has to be a text, or a function from the context to one, not async"),
        (role(tools=(3,)), "it has to be a tuple of tools, such as (search,)"),
        (lambda: anything(Worker()).named(3), "Worker.name is 3; it has to be letters"),
    ],
    ids=told,
)
def test_a_role_says_what_its_settings_have_to_be(make: Callable[[], object], told: str) -> None:
    refused(make, told, RoleError)


@pytest.mark.parametrize(
    ("make", "told"),
    [
        (swarm(timeout=0), "Swarm(timeout=0) takes a number of seconds, above 0"),
        (swarm(timeout=math.nan), "Swarm(timeout=nan) takes a number of seconds"),
        (swarm(timeout=10**400), "takes a number of seconds, above 0"),
        (lambda: sb.Limits(seconds=10**400), "a limit is above 0, or None for no limit"),
        (lambda: sb.External(""), "External('') takes the name of a program that is not empty"),
        (lambda: sb.Limits(seconds=math.nan), "a limit is above 0"),
        (lambda: sb.EventTable([TABLE.rows[0]]), "write EventTable(*rows, result=...)"),
    ],
    ids=told,
)
def test_a_value_that_can_not_be_says_what_can(make: Callable[[], object], told: str) -> None:
    refused(make, told, ValueError)


def test_a_factory_of_models_has_to_return_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("swarmbus.thinking.models.registry._registered", {"odd": lambda name: name})
    refused(lambda: models.resolve_model("odd:x"), "the factory of the prefix 'odd' returned 'x', which is no model")


@pytest.mark.parametrize(("setting", "value"), [("name", 3), ("concurrency", "2"), ("tools", 3)])
def test_a_setting_that_a_role_sets_itself_is_looked_at_too(setting: str, value: object) -> None:
    worker = Worker()
    setattr(worker, setting, value)
    refused(swarm(worker), f"Worker.{setting} is {value!r}; it has to be", RoleError)


# What is given to a run.


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"timeout": "3"}, "timeout='3' takes a number of seconds, from 0"),
        ({"timeout": -1}, "timeout=-1 takes a number of seconds, from 0"),
        ({"run_id": 3}, "run_id=3 takes a text"),
        ({"run_id": ""}, "run_id='' takes a text that is not empty"),
        ({"run_id": "\ud800"}, "run_id='\\ud800' takes a text without lone surrogates"),
    ],
    ids=str,
)
async def test_a_run_says_what_its_options_take(options: dict[str, Any], told: str) -> None:
    with pytest.raises((TypeError, ValueError)) as caught:
        await worker_swarm(Worker()).run(WorkGiven(), **options)
    assert told in str(caught.value)


@pytest.mark.parametrize("event", [WorkGiven, "text", None, {"text": ""}], ids=repr)
async def test_what_is_no_event_can_not_start_a_run(event: Any) -> None:
    with pytest.raises(SubmitError, match=r"takes an event that the table accepts from the client") as caught:
        await worker_swarm(Worker()).run(event)
    assert ("WorkGiven is a class: give an instance, WorkGiven()" in str(caught.value)) == (event is WorkGiven)


@pytest.mark.parametrize(
    ("do", "told"),
    [
        (lambda run: run.send("x"), "send('x') takes an event"),
        (lambda run: run.send(WorkGiven), "send(WorkGiven) takes an event; WorkGiven is a class"),
        (lambda run: run.send(WorkGiven(), source="client"), 'takes CLIENT, or External("name")'),
        (lambda run: run.send(WorkGiven(), cause="0"), "send(..., cause='0') takes the number of an envelope"),
        (lambda run: run.cancel(3), "cancel(3) takes the reason as text"),
    ],
    ids=told,
)
async def test_a_run_says_what_it_takes(do: Callable[[Run[Any]], Any], told: str) -> None:
    async with worker_swarm(Worker()).open() as live:
        run = await live.submit(WorkGiven())
        with pytest.raises(TypeError) as caught:
            await do(run)
        assert told in str(caught.value)
        with pytest.raises(TypeError, match=r"resume\(3\) takes the id of a run"):
            await anything(live).resume(3)
        assert (await run.result()).output == WorkDone()


async def test_opening_a_swarm_says_what_it_takes() -> None:
    for grace in ("3", None):
        with pytest.raises(TypeError, match=rf"open\(grace={grace!r}\) takes a number of seconds, from 0"):
            await anything(worker_swarm(Worker())).open(grace=grace).__aenter__()
    odd = worker_swarm(Worker())
    anything(odd.middleware).append(3)
    with pytest.raises(TypeError, match=r"middleware\.append\(3\) takes a function"):
        await odd.open().__aenter__()


# What a handler gives to its context.


class Asker(Role):
    instructions = "Be brief."


async def given(**options: Any) -> None:
    await testing.context(Asker(), model=models.ScriptedModel(["1"])).ask(options.pop("prompt", "How many?"), **options)


CONTEXT: list[tuple[Callable[[Any], Any], str]] = [
    (lambda ctx: given(prompt=3), "ctx.ask(3) takes a text"),
    (lambda ctx: given(prompt=["How", "many?"]), "takes a text, or parts such as TextPart and DataPart"),
    (lambda ctx: given(prompt=WorkDone()), "takes a text"),
    (lambda ctx: given(output="int"), "output='int' takes a type itself: output=int"),
    (lambda ctx: given(output=None), "leave it out where the answer is a text"),
    (lambda ctx: given(output=3), "output=3 takes a type that JSON can hold, such as int, list[str]"),
    (lambda ctx: given(output=Plain), "output=Plain takes a type that JSON can hold"),
    (lambda ctx: given(instrucions="x"), "ctx.ask has no option 'instrucions' (did you mean `instructions`?)"),
    (lambda ctx: given(run_id="x"), "ctx.ask has no option 'run_id'"),
    (lambda ctx: given(limits=3), "takes Limits"),
    (lambda ctx: given(model=3), "model=3 takes a model"),
    (lambda ctx: given(history="before"), "history='before') takes messages"),
    (lambda ctx: ctx.publish(WorkSeen(), after="3"), "ctx.publish(..., after='3') takes a number of seconds"),
    (lambda ctx: ctx.publish(WorkSeen(), key=3), "ctx.publish(..., key=3) takes a text"),
    (lambda ctx: ctx.ask_person(3, reply=str), "ctx.ask_person(3) takes a text or a model"),
    (lambda ctx: ctx.ask_person("Yes?", reply="bool"), "ctx.ask_person(..., reply=bool)"),
    (lambda ctx: ctx.once(3, plain), "ctx.once(3, ...) takes a text"),
    (lambda ctx: ctx.once("x", ctx.ask("y")), "takes a function: give it uncalled"),
]


@pytest.mark.parametrize(("do", "told"), CONTEXT, ids=told)
async def test_a_context_says_what_it_takes(do: Callable[[Any], Any], told: str) -> None:
    with pytest.raises(TypeError) as caught:
        await do(testing.context(Asker(), answers=[True]))
    assert told in str(caught.value)


async def test_an_effect_is_not_begun_under_a_key_that_can_not_be_kept() -> None:
    called: list[int] = []
    with pytest.raises(ValueError, match=r"ctx\.once\('.ud800', \.\.\.\) takes a text without lone surrogates"):
        await testing.context(Asker()).once("\ud800", lambda: called.append(1))
    assert called == []


class Counter(Role):
    class State(BaseModel, frozen=True):
        count: int = 0
        places: FrozenDict[str, int] = FrozenDict()


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda ctx: ctx.put("count", "a", 1), "Counter.State.count is no mapping; change it with ctx.update(...)"),
        (lambda ctx: ctx.put("plces", "a", 1), "Counter.State has no field plces; it has: count, places"),
        (lambda ctx: ctx.put("places", 1, "one"), "Input should be a valid"),
        (lambda ctx: ctx.remove("count", "a"), "Counter.State.count is no mapping"),
        (lambda ctx: ctx.remove("plces", "a"), "Counter.State has no field plces"),
        (lambda ctx: ctx.remove("places", "a"), "Counter.State.places has no entry 'a' that could be removed"),
        (lambda ctx: testing.context(Counter(), state=3), "takes the role's State, such as Counter.State(...)"),
    ],
    ids=told,
)
def test_a_state_says_what_can_be_changed(change: Callable[[Any], object], told: str) -> None:
    ctx = testing.context(Counter())
    with pytest.raises((RoleError, ValidationError, TypeError)) as caught:
        change(ctx)
    assert told in str(caught.value)
    assert (ctx.state, ctx.changes) == (Counter.State(), ())


async def test_an_agent_says_what_it_is_asked_with() -> None:
    for prompt in (3, ()):
        with pytest.raises(TypeError, match="takes a text, or parts"):
            await sb.Agent(MODEL).run(prompt)
    assert MODEL.requests == []


# What a user's own functions return.


def count() -> int:
    """Count."""
    return 3


@pytest.mark.parametrize(
    ("hook", "wanted"),
    [
        ("transform_context", "list or tuple"),
        ("before_model_call", "ModelRequest"),
        ("after_model_call", "ModelReply"),
        ("prepare_next_turn", "NextTurn or None"),
    ],
)
async def test_a_hook_that_returns_something_else_ends_the_loop(hook: str, wanted: str) -> None:
    def odd(*arguments: Any) -> int:
        return 3

    asked = sb.Agent(ScriptedModel([models.call("count"), "3"]), tools=[count], hooks=sb.Hooks(**{hook: odd}))
    with pytest.raises(AgentStopped, match=f"hook odd returned 3; it has to return {wanted}") as caught:
        await asked.run("How many?")
    assert caught.value.reason == "hook_failed"


async def test_a_hook_after_a_tool_that_returns_nothing_is_an_error_of_that_call() -> None:
    def forgetful(*arguments: Any) -> None: ...

    model = ScriptedModel([models.call("count"), "3"])
    await sb.Agent(model, tools=[count], hooks=sb.Hooks(after_tool_call=forgetful)).run("How many?")
    assert "hook forgetful returned None; it has to return ToolResult" in str(model.requests[-1].messages[-1].content)


class ReturnsParts:
    name = "odd"

    async def stream(self, request: Any) -> str:
        return "text"


@pytest.mark.parametrize(
    ("make", "told"),
    [
        (ReturnsParts, "a model's stream(request) has to yield its parts, and returned coroutine"),
        (lambda: ScriptedModel([object()]), "in the script of a model, which could not say it"),
    ],
    ids=told,
)
async def test_a_model_that_can_not_answer_says_why(make: Any, told: str) -> None:
    with pytest.raises(TypeError) as caught:
        await sb.Agent(make()).run("How many?")
    assert told in str(caught.value)


async def test_middleware_has_to_be_async() -> None:
    def log(ctx: Any, event: Any, call_next: Any) -> int:
        return 3

    logged = worker_swarm(Worker())
    anything(logged.middleware).append(log)
    with pytest.raises(RunFailed, match=r"log has to be async: async def .*log\(ctx, event, call_next\)"):
        await logged.run(WorkGiven())


async def test_a_handler_that_returns_a_class_is_told_from_its_instance() -> None:
    class Classy(Role):
        name = "worker"

        @on
        async def work(self, event: WorkGiven) -> WorkDone:
            given: WorkDone = anything(WorkDone)
            return given

    with pytest.raises(RunFailed, match="declares that it returns WorkDone, but returned the class WorkDone"):
        await worker_swarm(Classy()).run(WorkGiven())


# What says so.


def test_a_long_value_is_cut_and_a_class_is_named() -> None:
    assert shown(WorkDone) == "WorkDone"
    assert shown("a" + "x" * 200 + "z") == f"'a{'x' * 26}...{'x' * 27}z'"


def test_what_fits_passes() -> None:
    require("f({})", 3, (int, str), "a number")
    require_text("f({})", "text")
    for seconds in (None, 1, 0.5, math.inf):
        require_seconds("f({})", seconds)
    require_seconds("f({})", 0, zero=True)

    @asynccontextmanager
    async def opened() -> AsyncIterator[None]:
        yield

    require_manager("f()", opened())


def test_what_should_be_a_context_manager_says_how_to_write_it() -> None:
    async def later() -> None: ...

    with pytest.raises(TypeError, match=r"f\(\) has to return an async context manager, and returned coroutine"):
        require_manager("f()", later())


def test_a_builtin_class_gets_no_advice_to_make_one() -> None:
    refused(lambda: require("f({})", int, str, "a text"), "f(int) takes a text")
    with pytest.raises(TypeError) as caught:
        require("f({})", BaseModel, str, "a text")
    assert str(caught.value) == "f(BaseModel) takes a text; BaseModel is a class: give an instance, BaseModel()"


def test_what_can_not_be_a_tool_is_a_tool_definition_error() -> None:
    refused(lambda: sb.tool(3), "can't be a tool", ToolDefinitionError)
