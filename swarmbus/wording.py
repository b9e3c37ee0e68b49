"""The words of findings: how they name events, handlers, tools and classes, and where these stand."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Sequence
from typing import Any

from swarmbus.events import Event, HandlerFailed
from swarmbus.reach import Reach, publishes
from swarmbus.table import SYSTEM, Party, address, meant
from swarmbus.text import did_you_mean
from swarmbus.wiring import HandlerWiring


def name_of(candidate: Any) -> str:
    """Return how code calls a class; of what is none, how code writes it."""
    return getattr(candidate, "__name__", None) or repr(candidate)


def full_name(cls: type) -> str:
    """Return a class's name with its module."""
    return f"{cls.__module__}.{cls.__qualname__}"


def tool_name(tool: object) -> str:
    """Return the name of a tool, which may be a plain function."""
    return getattr(tool, "name", None) or name_of(tool)


def class_place(cls: type) -> str | None:
    """Return where a class is written, as `file:line`; None for one made without a source file."""
    try:
        return f"{inspect.getsourcefile(cls)}:{inspect.getsourcelines(cls)[1]}"
    except (OSError, TypeError):
        return None


def placed(handlers: Iterable[HandlerWiring]) -> str:
    """List handlers, each with its place."""
    return ", ".join(f"{handler.qualified} ({handler.where})" for handler in handlers)


def listed(handlers: Iterable[HandlerWiring], which: str) -> str:
    """List the events that handlers handle or produce, each with its handler and place."""
    told = [
        f"{event.__name__} ({handler.qualified} at {handler.where})"
        for handler in handlers
        for event in getattr(handler, which)
    ]
    return ", ".join(told) or "nothing"


def perhaps(unread: Sequence[HandlerWiring]) -> str:
    """Say that there may be more, in handlers whose annotations could not be read."""
    return f", and perhaps more in {placed(unread)}, whose annotations say nothing" if unread else ""


def near_event(event: type[Event], others: Iterable[type[Event]]) -> str:
    """Return ` (did you mean ...?)` for an event whose name is nearly that of another, else nothing."""
    return did_you_mean(event.__name__, [other.__name__ for other in others])


def publishers_of(swarm: Reach, event: type[Event]) -> str:
    """Say who publishes an event, or who was looked at in vain."""
    own = [handler for handler in swarm.handlers if publishes(handler, event)]
    sources = [*beside_roles(swarm, event), *([placed(own)] if own else [])]
    return f"it is published by {', '.join(sources)}" if sources else unpublished(swarm, [event])


def beside_roles(swarm: Reach, event: type[Event]) -> list[str]:
    """List those beside the roles who publish an event, as code names them."""
    entries = [entry for entry in swarm.entries if issubclass(entry.event, event)]
    found = [party for entry in entries for party in entry.publishers if not isinstance(party, str)]
    found += [SYSTEM] if event is HandlerFailed else []
    return [
        party.name.upper() if isinstance(party, Party) else f'External("{party.name}")'
        for party in dict.fromkeys(found)
    ]


def unpublished(swarm: Reach, events: Iterable[type[Event]]) -> str:
    """Say which of some events no handler publishes, and who was looked at in vain; where there is none, nothing."""
    looked_at = [handler for handler in swarm.handlers if handler.produces]
    published = [event for handler in looked_at for event in handler.produces]
    missing = [
        event
        for event in events
        if not beside_roles(swarm, event) and not any(publishes(handler, event) for handler in looked_at)
    ]
    names = " or ".join(f"{event.__name__}{near_event(event, published)}" for event in missing)
    return f"no handler publishes {names}, looking at {listed(looked_at, 'produces')}" if missing else ""


def whom(party: object, swarm: Reach) -> tuple[str, str]:
    """Say whom a row means by what is no party of it, and what to write."""
    other = meant(party, swarm.roles)
    if isinstance(other, Party):
        name = other.name.upper()
        return f" (did you mean `{name}`?)", f"write {name} without quotes; `from swarmbus import {name}`"
    if other is not None and not isinstance(party, str):
        return "", f'write the name of the role: "{address(other)}"'
    hint = f"the roles are {', '.join(swarm.roles) or 'none'}, several in a tuple; programs outside are External(...)"
    return f" (did you mean `{address(other)}`?)" if other else "", hint


def event_hint(candidate: object) -> str:
    """Say how to make an event class of what is none."""
    if isinstance(candidate, type):
        return f"derive it from Event: class {candidate.__name__}(Event)"
    return "name the event class itself" + (f": {type(candidate).__name__}" if isinstance(candidate, Event) else "")
