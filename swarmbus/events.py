"""Events: facts in the past tense, as frozen models with a stable name, that survive JSON exactly or are refused.

What a field may hold is decided in `fields`; who publishes and who handles an event is the event table's business.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar, cast, get_args, get_origin

from pydantic import BaseModel, ConfigDict, PydanticUserError, ValidationError
from pydantic_core import CoreSchema, PydanticSerializationError, core_schema
from pydantic_core import from_json as parse_json

from swarmbus.errors import EventClassError, EventEncodingError
from swarmbus.fields import compile_guards, members
from swarmbus.frozen import to_plain
from swarmbus.guards import JSON_CONFIG

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Self

    from pydantic import GetCoreSchemaHandler
    from typing_extensions import Unpack

    from swarmbus.guards import Guard

E = TypeVar("E", bound="Event")

_LONG = 4000
"""Characters: shorter JSON holds no number that can't be read."""
_DEEP = 150
"""Brackets: with fewer, JSON is not nested too deeply to be read."""

_NAME = re.compile(r"\w+(?:[.-]\w+)*")
_WORD_STARTS = re.compile(r"(?<=[^\W_])(?=[A-Z][^\WA-Z_0-9])|(?<=[^\WA-Z_])(?=[A-Z])")


class Event(BaseModel):
    """A fact in the past tense, such as `TaskPlanned`; subclass it and give it fields.

    An event is frozen, and so is all that it holds: a class with a `list`, `dict` or `set` field, or with a model
    that is not frozen, is refused. It comes back from JSON exactly as it was, or it is refused: when it is
    constructed, and what only its JSON shows (a lone surrogate in a text, values nested too deeply, a number with
    thousands of digits) when it is published. A field of type `Any` carries plain JSON, whose lists become tuples and
    whose dicts become `FrozenDict`. A validator of your own runs again when an event is read, so it must leave alone
    what it has accepted once.

    Its name on the wire is the class name as `snake_case` writes it, and does not depend on the module;
    `class X(Event, name="other", version=2)` sets name and version. Neither is inherited. A parametrised generic
    is named after its arguments: `Result[int]` is `result_of_int`. There are no public attributes beside
    pydantic's; `event_name` and `event_version` read what a class carries.

    Raises:
        EventClassError: the class can't keep these promises.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", validate_default=True, **JSON_CONFIG)

    __swarmbus_name__: ClassVar[str] = "event"
    __swarmbus_version__: ClassVar[int] = 1

    def __init_subclass__(cls, *, name: str | None = None, version: int = 1, **config: Unpack[ConfigDict]) -> None:
        if config:
            raise EventClassError(f"{cls.__name__} has no option {', '.join(config)}; there are name and version")
        super().__init_subclass__()
        given: Any = name
        if given is not None and not (isinstance(given, str) and _NAME.fullmatch(given)):
            raise EventClassError(
                f"{given!r} can't name {cls.__name__}; use letters, digits, _, and . or - between them"
            )
        if type(version) is not int or version < 1:
            raise EventClassError(f"{cls.__name__} has version {version!r}; versions count from 1, in whole numbers")
        cls.__swarmbus_name__ = name or snake_case(cls.__name__)
        cls.__swarmbus_version__ = version

    @classmethod
    def __pydantic_init_subclass__(cls, **_options: Any) -> None:
        generic = cls.__pydantic_generic_metadata__
        origin = cast("type[Event] | None", generic["origin"])
        if origin is not None:
            cls.__swarmbus_name__ = _generic_name(origin, generic["args"])
            cls.__swarmbus_version__ = origin.__swarmbus_version__

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        try:
            schema = handler(source)
        except PydanticUserError as error:
            if cls.__pydantic_fields_complete__:
                compile_guards(cls)  # names the field and the remedy, where it knows them
            raise EventClassError(f"{cls.__name__} can't be an event: {error}") from error
        if schema["type"] == "function-after" and isinstance(schema["function"]["function"], _Guarding):
            return schema  # already built
        guards = compile_guards(cls)
        if not guards:
            return schema
        reference = cast("dict[str, Any]", schema).pop("ref", None)
        return core_schema.no_info_after_validator_function(_Guarding(guards), schema, ref=reference)

    def model_dump_json(self, **options: Any) -> str:
        """Write the event as pydantic does, but so that it can be read again: computed fields are left out."""
        return super().model_dump_json(**{"fallback": to_plain, "round_trip": True, **options})

    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> Self:
        """Return a copy in which the fields of `update` have new values, which are validated."""
        if not update:
            return super().model_copy(deep=deep)
        return type(self).model_validate({**self.__dict__, **update}, by_alias=False, by_name=True)


def snake_case(name: str) -> str:
    """Return a class name in the form it has on the wire; this is a format and never changes.

    A word starts at a capital that follows a small letter or a digit, and at a capital that is followed by a small
    letter: `HTTPRequestDone` is `http_request_done`, `Step2Done` is `step2_done`. Words are joined by `_` and
    written small; underscores at the ends are dropped.
    """
    return _WORD_STARTS.sub("_", name.strip("_")).lower()


def event_name(event: Event | type[Event]) -> str:
    """Return the name of an event or event class on the wire."""
    return event.__swarmbus_name__


def event_version(event: Event | type[Event]) -> int:
    """Return the version of an event class, from 1."""
    return event.__swarmbus_version__


def to_json(event: Event) -> bytes:
    """Write an event as JSON.

    Raises:
        EventEncodingError: it can't be written, or not read again, such as for a lone surrogate in its text, or for
            values nested in one another hundreds of times; names the field.
    """
    try:
        written = event.__pydantic_serializer__.to_json(event, by_alias=False, round_trip=True, fallback=to_plain)
        if len(written) > _DEEP:
            _require_readable(written)
    except (PydanticSerializationError, ValueError) as error:
        field = next((name for name in event.__pydantic_fields__ if not _is_writable(event, name)), None)
        raise EventEncodingError(
            f"{type(event).__name__}{f'.{field}' if field else ''} can't be written to JSON: {error}",
            event=event_name(event),
            field=field,
        ) from error
    return written


def from_json(cls: type[E], data: bytes | str) -> E:
    """Read an event from JSON; fields that the class no longer has are dropped.

    Raises:
        EventEncodingError: the JSON is no such event; names the field.
    """
    try:
        event: E = cls.__pydantic_validator__.validate_json(data, extra="ignore", by_alias=False, by_name=True)
    except ValidationError as error:
        problems = error.errors(include_url=False, include_context=False, include_input=False)
        fields = [".".join(str(part) for part in problem["loc"]) for problem in problems]
        told = "; ".join(
            f"{field or 'the event'}: {problem['msg']}" for field, problem in zip(fields, problems, strict=True)
        )
        raise EventEncodingError(
            f"the JSON is no {cls.__name__} (version {event_version(cls)}): {told}",
            event=event_name(cls),
            field=fields[0] or None,
        ) from error
    return event


class HandlerFailed(Event):
    """A delivery failed for good; published by `SYSTEM` in the scope of that delivery, where the table has it.

    Attributes:
        role: name of the role.
        handler: name of the role's method.
        event: name of the event that was handled.
        event_id: id of its envelope.
        item: index of the mapped item, if the handler was mapped.
        key: the item's key, where a join names one.
        attempt: number of the last attempt, from 1.
        error_type: class name of the exception.
        message: text of the exception.
    """

    role: str
    handler: str
    event: str
    event_id: str
    item: int | None = None
    key: str | None = None
    attempt: int
    error_type: str
    message: str


class _Guarding:
    """The validator of an event class that has guarded fields."""

    __slots__ = ("_guards",)

    def __init__(self, guards: Mapping[str, Guard]) -> None:
        self._guards = tuple(guards.items())

    def __call__(self, event: Event) -> Event:
        values = event.__dict__
        for name, guard in self._guards:
            try:
                values[name] = guard(values[name])
            except RecursionError as error:
                raise ValueError(f"{type(event).__name__}.{name} holds itself, or is nested too deeply") from error
            except ValueError as error:
                raise ValueError(f"{type(event).__name__}.{name} {error}") from error
        return event


def _require_readable(written: bytes) -> None:
    """Raise `ValueError` for JSON that can't be read again: the reader takes less depth and fewer digits."""
    if len(written) > _LONG or written.count(b"[") + written.count(b"{") > _DEEP:
        parse_json(written)


def _is_writable(event: Event, field: str) -> bool:
    try:
        _require_readable(
            event.__pydantic_serializer__.to_json(
                event, by_alias=False, round_trip=True, fallback=to_plain, include={field}
            )
        )
    except (PydanticSerializationError, ValueError):
        return False
    return True


def _generic_name(origin: type[Event], args: tuple[Any, ...]) -> str:
    return f"{event_name(origin)}_of_{'_and_'.join(_type_name(arg) for arg in args)}"


def _type_name(annotation: Any) -> str:
    """Name a type argument by its class names alone, so that every process finds the same name."""
    parts = members(annotation)
    if len(parts) > 1:
        return "_or_".join(_type_name(part) for part in parts)
    (kind,) = parts
    if kind is Ellipsis:
        return "more"
    if kind is type(None):
        return "none"
    if isinstance(kind, type) and issubclass(kind, Event):
        return event_name(kind)
    inner = [_type_name(arg) for arg in get_args(kind)]
    own = snake_case(re.sub(r"\W+", "_", getattr(get_origin(kind) or kind, "__name__", str(kind))))
    return "_of_".join([own, "_and_".join(inner)]) if inner else own
