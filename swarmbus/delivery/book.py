"""The book of one run: all that its ledger knows, and the few moves that keep the counts right.

`publishing`, `ladder`, `deciding` and `cancelling` work on it; `ledger` is the door through which records come in.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from swarmbus.delivery.deliveries import DONE, OPEN, QUIET, Delivery, MapCursor, Timer
from swarmbus.delivery.effects import Effects, Outcome
from swarmbus.delivery.scopes import Node
from swarmbus.delivery.topology import ALIVE
from swarmbus.records import Envelope

if TYPE_CHECKING:
    from swarmbus.delivery.joins import Join
    from swarmbus.delivery.mending import Mending
    from swarmbus.delivery.topology import Topology
    from swarmbus.events import Event
    from swarmbus.records import DeliveryKey, Ended
    from swarmbus.results import Failure


class Book:
    """All that is known of one run.

    Attributes:
        pending: the deliveries that are out or waiting, by key; maps: the maps with items left.
        joins: the open joins, in the order of their opening; timers: what comes due.
        questions: the deliveries waiting for a person, by question id.
        states: each role's state; usage: what each role's recorded calls cost.
        outcome: how the run ends, once that is decided; finished: nothing is live any more.
        dead: the failures for good that nobody mended; mended: those somebody did.
        warnings: what should not have happened and did no harm.
        silent: the last delivery that was handled and published nothing.
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
        self.silent: Delivery | None = None
        self.envelope_count = 0
        self.records = 0
        self.max_hops = 1000
        self.outside: dict[int, Node] = {}
        self._timer_count = 0
        self.mendings: dict[DeliveryKey, Mending] = {}
        # What a record has led to and `deciding` has yet to settle, in this order: verdicts and the end first, for they
        # cancel, which takes out of the counts; then scopes that became quiet, which makes joins due; then those joins,
        # one at a time, since each may cancel or make due others.
        self.due: list[Join] = []
        self.verdicts: list[Mending] = []
        self.ending: Outcome | None = None
        self.zeros: list[tuple[Node, int]] = []
        self.effects = Effects()

    @property
    def finished(self) -> bool:
        """How the run ends is decided, and nothing is live any more."""
        return self.outcome is not None and (self.ended is not None or ALIVE not in self.root.counts)

    @property
    def quiet(self) -> bool:
        """Nothing is live."""
        return ALIVE not in self.root.counts

    @property
    def waiting(self) -> bool:
        """Nothing is live, but an event from outside could still lead to the result."""
        return self.outcome is None and self.records > 0 and ALIVE not in self.root.counts

    def event_id(self, envelope: Envelope) -> str:
        """Return the CloudEvents id of an envelope: the run's id and its number."""
        return f"{self.run_id}/{envelope.number}"

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

    # --- moves

    def envelope(self, event: Event, source: str, cause: int | None, at: float, hops: int) -> Envelope:
        """Number a new envelope."""
        number = self.envelope_count
        self.envelope_count = number + 1
        return Envelope(number, event, source, cause, at, hops)

    def caused(self, event: Event, delivery: Delivery, at: float) -> Envelope:
        """Number an envelope that a delivery published."""
        cause = delivery.envelope
        number = self.envelope_count
        self.envelope_count = number + 1
        return Envelope(number, event, delivery.handler.role, cause.number, at, cause.hops + 1)

    def belongs(self, column: int, delivery: Delivery) -> tuple[Join | None, int]:
        """Return the join, and which of its items, that a contribution of this delivery would count for."""
        return self.belongs_at(column, None, delivery)

    def belongs_at(self, column: int, node: Node | None, origin: Delivery | None) -> tuple[Join | None, int]:
        """Return the same for a node, or where that is None for what `origin` publishes."""
        if node is not None:
            return node.belongs(column)
        assert origin is not None
        if origin.inner is not None:
            return origin.inner.belongs(column)
        join, item = origin.node.belongs(column)
        if item < 0 and join is not None and origin.cursor is not None and column in origin.handler.reaches:
            return join, join.item_of(origin.cursor, origin.item)
        return join, item

    def place(self, delivery: Delivery) -> Node:
        """Return the node that a delivery publishes into, which for an item is its own."""
        if delivery.cursor is None:
            return delivery.node
        if delivery.inner is None:
            delivery.inner = Node(delivery.node, delivery.cursor, delivery.item)
        return delivery.inner

    def new_timer(self, due: float) -> Timer:
        """Set a timer for a time in seconds since the epoch."""
        timer = Timer(self._timer_count, due)
        self._timer_count += 1
        self.timers[timer.number] = timer
        self.effects.timers += (timer,)
        return timer

    def remove(self, delivery: Delivery) -> None:
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
            self.item_quiet(cursor, delivery.item)
        if cursor.live:
            cursor.left -= 1
            if not cursor.left:
                self.drop_map(cursor)

    def forget(self, delivery: Delivery) -> None:
        """Take a cancelled delivery out of the count; a mender cancelled so counts as a no."""
        if delivery.key in self.mendings:
            mending = self.mendings.pop(delivery.key)
            mending.menders.discard(delivery.key)
            if not mending.menders:
                self.verdicts.append(mending)
        self.remove(delivery)

    def drop_map(self, cursor: MapCursor) -> None:
        """Take a map out of the count."""
        cursor.live = False
        del self.maps[cursor.envelope.number, cursor.handler.number]
        cursor.node.remove(cursor.handler.reach, self.zeros)

    def item_quiet(self, cursor: MapCursor, item: int) -> None:
        """Take note that nothing of an opened item goes on any more."""
        cursor.marks[item] = QUIET
        cursor.active -= 1
        self.effects.ready.append(cursor)

    def will_end(self, outcome: Outcome) -> None:
        """End the run once the record at hand is added and what it ends is removed; the first outcome counts."""
        if self.ending is None:
            self.ending = outcome

    def warn(self, message: str) -> None:
        """Add a warning."""
        self.warnings.append(message)
