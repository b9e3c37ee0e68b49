"""What is read from the annotations of a role. `test_wiring_postponed` runs all of it a second time.

Without `from __future__ import annotations`, for that is what the second run adds.
"""

# mypy: disable-error-code="empty-body"
# The handlers are only read, never run.

import functools
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Generic, Literal, Never, NoReturn, Optional, TypeVar, Union

import pytest
from pydantic import BaseModel, Field
from typing_extensions import TypeAliasType

from swarmbus.events import Event
from swarmbus.handlers import Retry, join, on
from swarmbus.results import Joined
from swarmbus.role import Role
from swarmbus.role_context import RoleContext
from swarmbus.wiring import HandlerWiring, read_role

if TYPE_CHECKING:
    from nowhere import Hidden, HiddenStore  # type: ignore[import-not-found]

T = TypeVar("T")
E = TypeVar("E", bound=Event)


class A(Event):
    kind: Literal["a"] = "a"
    steps: tuple[str, ...] = ()


class B(Event):
    kind: Literal["b"] = "b"


class C(Event):
    pass


class Parent(Event):
    pass


class Child(Parent):
    pass


class Result(Event, Generic[T]):
    value: T


class Store:
    pass


class Plain(BaseModel):
    pass


Either = A | B
Tagged = Annotated[A | B, Field(discriminator="kind")]
Alias = TypeAliasType("Alias", Tagged)
Nested = TypeAliasType("Nested", Alias | None)


def only(role: type[Role] | Role) -> HandlerWiring:
    (handler,) = read_role(role() if isinstance(role, type) else role).handlers
    return handler


def codes(handler: HandlerWiring) -> list[str]:
    return [problem.code for problem in handler.problems]


# The annotations of one handler each: what it takes, what it returns, and what that means.


class Single(Role):
    @on
    async def handle(self, event: A) -> B: ...


class Unions(Role):
    @on
    async def handle(self, event: A | B) -> A | B | None: ...


class OldUnions(Role):
    @on
    async def handle(self, event: Union[A, B]) -> Union[A, B, None]: ...  # noqa: UP007 - the old form


class Optionals(Role):
    @on
    async def handle(self, event: Optional[A]) -> Optional[B]: ...  # noqa: UP045 - the old form


class Named(Role):
    @on
    async def handle(self, event: Either) -> tuple[Either, ...]: ...


class Discriminated(Role):
    @on
    async def handle(self, event: Annotated[A | B, Field(discriminator="kind")]) -> Tagged: ...


class Aliased(Role):
    @on
    async def handle(self, event: Alias) -> Nested: ...


class Lists(Role):
    @on
    async def handle(self, event: A) -> list[B]: ...


class Sequences(Role):
    @on
    def handle(self, event: A) -> Sequence[B | C]: ...


class Pairs(Role):
    @on
    async def handle(self, event: A) -> tuple[B, C]: ...


class MaybeMany(Role):
    @on
    async def handle(self, event: A) -> tuple[B, ...] | C | None: ...


class Nothing(Role):
    @on
    async def handle(self, event: A) -> None: ...


class Failing(Role):
    @on
    async def handle(self, event: A) -> NoReturn:
        raise ValueError


class OneResult(Role):
    @on
    async def handle(self, event: Result[int]) -> Result[str]: ...


class AnyResult(Role):
    @on
    async def handle(self, event: Result[Any]) -> None: ...


class InQuotes(Role):
    @on
    async def handle(self, event: "A | B") -> "list[B]": ...


class HalfInQuotes(Role):
    @on
    async def handle(self, event: Optional["A"]) -> list["B"]: ...


@pytest.mark.parametrize(
    ("role", "accepts", "publishes", "silent"),
    [
        (Single, (A,), (B,), False),
        (Unions, (A, B), (A, B), True),
        (OldUnions, (A, B), (A, B), True),
        (Optionals, (A,), (B,), True),
        (Named, (A, B), (A, B), True),
        (Discriminated, (A, B), (A, B), False),
        (Aliased, (A, B), (A, B), True),
        (Lists, (A,), (B,), True),
        (Sequences, (A,), (B, C), True),
        (Pairs, (A,), (B, C), True),
        (MaybeMany, (A,), (B, C), True),
        (Nothing, (A,), (), True),
        (Failing, (A,), (), False),
        (OneResult, (Result[int],), (Result[str],), False),
        (AnyResult, (Result[Any],), (), True),
        (InQuotes, (A, B), (B,), True),
        (HalfInQuotes, (A,), (B,), True),
    ],
    ids=lambda value: value.__name__ if isinstance(value, type) else "",
)
def test_events_are_read_from_annotations(
    role: type[Role], accepts: tuple[type[Event], ...], publishes: tuple[type[Event], ...], silent: bool
) -> None:
    handler = only(role)
    assert (handler.accepts, handler.publishes, handler.early, handler.silent) == (accepts, publishes, (), silent)
    assert handler.parameters == ("event",)
    assert handler.problems == ()


