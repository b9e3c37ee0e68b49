"""Runs random programs to their end: the naive model says what may happen next, and chance picks."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from random import Random
from typing import Literal

from ledger_model import features
from ledger_model.generate import Temper, random_program, random_temper
from ledger_model.pair import REAL, Engine, Pair
from ledger_model.program import Fact, Program
from ledger_model.translate import event_of
from ledger_model.tree import Delivery, Join, Map, Thing, Timer
from swarmbus import records

STEPS = 2_000
"""More than any run can take; one that takes as many has no end."""


def check_one(random: Random, engine: Engine = REAL) -> Counter[str]:
    """Run one random program to its end.

    Returns:
        Which features it had, once each.

    Raises:
        Difference: the two do not agree, or the run has no end.
    """
    drive = Drive(random_program(random), random_temper(random), random, engine)
    drive.run()
    return Counter(drive.features | drive.naive.notes)


class Drive:
    """One run of a program in a certain temper."""

    def __init__(self, program: Program, temper: Temper, random: Random, engine: Engine = REAL) -> None:
        self.program = program
        self.temper = temper
        self.random = random
        self.pair = Pair(program, engine)
        self.naive = self.pair.naive
        self.features = set(features.of_program(program))
        self.facts = 0
        self.past: list[records.Committed] = []

    def run(self) -> None:
        """Run to the end; each step is one record, or one item opened."""
        self.submit(self.program.start)
        for _ in range(STEPS):
            if self.naive.finished:
                break
            self.step()
        self.pair.same("finished", True, self.naive.finished)
        self.pair.compare_end()
        self.features.add(f"outcome {self.naive.outcome}")

    def step(self) -> None:
        """Let one thing happen."""
        naive, temper = self.naive, self.temper
        if self.past and self.chance(temper.stale):
            self.come_late()
        waiting = not naive.living()
        timed = [join for join in naive.joins() if self.program.handlers[join.handler].deadline is not None]
        if naive.outcome is None and self.has_room() and (waiting or self.chance(temper.send)):
            self.send()
        elif naive.outcome is None and (waiting or self.chance(temper.cut)):
            self.end()
        elif timed and self.chance(temper.expire):
            self.expire(self.random.choice(timed))
        else:
            self.advance(self.random.choice([thing for thing in naive.living() if not isinstance(thing, Join)]))

    def advance(self, thing: Thing) -> None:
        """Go on with one live thing, if it is not waiting for another one."""
        if isinstance(thing, Map):
            self.pair.open_next(thing)
        elif isinstance(thing, Timer):
            number = next(number for number, timer in self.pair.timers.items() if timer is thing)
            record = records.Fired(self.now(), number)
            self.pair.tell(f"timer {number} fires", record, lambda: self.naive.fire(thing))
        elif isinstance(thing, Delivery) and thing.asked is not None:
            answered = records.Answered(self.now(), thing.asked, 1)
            self.pair.tell(f"answer to {thing.asked}", answered, lambda: self.naive.answer(thing))
        elif isinstance(thing, Delivery) and thing.failure is None:
            self.handle(thing)

    def handle(self, delivery: Delivery) -> None:
        """Let a handler do one thing: publish early, ask, fail or return."""
        temper = self.temper
        handler = self.program.handlers[delivery.handler]
        if handler.early and self.has_room() and self.chance(temper.early):
            self.publish(delivery, self.random.choice(handler.early))
        elif self.chance(temper.ask):
            self.ask(delivery)
        elif self.chance(temper.retry) and delivery.attempt < 3:
            self.retry(delivery)
        elif self.chance(temper.fail):
            self.fail(delivery)
        else:
            self.commit(delivery, handler.returns if self.has_room() else ())

    # --- what a handler does ---

    def publish(self, delivery: Delivery, name: str) -> None:
        """Publish early, now or later."""
        fact = self.fact(name)
        record = records.Published(
            self.now(), self.pair.keys[delivery.ident], delivery.attempt, event_of(fact), self.routes(delivery, fact)
        )
        if self.chance(self.temper.delay):
            self.features.add("timers")
            later = replace(record, due=5.0)
            self.pair.tell(f"{delivery.ident} delays {fact}", later, lambda: self.naive.delay(delivery, fact))
        else:
            self.features.add("early events")
            self.pair.tell(f"{delivery.ident} publishes {fact}", record, lambda: self.naive.publish(delivery, fact))

    def ask(self, delivery: Delivery) -> None:
        """Ask a person."""
        self.features.add("a person's answer")
        question = f"question {len(self.pair.told)}"
        record = records.Asked(self.now(), self.pair.keys[delivery.ident], question, {})
        self.pair.tell(f"{delivery.ident} asks {question}", record, lambda: self.naive.ask(delivery, question))

    def retry(self, delivery: Delivery) -> None:
        """Fail, to be tried again."""
        self.features.add("retries")
        record = replace(self.failed(delivery, "not yet"), retry_at=self.now() + 1)
        self.pair.tell(f"{delivery.ident} fails for now", record, lambda: self.naive.retry(delivery))

    def fail(self, delivery: Delivery) -> None:
        """Fail for good."""
        text = f"boom {len(self.pair.told)}"
        record = self.failed(delivery, text)
        self.pair.tell(f"{delivery.ident} fails: {text}", record, lambda: self.naive.fail(delivery, text), delivery)

    def failed(self, delivery: Delivery, text: str) -> records.Failed:
        """The record of a failure."""
        error = records.ErrorInfo("RuntimeError", text)
        return records.Failed(self.now(), self.pair.keys[delivery.ident], delivery.attempt, error)

    def commit(self, delivery: Delivery, names: tuple[str, ...]) -> None:
        """Return some of what it may, or nothing."""
        facts: list[Fact] = []
        if not self.chance(self.temper.silent):
            count = min(len(names), self.random.choice((1, 1, 1, 2, 3)))
            facts = [self.fact(name) for name in self.random.sample(names, count)]
        routes = tuple(self.routes(delivery, fact) for fact in facts)
        record = records.Committed(
            self.now(),
            self.pair.keys[delivery.ident],
            delivery.attempt,
            outputs=tuple(map(event_of, facts)),
            routes=routes if any(one is not None for one in routes) else None,
        )
        self.past.append(record)
        self.pair.tell(f"{delivery.ident} returns {facts}", record, lambda: self.naive.commit(delivery, facts))

    # --- what comes from elsewhere ---

    def submit(self, name: str, cause: int | None = None) -> None:
        """An event of the client: into the root, or where an event lives that the client was sent."""
        fact = self.fact(name)
        event = event_of(fact)
        record = records.Submitted(
            self.now(),
            event,
            "client",
            cause=None if cause is None else self.pair.envelope_number(cause),
            routes=self.pair.topology.prepare("client", event),
            max_hops=self.program.max_hops,
        )
        self.pair.tell(f"client submits {fact} for {cause}", record, lambda: self.naive.submit(fact, cause))

    def send(self) -> None:
        """A further event of the client."""
        self.features.add("sent by the client")
        cause = None
        if self.naive.sent and self.chance(0.7):
            self.features.add("sent by the client into a scope")
            cause = self.random.choice(list(self.naive.sent))
        self.submit(self.random.choice((self.program.start, *self.program.sends)), cause)

    def expire(self, join: Join) -> None:
        """A deadline passes."""
        record = records.Fired(self.now(), self.pair.deadline_of(join))
        self.pair.tell(f"deadline of {join.ident}", record, lambda: self.naive.expire(join))

    def end(self) -> None:
        """The run is cancelled, or its time is over."""
        statuses: tuple[Literal["cancelled", "timed_out"], ...] = ("cancelled", "timed_out")
        status = self.random.choice(statuses)
        self.pair.tell(f"ended: {status}", records.Ended(self.now(), status), lambda: self.naive.end(status))

    def come_late(self) -> None:
        """A commit that comes a second time, or of an attempt that is over: nothing changes."""
        self.features.add("late records")
        retried = [one for one in self.naive.runnable() if one.attempt > 1]
        late = self.random.choice(self.past)
        if retried:
            delivery = self.random.choice(retried)
            late = records.Committed(self.now(), self.pair.keys[delivery.ident], delivery.attempt - 1)
        self.pair.tell(f"late: {late}", late, self.naive.nothing)
        self.pair.same("ignored", True, self.pair.effects.ignored)

    # --- facts and chances ---

    def fact(self, name: str) -> Fact:
        """A new fact of a class, or of its child."""
        random, program = self.random, self.program
        submitted = name in (program.start, *program.sends)
        if not submitted and name + "x" in program.parents and self.chance(self.temper.child):
            name += "x"
            self.features.add("children of a class")
        serial = self.facts
        self.facts += 1
        size = 0 if self.chance(0.1) else random.randint(1, self.temper.most_items)
        items = tuple(f"{serial}.{index}" for index in range(size))
        promises = tuple(random.sample("abcd", random.choice((0, 0, 1, 2))))
        return Fact(serial, name, items, random.choice("abcd"), promises)

    def routes(self, delivery: Delivery, fact: Fact) -> records.Routes | None:
        """What user code decides about where a fact goes."""
        source = self.program.handlers[delivery.handler].role
        routes: records.Routes | None = self.pair.topology.prepare(source, event_of(fact))
        return routes

    def now(self) -> float:
        """A time in seconds, later with each record."""
        return float(len(self.pair.told))

    def chance(self, probability: float) -> bool:
        """Whether something of this probability happens."""
        return self.random.random() < probability

    def has_room(self) -> bool:
        """Whether more may be published in this run."""
        return self.facts < self.temper.budget
