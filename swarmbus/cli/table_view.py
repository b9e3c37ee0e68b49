"""The event table as text, Markdown and JSON, and the table that the wiring alone would give.

Text is the table as it is written in code, so that it can be pasted, and compared line by line.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from swarmbus.events import Event, HandlerFailed, event_name, event_version
from swarmbus.reach import publishes
from swarmbus.table import CLIENT, SYSTEM, EventTable, External, Party, Row, address, is_event, parties
from swarmbus.wording import name_of

if TYPE_CHECKING:
    from swarmbus.table import Address
    from swarmbus.wiring import RoleWiring


def to_text(table: EventTable[Any]) -> str:
    """Write a table as it stands in code."""
    rows = [(_side(row.publishers), name_of(row.event), _side(row.handlers)) for row in table.rows]
    first = max((len(publishers) for publishers, _, _ in rows), default=0) + 1
    second = max((len(event) for _, event, _ in rows), default=0) + 1
    lines = [
        f"    ({publishers + ',':{first}} {event + ',':{second}} {handlers})," for publishers, event, handlers in rows
    ]
    result = [f"    result={name_of(table.result)},"] if table.result is not None else []
    return "\n".join(["EventTable(", *lines, *result, ")"]) + "\n"


def to_markdown(table: EventTable[Any]) -> str:
    """Write a table as a Markdown table."""
    lines = ["| published by | event | handled by |", "| --- | --- | --- |"]
    for row in table.rows:
        event = name_of(row.event) + (" (result)" if row.event is table.result else "")
        cells = (_names(row.publishers), event, _names(row.handlers))
        lines.append(f"| {' | '.join(_cell(cell) for cell in cells)} |")
    return "\n".join(lines) + "\n"


def to_json(table: EventTable[Any]) -> str:
    """Write a table as JSON: parties by their addresses, events by class and by name on the wire."""
    rows = [
        {
            "publishers": [_address(party) for party in parties(row.publishers)],
            "event": name_of(row.event),
            "name": event_name(row.event) if is_event(row.event) else None,
            "version": event_version(row.event) if is_event(row.event) else None,
            "handlers": [_address(party) for party in parties(row.handlers)],
        }
        for row in table.rows
    ]
    result = None if table.result is None else name_of(table.result)
    return json.dumps({"rows": rows, "result": result}, indent=2, ensure_ascii=False) + "\n"


FORMATS: Mapping[str, Callable[[EventTable[Any]], str]] = {
    "text": to_text,
    "markdown": to_markdown,
    "json": to_json,
}
"""What writes a table in each format."""


def derive(wiring: Sequence[RoleWiring], table: EventTable[Any]) -> EventTable[Any]:
    """Return the table that the roles' code alone would give: a row for each event, with all who publish or handle it.

    What code can't say is taken from the table that there is: programs outside, the order of rows, and the result.
    An event that no role publishes comes from the client, one that no role handles goes to it.
    """
    rows = [row for event in _events(wiring, table) if (row := _derived(event, wiring, table)) is not None]
    return EventTable(*rows, result=table.result)


def _events(wiring: Sequence[RoleWiring], table: EventTable[Any]) -> list[type[Event]]:
    handlers = [handler for role in wiring for handler in role.handlers]
    events = [entry.event for entry in table.entries]
    for handler in handlers:
        events += [*handler.handles, *handler.produces]
    return list(dict.fromkeys(events))


def _derived(event: type[Event], wiring: Sequence[RoleWiring], table: EventTable[Any]) -> Row | None:
    rows = [entry for entry in table.entries if entry.event is event]
    publishing = [role.name for role in wiring if any(publishes(handler, event) for handler in role.handlers)]
    handling = [role.name for role in wiring if any(issubclass(event, handler.handles) for handler in role.handlers)]
    if not publishing and not handling:
        return None
    if not rows and _is_only_a_parent(event, wiring, table):
        return None
    publishers = _merged(publishing, [party for entry in rows for party in entry.publishers])
    takers = _merged(handling, [party for entry in rows for party in entry.handlers])
    source = SYSTEM if event is HandlerFailed else CLIENT
    return Row(_one_or_many(publishers or [source]), event, _one_or_many(takers or [CLIENT]))


def _is_only_a_parent(event: type[Event], wiring: Sequence[RoleWiring], table: EventTable[Any]) -> bool:
    """Whether roles name a class only as what its children have in common."""
    return any(issubclass(other, event) and other is not event for other in _events(wiring, table))


def _merged(roles: list[str], listed: list[Address]) -> list[Address]:
    """Return the roles, in the table's order where it has one, and who is no role."""
    known = [party for party in listed if party in roles or not isinstance(party, str)]
    return list(dict.fromkeys([*known, *roles]))


def _one_or_many(addresses: list[Address]) -> Address | tuple[Address, ...]:
    return addresses[0] if len(addresses) == 1 else tuple(addresses)


def _side(named: object) -> str:
    written = [_party(party) for party in parties(named)]
    if len(written) == 1 and not isinstance(named, tuple):
        return written[0]
    return f"({', '.join(written)}{',' if len(written) == 1 else ''})"


def _party(party: object) -> str:
    if isinstance(party, str):
        return json.dumps(party, ensure_ascii=False)
    if isinstance(party, External):
        return f"External({json.dumps(party.name, ensure_ascii=False)})"
    return party.name.upper() if isinstance(party, Party) else repr(party)


def _names(named: object) -> str:
    return ", ".join(_address(party) for party in parties(named))


def _address(party: object) -> str:
    return address(party) if isinstance(party, (str, Party, External)) else repr(party)


def _cell(text: str) -> str:
    """Return text that stays within its cell, and is not read as markup."""
    marked = "".join(f"\\{character}" if character in "\\|`*_[]<>~" else character for character in text)
    return " ".join(marked.split())