# Contexts, states and items.


class Bare(Role):
    @on
    async def handle(self, event: A, ctx: RoleContext) -> None: ...


class Early(Role):
    @on
    async def handle(self, event: A, ctx: RoleContext[B]) -> C: ...


class EarlyBoth(Role):
    @on
    async def handle(self, ctx: RoleContext[B | C, Store], event: A) -> C: ...


class TypedDeps(Role):
    @on
    async def handle(self, event: A, ctx: RoleContext[Never, Store]) -> None: ...


class HiddenDeps(Role):
    @on
    async def handle(self, event: A, ctx: "RoleContext[B, HiddenStore]") -> None: ...


@pytest.mark.parametrize(
    ("role", "early", "produces", "parameters"),
    [
        (Bare, (), (), ("event", "context")),
        (Early, (B,), (C, B), ("event", "context")),
        (EarlyBoth, (B, C), (C, B), ("context", "event")),
        (TypedDeps, (), (), ("event", "context")),
        (HiddenDeps, (B,), (B,), ("event", "context")),
    ],
    ids=lambda value: value.__name__ if isinstance(value, type) else "",
)
def test_events_published_early_are_read_from_the_context(
    role: type[Role], early: tuple[type[Event], ...], produces: tuple[type[Event], ...], parameters: tuple[str, ...]
) -> None:
    handler = only(role)
    assert (handler.early, handler.produces, handler.parameters) == (early, produces, parameters)
    assert handler.problems == ()


class Counting(Role):
    class State(BaseModel, frozen=True):
        seen: int = 0

    @on
    async def handle(self, state: State, event: A, ctx: RoleContext) -> None: ...


class CountingHeir(Counting):
    class State(Counting.State, frozen=True):
        more: int = 0


@pytest.mark.parametrize("role", [Counting, CountingHeir])
def test_the_state_is_found_by_its_class(role: type[Counting]) -> None:
    wiring = read_role(role())
    assert wiring.state is role.State
    assert wiring.handlers[0].parameters == ("state", "event", "context")
    assert wiring.handlers[0].accepts == (A,)


class Mapped(Role):
    @on(A, each="steps")
    async def handle(self, step: str, ctx: RoleContext) -> B: ...


class MappedWithEvent(Role):
    @on(A, each=lambda event: event.steps)
    async def handle(self, event: A, step: str) -> B: ...


class MappedByAnnotation(Role):
    @on(each="steps")
    async def handle(self, event: A, step: str) -> B: ...


class MappedModel(Role):
    @on(A, each="steps")
    async def handle(self, step: Plain) -> B: ...


@pytest.mark.parametrize(
    ("role", "parameters", "each_type"),
    [
        (Mapped, ("item", "context"), str),
        (MappedWithEvent, ("event", "item"), str),
        (MappedByAnnotation, ("event", "item"), str),
        (MappedModel, ("item",), Plain),
    ],
    ids=lambda value: value.__name__ if isinstance(value, type) else "",
)
def test_items_come_alone_or_after_the_event(role: type[Role], parameters: tuple[str, ...], each_type: type) -> None:
    handler = only(role)
    assert (handler.accepts, handler.parameters, handler.each_type) == ((A,), parameters, each_type)
    assert handler.each is not None
    assert handler.problems == ()


class Joining(Role):
    @join(B, per=A, key="kind", partial="proceed", quorum=2)
    async def handle(self, opener: A, joined: Joined[B], ctx: RoleContext[B]) -> C: ...


class JoiningTwo(Role):
    @join(B, C, per=A)
    async def handle(self, ctx: RoleContext, joined: Joined[B | C], opener: A) -> None: ...


