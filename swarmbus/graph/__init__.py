"""Pictures of a swarm: one model of nodes and edges, written in several formats, or as a networkx graph."""

from __future__ import annotations

from typing import TYPE_CHECKING

from swarmbus.graph.dot import to_dot
from swarmbus.graph.json import to_json
from swarmbus.graph.mermaid import to_mermaid
from swarmbus.graph.picture import VIEWS, Edge, Node, Picture, View, draw
from swarmbus.graph.text import to_text

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    import networkx as nx

__all__ = ["FORMATS", "VIEWS", "Edge", "Node", "Picture", "View", "draw", "to_network"]

FORMATS: Mapping[str, Callable[[Picture], str]] = {
    "text": to_text,
    "mermaid": to_mermaid,
    "dot": to_dot,
    "json": to_json,
}
"""What writes a picture in each format."""


def to_network(picture: Picture) -> nx.MultiDiGraph[str]:
    """Return a picture as a networkx graph; see `swarmbus.graph.network`."""
    from swarmbus.graph import network  # noqa: PLC0415  # networkx takes 0.4 s to import, and no picture needs it

    return network.to_network(picture)
