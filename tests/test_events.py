"""Names, immutability, and the way to JSON and back."""

from __future__ import annotations

import dataclasses
import datetime as dt
import decimal
import enum
import math
import pathlib
import re
import socket
import subprocess
import sys
import timeit
import uuid
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, Generic, Literal, NamedTuple, NewType, TypedDict, TypeVar

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import (
    AnyUrl,
    BaseModel,
    ConfigDict,
    Field,
    PrivateAttr,
    SecretStr,
    ValidationError,
    computed_field,
    model_serializer,
)
from typing_extensions import TypeAliasType

from swarmbus.errors import EventClassError, EventEncodingError
from swarmbus.events import Event, HandlerFailed, event_name, event_version, from_json, snake_case, to_json
from swarmbus.frozen import FrozenDict

T = TypeVar("T")


class Level(enum.Enum):
    NUMBER = 1
    TEXT = "1"


class Color(enum.Enum):
    RED = "red"


class Ratio(enum.Enum):
    HALF = (1, 2)


UserId = NewType("UserId", int)
Several = TypeAliasType("Several", tuple[T, ...], type_params=(T,))


class Corner(NamedTuple):
    x: int
    y: int


@dataclasses.dataclass(frozen=True)
class Size:
    width: int


class Base(BaseModel, frozen=True):
    a: int


@dataclasses.dataclass(frozen=True)
class Stay:
    since: dt.datetime
    tags: frozenset[str] = frozenset()


class Child(Base, frozen=True):
    b: int


class Circle(BaseModel, frozen=True):
    kind: Literal["circle"] = "circle"
    size: int


class Square(BaseModel, frozen=True):
    kind: Literal["square"] = "square"
    size: int


Shape = TypeAliasType("Shape", Annotated[Circle | Square, Field(discriminator="kind")])


class Triangle(Circle, frozen=True):
    pass


class Noted(BaseModel, frozen=True):
    """A model that is no event, with fields that need a look at their values."""

    level: float = 0
    at: dt.datetime | None = None
    more: Any = None
    data: bytes = b""
    levels: tuple[float, ...] = ()
    base: Base | None = None


class Thawed(BaseModel):
    a: int


class Movement(TypedDict):
    x: int


class Result(Event, Generic[T], version=3):
    value: T


class Measured(Event):
    name: str
    count: int
    level: float


def holding(annotation: Any, **config: Any) -> Any:
    """Make an event class with one field."""
    return type("Held", (Event,), {"__annotations__": {"value": annotation}, "__module__": __name__, **config})


def there_and_back(event: Any) -> Any:
    return from_json(type(event), to_json(event))


@pytest.mark.parametrize(
    ("class_name", "name"),
    [
        ("TaskPlanned", "task_planned"),
        ("HTTPRequestDone", "http_request_done"),
        ("Step2Done", "step2_done"),
        ("HTTP2Done", "http2_done"),
        ("StepDoneV2", "step_done_v2"),
        ("URL", "url"),
        ("A", "a"),
        ("Already_Snake", "already_snake"),
        ("_Private", "private"),
        ("ÜberPrüft", "über_prüft"),
    ],
)
def test_a_class_name_has_one_form_on_the_wire(class_name: str, name: str) -> None:
    assert snake_case(class_name) == name
    assert event_name(type(class_name, (Event,), {})) == name


def test_name_and_version_can_be_set_and_are_not_inherited() -> None:
    class Renamed(Event, name="other", version=2):
        pass

    class Heir(Renamed):
        pass

    assert (event_name(Renamed), event_version(Renamed)) == ("other", 2)
    assert (event_name(Heir()), event_version(Heir)) == ("heir", 1)


def test_an_event_has_no_public_attributes_of_its_own() -> None:
    assert {name for name in dir(Event) if not name.startswith("_")} == {
        name for name in dir(BaseModel) if not name.startswith("_")
    }


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"name": "two words"}, "can't name"),
        ({"name": ""}, "can't name"),
        ({"version": 0}, "versions count from 1"),
        ({"version": "2"}, "versions count from 1"),
        ({"version": True}, "versions count from 1"),
        ({"name": 5}, "5 can't name"),
        ({"vesion": 2}, "no option vesion"),
        ({"frozen": False}, "must stay frozen"),
        ({"extra": "allow"}, "fields without a type"),
    ],
    ids=str,
)
def test_options_that_can_not_be_are_refused(options: dict[str, Any], told: str) -> None:
    with pytest.raises(EventClassError, match=told):
        type("Odd", (Event,), {}, **options)