def test_a_join_takes_its_opener_and_what_was_joined() -> None:
    handler = only(Joining)
    assert (handler.kind, handler.opener, handler.accepts, handler.handles) == ("join", A, (B,), (A, B))
    assert (handler.produces, handler.parameters) == ((C, B), ("opener", "joined", "context"))
    assert (handler.key, handler.partial, handler.quorum) == ("kind", "proceed", 2)
    assert handler.problems == ()


def test_a_join_of_several_events_takes_its_parameters_in_any_order() -> None:
    handler = only(JoiningTwo)
    assert (handler.accepts, handler.parameters, handler.problems) == ((B, C), ("context", "joined", "opener"), ())


# What the decorator says.


class Narrowed(Role):
    @on(A)
    async def handle(self, event: A | B) -> None: ...


class NarrowedToChild(Role):
    @on(Child)
    async def handle(self, event: Parent) -> None: ...


class OnlyDecorated(Role):
    @on(A, B)
    async def handle(self, ctx: RoleContext) -> None: ...


class Undescribed(Role):
    @on(A)
    async def handle(self, event) -> None: ...  # type: ignore[no-untyped-def]


class DecoratedHidden(Role):
    @on(A)
    async def handle(self, event: "Hidden") -> None: ...


@pytest.mark.parametrize(
    ("role", "accepts"),
    [
        (Narrowed, (A,)),
        (NarrowedToChild, (Child,)),
        (OnlyDecorated, (A, B)),
        (Undescribed, (A,)),
        (DecoratedHidden, (A,)),
    ],
    ids=lambda value: value.__name__ if isinstance(value, type) else "",
)
def test_the_decorator_wins_over_a_wider_annotation(role: type[Role], accepts: tuple[type[Event], ...]) -> None:
    handler = only(role)
    assert (handler.accepts, handler.problems) == (accepts, ())


