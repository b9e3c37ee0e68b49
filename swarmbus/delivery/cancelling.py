"""What a decision cancels: what counts for closed joins alone, what could still lead to a result, or everything."""

from __future__ import annotations

from typing import TYPE_CHECKING

from swarmbus.delivery.deliveries import DONE, Delivery, MapCursor, Timer
from swarmbus.delivery.topology import FIRST_JOIN, RESULT

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from swarmbus.delivery.book import Book
    from swarmbus.delivery.joins import Join


def cancel_for(book: Book, closed: Iterable[Join]) -> None:
    """Cancel what counts for these closed joins alone; a join cancelled so is closed too, and so on."""
    gone = set(closed)
    while True:
        useless = [
            join
            for join in book.joins.values()
            if join not in gone and _counts_for(join.handler.reach, _targets_of(book, join), gone)
        ]
        if not useless:
            break
        for join in reversed(useless):
            _note_cancelled(_targets_of(book, join))
            _drop_join(book, join)
        gone.update(useless)
    for cursor in [c for c in book.maps.values() if _counts_for(c.handler.reach, _targets_of(book, c), gone)]:
        _cancel_map(book, cursor)
    for delivery in _failed_first(
        d for d in book.pending.values() if _counts_for(d.handler.reach, _targets_of(book, d), gone)
    ):
        _cancel_delivery(book, delivery)
    for timer in [t for t in book.timers.values() if t.node and _counts_for(t.columns, _targets_of(book, t), gone)]:
        _cancel_timer(book, timer)


def cancel_for_result(book: Book) -> None:
    """Cancel what could still reach the result, and what counts only for joins that could."""
    closed = [join for join in book.joins.values() if RESULT in join.handler.reaches]
    for join in reversed(closed):
        _note_cancelled(_targets_of(book, join))
        _drop_join(book, join)
    for cursor in [c for c in book.maps.values() if RESULT in c.handler.reaches]:
        _cancel_map(book, cursor)
    for delivery in _failed_first(d for d in book.pending.values() if RESULT in d.handler.reaches):
        _cancel_delivery(book, delivery)
    for timer in [t for t in book.timers.values() if RESULT in t.columns]:
        _cancel_timer(book, timer)
    if closed:
        cancel_for(book, closed)


def cancel_everything(book: Book) -> None:
    """Cancel all that is live."""
    for join in reversed(list(book.joins.values())):
        _drop_join(book, join)
    for cursor in list(book.maps.values()):
        _cancel_map(book, cursor)
    for delivery in _failed_first(book.pending.values()):
        _cancel_delivery(book, delivery)
    for timer in list(book.timers.values()):
        _cancel_timer(book, timer)


def _failed_first(deliveries: Iterable[Delivery]) -> list[Delivery]:
    """Order a cancellation so that no mender's end decides a delivery that is cancelled as well."""
    return sorted(deliveries, key=lambda delivery: not delivery.failed)


def _counts_for(reach: tuple[int, ...], targets: list[tuple[Join, int]], gone: set[Join]) -> bool:
    """Whether something counts for joins that are gone, and for nothing else."""
    if RESULT in reach:
        return False
    hit = False
    for join, _ in targets:
        if join in gone:
            hit = True
        elif join.open:
            return False
    return hit


def _targets(columns: Iterable[int], belongs: Callable[[int], tuple[Join | None, int]]) -> list[tuple[Join, int]]:
    """Return the joins, and which of their items, that something which reaches these columns counts for."""
    found = (belongs(column) for column in columns if column >= FIRST_JOIN)
    return [(join, item) for join, item in found if join is not None]


def _targets_of(book: Book, live: Delivery | MapCursor | Join | Timer) -> list[tuple[Join, int]]:
    if isinstance(live, Delivery):
        return _targets(live.handler.reach, lambda column: book.belongs(column, live))
    assert live.node is not None
    return _targets(live.columns if isinstance(live, Timer) else live.handler.reach, live.node.belongs)


def _note_cancelled(targets: Iterable[tuple[Join, int]]) -> None:
    for join, item in targets:
        if item >= 0 and not join.fired:
            join.cancelled.add(item)


def _drop_join(book: Book, join: Join) -> None:
    """Close a join that will not fire, and take it out of the count."""
    join.open = False
    del book.joins[join.opener.number, join.handler.number]
    join.node.remove(join.handler.reach, book.zeros)


def _cancel_delivery(book: Book, delivery: Delivery) -> None:
    if not delivery.live:
        return
    _note_cancelled(_targets_of(book, delivery))
    book.effects.cancelled.append(delivery)
    book.forget(delivery)


def _cancel_map(book: Book, cursor: MapCursor) -> None:
    for join, item in _targets_of(book, cursor):
        if join.fired:
            continue
        if item >= 0:
            join.cancelled.add(item)
        elif cursor in join.first_items:
            undone = (index for index, mark in enumerate(cursor.marks) if mark < DONE)
            join.cancelled.update(join.item_of(cursor, index) for index in undone)
    book.effects.cancelled.append(cursor)
    book.drop_map(cursor)


def _cancel_timer(book: Book, timer: Timer) -> None:
    del book.timers[timer.number]
    if timer.node is not None:
        _note_cancelled(_targets_of(book, timer))
        timer.node.remove(timer.columns, book.zeros)
    book.effects.cancelled.append(timer)
