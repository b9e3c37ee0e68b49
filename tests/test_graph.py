"""Pictures: the edges are the table, faults are marked, every format says the same and survives awkward names."""

# mypy: disable-error-code="empty-body"
# The handlers are only read, never run.

from __future__ import annotations

import json
import re
import tempfile
from typing import TYPE_CHECKING, Any

import networkx as nx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from swarms import mended, research, twelve_faults

from swarmbus.events import Event
from swarmbus.graph import FORMATS, VIEWS, Edge, Node, Picture, draw, to_network
from swarmbus.graph.conditions import condition
from swarmbus.graph.mermaid import to_mermaid
from swarmbus.handlers import on
from swarmbus.role import Role
from swarmbus.role_context import RoleContext
from swarmbus.swarm import Swarm
from swarmbus.table import CLIENT, EventTable, External, address, parties

if TYPE_CHECKING:
    from collections.abc import Callable

Triple = tuple[str, str, str]


class Asked(Event):
    text: str


class Told(Event):
    text: str


class Echo(Role):
    @on
    async def echo(self, event: Asked) -> Told: ...


def edges_of_table(table: EventTable[Any]) -> set[Triple]:
    return {
        (address(publisher), row.event.__name__, address(handler))  # type: ignore[arg-type]
        for row in table.rows
        for publisher in parties(row.publishers)
        for handler in parties(row.handlers)
    }


def from_text(text: str) -> list[Triple]:
    lines = re.findall(r"^(\S+)(?: \(.*?\))? +--(.+?)--> +(\S+(?: \(.*?\))?)", text, re.MULTILINE)
    outside = re.compile(r"(.*) \(outside\)")
    return [(source, event, outside.sub(r"external:\1", target)) for source, event, target in lines]


def from_mermaid(text: str) -> list[Triple]:
    names = {
        identifier: f"external:{label}" if shape == "[[" else label
        for identifier, shape, label in re.findall(
            r'^    (\w+)([\[({]+)"(.*?)(?:<br/>.*)?"[\])}]+$', text, re.MULTILINE
        )
    }
    edges = re.findall(r'^    (\w+) (?:-->|==>|-\.->)\|"(.*?)(?:<br/>.*)?"\| (\w+)$', text, re.MULTILINE)
    return [(unmark(names[source]), unmark(event), unmark(names[target])) for source, event, target in edges]


def unmark(text: str) -> str:
    return re.sub(r"#(\d+);", lambda match: chr(int(match[1])), text)


def from_dot(text: str) -> list[Triple]:
    graph = read_dot(text)
    names = {
        node: label if not node.startswith("external:") else node
        for node, label in ((node, unescape(fields["label"])) for node, fields in graph.nodes(data=True))
    }
    return [
        (names[source], unescape(fields["label"]), names[target]) for source, target, fields in graph.edges(data=True)
    ]


def read_dot(text: str) -> nx.MultiDiGraph[str]:
    """Read it with Graphviz's own parser, which reads real files alone."""
    with tempfile.NamedTemporaryFile(suffix=".dot") as file:
        file.write(text.encode())
        file.flush()
        graph = nx.nx_agraph.read_dot(file.name)
    assert isinstance(graph, nx.MultiDiGraph)
    return graph


def unescape(label: str) -> str:
    """Return the first line of a label."""
    first = re.match(r"(?:[^\\]|\\[^n])*", label)
    assert first is not None
    return re.sub(r"\\(.)", r"\1", first[0]).replace("&amp;", "&")


def from_json(text: str) -> list[Triple]:
    document = json.loads(text)
    names = {node["id"]: node["id"] if node["kind"] == "external" else node["name"] for node in document["nodes"]}
    return [(names[edge["source"]], edge["event"], names[edge["target"]]) for edge in document["edges"]]


READERS: dict[str, Callable[[str], list[Triple]]] = {
    "text": from_text,
    "mermaid": from_mermaid,
    "dot": from_dot,
    "json": from_json,
}


