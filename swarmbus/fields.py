"""What a field of an event or a role's state may hold: immutable values that JSON brings back with their exact type.

Read from the annotations of a model when its class is made. What a type alone can decide is refused there; where
only a value can, the field gets one of `guards`. Most fields need none.
"""

from __future__ import annotations

import dataclasses
import datetime as dt
import decimal
import enum
import ipaddress
import pathlib
import types
import typing
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Annotated, Any, Literal, TypeVar, Union, get_args, get_origin

from pydantic import BaseModel, Discriminator, SecretBytes, SecretStr, TypeAdapter
from pydantic.errors import PydanticSchemaGenerationError
from typing_extensions import TypeAliasType, is_typeddict

from swarmbus.errors import EventClassError
from swarmbus.frozen import FrozenDict
from swarmbus.guards import (
    Guard,
    entries,
    exactly,
    freeze_json,
    items,
    one_of,
    optional,
    require_finite,
    require_utf8,
    require_zone,
    round_trip,
)

if typing.TYPE_CHECKING:
    from pydantic.fields import FieldInfo

_UNIONS = (Union, types.UnionType)
_SAFE: tuple[type, ...] = (
    *(str, bool, int, float, bytes, complex, type(None)),
    *(dt.date, dt.time, dt.timedelta, decimal.Decimal, uuid.UUID, pathlib.PurePath),
    *(ipaddress.IPv4Address, ipaddress.IPv6Address, ipaddress.IPv4Network, ipaddress.IPv6Network),
)
_KEYS: tuple[type, ...] = (str, int, bool, uuid.UUID, dt.date, enum.Enum)
_MUTABLE: tuple[tuple[type, str, tuple[str, ...]], ...] = (
    (bytearray, "bytes", ()),
    (AbstractSet, "frozenset[{}]", ("Any",)),
    (Mapping, "FrozenDict[{}, {}]", ("str", "Any")),
    (Sequence, "tuple[{}, ...]", ("Any",)),
    (Iterable, "tuple[{}, ...]", ("Any",)),
)
"""What can be changed, what to use instead, and the types that stand in it where none were given."""
_JSON_SHAPES: dict[Any, str] = {str: "string", bool: "bool", int: "int", float: "float", type(None): "null"}


def compile_guards(model: type[BaseModel], *, foreign: bool = False) -> dict[str, Guard]:
    """Return the guards of those fields that need one, by field name.

    Args:
        model: an event or a role's state.
        foreign: whether it is no event, and so is written to JSON as pydantic does by itself.

    Raises:
        EventClassError: the model could be changed, or could hold what JSON does not bring back.
    """
    _refuse_loopholes(model)
    reader = _Reader(foreign=foreign)
    guards = {name: reader.field(model, name, info) for name, info in model.__pydantic_fields__.items()}
    return {name: guard for name, guard in guards.items() if guard}


def bare(annotation: Any) -> Any:
    """Return the type behind `Annotated`, type aliases and `NewType`."""
    while True:
        origin = get_origin(annotation)
        if origin is Annotated:
            annotation = get_args(annotation)[0]
        elif _is_alias(annotation):
            annotation = annotation.__value__
        elif _is_alias(origin):
            annotation = origin.__value__[get_args(annotation)]
        elif hasattr(annotation, "__supertype__"):
            annotation = annotation.__supertype__
        else:
            return annotation


def members(annotation: Any) -> tuple[Any, ...]:
    """Return the members of a union, flat; anything else is its own only member."""
    annotation = bare(annotation)
    if get_origin(annotation) in _UNIONS:
        return tuple(member for part in get_args(annotation) for member in members(part))
    return (annotation,)


def describe(annotation: Any) -> str:
    """Return an annotation as a reader would write it."""
    if isinstance(annotation, TypeVar) or (isinstance(annotation, type) and not get_args(annotation)):
        return annotation.__name__
    return str(annotation).replace("typing.", "").replace("collections.abc.", "")


