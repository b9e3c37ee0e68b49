"""Runs one random program on the ledger and on the naive model, in lock-step, and compares all that can be seen."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from random import Random
from typing import Any

from ledger_model.generate import Temper, random_program, random_temper
from ledger_model.naive import Contents, Delivery, Ident, Map, NaiveRun, Origin, Thing, Timer
from ledger_model.program import Fact, Program
from ledger_model.translate import event_of, roles_of, serial_of, table_of
from swarmbus import records
from swarmbus.delivery.effects import Effects
from swarmbus.delivery.ledger import Ledger
from swarmbus.delivery.topology import compile_topology
from swarmbus.events import HandlerFailed

STEPS = 2_000
"""More than any run can take; one that does has no end."""


class Difference(AssertionError):
    """The ledger and the naive model do not agree."""


@dataclass(frozen=True)
class Engine:
    """The ledger that is driven: the real one, or a copy with a bug planted in it."""

    ledger: Callable[..., Any] = Ledger
    compile_topology: Callable[..., Any] = compile_topology


REAL = Engine()


def check_one(random: Random, engine: Engine = REAL) -> Counter[str]:
    """Run one random program to its end.

    Returns:
        Which features it had.

    Raises:
        Difference: the two do not agree, or the run has no end.
    """
    race = Race(random_program(random), random_temper(random), random, engine)
    race.run()
    return Counter(race.features | race.naive.notes)


class Race:
    """One program on both: the naive model says what may happen next, chance picks, both are told."""

    def __init__(self, program: Program, temper: Temper, random: Random, engine: Engine = REAL) -> None:
        self.program = program
        self.temper = temper
        self.random = random
        self.topology = engine.compile_topology(roles_of(program), table_of(program))
        assert [one.name for one in self.topology.handlers] == [one.name for one in program.handlers]
        self.ledger = engine.ledger(self.topology, "run")
        self.naive = NaiveRun(program)
        self.features = _features(program)
        self.told: list[str] = []
        self.facts = 0
        self.origins: dict[int, Origin] = {}
        self.cursors: dict[tuple[Origin, int], Any] = {}
        self.keys: dict[Ident, records.DeliveryKey] = {}
        self.timers: dict[int, Timer] = {}
        self.past: list[records.Committed] = []
        self.fired: Counter[Ident] = Counter()

    def run(self) -> None:
        """Run to the end; each step is one record, or one item opened."""
        self._submit(self.program.start)
        for _ in range(STEPS):
            if self.naive.finished:
                break
            self._step()
        else:
            self._differ("end", "it ends", "it does not")
        for ident, times in self.fired.items():
            self._same(f"firings of {ident}", 1, times)
        self.features.add(f"outcome {self.naive.outcome}")

    # --- one step ----------------------------------------------------------------------------------------------------

    def _step(self) -> None:
        random, temper, naive = self.random, self.temper, self.naive
        if self.past and random.random() < temper.stale:
            self._stale()
        waiting = not naive.living()
        if (waiting or random.random() < temper.send) and naive.outcome is None and self.facts < temper.budget:
            self._send()
            return
        if waiting:
            self._end()
            return
        if random.random() < temper.cut and naive.outcome is None:
            self.features.add("ended from outside")
            self._end()
            return
        due = [join for join in naive.joins() if self.program.handlers[join.handler].deadline is not None]
        if due and random.random() < temper.expire:
            self._expire(random.choice(due))
            return
        living = [thing for thing in naive.living() if isinstance(thing, Delivery | Map | Timer)]
        self._advance(random.choice(living))

    def _advance(self, thing: Thing) -> None:
        if isinstance(thing, Map):
            self._open(thing)
        elif isinstance(thing, Timer):
            number = next(number for number, timer in self.timers.items() if timer is thing)
            self._tell(f"timer {number} fires", records.Fired(self._now(), number), lambda: self.naive.fire(thing))
        elif isinstance(thing, Delivery) and thing.asked is not None:
            question = thing.asked
            record = records.Answered(self._now(), question, 1)
            self._tell(f"answer {question}", record, lambda: self.naive.answer(thing))
        elif isinstance(thing, Delivery) and thing.failure is None:
            self._handle(thing)

    def _handle(self, delivery: Delivery) -> None:
        random, temper = self.random, self.temper
        handler = self.program.handlers[delivery.handler]
        key, attempt = self.keys[delivery.ident], delivery.attempt
        room = self.facts < temper.budget
        if handler.early and room and random.random() < temper.early:
            self._early(delivery, handler.early)
        elif random.random() < temper.ask:
            self.features.add("a person's answer")
            question = f"{key}-{self.naive_step()}"
            record = records.Asked(self._now(), key, question, {})
            self._tell(f"{delivery.ident} asks", record, lambda: self.naive.ask(delivery, question))
        elif random.random() < temper.retry and attempt < 3:
            self.features.add("retries")
            error = records.ErrorInfo("RuntimeError", "again")
            self._tell(
                f"{delivery.ident} fails, to be tried again",
                records.Failed(self._now(), key, attempt, error, retry_at=1.0),
                lambda: self.naive.retry(delivery),
            )
        elif random.random() < temper.fail:
            text = f"boom {len(self.told)}"
            self._tell(
                f"{delivery.ident} fails for good: {text}",
                records.Failed(self._now(), key, attempt, records.ErrorInfo("RuntimeError", text)),
                lambda: self.naive.fail(delivery, text),
                failed=delivery,
            )
        else:
            self._commit(delivery, handler.returns if room else ())

    def _early(self, delivery: Delivery, names: tuple[str, ...]) -> None:
        key, attempt = self.keys[delivery.ident], delivery.attempt
        fact = self._fact(self.random.choice(names))
        event = event_of(fact)
        source = self.program.handlers[delivery.handler].role
        if self.random.random() < self.temper.delay:
            self.features.add("timers")
            record = records.Published(
                self._now(), key, attempt, event, routes=self.topology.prepare(source, event), due=5.0
            )
            made: list[Timer] = []
            self._tell(
                f"{delivery.ident} publishes {fact} later", record, lambda: made.append(self.naive.delay(delivery, fact)), timer=made
            )
        else:
            self.features.add("early events")
            record = records.Published(self._now(), key, attempt, event, routes=self.topology.prepare(source, event))
            self._tell(f"{delivery.ident} publishes {fact}", record, lambda: self.naive.publish(delivery, fact))

    def _commit(self, delivery: Delivery, names: tuple[str, ...]) -> None:
        facts: list[Fact] = []
        if self.random.random() >= self.temper.silent:
            count = min(len(names), self.random.choice((1, 1, 1, 2, 3)))
            facts = [self._fact(name) for name in self.random.sample(names, count)]
        events = tuple(map(event_of, facts))
        source = self.program.handlers[delivery.handler].role
        routes = tuple(self.topology.prepare(source, event) for event in events)
        record = records.Committed(
            self._now(),
            self.keys[delivery.ident],
            delivery.attempt,
            outputs=events,
            routes=routes if any(one is not None for one in routes) else None,
        )
        self.past.append(record)
        self._tell(f"{delivery.ident} returns {facts}", record, lambda: self.naive.commit(delivery, facts))

    def _open(self, thing: Map) -> None:
        opened = self.cursors[thing.ident].open_next()
        delivery = self.naive.open(thing)
        self.told.append(f"{delivery.ident} opened")
        if opened is None:
            self._differ("opened", delivery.ident, None)
        self.keys[delivery.ident] = opened.key
        self._same("opened", delivery.ident, self._ident(opened))
        self._same("item", thing.envelope.fact.items[delivery.item], opened.value)

    def _send(self) -> None:
        """A further event of the client, often about one that it was sent."""
        cause = None
        if self.naive.sent and self.random.random() < 0.7:
            cause = self.random.choice(list(self.naive.sent))
            self.features.add("sent by the client into a scope")
        self.features.add("sent by the client")
        self._submit(self.random.choice((self.program.start, *self.program.sends)), cause)

    def _submit(self, name: str, cause: int | None = None) -> None:
        fact = self._fact(name)
        event = event_of(fact)
        record = records.Submitted(
            self._now(),
            event,
            "client",
            cause=None if cause is None else next(n for n, origin in self.origins.items() if origin == cause),
            routes=self.topology.prepare("client", event),
            max_hops=self.program.max_hops,
        )
        self._tell(f"client submits {fact} for {cause}", record, lambda: self.naive.submit(fact, cause))

    def _expire(self, join: Any) -> None:
        number = next(
            number
            for number, timer in self.ledger.timers.items()
            if timer.join is not None and self._origin(timer.join.opener) == join.envelope.origin
            and timer.join.handler.number == join.handler
        )
        self._tell(
            f"deadline of {join.ident}", records.Fired(self._now(), number), lambda: self.naive.expire(join)
        )

    def _end(self) -> None:
        status = self.random.choice(("cancelled", "timed_out"))
        self._tell(f"ended: {status}", records.Ended(self._now(), status), lambda: self.naive.end(status))

    def _stale(self) -> None:
        """A commit that comes a second time, or of an attempt that is over, changes nothing."""
        self.features.add("late records")
        retried = [one for one in self.naive.runnable() if one.attempt > 1]
        if retried:
            delivery = self.random.choice(retried)
            key = self.keys[delivery.ident]
            record = records.Committed(self._now(), key, delivery.attempt - 1)
            self._tell(f"{delivery.ident} is late with attempt {delivery.attempt - 1}", record, self.naive.nothing)
        else:
            self._tell("a commit again", replace(self.random.choice(self.past), at=self._now()), self.naive.nothing)
        self._same("ignored", True, self.effects.ignored)

    # --- facts -------------------------------------------------------------------------------------------------------

    def _fact(self, name: str) -> Fact:
        random = self.random
        if name not in (self.program.start, *self.program.sends) and name + "x" in self.program.parents and random.random() < self.temper.child:
            name += "x"
            self.features.add("children of a class")
        serial = self.facts
        self.facts += 1
        size = 0 if random.random() < 0.1 else random.randint(1, self.temper.most_items)
        items = tuple(f"{serial}.{index}" for index in range(size))
        promises = tuple(random.sample("abcd", random.choice((0, 0, 1, 2))))
        return Fact(serial, name, items, random.choice("abcd"), promises)

    def _now(self) -> float:
        return float(len(self.told))

    def naive_step(self) -> int:
        """How many records there were."""
        return len(self.told)

    # --- comparing ---------------------------------------------------------------------------------------------------

    def _tell(self, text: str, record: records.Record, naive: Any, failed: Delivery | None = None, timer: Any = None) -> None:
        self.told.append(text)
        before = {thing for thing in self.naive.things if thing.live}
        effects: Effects = self.ledger.apply(record)
        self.effects = effects
        naive()
        if timer:
            self.timers[effects.timers[0].number] = timer[0]
        for envelope in effects.published:
            if isinstance(envelope.event, HandlerFailed):
                assert failed is not None
                self.origins[envelope.number] = ("failed", failed.ident)
            else:
                self.origins[envelope.number] = serial_of(envelope.event)
        self._compare_new(effects, before)
        self._compare_state()

    def _compare_new(self, effects: Effects, before: set[Thing]) -> None:
        step = self.naive.step
        dropped = {self._thing(one) for one in effects.cancelled}
        delivered = {self._ident(one): one for one in effects.deliver}
        handed = Counter(self._ident(one) for one in effects.deliver if self._ident(one) not in dropped)
        self._same("delivered", Counter(one.ident for one in step.delivered if one.live), handed)
        self.fired.update(ident for ident, one in delivered.items() if one.joined is not None and ident not in self.keys)
        for ident, one in delivered.items():
            self.keys.setdefault(ident, one.key)
        cursors = {(self._origin(one.envelope), one.handler.number): one for one in effects.maps}
        self.cursors.update(cursors)
        new = {ident for ident in cursors if ("map", *ident) not in dropped}
        self._same("new maps", {one.ident for one in step.maps if one.live}, new)
        mapped = {("map", *one.ident) for one in before if isinstance(one, Map)}
        cut = {one for one in dropped if one in mapped or one[0] not in ("map",)}
        known = {("timer", one) for one in before if isinstance(one, Timer)} | mapped
        known |= {one.ident for one in before if isinstance(one, Delivery)}
        self._same("cancelled", {self._name(one) for one in step.cancelled} & known, cut & known)

    def _compare_state(self) -> None:
        naive, ledger = self.naive, self.ledger
        self._same(
            "live deliveries",
            {one.ident for one in naive.deliveries()},
            {self._ident(one) for one in ledger.pending.values()},
        )
        self._same(
            "open joins",
            {one.ident for one in naive.joins()},
            {(self._origin(one.opener), one.handler.number, -1) for one in ledger.joins.values() if one.open},
        )
        self._same(
            "timers",
            {timer for timer in naive.living() if isinstance(timer, Timer)},
            {self.timers[number] for number, timer in ledger.timers.items() if timer.join is None},
        )
        for one in naive.deliveries():
            actual = self._contents(ledger.pending[self.keys[one.ident]])
            self._same(f"contents of {one.ident}", one.joined, actual)
        self._same("outcome", naive.outcome, ledger.outcome.status if ledger.outcome is not None else None)
        self._same("finished", naive.finished, ledger.finished)
        failure = ledger.outcome.failure if ledger.outcome is not None else None
        self._same("what ended it", naive.cause, _text(failure.message) if failure is not None else None)
        self._same("given up", naive.dead, [_text(one.message) for one in ledger.dead])
        self._same("mended", naive.mended, [_text(one.message) for one in ledger.mended])
        self._same("number of warnings", naive.warnings, len(ledger.warnings))

    def _contents(self, delivery: Any) -> Contents | None:
        joined = delivery.joined
        if joined is None:
            return None
        return Contents(
            opener=serial_of(delivery.envelope.event),
            done=tuple(serial_of(event) for event in joined.done),
            failed=tuple(
                (one.item, one.key, _text(one.error.message), tuple(serial_of(event) for event in one.done))
                for one in joined.failed
            ),
            missing=tuple((one.item, one.key) for one in joined.missing),
            cancelled=tuple((one.item, one.key) for one in joined.cancelled),
        )

    def _origin(self, envelope: records.Envelope) -> Origin:
        return self.origins[envelope.number]

    def _ident(self, delivery: Any) -> Ident:
        return (self._origin(delivery.envelope), delivery.handler.number, delivery.item)

    def _thing(self, thing: Any) -> Any:
        kind = type(thing).__name__
        if kind == "Delivery":
            return self._ident(thing)
        if kind == "MapCursor":
            return ("map", self._origin(thing.envelope), thing.handler.number)
        return ("timer", self.timers.get(thing.number))

    def _name(self, thing: Thing) -> Any:
        if isinstance(thing, Delivery):
            return thing.ident
        return ("map", *thing.ident) if isinstance(thing, Map) else ("timer", thing)

    def _same(self, what: str, expected: object, actual: object) -> None:
        if expected != actual:
            self._differ(what, expected, actual)

    def _differ(self, what: str, expected: object, actual: object) -> None:
        handlers = "\n".join(f"  {number}: {one}" for number, one in enumerate(self.program.handlers))
        rows = "\n".join(f"  {row}" for row in self.program.rows)
        told = "\n".join(f"  {line}" for line in self.told)
        raise Difference(
            f"{what}: expected {expected}, got {actual}\nresult {self.program.result}\n{handlers}\n{rows}\n{told}"
        )


def _text(message: str) -> str:
    """A failure's own words where it had some; what is merely missing is told in the ledger's."""
    return " ".join(re.findall(r"boom \d+", message)) or "missing"


def _features(program: Program) -> set[str]:
    features = {
        "picky handlers": any(one.picky for one in program.handlers),
        "no result": program.result is None,
        "keyed joins": any(one.keyed for one in program.handlers),
        "expected keys": any(one.expects for one in program.handlers),
        "maps counted by a function": any(one.counted for one in program.handlers),
    }
    return {feature for feature, present in features.items() if present}
