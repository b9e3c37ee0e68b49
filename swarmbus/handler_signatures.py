"""What the signature of one handler says: the events it takes and publishes, and what fills its parameters.

Reading never fails: what a signature does not say becomes a finding. `wiring` puts the handlers of a role together.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, Never, NoReturn, TypeAlias, TypeVar, get_args, get_origin

from pydantic import BaseModel

from swarmbus.annotations import Missing, Scope, annotations_of
from swarmbus.codes import finding
from swarmbus.events import Event
from swarmbus.fields import describe
from swarmbus.handlers import ContextParameter, HandlerSpec
from swarmbus.results import Joined

if TYPE_CHECKING:
    from swarmbus.results import Finding

Parameter: TypeAlias = Literal["context", "state", "event", "item", "opener", "joined"]
Events: TypeAlias = tuple[type[Event], ...]

_SAY_NOTHING = (Any, object, dict, list, tuple, set, BaseModel)
_SEQUENCES = (tuple, list, Sequence)

_FILLED_BY_TYPE = "the context as RoleContext, the state as the role's own State"
_MEANT = {
    "ctx": "annotate it as the context: ctx: RoleContext",
    "context": "annotate it as the context: context: RoleContext",
    "state": "annotate it with the role's own State: state: State",
    "joined": "annotate it with the contributions: joined: Joined[StepDone]",
    "deps": "drop it: a run's dependencies are in ctx.deps",
}
"""What a parameter without an annotation is meant to be, by names that are never those of an event."""


@dataclass(frozen=True, slots=True)
class Signature:
    """What a handler's decorator and annotations say together; `HandlerWiring` explains the fields."""

    accepts: Events
    opener: type[Event] | None
    publishes: Events
    early: Events
    silent: bool
    each_type: Any
    parameters: tuple[Parameter, ...]
    problems: tuple[Finding, ...]
    unread_inputs: bool
    unread_outputs: bool


def read_signature(
    function: Callable[..., Any], spec: HandlerSpec, owner: type, qualified: str, state: type[BaseModel] | None
) -> Signature:
    """Read an unwrapped method of the class `owner`, which messages call `qualified`, such as `planner.plan`."""
    return _Reader(function, spec, owner, qualified, state).read()


@dataclass(slots=True)
class _Inputs:
    """The parameters in call order: what fills each, and the annotations of those that nothing tells apart yet."""

    filled: dict[str, Parameter | None] = field(default_factory=dict)
    rest: dict[str, Any] = field(default_factory=dict)
    context: Any = None
    joined: Any = None


