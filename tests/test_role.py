"""The settings and names of roles, and what they refuse."""

from __future__ import annotations

import contextlib
from inspect import signature
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest
from pydantic import BaseModel

from swarmbus.errors import EventClassError, RoleError
from swarmbus.events import Event
from swarmbus.handlers import Retry, on
from swarmbus.role import SETTINGS, SWARM_SETTINGS, Role
from swarmbus.swarm import Swarm

if TYPE_CHECKING:
    from collections.abc import AsyncIterator


class Limit(NamedTuple):
    turns: int


class Executor(Role):
    """Carries out one step."""

    instructions = "Be brief."
    tools = (len,)
    concurrency = 8

    def __init__(self, store: dict[str, str] | None = None) -> None:
        self.store = store


def role_class(**attributes: Any) -> type[Role]:
    return type("Worker", (Role,), attributes)


def test_a_role_is_named_after_its_class_and_has_defaults() -> None:
    class HTTPReader(Role):
        pass

    role = HTTPReader()
    assert role.name == "http_reader"
    assert (role.instructions, role.tools, role.model, role.limits) == ("", (), None, None)
    assert (role.concurrency, role.history, role.retry, role.timeout) == (1, "delivery", None, None)


def test_a_class_can_name_itself_and_its_heirs_are_named_anew() -> None:
    class Worker(Role):
        name = "my-worker"

    class Better(Worker):
        pass

    assert (Worker().name, Better().name) == ("my-worker", "better")


def test_an_own_constructor_need_not_call_the_base() -> None:
    role = Executor({"a": "b"})
    assert (role.name, role.store) == ("executor", {"a": "b"})


def test_a_named_copy_has_its_own_settings() -> None:
    role = Executor({"a": "b"})
    reviewer = role.named("reviewer", concurrency=32, model="openai:x", retry=Retry(attempts=2))
    assert (reviewer.name, reviewer.concurrency, reviewer.model, reviewer.instructions) == (
        "reviewer",
        32,
        "openai:x",
        "Be brief.",
    )
    assert reviewer.store is role.store
    assert (role.name, role.concurrency, role.model) == ("executor", 8, None)
    assert isinstance(reviewer, Executor)


@pytest.mark.parametrize(
    ("name", "settings", "told"),
    [
        ("reviewer", {"concurency": 3}, "no setting 'concurency'.*did you mean `concurrency`"),
        ("reviewer", {"State": None}, "no setting 'State'"),
        ("reviewer", {"concurrency": 0}, "at least 1"),
        ("two words", {}, "letters, digits, _ and -"),
        ("external:x", {}, "letters, digits, _ and -"),
        ("client", {}, "letters, digits, _ and -"),
    ],
    ids=str,
)
def test_a_copy_that_can_not_be_is_refused(name: str, settings: dict[str, Any], told: str) -> None:
    with pytest.raises(RoleError, match=told):
        Executor().named(name, **settings)


@pytest.mark.parametrize(
    ("attribute", "meant"),
    [
        ("max_concurency", "concurrency"),
        ("concurency", "concurrency"),
        ("tool", "tools"),
        ("time_out", "timeout"),
        ("instruction", "instructions"),
        ("limit", "limits"),
        ("state", "State"),
    ],
)
def test_a_misspelt_setting_is_refused_when_the_class_is_made(attribute: str, meant: str) -> None:
    with pytest.raises(RoleError, match=rf"Worker\.{attribute} is no setting; did you mean `{meant}`"):
        role_class(**{attribute: 4})
    with pytest.raises(RoleError, match="did you mean"):
        role_class(__annotations__={attribute: "int"})


