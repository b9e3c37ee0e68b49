"""What can follow from what: table and wiring joined into one graph of handlers, for the checks and for delivery.

Where the two disagree the graph assumes what the table says, and where the table misspells a role, what it meant:
so that one fault is not reported again as everything that follows from it. A swarm that runs has no such faults.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from swarmbus.events import Event
from swarmbus.table import CLIENT, Address, Entry, EventTable, External, Party, Row, meant, parties
from swarmbus.wiring import HandlerWiring, RoleWiring


@dataclass(frozen=True, slots=True)
class Step:
    """An event on its way to a handler, by a row.

    Attributes:
        opens: the event opens the handler, which is a join; contributes: it counts for the handler, which is one.
        assumed: only the row says so, not the handler.
    """

    entry: Entry
    handler: HandlerWiring
    opens: bool
    contributes: bool
    assumed: bool


class Reach:
    """The graph of a swarm. A handler is known by its position in `handlers`."""

    def __init__(self, roles: Sequence[RoleWiring], table: EventTable[Any]) -> None:
        self.roles = {role.name: role for role in roles}
        self.handlers = tuple(handler for role in roles for handler in role.handlers)
        self.table = table
        self.entries = tuple(_as_meant(entry, table.rows[entry.index], self.roles) for entry in table.entries)
        self._steps: dict[str, tuple[Step, ...]] = {
            handler.qualified: tuple(self._steps_from(handler)) for handler in self.handlers
        }

    def steps(self, handler: HandlerWiring) -> tuple[Step, ...]:
        """Return where the events of a handler go."""
        return self._steps[handler.qualified]

    def published(self, handler: HandlerWiring) -> Iterator[Entry]:
        """Yield the rows by which a handler publishes."""
        for entry in self.entries:
            if handler.role in entry.publishers and handler in self.publishers(entry, handler.role):
                yield entry

    def publishers(self, entry: Entry, role: str) -> list[HandlerWiring]:
        """Return the handlers of a role that publish by a row; all of them where none says so."""
        handlers = self.roles[role].handlers if role in self.roles else ()
        return [handler for handler in handlers if publishes(handler, entry.event)] or list(handlers)

    def receivers(self, entry: Entry) -> Iterator[Step]:
        """Yield the handlers that an event reaches by a row; all of a role's where none says so."""
        for role in dict.fromkeys(party for party in entry.handlers if isinstance(party, str)):
            handlers = self.roles[role].handlers if role in self.roles else ()
            nearest = takers(handlers, entry.event)
            joins = [h for h in handlers if h.kind == "join" and issubclass(entry.event, h.handles)]
            taking = [handler for handler in handlers if handler in nearest or handler in joins]
            for handler in taking or handlers:
                opens = handler.opener is not None and (not taking or issubclass(entry.event, handler.opener))
                contributes = handler.kind == "join" and (not taking or issubclass(entry.event, handler.accepts))
                yield Step(entry, handler, opens, contributes, not taking)

    def below(self, start: Iterable[HandlerWiring]) -> dict[str, HandlerWiring]:
        """Return the handlers that run below some handlers, these included, never passing a contribution."""
        return self._closure(start, self._next_inside)

    def after(self, start: Iterable[HandlerWiring]) -> dict[str, HandlerWiring]:
        """Return the handlers that can run once some handlers have run, these included."""
        return self._closure(start, self._next_at_all)

    def openers_scope(self, opener: type[Event]) -> dict[str, HandlerWiring]:
        """Return the handlers that run below an opener; joins that it opens run beside it, not below."""
        rows = [entry for entry in self.entries if issubclass(entry.event, opener)]
        start = [step.handler for entry in rows for step in self.receivers(entry) if step.handler.kind == "on"]
        return self.below(start)

    def from_outside(self) -> dict[str, HandlerWiring]:
        """Return the handlers that an event from the client, an external program or the framework can lead to."""
        outside = [entry for entry in self.entries if any(self._is_outside(party) for party in entry.publishers)]
        start = [step.handler for entry in outside for step in self.receivers(entry) if _starts(step)]
        unheard = [handler for handler in self.handlers if handler.unread_inputs or not self.is_given(handler)]
        return self.after([*start, *unheard])

    def sends_result(self, handler: HandlerWiring) -> bool:
        """Whether a handler publishes the run's result to the client."""
        return any(self.is_result(entry) for entry in self.published(handler))

    def is_result(self, entry: Entry) -> bool:
        """Whether a row is about the result on its way to the client."""
        result = self.table.result
        return isinstance(result, type) and issubclass(entry.event, result) and CLIENT in entry.handlers

    def cycles(self) -> list[list[HandlerWiring]]:
        """Return each largest set of handlers that all lead to one another, in order of the handlers."""
        following = {handler.qualified: self._closure(self._next(handler), self._next) for handler in self.handlers}
        cycles: list[list[HandlerWiring]] = []
        placed: set[str] = set()
        for handler in self.handlers:
            name = handler.qualified
            if name in placed or name not in following[name]:
                continue
            cycle = [other for other in self.handlers if self._mutual(name, other.qualified, following)]
            placed |= {other.qualified for other in cycle}
            cycles.append(cycle)
        return cycles

    def _mutual(self, name: str, other: str, following: dict[str, dict[str, HandlerWiring]]) -> bool:
        return other in following[name] and name in following[other]

    def _next(self, handler: HandlerWiring) -> list[HandlerWiring]:
        """Return the handlers that take what a handler publishes, where both say so."""
        steps = [step for step in self.steps(handler) if publishes(handler, step.entry.event)]
        return [step.handler for step in steps if not step.assumed]

    def _next_inside(self, handler: HandlerWiring) -> list[HandlerWiring]:
        return [step.handler for step in self.steps(handler) if _starts(step)]

    def _next_at_all(self, handler: HandlerWiring) -> list[HandlerWiring]:
        return [step.handler for step in self.steps(handler)]

    def _steps_from(self, handler: HandlerWiring) -> Iterator[Step]:
        for entry in self.published(handler):
            yield from self.receivers(entry)

    def _closure(
        self, start: Iterable[HandlerWiring], onward: Callable[[HandlerWiring], list[HandlerWiring]]
    ) -> dict[str, HandlerWiring]:
        found: dict[str, HandlerWiring] = {}
        queue = list(start)
        while queue:
            handler = queue.pop()
            if handler.qualified not in found:
                found[handler.qualified] = handler
                queue += onward(handler)
        return found

    def _is_outside(self, party: Address) -> bool:
        return not isinstance(party, str) or party not in self.roles  # of an unknown role nothing is known

    def is_given(self, handler: HandlerWiring) -> bool:
        """Whether the table gives a handler each of its events; where not, that is a finding of its own."""
        return all(
            any(handler.role in entry.handlers and issubclass(entry.event, cls) for entry in self.entries)
            for cls in handler.handles
        )