@pytest.mark.parametrize(
    ("annotation", "remedy"),
    [
        (list[int], r"use tuple\[int, \.\.\.\]"),
        (list, r"use tuple\[Any, \.\.\.\]"),
        (Sequence[int], r"use tuple\[int, \.\.\.\]"),
        (dict[str, int], r"use FrozenDict\[str, int\]"),
        (dict, r"use FrozenDict\[str, Any\]"),
        (Mapping[str, int], r"use FrozenDict\[str, int\]"),
        (set[int], r"use frozenset\[int\]"),
        (bytearray, "use bytes"),
        (tuple[list[int], ...], r"use tuple\[int, \.\.\.\]"),
        (FrozenDict[str, list[int]], r"use tuple\[int, \.\.\.\]"),
        (int | list[int], r"use tuple\[int, \.\.\.\]"),
        (list[dict[str, list[str]]], r"use tuple\[FrozenDict\[str, tuple\[str, \.\.\.\]\], \.\.\.\]"),
        (list[tuple[int, str]], r"use tuple\[tuple\[int, str\], \.\.\.\]"),
        (Thawed, "frozen=True"),
        (tuple[Thawed, ...] | None, "frozen=True"),
        (dataclasses.make_dataclass("Loose", [("a", int)]), r"@dataclass\(frozen=True\)"),
        (dataclasses.make_dataclass("Half", [("a", list[int])], frozen=True), "tuple"),
        (Movement, "frozen model"),
        (Callable[[], int], "plain value"),
        (type[int], "plain value"),
        (socket.socket, "can't carry it"),
        (SecretStr, "keep secrets in deps"),
    ],
    ids=str,
)
def test_what_can_be_changed_or_lost_is_refused_with_the_remedy(annotation: Any, remedy: str) -> None:
    with pytest.raises(EventClassError, match=rf"Held\.value.*{remedy}"):
        holding(annotation)


def test_a_frozen_model_that_holds_something_mutable_is_refused_too() -> None:
    class Holder(BaseModel, frozen=True):
        items: list[int]

    with pytest.raises(EventClassError, match=r"Holder\.items can't be a list\[int\]"):
        holding(tuple[Holder, ...])


def test_private_attributes_serializers_and_excluded_fields_are_refused() -> None:
    with pytest.raises(EventClassError, match="private attributes"):
        type("Odd", (Event,), {"_cache": PrivateAttr(0)})
    with pytest.raises(EventClassError, match="serializer of its own"):
        type("Odd", (Event,), {"_write": model_serializer()(lambda self: "odd")})
    with pytest.raises(EventClassError, match="excluded from JSON"):
        holding(int, value=Field(exclude=True))


def test_a_class_with_a_name_that_comes_later_is_refused_when_the_name_is_there() -> None:
    class Early(Event):
        later: Later | None = None

    class Later(BaseModel, frozen=True):
        items: list[int]

    with pytest.raises(EventClassError, match=r"Later\.items"):
        Early.model_rebuild()


def test_an_event_that_refers_to_itself_works() -> None:
    class Tree(Event):
        name: str
        children: tuple[Tree, ...] = ()

    Tree.model_rebuild()
    tree = Tree(name="a", children=(Tree(name="b"),))
    assert there_and_back(tree) == tree


def test_an_event_can_not_be_changed() -> None:
    event = Measured(name="a", count=1, level=0.5)
    with pytest.raises(ValidationError, match="frozen"):
        event.count = 2
    assert event.count == 1


def test_a_misspelt_field_is_refused() -> None:
    with pytest.raises(ValidationError, match="coutn"):
        Measured(name="a", count=1, level=0.5, coutn=2)  # type: ignore[call-arg]


