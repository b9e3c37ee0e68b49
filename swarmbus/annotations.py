"""What the annotations of a method mean: names looked up where the method was written, aliases and unions opened.

The same with and without postponed annotations. A name that can't be found becomes a placeholder, so that one
missing name spoils only the annotation that needs it.
"""

from __future__ import annotations

import builtins
import inspect
import sys
from collections import ChainMap
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Annotated, Any, ForwardRef, TypeVar, get_args, get_origin

from swarmbus.events import Event
from swarmbus.fields import bare, members
from swarmbus.text import did_you_mean


class Missing(type):
    """The class of placeholders for names that can't be found; subscripts and attributes are missing too."""

    def __getitem__(cls, _item: Any) -> Missing:
        return cls

    def __getattr__(cls, name: str) -> Missing:
        if name.startswith("__"):
            raise AttributeError(name)
        return Missing(f"{cls.__name__}.{name}", (), {})


class _Names(ChainMap[str, Any]):
    def __missing__(self, name: str) -> Any:
        return Missing(name, (), {})


class Scope:
    """The names that a method's annotations can use, in the order in which Python would look them up.

    Args:
        owner: the role class.
        function: the method, unwrapped.
        enclosing: names of the function in which the class was written, if any.
    """

    def __init__(self, owner: type, function: Callable[..., Any], enclosing: dict[str, Any]) -> None:
        self._names = _Names(
            _parameters_named(owner, function),
            *({name: value for name, value in vars(cls).items() if isinstance(value, type)} for cls in owner.__mro__),
            _closure(function),
            enclosing,
            function.__globals__,
            vars(builtins),
        )
        self._bound = _bound_variables(owner)

    def resolve(self, annotation: Any) -> Any:
        """Return what an annotation means, its own name looked up, and a type variable replaced if it is bound."""
        if isinstance(annotation, ForwardRef):
            annotation = annotation.__forward_arg__
        if isinstance(annotation, str):
            try:
                annotation = eval(annotation, {}, self._names)  # noqa: S307 - what `typing.get_type_hints` does
            except (SyntaxError, TypeError, AttributeError):
                return Missing(annotation, (), {})
            return self.resolve(annotation)
        if isinstance(annotation, TypeVar):
            return self._bound.get(annotation, annotation)
        if get_origin(annotation) is Annotated:
            return self.resolve(get_args(annotation)[0])
        opened = bare(annotation)
        return annotation if opened is annotation else self.resolve(opened)

    def near(self, name: str) -> str:
        """Return ` (did you mean ...?)` for a name that is nearly that of an event, else nothing."""
        events = [known for known, value in self._names.items() if isinstance(value, type) and issubclass(value, Event)]
        return did_you_mean(name, events)

    def members(self, annotation: Any) -> Iterator[Any]:
        """Yield the members of a union, flat and without None; anything else is its own only member."""
        resolved = self.resolve(annotation)
        parts = members(resolved)
        if parts == (resolved,):
            if resolved is not None and resolved is not type(None):
                yield resolved
            return
        for part in parts:
            yield from self.members(part)

    def allows_none(self, annotation: Any) -> bool:
        """Whether None is what an annotation means, or a member of it."""
        resolved = self.resolve(annotation)
        parts = members(resolved)
        return any(part is None or part is type(None) for part in parts) or (
            parts != (resolved,) and any(self.allows_none(part) for part in parts)
        )


def annotations_of(function: Callable[..., Any]) -> dict[str, Any]:
    """Return a function's annotations as written, without failing for a name that is not there."""
    if sys.version_info >= (3, 14):
        import annotationlib  # noqa: PLC0415 - there since 3.14

        return annotationlib.get_annotations(function, format=annotationlib.Format.FORWARDREF)
    return inspect.get_annotations(function)


def _parameters_named(owner: type, function: Callable[..., Any]) -> dict[str, Any]:
    holders = (function, *owner.__mro__)
    return {p.__name__: p for holder in reversed(holders) for p in getattr(holder, "__type_params__", ())}


def _closure(function: Callable[..., Any]) -> dict[str, Any]:
    """Return what a function uses of the functions around it, as far as that is set by now."""
    names = getattr(getattr(function, "__code__", None), "co_freevars", ())
    found: dict[str, Any] = {}
    for name, cell in zip(names, getattr(function, "__closure__", None) or (), strict=True):
        with suppress(ValueError):  # an empty cell
            found[name] = cell.cell_contents
    return found


def _bound_variables(owner: type) -> dict[Any, Any]:
    """Return what the type variables of an owner's generic bases stand for."""
    bound: dict[Any, Any] = {}
    for cls in owner.__mro__:
        for base in vars(cls).get("__orig_bases__", ()):
            variables = getattr(get_origin(base), "__parameters__", ())
            for variable, argument in zip(variables, get_args(base), strict=False):
                value = bound.get(argument, argument) if isinstance(argument, TypeVar) else argument
                bound.setdefault(variable, value)
    return {variable: value for variable, value in bound.items() if not isinstance(value, TypeVar)}
