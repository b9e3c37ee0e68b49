"""Which model each role of a swarm asks: chosen from the settings, checked before the run, made when first asked."""

from __future__ import annotations

import dis
import inspect
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from swarmbus.arguments import refusal, shown
from swarmbus.codes import finding
from swarmbus.errors import ModelError, UnknownModel
from swarmbus.text import did_you_mean
from swarmbus.thinking.models.base import MODEL_WANTED, Model, is_model
from swarmbus.thinking.models.registry import require_known, resolve_model
from swarmbus.thinking.prices import price_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import CodeType

    from swarmbus.results import Finding
    from swarmbus.role import Role
    from swarmbus.wiring import HandlerWiring, RoleWiring

ModelSetting: TypeAlias = "str | Model | Mapping[str, str | Model] | None"
"""The model of all roles, or of each by its name."""


def require_model_setting(call: str, given: object) -> None:
    """Refuse what is no model setting; `call` is how it was given, with `{}` in its place.

    Raises:
        TypeError: says what to give instead.
    """
    if not isinstance(given, Mapping):
        if not (given is None or isinstance(given, str) or is_model(given)):
            raise refusal(call, given, f"{MODEL_WANTED}, or a mapping from the names of roles to these")
        return
    for role, model in given.items():
        inside = call.replace("{}", f"{{{shown(role)}: {{}}}}")
        if not isinstance(role, str):
            raise refusal(inside, model, "the names of roles as keys")
        if not (isinstance(model, str) or is_model(model)):
            raise refusal(inside, model, MODEL_WANTED)


class RoleModels:
    """The models of a swarm's roles.

    Args:
        roles: the roles, whose own `model` counts unless a setting names them.
        setting: the swarm's setting.
        override: takes the place of all others, as far as it goes.
    """

    def __init__(self, roles: Sequence[Role], setting: ModelSetting, override: ModelSetting) -> None:
        self._own = {role.name: role.model for role in roles}
        self._setting = setting
        self._override = override
        self._resolved: dict[str, Model] = {}

    def findings(self, wiring: Iterable[RoleWiring] = ()) -> Iterator[Finding]:
        """Yield what is wrong with the settings, as far as that can be said without making a model.

        Args:
            wiring: what the roles' handlers take.
        """
        yield from self._unknown()
        have = [role for role in self._own if self._choice(role) is not None]
        for role in wiring if have else ():
            asking = [handler for handler in role.handlers if _asks(role.cls, handler)]
            if asking and role.name not in have:
                told = f"{asking[0].qualified} asks a model, and {role.name} has none, while {have[0]} has one"
                hint = f'give Swarm(model={{..., "{role.name}": ...}}), or {role.cls.__name__} a `model`'
                yield finding("SB602", told, hint, role=role.name, where=asking[0].where)

    def prepare(self, asking: Iterable[str], priced: Collection[str]) -> None:
        """Make the models of the roles that could ask, so that what is wrong with one is found before anything runs.

        Args:
            asking: these roles.
            priced: those of them that may spend only so much money, which needs known prices.

        Raises:
            ModelError: one can't be made, as for lack of a key, or its price is not known.
        """
        for role in asking:
            if self._choice(role) is None:
                continue
            try:
                model = self.of(role)
                if role in priced:
                    price_of(model.name)
            except ModelError as error:
                raise type(error)(f"the model of {role} can't be used: {error}") from error

    def _unknown(self) -> Iterator[Finding]:
        names = list(self._own)
        for call, setting in (("Swarm", self._setting), ("override", self._override)):
            for name in setting if isinstance(setting, Mapping) else ():
                if name not in names:
                    told = f"{call}(model=...) names {name!r}, which is no role of the swarm{did_you_mean(name, names)}"
                    yield finding("SB105", told, f"the roles are {', '.join(names) or 'none'}", role=name)
        asking: dict[str, list[str]] = {}
        for role in self._own:
            model = self._choice(role)
            if isinstance(model, str):
                asking.setdefault(model, []).append(role)
        for model, roles in asking.items():
            try:
                require_known(model)
            except UnknownModel as unknown:
                told = f"{', '.join(roles)} would ask the model {model!r}, which nothing resolves"
                yield finding("SB601", told, str(unknown), role=roles[0] if len(roles) == 1 else None)

    def of(self, role: str) -> Model:
        """Return the model of a role.

        Raises:
            UnknownModel: the role has none, or nothing resolves its name.
        """
        model = self._resolved.get(role)
        if model is None:
            choice = self._choice(role)
            if choice is None:
                raise UnknownModel(f"{role} has no model: give Swarm(model=...), or the role's class a `model`")
            model = self._resolved[role] = resolve_model(choice)
        return model

    def _choice(self, role: str) -> Any:
        if isinstance(self._override, Mapping):
            if role in self._override:
                return self._override[role]
        elif self._override is not None:
            return self._override
        if isinstance(self._setting, Mapping):
            return self._setting.get(role, self._own.get(role))
        return self._own.get(role) or self._setting


def _asks(cls: type, handler: HandlerWiring) -> bool:
    """Whether a handler is written to ask its role's model, as `ctx.ask(...)` or `ctx.agent`, and names no other.

    What its context does in other functions is not looked at.
    """
    if "context" not in handler.parameters:
        return False
    method = inspect.unwrap(getattr(cls, handler.name))
    given = list(inspect.signature(method).parameters)[1:]
    return _uses(method.__code__, given[handler.parameters.index("context")])


def _uses(code: CodeType, context: str) -> bool:
    before: Any = None
    used = False
    for step in dis.get_instructions(code):
        loaded = before[-1:] if isinstance(before, tuple) else (before,)  # newer Pythons load two names at once
        used = used or (step.argval in ("ask", "agent") and loaded == (context,))
        before = step.argval
    own = any(isinstance(const, tuple) and "model" in const for const in code.co_consts)
    inner = [const for const in code.co_consts if inspect.iscode(const)]
    return (used and not own) or any(_uses(part, context) for part in inner)
