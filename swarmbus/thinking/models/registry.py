"""From a model's name, as users write it, to a model.

A name is `PREFIX:NAME`, `PREFIX` alone, `http://HOST:PORT/v1#NAME`, or several of them in order of preference with
`|` between them. Prefixes come from `register_model`, from the table of model servers, and from the entry points of
the group `swarmbus.models`, in this order.
"""

from __future__ import annotations

from collections.abc import Callable
from difflib import get_close_matches
from importlib.metadata import entry_points
from typing import TypeAlias

from swarmbus.errors import UnknownModel
from swarmbus.thinking.models.base import Model
from swarmbus.thinking.models.fallback import FallbackModel
from swarmbus.thinking.models.openai import server_model
from swarmbus.thinking.models.servers import SERVERS

ModelFactory: TypeAlias = Callable[[str], Model]

_registered: dict[str, ModelFactory] = {}


def register_model(prefix: str, factory: ModelFactory) -> None:
    """Make `resolve_model("PREFIX:NAME")` call `factory("NAME")`; the name may be empty.

    Raises:
        ValueError: the prefix is empty or holds one of the characters that separate the parts of a name.
    """
    if not prefix or set(prefix) & set(":|#/ "):
        raise ValueError(f"{prefix!r} can't be a prefix: it must be one word without any of : | # /")
    _registered[prefix] = factory


def resolve_model(spec: str | Model) -> Model:
    """Return the model that a name stands for; a model is returned as it is.

    Raises:
        UnknownModel: nothing resolves the name; the message says what is known.
    """
    if not isinstance(spec, str):
        return spec
    names = [name.strip() for name in spec.split("|")]
    if len(names) > 1:
        return FallbackModel([resolve_model(name) for name in names])
    name = names[0]
    if name.startswith(("http://", "https://")):
        url, _, model = name.partition("#")
        if not model:
            raise UnknownModel(f"{name!r} names a server but no model: write it as {url}#NAME")
        return server_model("generic", model, url=url)
    prefix, _, rest = name.partition(":")
    return _factory(prefix, spec)(rest)


def _factory(prefix: str, spec: str) -> ModelFactory:
    if prefix in _registered:
        return _registered[prefix]
    if prefix in SERVERS:
        return lambda name: server_model(prefix, name)
    found = {entry.name: entry for entry in entry_points(group="swarmbus.models")}
    if prefix in found:
        factory: ModelFactory = found[prefix].load()
        return factory
    known = sorted({*_registered, *SERVERS, *found})
    near = get_close_matches(prefix, known, n=1)
    hint = f"did you mean {near[0]!r}? " if near else ""
    raise UnknownModel(
        f"no model is known as {spec!r}; {hint}a name is one of {', '.join(known)} with `:NAME` after it, "
        "or http://HOST:PORT/v1#NAME"
    )
