"""What a query finds in all documents, kept for when one document after the other is asked the same.

How rare a word is has to be counted over all documents, which a search of a single one would else do each time.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

REMEMBERED = 32
"""Queries that are remembered, the latest."""


class Rankings:
    """Rows and scores of the queries that were asked more than once.

    Args:
        ask: returns all rows that a query finds, in order, with their scores.
    """

    def __init__(self, ask: Callable[[str], Iterable[tuple[int, float]]]) -> None:
        self._ask = ask
        self._asked: dict[str, _Ranking | None] = {}

    def __len__(self) -> int:
        return len(self._asked)

    def within(self, query: str, first: int, last: int) -> dict[int, float] | None:
        """Return the scores of the rows from one to another, both included; None where it is asked the first time."""
        known = query in self._asked
        found = self._asked.pop(query, None)
        if known and found is None:
            found = _Ranking(self._ask(query))
        self._asked[query] = found
        if len(self._asked) > REMEMBERED:
            del self._asked[next(iter(self._asked))]
        return None if found is None else found.within(first, last)


class _Ranking:
    def __init__(self, found: Iterable[tuple[int, float]]) -> None:
        self._rows = array("q")
        self._scores = array("d")
        for row, score in found:
            self._rows.append(row)
            self._scores.append(score)

    def within(self, first: int, last: int) -> dict[int, float]:
        start, stop = bisect_left(self._rows, first), bisect_right(self._rows, last)
        return dict(zip(self._rows[start:stop], self._scores[start:stop], strict=True))
