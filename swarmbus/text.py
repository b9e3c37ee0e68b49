"""Text as it comes in: what JSON can't carry is replaced, a misspelt name gets its near match, a value a short form.

The cleaning is called at the edges (submit, model reply, tool result, document text); who calls it counts and
reports.
"""

from __future__ import annotations

import dataclasses
import difflib
import re
import reprlib
import traceback
from itertools import islice
from typing import TYPE_CHECKING, Any, TypeGuard, TypeVar

from pydantic import BaseModel

from swarmbus.events import Event, event_name
from swarmbus.frozen import FrozenDict

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

E = TypeVar("E", bound=Event)

REPLACEMENT = "\N{REPLACEMENT CHARACTER}"
_UNFIT = re.compile("[\x00\ud800-\udfff]")

LEAVES = 3
"""Exceptions of a group that are named."""

_CLASS_NAME: Callable[[type], str] = type.__dict__["__name__"].__get__
_BRIEF = reprlib.Repr()
_BRIEF.maxstring = _BRIEF.maxother = 60


def clean_text(text: str) -> tuple[str, int]:
    """Return the text with each lone surrogate and NUL replaced, one for one, and how many there were."""
    if text.isascii() and "\0" not in text:
        return text, 0
    return _UNFIT.subn(REPLACEMENT, text)


def clean_event(event: E) -> tuple[E, int]:
    """Return the event with all its text cleaned, nested models included, and how many characters were replaced.

    Without anything to replace the very same event comes back.
    """
    return _clean(event)


def clean_plain(value: Any) -> Any:
    """Return plain data (texts, numbers, lists and dicts of them) with all its text cleaned."""
    if isinstance(value, str):
        return clean_text(value)[0]
    if isinstance(value, list):
        return [clean_plain(item) for item in value]
    if isinstance(value, dict):
        return {clean_plain(key): clean_plain(item) for key, item in value.items()}
    return value


def replaced_note(event: Event, count: int) -> str:
    """Say how many characters were replaced in an event."""
    replaced = (
        "1 character that no text can hold was" if count == 1 else f"{count} characters that no text can hold were"
    )
    return f"{replaced} replaced in {event_name(event)}"


def brief(value: object) -> str:
    """Return a value as code would write it, clean, its middle left out where that is long; never raises."""
    return _asked(_BRIEF.repr, value)


def text_of(value: object) -> str:
    """Return a value, such as an exception, as clean text; never raises, whatever the class says of itself.

    A group of exceptions, which says of itself only how many they are, names the first of them.
    """
    said = _asked(str, value)
    if not _is_group(value):
        return said
    named = [error_text(error) for error in islice(_leaves(value), LEAVES)]
    more = sum(1 for _ in _leaves(value)) - len(named)
    return f"{said}: {'; '.join(named)}" + (f"; and {more} more" if more else "")


def type_name(value: object) -> str:
    """Return the name of a value's class as clean text; never raises, whatever its metaclass says."""
    return clean_text(_CLASS_NAME(type(value)))[0]


def error_text(error: BaseException) -> str:
    """Return an exception's type and what it says, such as `ValueError: too long`; never raises."""
    return f"{type_name(error)}: {text_of(error)}"


def traceback_text(error: BaseException) -> str:
    """Return an exception with its traceback; never raises."""
    return _asked(lambda raised: "".join(traceback.format_exception(raised)), error)


def near_match(name: str, candidates: Iterable[str], cutoff: float = 0.6) -> str | None:
    """Return the candidate most like a name that is none of them, if one is alike enough (cutoff from 0 to 1)."""
    return next(iter(difflib.get_close_matches(name, sorted(set(candidates) - {name}), 1, cutoff)), None)


def did_you_mean(name: str, candidates: Iterable[str]) -> str:
    """Return ` (did you mean ...?)` for a name with a near match, else nothing."""
    match = near_match(name, candidates)
    return f" (did you mean `{match}`?)" if match else ""


def _is_group(error: object) -> TypeGuard[BaseExceptionGroup[BaseException]]:
    """Whether this is a group of exceptions, without asking what it says of its class."""
    return issubclass(type(error), BaseExceptionGroup)


def _leaves(error: BaseException) -> Iterator[BaseException]:
    """Yield the exceptions of a group that are no groups themselves."""
    waiting = [error]
    while waiting:
        inner = waiting.pop()
        if _is_group(inner):
            waiting += reversed(inner.exceptions)
        else:
            yield inner


def _asked(show: Callable[[Any], str], value: object) -> str:
    try:
        return clean_text(show(value))[0]
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:  # noqa: BLE001  # it is about to be reported: that it can't be shown must not hide it
        return f"<{type_name(value)} that can't be shown: {type_name(error)}>"


def _clean(value: Any) -> tuple[Any, int]:
    if type(value) is str:
        return clean_text(value)
    if isinstance(value, BaseModel):
        changed, count = _clean_each(value.__dict__.items())
        return (value.model_copy(update=dict(changed)), count) if count else (value, 0)
    if isinstance(value, FrozenDict):
        entries, count = _clean_each(value.items())
        return (FrozenDict(entries), count) if count else (value, 0)
    if isinstance(value, (tuple, frozenset)):
        items, count = _clean_each(value)
        return (_rebuilt(value, items), count) if count else (value, 0)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        parts, count = _clean_each((field.name, getattr(value, field.name)) for field in dataclasses.fields(value))
        return (dataclasses.replace(value, **dict(parts)), count) if count else (value, 0)
    return value, 0


def _clean_each(values: Any) -> tuple[list[Any], int]:
    cleaned = [_clean(value) for value in values]
    return [value for value, _ in cleaned], sum(count for _, count in cleaned)


def _rebuilt(value: Any, items: list[Any]) -> Any:
    return type(value)(*items) if hasattr(value, "_fields") else type(value)(items)
