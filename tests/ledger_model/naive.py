"""The naive model of a run: it keeps the whole tree of what ever happened and, after each step, looks at all of it.

Written from the rules alone: no counters, no indexes, nothing of the framework. Slow on purpose, and for that reason
easy to believe.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from ledger_model import features
from ledger_model.program import CLIENT, HANDLER_FAILED, RESULT, SYSTEM, Fact, Program
from ledger_model.survey import Survey
from ledger_model.tree import Column, Delivery, Envelope, Failure, Join, Map, Node, Step, Thing, Timer


class NaiveRun(Survey):
    """One run of a program. Every public method below is one record; `step` tells what the last one did.

    Attributes:
        outcome: how the run ends, once that is decided; cause: the failure that decided it, if one did.
        finished: the end is decided, and nothing is live any more.
        dead: errors that nobody mended; mended: those somebody did; warnings: how many there were.
        sent: where an event lives that went to the client, by serial.
        notes: the features that the run had.
    """

    def __init__(self, program: Program) -> None:
        super().__init__(program)
        self.outcome: str | None = None
        self.cause: str | None = None
        self.finished = False
        self.dead: list[str] = []
        self.mended: list[str] = []
        self.warnings = 0
        self.sent: dict[int, Node] = {}
        self.step = Step()
        self.notes: set[str] = set()
        self._ending: str | None = None
        self._refusing: list[Delivery] = []

    # --- records ---

    def submit(self, fact: Fact, cause: int | None = None) -> None:
        """An event of the client enters the root, or the scope of an event that the client was sent."""
        self.step = Step()
        self._publish(fact, CLIENT, self.root if cause is None else self.sent[cause], 0)
        self._settle()

    def publish(self, delivery: Delivery, fact: Fact) -> None:
        """A handler publishes early."""
        self.step = Step()
        self._output(delivery, fact)
        self._settle()

    def delay(self, delivery: Delivery, fact: Fact) -> Timer:
        """A handler publishes an event with a delay."""
        self.step = Step()
        timer = Timer(delivery.handler, delivery.node, delivery.envelope, fact)
        self._hope(delivery, fact)
        self.things.append(timer)
        self._settle()
        return timer

    def commit(self, delivery: Delivery, facts: Iterable[Fact]) -> None:
        """A handler returned."""
        self.step = Step()
        for fact in facts:
            self._output(delivery, fact)
        delivery.live = False
        self._judge(delivery, yes=delivery.hopeful)
        self._settle()

    def retry(self, delivery: Delivery) -> None:
        """An attempt failed, another one follows."""
        self.step = Step()
        delivery.attempt += 1
        self._settle()

    def fail(self, delivery: Delivery, error: str) -> None:
        """A delivery failed for good."""
        self.step = Step()
        delivery.failure = Failure("failed", error, delivery.envelope.fact.key)
        if delivery.mends is not None:
            delivery.live = False
            self._judge(delivery, yes=False, error=error)
        else:
            self._ask_menders(delivery)
            if not delivery.menders:
                self._give_up(delivery)
        self._settle()

    def open(self, cursor: Map) -> Delivery:
        """The next item of a map is opened: pacing, so nothing is decided."""
        self.step = Step()
        index = cursor.unopened.pop(0)
        cursor.live = bool(cursor.unopened)
        node = Node(parent=cursor.node, map=cursor, index=index)
        delivery = Delivery(cursor.handler, node, cursor.envelope, item=index)
        self._deliver(delivery)
        return delivery

    def fire(self, timer: Timer) -> None:
        """A delayed event comes due."""
        self.step = Step()
        self._publish(timer.fact, self.spec(timer).role, timer.node, timer.envelope.hops + 1)
        timer.live = False
        self._settle()

    def expire(self, join: Join) -> None:
        """The deadline of an open join passes."""
        self.step = Step()
        join.overdue = True
        self._settle()

    def ask(self, delivery: Delivery, question: str) -> None:
        """A delivery waits for a person."""
        self.step = Step()
        delivery.asked = question
        self._settle()

    def answer(self, delivery: Delivery) -> None:
        """The person answered."""
        self.step = Step()
        delivery.asked = None
        self.step.delivered.append(delivery)
        self._settle()

    def end(self, status: str) -> None:
        """The run is ended from outside."""
        self.step = Step()
        self._end(status)
        self._settle()

    def nothing(self) -> None:
        """A record that came too late."""
        self.step = Step()
        self._settle()

    # --- one: what a record brings ---

    def _output(self, delivery: Delivery, fact: Fact) -> None:
        if self._publish(fact, self.spec(delivery).role, delivery.node, delivery.envelope.hops + 1):
            self._hope(delivery, fact)

    def _publish(self, fact: Fact, publisher: str, node: Node, hops: int) -> bool:
        envelope = Envelope(fact.serial, fact, hops)
        if self._is_too_deep(envelope):
            return False
        if self.program.ends(publisher, fact.name):
            self._will_end("done")
        for number in self.program.fed(publisher, fact.name):
            self._contribute(number, fact, node)
        opened = self.program.opened(publisher, fact.name)
        place = self._open_scope(opened, envelope, node) if opened else node
        if CLIENT in self.program.receivers(publisher, fact.name):
            self.sent[fact.serial] = place
        for number in self.program.takers(publisher, fact):
            if self.program.handlers[number].each:
                self._map(number, envelope, place)
            else:
                self._deliver(Delivery(number, place, envelope))
        return True

    def _contribute(self, number: int, fact: Fact, node: Node) -> None:
        """What is published into a node belongs to the join of the nearest opener, if that is still open."""
        join = self.nearest(number, node)
        if join is not None and join.live:
            join.arrived.append((self.spot(join, node), fact))
            return
        self.warnings += 1
        self._note("contribution after the firing" if join else "contribution without an opener")

    def _open_scope(self, opened: list[int], envelope: Envelope, node: Node) -> Node:
        scope = Node(parent=node)
        for number in opened:
            join = Join(number, node, envelope, scope)
            scope.joins.append(join)
            earlier = [one for one in self.things if isinstance(one, Join) and one.handler == number]
            self._note(*features.of_join(join, earlier))
            self.things.append(join)
        return scope

    def _map(self, number: int, envelope: Envelope, node: Node) -> None:
        size = len(envelope.fact.items)
        if not size:
            self._note("empty map")
            return
        cursor = Map(number, node, envelope, unopened=list(range(size)), size=size)
        earlier = [one for one in self.things if isinstance(one, Map) and one.handler == number]
        self._note(*features.of_map(cursor, earlier))
        self.things.append(cursor)
        self.step.maps.append(cursor)

    def _deliver(self, delivery: Delivery) -> None:
        self.things.append(delivery)
        self.step.delivered.append(delivery)

    def _is_too_deep(self, envelope: Envelope) -> bool:
        """An envelope that is too deep is dropped, and ends the run where its end is not decided yet."""
        if envelope.hops <= self.program.max_hops:
            return False
        self._note("hop limit")
        self.warnings += 1
        self._will_end("limit")
        return True

    # --- two: what a record ends ---

    def _ask_menders(self, delivery: Delivery) -> None:
        """Publish the failure where the delivery lives; it stays live until those who take it have decided."""
        delivery.wanted = frozenset(join.handler for join in self.targets(delivery)) or frozenset({RESULT})
        fact = Fact(-1, HANDLER_FAILED)
        menders = self.program.takers(SYSTEM, fact)
        envelope = Envelope(("failed", delivery.ident), fact, delivery.envelope.hops + 1)
        if menders and not self._is_too_deep(envelope):
            for number in menders:
                mender = Delivery(number, delivery.node, envelope, mends=delivery)
                delivery.menders.append(mender)
                self._deliver(mender)

    def _hope(self, mender: Delivery, fact: Fact) -> None:
        """Note whether what a mender publishes reaches what the failed delivery was to reach."""
        if mender.mends is None:
            return
        wanted = mender.mends.wanted
        reach = self.reach.of_event(self.spec(mender).role, fact.name)
        anything = self.program.result is None and wanted == {RESULT}
        mender.hopeful = mender.hopeful or anything or bool(wanted & reach)

    def _judge(self, mender: Delivery, *, yes: bool, error: str | None = None) -> None:
        """A mender is decided: the first yes mends, the last no gives up."""
        mender.verdict = yes
        failed = mender.mends
        if failed is None or not failed.live:
            self.warnings += error is not None
            return
        assert failed.failure is not None
        if error is not None:
            failed.failure = replace(failed.failure, error=f"{failed.failure.error} {error}")
        if yes:
            failed.live = False
            self.mended.append(failed.failure.error)
            self.warnings += 1
            self._note("mended")
        elif all(one.verdict is False for one in failed.menders):
            self._note("not mended")
            self._give_up(failed)

    def _give_up(self, delivery: Delivery) -> None:
        assert delivery.failure is not None
        delivery.live = False
        self.dead.append(delivery.failure.error)
        self._blame(self.reach.handlers[delivery.handler], delivery.node, delivery.failure)

    def _blame(self, columns: frozenset[Column], node: Node, failure: Failure) -> None:
        """The nearest open joins take a failure; without any, the run does, or nobody."""
        targets = self.targets_of(columns, node)
        for join in targets:
            join.failures.append((self.spot(join, node), failure))
        if targets:
            self._note("failure taken by a join")
        elif RESULT not in columns and self.program.result is not None:
            self.warnings += 1
            self._note("failure of a bystander")
        elif self._will_end("stalled" if failure.kind == "missing" else "failed"):
            self.cause = failure.error
        else:
            self.warnings += 1
            self._note("failure after the end")

    # --- three: what is to be decided ---

    def _settle(self) -> None:
        self._carry_out()
        while (join := self.next_due()) is not None:
            self._decide(join)
            self._carry_out()
        if not self.living():
            if self.outcome is None and self.program.result is None:
                self.outcome = "done"
            elif self.outcome is None and not self.reach.client_leads_to_result():
                self.outcome = "stalled"
            elif self.outcome is None:
                self._note("waiting")
            self.finished = self.outcome is not None

    def _carry_out(self) -> None:
        """Menders that were cancelled are a no each; then the run ends, if something ended it."""
        while self._refusing or self._ending is not None:
            if self._refusing:
                self._judge(self._refusing.pop(0), yes=False)
                continue
            status, self._ending = self._ending, None
            if status == "done":
                self._end_with_result()
            elif status is not None:
                self._end(status)

    def _will_end(self, status: str) -> bool:
        """What ends the run first counts; False where that was something else."""
        if self.outcome is not None or self._ending is not None:
            return False
        self._ending = status
        return True

    def _end_with_result(self) -> None:
        self.outcome = "done"
        doomed = [thing for thing in self.living() if RESULT in self.reach_of(thing)]
        closing = {thing for thing in doomed if isinstance(thing, Join)}
        if closing:
            self._note("result closes a join")
        self._cancel(doomed, closing)
        if self.living():
            self._note("rest after the result")

    def _decide(self, join: Join) -> None:
        """Fire the join or break it."""
        spec = self.spec(join)
        join.live = False
        if self.is_broken(join):
            self._note("broken by a failure")
            self._break(join, join.failures[0][1])
            return
        if self.is_quiet(join):
            if any(join.scope in thing.node.up() for thing in self.living()):
                self._note("quiet beside a bystander")
        else:
            self._note("deadline" if join.overdue else "quorum")
            self._cancel([], {join})
        contents = self.contents(join)
        lacks = bool(contents.missing) if spec.quorum is None else len(join.arrived) < spec.quorum
        if lacks and spec.partial == "fail":
            self._note("broken by silence" if spec.quorum is None else "quorum missed")
            silence = Failure("missing", "missing", join.envelope.fact.key)
            self._break(join, join.failures[0][1] if join.failures else silence)
            return
        self._note(*features.of_contents(contents))
        self._deliver(Delivery(join.handler, join.node, join.envelope, joined=contents))

    def _break(self, join: Join, failure: Failure) -> None:
        self._cancel([], {join})
        self._blame(self.reach.handlers[join.handler], join.node, failure)

    def _cancel(self, doomed: list[Thing], closing: set[Join]) -> None:
        """Cancel the doomed, then what counts for closing joins alone, until nothing more does."""
        cancelled: list[Thing] = []
        while True:
            for thing in doomed:
                thing.live = False
                cancelled.append(thing)
                if isinstance(thing, Join):
                    closing.add(thing)
            doomed = [thing for thing in self.living() if self.counts_alone(thing, closing)]
            if not doomed:
                break
        for thing in cancelled:
            for join in self.targets(thing, closing):
                self._cut(join, thing)
        self.step.cancelled += cancelled
        self._refusing += [one for one in cancelled if isinstance(one, Delivery) and one.mends is not None]

    def _cut(self, join: Join, thing: Thing) -> None:
        """Remember which items of the join lost something to a decision."""
        spot = self.spot(join, thing.node)
        if spot is None and isinstance(thing, Map):
            join.cut += [(thing, index) for index in thing.unopened]
        else:
            join.cut.append(spot)

    def _end(self, status: str) -> None:
        self.outcome = status
        for thing in self.living():
            thing.live = False
            self.step.cancelled.append(thing)

    # --- notes ---

    def _note(self, *noted: str) -> None:
        self.notes.update(noted)
