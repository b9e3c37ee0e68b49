"""The picture as a Mermaid flowchart (https://mermaid.js.org/syntax/flowchart.html)."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from swarmbus.graph.picture import faults
from swarmbus.graph.text import printable

if TYPE_CHECKING:
    from swarmbus.graph.picture import Edge, Node, Picture

MOST_EDGES = 500
"""Edges above which Mermaid refuses to draw, unless the page that shows the chart allows more."""

_SHAPES = {
    "role": '["{}"]',
    "event": '("{}")',
    "client": '(["{}"])',
    "system": '{{{{"{}"}}}}',
    "external": '[["{}"]]',
    "missing": '["{}"]',
    "nobody": '(("{}"))',
}
_CLASSES = {
    "broken": "stroke:#c0392b,stroke-width:2px,stroke-dasharray:4",
    "warned": "stroke:#b9770e,stroke-width:2px",
}
_MARKS = re.compile(r"[^\w\s\-,:/()=.…]|\A\s*[-.:]|(?<=\d)\.(?=\s|\Z)")
"""What has a meaning to Mermaid, to HTML or to the Markdown within a label."""


def to_mermaid(picture: Picture) -> str:
    """Write a picture as a Mermaid flowchart."""
    ids = _ids(picture.nodes)
    lines = ["flowchart LR"]
    lines += [f"    {ids[node.id]}{_shape(node)}" for node in picture.nodes]
    lines += [_arrow(edge, ids, picture.view == "roles") for edge in picture.edges]
    for name, style in _CLASSES.items():
        members = [ids[node.id] for node in picture.nodes if _class(node) == name]
        if members:
            lines += [f"    classDef {name} {style}", f"    class {','.join(members)} {name}"]
    broken = [str(index) for index, edge in enumerate(picture.edges) if _is_broken(edge)]
    if broken:
        lines.append(f"    linkStyle {','.join(broken)} stroke:#c0392b")
    return "\n".join(lines) + "\n"


def escape(text: str) -> str:
    """Return text for the inside of a quoted label: what could mean something is written as its number."""
    return _MARKS.sub(lambda match: "".join(f"#{ord(character)};" for character in match[0]), printable(text))


def _shape(node: Node) -> str:
    lines = [node.name, node.says if node.kind != "event" else "", *node.facts, *faults(node.findings)]
    return _SHAPES[node.kind].format("<br/>".join(escape(line) for line in lines if line))


def _arrow(edge: Edge, ids: dict[str, str], with_event: bool) -> str:
    label = "<br/>".join(escape(line) for line in ([edge.event] * with_event + list(edge.marks)))
    arrow = "-.->" if _is_broken(edge) else "==>" if edge.result else "-->"
    quoted = f'|"{label}"|' if label else ""
    return f"    {ids[edge.source]} {arrow}{quoted} {ids[edge.target]}"


def _ids(nodes: tuple[Node, ...]) -> dict[str, str]:
    """Return an identifier for each node; with the kind before it, none is a word of the language."""
    ids: dict[str, str] = {}
    for node in nodes:
        plain = re.sub(r"[^A-Za-z0-9]+", "_", node.id).strip("_")
        plain = f"{node.kind}_" if plain == node.kind and ":" in node.id else plain
        taken = set(ids.values())
        numbered = (f"{plain}_{count}" for count in range(2, len(nodes) + 2))
        ids[node.id] = next(name for name in (plain, *numbered) if name not in taken)
    return ids


def _class(node: Node) -> str | None:
    if node.kind in ("missing", "nobody") or any(finding.severity == "error" for finding in node.findings):
        return "broken"
    return "warned" if node.findings else None


def _is_broken(edge: Edge) -> bool:
    return edge.origin != "both" or any(finding.severity == "error" for finding in edge.findings)