class _Reader:
    def __init__(
        self,
        function: Callable[..., Any],
        spec: HandlerSpec,
        owner: type,
        qualified: str,
        state: type[BaseModel] | None,
    ) -> None:
        self._function = function
        self._spec = spec
        self._qualified = qualified
        self._state = state
        self._annotations = annotations_of(function)
        self._scope = Scope(owner, function, spec.names)
        self._problems: list[Finding] = []
        self._unread = False  # something was left unsaid since this was last looked at

    def read(self) -> Signature:
        inputs = self._sort_parameters()
        self._drop_spare_defaults(inputs)
        self._drop_unannotated(inputs)
        opener = next(iter(self._events((self._spec.opener,), "per=")), None) if self._spec.opener else None
        accepts = self._read_join(inputs, opener) if self._spec.kind == "join" else self._read_on(inputs)
        unread_inputs = self._unread
        self._unread = False
        publishes, silent = self._read_return()
        early = self._read_early(inputs.context)
        return Signature(
            accepts=accepts,
            opener=opener,
            publishes=publishes,
            early=early,
            silent=silent,
            each_type=next((inputs.rest[name] for name, kind in inputs.filled.items() if kind == "item"), None),
            parameters=tuple(kind for kind in inputs.filled.values() if kind is not None),
            problems=tuple(self._problems),
            unread_inputs=unread_inputs,
            unread_outputs=self._unread,
        )

    # What comes in.

    def _sort_parameters(self) -> _Inputs:
        inputs = _Inputs()
        written = inspect.signature(self._function).parameters
        for place, parameter in enumerate(written.values()):
            if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
                if self._unread:
                    continue
                hint = "name every parameter; a decorator around the method has to use functools.wraps"
                self._report("SB108", f"takes {parameter.name} for any arguments, which says nothing", hint)
            elif parameter.kind is parameter.KEYWORD_ONLY:
                if parameter.default is parameter.empty:
                    self._report("SB113", f"has the keyword-only parameter {parameter.name}", "drop the * before it")
            elif place > 0:
                self._sort(parameter, inputs)
            elif parameter.name in self._annotations:
                self._report("SB113", f"begins with {parameter.name} instead of self", "write self before it")
                self._sort(parameter, inputs)
        return inputs

    def _sort(self, parameter: inspect.Parameter, inputs: _Inputs) -> None:
        name = parameter.name
        if name not in self._annotations and name in _MEANT:
            self._report("SB108", f"does not say what {name} is: it has no annotation", _MEANT[name])
            return
        annotation = self._scope.resolve(self._annotations.get(name, Any))
        if isinstance(annotation, Missing) and annotation.__name__.endswith("RoleContext"):
            hint = "import RoleContext at run time, not only under TYPE_CHECKING"
            self._report("SB109", f"uses the name RoleContext for {name}, which is not defined at run time", hint)
            return
        if self._spec.kind == "on" and (get_origin(annotation) or annotation) is Joined:
            self._unread = True  # what it waits for is not said
            events = ", ".join(describe(part) for arg in get_args(annotation) for part in self._scope.members(arg))
            hint = f"use @join({events or 'StepDone'}, per=...), where per= names the event that opens it"
            self._report("SB113", f"takes {name} as Joined, which only @join fills", hint)
            return
        kind = self._kind(annotation)
        if kind is not None and kind in inputs.filled.values():
            self._report("SB113", f"has two parameters for its {kind}", "keep one of them")
            return
        inputs.filled[name] = kind
        if kind is None:
            inputs.rest[name] = annotation
        elif kind == "context":
            inputs.context = annotation
        elif kind == "joined":
            inputs.joined = annotation

    def _kind(self, annotation: Any) -> Parameter | None:
        origin = get_origin(annotation) or annotation
        if not isinstance(origin, type):
            return None
        if issubclass(origin, ContextParameter):
            return "context"
        if self._state is not None and origin not in (object, BaseModel) and issubclass(self._state, origin):
            return "state"
        return "joined" if self._spec.kind == "join" and origin is Joined else None

    def _drop_spare_defaults(self, inputs: _Inputs) -> None:
        """Leave parameters that have a default, and that nothing fills, to their default."""
        parameters = inspect.signature(self._function).parameters
        for name in list(inputs.rest)[::-1]:
            if len(inputs.rest) <= self._most or parameters[name].default is inspect.Parameter.empty:
                return
            del inputs.rest[name], inputs.filled[name]

    def _drop_unannotated(self, inputs: _Inputs) -> None:
        """Report what only its place would tell apart from others; alone, a parameter needs no annotation."""
        parameters = inspect.signature(self._function).parameters
        for name in [name for name in inputs.rest if name not in self._annotations] if len(inputs.rest) > 1 else ():
            del inputs.rest[name], inputs.filled[name]
            if parameters[name].default is inspect.Parameter.empty:
                parts = "the opening event as its class" if self._spec.kind == "join" else "the event as its class"
                hint = f"annotate every parameter: {parts}, {_FILLED_BY_TYPE}"
                self._report("SB108", f"does not say what {name} is: it has no annotation", hint)

    @property
    def _most(self) -> int:
        return 1 if self._spec.each is None else 2

    def _read_on(self, inputs: _Inputs) -> Events:
        names = list(inputs.rest)
        mapped = self._spec.each is not None
        if len(names) > self._most or (mapped and not names):
            wanted = "an item, or with the event and an item" if mapped else "one event"
            self._report_parameters(inputs, wanted, f"annotate {_FILLED_BY_TYPE}, and drop what is left")
            return self._events(self._spec.events, "the decorator")
        if mapped:
            inputs.filled[names.pop()] = "item"
        for name in names:
            inputs.filled[name] = "event"
        return self._read_event(names[0] if names else None, inputs)

    def _read_event(self, name: str | None, inputs: _Inputs) -> Events:
        if self._spec.events:
            events = self._events(self._spec.events, "the decorator")
            if name is not None:
                self._compare(events, inputs.rest[name], name)
            return events
        if name is None and self._unread:
            return ()
        if name is None:
            hint = "take the event as a parameter, or name its class in the decorator: @on(E)"
            self._report("SB113", "does not say which event it handles", hint)
            return ()
        return self._events(self._scope.members(inputs.rest[name]), f"parameter {name}", name in self._annotations)

    def _read_join(self, inputs: _Inputs, opener: type[Event] | None) -> Events:
        names = list(inputs.rest)
        contributions = self._events(self._spec.events, "the decorator")
        if len(names) != 1 or inputs.joined is None:
            hint = f"write (self, event: {describe(self._spec.opener)}, joined: Joined[{_listed(self._spec.events)}])"
            self._report_parameters(inputs, "the opening event and what was Joined", hint)
            return contributions
        inputs.filled[names[0]] = "opener"
        if opener is not None:
            self._compare((opener,), inputs.rest[names[0]], names[0])
        for argument in get_args(inputs.joined):
            self._compare(contributions, argument, "Joined")
        return contributions

    def _compare(self, named: Events, annotation: Any, place: str) -> None:
        """Report classes named in the decorator that an annotation, as far as it says something, leaves out."""
        allowed = tuple(self._scope.members(annotation))
        if any(part in _SAY_NOTHING or isinstance(part, Missing) or not isinstance(part, type) for part in allowed):
            return
        for event in named:
            if not issubclass(event, allowed):
                told = f"gets {event.__name__} by its decorator, but {place} is annotated {_listed(allowed)}"
                self._report("SB116", told, "make decorator and annotation agree", event.__name__)

    # What goes out.

    def _read_return(self) -> tuple[Events, bool]:
        if "return" not in self._annotations:
            hint = "annotate the return with the events it publishes, or with None"
            self._report("SB108", "does not say what it publishes: it has no return annotation", hint)
            return (), True
        annotation = self._scope.resolve(self._annotations["return"])
        found: list[Any] = []
        silent = self._scope.allows_none(annotation)
        for part in self._scope.members(annotation):
            if get_origin(part) in _SEQUENCES:
                silent = True
                inner = [arg for arg in get_args(part) if arg is not Ellipsis]
                found += [member for arg in inner for member in self._scope.members(arg)]
            elif part not in (Never, NoReturn):
                found.append(part)
        if Event in found:
            found.remove(Event)
            self._report("SB108", "says nothing about what it publishes: it returns Event", "name the event classes")
        return self._events(found, "the return annotation"), silent

    def _read_early(self, context: Any) -> Events:
        argument = next(iter(get_args(context)), None)
        parts = [part for part in self._scope.members(argument) if part not in (Never, NoReturn)]
        return self._events(parts, "the context's annotation")

    # What it fails to say.

    def _events(self, found: Iterable[Any], place: str, annotated: bool = True) -> Events:
        """Keep the event classes, each once; report everything else."""
        events: dict[type[Event], None] = {}
        for part in found:
            if isinstance(part, type) and issubclass(part, Event):
                events[part] = None
            else:
                self._report_no_event(part, place, annotated)
        return tuple(events)

    def _report_no_event(self, part: Any, place: str, annotated: bool) -> None:
        name = describe(part)
        if isinstance(part, Missing):
            instead = ", or name the event in the decorator" if place.startswith("parameter") else ""
            hint = f"import {name} at run time, not only under TYPE_CHECKING{instead}"
            told = f"uses the name {name} in {place}, which is not defined at run time{self._scope.near(name)}"
            self._report("SB109", told, hint, name)
        elif (get_origin(part) or part) in _SAY_NOTHING:
            said = f"is annotated {name}" if annotated else "has no annotation"
            self._report("SB108", f"says nothing about its events: {place} {said}", "name the event class")
        elif isinstance(get_origin(part) or part, type):
            builtin = getattr(part, "__module__", "") == "builtins"
            hint = "name an event that carries it" if builtin else f"derive it from Event: class {name}(Event)"
            self._report("SB107", f"has {place} with {name}, which is not an Event", hint, name)
        else:
            variable = isinstance(part, TypeVar)
            hint = f"bind {name} in a subclass" if variable else "name the event class itself"
            self._report("SB109", f"has {place} with {name}, which stands for no class", hint)

    def _report_parameters(self, inputs: _Inputs, wanted: str, hint: str) -> None:
        if self._unread:
            return  # what was left unsaid may be what is lacking
        for annotation in inputs.rest.values():
            if isinstance(annotation, Missing):
                hint = f"import {describe(annotation)} at run time, not only under TYPE_CHECKING; then {hint}"
        taken = ", ".join(inputs.rest) or "nothing"
        self._report("SB113", f"takes {taken} beside context and state, but is called with {wanted}", hint)

    def _report(self, code: str, message: str, hint: str, event: str | None = None) -> None:
        self._unread = self._unread or code in ("SB107", "SB108", "SB109")
        written = self._function.__code__
        where = f"{written.co_filename}:{written.co_firstlineno}"
        role = self._qualified.partition(".")[0]
        told = f"{self._qualified} {message}"
        self._problems.append(finding(code, told, hint, role=role, event=event, where=where))


def _listed(classes: Iterable[Any]) -> str:
    return " | ".join(describe(cls) for cls in classes)