@pytest.mark.parametrize(
    ("annotation", "value"),
    [
        (str, "text"),
        (bytes, b"\xff\x00"),
        (float, 1e300),
        (int | float, 2.0),
        (decimal.Decimal, decimal.Decimal("1.10")),
        (complex, 1 + 2j),
        (dt.datetime, dt.datetime(2026, 1, 2, 3, 4, 5, 6, tzinfo=dt.UTC)),
        (dt.date, dt.date(2026, 1, 2)),
        (dt.time, dt.time(3, 4)),
        (dt.timedelta, dt.timedelta(days=3, microseconds=5)),
        (uuid.UUID, uuid.UUID(int=7)),
        (pathlib.Path, pathlib.Path("a/b")),
        (Color, Color.RED),
        (Corner, Corner(1, 2)),
        (Size, Size(3)),
        (Base, Base(a=1)),
        (Base | None, None),
        (tuple[int, str], (1, "a")),
        (tuple[Base, ...], (Base(a=1),)),
        (frozenset[int], frozenset({1, 2})),
        (FrozenDict[str, Base], FrozenDict({"x": Base(a=1)})),
        (FrozenDict[int, str], FrozenDict({1: "x"})),
        (Literal["a", 1], 1),
        (Circle | Square, Square(size=1)),
        (Annotated[Circle | Square, Field(discriminator="kind")], Square(size=1)),
        (tuple[Annotated[Circle | Square, Field(discriminator="kind")], ...], (Square(size=1), Circle(size=2))),
        (Measured, Measured(name="a", count=1, level=2)),
        (str | uuid.UUID, "text"),
        (UserId, UserId(3)),
        (Shape, Square(size=1)),
        (Shape | None, None),
        (Several[int], (1, 2)),
        (Stay, Stay(dt.datetime(2026, 1, 1, tzinfo=dt.UTC), frozenset({"x"}))),
        (Noted, Noted()),
        (Noted, Noted(data=b"abcd", levels=(1.0, 2.0), base=Base(a=1))),
        (float | Base | Color, 3.0),
        (Noted, Noted(level=0.5, at=dt.datetime(2026, 1, 1, tzinfo=dt.UTC), more="x")),
        (tuple[Any, ...], (1, "a")),
        (tuple[dt.datetime, str], (dt.datetime(2026, 1, 1, tzinfo=dt.UTC), "a")),
        (FrozenDict[str, Any], FrozenDict({"a": (1,)})),
        (FrozenDict[str, dt.datetime], FrozenDict({"a": dt.datetime(2026, 1, 1, tzinfo=dt.UTC)})),
        (FrozenDict[Color, int], FrozenDict({Color.RED: 1})),
        (FrozenDict[int | str, int], FrozenDict({"1": 1, "x": 2})),
        (FrozenDict[Level, int], FrozenDict({Level.TEXT: 1})),
        (re.Pattern[str], re.compile("a+")),
        (AnyUrl, AnyUrl("https://example.org/")),
    ],
    ids=lambda value: str(value)[:40],
)
def test_a_value_comes_back_from_json_with_its_exact_type(annotation: Any, value: Any) -> None:
    event = holding(annotation)(value=value)
    back = there_and_back(event)
    assert back == event
    assert type(back.value) is type(value)


