"""What a record leads to, once added: which joins fire or break, and how the run ends."""

from __future__ import annotations

from typing import TYPE_CHECKING

from swarmbus.delivery.cancelling import cancel_everything, cancel_for, cancel_for_result
from swarmbus.delivery.deliveries import DONE, Delivery
from swarmbus.delivery.effects import Outcome
from swarmbus.delivery.joins import Trouble
from swarmbus.delivery.ladder import rise, settle_verdicts
from swarmbus.delivery.stalling import join_lacks, run_lacks
from swarmbus.delivery.topology import ALIVE, FIRST_JOIN
from swarmbus.events import event_name
from swarmbus.results import Failure

if TYPE_CHECKING:
    from swarmbus.delivery.book import Book
    from swarmbus.delivery.joins import Join


def decide(book: Book) -> None:
    """Decide until nothing is left to decide: quiet and broken joins before quorums, the latest opener first."""
    if book.zeros or book.verdicts or book.ending is not None:
        _settle(book)
    while book.due:
        due = [join for join in dict.fromkeys(book.due) if join.open]
        book.due = due
        ready = _latest([join for join in due if join.broken or join.quiet or join.overdue])
        if ready is not None:
            _finish(book, ready)
        elif (enough := _latest([join for join in due if join.enough])) is not None:
            _fire(book, enough)
        else:
            book.due = []
        _settle(book)
    if ALIVE not in book.root.counts and book.outcome is None:
        _conclude(book)


def _finish(book: Book, join: Join) -> None:
    """Fire or break a join that nothing can reach any more, whose deadline has passed, or that a failure broke."""
    if join.overdue and not join.quiet:
        cancel_for(book, [join])
    if join.broken:
        _break(book, join, join.first_trouble)
    elif join.partial == "fail" and not join.enough and (join.quorum is not None or join.missing()):
        _break(book, join, join.first_trouble or _silence(book, join))
    else:
        _fire(book, join)


def _fire(book: Book, join: Join) -> None:
    _shut(book, join)
    if not join.quiet:
        cancel_for(book, [join])
    delivery = Delivery(join.opener, join.handler, join.node)
    delivery.join = join
    join.fired = True
    book.pending[delivery.key] = delivery
    book.effects.deliver.append(delivery)


def _break(book: Book, join: Join, trouble: Trouble | None) -> None:
    assert trouble is not None
    _shut(book, join)
    cancel_for(book, [join])
    rise(book, join.handler, join.node, None, trouble)
    join.node.remove(join.handler.reach, book.zeros)


def _shut(book: Book, join: Join) -> None:
    """Let nothing more into a join; it counts until its handler is done, or until it is broken."""
    join.open = False
    del book.joins[join.opener.number, join.handler.number]


def _silence(book: Book, join: Join) -> Trouble:
    failure = Failure(
        role=join.handler.role,
        handler=join.handler.name,
        event=event_name(join.opener.event),
        event_id=book.event_id(join.opener),
        item=None,
        key=None,
        attempt=0,
        error_type="JoinIncomplete",
        message=join_lacks(join, book.topology.reach),
        exception=None,
    )
    return Trouble(failure, join.opener.event, stalled=True)


def _settle(book: Book) -> None:
    """Carry out what adding and removing led to: verdicts on failures, the run's end, scopes that became quiet."""
    while book.verdicts or book.ending is not None:
        if book.verdicts:
            settle_verdicts(book)
        elif book.ending is not None:
            _end(book)
    if book.zeros:
        _settle_zeros(book)


def _settle_zeros(book: Book) -> None:
    zeros = book.zeros
    for node, column in dict.fromkeys(zeros) if len(zeros) > 1 else zeros:
        if column >= FIRST_JOIN:
            if node.joins is not None and column in node.joins and node.joins[column].open:
                book.due.append(node.joins[column])
        elif (
            column == ALIVE
            and node.cursor is not None
            and node.cursor.marks[node.index] == DONE
            and ALIVE not in node.counts
        ):
            book.item_quiet(node.cursor, node.index)
    zeros.clear()


def _conclude(book: Book) -> None:
    if book.records == 0 or book.opening is None:
        return
    if book.topology.result is None:
        book.will_end(Outcome("done"))
    elif not book.topology.awaits_outside(type(book.opening)):
        book.will_end(Outcome("stalled", reason=run_lacks(book)))
    _settle(book)


def _end(book: Book) -> None:
    outcome, book.ending = book.ending, None
    if outcome is None or book.outcome is not None:
        return
    book.outcome = outcome
    book.effects.decided = True
    if outcome.status == "done":
        cancel_for_result(book)
    else:
        cancel_everything(book)


def _latest(joins: list[Join]) -> Join | None:
    return max(joins, key=lambda join: join.rank, default=None)
