"""The picture of a swarm: nodes and edges, made from the same table, wiring and findings as the check's report.

One model for all formats, which only write it down; a broken wiring is drawn too, its findings beside it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from swarmbus.codes import CODES
from swarmbus.graph.routes import Handling, Origin, Place, PlaceKind, Route, read_routes, wire_name
from swarmbus.wording import name_of

if TYPE_CHECKING:
    from swarmbus.results import Finding
    from swarmbus.swarm import Swarm
    from swarmbus.wiring import RoleWiring

View: TypeAlias = Literal["events", "roles"]

VIEWS: tuple[View, ...] = ("events", "roles")

_PUBLISHING = ("SB103", "SB104")
"""Codes about the publisher, also where the same role handles the event."""


@dataclass(frozen=True, slots=True)
class Node:
    """A role, an event, or somebody beside the roles.

    Attributes:
        id: unlike that of any other node, and the same from run to run.
        kind: what it is; `missing` is a role that only the table knows.
        name: what it is called in the code.
        says: first line of a role's docstring; the name of an event on the wire.
        facts: what is worth knowing of it, such as `state` or `2 tools`.
        findings: those about it rather than about one of its edges.
    """

    id: str
    kind: PlaceKind | Literal["event"]
    name: str
    says: str = ""
    facts: tuple[str, ...] = ()
    findings: tuple[Finding, ...] = ()


@dataclass(frozen=True, slots=True)
class Edge:
    """An event on its way; in the view `events` one half of it, to or from the event's node.

    Attributes:
        source, target: ids of nodes.
        event: class name of the event.
        origin: whether table and wiring both know of it, or only one of them.
        early: it is published before a handler returns.
        result: it ends the run.
        handlings: how the receiving role takes it.
        findings: those about it.
    """

    source: str
    target: str
    event: str
    origin: Origin = "both"
    early: bool = False
    result: bool = False
    handlings: tuple[Handling, ...] = ()
    findings: tuple[Finding, ...] = ()

    @property
    def marks(self) -> tuple[str, ...]:
        """What is to be said beside the event: maps, joins, conditions, and what is wrong."""
        named = len({handling.handler for handling in self.handlings}) > 1
        told = [((handling.handler if named else ""), handling.text) for handling in self.handlings]
        marks = [": ".join(filter(None, pair)) for pair in told if any(pair)]
        marks += ["early"] * self.early + ["result"] * self.result
        return (*marks, *faults(self.findings), *([f"only in the {self.origin}"] if self.origin != "both" else []))


@dataclass(frozen=True, slots=True)
class Picture:
    """Nodes and edges, in the order of the swarm and its table.

    Attributes:
        view: `roles` has an edge from publisher to handler, `events` has the events as nodes between them.
        findings: everything the check reports.
    """

    view: View
    nodes: tuple[Node, ...]
    edges: tuple[Edge, ...]
    findings: tuple[Finding, ...] = ()


def draw(swarm: Swarm[Any], view: View = "roles") -> Picture:
    """Return the picture of a swarm. Calls no model and runs no handler."""
    findings = tuple(swarm.check())
    routes = read_routes(swarm.wiring, swarm.table)
    edges = _by_role(routes, findings) if view == "roles" else _by_event(routes, findings)
    said = {finding for edge in edges for finding in edge.findings}
    nodes = [_node(place, swarm.wiring) for place in _places(swarm.wiring, routes)]
    if view == "events":
        nodes += _event_nodes(routes)
    return Picture(view, tuple(_with_findings(node, findings, said) for node in nodes), tuple(edges), findings)


def faults(findings: Iterable[Finding]) -> tuple[str, ...]:
    """Return each code once, with its title."""
    return tuple(dict.fromkeys(f"{finding.code} {CODES[finding.code].title}" for finding in findings))


def _by_role(routes: Sequence[Route], findings: Sequence[Finding]) -> list[Edge]:
    return [
        Edge(
            route.source.id,
            route.target.id,
            name_of(route.event),
            _worse(route.published, route.handled),
            route.early,
            route.result,
            route.handlings,
            (*_publishing(route, findings), *_handling(route, findings), *_of_nobody(route, findings)),
        )
        for route in routes
    ]


def _by_event(routes: Sequence[Route], findings: Sequence[Finding]) -> list[Edge]:
    edges: dict[tuple[str, str], Edge] = {}
    for route, event in zip(routes, _event_ids(routes), strict=True):
        name = name_of(route.event)
        publishing = Edge(
            route.source.id, event, name, route.published, route.early, findings=_publishing(route, findings)
        )
        handling = Edge(
            event,
            route.target.id,
            name,
            route.handled,
            result=route.result,
            handlings=route.handlings,
            findings=_handling(route, findings),
        )
        for edge in (publishing, handling):
            edges.setdefault((edge.source, edge.target), edge)
    return list(edges.values())


def _event_ids(routes: Sequence[Route]) -> list[str]:
    """Return the node of each route's event.

    Publishers whose events go the same ways share a node; where they do not, a shared one would show ways that do
    not exist, so that the event is drawn once for each set of ways.
    """
    ways: dict[tuple[int, Place], set[Place]] = {}
    for route in routes:
        ways.setdefault((id(route.event), route.source), set()).add(route.target)
    ids: dict[tuple[int, frozenset[Place]], str] = {}
    taken: dict[str, int] = {}
    for route in routes:
        way = (id(route.event), frozenset(ways[id(route.event), route.source]))
        if way not in ids:
            name = f"event:{wire_name(route.event)}"
            taken[name] = taken.get(name, 0) + 1
            ids[way] = name if taken[name] == 1 else f"{name}/{taken[name]}"
    return [ids[id(route.event), frozenset(ways[id(route.event), route.source])] for route in routes]


def _event_nodes(routes: Sequence[Route]) -> list[Node]:
    nodes: dict[str, Node] = {}
    for route, event in zip(routes, _event_ids(routes), strict=True):
        facts = ("result",) if route.result else ()
        node = nodes.setdefault(event, Node(event, "event", name_of(route.event), wire_name(route.event)))
        nodes[event] = replace(node, facts=node.facts or facts)
    return list(nodes.values())


def _of_nobody(route: Route, findings: Sequence[Finding]) -> tuple[Finding, ...]:
    """Return what concerns the event alone."""
    return tuple(f for f in _about(route, findings) if f.role is None)


def _publishing(route: Route, findings: Sequence[Finding]) -> tuple[Finding, ...]:
    """Return what concerns the publisher's half."""
    handling = _handling(route, findings)
    return tuple(f for f in _about(route, findings) if _concerns(f, route.source) and f not in handling)