@pytest.mark.parametrize(
    ("annotation", "value", "told"),
    [
        (float, math.nan, "finite"),
        (tuple[float, ...], (1.0, math.inf), "finite"),
        (dt.datetime, dt.datetime(2026, 1, 1), "time zone"),  # noqa: DTZ001 - that is the point
        (tuple[dt.datetime, ...], (dt.datetime(2026, 1, 1),), "time zone"),  # noqa: DTZ001
        (dt.datetime | None, dt.datetime(2026, 1, 1), "time zone"),  # noqa: DTZ001
        (Base, Child(a=1, b=2), "holds a Child.*back as Base.*discriminated union"),
        (tuple[Base, ...], (Child(a=1, b=2),), "holds a Child"),
        (FrozenDict[str, Base], FrozenDict({"x": Child(a=1, b=2)}), "holds a Child"),
        (Base | int, Child(a=1, b=2), "holds a Child"),
        (str | uuid.UUID, str(uuid.UUID(int=1)), "holds a str.*back as UUID"),
        (tuple[Any, ...], ({1},), "holds a set"),
        (tuple[dt.datetime, str], (dt.datetime(2026, 1, 1), "a"), "time zone"),  # noqa: DTZ001
        (FrozenDict[str, dt.datetime], {"a": dt.datetime(2026, 1, 1)}, "time zone"),  # noqa: DTZ001
        (FrozenDict[tuple[int, int], str], {(1, 2): "a"}, "does not survive JSON"),
        (FrozenDict[int | str, int], {1: 1}, "holds a int, which JSON would bring back as str"),
        (FrozenDict[str | int, int], {1: 1, "1": 2}, "JSON would bring back"),
        (tuple[FrozenDict[bool | str, int], ...], ({True: 1},), "holds a bool"),
        (FrozenDict[Level, int], {Level.NUMBER: 1}, "JSON would bring back as <Level.TEXT"),
        (
            Annotated[Circle | Square, Field(discriminator="kind")],
            Triangle(size=1),
            "holds a Triangle.*list it",
        ),
        (Stay, Stay(dt.datetime(2026, 1, 1)), "time zone"),  # noqa: DTZ001
        (Noted, Noted(level=math.nan), "holds nan"),
        (Noted, Noted(at=dt.datetime(2026, 1, 1)), "time zone"),  # noqa: DTZ001
        (Noted, Noted(more=[1]), "has a more in which JSON would bring back a list as another type"),
        (Noted, Noted(more=(1,)), "has a more in which JSON would bring back a tuple as another type"),
        (Noted, Noted(more=lambda: 1), "holds a function"),
        (Noted, Noted(data=b"\xff"), "decode"),
        (Noted, Noted(levels=(1.0, math.inf)), "holds inf"),
        (Noted, Noted(base=Child(a=1, b=2)), "holds a Child"),
        (int | Color | str, Color.RED, "holds a Color, which JSON would bring back as str"),
        (Ratio, Ratio.HALF, "does not survive JSON"),
        (Any, {1, 2}, "holds a set"),
        (Any, b"x", "holds a bytes"),
        (Any, pathlib.Path("x"), "holds a PosixPath"),
        (Any, decimal.Decimal(1), "holds a Decimal"),
        (Any, lambda: 1, "holds a function"),
        (Any, math.nan, "no number in JSON"),
        (Any, {1: "a"}, "keys are strings"),
        (Any, [{"deep": {2}}], "holds a set"),
        (object, dt.date(2026, 1, 1), "holds a date"),
    ],
    ids=lambda value: str(getattr(value, "__name__", value))[:40],
)
def test_a_value_that_would_come_back_as_another_is_refused(annotation: Any, value: Any, told: str) -> None:
    with pytest.raises(ValidationError, match=told) as caught:
        holding(annotation)(value=value)
    assert "value" in str(caught.value)


def test_a_socket_in_a_field_of_type_any_is_refused_by_name() -> None:
    with socket.socket() as connection, pytest.raises(ValidationError, match=r"Held\.value holds a socket"):
        holding(Any)(value=connection)


def test_two_models_that_look_alike_are_told_apart_or_refused() -> None:
    class Cat(BaseModel, frozen=True):
        name: str

    class Dog(BaseModel, frozen=True):
        name: str

    held = holding(Cat | Dog)
    assert there_and_back(held(value=Cat(name="a"))) == held(value=Cat(name="a"))
    with pytest.raises(ValidationError, match="holds a Dog, which JSON would bring back as Cat"):
        held(value=Dog(name="a"))


def test_a_field_of_type_any_carries_frozen_json() -> None:
    event = holding(Any)(value=[1, {"a": [True, None]}])
    assert event.value == (1, FrozenDict({"a": (True, None)}))
    assert there_and_back(event) == event
    assert event.model_dump_json() == '{"value":[1,{"a":[true,null]}]}'
    assert hash(event) == hash(there_and_back(event))


def test_a_value_that_holds_itself_is_refused() -> None:
    value: list[Any] = []
    value.append(value)
    with pytest.raises(ValidationError, match="holds itself"):
        holding(Any)(value=value)


def test_computed_fields_are_not_written() -> None:
    class Summed(Event):
        parts: tuple[int, ...]

        @computed_field  # type: ignore[prop-decorator]
        @property
        def total(self) -> int:
            return sum(self.parts)

    event = Summed(parts=(1, 2))
    assert to_json(event) == b'{"parts":[1,2]}'
    assert there_and_back(event).total == 3
    assert Summed.model_validate_json(event.model_dump_json()) == event


@pytest.mark.parametrize("offset", [dt.timedelta(minutes=19, seconds=32), dt.timedelta(microseconds=1)], ids=str)
def test_a_time_whose_zone_json_can_not_tell_is_refused(offset: dt.timedelta) -> None:
    with pytest.raises(ValidationError, match="JSON tells minutes only"):
        holding(dt.datetime)(value=dt.datetime(1930, 1, 1, tzinfo=dt.timezone(offset)))


