"""The static side of delivery, compiled from wiring and table: who gets an event, and what joins count with.

That is, for each handler, which contributions (one column for each join) and whether the result can still be published
below a delivery to it. What follows from what is for `reach`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from swarmbus.arguments import no_answer, no_sequence
from swarmbus.errors import PublishError
from swarmbus.events import HandlerFailed, event_name, to_json
from swarmbus.reach import Reach, takers
from swarmbus.table import CLIENT, SYSTEM, External, address
from swarmbus.text import error_text

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from swarmbus.events import Event
    from swarmbus.records import Routes
    from swarmbus.table import Entry, EventTable
    from swarmbus.wiring import HandlerWiring, RoleWiring

ALIVE = 0
"""The column that everything live reaches."""
RESULT = 1
"""The column of what can still lead to the run's result."""
FIRST_JOIN = 2


class Handler:
    """One handler as delivery sees it.

    Attributes:
        number: its place among all handlers of the swarm.
        column: for a join, the column its contributions are counted in; else -1.
        reach: the columns it can still reach, ALIVE first; `reaches` is the same as a set.
    """

    __slots__ = ("column", "name", "number", "reach", "reaches", "role", "wiring")

    def __init__(self, number: int, wiring: HandlerWiring) -> None:
        self.number = number
        self.wiring = wiring
        self.role = wiring.role
        self.name = wiring.name
        self.column = -1
        self.reach: tuple[int, ...] = (ALIVE,)
        self.reaches: frozenset[int] = frozenset((ALIVE,))

    @property
    def qualified(self) -> str:
        """`role.method`."""
        return f"{self.role}.{self.name}"

    def __repr__(self) -> str:
        return f"<Handler {self.number} {self.qualified}>"


@dataclass(frozen=True, slots=True)
class Routing:
    """Where an event of one class goes when one source publishes it.

    Attributes:
        groups: for each receiving role its candidates, the most specific first; the first that accepts gets the event.
        handlers: the receivers, where no candidate has a condition.
        opens: the joins the event opens; `contributes`: the joins it may count for.
        client: it goes to the client; `result`: and is the result.
        externals: the names of the outside programs it goes to.
        reach: the columns that publishing it reaches.
        plain: no user code decides where it goes.
    """

    groups: tuple[tuple[Handler, ...], ...]
    handlers: tuple[Handler, ...]
    opens: tuple[Handler, ...]
    contributes: tuple[Handler, ...]
    client: bool
    result: bool
    externals: tuple[str, ...]
    reach: tuple[int, ...]
    reaches: frozenset[int]
    plain: bool


def items_of(handler: Handler, event: Event) -> Sequence[Any]:
    """Return the sequence a mapped handler takes one by one from an event."""
    each = handler.wiring.each
    if isinstance(each, str):
        items: Sequence[Any] = getattr(event, each)
        return items
    assert each is not None
    return tuple(each(event))


