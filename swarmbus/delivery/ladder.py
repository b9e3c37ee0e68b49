"""The ladder of a failure for good: those who could mend it, the joins it was counted for, and at last the run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from swarmbus.delivery.effects import Outcome
from swarmbus.delivery.joins import Trouble
from swarmbus.delivery.mending import Mending
from swarmbus.delivery.publishing import publish
from swarmbus.delivery.topology import ALIVE, FIRST_JOIN, RESULT, failed_routing
from swarmbus.errors import EventEncodingError, PublishError
from swarmbus.events import HandlerFailed, event_name
from swarmbus.results import Failure
from swarmbus.table import SYSTEM
from swarmbus.text import brief

if TYPE_CHECKING:
    from swarmbus.delivery.book import Book
    from swarmbus.delivery.deliveries import Delivery
    from swarmbus.delivery.scopes import Node
    from swarmbus.delivery.topology import Handler
    from swarmbus.records import EndStatus, ErrorInfo


def failure_of(book: Book, delivery: Delivery, error: ErrorInfo, exception: BaseException | None) -> Failure:
    """Describe a failure for good as it is reported."""
    return Failure(
        role=delivery.handler.role,
        handler=delivery.handler.name,
        event=event_name(delivery.envelope.event),
        event_id=book.event_id(delivery.envelope),
        item=delivery.item if delivery.item >= 0 else None,
        key=_key(book, delivery),
        attempt=delivery.attempt,
        error_type=error.type,
        message=error.message,
        exception=exception,
        value=brief(delivery.value) if delivery.item >= 0 else "",
    )


def ask_menders(book: Book, delivery: Delivery, failure: Failure, at: float) -> bool:
    """Ask the handlers of `HandlerFailed`; False where there are none."""
    routing = failed_routing(book.topology)
    if routing is None or not routing.groups or isinstance(delivery.envelope.event, HandlerFailed):
        return False
    event = HandlerFailed(
        role=failure.role,
        handler=failure.handler,
        event=failure.event,
        event_id=failure.event_id,
        item=failure.item,
        key=failure.key,
        attempt=failure.attempt,
        error_type=failure.error_type,
        message=failure.message,
    )
    try:
        routes = book.topology.prepare(SYSTEM.address, event)
    except (EventEncodingError, PublishError) as error:
        book.warn(str(error))
        return False
    delivery.failed = True
    mending = Mending(delivery, failure, _wanted(book, delivery))
    before = len(book.effects.deliver)
    envelope = delivery.envelope
    published = book.envelope(event, SYSTEM.address, envelope.number, at, envelope.hops + 1)
    publish(book, published, routes, book.place(delivery), None)
    for mender in book.effects.deliver[before:]:
        mending.menders.add(mender.key)
        book.mendings[mender.key] = mending
    if mending.menders:
        return True
    delivery.failed = False
    return False


def _wanted(book: Book, delivery: Delivery) -> frozenset[int]:
    """Return the columns of which a mender has to reach one."""
    reach = delivery.handler.reach
    found = ((column, book.belongs(column, delivery)[0]) for column in reach if column >= FIRST_JOIN)
    columns = frozenset(column for column, join in found if join is not None and join.open)
    return columns or frozenset((RESULT if book.topology.result is not None else ALIVE,))


def _key(book: Book, delivery: Delivery) -> str | None:
    """Return the key under which the nearest join that names its contributions knows a delivery."""
    for column in delivery.handler.reach:
        join, _ = book.belongs(column, delivery) if column >= FIRST_JOIN else (None, -1)
        key = join.key_of(delivery.value, delivery.envelope.event) if join is not None else None
        if key is not None:
            return key
    return None


def mender_done(book: Book, mender: Delivery, failure: Failure | None) -> None:
    """Take note that a mender returned (`failure` is None) or failed for good."""
    mending = book.mendings.pop(mender.key)
    mending.menders.discard(mender.key)
    failed = mending.delivery
    if failure is not None:
        mending.refuse(failure)
        if not failed.live:
            book.warn(f"{mender.handler.qualified} failed: {failure.error_type}: {failure.message}")
    elif failed.live and mender.key in mending.answered:
        book.mended.append(mending.verdict())
        book.warn(f"{failed.handler.qualified} failed and was mended: {mending.failure.message}")
        book.remove(failed)
    if not mending.menders:
        book.verdicts.append(mending)


def settle_verdicts(book: Book) -> None:
    """Give up what none of its menders mended."""
    verdicts, book.verdicts = book.verdicts, []
    for mending in verdicts:
        if mending.delivery.live:
            give_up(book, mending.delivery, mending.verdict())


def give_up(book: Book, delivery: Delivery, failure: Failure) -> None:
    """Bring a delivery's failure up the ladder and take the delivery out of the count."""
    rise(book, delivery.handler, delivery.node, delivery, Trouble(failure, delivery.envelope.event))
    book.dead.append(failure)
    book.remove(delivery)


def rise(book: Book, handler: Handler, node: Node, delivery: Delivery | None, trouble: Trouble) -> None:
    """Bring a failure one rung up: to each join it was counted for, or to the run."""
    taken = False
    for column in handler.reach:
        if column < FIRST_JOIN:
            continue
        join, item = book.belongs_at(column, None if delivery is not None else node, delivery)
        if join is not None and join.open:
            join.note(item, trouble)
            book.due.append(join)
            taken = True
    if taken:
        return
    failure = trouble.failure
    if book.outcome is None and book.ending is None and (RESULT in handler.reaches or book.topology.result is None):
        status: EndStatus = "stalled" if trouble.stalled else "failed"
        book.will_end(Outcome(status, failure=failure, reason=failure.message if trouble.stalled else str(failure)))
    else:
        book.warn(f"failed, but nothing waited for it: {failure}")
