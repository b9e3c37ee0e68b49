"""How an envelope enters the ledger: deliveries, maps, scopes with their joins, contributions and timers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from swarmbus.delivery.deliveries import Delivery, MapCursor
from swarmbus.delivery.effects import Outcome
from swarmbus.delivery.joins import Join
from swarmbus.delivery.scopes import Node
from swarmbus.delivery.topology import FIRST_JOIN, items_of
from swarmbus.errors import RecordError
from swarmbus.events import event_name

if TYPE_CHECKING:
    from swarmbus.delivery.book import Book
    from swarmbus.delivery.topology import Handler, Routing
    from swarmbus.records import Envelope, Published, Routes


def publish(book: Book, envelope: Envelope, routes: Routes | None, node: Node | None, origin: Delivery | None) -> None:
    """Add an envelope: in `node`, or where `origin`, the delivery that published it, has its place."""
    event = envelope.event
    routing = book.topology.routing(envelope.source, type(event))
    if routing is None:
        raise RecordError(f"run {book.run_id}: the table does not let {envelope.source} publish {event_name(event)}")
    book.effects.published.append(envelope)
    if envelope.hops > book.max_hops:
        depth = f"{event_name(event)} is {envelope.hops} hops from the start, the limit is {book.max_hops}"
        book.warn(f"dropped, too deep: {depth}")
        book.will_end(Outcome("limit", reason=f"hops: {depth}; allow more with Budget(hops=)"))
        return
    if routing.contributes:
        _contribute(book, envelope, routing, node, origin)
    if routing.groups or routing.opens or routing.client or routing.externals:
        if node is None:
            assert origin is not None
            node = book.place(origin)
        _spread(book, envelope, routing, routes, node)
    elif not routing.contributes:
        book.unheard.append(event_name(event))
    if origin is not None and book.mendings and origin.key in book.mendings:
        book.mendings[origin.key].hear(origin.key, routing.reaches)


def _spread(book: Book, envelope: Envelope, routing: Routing, routes: Routes | None, node: Node) -> None:
    scope = node
    if routing.opens:
        scope = _open_scope(book, envelope, routing, node)
    if routes is None:
        for handler in routing.handlers:
            _deliver(book, envelope, handler, scope)
    else:
        for number, _ in routes:
            _deliver(book, envelope, book.topology.handlers[number], scope)
    if routing.client or routing.externals:
        book.outside[envelope.number] = scope
        book.effects.outbound.append(envelope)
        if routing.result:
            book.will_end(Outcome("done", envelope=envelope))


def _deliver(book: Book, envelope: Envelope, handler: Handler, node: Node) -> None:
    if handler.wiring.each is None:
        delivery = Delivery(envelope, handler, node)
        book.pending[delivery.key] = delivery
        node.add(handler.reach)
        book.effects.deliver.append(delivery)
        return
    items = items_of(handler, envelope.event)
    if not items:
        return
    cursor = MapCursor(envelope, handler, node, items, book.pending)
    book.maps[envelope.number, handler.number] = cursor
    node.add(handler.reach)
    book.effects.maps += (cursor,)
    for column in handler.reach:
        if column >= FIRST_JOIN:
            join, item = node.belongs(column)
            if join is not None and join.open and item < 0:
                join.add_items(cursor)


def _open_scope(book: Book, envelope: Envelope, routing: Routing, node: Node) -> Node:
    scope = Node(node)
    scope.joins = {}
    for handler in routing.opens:
        join = Join(handler, envelope, node, scope)
        scope.joins[handler.column] = join
        book.joins[envelope.number, handler.number] = join
        node.add(handler.reach)
        book.due.append(join)
        if handler.wiring.deadline is not None:
            timer = book.new_timer(envelope.time + handler.wiring.deadline)
            timer.join = join
    return scope


def _contribute(book: Book, envelope: Envelope, routing: Routing, node: Node | None, origin: Delivery | None) -> None:
    for handler in routing.contributes:
        join, item = book.belongs_at(handler.column, node, origin)
        if join is not None and join.open:
            join.contribute(item, envelope.event)
            if join.quorum is not None:
                book.due.append(join)
        else:
            why = "came after it had fired" if join is not None else "has no opener above it"
            book.warn(f"{event_name(envelope.event)} {envelope.number} for {handler.qualified} {why}")


def set_timer(book: Book, record: Published, delivery: Delivery) -> None:
    """Set an event to be published later; until then it counts as what it will reach."""
    routing = book.topology.routing(delivery.handler.role, type(record.event))
    if routing is None or record.due is None:
        raise RecordError(f"run {book.run_id}: no row lets {delivery.handler.role} publish {event_name(record.event)}")
    timer = book.new_timer(record.due)
    timer.published = record
    timer.delivery = delivery
    timer.node = book.place(delivery)
    timer.columns = routing.reach
    timer.node.add(timer.columns)
    if book.mendings and delivery.key in book.mendings:
        book.mendings[delivery.key].hear(delivery.key, routing.reaches)