def test_a_time_zone_keeps_its_instant() -> None:
    class Seen(Event):
        at: dt.datetime

    event = Seen(at=dt.datetime(2026, 7, 1, 12, tzinfo=dt.timezone(dt.timedelta(hours=2))))
    assert there_and_back(event) == event


def test_what_is_given_as_a_list_or_dict_becomes_immutable() -> None:
    class Gathered(Event):
        parts: tuple[int, ...]
        counts: FrozenDict[str, int]

    event = Gathered(parts=[1, 2], counts={"a": 1})  # type: ignore[arg-type]
    assert event.parts == (1, 2)
    assert event.counts == FrozenDict({"a": 1})


def test_a_copy_is_validated() -> None:
    event = Measured(name="a", count=1, level=0.5)
    assert event.model_copy(update={"count": 2}) == Measured(name="a", count=2, level=0.5)
    with pytest.raises(ValidationError, match="finite"):
        event.model_copy(update={"level": math.nan})


def nested(depth: int) -> object:
    value: object = 1
    for _ in range(depth):
        value = [value]
    return value


class Branch(Event):
    parts: tuple[Branch, ...] = ()
    note: Any = None


def branch(depth: int) -> Branch:
    grown = Branch()
    for _ in range(depth):
        grown = Branch(parts=(grown,))
    return grown


@pytest.mark.parametrize(
    ("event", "field"),
    [
        (lambda: Measured(name="\ud800", count=1, level=0.5), "name"),
        (lambda: Measured(name="a", count=10**5000, level=0.5), "count"),
        (lambda: Branch(note="\ud800"), "note"),
        (lambda: Branch(note={"\ud800": 1}), "note"),
        (lambda: Branch(note=nested(260)), "note"),
        (lambda: Branch(note=nested(210)), "note"),
        (lambda: branch(300), "parts"),
        (lambda: branch(110), "parts"),
        (lambda: holding(FrozenDict[str, int])(value={"\ud800": 1}), "value"),
        (lambda: holding(frozenset[str])(value={"\ud800"}), "value"),
        (lambda: holding(pathlib.Path)(value=pathlib.Path("caf\udce9")), "value"),
    ],
    ids=[
        "surrogate",
        "digits",
        "any",
        "any key",
        "deep",
        "too deep to read",
        "parts",
        "parts to read",
        "key",
        "set",
        "path",
    ],
)
def test_what_json_can_not_carry_is_an_error_that_names_the_field(event: Callable[[], Event], field: str) -> None:
    made = event()
    with pytest.raises(EventEncodingError, match=rf"{type(made).__name__}\.{field} can't be written to JSON") as caught:
        to_json(made)
    assert (caught.value.event, caught.value.field) == (event_name(made), field)


def test_much_that_lies_side_by_side_is_not_too_deep() -> None:
    wide = Branch(parts=tuple(branch(90) for _ in range(50)), note=nested(190))
    assert there_and_back(wide) == wide


@pytest.mark.parametrize(
    ("data", "field"),
    [
        (b'{"name":"a","level":1}', "count"),
        (b'{"name":"a","count":"x","level":1}', "count"),
        (b"[]", None),
        (b"{", None),
    ],
    ids=["missing", "wrong", "no object", "no json"],
)
def test_json_that_is_no_such_event_is_an_error_that_names_the_field(data: bytes, field: str | None) -> None:
    with pytest.raises(EventEncodingError, match="no Measured") as caught:
        from_json(Measured, data)
    assert caught.value.field == field


def test_fields_that_a_class_no_longer_has_are_dropped() -> None:
    class Outer(Event):
        inner: Measured

    data = b'{"inner":{"name":"a","count":1,"level":0.5,"old":1},"older":2}'
    assert from_json(Outer, data) == Outer(inner=Measured(name="a", count=1, level=0.5))


def test_aliases_are_for_construction_alone() -> None:
    class Aliased(Event):
        from_: str = Field(alias="from")

    event = Aliased.model_validate({"from": "a"})
    assert to_json(event) == b'{"from_":"a"}'
    assert there_and_back(event) == event
    assert event.model_copy(update={"from_": "b"}).from_ == "b"