class _Reader:
    """Walks the annotations of one model; each class met on the way is read once."""

    def __init__(self, *, foreign: bool) -> None:
        self._read: dict[type, Guard] = {}
        self._foreign = foreign  # inside a model that is no event, and so is configured otherwise
        self._containers: dict[Any, Callable[[str, Any], Guard | None]] = {
            tuple: self._items,
            frozenset: self._items,
            FrozenDict: self._mapping,
            Union: self._union,
            types.UnionType: self._union,
        }

    def field(self, model: type[BaseModel], name: str, info: FieldInfo) -> Guard | None:
        path = f"{model.__name__}.{name}"
        if info.exclude:
            raise EventClassError(f"{path} is excluded from JSON and would be lost; drop exclude=True")
        marks = [*info.metadata]
        if info.discriminator is not None:
            marks.append(
                Discriminator(info.discriminator) if isinstance(info.discriminator, str) else info.discriminator
            )
        return self.guard(path, Annotated[(info.annotation, *marks)] if marks else info.annotation)

    def guard(self, path: str, annotation: Any) -> Guard | None:
        """Return the guard that values of this type need, if any; refuse a type that no field may have."""
        kind = bare(annotation)
        origin = get_origin(kind) or kind
        if kind in (Any, object) or isinstance(kind, TypeVar):
            return freeze_json
        if origin is Literal:
            return None
        if (read := self._containers.get(origin)) is not None:
            return read(path, annotation)
        if not isinstance(origin, type) or origin in (type, Callable):
            raise _refused(path, kind, "JSON can't bring it back; use a plain value or a frozen model")
        if issubclass(origin, BaseModel):
            return self._model(path, origin)
        record = dataclasses.is_dataclass(origin) or hasattr(origin, "_fields")
        return self._record(path, origin) if record else self._leaf(path, kind, origin)

    def _leaf(self, path: str, kind: Any, origin: type) -> Guard | None:
        if is_typeddict(origin):
            raise _refused(path, kind, "a dict can be changed; use a frozen model or FrozenDict[K, V]")
        if issubclass(origin, (SecretStr, SecretBytes)):
            raise _refused(path, kind, "JSON would lose it; keep secrets in deps and out of events")
        if issubclass(origin, dt.datetime):
            return require_zone
        if issubclass(origin, enum.Enum):
            return None if all(isinstance(member.value, (str, int)) for member in origin) else round_trip(kind)
        if self._foreign and issubclass(origin, (float, bytes)):
            return require_finite if issubclass(origin, float) else require_utf8
        if issubclass(origin, _SAFE):
            return None
        if issubclass(origin, tuple(mutable for mutable, _, _ in _MUTABLE)):
            raise _refused(path, kind, f"its content can be changed; use {_lasting(kind)}")
        if origin.__hash__ is None:
            raise _refused(path, kind, "its values can be changed; use a frozen model")
        return _tried(path, kind)

    def _items(self, path: str, annotation: Any) -> Guard | None:
        kind = bare(annotation)
        parts = [part for part in get_args(kind) or (Any,) if part is not Ellipsis]
        guards = [self.guard(path, part) for part in parts]
        if not any(guards):
            return None
        guard = guards[0]
        return items(get_origin(kind) or kind, guard) if guard and len(guards) == 1 else round_trip(kind)

    def _mapping(self, path: str, annotation: Any) -> Guard | None:
        kind = bare(annotation)
        key, value = get_args(kind) or (str, Any)
        guard = self.guard(path, value)
        if self.guard(path, key) or not _plain_key(key):
            return round_trip(kind)
        return guard and entries(guard)

    def _union(self, path: str, annotation: Any) -> Guard | None:
        parts = [part for part in members(annotation) if part is not type(None)]
        guards = {part: self.guard(path, part) for part in parts}
        if len(parts) == 1:
            guard = guards[parts[0]]
            return guard and optional(guard)
        if _is_discriminated(annotation):
            return one_of({**guards, type(None): None} if type(None) in members(annotation) else guards)
        return round_trip(annotation) if any(guards.values()) or _look_alike(parts) else None

    def _model(self, path: str, model: type[BaseModel]) -> Guard:
        if not model.model_config.get("frozen"):
            remedy = f"its instances can be changed; make it frozen: class {model.__name__}(BaseModel, frozen=True)"
            raise _refused(path, model, remedy)
        if model not in self._read:
            guards: dict[str, Guard] = {}
            self._read[model] = exactly(model, guards)
            _refuse_loopholes(model)
            if not hasattr(model, "__swarmbus_name__"):  # an event sees to its own fields
                outer, self._foreign = self._foreign, True
                fields = model.__pydantic_fields__.items()
                guards |= {name: guard for name, info in fields if (guard := self.field(model, name, info))}
                self._foreign = outer
        return self._read[model]

    def _record(self, path: str, record: type) -> Guard:
        parameters = getattr(record, "__dataclass_params__", None)
        if parameters is not None and not parameters.frozen:
            raise _refused(path, record, "its instances can be changed; use @dataclass(frozen=True)")
        if record not in self._read:
            self._read[record] = round_trip(record)
            for name, annotation in typing.get_type_hints(record, include_extras=True).items():
                self.guard(f"{path}.{name}", annotation)
        return self._read[record]


