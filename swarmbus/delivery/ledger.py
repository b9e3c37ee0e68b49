"""The ledger of one run: a pure state machine that turns records into deliveries, joins and endings.

`Ledger.apply(record)` is the only way to change it. Applying a record adds what it brings, removes what it ends, and then
decides which joins fire. It does no I/O, reads no clock and runs no handler, so applying the same records again rebuilds it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from swarmbus.delivery.cancelling import cancel_everything, cancel_for, cancel_for_result
from swarmbus.delivery.deliveries import DONE, OPEN, Delivery, MapCursor, Timer
from swarmbus.delivery.effects import Effects, Outcome
from swarmbus.delivery.joins import Join, Trouble
from swarmbus.delivery.mending import Mending
from swarmbus.delivery.scopes import Node
from swarmbus.delivery.topology import ALIVE, FIRST_JOIN, RESULT, failed_routing, items_of
from swarmbus.errors import PublishError, RecordError
from swarmbus.events import HandlerFailed, event_name
from swarmbus.records import (
    Answered,
    Asked,
    Called,
    Committed,
    Ended,
    Envelope,
    Failed,
    Fired,
    Published,
    Started,
    Submitted,
)
from swarmbus.results import Failure
from swarmbus.table import SYSTEM

if TYPE_CHECKING:
    from collections.abc import Iterable

    from swarmbus.delivery.topology import Handler, Routing, Topology
    from swarmbus.events import Event
    from swarmbus.records import Change, DeliveryKey, ErrorInfo, Record, Routes


class Ledger:
    """All that is known of one run.

    Attributes:
        pending: the deliveries that are out or waiting, by key; maps: the maps with items left.
        joins: the open joins, in the order of their opening; timers: what comes due.
        questions: the deliveries waiting for a person, by question id.
        states: each role's state; usage: what each role's recorded calls cost.
        outcome: how the run ends, once that is decided; finished: nothing is live any more.
        dead: the failures for good that nobody mended; mended: those somebody did.
        warnings: what should not have happened and did no harm.
    """

    def __init__(self, topology: Topology, run_id: str) -> None:
        self.topology = topology
        self.run_id = run_id
        self.root = Node(None)
        self.pending: dict[DeliveryKey, Delivery] = {}
        self.maps: dict[tuple[int, int], MapCursor] = {}
        self.joins: dict[tuple[int, int], Join] = {}
        self.timers: dict[int, Timer] = {}
        self.questions: dict[str, Delivery] = {}
        self.answered: set[str] = set()
        self.states: dict[str, Any] = {}
        self.usage: dict[str, dict[str, float]] = {}
        self.opening: Event | None = None
        self.started_at = 0.0
        self.ended: Ended | None = None
        self.outcome: Outcome | None = None
        self.dead: list[Failure] = []
        self.mended: list[Failure] = []
        self.warnings: list[str] = []
        self.unheard: list[str] = []
        self.envelopes = 0
        self.records = 0
        self.max_hops = 1000
        self._outside: dict[int, Node] = {}
        self._timer_count = 0
        self._mendings: dict[DeliveryKey, Mending] = {}
        self._due: list[Join] = []
        self._verdicts: list[Mending] = []
        self._ending: Outcome | None = None
        self.zeros: list[tuple[Node, int]] = []
        self.effects = Effects()

    @property
    def finished(self) -> bool:
        """How the run ends is decided, and nothing is live any more."""
        return self.outcome is not None and (self.ended is not None or ALIVE not in self.root.counts)

    @property
    def waiting(self) -> bool:
        """Nothing is live, but an event from outside could still lead to the result."""
        return self.outcome is None and self.records > 0 and ALIVE not in self.root.counts

    def apply(self, record: Record) -> Effects:
        """Take one record and return what follows from it.

        A record about a delivery that is not live any more (handled already, cancelled, an older attempt) changes nothing;
        `effects.ignored` says so.

        Raises:
            RecordError: the record can't belong to this run.
        """
        effects = self.effects = Effects()
        self.records += 1
        _APPLY[type(record)](self, record)
        self._settle()
        if self._due:
            self._decide()
        if ALIVE not in self.root.counts and self.outcome is None:
            self._conclude()
        return effects

    def find(self, key: DeliveryKey) -> Delivery | None:
        """Return a live delivery by its key; an unopened item of a live map is opened."""
        delivery = self.pending.get(key)
        if delivery is None and key[2] >= 0:
            cursor = self.maps.get((key[0], key[1]))
            if cursor is not None and cursor.marks[key[2]] < OPEN:
                return cursor.open(key[2])
        return delivery

    def state_of(self, role: str) -> Any:
        """Return a role's state, made with its defaults where nothing has changed it yet."""
        state = self.states.get(role)
        if state is None:
            state = self.states[role] = self.topology.states[role]()
        return state

    # --- records

    def _submitted(self, record: Submitted) -> None:
        node = self.root if record.cause is None else self._outside.get(record.cause, self.root)
        if self.opening is None:
            self.opening = record.event
            self.started_at = record.at
            self.max_hops = record.max_hops
        self._publish(self._envelope(record.event, record.source, record.cause, record.at, 0), record.routes, node, None)

    def _published(self, record: Published) -> None:
        delivery = self._current(record.delivery, record.attempt)
        if delivery is None:
            return
        if delivery.early is None:
            delivery.early = []
        delivery.early.append(record)
        if record.due is not None:
            self._set_timer(record, delivery)
            return
        self._publish(self._caused(record.event, delivery, record.at), record.routes, None, delivery)

    def _started(self, record: Started) -> None:
        delivery = self.find(record.delivery)
        if delivery is None:
            self.effects.ignored = True
            return
        if delivery.started:
            delivery.lost += 1
        delivery.started = True
        delivery.attempt = record.attempt

    def _called(self, record: Called) -> None:
        usage = record.call.usage
        if usage:
            role = self.topology.handlers[record.delivery[1]].role
            spent = self.usage.setdefault(role, {})
            for name, amount in usage.items():
                spent[name] = spent.get(name, 0) + amount

    def _committed(self, record: Committed) -> None:
        delivery = self._current(record.delivery, record.attempt)
        if delivery is None:
            return
        outputs = record.outputs
        if outputs:
            routes = record.routes
            for place, event in enumerate(outputs):
                chosen = routes[place] if routes is not None else None
                self._publish(self._caused(event, delivery, record.at), chosen, None, delivery)
        if record.changes:
            self._change(delivery.handler.role, record.changes)
        if self._mendings and delivery.key in self._mendings:
            self._mender_done(delivery, failure=None)
        self._remove(delivery)

    def _failed(self, record: Failed) -> None:
        delivery = self._current(record.delivery, record.attempt)
        if delivery is None:
            return
        delivery.started = False
        if record.retry_at is not None:
            delivery.attempt = record.attempt + 1
            delivery.not_before = record.retry_at
            self.effects.retry.append(delivery)
            return
        failure = self._describe(delivery, record.error, record.exception)
        if delivery.key in self._mendings:
            self._mender_done(delivery, failure=failure)
            self._remove(delivery)
        elif not self._ask_menders(delivery, failure, record.at):
            self._give_up(delivery, failure)

    def _fired(self, record: Fired) -> None:
        timer = self.timers.pop(record.timer, None)
        if timer is None:
            self.effects.ignored = True
        elif timer.join is not None:
            if timer.join.open:
                timer.join.overdue = True
                self._due.append(timer.join)
        else:
            published, delivery, node = timer.published, timer.delivery, timer.node
            assert published is not None
            assert delivery is not None
            assert node is not None
            self._publish(self._caused(published.event, delivery, record.at), published.routes, node, None)
            node.remove(timer.columns, self.zeros)

    def _asked(self, record: Asked) -> None:
        delivery = self.find(record.delivery)
        if delivery is None:
            self.effects.ignored = True
            return
        delivery.question = record.question
        delivery.asked = record.content
        delivery.started = False
        self.questions[record.question] = delivery
        self.effects.asked.append(record)

    def _answered(self, record: Answered) -> None:
        delivery = self.questions.pop(record.question, None)
        if delivery is None:
            self.effects.ignored = True
            return
        self.answered.add(record.question)
        delivery.question = None
        if delivery.answers is None:
            delivery.answers = {}
        delivery.answers[record.question] = record.value
        self.effects.deliver.append(delivery)

    def _ended(self, record: Ended) -> None:
        self.ended = record
        if self.outcome is None:
            self.outcome = Outcome(record.status, reason=record.reason)
            self.effects.decided = True
            if record.status != "stopped":
                cancel_everything(self)

    # --- publishing

    def _envelope(self, event: Event, source: str, cause: int | None, at: float, hops: int) -> Envelope:
        number = self.envelopes
        self.envelopes = number + 1
        return Envelope(number, event, source, cause, at, hops)

    def _caused(self, event: Event, delivery: Delivery, at: float) -> Envelope:
        cause = delivery.envelope
        return self._envelope(event, delivery.handler.role, cause.number, at, cause.hops + 1)

    def _publish(self, envelope: Envelope, routes: Routes | None, node: Node | None, origin: Delivery | None) -> None:
        """Add an envelope: in `node`, or where `origin`, the delivery that published it, has its place."""
        event = envelope.event
        routing = self.topology.routing(envelope.source, type(event))
        if routing is None:
            raise RecordError(f"run {self.run_id}: the table does not let {envelope.source} publish {event_name(event)}")
        self.effects.published.append(envelope)
        if envelope.hops > self.max_hops:
            depth = f"{event_name(event)} is {envelope.hops} hops from the start, the limit is {self.max_hops}"
            self._warn(f"dropped, too deep: {depth}")
            self._will_end(Outcome("limit", reason=f"hops: {depth}"))
            return
        if routing.contributes:
            self._contribute(envelope, routing, node, origin)
        if routing.groups or routing.opens or routing.client or routing.externals:
            self._spread(envelope, routing, routes, node, origin)
        elif not routing.contributes:
            self.unheard.append(event_name(event))
        if origin is not None and self._mendings and origin.key in self._mendings:
            self._mendings[origin.key].hear(origin.key, routing.reaches)

    def _spread(
        self, envelope: Envelope, routing: Routing, routes: Routes | None, node: Node | None, origin: Delivery | None
    ) -> None:
        if node is None:
            assert origin is not None
            node = self._place(origin)
        scope = node
        if routing.opens:
            scope = self._open_scope(envelope, routing, node)
        if routes is None:
            for handler in routing.handlers:
                self._deliver(envelope, handler, scope)
        else:
            for number, _ in routes:
                self._deliver(envelope, self.topology.handlers[number], scope)
        if routing.client or routing.externals:
            self._outside[envelope.number] = scope
            self.effects.outbound.append(envelope)
            if routing.result:
                self._will_end(Outcome("done", envelope=envelope))

    def _deliver(self, envelope: Envelope, handler: Handler, node: Node) -> None:
        if handler.wiring.each is None:
            delivery = Delivery(envelope, handler, node)
            self.pending[delivery.key] = delivery
            node.add(handler.reach)
            self.effects.deliver.append(delivery)
            return
        items = items_of(handler, envelope.event)
        if not items:
            return
        cursor = MapCursor(envelope, handler, node, items, self.pending)
        self.maps[envelope.number, handler.number] = cursor
        node.add(handler.reach)
        self.effects.maps.append(cursor)
        for column in handler.reach:
            if column >= FIRST_JOIN:
                join, item = node.belongs(column)
                if join is not None and join.open and item < 0:
                    join.add_items(cursor)

    def _open_scope(self, envelope: Envelope, routing: Routing, node: Node) -> Node:
        scope = Node(node)
        scope.joins = {}
        for handler in routing.opens:
            join = Join(handler, envelope, node, scope)
            scope.joins[handler.column] = join
            self.joins[envelope.number, handler.number] = join
            node.add(handler.reach)
            self._due.append(join)
            if handler.wiring.deadline is not None:
                timer = self._new_timer(envelope.time + handler.wiring.deadline)
                timer.join = join
        return scope

    def _contribute(self, envelope: Envelope, routing: Routing, node: Node | None, origin: Delivery | None) -> None:
        for handler in routing.contributes:
            join, item = self._belongs(handler.column, node, origin)
            if join is not None and join.open:
                join.contribute(item, envelope.event)
                if join.quorum is not None:
                    self._due.append(join)
            else:
                why = "came after it had fired" if join is not None else "has no opener above it"
                self._warn(f"{event_name(envelope.event)} {envelope.number} for {handler.qualified} {why}")

    def belongs(self, column: int, delivery: Delivery) -> tuple[Join | None, int]:
        """Return the join, and which of its items, that a contribution of this delivery would count for."""
        return self._belongs(column, None, delivery)

    def _belongs(self, column: int, node: Node | None, origin: Delivery | None) -> tuple[Join | None, int]:
        if node is not None:
            return node.belongs(column)
        assert origin is not None
        if origin.inner is not None:
            return origin.inner.belongs(column)
        join, item = origin.node.belongs(column)
        if item < 0 and join is not None and origin.cursor is not None and column in origin.handler.reaches:
            return join, join.first_item(origin.cursor) + origin.item
        return join, item

    def _place(self, delivery: Delivery) -> Node:
        if delivery.cursor is None:
            return delivery.node
        if delivery.inner is None:
            delivery.inner = Node(delivery.node, delivery.cursor, delivery.item)
        return delivery.inner

    def _set_timer(self, record: Published, delivery: Delivery) -> None:
        routing = self.topology.routing(delivery.handler.role, type(record.event))
        if routing is None or record.due is None:
            raise RecordError(f"run {self.run_id}: no row lets {delivery.handler.role} publish {event_name(record.event)}")
        timer = self._new_timer(record.due)
        timer.published = record
        timer.delivery = delivery
        timer.node = self._place(delivery)
        timer.columns = routing.reach
        timer.node.add(timer.columns)
        if self._mendings and delivery.key in self._mendings:
            self._mendings[delivery.key].hear(delivery.key, routing.reaches)

    def _new_timer(self, due: float) -> Timer:
        timer = Timer(self._timer_count, due)
        self._timer_count += 1
        self.timers[timer.number] = timer
        self.effects.timers.append(timer)
        return timer

    # --- removing

    def _current(self, key: DeliveryKey, attempt: int) -> Delivery | None:
        delivery = self.find(key)
        if delivery is None or delivery.attempt != attempt or delivery.failed:
            self.effects.ignored = True
            return None
        return delivery

    def _remove(self, delivery: Delivery) -> None:
        """Take a delivery out of the count: it was handled, mended, given up or cancelled."""
        if not delivery.live:
            return
        delivery.live = False
        self.pending.pop(delivery.key, None)
        if delivery.question is not None:
            self.questions.pop(delivery.question, None)
        cursor = delivery.cursor
        if cursor is None:
            delivery.node.remove(delivery.handler.reach, self.zeros)
            return
        cursor.marks[delivery.item] = DONE
        inner = delivery.inner
        if inner is None or ALIVE not in inner.counts:
            self._item_quiet(cursor)
        if cursor.live:
            cursor.left -= 1
            if not cursor.left:
                self.drop_map(cursor)

    def forget(self, delivery: Delivery) -> None:
        """Take a cancelled delivery out of the count; a mender cancelled so counts as a no."""
        if delivery.key in self._mendings:
            mending = self._mendings.pop(delivery.key)
            mending.menders.discard(delivery.key)
            if not mending.menders:
                self._verdicts.append(mending)
        self._remove(delivery)

    def drop_map(self, cursor: MapCursor) -> None:
        """Take a map out of the count."""
        cursor.live = False
        del self.maps[cursor.envelope.number, cursor.handler.number]
        cursor.node.remove(cursor.handler.reach, self.zeros)

    def _item_quiet(self, cursor: MapCursor) -> None:
        cursor.active = max(cursor.active - 1, 0)
        self.effects.ready.append(cursor)

    def _settle(self) -> None:
        """Carry out what adding and removing led to: verdicts on failures, the run's end, scopes that became quiet."""
        while self._verdicts or self._ending is not None:
            if self._verdicts:
                self._settle_verdicts()
            elif self._ending is not None:
                self._end()
        if self.zeros:
            self._settle_zeros()

    def _settle_zeros(self) -> None:
        zeros = self.zeros
        for node, column in dict.fromkeys(zeros) if len(zeros) > 1 else zeros:
            if column >= FIRST_JOIN:
                if node.joins is not None and column in node.joins and node.joins[column].open:
                    self._due.append(node.joins[column])
            elif column == ALIVE and node.cursor is not None and node.cursor.marks[node.index] == DONE:
                if ALIVE not in node.counts:
                    self._item_quiet(node.cursor)
        zeros.clear()

    # --- deciding

    def _decide(self) -> None:
        while self._due:
            due = [join for join in dict.fromkeys(self._due) if join.open]
            self._due = due
            first = _first([j for j in due if j.broken or j.quiet or j.overdue]) or _first([j for j in due if j.enough])
            if first is None:
                self._due = []
                return
            if first.broken and not first.overdue:
                self._break(first, first.first_trouble())
            elif first.quiet or first.overdue:
                self._finish_join(first)
            else:
                self._fire(first)
            self._settle()

    def _finish_join(self, join: Join) -> None:
        if not join.quiet:
            cancel_for(self, [join])
        if join.broken:
            self._break(join, join.first_trouble())
        elif join.partial == "fail" and not join.enough and (join.quorum is not None or join.missing()):
            self._break(join, join.first_trouble() or self._silence(join))
        else:
            self._fire(join)

    def _fire(self, join: Join) -> None:
        self._close(join)
        if not join.quiet:
            cancel_for(self, [join])
        delivery = Delivery(join.opener, join.handler, join.node)
        delivery.join = join
        self.pending[delivery.key] = delivery
        self.effects.deliver.append(delivery)

    def _break(self, join: Join, trouble: Trouble | None) -> None:
        assert trouble is not None
        self._close(join)
        cancel_for(self, [join])
        self._rise(join.handler, join.node, None, trouble)
        join.node.remove(join.handler.reach, self.zeros)

    def _close(self, join: Join) -> None:
        join.open = False
        del self.joins[join.opener.number, join.handler.number]

    def _silence(self, join: Join) -> Trouble:
        wiring = join.handler.wiring
        missing = join.missing()
        names = ", ".join(str(m.key if m.key is not None else m.item) for m in missing[:10])
        more = f" and {len(missing) - 10} more" if len(missing) > 10 else ""
        lacks = f"lacks {names}{more}" if missing else f"needs {join.quorum}"
        message = f"join {join.handler.qualified} ({wiring.where}) has {join.count} contributions and {lacks}"
        failure = Failure(
            role=join.handler.role,
            handler=join.handler.name,
            event=event_name(join.opener.event),
            event_id=self.event_id(join.opener),
            item=None,
            key=None,
            attempt=0,
            error_type="JoinIncomplete",
            message=message,
            exception=None,
        )
        return Trouble(failure, join.opener.event, stalled=True)

    # --- failing

    def event_id(self, envelope: Envelope) -> str:
        """Return the CloudEvents id of an envelope: the run's id and its number."""
        return f"{self.run_id}/{envelope.number}"

    def _describe(self, delivery: Delivery, error: ErrorInfo, exception: BaseException | None) -> Failure:
        return Failure(
            role=delivery.handler.role,
            handler=delivery.handler.name,
            event=event_name(delivery.envelope.event),
            event_id=self.event_id(delivery.envelope),
            item=delivery.item if delivery.item >= 0 else None,
            key=None,
            attempt=delivery.attempt,
            error_type=error.type,
            message=error.message,
            exception=exception,
        )

    def _ask_menders(self, delivery: Delivery, failure: Failure, at: float) -> bool:
        routing = failed_routing(self.topology)
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
            routes = self.topology.prepare(SYSTEM.address, event)
        except PublishError as error:
            self._warn(str(error))
            return False
        delivery.failed = True
        mending = Mending(delivery, failure, self._wanted(delivery))
        before = len(self.effects.deliver)
        envelope = delivery.envelope
        published = self._envelope(event, SYSTEM.address, envelope.number, at, envelope.hops + 1)
        self._publish(published, routes, self._place(delivery), None)
        for mender in self.effects.deliver[before:]:
            mending.menders.add(mender.key)
            self._mendings[mender.key] = mending
        if mending.menders:
            return True
        delivery.failed = False
        return False

    def _wanted(self, delivery: Delivery) -> frozenset[int]:
        """Return the columns of which a mender has to reach one."""
        reach = delivery.handler.reach
        found = ((column, self.belongs(column, delivery)[0]) for column in reach if column >= FIRST_JOIN)
        columns = frozenset(column for column, join in found if join is not None and join.open)
        return columns or frozenset((RESULT if self.topology.result is not None else ALIVE,))

    def _mender_done(self, mender: Delivery, failure: Failure | None) -> None:
        mending = self._mendings.pop(mender.key)
        mending.menders.discard(mender.key)
        failed = mending.delivery
        if failure is not None:
            mending.refuse(failure)
            if not failed.live:
                self._warn(f"{mender.handler.qualified} failed: {failure.error_type}: {failure.message}")
        elif failed.live and mender.key in mending.answered:
            self.mended.append(mending.failure)
            self._warn(f"{failed.handler.qualified} failed and was mended: {mending.failure.message}")
            self._remove(failed)
        if not mending.menders:
            self._verdicts.append(mending)

    def _settle_verdicts(self) -> None:
        verdicts, self._verdicts = self._verdicts, []
        for mending in verdicts:
            if mending.delivery.live:
                self._give_up(mending.delivery, mending.verdict())

    def _give_up(self, delivery: Delivery, failure: Failure) -> None:
        self._rise(delivery.handler, delivery.node, delivery, Trouble(failure, delivery.envelope.event))
        self.dead.append(failure)
        self._remove(delivery)

    def _rise(self, handler: Handler, node: Node, delivery: Delivery | None, trouble: Trouble) -> None:
        """Bring a failure one rung up: to each join it was counted for, or to the run."""
        taken = False
        for column in handler.reach:
            if column < FIRST_JOIN:
                continue
            join, item = self._belongs(column, None if delivery is not None else node, delivery)
            if join is not None and join.open:
                join.note(item, trouble)
                self._due.append(join)
                taken = True
        if taken:
            return
        failure = trouble.failure
        if self.outcome is None and self._ending is None and (RESULT in handler.reaches or self.topology.result is None):
            status = "stalled" if trouble.stalled else "failed"
            self._will_end(Outcome(status, failure=failure, reason=failure.message))
        else:
            self._warn(f"{handler.qualified} failed: {failure.error_type}: {failure.message}")

    # --- ending

    def _conclude(self) -> None:
        if self.records == 0 or self.opening is None:
            return
        if self.topology.result is None:
            self._will_end(Outcome("done"))
        elif not self.topology.awaits_outside(type(self.opening)):
            unheard = f"; nobody took {', '.join(dict.fromkeys(self.unheard))}" if self.unheard else ""
            troubles = "".join(f"; {warning}" for warning in self.warnings[-5:])
            reason = f"nothing is left to do, and no {event_name(self.topology.result)} was published{unheard}{troubles}"
            self._will_end(Outcome("stalled", reason=reason))
        self._settle()

    def _will_end(self, outcome: Outcome) -> None:
        """End the run once the record at hand is added and what it ends is removed; the first outcome counts."""
        if self._ending is None:
            self._ending = outcome

    def _end(self) -> None:
        outcome, self._ending = self._ending, None
        if outcome is None or self.outcome is not None:
            return
        self.outcome = outcome
        self.effects.decided = True
        if outcome.status == "done":
            cancel_for_result(self)
        else:
            cancel_everything(self)

    def _change(self, role: str, changes: Iterable[Change]) -> None:
        state = self.state_of(role)
        update: dict[str, Any] = {}
        for change in changes:
            if change.kind == "set":
                update[change.field] = change.value
                continue
            held = update.get(change.field, getattr(state, change.field))
            update[change.field] = held.set(change.key, change.value) if change.kind == "put" else held.remove(change.key)
        self.states[role] = state.model_copy(update=update)

    def _warn(self, message: str) -> None:
        self.warnings.append(message)


def _first(joins: list[Join]) -> Join | None:
    return max(joins, key=lambda join: join.rank, default=None)


_APPLY: dict[type[Any], Callable[[Ledger, Any], None]] = {
    Submitted: Ledger._submitted,
    Published: Ledger._published,
    Started: Ledger._started,
    Called: Ledger._called,
    Committed: Ledger._committed,
    Failed: Ledger._failed,
    Fired: Ledger._fired,
    Asked: Ledger._asked,
    Answered: Ledger._answered,
    Ended: Ledger._ended,
}