@pytest.mark.parametrize(
    ("cls", "name"),
    [
        (Result[int], "result_of_int"),
        (Result[Measured], "result_of_measured"),
        (Result[int | None], "result_of_int_or_none"),
        (Result[tuple[int, ...]], "result_of_tuple_of_int_and_more"),
        (Result[Result[str]], "result_of_result_of_str"),
    ],
    ids=str,
)
def test_a_parametrised_event_is_named_after_its_arguments(cls: type[Event], name: str) -> None:
    assert event_name(cls) == name
    assert event_version(cls) == 3


def test_parametrised_names_are_equal_in_a_fresh_process() -> None:
    code = (
        "from typing import Generic, TypeVar\n"
        "from swarmbus.events import Event, event_name\n"
        "T = TypeVar('T')\n"
        "class Result(Event, Generic[T]):\n    value: T\n"
        "print(event_name(Result[str]), event_name(Result[int]))"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.split() == ["result_of_str", event_name(Result[int])]


def test_parametrised_events_are_their_own_classes_below_the_open_one() -> None:
    assert Result in Result[int].__mro__
    assert Result[str] not in Result[int].__mro__
    assert there_and_back(Result[int](value=1)) == Result[int](value=1)
    assert there_and_back(Result(value=[1])) == Result(value=(1,))


def test_names_do_not_depend_on_the_module() -> None:
    moved = type("Measured", (Event,), {"__module__": "__main__"})
    assert event_name(moved) == event_name(Measured)


def test_a_class_can_be_written_before_a_name_that_it_uses() -> None:
    class Early(Event):
        later: Soon | None = None

    class Soon(BaseModel, frozen=True):
        count: int

    Early.model_rebuild()
    assert there_and_back(Early(later=Soon(count=1))) == Early(later=Soon(count=1))


def test_a_copy_without_changes_is_equal() -> None:
    event = Measured(name="a", count=1, level=0.5)
    assert event.model_copy() == event


def test_the_framework_says_which_delivery_failed() -> None:
    event = HandlerFailed(
        role="executor", handler="work", event="task_planned", event_id="r-1", attempt=3, error_type="E", message="m"
    )
    assert (event.item, event.key) == (None, None)
    assert event_name(event) == "handler_failed"


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**60), 2**60) | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(st.characters(exclude_categories=["Cs"])), inner),
    max_leaves=10,
)  # fmt: skip

ANYTHING = holding(Any)


@given(JSON_VALUES)
def test_any_json_value_comes_back_as_it_was(value: Any) -> None:
    event = ANYTHING(value=value)
    assert there_and_back(event) == event


class Everything(Event):
    text: str
    data: bytes
    at: dt.datetime
    took: dt.timedelta
    ids: frozenset[uuid.UUID]
    shape: Annotated[Circle | Square, Field(discriminator="kind")]
    levels: FrozenDict[str, float]
    amount: decimal.Decimal


@given(st.from_type(Circle) | st.from_type(Square), st.data())
def test_every_supported_kind_comes_back_as_it_was(shape: Any, data: st.DataObject) -> None:
    plain = st.text(st.characters(exclude_categories=["Cs"]))
    event = Everything(
        text=data.draw(plain),
        data=data.draw(st.binary()),
        at=data.draw(st.datetimes(min_value=dt.datetime(1700, 1, 1), timezones=st.just(dt.UTC))),  # noqa: DTZ001
        took=data.draw(st.timedeltas(dt.timedelta(-9999), dt.timedelta(9999))),
        ids=frozenset(data.draw(st.lists(st.uuids(), max_size=3))),
        shape=shape,
        levels=FrozenDict(
            data.draw(st.dictionaries(plain, st.floats(allow_nan=False, allow_infinity=False), max_size=3))
        ),
        amount=data.draw(st.decimals(allow_nan=False, allow_infinity=False)),
    )
    assert there_and_back(event) == event


def test_an_event_of_simple_fields_costs_little_more_than_its_pydantic_model() -> None:
    class Plain(BaseModel):
        model_config = ConfigDict(frozen=True)
        name: str
        count: int
        level: float

    def cost(cls: Any) -> float:
        return min(timeit.repeat(lambda: cls(name="a", count=1, level=0.5), number=2_000, repeat=15))

    assert cost(Measured) < 2 * cost(Plain)
