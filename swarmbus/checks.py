"""The check: compares the event table with the wiring and returns everything that is wrong, as findings.

It calls no model and runs no tool or handler. Here are the two-way comparison and the permissions (SB1xx, SB4xx);
what can and can't follow from what (SB2xx, SB3xx) is in `flow`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import combinations
from typing import Any

from swarmbus.arguments import shown
from swarmbus.codes import CODES, finding
from swarmbus.events import Event, HandlerFailed, event_name
from swarmbus.flow import FLOW_RULES
from swarmbus.reach import Reach, publishes
from swarmbus.results import Finding
from swarmbus.table import SYSTEM, Entry, EventTable, External, Party, address, is_event, parties, row_text
from swarmbus.wiring import HandlerWiring, RoleWiring
from swarmbus.wording import (
    class_place,
    event_hint,
    full_name,
    listed,
    name_of,
    near_event,
    perhaps,
    placed,
    publishers_of,
    tool_name,
    whom,
)

__all__ = ["CODES", "check"]

Rule = Callable[[Reach], Iterator[Finding]]


def check(roles: Sequence[RoleWiring], table: EventTable[Any], others: Iterable[Finding] = ()) -> list[Finding]:
    """Return every finding, those that others made too: errors first, then by code, then in the order of the table."""
    swarm = Reach(_one_per_name(roles), table)
    found = [*_same_names(roles), *others]
    for rule in (*RULES, *FLOW_RULES):
        found += rule(swarm)
    return sorted(dict.fromkeys(found), key=lambda each: (each.severity != "error", each.code))


def _same_names(roles: Sequence[RoleWiring]) -> Iterator[Finding]:
    """SB110: two roles have the same name."""
    for name, count in Counter(role.name for role in roles).items():
        if count > 1:
            classes = [role.cls for role in roles if role.name == name]
            listed = " and ".join(cls.__name__ for cls in classes)
            hint = f'give each its own name, as {classes[-1].__name__}(...).named("other") does'
            where = class_place(classes[-1])
            yield finding("SB110", f"{count} roles have the name {name}: {listed}", hint, role=name, where=where)


def _one_per_name(roles: Sequence[RoleWiring]) -> list[RoleWiring]:
    """Put the handlers of roles with one name together, so that the faults of each are found."""
    merged: dict[str, RoleWiring] = {}
    for role in roles:
        first = merged.setdefault(role.name, role)
        known = {handler.name for handler in first.handlers}
        more = tuple(handler for handler in role.handlers if handler.name not in known)
        merged[role.name] = replace(first, handlers=first.handlers + more)
    return list(merged.values())


def unreadable(swarm: Reach) -> Iterator[Finding]:
    """SB107, SB108, SB109, SB113, SB116: what signatures fail to say."""
    for handler in swarm.handlers:
        yield from handler.problems


def handled_but_not_in_table(swarm: Reach) -> Iterator[Finding]:
    """SB101: a handler takes an event that no row gives to its role."""
    for handler in swarm.handlers:
        given = [entry for entry in swarm.entries if handler.role in entry.handlers]
        for event in handler.handles:
            if any(issubclass(entry.event, event) for entry in given):
                continue
            told = (
                f"{handler.qualified} handles {event.__name__}, but no row of the event table gives it to "
                f"{handler.role}{near_event(event, [entry.event for entry in given])}; {publishers_of(swarm, event)}"
            )
            publisher = "SYSTEM" if event is HandlerFailed else "..."
            hint = f'add the row ({publisher}, {event.__name__}, "{handler.role}"), or drop the handler'
            yield finding("SB101", told, hint, role=handler.role, event=event.__name__, where=handler.where)


def in_table_but_not_handled(swarm: Reach) -> Iterator[Finding]:
    """SB102: a row gives an event to a role that has no handler for it."""
    for role in swarm.roles.values():
        lacking = [
            entry
            for entry in swarm.entries
            if role.name in entry.handlers and not any(issubclass(entry.event, h.handles) for h in role.handlers)
        ]
        handled = [event for handler in role.handlers for event in handler.handles]
        unread = [handler for handler in role.handlers if handler.unread_inputs]
        for entry in lacking if role.handlers else ():
            if _is_unresolved(entry.event, unread):
                continue  # said already, as the name that can't be found
            told = (
                f"{row_text(entry)} gives {entry.event.__name__} to {role.name}, which has no handler for it"
                f"{near_event(entry.event, handled)}; it handles "
                f"{listed(role.handlers, 'handles')}{perhaps(unread)}"
            )
            hint = (
                f"write a handler for {entry.event.__name__} in {role.cls.__name__}, or take {role.name} out of the row"
            )
            yield finding("SB102", told, hint, role=role.name, event=entry.event.__name__, where=swarm.table.where)


def published_but_not_in_table(swarm: Reach) -> Iterator[Finding]:
    """SB103: a handler publishes an event that no row lets its role publish."""
    for handler in swarm.handlers:
        allowed = [entry for entry in swarm.entries if handler.role in entry.publishers]
        for event in handler.produces:
            if event is HandlerFailed or any(issubclass(entry.event, event) for entry in allowed):
                continue
            told = (
                f"{handler.qualified} publishes {event.__name__}, but no row of the event table has {handler.role} "
                f"publish it{near_event(event, [entry.event for entry in allowed])}"
            )
            hint = f'add the row ("{handler.role}", {event.__name__}, ...), with CLIENT where nobody else handles it'
            yield finding("SB103", told, hint, role=handler.role, event=event.__name__, where=handler.where)


def in_table_but_not_published(swarm: Reach) -> Iterator[Finding]:
    """SB104: a row has a role publish an event that no handler of it publishes."""
    for role in swarm.roles.values():
        lacking = [
            entry
            for entry in swarm.entries
            if role.name in entry.publishers and not any(publishes(handler, entry.event) for handler in role.handlers)
        ]
        published = [event for handler in role.handlers for event in handler.produces]
        unread = [handler for handler in role.handlers if handler.unread_outputs]
        for entry in lacking if role.handlers else ():
            if _is_unresolved(entry.event, unread):
                continue
            waiting = [step.handler for step in swarm.receivers(entry)]
            told = (
                f"{row_text(entry)} has {role.name} publish {entry.event.__name__}, but none of its handlers does"
                f"{near_event(entry.event, published)}; it publishes "
                f"{listed(role.handlers, 'produces')}{perhaps(unread)}"
                + (f". {placed(waiting)} waits for it" if waiting else "")
            )
            hint = f"return it from a handler, or publish it early through RoleContext[{entry.event.__name__}]"
            yield finding("SB104", told, hint, role=role.name, event=entry.event.__name__, where=swarm.table.where)


def unknown_parties(swarm: Reach) -> Iterator[Finding]:
    """SB105: a row names a role that the swarm does not have."""
    for index, row in enumerate(swarm.table.rows):
        found: list[object] = []
        for party in (*parties(row.publishers), *parties(row.handlers)):
            if isinstance(party, (Party, External)) or party in list(swarm.roles) or party in found:
                continue
            found.append(party)
            near, hint = whom(party, swarm)
            told = f"row {index + 1} of the event table names {shown(party)}, which is no role of the swarm{near}"
            named = party if isinstance(party, str) else shown(party)
            yield finding("SB105", told, hint, role=named, event=name_of(row.event), where=swarm.table.where)


def duplicate_rows(swarm: Reach) -> Iterator[Finding]:
    """SB106: the table says the same twice."""
    seen: dict[tuple[str, type[Event], str], int] = {}
    for entry in swarm.entries:
        again: dict[int, str] = {}
        for publisher in entry.publishers:
            for handler in entry.handlers:
                first = seen.setdefault((address(publisher), entry.event, address(handler)), entry.index)
                if first != entry.index:
                    again.setdefault(first, f"{address(publisher)} to {address(handler)}")
        twice = [p for p, count in Counter(map(address, entry.publishers)).items() if count > 1]
        twice += [p for p, count in Counter(map(address, entry.handlers)).items() if count > 1]
        if twice:
            again.setdefault(entry.index, f"{twice[0]} twice")
        for first, what in again.items():
            told = f"{row_text(entry)} repeats row {first + 1}: {entry.event.__name__} from {what}"
            if first == entry.index:
                told = f"{row_text(entry)} names {what}"
            yield finding("SB106", told, "keep it once", event=entry.event.__name__, where=swarm.table.where)


def not_events(swarm: Reach) -> Iterator[Finding]:
    """SB107: a row, or the result, is no event class."""
    for index, row in enumerate(swarm.table.rows):
        if not is_event(row.event):
            name = name_of(row.event)
            told = f"row {index + 1} of the event table is about {name}, which is not an Event"
            yield finding("SB107", told, event_hint(row.event), event=name, where=swarm.table.where)
    if swarm.table.result is not None and not is_event(swarm.table.result):
        name = name_of(swarm.table.result)
        told = f"the result of the event table is {name}, which is not an Event"
        yield finding("SB107", told, event_hint(swarm.table.result), event=name, where=swarm.table.where)


def same_event_names(swarm: Reach) -> Iterator[Finding]:
    """SB111: two event classes have the same name on the wire."""
    named: dict[str, type[Event]] = {}
    for event in known_events(swarm):
        first = named.setdefault(event_name(event), event)
        if first is not event:
            told = f"{full_name(first)} and {full_name(event)} both have the name {event_name(event)}"
            hint = f'rename one, or give it a name: class {event.__name__}(Event, name="...")'
            yield finding("SB111", told, hint, event=event.__name__, where=swarm.table.where)


def rival_handlers(swarm: Reach) -> Iterator[Finding]:
    """SB112: two handlers of a role take the same event, and no `when` decides."""
    for role in swarm.roles.values():
        takers = [handler for handler in role.handlers if handler.kind == "on" and handler.when is None]
        for first, second in combinations(takers, 2):
            for event in [event for event in second.accepts if event in first.accepts]:
                told = f"{second.qualified} handles {event.__name__}, as {first.qualified} ({first.where}) does"
                hint = "let one of them handle it, or tell them apart: @on(E, when=...)"
                yield finding("SB112", told, hint, role=role.name, event=event.__name__, where=second.where)


def roles_without_handlers(swarm: Reach) -> Iterator[Finding]:
    """SB114: a role has no method with @on or @join."""
    for role in swarm.roles.values():
        if not role.handlers:
            told = f"{role.name} ({role.cls.__name__}) has no handler"
            hint = "decorate its methods with @on or @join"
            yield finding("SB114", told, hint, role=role.name, where=class_place(role.cls))


def framework_events(swarm: Reach) -> Iterator[Finding]:
    """SB115: who publishes the framework's events, and what the framework publishes."""
    for entry in swarm.entries:
        wrong = _misuse(entry)
        if wrong:
            hint = f"write (SYSTEM, HandlerFailed, ...); rows of SYSTEM are about {HandlerFailed.__name__} alone"
            told = f"{row_text(entry)} {wrong}"
            yield finding("SB115", told, hint, event=entry.event.__name__, where=swarm.table.where)
    for handler in swarm.handlers:
        if HandlerFailed in handler.produces:
            told = f"{handler.qualified} publishes HandlerFailed, which only the framework does"
            hint = "raise the error instead, or publish an event of your own"
            yield finding("SB115", told, hint, role=handler.role, event="HandlerFailed", where=handler.where)