def logged(method: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(method)
    async def wrapper(*args: Any, **kwargs: Any) -> Any:
        return await method(*args, **kwargs)

    return wrapper


class Wrapped(Role):
    @logged
    @on
    async def handle(self, event: A) -> B: ...


class WrappedInside(Role):
    @on
    @logged
    async def handle(self, event: A) -> B: ...


@pytest.mark.parametrize("role", [Wrapped, WrappedInside])
def test_a_wrapper_is_looked_through(role: type[Role]) -> None:
    handler = only(role)
    assert (handler.name, handler.accepts, handler.publishes, handler.problems) == ("handle", (A,), (B,), ())
    assert handler.file == __file__.replace("_postponed", "")


# Roles and their heirs.


class Several(Role):
    """Does this.

    And that.
    """

    concurrency = 3
    timeout = 7
    retry = Retry(attempts=5)
    tools = (len,)

    @on
    async def first(self, event: A) -> B: ...

    @on(timeout=2, retry=Retry(attempts=1))
    async def second(self, event: B) -> None: ...

    def own(self, event: A) -> B: ...


class Heir(Several):
    @on
    async def third(self, event: C) -> None: ...

    @on
    async def first(self, event: A) -> C: ...  # type: ignore[override]


def test_a_role_has_its_handlers_in_order_and_its_settings() -> None:
    role = Several()
    wiring = read_role(role)
    assert (wiring.name, wiring.cls, wiring.concurrency, wiring.tools) == ("several", Several, 3, (len,))
    assert [(h.qualified, h.timeout, h.retry) for h in wiring.handlers] == [
        ("several.first", 7, Retry(attempts=5)),
        ("several.second", 2, Retry(attempts=1)),
    ]
    first, second = wiring.handlers
    assert first.where == f"{first.file}:{first.line}"
    assert first.line < second.line


def test_handlers_are_inherited_and_can_be_replaced() -> None:
    handlers = read_role(Heir().named("other")).handlers
    assert [(h.qualified, h.accepts, h.publishes) for h in handlers] == [
        ("other.first", (A,), (C,)),
        ("other.second", (B,), ()),
        ("other.third", (C,), ()),
    ]


class Open(Role, Generic[E]):
    @on
    async def handle(self, event: E) -> tuple[E, ...]: ...


class Bound(Open[A]):
    pass


def test_a_type_variable_that_an_heir_binds_is_resolved() -> None:
    handler = only(Bound)
    assert (handler.accepts, handler.publishes, handler.problems) == ((A,), (A,), ())


def test_a_role_made_inside_a_function_is_read_alike() -> None:
    class Local(Event):
        pass

    class Worker(Role):
        class State(BaseModel, frozen=True):
            seen: int = 0

        @on(when=bool)
        async def handle(self, event: Local | None, state: State, ctx: RoleContext[Local]) -> list[Local]: ...

    handler = only(Worker)
    assert (handler.accepts, handler.publishes, handler.early) == ((Local,), (Local,), (Local,))
    assert (handler.parameters, handler.problems) == (("event", "state", "context"), ())


def test_a_spare_parameter_keeps_its_default() -> None:
    class Worker(Role):
        @on
        async def handle(self, event: A, depth: int = 3) -> None: ...

    handler = only(Worker)
    assert (handler.accepts, handler.parameters, handler.problems) == ((A,), ("event",), ())


# What says nothing.


class NoAnnotation(Role):
    @on
    async def handle(self, event) -> None: ...  # type: ignore[no-untyped-def]


class PlainContext(Role):
    @on
    async def handle(self, event: A, ctx) -> None: ...  # type: ignore[no-untyped-def]


class PlainContextAlone(Role):
    @on(A)
    async def handle(self, ctx) -> None: ...  # type: ignore[no-untyped-def]


class PlainContextWithDefault(Role):
    @on
    async def handle(self, event: A, ctx=None) -> None: ...  # type: ignore[no-untyped-def]


class PlainContextAfterItem(Role):
    @on(A, each="steps")
    async def handle(self, item, ctx) -> None: ...  # type: ignore[no-untyped-def]


class PlainState(Role):
    @on
    async def handle(self, event: A, state) -> None: ...  # type: ignore[no-untyped-def]


class PlainDeps(Role):
    @on
    async def handle(self, event: A, deps, ctx: RoleContext) -> None: ...  # type: ignore[no-untyped-def]


class PlainItem(Role):
    @on(A, each="steps")
    async def handle(self, event: A, step) -> None: ...  # type: ignore[no-untyped-def]


class PlainJoined(Role):
    @join(B, per=A)
    async def handle(self, opener: A, answers) -> None: ...  # type: ignore[no-untyped-def]


class PlainAll(Role):
    @on
    async def handle(self, event, other) -> None: ...  # type: ignore[no-untyped-def]


class HidesRoleContext(Role):
    @on(A)
    async def handle(self, ctx: "Hidden.RoleContext") -> None: ...


class WithoutSelf(Role):
    @on
    async def handle(event: A) -> None: ...  # type: ignore[misc]  # noqa: N805


class NoReturnAnnotation(Role):
    @on
    async def handle(self, event: A): ...  # type: ignore[no-untyped-def]


class TakesAny(Role):
    @on
    async def handle(self, event: Any) -> None: ...


class TakesDict(Role):
    @on
    async def handle(self, event: dict[str, int]) -> None: ...


class TakesBaseModel(Role):
    @on
    async def handle(self, event: BaseModel) -> None: ...


class TakesPlain(Role):
    @on
    async def handle(self, event: Plain | A) -> None: ...


class TakesArguments(Role):
    @on
    async def handle(self, *args: Any, **kwargs: Any) -> None: ...


class ReturnsText(Role):
    @on
    async def handle(self, event: A) -> str: ...


class ReturnsAny(Role):
    @on
    async def handle(self, event: A) -> Any: ...


class ReturnsEvent(Role):
    @on
    async def handle(self, event: A) -> Event: ...


class ReturnsPlainList(Role):
    @on
    async def handle(self, event: A) -> list: ...  # type: ignore[type-arg]


class TakesHidden(Role):
    @on
    async def handle(self, event: "Hidden") -> None: ...


class ReturnsHidden(Role):
    @on
    async def handle(self, event: A) -> "Hidden | B": ...


class ReturnsMisspelt(Role):
    @on
    async def handle(self, event: A) -> None: ...


ReturnsMisspelt.handle.__annotations__["return"] = "Parnt | None"


class TakesMisspelt(Role):
    @on
    async def handle(self, event: A) -> None: ...


TakesMisspelt.handle.__annotations__["event"] = "Parnt"


class HidesContext(Role):
    @on
    async def handle(self, event: A, ctx: "Hidden[B]") -> None: ...


class TakesHiddenModule(Role):
    @on
    async def handle(self, event: "Hidden.events.Thing") -> None: ...


class Unreadable(Role):
    @on
    async def handle(self, event: Any) -> None: ...


Unreadable.handle.__annotations__["event"] = "A |"


class Unbound(Role):
    @on
    async def handle(self, event: E) -> None: ...


class TakesJoined(Role):
    @on
    async def handle(self, event: A, answers: Joined[B]) -> None: ...


class TakesJoinedAlone(Role):
    @on
    async def handle(self, answers: Joined[B]) -> None: ...


class TooMany(Role):
    @on
    async def handle(self, event: A, other: B) -> None: ...


class KeywordOnly(Role):
    @on
    async def handle(self, event: A, *, ctx: RoleContext) -> None: ...


class TwoContexts(Role):
    @on
    async def handle(self, event: A, ctx: RoleContext, again: RoleContext) -> None: ...


class NoParameter(Role):
    @on
    async def handle(self, ctx: RoleContext) -> None: ...


class NoItem(Role):
    @on(A, each="steps")
    async def handle(self, ctx: RoleContext) -> None: ...


class NoMappedEvent(Role):
    @on(each="steps")
    async def handle(self, step: str) -> None: ...


class NoOpener(Role):
    @join(B, per=A)
    async def handle(self, joined: Joined[B]) -> None: ...


class NotJoined(Role):
    @join(B, per=A)
    async def handle(self, opener: A, joined: list[B]) -> None: ...


class Disagreeing(Role):
    @on(A)
    async def handle(self, event: B) -> None: ...


class JoinedOther(Role):
    @join(B, per=A)
    async def handle(self, opener: C, joined: Joined[C]) -> None: ...


class EarlyText(Role):
    @on
    async def handle(self, event: A, ctx: RoleContext[str]) -> None: ...  # type: ignore[type-var]


class DecoratedPlain(Role):
    @on(Plain)  # type: ignore[call-arg]
    async def handle(self, event: Plain) -> None: ...


@pytest.mark.parametrize(
    ("role", "found", "told"),
    [
        (NoAnnotation, ["SB108"], "parameter event has no annotation"),
        (PlainContext, ["SB108"], "does not say what ctx is: it has no annotation"),
        (PlainContextAlone, ["SB108"], "does not say what ctx is"),
        (PlainContextWithDefault, ["SB108"], "does not say what ctx is"),
        (PlainContextAfterItem, ["SB108"], "does not say what ctx is"),
        (PlainState, ["SB108"], "does not say what state is"),
        (PlainDeps, ["SB108"], "does not say what deps is"),
        (PlainItem, ["SB108"], "does not say what step is"),
        (PlainJoined, ["SB108"], "does not say what answers is"),
        (PlainAll, ["SB108", "SB108"], "does not say what event is"),
        (HidesRoleContext, ["SB109"], "uses the name RoleContext for ctx, which is not defined at run time"),
        (WithoutSelf, ["SB113"], "begins with event instead of self"),
        (NoReturnAnnotation, ["SB108"], "it has no return annotation"),
        (TakesAny, ["SB108"], "parameter event is annotated Any"),
        (TakesDict, ["SB108"], "parameter event is annotated dict[str, int]"),
        (TakesBaseModel, ["SB108"], "parameter event is annotated BaseModel"),
        (TakesPlain, ["SB107"], "parameter event with Plain, which is not an Event"),
        (TakesArguments, ["SB108"], "takes args for any arguments"),
        (ReturnsText, ["SB107"], "the return annotation with str, which is not an Event"),
        (ReturnsAny, ["SB108"], "the return annotation is annotated Any"),
        (ReturnsEvent, ["SB108"], "it returns Event"),
        (ReturnsPlainList, ["SB108"], "the return annotation is annotated list"),
        (TakesHidden, ["SB109"], "uses the name Hidden in parameter event, which is not defined at run time"),
        (ReturnsHidden, ["SB109"], "uses the name Hidden in the return annotation"),
        (ReturnsMisspelt, ["SB109"], "not defined at run time (did you mean `Parent`?)"),
        (TakesMisspelt, ["SB109"], "not defined at run time (did you mean `Parent`?)"),
        (TakesHiddenModule, ["SB109"], "uses the name Hidden.events.Thing in parameter event"),
        (Unreadable, ["SB109"], "uses the name A | in parameter event"),
        (HidesContext, ["SB113"], "takes event, ctx beside context and state"),
        (Unbound, ["SB109"], "E, which stands for no class"),
        (TakesJoined, ["SB113"], "takes answers as Joined, which only @join fills"),
        (TakesJoinedAlone, ["SB113"], "takes answers as Joined, which only @join fills"),
        (TooMany, ["SB113"], "takes event, other beside context and state, but is called with one event"),
        (KeywordOnly, ["SB113"], "keyword-only parameter ctx"),
        (TwoContexts, ["SB113"], "two parameters for its context"),
        (NoParameter, ["SB113"], "does not say which event it handles"),
        (NoItem, ["SB113"], "takes nothing beside context and state, but is called with an item"),
        (NoMappedEvent, ["SB113"], "does not say which event it handles"),
        (NoOpener, ["SB113"], "takes nothing beside context and state, but is called with the opening event"),
        (NotJoined, ["SB113"], "takes opener, joined beside context and state"),
        (Disagreeing, ["SB116"], "gets A by its decorator, but event is annotated B"),
        (JoinedOther, ["SB116", "SB116"], "gets A by its decorator, but opener is annotated C"),
        (EarlyText, ["SB107"], "the context's annotation with str"),
        (DecoratedPlain, ["SB107"], "the decorator with Plain, which is not an Event"),
    ],
    ids=lambda value: value.__name__ if isinstance(value, type) else "",
)
def test_what_says_nothing_is_a_finding_with_its_place(role: type[Role], found: list[str], told: str) -> None:
    handler = only(role)
    assert codes(handler) == found
    problem = handler.problems[0]
    assert told in problem.message
    assert problem.message.startswith(f"{role().name}.handle ")
    assert (problem.severity, problem.role, problem.where) == ("error", role().name, handler.where)
    assert problem.hint


@pytest.mark.parametrize(
    ("role", "hint"),
    [
        (PlainContext, "annotate it as the context: ctx: RoleContext"),
        (TakesJoined, "use @join(B, per=...), where per= names the event that opens it"),
        (PlainState, "annotate it with the role's own State: state: State"),
        (PlainDeps, "drop it: a run's dependencies are in ctx.deps"),
        (HidesRoleContext, "import RoleContext at run time, not only under TYPE_CHECKING"),
        (HidesContext, "import Hidden at run time, not only under TYPE_CHECKING; then annotate the context as"),
    ],
    ids=lambda value: value.__name__ if isinstance(value, type) else "",
)
def test_a_parameter_that_says_nothing_says_how_to_mend_it(role: type[Role], hint: str) -> None:
    (problem,) = only(role).problems
    assert problem.hint is not None
    assert problem.hint.startswith(hint)


@pytest.mark.parametrize("role", [PlainContext, PlainState, PlainDeps, WithoutSelf])
def test_what_the_other_parameters_say_is_read_all_the_same(role: type[Role]) -> None:
    assert only(role).accepts == (A,)


def test_a_missing_name_says_how_to_mend_it() -> None:
    (problem,) = only(TakesHidden).problems
    assert problem.event == "Hidden"
    assert problem.hint == "import Hidden at run time, not only under TYPE_CHECKING, or name the event in the decorator"


def test_a_wrapper_that_hides_the_signature_is_a_finding() -> None:
    def hiding(method: Callable[..., Any]) -> Callable[..., Any]:
        def wrapper(*args: Any) -> Any:
            return method(*args)

        return wrapper

    class Worker(Role):
        @on
        @hiding
        async def handle(self, event: A) -> B: ...

    handler = only(Worker)
    assert codes(handler) == ["SB108", "SB108"]
    assert handler.problems[0].message.startswith("worker.handle takes args for any arguments")
    assert handler.problems[0].hint == "name every parameter; a decorator around the method has to use functools.wraps"


def test_an_iterable_of_items_can_come_from_a_function() -> None:
    def steps(event: A) -> Iterable[str]:
        return event.steps

    class Worker(Role):
        @on(A, each=steps)
        async def handle(self, step: str) -> None: ...

    assert only(Worker).each is steps


def test_the_suite_knows_in_which_form_it_runs() -> None:
    written = Single.handle.__annotations__["event"]
    assert written == ("A" if __name__.endswith("postponed") else A)


def test_a_name_of_the_enclosing_function_may_be_set_later() -> None:
    class Worker(Role):
        @on
        async def handle(self, event: A) -> B:
            return later

    later = B()
    assert only(Worker).publishes == (B,)