@pytest.mark.parametrize(
    ("attribute", "place"),
    [
        ("budget", r"in `Swarm\(\.\.\., budget=\.\.\.\)`\."),
        ("turns", r"in `limits = Limits\(turns=\.\.\.\)`\."),
        ("tool_timeout", r"in `limits = Limits\(tool_timeout=\.\.\.\)`\."),
        ("calls", r"in `Swarm\(\.\.\., budget=Budget\(calls=\.\.\.\)\)`\."),
        ("tokens", r"in `limits = Limits\(tokens=\.\.\.\)` or `Swarm\(\.\.\., budget=Budget\(tokens=\.\.\.\)\)`\."),
        ("attempts", r"in `retry = Retry\(attempts=\.\.\.\)`\."),
        ("grace", r"in `swarm\.open\(grace=\.\.\.\)`\."),
        ("deadline", r"in `@join\(\.\.\., deadline=\.\.\.\)`\."),
    ],
)
def test_a_setting_that_belongs_elsewhere_is_refused(attribute: str, place: str) -> None:
    with pytest.raises(RoleError, match=rf"Worker\.{attribute} is no setting of a role.*; it belongs {place}"):
        role_class(**{attribute: 4})
    with pytest.raises(RoleError, match=rf"no setting '{attribute}'; it belongs in `"):
        Executor().named("reviewer", **{attribute: 4})


def test_every_setting_of_a_swarm_is_one_of_a_role_or_said_to_belong_there() -> None:
    options = {name for name, option in signature(Swarm).parameters.items() if option.kind is option.KEYWORD_ONLY}
    assert options - set(SETTINGS) == set(SWARM_SETTINGS)


def test_attributes_and_methods_of_its_own_are_fine() -> None:
    own = {"_tool": 3, "limit": lambda self: 3, "budget": property(lambda self: 3), "_turns": 3}
    cls = role_class(separator="-", store=None, prompt="x", Item=int, __annotations__={"calls": "int"}, **own)
    assert cls().separator == "-"  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"concurrency": 0}, "at least 1"),
        ({"concurrency": 1.5}, "at least 1"),
        ({"history": "forever"}, '"delivery" or "run"'),
        ({"timeout": -1}, "positive number of seconds"),
        ({"timeout": "5"}, "positive number of seconds"),
        ({"retry": 3}, r"Retry\(attempts=3\)"),
        ({"tools": len}, "tuple of tools"),
        ({"name": "a b"}, "letters, digits, _ and -"),
        ({"model": 3}, "or the name of one such as"),
        ({"limits": 3}, r"Limits\(turns=5\)"),
        ({"instructions": 3}, "a text, or a function"),
        ({"tools": (3,)}, "tuple of tools"),
        ({"State": dict}, r"class State\(BaseModel, frozen=True\)"),
        ({"State": type("State", (BaseModel,), {})}, r"class State\(BaseModel, frozen=True\)"),
    ],
    ids=str,
)
def test_a_setting_that_can_not_be_is_refused(settings: dict[str, Any], told: str) -> None:
    with pytest.raises(RoleError, match=told):
        role_class(**settings)


@pytest.mark.parametrize("kind", [staticmethod, classmethod])
def test_a_handler_is_an_ordinary_method(kind: Any) -> None:
    @on
    async def work(self: Role, event: Event) -> None: ...

    with pytest.raises(RoleError, match=rf"Worker\.work is a {kind.__name__}; a handler is an ordinary method"):
        role_class(work=kind(work))


def test_a_state_can_be_made_without_values() -> None:
    class State(BaseModel, frozen=True):
        seen: int

    with pytest.raises(RoleError, match=r"Worker\.State\.seen has no default; a run begins with State\(\)"):
        role_class(State=State)


def test_a_state_holds_nothing_that_can_be_changed() -> None:
    with pytest.raises(EventClassError, match=r"State\.seen can't be a list\[int\].*use tuple"):

        class Counter(Role):
            class State(BaseModel, frozen=True):
                seen: list[int] = []


def test_no_attribute_is_set_while_the_role_runs() -> None:
    role = Executor()
    role.store = {}
    role._open += 1
    with pytest.raises(RoleError, match=r"executor\.store can't be set while the role is running.*use State"):
        role.store = {"a": "b"}
    twin = role.named("twin")
    twin.store = None
    role._open -= 1
    role.store = {"c": "d"}
    assert (role.store, twin.store) == ({"c": "d"}, None)


@pytest.mark.anyio
async def test_a_role_holds_resources_while_it_is_open() -> None:
    events = []

    class Reader(Role):
        @contextlib.asynccontextmanager
        async def lifespan(self) -> AsyncIterator[None]:
            events.append("opened")
            yield
            events.append("closed")

    async with Reader().lifespan():
        events.append("used")
    assert events == ["opened", "used", "closed"]
    async with Executor().lifespan():
        pass