@pytest.mark.parametrize("swarm", [research.swarm, mended.swarm], ids=["research", "mended"])
@pytest.mark.parametrize("form", FORMATS)
def test_the_edges_are_exactly_the_table_each_once(form: str, swarm: Swarm[Any]) -> None:
    edges = READERS[form](FORMATS[form](draw(swarm)))
    assert set(edges) == edges_of_table(swarm.table)
    assert len(edges) == len(set(edges))


def test_with_events_as_nodes_the_edges_are_the_halves_of_the_table() -> None:
    picture = draw(research.swarm, "events")
    names = {node.id: node.name for node in picture.nodes}
    table = edges_of_table(research.swarm.table)
    publishing = {(source, event) for source, event, _ in table}
    handling = {(event, target.removeprefix("external:")) for _, event, target in table}
    assert {(names[edge.source], names[edge.target]) for edge in picture.edges} == publishing | handling
    assert len(picture.edges) == len(publishing) + len(handling)


def test_an_event_that_goes_different_ways_is_drawn_once_for_each() -> None:
    swarm = Swarm(
        *(Echo().named(name) for name in ("left", "right")),
        table=EventTable(
            (CLIENT, Asked, ("left", "right")), ("left", Told, CLIENT), ("right", Told, External("archive"))
        ),
    )
    edges = {(edge.source, edge.target) for edge in draw(swarm, "events").edges if edge.event == "Told"}
    assert edges == {
        ("role:left", "event:told"),
        ("event:told", "client"),
        ("role:right", "event:told/2"),
        ("event:told/2", "external:archive"),
    }


def test_an_edge_says_how_it_is_handled() -> None:
    marks = {(edge.event, edge.target): edge.marks for edge in draw(research.swarm).edges}
    assert marks == {
        ("QuestionAsked", "role:planner"): ("plan: when not event.urgent", "hurry: when event.urgent"),
        ("TaskPlanned", "role:executor"): ("each steps",),
        ("TaskPlanned", "role:aggregator"): ("opens join write",),
        ("PlanRefused", "client"): (),
        ("StepStarted", "external:dashboard"): ("early",),
        ("StepDone", "role:aggregator"): ("joined per TaskPlanned, partial proceed",),
        ("ReportReady", "client"): ("result",),
        ("HandlerFailed", "role:auditor"): (),
    }


def test_an_edge_shows_every_handler_that_delivery_may_choose_in_the_order_in_which_they_are_asked() -> None:
    class Louder(Asked):
        loud: bool = True

    class Choosy(Role):
        @on
        async def any(self, event: Asked) -> None: ...

        @on(Louder, when=lambda event: event.loud)
        async def loud(self, event: Louder) -> None: ...

    (edge,) = draw(Swarm(Choosy(), table=EventTable((CLIENT, Louder, "choosy")))).edges
    assert edge.marks == ("loud: when event.loud", "any")


def test_a_node_says_what_it_is() -> None:
    nodes = {node.id: (node.kind, node.says, node.facts) for node in draw(research.swarm, "events").nodes}
    assert nodes["role:planner"] == ("role", "Splits the question into steps.", ("state",))
    assert nodes["role:executor"][2] == ("concurrency 8", "1 tool")
    assert nodes["event:report_ready"] == ("event", "report_ready", ("result",))
    assert [nodes[node][0] for node in ("client", "system", "external:dashboard")] == ["client", "system", "external"]


@pytest.mark.parametrize("view", VIEWS)
def test_a_broken_wiring_is_drawn_with_every_finding_at_its_place(view: Any) -> None:
    picture = draw(twelve_faults.swarm, view)
    parts: tuple[Node | Edge, ...] = (*picture.nodes, *picture.edges)
    marked = {finding for part in parts for finding in part.findings}
    assert marked == set(twelve_faults.swarm.check()) == set(picture.findings)


