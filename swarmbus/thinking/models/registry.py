"""From a model's name, as users write it, to a model.

A name is `PREFIX:NAME`, `PREFIX` alone, `http://HOST:PORT/v1#NAME`, or several of them in order of preference with
`|` between them. Prefixes come from `register_model`, from the table of model servers, and from the entry points of
the group `swarmbus.models`, in this order.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib.metadata import EntryPoint, entry_points
from typing import TypeAlias

from swarmbus.arguments import refusal, require, shown
from swarmbus.errors import UnknownModel
from swarmbus.text import near_match
from swarmbus.thinking.models.base import MODEL_WANTED, Model, is_model
from swarmbus.thinking.models.fallback import FallbackModel
from swarmbus.thinking.models.openai import server_model
from swarmbus.thinking.models.servers import SERVERS

ModelFactory: TypeAlias = Callable[[str], Model]

_registered: dict[str, ModelFactory] = {}


def register_model(prefix: str, factory: ModelFactory) -> None:
    """Make `resolve_model("PREFIX:NAME")` call `factory("NAME")`; the name may be empty.

    Raises:
        ValueError: the prefix is empty or holds one of the characters that separate the parts of a name.
        TypeError: the prefix is no text, or the factory no function.
    """
    require("register_model({}, ...)", prefix, str, "a prefix as text")
    if not callable(factory):
        raise refusal(f"register_model({prefix!r}, {{}})", factory, "a function from a name to a model")
    if not prefix or set(prefix) & set(":|#/ "):
        raise ValueError(f"{prefix!r} can't be a prefix: it must be one word without any of : | # /")
    _registered[prefix] = factory


def resolve_model(spec: str | Model) -> Model:
    """Return the model that a name stands for; a model is returned as it is.

    Raises:
        UnknownModel: nothing resolves the name; the message says what is known.
        TypeError: it is neither name nor model.
    """
    if not isinstance(spec, str):
        if not is_model(spec):
            raise refusal("model={}", spec, MODEL_WANTED)
        return spec
    names = spec.split("|")
    if len(names) > 1:
        return FallbackModel([resolve_model(name) for name in names])
    prefix, rest = _parted(spec.strip())
    if not prefix:
        url, _, name = rest.partition("#")
        return server_model("generic", name, url=url)
    model = _factory(prefix)(rest)
    if not is_model(model):
        raise TypeError(f"the factory of the prefix {prefix!r} returned {shown(model)}, which is no model")
    return model


def require_known(spec: str) -> None:
    """Refuse a name that nothing resolves, without making a model.

    Raises:
        UnknownModel: the message says what is known.
    """
    for name in spec.split("|"):
        _parted(name.strip())


def _parted(name: str) -> tuple[str, str]:
    """Return the prefix of a name and the rest; a URL has no prefix."""
    if name.startswith(("http://", "https://")):
        url, _, model = name.partition("#")
        if not model:
            raise UnknownModel(f"{name!r} names a server but no model: write it as {url}#NAME")
        return "", name
    prefix, _, rest = name.partition(":")
    if prefix in _registered:
        return prefix, rest
    if prefix in SERVERS:
        if not rest:
            raise UnknownModel(f"write the model as {prefix}:NAME")
        return prefix, rest
    found = _entry_points()
    if prefix not in found:
        known = sorted({*_registered, *SERVERS, *found})
        near = near_match(prefix, known)
        meant = [near] if near else [f"{server}:{name}" for server in ("openai", "ollama") if name and ":" not in name]
        hint = f"did you mean {' or '.join(map(repr, meant))}? " if meant else ""
        raise UnknownModel(
            f"no model is known as {name!r}; {hint}a name is one of {', '.join(known)} with `:NAME` after it, "
            "or http://HOST:PORT/v1#NAME"
        )
    return prefix, rest


def _factory(prefix: str) -> ModelFactory:
    if prefix in _registered:
        return _registered[prefix]
    if prefix in SERVERS:
        return lambda name: server_model(prefix, name)
    factory: ModelFactory = _entry_points()[prefix].load()
    return factory


def _entry_points() -> dict[str, EntryPoint]:
    return {entry.name: entry for entry in entry_points(group="swarmbus.models")}
