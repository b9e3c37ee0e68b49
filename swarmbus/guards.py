"""Checks of single values, compiled into an event class where the type of a field does not say enough.

Each guard takes a validated value and returns it, or an immutable form of it, and raises `ValueError` with the
remedy for one that JSON would not bring back. Which field needs which guard is decided in `fields`.
"""

from __future__ import annotations

import dataclasses
import datetime as dt
import math
import operator
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from pydantic import BaseModel, ConfigDict, TypeAdapter
from pydantic_core import PydanticSerializationError

from swarmbus.frozen import FrozenDict, to_plain

Guard = Callable[[Any], Any]

JSON_CONFIG = ConfigDict(ser_json_bytes="base64", val_json_bytes="base64", allow_inf_nan=False)
"""How values are written to JSON and read again, so that nothing is lost on the way."""


def require_zone(value: dt.datetime) -> dt.datetime:
    """Refuse a time without a time zone, and one whose zone is off by seconds, which JSON has no place for."""
    offset = value.utcoffset()
    if offset is None:
        raise ValueError("holds a time without time zone; give it a tzinfo, as datetime.now(timezone.utc) does")
    if offset.seconds % 60 or offset.microseconds:
        raise ValueError(f"holds a time that is {offset} from UTC, and JSON tells minutes only; use astimezone(UTC)")
    return value


def freeze_json(value: Any) -> Any:
    """Return a JSON value in its immutable form, `tuple` for a list and `FrozenDict` for a dict; refuse others."""
    if value is None or type(value) in (str, int, bool):
        return value
    if type(value) is float:
        return require_finite(value)
    if type(value) in (list, tuple):
        return tuple(freeze_json(item) for item in value)
    if isinstance(value, (dict, FrozenDict)):
        for key in value:
            if type(key) is not str:
                raise ValueError(f"holds a mapping with the key {key!r}, but keys are strings in JSON")
        return FrozenDict({key: freeze_json(item) for key, item in value.items()})
    raise ValueError(
        f"holds a {type(value).__name__}, but a field of type Any carries plain JSON only (str, int, float, bool, "
        f"None, tuple, FrozenDict); give the field its own type"
    )


def require_finite(value: float) -> float:
    """Refuse NaN and the infinities."""
    if not math.isfinite(value):
        raise ValueError(f"holds {value}, which is no number in JSON")
    return value


def require_utf8(value: bytes) -> bytes:
    """Refuse bytes that a model which is no event could not write."""
    value.decode()
    return value


def exactly(model: type[BaseModel], guards: Mapping[str, Guard]) -> Guard:
    """Refuse an instance of a subclass, which JSON would bring back as `model`, and guard the fields."""

    def check(value: Any) -> Any:
        if type(value) is not model:
            raise ValueError(
                f"holds a {type(value).__name__}, which JSON would bring back as {model.__name__}; "
                f"declare the field as a discriminated union"
            )
        for name, guard in guards.items():
            part = value.__dict__[name]
            if guard(part) is not part:
                raise ValueError(f"has a {name} in which JSON would bring back a {type(part).__name__} as another type")
        return value

    return check


def one_of(guards: Mapping[Any, Guard | None]) -> Guard:
    """Refuse an instance of a class that a discriminated union does not list."""

    def check(value: Any) -> Any:
        if type(value) not in guards:
            names = " or ".join(member.__name__ for member in guards if isinstance(member, type))
            raise ValueError(f"holds a {type(value).__name__}, which JSON would bring back as {names}; list it as well")
        guard = guards[type(value)]
        return guard(value) if guard else value

    return check


def optional(guard: Guard) -> Guard:
    """Let None pass."""
    return lambda value: None if value is None else guard(value)


def items(container: Callable[[Iterable[Any]], Any], guard: Guard) -> Guard:
    """Guard every item of a tuple or frozenset."""

    def check(value: Any) -> Any:
        guarded = [guard(item) for item in value]
        return value if all(map(operator.is_, guarded, value)) else container(guarded)

    return check


def entries(guard: Guard) -> Guard:
    """Guard every value of a `FrozenDict`."""

    def check(value: Any) -> Any:
        guarded = [guard(item) for item in value.values()]
        if all(map(operator.is_, guarded, value.values())):
            return value
        return FrozenDict(zip(value, guarded, strict=True))

    return check


def round_trip(annotation: Any) -> Guard:
    """Refuse a value that does not come back from JSON as it was, found by trying it."""
    adapters: list[TypeAdapter[Any]] = []

    def check(value: Any) -> Any:
        if not adapters:
            adapters.append(TypeAdapter(tuple[annotation], config=JSON_CONFIG))
        adapter = adapters[0]
        try:
            (back,) = adapter.validate_json(adapter.dump_json((value,), round_trip=True, fallback=to_plain))
        except (PydanticSerializationError, ValueError) as error:
            raise ValueError(f"does not survive JSON: {error}") from error
        if trouble := difference(value, back):
            raise ValueError(trouble)
        return value

    return check


def difference(value: Any, back: Any) -> str | None:
    """Return why a value is not what JSON brought back, or why it may not be shared; None where all is well."""
    if type(value) is int and type(back) is float and value == back:
        return None  # an int where a float is declared
    if type(value) is not type(back):
        return f"holds a {type(value).__name__}, which JSON would bring back as {type(back).__name__}"
    if isinstance(value, dt.datetime) and value.tzinfo is None:
        return "holds a time without time zone"
    pairs = _pairs(value, back)
    if pairs is not None:
        return next((trouble for one, other in pairs if (trouble := difference(one, other))), None)
    if type(value).__hash__ is None:
        return f"holds a {type(value).__name__}, which can be changed"
    return None if value == back else f"holds {value!r}, which JSON would bring back as {back!r}"


def _pairs(value: Any, back: Any) -> list[tuple[Any, Any]] | None:
    """Return the parts of a value with what became of each, or None where it has no parts."""
    if isinstance(value, tuple):
        return [(len(value), len(back)), *zip(value, back, strict=False)]
    if isinstance(value, FrozenDict):
        return _pairs((*value, *value.values()), (*back, *back.values()))
    if isinstance(value, frozenset):
        same = {item: item for item in back}
        return [(len(value), len(back)), *((item, same.get(item)) for item in value)]
    if isinstance(value, BaseModel):
        return [(part, back.__dict__[name]) for name, part in value.__dict__.items()]
    if dataclasses.is_dataclass(value):
        return [(getattr(value, field.name), getattr(back, field.name)) for field in dataclasses.fields(value)]
    return None