def _refuse_loopholes(model: type[BaseModel]) -> None:
    if not model.model_config.get("frozen"):
        raise EventClassError(f"{model.__name__} must stay frozen; drop frozen=False")
    if model.model_config.get("extra") == "allow":
        raise EventClassError(f'{model.__name__} allows fields without a type; drop extra="allow", use a FrozenDict')
    decorators = model.__pydantic_decorators__
    if decorators.field_serializers or decorators.model_serializers:
        raise EventClassError(
            f"{model.__name__} has a serializer of its own; drop it, JSON is written as the fields say"
        )
    if model.__private_attributes__:
        names = ", ".join(model.__private_attributes__)
        raise EventClassError(f"{model.__name__} has private attributes ({names}), which JSON would lose; use fields")


def _refused(path: str, annotation: Any, remedy: str) -> EventClassError:
    return EventClassError(f"{path} can't be a {describe(annotation)}: {remedy}")


def _lasting(kind: Any) -> str:
    """Return what to write in place of a type whose values can be changed, those of its items too."""
    origin = get_origin(kind) or kind
    if isinstance(origin, type) and not issubclass(origin, (*_SAFE, tuple, frozenset, FrozenDict)):
        for mutable, form, usual in _MUTABLE:
            if issubclass(origin, mutable):
                given = [_lasting(argument) for argument in get_args(kind)]
                return form.format(*given, *usual[len(given) :])
    return describe(kind)


def _tried(path: str, kind: Any) -> Guard:
    try:
        TypeAdapter(kind)
    except PydanticSchemaGenerationError:
        raise _refused(path, kind, "JSON can't carry it; use a plain value or a frozen model") from None
    return round_trip(kind)


def _is_alias(annotation: Any) -> bool:
    return isinstance(annotation, TypeAliasType) or type(annotation).__name__ == "TypeAliasType"


def _is_discriminated(annotation: Any) -> bool:
    while _is_alias(annotation):
        annotation = annotation.__value__
    if get_origin(annotation) is not Annotated:
        return False
    marks = annotation.__metadata__
    return any(isinstance(mark, Discriminator) or getattr(mark, "discriminator", None) for mark in marks) or (
        _is_discriminated(annotation.__origin__)
    )


def _plain_key(annotation: Any) -> bool:
    """Whether keys of this type come back from JSON, where each is a string, whatever their value."""
    parts = members(annotation)
    part = parts[0]
    if len(parts) > 1 or not (isinstance(part, type) and issubclass(part, _KEYS)):
        return False
    return not issubclass(part, enum.Enum) or len({str(member.value) for member in part}) == len(part)


def _look_alike(parts: Sequence[Any]) -> bool:
    """Whether values of two members of a union could have the same form in JSON."""
    seen: dict[str, Any] = {}
    for part in parts:
        literals = get_args(part) if get_origin(part) is Literal else ()
        for kind in [type(value) for value in literals] or [part]:
            if seen.setdefault(_json_shape(kind), kind) is not kind:
                return True
    return False


def _json_shape(kind: Any) -> str:
    origin = get_origin(kind) or kind
    if origin in (tuple, frozenset):
        return "array"
    if isinstance(origin, type) and issubclass(origin, (BaseModel, FrozenDict)):
        return "object"
    if isinstance(origin, type) and issubclass(origin, int) and origin is not bool:
        return "int"
    return _JSON_SHAPES.get(origin, "string")
