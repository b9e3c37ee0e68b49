"""What a decision cancels: what counts for closed joins alone, what could only lead to a result already there, or all."""

from __future__ import annotations

from typing import TYPE_CHECKING

from swarmbus.delivery.deliveries import DONE, Delivery, MapCursor, Timer
from swarmbus.delivery.topology import FIRST_JOIN, RESULT

if TYPE_CHECKING:
    from collections.abc import Iterable

    from swarmbus.delivery.joins import Join
    from swarmbus.delivery.ledger import Ledger


def cancel_for(ledger: Ledger, closed: Iterable[Join]) -> None:
    """Cancel what counts for these closed joins alone; a join cancelled so is closed too, and so on."""
    gone = set(closed)
    while True:
        useless = [join for join in ledger.joins.values() if join not in gone and _counts_for(join.handler.reach, _join_targets(join), gone)]
        if not useless:
            break
        for join in reversed(useless):
            _note_cancelled(_join_targets(join))
            _close(ledger, join)
        gone.update(useless)
    for cursor in [c for c in ledger.maps.values() if _counts_for(c.handler.reach, _cursor_targets(c), gone)]:
        _cancel_map(ledger, cursor)
    for delivery in _failed_first(d for d in ledger.pending.values() if _counts_for(d.handler.reach, _targets(ledger, d), gone)):
        _cancel_delivery(ledger, delivery)
    for timer in [t for t in ledger.timers.values() if t.node and _counts_for(t.columns, _timer_targets(t), gone)]:
        _cancel_timer(ledger, timer)


def cancel_for_result(ledger: Ledger) -> None:
    """Cancel what could still reach the result, and what counts only for joins that could."""
    closed = [join for join in ledger.joins.values() if RESULT in join.handler.reaches]
    for join in reversed(closed):
        _note_cancelled(_join_targets(join))
        _close(ledger, join)
    for cursor in [c for c in ledger.maps.values() if RESULT in c.handler.reaches]:
        _cancel_map(ledger, cursor)
    for delivery in _failed_first(d for d in ledger.pending.values() if RESULT in d.handler.reaches):
        _cancel_delivery(ledger, delivery)
    for timer in [t for t in ledger.timers.values() if RESULT in t.columns]:
        _cancel_timer(ledger, timer)
    if closed:
        cancel_for(ledger, closed)


def cancel_everything(ledger: Ledger) -> None:
    """Cancel all that is live."""
    for join in reversed(list(ledger.joins.values())):
        _close(ledger, join)
    for cursor in list(ledger.maps.values()):
        _cancel_map(ledger, cursor)
    for delivery in _failed_first(ledger.pending.values()):
        _cancel_delivery(ledger, delivery)
    for timer in list(ledger.timers.values()):
        _cancel_timer(ledger, timer)


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


def _targets(ledger: Ledger, delivery: Delivery) -> list[tuple[Join, int]]:
    found = (ledger.belongs(column, delivery) for column in delivery.handler.reach if column >= FIRST_JOIN)
    return [(join, item) for join, item in found if join is not None]


def _cursor_targets(cursor: MapCursor) -> list[tuple[Join, int]]:
    found = (cursor.node.belongs(column) for column in cursor.handler.reach if column >= FIRST_JOIN)
    return [(join, item) for join, item in found if join is not None]


def _join_targets(join: Join) -> list[tuple[Join, int]]:
    found = (join.node.belongs(column) for column in join.handler.reach if column >= FIRST_JOIN)
    return [(target, item) for target, item in found if target is not None]


def _timer_targets(timer: Timer) -> list[tuple[Join, int]]:
    node = timer.node
    assert node is not None
    found = (node.belongs(column) for column in timer.columns if column >= FIRST_JOIN)
    return [(join, item) for join, item in found if join is not None]


def _note_cancelled(targets: Iterable[tuple[Join, int]]) -> None:
    for join, item in targets:
        if item >= 0:
            join.cancelled.add(item)


def _close(ledger: Ledger, join: Join) -> None:
    join.open = False
    del ledger.joins[join.opener.number, join.handler.number]
    join.node.remove(join.handler.reach, ledger.zeros)


def _cancel_delivery(ledger: Ledger, delivery: Delivery) -> None:
    if not delivery.live:
        return
    _note_cancelled(_targets(ledger, delivery))
    ledger.effects.cancelled.append(delivery)
    ledger.forget(delivery)


def _cancel_map(ledger: Ledger, cursor: MapCursor) -> None:
    for join, item in _cursor_targets(cursor):
        if item >= 0:
            join.cancelled.add(item)
        elif cursor in join.first_items:
            first = join.first_item(cursor)
            join.cancelled.update(first + index for index, mark in enumerate(cursor.marks) if mark != DONE)
    ledger.effects.cancelled.append(cursor)
    ledger.drop_map(cursor)


def _cancel_timer(ledger: Ledger, timer: Timer) -> None:
    del ledger.timers[timer.number]
    if timer.node is not None:
        _note_cancelled(_timer_targets(timer))
        timer.node.remove(timer.columns, ledger.zeros)
    ledger.effects.cancelled.append(timer)
