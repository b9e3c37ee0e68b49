"""Who waits for whom when too much waits for a role.

Who publishes before returning, or from outside, waits for those roles that nothing leads from back to the publisher:
who waits is never upstream of those waited for, so that waiting can't deadlock, and cycles don't wait. An inbox empties
when its role goes on. The next item of a map opens when all that an open one caused is quiet, and that may include a
failure to be mended, or an answer from outside; so whoever mends, or takes such answers, is downstream there. Who is
outside waits for no map, and returned events never wait.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from swarmbus.table import SYSTEM

if TYPE_CHECKING:
    from swarmbus.delivery.runs import RunState
    from swarmbus.delivery.topology import Topology
    from swarmbus.delivery.transports.base import Transport
    from swarmbus.events import Event
    from swarmbus.reach import Reach
    from swarmbus.table import Address

Roles: TypeAlias = "dict[str, set[str]]"


class _Awaited(NamedTuple):
    """The roles that a publisher waits for.

    Attributes:
        inboxes: while their inbox is full; maps: while too many items of the run's maps for them are not open yet.
    """

    inboxes: tuple[str, ...]
    maps: tuple[str, ...]


class Pressure:
    """Has those wait who publish to a role that is full."""

    def __init__(self, topology: Topology, transport: Transport) -> None:
        self._topology = topology
        self._transport = transport
        self._below = _Below(topology.reach)
        self._awaited: dict[tuple[str, type[Event]], _Awaited] = {}

    def has_room(self, run: RunState | None, source: str, event: Event) -> bool:
        """Whether nobody needs to wait who publishes an event; there is no run for one from outside."""
        awaited = self._awaited.get((source, type(event))) or self._await(source, type(event))
        for role in awaited.inboxes:
            if self._transport.is_full(role):
                return False
        if awaited.maps and run is not None and run.pacers:
            return not any(run.pacers[role].is_full for role in awaited.maps if role in run.pacers)
        return True

    async def room(self, run: RunState | None, source: str, event: Event) -> None:
        """Wait until the roles that an event goes to have room: in their inbox, and in what a run has for them."""
        while not self.has_room(run, source, event):
            awaited = self._await(source, type(event))
            for role in awaited.inboxes:
                await self._transport.room(role)
            for role in awaited.maps if run is not None else ():
                if run is not None and role in run.pacers:
                    await run.pacers[role].room()

    def _await(self, source: str, cls: type[Event]) -> _Awaited:
        routing = self._topology.routing(source, cls)
        groups = (*routing.groups, routing.opens) if routing is not None else ()
        roles = dict.fromkeys(handler.role for group in groups for handler in group)
        below = self._below
        awaited = self._awaited[source, cls] = _Awaited(
            tuple(role for role in roles if role in below.inbox.get(source, ())),
            tuple(role for role in roles if role in below.maps.get(source, ())),
        )
        return awaited


class _Below:
    """For each publisher, the roles it may wait for: by their inbox, and by the run's maps for them."""

    def __init__(self, reach: Reach) -> None:
        onward: Roles = {handler.role: set() for handler in reach.handlers}
        for handler in reach.handlers:
            onward[handler.role] |= {step.handler.role for step in reach.steps(handler)}
        publishers = [party for entry in reach.entries for party in entry.publishers]
        senders = {party.address: _takers(reach, party) for party in publishers if not isinstance(party, str)}
        self.inbox = _downstream({**onward, **senders})
        for handler in reach.handlers:
            onward[handler.role] |= _takers(reach, SYSTEM)
            for entry in reach.published(handler):
                outside = [party for party in entry.handlers if not isinstance(party, str)]
                if not reach.is_result(entry):  # nothing comes back once the run is over
                    onward[handler.role] |= set().union(*(_takers(reach, party) for party in outside))
        self.maps = _downstream(onward)


def _takers(reach: Reach, publisher: Address) -> set[str]:
    """Return the roles that handle at once what somebody beside the roles publishes."""
    steps = (step for entry in reach.entries if publisher in entry.publishers for step in reach.receivers(entry))
    return {step.handler.role for step in steps if step.handler.kind == "on" or step.opens}


def _downstream(onward: Roles) -> Roles:
    below = {role: _below(role, onward) for role in onward}
    return {role: {other for other in below[role] if role not in below[other]} for role in onward}


def _below(role: str, onward: Roles) -> set[str]:
    seen: set[str] = set()
    queue = [role]
    while queue:
        fresh = onward[queue.pop()] - seen
        seen |= fresh
        queue += fresh
    return seen
