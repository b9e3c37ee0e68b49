"""The base class of roles: a name, settings, resources, and methods that handle events.

A role never holds the bus. What its handlers accept and publish is read in `wiring`; running them is for assembly
and delivery.
"""

from __future__ import annotations

import copy
import inspect
import re
from collections.abc import Callable
from contextlib import asynccontextmanager
from dataclasses import fields
from typing import TYPE_CHECKING, Any, Literal

from pydantic import BaseModel

from swarmbus.arguments import is_async, seconds
from swarmbus.errors import RoleError
from swarmbus.events import snake_case
from swarmbus.fields import compile_guards
from swarmbus.handlers import Retry, spec_of
from swarmbus.text import did_you_mean, near_match
from swarmbus.thinking.limits import Budget, Limits
from swarmbus.thinking.models.base import MODEL_WANTED, is_model

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence
    from typing import Self

    from swarmbus.role_context import RoleContext
    from swarmbus.thinking.models.base import Model

SETTINGS = ("instructions", "tools", "model", "limits", "concurrency", "history", "State", "retry", "timeout")
"""The class attributes that mean something to swarmbus; `named` takes all of them but `State`."""

SWARM_SETTINGS = ("table", "budget", "deps", "journal", "transport", "clock")
"""The settings that a swarm has and no role."""

_PLACES = (
    (SWARM_SETTINGS, "`Swarm(..., {}=...)`"),
    ([field.name for field in fields(Limits)], "`limits = Limits({}=...)`"),
    ([field.name for field in fields(Budget)], "`Swarm(..., budget=Budget({}=...))`"),
    ([field.name for field in fields(Retry)], "`retry = Retry({}=...)`"),
    (("grace",), "`swarm.open({}=...)`"),
    (("deadline",), "`@join(..., {}=...)`"),
)
"""Where settings belong that some have tried to give a role."""

_NAME = re.compile(r"\w+(?:-\w+)*")
_RESERVED = ("client", "system", "external")


class Role:
    """Handles events: subclass it, give it settings and methods decorated with `@on` or `@join`.

    A role object is shared by all runs, so that no attribute may be set while it is running: what has to be
    remembered within a run belongs into a nested frozen model `State`, taken as a parameter. A subclass's
    `__init__` need not call `super().__init__()`. The docstring is documentation and never a prompt.

    Attributes:
        name: how the event table calls it; the class name in snake_case unless set.
        instructions: the system prompt of its agent, or a function from the context to it.
        tools: exactly the tools that its agent has.
        model: the model of its agent, or the name of one; None for the swarm's.
        limits: of its agent; None for the swarm's.
        concurrency: how many deliveries it handles at a time, over all runs of the process; from 1.
        history: whether its agent remembers within one delivery, or over all deliveries of a run, which are then
            handled one at a time; what a delivery adds is remembered once it is handled.
        retry: when a failed delivery is attempted again, unless the handler says so; None for the swarm's.
        timeout: seconds for one attempt, unless the handler says so; None for the swarm's.

    Raises:
        RoleError: a class attribute that looks like a misspelt setting, a setting that belongs elsewhere, such as
            `turns`, or one that can't be.
    """

    name: str = "role"
    instructions: str | Callable[[RoleContext[Any, Any]], str] = ""
    tools: Sequence[Any] = ()
    model: Model | str | None = None
    limits: Limits | None = None
    concurrency: int = 1
    history: Literal["delivery", "run"] = "delivery"
    retry: Retry | None = None
    timeout: float | None = None

    _open: int = 0  # swarms that run it now

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if "name" not in vars(cls):
            cls.name = snake_case(cls.__name__)
        _refuse_misspelt(cls)
        _refuse_unbound(cls)
        check_settings(cls)

    def __repr__(self) -> str:
        return f"<role {self.name}>"

    def __setattr__(self, attribute: str, value: Any) -> None:
        if self._open and attribute != "_open":
            raise RoleError(
                f"{self.name}.{attribute} can't be set while the role is running, for it is shared by all runs; "
                f"use State: a nested frozen model, changed with ctx.update({attribute}=...)"
            )
        super().__setattr__(attribute, value)

    def named(self, name: str, **settings: Any) -> Self:
        """Return a copy under another name, with some settings changed.

        Raises:
            RoleError: a setting that does not exist, or that can't be.
        """
        allowed = [setting for setting in SETTINGS if setting != "State"]
        for setting in settings:
            if setting not in allowed:
                told = _belongs(setting) or did_you_mean(setting, allowed)
                raise RoleError(f"{self.name} has no setting {setting!r}{told}; there are {', '.join(allowed)}")
        twin = copy.copy(self)
        twin.__dict__.pop("_open", None)
        for setting, value in {"name": name, **settings}.items():
            object.__setattr__(twin, setting, value)
        check_settings(twin)
        return twin

    @asynccontextmanager
    async def lifespan(self) -> AsyncIterator[None]:
        """Hold the role's resources while a swarm is open; override it to open and close them."""
        yield


