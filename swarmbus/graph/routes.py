"""Who sends what to whom: each (publisher, event, handler) of the event table, and what the wiring adds to it.

A route has two halves, publishing and handling; each says whether table, wiring or both know of it. How routes are
drawn is for `picture`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from swarmbus.events import Event, HandlerFailed, event_name
from swarmbus.graph.conditions import condition
from swarmbus.reach import publishes, takers
from swarmbus.table import CLIENT, EventTable, External, Party, is_event, parties
from swarmbus.wiring import HandlerWiring, RoleWiring
from swarmbus.wording import name_of

Origin: TypeAlias = Literal["both", "table", "wiring"]
"""Who knows of half a route. Of what stands outside the swarm there is no wiring, so that the table's word is both."""

PlaceKind: TypeAlias = Literal["role", "client", "system", "external", "missing", "nobody"]


@dataclass(frozen=True, slots=True)
class Place:
    """Where events come from or go to; `missing` is a role that only the table knows, `nobody` stands for no name."""

    kind: PlaceKind
    name: str

    @property
    def id(self) -> str:
        """The same for equal places of any swarm: `role:planner`, `external:crm`, `client`, …."""
        return f"{self.kind}:{self.name}" if self.kind in ("role", "external", "missing") else self.kind


NOBODY = Place("nobody", "nobody")


@dataclass(frozen=True, slots=True)
class Handling:
    """How one handler takes an event.

    Attributes:
        handler: name of the method.
        kind: it takes the event, each item of it, joins it with others, or a join opens with it.
        option: what is mapped; the class that opens the join.
        when: the condition, as text.
        policy: how a join ends, where that is said: `quorum 3`, `deadline 60 s`, `partial proceed`.
        where: `file:line`.
    """

    handler: str
    kind: Literal["on", "map", "join", "opener"]
    option: str | None
    when: str | None
    policy: str | None
    where: str

    @property
    def text(self) -> str:
        """What an edge says of it; nothing for a handler that simply takes the event."""
        told = {
            "on": "",
            "map": f"each {self.option}",
            "join": f"joined per {self.option}",
            "opener": f"opens join {self.handler}",
        }[self.kind]
        return ", ".join(part for part in (told, self.when and f"when {self.when}", self.policy) if part)


@dataclass(frozen=True, slots=True)
class Route:
    """One event class on its way from a place to another.

    Attributes:
        event: the class; or what a row names in its stead.
        published, handled: who knows of the two halves.
        early: a handler publishes it before it returns.
        result: it ends the run.
        handlings: how the handlers of the receiving role take it.
    """

    source: Place
    event: Any
    target: Place
    published: Origin
    handled: Origin
    early: bool
    result: bool
    handlings: tuple[Handling, ...]


def read_routes(wiring: Sequence[RoleWiring], table: EventTable[Any]) -> list[Route]:
    """Return the routes, those of the table first and in its order, each once."""
    reader = _Reader(wiring, table)
    places = dict.fromkeys([*reader.from_table(), *reader.unlisted_publishing(), *reader.unlisted_handling()])
    return [reader.route(*place) for place in places]


def wire_name(event: Any) -> str:
    """Return how an event class is called on the wire."""
    return event_name(event) if is_event(event) else name_of(event)


