"""Follows a run: tells the ledger's naive model, in order, what was seen of the run and what its handlers did.

The naive model rests on the rules alone. What disturbances leave open, such as when a handler was cut off, is taken
from what was seen; what follows from it is not.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import pairwise
from typing import Any

from ledger_model import features
from ledger_model.naive import NaiveRun
from ledger_model.program import Fact
from ledger_model.tree import Delivery, Ident, Map, Origin, Step, Timer

from chaos.story import RUN, Beginning, Note, Place, Story, told

EPSILON = 1e-4
"""Seconds that a limit may be missed by."""
MOMENT = 1e-6
"""Seconds within which things happen at one moment of the clock."""


class Followed:
    """What was seen of one run so far, beside what must have come of it.

    Attributes:
        faults: where the two differ; features: what the run had.
        naive: what must have come of it.
        origins, times: the fact, or failed delivery, behind each envelope, and when it was published.
        under_way: the attempts that handlers have begun; started: those that watchers saw begin.
        raised, returned: what attempts under way did, and nobody was told yet.
        cancelled: what watchers saw cancelled; stopped: when that was; doomed: what had to be cancelled, maps included.
        late: what was said to come too late, though all went on as far as was seen by then.
        result: the fact that ended the run; last: when the last thing happened.
        tied: deadlines of several joins passed at one moment, so that nothing says which one comes first.
    """

    def __init__(self, story: Story, epoch: float) -> None:
        self.story = story
        self.epoch = epoch
        self.program = story.round.program
        self.naive = NaiveRun(self.program)
        self.faults = list(story.faults)
        self.features = set(features.of_program(self.program))
        self.numbers: dict[str, int] = {one.name: number for number, one in enumerate(self.program.handlers)}
        self.origins: dict[int, Origin] = {}
        self.times: dict[Origin, float] = {}
        self.found: dict[Ident, Delivery] = {}
        self.timers: dict[int, Timer] = {}
        self.seen: set[int] = set()
        self.outputs: list[Fact] = []
        self.failing: list[int] = []
        self.returned: dict[Ident, tuple[Fact, ...]] = {}
        self.raised: dict[Ident, str] = {}
        self.began: dict[Ident, float] = {}
        self.under_way: dict[Ident, float] = {}
        self.states: dict[str, dict[str, int]] = {}
        self.started: set[Ident] = set()
        self.cancelled: set[Ident] = set()
        self.stopped: dict[Ident, float] = {}
        self.doomed: set[Ident | tuple[Origin, int]] = set()
        self.late: list[Note] = []
        self.result: Fact | None = None
        self.last = 0.0
        self.tied = False

    def fault(self, text: str) -> None:
        """Note that something is wrong."""
        self.faults.append(f"{self.story.id} at {self.last:.6f}: {text}")

    def same(self, what: str, expected: object, actual: object) -> None:
        """Note it where two things are not the same."""
        if expected != actual:
            self.fault(f"{what}: expected {expected}, got {actual}")

    # --- what watchers saw

    def submitted(self) -> None:
        """Take the first event, which came before anybody could watch."""
        fact = next(fact for _, how, fact in self.story.made.values() if how == "sent")
        self.origins[0] = fact.serial
        self.seen.add(fact.serial)
        assert self.story.ended is not None
        self.times[fact.serial] = self.story.ended[1].started - self.epoch
        self.naive.submit(fact)
        self.naive.step = Step()  # whatever that cancelled, nobody saw

    def see(self, item: Any) -> None:
        if hasattr(item, "event"):
            self._envelope(item)
        elif item.run_id != self.story.id:
            self.fault(f"shows {item} of another run")
        elif item.type in _LIFECYCLE:
            _LIFECYCLE[item.type](self, item, (self.origins[item.envelope], self.numbers[item.handler], _index(item)))

    def _envelope(self, envelope: Any) -> None:
        self.same("number of the envelope", len(self.origins), envelope.number)
        serial = getattr(envelope.event, "serial", None)
        if serial is None:
            self.failing.append(envelope.number)
            self.origins[envelope.number] = -1
            return
        self.origins[envelope.number] = serial
        self.times[serial] = envelope.time - self.epoch
        if serial // RUN != self.story.plan.tag or serial not in self.story.made:
            self.fault(f"shows {envelope} of another run")
            return
        place, how, fact = self.story.made[serial]
        if serial in self.seen:
            self.fault(f"{fact} was published twice")
            return
        self.seen.add(serial)
        if self.result is None and self.naive.outcome is None and self.program.ends(envelope.source, fact.name):
            self.result = fact
        if place is None:
            self.naive.submit(fact, None if envelope.cause is None else serial_at(self.origins, envelope.cause))
            return
        ident = self._ident(place)
        self.same(f"cause of {fact}", ident[0], self.origins[envelope.cause])
        self.same(f"source of {fact}", self.program.handlers[ident[1]].role, envelope.source)
        if how == "returned":
            self.outputs.append(fact)
        elif how == "early":
            self.naive.publish(self._live(ident, "published"), fact)
            self.features.add("early events")
        elif serial not in self.timers or not self.timers[serial].live:
            self.fault(f"{fact} was published, but its timer is not set")
        else:
            self.naive.fire(self.timers[serial])

    def _started(self, item: Any, ident: Ident) -> None:
        self._live(ident, "started")
        if ident in self.started:
            self.fault(f"{ident} was started while it was under way")
        self.started.add(ident)

    def _was_cancelled(self, item: Any, ident: Ident) -> None:
        self.started.discard(ident)
        self.cancelled.add(ident)
        self.stopped[ident] = item.time - self.epoch

    def note_cancelled(self) -> None:
        """Remember what the last step cancelled: deliveries, and maps with items that nobody had begun."""
        self.doomed.update(one.ident for one in self.naive.step.cancelled if isinstance(one, Delivery | Map))

    def _committed(self, item: Any, ident: Ident) -> None:
        delivery = self._live(ident, "committed")
        outputs, self.outputs = tuple(self.outputs), []
        self.same(f"outputs of {ident}", self.returned.pop(ident, None), outputs)
        self._over(ident)
        if ident in self.raised:
            self.fault(f"{ident} raised {self.raised[ident]}, and was committed")
        handler = self.program.handlers[ident[1]]
        if self.story.round.manners[handler.role].state:
            state = self.states.setdefault(handler.role, {"": 0})
            state[""] += 1
            state[repr(ident)] = delivery.attempt
        self.naive.commit(delivery, outputs)

    def _failed(self, item: Any, ident: Ident) -> None:
        delivery = self._live(ident, "failed")
        error = told(item.detail)
        self._raised(item, ident, error)
        for number in self.failing:
            self.origins[number] = ("failed", ident)
        self.failing.clear()
        self.naive.fail(delivery, error)

    def _retried(self, item: Any, ident: Ident) -> None:
        self._raised(item, ident, told(item.detail))
        self.naive.retry(self._live(ident, "retried"))
        self.features.add("retries")

    def _raised(self, item: Any, ident: Ident, error: str) -> None:
        self._over(ident)
        raised = self.raised.pop(ident, None)
        if error == "ran longer than":
            self.features.add("handler timed out")
            timeout = self.story.round.manners[item.role].timeout
            if timeout is None or item.time - self.epoch - self.began[ident] < timeout - EPSILON:
                self.fault(f"{ident} timed out after {item.time - self.epoch - self.began[ident]} s")
        else:
            self.same(f"error of {ident}", raised, error)

    def _asked(self, item: Any, ident: Ident) -> None:
        self.naive.ask(self._live(ident, "asked"), repr(ident))
        self._over(ident)
        self.features.add("a person's answer")

    def _over(self, ident: Ident) -> None:
        """An attempt is over."""
        self.under_way.pop(ident, None)
        self.started.discard(ident)

    # --- what was done

    def hear(self, note: Note) -> None:
        if note.kind in _NOTES:
            _NOTES[note.kind](self, note)

    def _beginning(self, note: Note) -> None:
        began: Beginning = note.value
        assert note.place is not None
        ident = self._ident(note.place)
        delivery = self._find(ident)
        if delivery is None and (began.threaded or self.story.round.deps is not None):
            return  # it was cut off before its thread, or what it depends on, was there
        if delivery is None or delivery.asked is not None or delivery.failure is not None:
            self.fault(f"{ident} was begun, but it is not to be")
            return
        if ident in self.under_way:
            self.fault(f"{ident} was begun while it was under way")
        self.under_way[ident] = note.at
        self.began[ident] = note.at
        if began.attempt is not None:
            self.same(f"attempt of {ident}", delivery.attempt, began.attempt)
        self.same(f"contents of {ident}", delivery.joined, began.contents)
        if began.contents is not None:
            self.features.update(features.of_contents(began.contents))
        if began.threaded:
            self.features.add("threads")
        if began.state is not None:
            self.features.add("state")
            role = self.program.handlers[ident[1]].role
            self.same(f"state of {role}", self.states.get(role, {"": 0}), self._state(began.state))

    def _state(self, state: dict[str, int]) -> dict[str, int]:
        return {
            key and repr(self._ident(eval(key, {"__builtins__": {}}))): value  # what the role wrote
            for key, value in state.items()
        }

    def _delayed(self, note: Note) -> None:
        assert note.place is not None
        self.timers[note.value.serial] = self.naive.delay(
            self._live(self._ident(note.place), "set a timer"), note.value
        )
        self.features.add("timers")

    def _refused(self, note: Note) -> None:
        assert note.place is not None
        self.features.add("refused after the end of an attempt")
        delivery = self._find(self._ident(note.place))
        goes_on = delivery is not None and delivery.attempt == note.value and delivery.failure is None
        if goes_on and self.naive.outcome is None:
            self.late.append(note)  # unless it turns out that the run was ended by then

    def _came_to_its_end(self, note: Note) -> Ident:
        """Return the delivery of an attempt that raised or returned by itself, unless it had been told to stop."""
        assert note.place is not None
        ident = self._ident(note.place)
        stubborn = any(ending == "stubborn" for ending, _ in self.story.script(note.place).endings)
        stopped = self.stopped.get(ident, note.at)
        if note.at > stopped + EPSILON and not stubborn and not self.in_thread(ident):
            self.fault(f"{ident} went on for {note.at - stopped} s after it was cancelled")
        return ident

    def in_thread(self, ident: Ident) -> bool:
        """Whether a delivery's attempts are in threads, of which the loop hears a little later, or not at all."""
        return self.story.round.manners[self.program.handlers[ident[1]].role].threads

    def _note_raised(self, note: Note) -> None:
        ident = self._came_to_its_end(note)
        assert self.story.ended is not None
        ended = self.story.ended[1].ended - self.epoch
        if self.under_way.get(ident) == note.attempt and self._find(ident) is not None and note.at < ended:
            self.raised[ident] = note.value

    def _note_returned(self, note: Note) -> None:
        ident = self._came_to_its_end(note)
        if self.under_way.get(ident) == note.attempt:
            self.returned[ident] = note.value

    def _answered(self, note: Note) -> None:
        found = re.search(r"/(\d+)>\w+\.(\w+?)(?:#(\d+))?\?", note.value)
        assert found is not None
        ident = (self.origins[int(found[1])], self.numbers[found[2]], int(found[3] or -1))
        self.naive.answer(self._live(ident, "answered"))

    def _cancelled(self, note: Note) -> None:
        assert self.story.ended is not None
        self.features.add("cancelled at some moment")
        if self.story.ended[0] in ("RunTimedOut", "RunStopped"):
            self.late.append(note)  # it came too late, for the run had been ended otherwise
        elif self.naive.outcome is None:
            self.naive.end("cancelled")

    def _too_late(self, note: Note) -> None:
        if note.value.serial in self.seen:
            self.fault(f"{note.value} was refused, and published")

    # --- time

    def expire(self, at: float) -> None:
        """Let deadlines of joins pass."""
        while True:
            due = [
                (self.times[join.envelope.origin] + deadline, join)
                for join in self.naive.joins()
                if (deadline := self.program.handlers[join.handler].deadline) is not None and not join.overdue
            ]
            due = [one for one in due if one[0] <= at]
            if not due:
                return
            moments = sorted(one[0] for one in due)
            self.tied = self.tied or any(second - first < MOMENT for first, second in pairwise(moments))
            self.features.add("deadline")
            self.naive.expire(min(due, key=lambda one: one[0])[1])
            self.note_cancelled()

    # --- which delivery

    def _ident(self, place: Place) -> Ident:
        origin, handler, item = place
        if isinstance(origin, tuple):
            _, number, name, index = origin
            origin = ("failed", (self.origins[number], self.numbers[name], index))  # type: ignore[assignment]
        return (origin, handler, item)  # type: ignore[return-value]

    def _find(self, ident: Ident) -> Delivery | None:
        """Return a live delivery, opening the items of its map that come before it."""
        known = self.found.get(ident)
        if known is None:
            for thing in self.naive.living():
                if isinstance(thing, Map) and (*thing.ident, ident[2]) == ident:
                    while thing.unopened and thing.unopened[0] <= ident[2]:
                        opened = self.naive.open(thing)
                        self.found[opened.ident] = opened
                elif isinstance(thing, Delivery):
                    self.found.setdefault(thing.ident, thing)
            known = self.found.get(ident)
        return known if known is not None and known.live else None

    def _live(self, ident: Ident, what: str) -> Delivery:
        delivery = self._find(ident)
        if delivery is None:
            raise Astray(f"{ident} {what}, but it is over")
        return delivery


class Astray(AssertionError):
    """Something was seen of a delivery that is not live."""


def serial_at(origins: dict[int, Origin], number: int) -> int:
    """Return the serial of the fact in an envelope."""
    origin = origins[number]
    assert isinstance(origin, int)
    return origin


def _index(item: Any) -> int:
    return item.item if item.item is not None else -1


_LIFECYCLE: dict[str, Callable[[Followed, Any, Ident], None]] = {
    "delivery_started": Followed._started,
    "delivery_cancelled": Followed._was_cancelled,
    "delivery_committed": Followed._committed,
    "delivery_failed": Followed._failed,
    "delivery_retried": Followed._retried,
    "question_asked": Followed._asked,
}
_NOTES: dict[str, Callable[[Followed, Note], None]] = {
    "begin": Followed._beginning,
    "delay": Followed._delayed,
    "refused": Followed._refused,
    "raise": Followed._note_raised,
    "return": Followed._note_returned,
    "answer": Followed._answered,
    "cancel": Followed._cancelled,
    "too late": Followed._too_late,
}