class Topology:
    """Handlers and routings of one swarm.

    Attributes:
        reach: what can follow from what.
    """

    def __init__(self, roles: Sequence[RoleWiring], table: EventTable[Any]) -> None:
        self.table = table
        self.reach = Reach(roles, table)
        self.entries: tuple[Entry, ...] = table.entries
        self.result: type[Event] | None = table.result
        self.handlers = tuple(
            Handler(number, wiring) for number, wiring in enumerate(w for role in roles for w in role.handlers)
        )
        self.by_name = {handler.qualified: handler for handler in self.handlers}
        self.states: dict[str, type[Any]] = {role.name: role.state for role in roles if role.state is not None}
        self._of_role: dict[str, list[Handler]] = {role.name: [] for role in roles}
        columns = FIRST_JOIN
        for handler in self.handlers:
            self._of_role[handler.role].append(handler)
            if handler.wiring.kind == "join":
                handler.column = columns
                columns += 1
        self.events = self._known_events()
        self.by_event_name = {event_name(cls): cls for cls in self.events}
        self._routings: dict[tuple[str, type[Event]], Routing | None] = {}
        self._compile_columns()

    def routing(self, source: str, cls: type[Event]) -> Routing | None:
        """Return where an event of this class goes from this source, or None where no row allows it."""
        key = (source, cls)
        try:
            return self._routings[key]
        except KeyError:
            routing = self._routings[key] = self._route(source, cls)
            return routing

    def prepare(self, source: str, event: Event) -> Routes | None:
        """Run the user code that decides where an event goes, before anything is recorded.

        Returns:
            The decisions to record, or None where no user code takes part.

        Raises:
            PublishError: no row of the table allows it, no `when` accepts it, or the user code raised.
            EventEncodingError: JSON can't carry it; refused here, so that with a journal and without the same happens.
        """
        routing = self._routings.get((source, type(event))) or self.routing(source, type(event))
        if routing is None:
            raise PublishError(self._not_allowed(source, event))
        to_json(event)  # raises for what JSON can't carry
        if routing.plain:
            return None
        chosen: list[tuple[int, int]] = []
        for group in routing.groups:
            handler = self._choose(group, event)
            chosen.append((handler.number, self._count(handler, event)))
        for join in routing.opens:
            if callable(join.wiring.expect):
                _ask(join, "expect", join.wiring.expect, event)
        return tuple(chosen)

    def submittable(self, sender: str) -> list[type[Event]]:
        """Return the event classes the table accepts from an address outside."""
        return [entry.event for entry in self.entries if sender in map(address, entry.publishers)]

    def awaits_outside(self, opening: type[Event]) -> bool:
        """Whether an event from outside, other than the kind that opened the run, could still lead to the result."""
        for entry in self.entries:
            for source in map(address, entry.publishers):
                outside = source.startswith("external:") or (source == CLIENT.address and entry.event is not opening)
                if outside and self._leads_to_result(entry):
                    return True
        return False

    def _known_events(self) -> tuple[type[Event], ...]:
        known: dict[type[Event], None] = {}
        for entry in self.entries:
            known[entry.event] = None
        for handler in self.handlers:
            wiring = handler.wiring
            for cls in (*wiring.accepts, *wiring.produces, *((wiring.opener,) if wiring.opener else ())):
                known[cls] = None
        known[HandlerFailed] = None
        return tuple(known)

    def _route(self, source: str, cls: type[Event]) -> Routing | None:
        matching = [e for e in self.entries if source in map(address, e.publishers) and e.event is cls]
        if not matching:
            return None
        receivers = dict.fromkeys(party for entry in matching for party in entry.handlers)
        groups: list[tuple[Handler, ...]] = []
        opens: list[Handler] = []
        contributes: list[Handler] = []
        for role in receivers:
            handlers = self._of_role.get(role, []) if isinstance(role, str) else []
            group = takers((handler.wiring for handler in handlers), cls)
            if group:
                groups.append(tuple(self.by_name[wiring.qualified] for wiring in group))
            joins = [h for h in handlers if h.wiring.kind == "join"]
            opens += [h for h in joins if h.wiring.opener is not None and issubclass(cls, h.wiring.opener)]
            contributes += [h for h in joins if issubclass(cls, h.wiring.accepts)]
        client = CLIENT in receivers
        plain = all(g[0].wiring.when is None and not callable(g[0].wiring.each) for g in groups)
        plain = plain and not any(callable(h.wiring.expect) for h in opens)
        result = client and self.result is not None and issubclass(cls, self.result)
        reach = {ALIVE} | ({RESULT} if result else set()) | {h.column for h in contributes}
        for handler in (*(h for g in groups for h in g), *opens):
            reach |= handler.reaches
        return Routing(
            groups=tuple(groups),
            handlers=tuple(g[0] for g in groups) if plain else (),
            opens=tuple(sorted(opens, key=lambda h: h.number)),
            contributes=tuple(sorted(contributes, key=lambda h: h.number)),
            client=client,
            result=result,
            externals=tuple(p.name for p in receivers if isinstance(p, External)),
            reach=tuple(sorted(reach)),
            reaches=frozenset(reach),
            plain=plain,
        )

    def _compile_columns(self) -> None:
        direct = {name: frozenset(self._columns_of(handler)) for name, handler in self.by_name.items()}
        for handler in self.handlers:
            below = self.reach.below([handler.wiring])
            handler.reaches = frozenset({ALIVE}.union(*(direct[name] for name in below)))
            handler.reach = tuple(sorted(handler.reaches))

    def _columns_of(self, handler: Handler) -> Iterator[int]:
        """Yield the columns that a handler reaches by what it publishes itself."""
        if self.reach.sends_result(handler.wiring):
            yield RESULT
        for step in self.reach.steps(handler.wiring):
            if step.contributes:
                yield self.by_name[step.handler.qualified].column

    def _leads_to_result(self, entry: Entry) -> bool:
        after = self.reach.after(step.handler for step in self.reach.receivers(entry))
        return self.reach.is_result(entry) or any(map(self.reach.sends_result, after.values()))

    def _choose(self, group: tuple[Handler, ...], event: Event) -> Handler:
        for handler in group:
            when = handler.wiring.when
            if when is None or _ask(handler, "when", when, event):
                return handler
        names = ", ".join(f"{h.qualified} ({h.wiring.where})" for h in group)
        raise PublishError(
            f"no `when` accepts this {event_name(event)}: asked {names}. Add a handler without `when` to take the rest."
        )

    def _count(self, handler: Handler, event: Event) -> int:
        each = handler.wiring.each
        if each is None:
            return -1
        return len(_ask(handler, "each", each, event) if callable(each) else items_of(handler, event))

    def _not_allowed(self, source: str, event: Event) -> str:
        allowed = [event_name(e.event) for e in self.entries if source in map(address, e.publishers)]
        listed = ", ".join(dict.fromkeys(allowed)) or "nothing"
        return (
            f"the event table does not let {source} publish {event_name(event)} ({type(event).__qualname__}); "
            f"it lets it publish: {listed}. Add the row ({source!r}, {type(event).__qualname__}, ...) or publish those."
        )


def failed_routing(topology: Topology) -> Routing | None:
    """Return where `HandlerFailed` goes, or None where nobody handles it."""
    return topology.routing(SYSTEM.address, HandlerFailed)


def _ask(handler: Handler, option: Literal["when", "each", "expect"], function: Any, event: Event) -> Any:
    """Return what user code says of an event: whether `when` takes it, else a tuple."""
    told = f"`{option}` of {handler.qualified} ({handler.wiring.where}), asked about this {event_name(event)},"
    try:
        returned = function(event)
        wrong = no_answer(returned) if option == "when" else no_sequence(returned)
        if wrong is None:
            return bool(returned) if option == "when" else tuple(returned)
    except Exception as error:
        raise PublishError(f"{told} raised {error_text(error)}") from error
    raise PublishError(f"{told} returned {wrong}")
