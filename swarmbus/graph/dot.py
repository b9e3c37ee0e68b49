"""The picture in Graphviz's language (https://graphviz.org/doc/info/lang.html)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from swarmbus.graph.picture import faults
from swarmbus.graph.text import printable

if TYPE_CHECKING:
    from swarmbus.graph.picture import Edge, Node, Picture

_SHAPES = {
    "role": "shape=box",
    "event": 'shape=box, style="rounded"',
    "client": "shape=oval",
    "system": "shape=hexagon",
    "external": "shape=component",
    "missing": 'shape=box, style="dashed"',
    "nobody": "shape=point",
}
_RED, _AMBER = 'color="#c0392b"', 'color="#b9770e"'


def to_dot(picture: Picture) -> str:
    """Write a picture as a DOT digraph; the nodes' names are their ids."""
    lines = ["digraph swarm {", "    rankdir=LR;"]
    lines += [_node(node) for node in picture.nodes]
    lines += [_edge(edge, picture.view == "roles") for edge in picture.edges]
    return "\n".join([*lines, "}"]) + "\n"


def escape(text: str) -> str:
    """Return a quoted string that stands for exactly this text in a label: no escape, no HTML entity, one line."""
    return '"' + printable(text).replace("\\", "\\\\").replace('"', '\\"').replace("&", "&amp;") + '"'


def _node(node: Node) -> str:
    lines = [node.name, node.says if node.kind != "event" else "", *node.facts, *faults(node.findings)]
    colour = ""
    if node.findings or node.kind == "missing":
        broken = node.kind == "missing" or any(finding.severity == "error" for finding in node.findings)
        colour = f", {_RED if broken else _AMBER}"
    return f"    {escape(node.id)} [label={_label(lines)}, {_SHAPES[node.kind]}{colour}];"


def _edge(edge: Edge, with_event: bool) -> str:
    lines = [edge.event] * with_event + list(edge.marks)
    broken = edge.origin != "both" or any(finding.severity == "error" for finding in edge.findings)
    options = [f"label={_label(lines)}"] if lines else []
    options += ['style="dashed"', _RED] if broken else ['style="bold"'] if edge.result else []
    told = f" [{', '.join(options)}]" if options else ""
    return f"    {escape(edge.source)} -> {escape(edge.target)}{told};"


def _label(lines: list[str]) -> str:
    return '"' + "\\n".join(escape(line)[1:-1] for line in lines if line) + '"'
