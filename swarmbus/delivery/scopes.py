"""The tree of a run: scopes opened by opener events and the items of maps, each counting what is live below it.

A node keeps one counter for each column (see `topology`). What is live in a node counts there; a child counts once in
its parent for each column that is not zero in it, so a change travels outwards only when a counter leaves or reaches
zero.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from swarmbus.delivery.deliveries import MapCursor
    from swarmbus.delivery.joins import Join


class Node:
    """The root, a scope, or an item of a map.

    Attributes:
        joins: for a scope, the joins its opener opened, by column.
        cursor, index: for an item, its map and place in it.
        counts: what is live below, by column; absent is zero.
        found: for each join column the join that a contribution published here belongs to, and as which of its items.
    """

    __slots__ = ("counts", "cursor", "found", "index", "joins", "parent")

    def __init__(self, parent: Node | None, cursor: MapCursor | None = None, index: int = -1) -> None:
        self.parent = parent
        self.cursor = cursor
        self.index = index
        self.joins: dict[int, Join] | None = None
        self.counts: dict[int, int] = {}
        self.found: dict[int, tuple[Join | None, int]] | None = None

    def add(self, columns: Iterable[int]) -> None:
        """Count one more live thing that reaches these columns."""
        for column in columns:
            node: Node | None = self
            while node is not None:
                counts = node.counts
                count = counts.get(column, 0)
                counts[column] = count + 1
                if count:
                    break
                node = node.parent

    def remove(self, columns: Iterable[int], zeros: list[tuple[Node, int]]) -> None:
        """Count one live thing less, appending to `zeros` each (node, column) that became quiet."""
        for column in columns:
            node: Node | None = self
            while node is not None:
                counts = node.counts
                count = counts[column] - 1
                if count:
                    counts[column] = count
                    break
                del counts[column]
                zeros.append((node, column))
                node = node.parent

    def belongs(self, column: int) -> tuple[Join | None, int]:
        """Return the join of the nearest opener and the item (or -1) that a contribution published here counts for."""
        found = self.found
        if found is not None and column in found:
            return found[column]
        path: list[Node] = []
        node: Node = self
        answer: tuple[Join | None, int] | None = None
        while answer is None:
            if node.found is not None and column in node.found:
                answer = node.found[column]
            elif node.joins is not None and column in node.joins:
                answer = (node.joins[column], -1)
            elif node.parent is None:
                answer = (None, -1)
            else:
                path.append(node)
                node = node.parent
        for node in reversed(path):
            answer = node.refine(column, answer)
            if node.found is None:
                node.found = {}
            node.found[column] = answer
        return answer

    def refine(self, column: int, outer: tuple[Join | None, int]) -> tuple[Join | None, int]:
        """Return what the parent's answer becomes inside this node: the outermost item below the opener names it."""
        join, item = outer
        cursor = self.cursor
        if join is None or item >= 0 or cursor is None or column not in cursor.handler.reaches:
            return outer
        return (join, join.item_of(cursor, self.index))
