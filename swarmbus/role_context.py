"""What a handler is given: the one object through which it asks its model, publishes early, keeps state and waits.

A context belongs to one attempt at one delivery. It reaches bus and agent for the handler, which holds neither.
"""

from __future__ import annotations

import inspect
import math
import random
import uuid
from datetime import UTC, datetime
from functools import lru_cache
from types import NoneType
from typing import TYPE_CHECKING, Any, Generic, Never, TypeVar, overload

from pydantic import BaseModel, TypeAdapter
from typing_extensions import TypeVar as DefaultTypeVar

from swarmbus.arguments import refusal, require, require_text, seconds, shown, type_of
from swarmbus.calls import CallRecord
from swarmbus.errors import PublishError, RoleError
from swarmbus.events import Event
from swarmbus.fields import compile_guards
from swarmbus.frozen import FrozenDict
from swarmbus.handlers import ContextParameter
from swarmbus.once import have_once
from swarmbus.records import Change
from swarmbus.text import did_you_mean
from swarmbus.thinking.agent import ASK_OPTIONS, require_prompt
from swarmbus.thinking.output import output_for

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from typing_extensions import TypeForm

    from swarmbus.context_port import ContextPort
    from swarmbus.guards import Guard
    from swarmbus.thinking.agent import Agent

T = TypeVar("T")
Out_contra = DefaultTypeVar("Out_contra", bound=Event, default=Never, contravariant=True)
Deps_co = DefaultTypeVar("Deps_co", default=Any, covariant=True)