def _handling(route: Route, findings: Sequence[Finding]) -> tuple[Finding, ...]:
    """Return what concerns the handler's half."""
    return tuple(f for f in _about(route, findings) if _concerns(f, route.target) and f.code not in _PUBLISHING)


def _concerns(finding: Finding, place: Place) -> bool:
    return place.kind in ("role", "missing") and finding.role == place.name


def _about(route: Route, findings: Sequence[Finding]) -> list[Finding]:
    return [finding for finding in findings if finding.event == name_of(route.event)]


def _with_findings(node: Node, findings: Sequence[Finding], said: set[Finding]) -> Node:
    def concerns(finding: Finding) -> bool:
        if node.kind == "event":
            return finding.event == node.name and finding.role is None
        if node.kind in ("role", "missing"):
            return finding.role == node.name and (finding not in said or node.kind == "missing")
        return False

    return replace(node, findings=tuple(finding for finding in findings if concerns(finding)))


def _places(wiring: Sequence[RoleWiring], routes: Sequence[Route]) -> list[Place]:
    """Return the client, the roles in their order, and who else takes part, each once."""
    seen = [place for route in routes for place in (route.source, route.target)]
    first = [place for place in seen if place.kind == "client"]
    return list(dict.fromkeys([*first, *(Place("role", role.name) for role in wiring), *seen]))


def _node(place: Place, wiring: Sequence[RoleWiring]) -> Node:
    roles = [role for role in wiring if place == Place("role", role.name)]
    if not roles:
        return Node(place.id, place.kind, place.name)
    role = roles[0]
    facts = [
        f"{len(roles)} roles of this name" if len(roles) > 1 else "",
        "state" if role.state is not None else "",
        f"concurrency {role.concurrency}" if role.concurrency > 1 else "",
        f"{len(role.tools)} tool{'s' * (len(role.tools) > 1)}" if role.tools else "",
    ]
    says = (_own_docstring(role) or "").strip().partition("\n")[0]
    return Node(place.id, place.kind, place.name, says, tuple(fact for fact in facts if fact))


def _own_docstring(role: RoleWiring) -> str | None:
    return role.cls.__doc__  # inspect.getdoc would give that of Role to a class without one


def _worse(one: Origin, other: Origin) -> Origin:
    return other if one == "both" else one
