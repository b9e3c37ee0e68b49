"""Which items of a run's maps are open: pacing, not a record.

A role keeps at most so many items of one run open. The next item opens when everything an open one caused has gone
quiet: that of the deepest map first, so that nested work finishes before more of it starts, and every map has at least
one open.

Unopened items are backlog: a handler of the run that would publish to the role before it returns waits while there are
too many. They hold up no other run, whose events wait in the inbox at most behind the open items.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import anyio

if TYPE_CHECKING:
    from collections.abc import Callable

    from swarmbus.delivery.deliveries import Delivery, MapCursor


BACKLOG = 1000
"""Unopened items of one run's maps for one role with which others of the run wait to publish to it."""


class Pacer:
    """Opens the items of one run's maps for one role, as far as `limit` lets it."""

    def __init__(self, limit: int, send: Callable[[Delivery], None]) -> None:
        self._limit = limit
        self._send = send
        self._active = 0
        self._cursors: list[MapCursor] = []
        self._waiting: anyio.Event | None = None

    @property
    def is_full(self) -> bool:
        """Whether too many items are not open yet."""
        return self.backlog >= BACKLOG

    @property
    def backlog(self) -> int:
        """How many items are not open yet."""
        return sum(cursor.unopened for cursor in self._cursors)

    async def room(self) -> None:
        """Wait while too many items are not open yet; those who wait go on when half of that is left."""
        while self.is_full:
            self._waiting = self._waiting or anyio.Event()
            await self._waiting.wait()

    def dropped(self) -> None:
        """Take note that a map was cancelled."""
        self._make_room()

    def add(self, cursor: MapCursor) -> None:
        """Take on a map."""
        self._active += cursor.active
        self._cursors.append(cursor)
        self._cursors.sort(key=_depth)
        self._fill()

    def quiet(self) -> None:
        """Open what may be open now that one item has gone quiet."""
        self._active -= 1
        self._fill()

    def _fill(self) -> None:
        cursors = self._cursors
        while cursors and self._active < self._limit:
            if not self._open(cursors[-1]):
                cursors.pop()
        for cursor in tuple(cursors):
            if not cursor.active and not self._open(cursor):
                cursors.remove(cursor)
        self._make_room()

    def _make_room(self) -> None:
        if self._waiting is not None and self.backlog <= BACKLOG // 2:
            self._waiting.set()
            self._waiting = None

    def _open(self, cursor: MapCursor) -> bool:
        delivery = cursor.open_next()
        if delivery is None:
            return False
        self._active += 1
        self._send(delivery)
        return True


def _depth(cursor: MapCursor) -> tuple[int, int]:
    return (cursor.envelope.hops, -cursor.envelope.number)