def takers(handlers: Iterable[HandlerWiring], event: type[Event]) -> list[HandlerWiring]:
    """Return those of a role's `@on` handlers that an event may go to: the nearest class first, its `when` asked first.

    The first without a `when` takes it, so that no other one follows.
    """
    taking = [handler for handler in handlers if handler.kind == "on" and issubclass(event, handler.accepts)]
    taking.sort(key=lambda handler: (_distance(handler, event), handler.when is None))
    last = next((place for place, handler in enumerate(taking) if handler.when is None), len(taking))
    return taking[: last + 1]


def _distance(handler: HandlerWiring, event: type[Event]) -> int:
    return min(event.__mro__.index(accepted) for accepted in handler.accepts if issubclass(event, accepted))


def publishes(handler: HandlerWiring, event: type[Event]) -> bool:
    """Whether a handler says that it publishes an event, or a class above it."""
    return issubclass(event, handler.produces)


def _starts(step: Step) -> bool:
    return step.handler.kind == "on" or step.opens


def _as_meant(entry: Entry, row: Row, roles: Mapping[str, RoleWiring]) -> Entry:
    def as_meant(named: object) -> tuple[Address, ...]:
        found: list[Address] = []
        for party in parties(named):
            if isinstance(party, (Party, External)) or party in list(roles):
                found.append(party)
            elif (other := meant(party, roles)) is not None and other not in found:
                found.append(other)
            elif isinstance(party, str) and other is None:
                found.append(party)
        return tuple(found)

    return replace(entry, publishers=as_meant(row.publishers), handlers=as_meant(row.handlers))
