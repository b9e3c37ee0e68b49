"""The picture as plain text: a line for each edge, and the findings below."""

from __future__ import annotations

from typing import TYPE_CHECKING

from swarmbus.graph.picture import faults

if TYPE_CHECKING:
    from collections.abc import Sequence

    from swarmbus.graph.picture import Edge, Node, Picture


def to_text(picture: Picture) -> str:
    """Write a picture as text."""
    names = {node.id: printable(_name(node)) for node in picture.nodes}
    rows = [_row(edge, names, picture.view == "roles") for edge in picture.edges]
    lines = _aligned(rows)
    about = [(names[node.id], said) for node in picture.nodes if (said := _said(node))]
    if about:
        lines += ["", *_aligned(about)]
    if picture.findings:
        lines += ["", *(printable(line) for finding in picture.findings for line in str(finding).splitlines())]
    return "".join(f"{line}\n" for line in lines)


def printable(text: str) -> str:
    """Return text that neither breaks a line nor controls a terminal."""
    return "".join(character if character.isprintable() else _escaped(character) for character in text)


def _escaped(character: str) -> str:
    return character.encode("unicode_escape").decode()


def _name(node: Node) -> str:
    if node.kind == "event":
        _, _, copy = node.id.partition("/")
        return f"{node.name} ({copy})" if copy else node.name
    return {"external": f"{node.name} (outside)", "missing": f"{node.name} (no such role)"}.get(node.kind, node.name)


def _row(edge: Edge, names: dict[str, str], with_event: bool) -> tuple[str, ...]:
    marks = printable("; ".join(edge.marks))
    if with_event:
        return names[edge.source], f"--{printable(edge.event)}-->", names[edge.target], marks
    return names[edge.source], "-->", names[edge.target], marks


def _said(node: Node) -> str:
    if node.kind == "event":
        return "; ".join(faults(node.findings))
    facts = f"({', '.join(node.facts)})" if node.facts else ""
    return printable(" ".join(part for part in (node.says, facts, "; ".join(faults(node.findings))) if part))


def _aligned(rows: Sequence[tuple[str, ...]]) -> list[str]:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