class RoleContext(ContextParameter, Generic[Out_contra, Deps_co]):
    """What a handler can learn and do.

    `RoleContext[StepStarted]` lets it publish `StepStarted` early; a bare `RoleContext` publishes nothing early.
    `RoleContext[Never, Store]` types `deps`.

    It is of use until its handler has returned. What then still asks, publishes or changes something through it gets a
    `RoleError`.
    """

    def __init__(self, port: ContextPort) -> None:
        self._port = port
        self._changes: list[Change] = []
        self._state = port.state
        self._values: dict[str, int] = {}

    @property
    def run_id(self) -> str:
        """The id of the run."""
        return self._port.run_id

    @property
    def role(self) -> str:
        """The name of the role."""
        return self._port.role

    @property
    def event_id(self) -> str:
        """The id of the envelope that is handled."""
        return self._port.event_id

    @property
    def attempt(self) -> int:
        """The number of this try at the delivery, from 1."""
        return self._port.attempt

    @property
    def deps(self) -> Deps_co:
        """The run's dependencies."""
        deps: Deps_co = self._port.deps
        return deps

    @property
    def agent(self) -> Agent:
        """The role's agent, in the context of this delivery."""
        self._port.require_current("ctx.agent")
        return self._port.agent()

    @overload
    async def ask(self, prompt: str, *, output: TypeForm[T], **options: Any) -> T: ...
    @overload
    async def ask(self, prompt: str, **options: Any) -> str: ...
    async def ask(self, prompt: str, *, output: Any = str, **options: Any) -> Any:
        """Ask the role's model, letting it use the role's tools, and return its answer.

        Args:
            prompt: what is asked.
            output: the type of the answer; a text by default.
            options: settings of this one question, such as `instructions`, `tools` or `limits`; `history=()` asks in a
                fresh context; `approve`, an async function of the call and its arguments, decides over calls of tools
                that need approval, where otherwise a person is asked as by `ask_person`.

        Raises:
            AgentStopped: the loop ended without an answer, such as at a limit.
            ModelError: the model could not be reached or made no sense.
            TypeError: an argument of the wrong type, or an option that does not exist.
        """
        require_prompt("ctx.ask({})", prompt)
        for option in options:
            if option not in ASK_OPTIONS:
                near = did_you_mean(option, ASK_OPTIONS)
                raise TypeError(f"ctx.ask has no option {option!r}{near}; it takes {', '.join(ASK_OPTIONS)}")
        self._port.require_current("ctx.ask()")
        return await self._port.ask(prompt, output, options)

    async def publish(self, event: Out_contra, *, after: float | None = None, key: str | None = None) -> None:
        """Publish an event before the handler returns; it stays even if the handler fails later.

        Args:
            event: of a type that the context's first parameter names.
            after: seconds until it is published; None publishes now.
            key: identifies it among what this delivery publishes early, where its content may differ between attempts.

        Raises:
            PublishError: the context or the event table does not allow it; nothing was delivered.
            TypeError, ValueError: an argument of the wrong type, or a time that lies in the past or never comes.
        """
        if after is not None or key is not None:
            _require_options(after, key)
        declared = self._port.early
        if type(event) not in declared and not isinstance(event, declared):
            raise self._undeclared(event, declared)
        await self._port.publish(event, after, key)

    def _undeclared(self, given: Any, declared: tuple[type[Event], ...]) -> PublishError:
        names = ", ".join(cls.__name__ for cls in declared) or "no event"
        annotate = f"annotate the context as RoleContext[{type_of(given)}]"
        advice = annotate if isinstance(given, Event) else "publish an event, of a class that RoleContext[...] names"
        return PublishError(
            f"{self._port.role}.{self._port.handler} declares {names} for early publishing, but published "
            f"{type_of(given)}; {advice}"
        )

    def update(self, **fields: Any) -> Any:
        """Set fields of the role's state and return the new state; it is kept if the handler succeeds.

        Raises:
            RoleError: the role has no state, or no such field.
            ValueError: a value is not of its field's type, or JSON would bring back another.
        """
        state = self._changeable_state("update")
        values = {name: _fitting(state.__class__, name, value) for name, value in fields.items()}
        self._changes += [Change(name, value) for name, value in values.items()]
        self._state = state.model_copy(update=values)
        return self._state

    def put(self, field: str, key: Any, value: Any) -> Any:
        """Set one entry of a mapping field of the role's state and return the new state.

        Raises:
            RoleError: the role has no state, or no such mapping.
            ValueError: key or value is not of its type, or JSON would bring back another.
        """
        state, entries = self._mapping("put", field)
        ((key, value),) = _fitting(state.__class__, field, {key: value}).items()
        self._changes.append(Change(field, value, "put", key))
        self._state = state.model_copy(update={field: entries.set(key, value)})
        return self._state

    def remove(self, field: str, key: Any) -> Any:
        """Remove one entry of a mapping field of the role's state and return the new state.

        Raises:
            RoleError: the role has no state, no such mapping, or the mapping no such entry.
        """
        state, entries = self._mapping("remove", field)
        if key not in entries:
            raise RoleError(f"{state.__class__.__qualname__}.{field} has no entry {key!r} that could be removed")
        self._changes.append(Change(field, None, "remove", key))
        self._state = state.model_copy(update={field: entries.remove(key)})
        return self._state

    def progress(self, detail: str = "") -> None:
        """Show that the handler is getting on; renews its time limit. Works in threads too."""
        require("ctx.progress({})", detail, str, "a text")
        self._port.require_current("ctx.progress()")
        self._port.progress(detail)

    async def ask_person(self, question: BaseModel | str, *, reply: TypeForm[T]) -> T:
        """Ask a person and return the answer; the delivery is suspended until `run.answer`.

        When the answer comes, the handler runs again from its start: its recorded calls are used again. A question is
        known by what it says, which has to be the same then (take times from `ctx.now()`). Of several that tasks ask
        side by side, one is open at a time. The answer may take as long as it takes: the handler's time limit does not
        count meanwhile, nor does the run's while all that is left of it waits for a person.

        Raises:
            TypeError: an argument of the wrong type.
            ValueError: JSON can't hold the question.
        """
        require("ctx.ask_person({})", question, (str, BaseModel), "a text or a model")
        output_for(reply, "ctx.ask_person(..., reply={})")
        answer: T = await self._port.ask_person(question, reply)
        return answer

    @overload
    async def once(self, key: str, function: Callable[[], Awaitable[T]]) -> T: ...
    @overload
    async def once(self, key: str, function: Callable[[], T]) -> T: ...
    async def once(self, key: str, function: Callable[[], Any]) -> Any:
        """Call a function whose effect must not be repeated, and return what it returned, as JSON would give it back.

        A further call with the key gets the same value, in this attempt or another; one that comes while the function
        runs waits for it, though the attempt that called it be over. What raised is called again. A synchronous
        function runs in a worker thread.

        Raises:
            RoleError: the function took effect, but JSON can't hold what it returned; or it is called within itself.
        """
        require_text("ctx.once({}, ...)", key)
        given: Any = function
        if not callable(given):
            if inspect.iscoroutine(given):
                given.close()
            raise refusal(f"ctx.once({key!r}, {{}})", given, "a function: give it uncalled")
        calls = self._port.calls
        return await have_once(calls.effect(key), calls, key, function)

    def now(self) -> datetime:
        """Return the time, in UTC; the same at every attempt."""
        call = self._port.calls.find("value", "now")
        if call is None:
            call = CallRecord("value", "now", self._port.time(), {})
            self._port.calls.note(call)
        return datetime.fromtimestamp(call.value, UTC)

    def random(self, *, key: str = "") -> float:
        """Return a random number in [0, 1); the same at every attempt, as `new_id` is."""
        require("ctx.random(key={})", key, str, "a text")
        return random.Random(self._next_seed(key)).random()  # noqa: S311  # for choices, not for secrets

    def new_id(self, *, key: str = "") -> str:
        """Return an id that is new among all runs; the same at every attempt.

        The n-th call of an attempt gets what the n-th of another got. Tasks side by side may come in another order:
        there, a key of its own for each task has its calls counted apart.
        """
        require("ctx.new_id(key={})", key, str, "a text")
        return str(uuid.uuid5(uuid.NAMESPACE_URL, self._next_seed(key)))

    def _next_seed(self, key: str) -> str:
        self._values[key] = count = self._values.get(key, 0) + 1
        return f"{self._port.delivery_id}!{count}" + (f"!{key}" if key else "")

    def _mapping(self, change: str, field: str) -> tuple[Any, FrozenDict[Any, Any]]:
        """Return the state, and the mapping that one of its fields holds."""
        state = self._changeable_state(change)
        _field(state.__class__, field)
        entries = getattr(state, field)
        if not isinstance(entries, FrozenDict):
            raise RoleError(f"{state.__class__.__qualname__}.{field} is no mapping; change it with ctx.update(...)")
        return state, entries

    def _changeable_state(self, change: str) -> Any:
        self._port.require_current(f"ctx.{change}()")
        if self._state is None:
            raise RoleError(f"{self._port.role} has no State; give it a nested class `State(BaseModel, frozen=True)`")
        return self._state