def _refuse_misspelt(cls: type[Role]) -> None:
    own = {**inspect.get_annotations(cls), **vars(cls)}
    for attribute, value in own.items():
        if attribute.startswith("_") or attribute in SETTINGS or attribute == "name":
            continue
        if inspect.isroutine(value) or hasattr(value, "__get__"):
            continue
        if attribute in vars(cls) and (told := _belongs(attribute)):
            raise RoleError(
                f"{cls.__name__}.{attribute} is no setting of a role, and would be ignored{told}. "
                f"(An attribute of your own needs another name, or an underscore before it.)"
            )
        if match := near_match(attribute, SETTINGS, 0.75):
            raise RoleError(
                f"{cls.__name__}.{attribute} is no setting; did you mean `{match}`? "
                f"(An attribute of your own needs a name less like it, or an underscore before it.)"
            )


def _belongs(setting: str) -> str:
    """Say where a setting belongs that is none of a role; of an unknown one, nothing."""
    places = [place.format(setting) for settings, place in _PLACES if setting in settings]
    return f"; it belongs in {' or '.join(places)}" if places else ""


def _refuse_unbound(cls: type[Role]) -> None:
    for attribute, value in vars(cls).items():
        if isinstance(value, (staticmethod, classmethod)) and spec_of(value.__func__) is not None:
            kind = type(value).__name__
            raise RoleError(f"{cls.__name__}.{attribute} is a {kind}; a handler is an ordinary method: drop @{kind}")


def check_settings(role: Any) -> None:
    """Refuse settings that a role, or a class of roles, can't have.

    Raises:
        RoleError: says which, and what it has to be.
    """
    owner = role.__name__ if isinstance(role, type) else type(role).__name__
    for setting, fits, wanted in _CHECKS:
        value = getattr(role, setting, None)
        if not fits(value):
            raise RoleError(f"{owner}.{setting} is {value!r}; it has to be {wanted}")
    state = getattr(role, "State", None)
    if state is not None:
        compile_guards(state)
        for field, info in state.model_fields.items():
            if info.is_required():
                raise RoleError(f"{owner}.State.{field} has no default; a run begins with State(), so give it one")


def _is_tool(value: Any) -> bool:
    return callable(value) or hasattr(value, "name")


def _is_state(value: Any) -> bool:
    return value is None or (
        isinstance(value, type) and issubclass(value, BaseModel) and bool(value.model_config.get("frozen"))
    )


_CHECKS: tuple[tuple[str, Callable[[Any], bool], str], ...] = (
    (
        "name",
        lambda value: isinstance(value, str) and bool(_NAME.fullmatch(value)) and value not in _RESERVED,
        f"letters, digits, _ and -, and none of {', '.join(_RESERVED)}",
    ),
    (
        "instructions",
        lambda value: isinstance(value, str) or (callable(value) and not is_async(value)),
        "a text, or a function from the context to one, not async",
    ),
    (
        "tools",
        lambda value: isinstance(value, (tuple, list)) and all(map(_is_tool, value)),
        "a tuple of tools, such as (search,)",
    ),
    ("model", lambda value: value is None or isinstance(value, str) or is_model(value), f"{MODEL_WANTED}, or None"),
    ("limits", lambda value: value is None or isinstance(value, Limits), "Limits, such as Limits(turns=5), or None"),
    ("concurrency", lambda value: isinstance(value, int) and value >= 1, "a number of deliveries, at least 1"),
    ("history", lambda value: value in ("delivery", "run"), '"delivery" or "run"'),
    ("retry", lambda value: value is None or isinstance(value, Retry), "a Retry, such as Retry(attempts=3), or None"),
    (
        "timeout",
        lambda value: value is None or (isinstance(value, (int, float)) and seconds(value) > 0),
        "a positive number of seconds, or None",
    ),
    ("State", _is_state, "a frozen model: class State(BaseModel, frozen=True)"),
)
"""For each setting, what it has to be, as a test and in words."""
