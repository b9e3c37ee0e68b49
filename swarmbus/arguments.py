"""What users pass: an argument of the wrong type is refused where it is given, in words that say what to give instead.

A call is written as its author would write it, with `{}` where the argument stands: `Swarm(limits={})`.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Iterable, Mapping
from types import UnionType

from pydantic import BaseModel

from swarmbus.text import brief


def require(call: str, value: object, kinds: type | tuple[type, ...] | UnionType, wanted: str) -> None:
    """Refuse an argument that is no instance of these classes.

    Raises:
        TypeError: says that the call takes what is `wanted`.
    """
    if not isinstance(value, kinds):
        raise refusal(call, value, wanted)


def require_text(call: str, value: object, wanted: str = "a text") -> None:
    """Refuse what is no text, an empty one, and one that can't be written.

    Raises:
        TypeError: it is none.
        ValueError: it is empty, or has half a character (a lone surrogate).
    """
    require(call, value, str, wanted)
    assert isinstance(value, str)
    if not value:
        raise ValueError(f"{call.replace('{}', repr(value))} takes {wanted} that is not empty")
    try:
        value.encode()
    except UnicodeEncodeError:
        raise ValueError(f"{call.replace('{}', repr(value))} takes {wanted} without lone surrogates") from None


def require_seconds(call: str, value: object, *, zero: bool = False) -> None:
    """Refuse what is no number of seconds above 0, or from 0 on; None and infinity say that there is no limit.

    Raises:
        TypeError: it is no number.
        ValueError: it is out of range.
    """
    wanted = "a number of seconds, from 0" if zero else "a number of seconds, above 0"
    if value is None:
        return
    require(call, value, (int, float), wanted)
    assert isinstance(value, (int, float))
    if not (seconds(value) > 0 or (value == 0 and zero)):
        raise ValueError(f"{call.replace('{}', shown(value))} takes {wanted}")


def seconds(value: float) -> float:
    """Return a number as time is reckoned in; a whole one that is too large for that is none (NaN)."""
    try:
        return float(value)
    except OverflowError:
        return math.nan


def is_async(function: object) -> bool:
    """Whether a call of this gives something to be awaited, as far as can be told without one."""
    written = (function, getattr(function, "__call__", None))  # noqa: B004  # the method of an object, no test
    return any(inspect.iscoroutinefunction(each) or inspect.isasyncgenfunction(each) for each in written)


def require_plain(call: str, function: object, wanted: str) -> None:
    """Refuse an async function where a plain one is called.

    Raises:
        TypeError: says that the call takes what is `wanted`.
    """
    if is_async(function):
        raise TypeError(f"{call.replace('{}', shown(function))} takes {wanted}, not an async one")


def no_answer(returned: object) -> str | None:
    """Return why what a function returned can't be taken for True or False, or None where it can."""
    if inspect.isawaitable(returned) or inspect.isgenerator(returned) or inspect.isasyncgen(returned):
        if inspect.iscoroutine(returned):
            returned.close()
        return "something to be awaited or iterated; write a plain function that returns True or False"
    return "a function, which counts as True; call it" if callable(returned) else None


def no_sequence(returned: object) -> str | None:
    """Return why what a function returned can't be taken for a sequence, or None where it can."""
    if inspect.iscoroutine(returned):
        returned.close()
    if isinstance(returned, (str, bytes, bytearray)):
        return "a text, which would be taken letter by letter; return a tuple"
    if isinstance(returned, (set, frozenset)):
        return "a set, which has no order of its own; return a tuple, such as tuple(sorted(...))"
    if isinstance(returned, Mapping):
        return "a mapping; return a tuple of its keys, values or items"
    if isinstance(returned, BaseModel) or not isinstance(returned, Iterable):
        return "no sequence; return a tuple"
    return None


def require_manager(call: str, returned: object) -> None:
    """Refuse what a function returned that has to return an async context manager.

    Raises:
        TypeError: says how to write it.
    """
    if hasattr(type(returned), "__aenter__"):
        return
    if inspect.iscoroutine(returned):
        returned.close()
    raise TypeError(
        f"{call} has to return an async context manager, and returned {shown(type(returned))}; "
        "write it as an async function with one yield, below @asynccontextmanager"
    )


def refusal(call: str, value: object, wanted: str) -> TypeError:
    """Return the error for an argument of the wrong type; a class is told from its instances."""
    hint = ""
    if isinstance(value, type) and value.__module__ != "builtins":
        hint = f"; {value.__name__} is a class: give an instance, {value.__name__}{_arguments(value)}"
    return TypeError(f"{call.replace('{}', shown(value))} takes {wanted}{hint}")


def _arguments(cls: type) -> str:
    try:
        parameters = inspect.signature(cls).parameters.values()
    except (TypeError, ValueError):  # written in C
        return "(...)"
    optional = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    needed = any(each.default is each.empty and each.kind not in optional for each in parameters)
    return "(...)" if needed else "()"


def type_of(value: object) -> str:
    """Say of what type a value is; a class is told from its instances."""
    return f"the class {value.__name__}" if isinstance(value, type) else type(value).__name__


def shown(value: object) -> str:
    """Return a value as messages show it: a class by its name, all else as `brief` does."""
    return value.__name__ if isinstance(value, type) else brief(value)