class _Reader:
    """Reads the routes of one swarm."""

    def __init__(self, wiring: Sequence[RoleWiring], table: EventTable[Any]) -> None:
        self._table = table
        self._handlers: dict[str, list[HandlerWiring]] = {}
        for role in wiring:
            self._handlers.setdefault(role.name, []).extend(role.handlers)

    def from_table(self) -> Iterator[tuple[Place, Any, Place]]:
        for row in self._table.rows:
            for publisher in parties(row.publishers) or (None,):
                for handler in parties(row.handlers) or (None,):
                    yield self._place(publisher), row.event, self._place(handler)

    def unlisted_publishing(self) -> Iterator[tuple[Place, Any, Place]]:
        """Yield what roles publish without a row."""
        for role, handlers in self._handlers.items():
            for event in (event for handler in handlers for event in handler.produces):
                rows = [entry for entry in self._table.entries if role in entry.publishers]
                if event is HandlerFailed or any(issubclass(entry.event, event) for entry in rows):
                    continue
                taking: list[str | None] = [name for name in self._handlers if _takes(self._handlers[name], event)]
                for taker in taking or [None]:
                    yield self._place(role), event, self._place(taker)

    def unlisted_handling(self) -> Iterator[tuple[Place, Any, Place]]:
        """Yield what roles handle without a row."""
        for role, handlers in self._handlers.items():
            for event in (event for handler in handlers for event in handler.handles):
                rows = [entry for entry in self._table.entries if role in entry.handlers]
                if any(issubclass(entry.event, event) for entry in rows):
                    continue
                listed = [party for entry in self._table.entries if entry.event is event for party in entry.publishers]
                makers = [name for name in self._handlers if _makes(self._handlers[name], event)]
                for maker in dict.fromkeys([*listed, *makers]) or [None]:
                    yield self._place(maker), event, self._place(role)

    def route(self, source: Place, event: Any, target: Place) -> Route:
        """Describe a route."""
        makers = self._handlers.get(source.name, []) if source.kind == "role" else []
        receivers = self._handlers.get(target.name, []) if target.kind == "role" else []
        sound = is_event(event)
        result = self._table.result
        rows = [row for row in self._table.rows if row.event is event]
        given = any(source.name in parties(row.publishers) for row in rows)
        taken = any(target.name in parties(row.handlers) for row in rows)
        return Route(
            source,
            event,
            target,
            published=_origin(source, in_table=given, in_wiring=sound and _makes(makers, event)),
            handled=_origin(target, in_table=taken, in_wiring=sound and _takes(receivers, event)),
            early=sound and any(issubclass(event, handler.early) for handler in makers),
            result=sound and isinstance(result, type) and issubclass(event, result) and target == self._place(CLIENT),
            handlings=tuple(_handlings(receivers, event)) if sound else (),
        )

    def _place(self, party: object) -> Place:
        if party is None:
            return NOBODY
        if isinstance(party, Party):
            return Place("client" if party is CLIENT else "system", party.name)
        if isinstance(party, External):
            return Place("external", party.name)
        if isinstance(party, str) and party in self._handlers:
            return Place("role", party)
        return Place("missing", party if isinstance(party, str) else repr(party))


def _origin(place: Place, *, in_table: bool, in_wiring: bool) -> Origin:
    if place.kind == "missing":
        return "table"
    if place.kind != "role" or (in_table and in_wiring):
        return "both"
    return "table" if in_table else "wiring"


def _makes(handlers: Sequence[HandlerWiring], event: type[Event]) -> bool:
    return any(publishes(handler, event) for handler in handlers)


def _takes(handlers: Sequence[HandlerWiring], event: type[Event]) -> bool:
    return any(issubclass(event, handler.handles) for handler in handlers)


def _handlings(handlers: Sequence[HandlerWiring], event: type[Event]) -> Iterator[Handling]:
    """Yield how the handlers of a role take an event: those with `@on` in the order in which they are asked."""
    yield from map(_on, takers(handlers, event))
    for handler in handlers:
        if handler.opener is not None and issubclass(event, handler.opener):
            yield Handling(handler.name, "opener", name_of(handler.opener), None, None, handler.where)
        if handler.kind == "join" and issubclass(event, handler.accepts):
            yield Handling(handler.name, "join", name_of(handler.opener), None, _policy(handler), handler.where)


def _on(handler: HandlerWiring) -> Handling:
    each = handler.each if handler.each is None or isinstance(handler.each, str) else condition(handler.each)
    when = condition(handler.when) if handler.when is not None else None
    return Handling(handler.name, "map" if each is not None else "on", each, when, None, handler.where)


def _policy(handler: HandlerWiring) -> str | None:
    told = [
        f"quorum {handler.quorum}" if handler.quorum is not None else "",
        f"deadline {handler.deadline:g} s" if handler.deadline is not None else "",
        f"partial {handler.partial}" if handler.partial != "fail" else "",
    ]
    return ", ".join(part for part in told if part) or None
