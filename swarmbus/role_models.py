"""Which model each role of a swarm asks: chosen from the settings, checked before the run, made when first asked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from swarmbus.arguments import refusal, shown
from swarmbus.codes import finding
from swarmbus.errors import UnknownModel
from swarmbus.text import did_you_mean
from swarmbus.thinking.models.base import MODEL_WANTED, Model, is_model
from swarmbus.thinking.models.registry import require_known, resolve_model

if TYPE_CHECKING:
    from collections.abc import Iterator

    from swarmbus.results import Finding
    from swarmbus.role import Role

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

    def findings(self) -> Iterator[Finding]:
        """Yield what is wrong with the settings, as far as that can be said without making a model."""
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