def _require_options(after: Any, key: Any) -> None:
    """Refuse options of `ctx.publish` that make no sense."""
    require("ctx.publish(..., after={})", after, (int, float, NoneType), "a number of seconds")
    require("ctx.publish(..., key={})", key, (str, NoneType), "a text")
    if after is not None and not 0 <= seconds(after) < math.inf:
        when = "lies in the past" if after < 0 else "never comes"
        raise ValueError(f"after={shown(after)} {when}; give seconds from now")


def changes_of(context: RoleContext[Any, Any]) -> tuple[Change, ...]:
    """Return the changes of the role's state that a handler asked for."""
    return tuple(context._changes)  # noqa: SLF001  # the module's own class


def _fitting(state: type[BaseModel], name: str, value: Any) -> Any:
    """Return a value as a field of a role's state takes it; refuse one that a resumed run would not find again."""
    fitting = _field(state, name).validate_python(value)
    guard = _guards(state).get(name)
    if guard is None:
        return fitting
    place = f"{state.__qualname__}.{name}"
    try:
        kept = guard(fitting)
    except ValueError as error:
        raise ValueError(f"{place} {error}") from error
    if kept is not fitting:
        raise ValueError(
            f"{place} holds a {type(fitting).__name__}, which no record keeps; give the field its own type"
        )
    return fitting


@lru_cache(maxsize=1024)
def _guards(state: type[BaseModel]) -> dict[str, Guard]:
    return compile_guards(state, foreign=True)


@lru_cache(maxsize=1024)
def _field(state: type[BaseModel], name: str) -> TypeAdapter[Any]:
    info = state.model_fields.get(name)
    if info is None:
        raise RoleError(f"{state.__qualname__} has no field {name}; it has: {', '.join(state.model_fields)}")
    annotation: Any = info.annotation
    return TypeAdapter(annotation)
