"""A program in the framework's own terms: event classes, wiring, table and topology."""

from __future__ import annotations

from typing import Any

from ledger_model.generate import CLASSES, RESULT_NAME
from ledger_model.program import CLIENT, HANDLER_FAILED, SYSTEM, Fact, Handler, Program, picked
from swarmbus import table
from swarmbus.events import Event, HandlerFailed
from swarmbus.role import Role
from swarmbus.wiring import HandlerWiring, RoleWiring


class Told(Event):
    """What every event of a random program carries."""

    serial: int
    items: tuple[str, ...] = ()
    key: str = ""
    promises: tuple[str, ...] = ()


def _event_classes() -> dict[str, type[Event]]:
    classes: dict[str, type[Event]] = {HANDLER_FAILED: HandlerFailed}
    for name in (*(f"E{number}" for number in range(CLASSES)), RESULT_NAME):
        classes[name] = type(name, (Told,), {"__module__": __name__})
        classes[name + "x"] = type(name + "x", (classes[name],), {"__module__": __name__})
    return classes


EVENTS = _event_classes()
_PARTIES = {CLIENT: table.CLIENT, SYSTEM: table.SYSTEM}


def event_of(fact: Fact) -> Event:
    """Return the event that a fact stands for."""
    return EVENTS[fact.name](serial=fact.serial, items=fact.items, key=fact.key, promises=fact.promises)  # type: ignore[call-arg]


def serial_of(event: Event) -> int:
    """Return the serial of the fact behind an event."""
    assert isinstance(event, Told)
    return event.serial


def roles_of(program: Program) -> list[RoleWiring]:
    """Return the wiring, in which the handlers keep their numbers."""
    names = dict.fromkeys(handler.role for handler in program.handlers)
    return [_role(name, [one for one in program.handlers if one.role == name]) for name in names]


def table_of(program: Program) -> table.EventTable[Event]:
    """Return the event table."""
    rows = [(_addresses(row.publishers), EVENTS[row.event], _addresses(row.handlers)) for row in program.rows]
    result = EVENTS[program.result] if program.result is not None else None
    return table.EventTable(*rows, result=result)


def _addresses(parties: tuple[str, ...]) -> tuple[Any, ...]:
    return tuple(_PARTIES.get(one, one) for one in parties)


def _role(name: str, handlers: list[Handler]) -> RoleWiring:
    return RoleWiring(
        name=name,
        cls=Role,
        handlers=tuple(map(_wiring, handlers)),
        state=None,
        concurrency=1,
        tools=(),
    )


def _wiring(handler: Handler) -> HandlerWiring:
    each = "items" if handler.each else None
    return HandlerWiring(
        role=handler.role,
        name=handler.name,
        kind="on" if handler.per is None else "join",
        accepts=(EVENTS[handler.takes],),
        opener=None if handler.per is None else EVENTS[handler.per],
        publishes=tuple(EVENTS[name] for name in handler.returns),
        early=tuple(EVENTS[name] for name in handler.early),
        silent=True,
        each=(lambda event: event.items) if handler.counted else each,
        each_type=str,
        when=(lambda event: picked(serial_of(event))) if handler.picky else None,
        key="key" if handler.keyed else None,
        expect="promises" if handler.expects else None,
        partial=handler.partial,
        quorum=handler.quorum,
        deadline=handler.deadline,
        timeout=None,
        retry=None,
        parameters=(),
        file=__file__,
        line=1,
    )
