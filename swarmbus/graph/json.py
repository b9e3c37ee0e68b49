"""The picture as JSON, for programs."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from swarmbus.graph.picture import Edge, Node, Picture


def to_json(picture: Picture) -> str:
    """Write a picture as JSON; nodes and edges name their findings by code, all findings stand at the end."""
    document = {
        "view": picture.view,
        "nodes": [node_fields(node) for node in picture.nodes],
        "edges": [{"source": edge.source, "target": edge.target, **edge_fields(edge)} for edge in picture.edges],
        "findings": [asdict(finding) for finding in picture.findings],
    }
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"


def node_fields(node: Node) -> dict[str, Any]:
    """Return what is known of a node, findings as codes."""
    return {**asdict(node), "facts": list(node.facts), "findings": [finding.code for finding in node.findings]}


def edge_fields(edge: Edge) -> dict[str, Any]:
    """Return what is known of an edge beside its ends, findings as codes."""
    fields = asdict(edge)
    del fields["source"], fields["target"]
    handlings = [asdict(handling) for handling in edge.handlings]
    return {**fields, "handlings": handlings, "findings": [finding.code for finding in edge.findings]}