def test_a_broken_wiring_shows_table_and_code_together() -> None:
    picture = draw(twelve_faults.swarm)
    names = {node.id: node.name for node in picture.nodes}
    by_origin: dict[str, set[Triple]] = {"both": set(), "table": set(), "wiring": set()}
    for edge in picture.edges:
        by_origin[edge.origin].add((names[edge.source], edge.event, names[edge.target]))
    assert by_origin["both"] | by_origin["table"] == {
        (source, event, target) for source, event, target in edges_of_table(twelve_faults.swarm.table)
    }
    assert by_origin["wiring"] == {
        ("editor", "NoteTaken", "nobody"),
        ("reviewer", "AspectReviewed", "archivist"),
        ("nobody", "PaperRetracted", "archivist"),
    }


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("view", VIEWS)
def test_a_broken_wiring_is_written_in_every_format(form: str, view: Any) -> None:
    picture = draw(twelve_faults.swarm, view)
    text = FORMATS[form](picture)
    assert all(finding.code in text for finding in picture.findings)
    assert view == "events" or len(READERS[form](text)) == len(picture.edges)


def test_what_is_no_event_and_no_party_is_drawn_as_it_is_written() -> None:
    swarm = Swarm(Echo(), table=EventTable((CLIENT, Asked, "echo"), ("echo", "told", 7), ((), Told, ())))
    edges = {(edge.source, edge.event, edge.target, edge.origin) for edge in draw(swarm).edges}
    assert edges == {
        ("client", "Asked", "role:echo", "both"),
        ("role:echo", "'told'", "missing:7", "table"),
        ("nobody", "Told", "nobody", "both"),
        ("role:echo", "Told", "nobody", "wiring"),
    }


class Looping(Role):
    @on
    async def again(self, event: Asked) -> Asked | Told | None: ...


class Answering(Role):
    @on
    async def ask(self, event: Told) -> Asked | None: ...


def test_loops_and_parallel_edges_are_drawn_once_each() -> None:
    swarm = Swarm(
        Looping(),
        Answering(),
        table=EventTable(
            ((CLIENT, "looping", "answering"), Asked, "looping"), ("looping", Told, ("answering", CLIENT)), result=Told
        ),
    )
    picture = draw(swarm)
    for form, write in FORMATS.items():
        edges = READERS[form](write(picture))
        assert len(edges) == len(set(edges))
        assert set(edges) == edges_of_table(swarm.table)


def test_two_events_between_the_same_roles_are_two_edges() -> None:
    class Twice(Role):
        @on
        async def both(self, event: Asked) -> tuple[Asked | Told, ...]: ...

    table: EventTable[Event] = EventTable((CLIENT, Asked, "twice"), ("twice", Asked, CLIENT), ("twice", Told, CLIENT))
    assert len(to_network(draw(Swarm(Twice(), table=table))).get_edge_data("role:twice", "client")) == 2


@pytest.mark.parametrize("form", FORMATS)
def test_a_cycle_without_end_and_parallel_edges_are_drawn_once_each(form: str) -> None:
    class Endless(Role):
        @on
        async def again(self, event: Asked | Told) -> tuple[Asked | Told, ...]: ...

    class Spinning(Role):
        @on
        async def spin(self, event: Asked) -> Asked: ...

    table: EventTable[Event] = EventTable(
        (CLIENT, Asked, ("endless", "spinning")),
        ("endless", Asked, ("endless", "spinning")),
        ("endless", Told, "endless"),
        ("spinning", Asked, "spinning"),
    )
    picture = draw(Swarm(Endless(), Spinning(), table=table))
    text = FORMATS[form](picture)
    edges = READERS[form](text)
    assert (set(edges), len(edges)) == (edges_of_table(table), 6)
    assert [finding.code for finding in picture.findings] == ["SB205"]
    assert "SB205" in text


def test_two_hundred_roles_are_drawn() -> None:
    names = tuple(f"echo_{number}" for number in range(200))
    swarm = Swarm(
        *(Echo().named(name) for name in names), table=EventTable((CLIENT, Asked, names), (names, Told, CLIENT))
    )
    picture = draw(swarm)
    assert len(picture.nodes) == 201
    for form, write in FORMATS.items():
        assert set(READERS[form](write(picture))) == edges_of_table(swarm.table)


NAMES = (
    *("end", "graph", "o", "x", "class", "client", ""),
    *('say "hi"', "a[b]", "{}", "a|b", "#quot;", "<br/>", "&lt;", "a\\", "%%{init}%%"),
    *("größe", "計画", "1. one", "- a", "`x`", "two\nlines", "\x1b[31m"),
)


