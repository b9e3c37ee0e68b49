"""The picture as a networkx graph, for those who want to compute with it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import networkx as nx

from swarmbus.graph.json import edge_fields, node_fields

if TYPE_CHECKING:
    from swarmbus.graph.picture import Picture


def to_network(picture: Picture) -> nx.MultiDiGraph[str]:
    """Return a directed graph with the nodes' ids as its nodes; what is known of nodes and edges are attributes.

    Edges between the same nodes are told apart by their event, whose class name is the key.
    """
    network: nx.MultiDiGraph[str] = nx.MultiDiGraph(view=picture.view)
    for node in picture.nodes:
        network.add_node(node.id, **{name: value for name, value in node_fields(node).items() if name != "id"})
    for edge in picture.edges:
        keys = (edge.event, *(f"{edge.event}/{count}" for count in range(2, len(picture.edges) + 1)))
        key = next(key for key in keys if not network.has_edge(edge.source, edge.target, key))
        network.add_edge(edge.source, edge.target, key=key, **edge_fields(edge))
    return network
