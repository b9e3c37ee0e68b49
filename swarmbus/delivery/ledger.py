"""The ledger of one run: a pure state machine that turns records into deliveries, joins and endings.

`Ledger.apply(record)` is the only way to change it while the run goes on. Applying a record adds what it brings,
removes what it ends, and then decides which joins fire. It does no I/O, reads no clock and runs no handler, so applying
the same records again rebuilds it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar

from swarmbus.delivery.book import Book
from swarmbus.delivery.cancelling import cancel_everything
from swarmbus.delivery.deciding import decide
from swarmbus.delivery.deliveries import Early
from swarmbus.delivery.effects import Effects, Outcome
from swarmbus.delivery.ladder import ask_menders, failure_of, give_up, mender_done
from swarmbus.delivery.publishing import publish, set_timer
from swarmbus.records import (
    Answered,
    Asked,
    Called,
    Committed,
    Ended,
    Failed,
    Fired,
    Published,
    Started,
    Submitted,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

    from swarmbus.delivery.deliveries import Delivery
    from swarmbus.records import Change, DeliveryKey, Record


class Ledger(Book):
    """The book of a run, and the ways to change it."""

    def apply(self, record: Record) -> Effects:
        """Take one record and return what follows from it.

        A record about a delivery that is not live any more (handled already, cancelled, an older attempt) changes
        nothing; `effects.ignored` says so.

        Raises:
            RecordError: the record can't belong to this run.
        """
        effects = self.effects = Effects()
        self.records += 1
        self._APPLY[type(record)](self, record)
        decide(self)
        return effects

    def go_on(self) -> None:
        """Take note, while a run is rebuilt, that it went on after an end: what was under way is to be tried again."""
        for delivery in self.pending.values():
            if delivery.started:
                delivery.started = False
                delivery.attempt += 1
                delivery.cut += 1

    def _submitted(self, record: Submitted) -> None:
        node = self.root if record.cause is None else self.outside.get(record.cause, self.root)
        if self.opening is None:
            self.opening = record.event
            self.started_at = record.at
            self.max_hops = record.max_hops
        publish(self, self.envelope(record.event, record.source, record.cause, record.at, 0), record.routes, node, None)

    def _published(self, record: Published) -> None:
        delivery = self._current(record.delivery, record.attempt)
        if delivery is None:
            return
        if delivery.early is None:
            delivery.early = Early()
        delivery.early.add(record.event, record.key)
        if record.due is not None:
            set_timer(self, record, delivery)
            return
        publish(self, self.caused(record.event, delivery, record.at), record.routes, None, delivery)

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
                publish(self, self.caused(event, delivery, record.at), chosen, None, delivery)
        elif delivery.early is None:
            self.silent = delivery
        if record.changes:
            self._change(delivery.handler.role, record.changes)
        if self.mendings and delivery.key in self.mendings:
            mender_done(self, delivery, failure=None)
        self.remove(delivery)

    def _failed(self, record: Failed) -> None:
        delivery = self._current(record.delivery, record.attempt)
        if delivery is None:
            return
        delivery.started = False
        if record.retry_at is not None:
            delivery.attempt = record.attempt + 1
            delivery.not_before = record.retry_at
            self.effects.retry += (delivery,)
            return
        failure = failure_of(self, delivery, record.error, record.exception)
        if delivery.key in self.mendings:
            mender_done(self, delivery, failure=failure)
            self.remove(delivery)
        elif not ask_menders(self, delivery, failure, record.at):
            give_up(self, delivery, failure)

    def _fired(self, record: Fired) -> None:
        timer = self.timers.pop(record.timer, None)
        if timer is None:
            self.effects.ignored = True
        elif timer.join is not None:
            if timer.join.open:
                timer.join.overdue = True
                self.due.append(timer.join)
        else:
            published, delivery, node = timer.published, timer.delivery, timer.node
            assert published is not None
            assert delivery is not None
            assert node is not None
            publish(self, self.caused(published.event, delivery, record.at), published.routes, node, None)
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
        self.effects.asked += (record,)

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

    def _current(self, key: DeliveryKey, attempt: int) -> Delivery | None:
        delivery = self.pending.get(key) or self.find(key)
        if delivery is None or delivery.attempt != attempt or delivery.failed:
            self.effects.ignored = True
            return None
        return delivery

    def _change(self, role: str, changes: Iterable[Change]) -> None:
        state = self.state_of(role)
        update: dict[str, Any] = {}
        for change in changes:
            if change.kind == "set":
                update[change.field] = change.value
                continue
            held = update.get(change.field, getattr(state, change.field))
            update[change.field] = (
                held.set(change.key, change.value) if change.kind == "put" else held.remove(change.key)
            )
        self.states[role] = state.model_copy(update=update)

    _APPLY: ClassVar[dict[type[Any], Callable[[Any, Any], None]]] = {
        Submitted: _submitted,
        Published: _published,
        Started: _started,
        Called: _called,
        Committed: _committed,
        Failed: _failed,
        Fired: _fired,
        Asked: _asked,
        Answered: _answered,
        Ended: _ended,
    }