def awkward(*names: str) -> Picture:
    return draw(Swarm(Echo(), table=EventTable((CLIENT, Asked, ("echo", *names)), ("echo", Told, CLIENT))))


@pytest.mark.parametrize("form", FORMATS)
def test_awkward_names_stay_apart_and_break_nothing(form: str) -> None:
    picture = awkward(*NAMES)
    text = FORMATS[form](picture)
    assert not [character for character in text if not character.isprintable() and character != "\n"]
    if form != "text":
        edges = READERS[form](text)
        assert len(edges) == len(picture.edges) == len(NAMES) + 2
        shown = {target for _, _, target in edges}
        assert {name for name in NAMES if name.isprintable() and name.strip()} <= shown


@settings(deadline=None)
@given(st.lists(st.text(max_size=12), max_size=5, unique=True))
def test_graphviz_reads_whatever_names_there_are(names: list[str]) -> None:
    picture = awkward(*names)
    graph = read_dot(FORMATS["dot"](picture))
    assert (len(graph), graph.number_of_edges()) == (len(picture.nodes), len(picture.edges))


@settings(deadline=None)
@given(st.lists(st.text(max_size=12), max_size=5, unique=True))
def test_mermaid_gets_only_words_and_quoted_labels(names: list[str]) -> None:
    picture = awkward(*names)
    _, *lines = to_mermaid(picture).splitlines()
    node = r'\w+(\["[^"]*"\]|\(\["[^"]*"\]\))'
    edge = r'\w+ (-->|-\.->)\|"[^"]*"\| \w+'
    style = r"(classDef|class|linkStyle) [\w,]+ [\w:#,-]+"
    assert all(re.fullmatch(rf"    ({node}|{edge}|{style})", line) for line in lines)
    assert len(from_mermaid(to_mermaid(picture))) == len(picture.edges)


def test_the_networkx_graph_carries_what_is_known() -> None:
    network = to_network(draw(research.swarm))
    assert set(network.edges(keys=True)) == {
        (edge.source, edge.target, edge.event) for edge in draw(research.swarm).edges
    }
    assert network.nodes["role:executor"]["facts"] == ["concurrency 8", "1 tool"]
    assert network.edges["role:executor", "role:aggregator", "StepDone"]["handlings"][0]["kind"] == "join"
    assert nx.has_path(network, "client", "role:aggregator")


def named(event: Any) -> bool:
    return bool(event)


@pytest.mark.parametrize(
    ("function", "text"),
    [
        (lambda event: event.urgent, "event.urgent"),
        (lambda event: not event.urgent and event.size > 3, "not event.urgent and event.size > 3"),
        (lambda event: [step for step in event.steps if step], "[step for step in event.steps if step]"),
        (
            lambda event: sorted(event.steps, key=lambda step: step.size),
            "sorted(event.steps, key=lambda step: step.size)",
        ),
        (lambda event: event.a_rather_long_name + event.another_rather_long_name + event.yet_another, None),
        (named, "named"),
        (len, "len"),
        (eval("lambda event: event"), "lambda"),  # its source is nowhere
    ],
    ids=["field", "expression", "comprehension", "nested", "long", "function", "builtin", "sourceless"],
)
def test_a_condition_is_shown_as_it_is_written(function: Callable[..., Any], text: str | None) -> None:
    shown = condition(function)
    assert shown == text if text else (len(shown) == 60 and shown.endswith("…"))


def test_two_conditions_on_one_line_are_told_apart() -> None:
    first, second = (lambda event: event.one), (lambda event: event.two)
    assert (condition(first), condition(second)) == ("event.one", "event.two")


def test_a_handler_that_publishes_early_says_so() -> None:
    class Early(Role):
        @on
        async def tell(self, event: Asked, ctx: RoleContext[Told]) -> None: ...

    swarm = Swarm(Early(), table=EventTable((CLIENT, Asked, "early"), ("early", Told, CLIENT)))
    assert [(edge.event, edge.early) for edge in draw(swarm).edges] == [("Asked", False), ("Told", True)]