def undeclared_effects(swarm: Reach) -> Iterator[Finding]:
    """SB401: a tool does not say what repeating it would do."""
    for role in swarm.roles.values():
        for tool in role.tools:
            if not getattr(tool, "effects_declared", False):
                told = f"{role.name} has the tool {tool_name(tool)}, whose effects are not declared"
                hint = (
                    'say @tool(effects="read_only"), "idempotent" or "at_most_once"; until then it counts as the last'
                )
                yield finding("SB401", told, hint, role=role.name, where=class_place(role.cls))


def fresh_retries(swarm: Reach) -> Iterator[Finding]:
    """SB402: a retry would run an at_most_once tool again."""
    for handler in swarm.handlers:
        once = [t for t in swarm.roles[handler.role].tools if getattr(t, "effects", "at_most_once") == "at_most_once"]
        if handler.retry is not None and handler.retry.fresh and once:
            names = ", ".join(tool_name(tool) for tool in once)
            told = f"{handler.qualified} retries with fresh=True, which would repeat {names}, marked at_most_once"
            hint = "drop fresh=True, or declare the tool idempotent"
            yield finding("SB402", told, hint, role=handler.role, where=handler.where)


RULES: tuple[Rule, ...] = (
    handled_but_not_in_table,
    in_table_but_not_handled,
    published_but_not_in_table,
    in_table_but_not_published,
    unknown_parties,
    duplicate_rows,
    not_events,
    unreadable,
    same_event_names,
    rival_handlers,
    roles_without_handlers,
    framework_events,
    undeclared_effects,
    fresh_retries,
)


def known_events(swarm: Reach) -> list[type[Event]]:
    """Return the event classes of table and wiring, each once."""
    events = [entry.event for entry in swarm.entries]
    for handler in swarm.handlers:
        events += (*handler.handles, *handler.produces)
    return list(dict.fromkeys(events))


def _is_unresolved(event: type[Event], handlers: Iterable[HandlerWiring]) -> bool:
    """Whether a handler names the event, but its name can't be found at run time."""
    return any(p.code == "SB109" and p.event == event.__name__ for handler in handlers for p in handler.problems)


def _misuse(entry: Entry) -> str | None:
    if SYSTEM in entry.handlers:
        return "has SYSTEM handle an event, which it does not"
    if SYSTEM in entry.publishers and entry.event is not HandlerFailed:
        return f"has SYSTEM publish {entry.event.__name__}, which it does not"
    if entry.event is HandlerFailed and any(publisher != SYSTEM for publisher in entry.publishers):
        return "has somebody else than SYSTEM publish HandlerFailed"
    return None
