"""The naive model of a run: it keeps the whole tree of what ever happened and, after each step, looks at all of it.

Written from the rules alone: no counters, no indexes, nothing of the framework. Slow on purpose, and for that reason
easy to believe.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Literal, TypeAlias

from ledger_model.program import CLIENT, HANDLER_FAILED, RESULT, SYSTEM, Fact, Handler, Program

Origin: TypeAlias = "int | tuple[str, Ident]"
"""An envelope: the serial of its fact, or that of a failure, named by the delivery that failed."""

Ident: TypeAlias = "tuple[Origin, int, int]"
"""A delivery: (envelope, handler number, item or -1)."""

Column: TypeAlias = "int | str"

Named: TypeAlias = "tuple[str | None, str | None]"
"""An item's text and key."""


@dataclass(eq=False)
class Node:
    """A place in the run's tree: the root, the scope of an opener, or one item of a map."""

    parent: Node | None = None
    joins: list[Join] = field(default_factory=list)
    map: Map | None = None
    index: int = -1

    def up(self) -> Iterator[Node]:
        """This node and all above it."""
        at: Node | None = self
        while at is not None:
            yield at
            at = at.parent


@dataclass(eq=False)
class Envelope:
    """An event on the bus, in order of publication."""

    origin: Origin
    fact: Fact
    hops: int


@dataclass(eq=False, repr=False)
class Thing:
    """Something that counts while it lives."""

    handler: int
    node: Node
    envelope: Envelope
    live: bool = True

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {self.envelope.origin} for {self.handler}>"


@dataclass(eq=False, repr=False)
class Delivery(Thing):
    """An envelope, or an item of it, on its way to a handler; or a join that has fired."""

    item: int = -1
    attempt: int = 1
    joined: Contents | None = None
    asked: str | None = None
    failure: Failure | None = None
    wanted: frozenset[Column] = frozenset()
    menders: list[Delivery] = field(default_factory=list)
    mends: Delivery | None = None
    hopeful: bool = False
    verdict: bool | None = None

    @property
    def ident(self) -> Ident:
        """What tells it apart in any bookkeeping."""
        return (self.envelope.origin, self.handler, self.item)


@dataclass(eq=False, repr=False)
class Map(Thing):
    """A map with items that are not open yet."""

    unopened: list[int] = field(default_factory=list)
    size: int = 0

    @property
    def ident(self) -> tuple[Origin, int]:
        """What tells it apart in any bookkeeping."""
        return (self.envelope.origin, self.handler)


@dataclass(eq=False, repr=False)
class Timer(Thing):
    """An event that will be published later; `handler` is its publisher."""

    fact: Fact | None = None


@dataclass(eq=False, repr=False)
class Join(Thing):
    """A join that waits: its own scope, and all that arrived for it."""

    scope: Node = field(default_factory=Node)
    arrived: list[tuple[Spot, Fact]] = field(default_factory=list)
    failures: list[tuple[Spot, Failure]] = field(default_factory=list)
    cut: list[Spot] = field(default_factory=list)
    overdue: bool = False

    @property
    def ident(self) -> Ident:
        """The identity of the delivery that it will become."""
        return (self.envelope.origin, self.handler, -1)


Spot: TypeAlias = "tuple[Map, int] | None"
"""An item of a join, or None outside any item."""


@dataclass(frozen=True)
class Failure:
    """Why something failed: the error's text, and whether it is a failure or just something missing."""

    kind: Literal["failed", "missing"]
    error: str
    key: str | None = None


@dataclass(frozen=True)
class Contents:
    """What a firing hands to its handler: serials of facts; items by their text and key."""

    opener: int
    done: tuple[int, ...]
    failed: tuple[tuple[str | None, str | None, str, tuple[int, ...]], ...]
    missing: tuple[Named, ...]
    cancelled: tuple[Named, ...]


@dataclass
class Step:
    """What one record brought about."""

    delivered: list[Delivery] = field(default_factory=list)
    maps: list[Map] = field(default_factory=list)
    timers: list[Timer] = field(default_factory=list)
    cancelled: list[Thing] = field(default_factory=list)
    notes: set[str] = field(default_factory=set)


class NaiveRun:
    """One run of a program. Every public method is one record; `step` tells what the last one did."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.root = Node()
        self.things: list[Thing] = []
        self.outcome: str | None = None
        self.finished = False
        self.step = Step()
        self.notes: set[str] = set()
        self.sent: dict[int, Node] = {}
        self.warnings = 0
        self.dead: list[str] = []
        self.mended: list[str] = []
        self.cause: str | None = None
        self.reaches = [self._walk([number]) for number in range(len(program.handlers))]
        self._ending: str | None = None
        self._refusing: list[Delivery] = []

    # --- records -----------------------------------------------------------------------------------------------

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
        timer = Timer(delivery.handler, delivery.node, delivery.envelope, fact=fact)
        self._hope(delivery, fact)
        self.things.append(timer)
        self.step.timers.append(timer)
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
            fact = Fact(-1, HANDLER_FAILED)
            menders = self.program.takers(SYSTEM, fact)
            delivery.wanted = frozenset(join.handler for join in self._targets(delivery)) or frozenset({RESULT})
            if menders:
                envelope = Envelope(("failed", delivery.ident), fact, delivery.envelope.hops + 1)
                if self._check_hops(envelope):
                    for number in menders:
                        mender = Delivery(number, delivery.node, envelope, mends=delivery)
                        delivery.menders.append(mender)
                        self._deliver(mender)
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
        assert timer.fact is not None
        publisher = self.program.handlers[timer.handler].role
        self._publish(timer.fact, publisher, timer.node, timer.envelope.hops + 1)
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

    # --- what may happen next ------------------------------------------------------------------------------------

    def living(self) -> list[Thing]:
        """All that counts now."""
        return [thing for thing in self.things if thing.live]

    def deliveries(self) -> list[Delivery]:
        """All live deliveries, running or not."""
        return [thing for thing in self.living() if isinstance(thing, Delivery)]

    def runnable(self) -> list[Delivery]:
        """The deliveries whose handler runs now."""
        return [one for one in self.deliveries() if one.asked is None and one.failure is None]

    def joins(self) -> list[Join]:
        """All open joins."""
        return [thing for thing in self.living() if isinstance(thing, Join)]

    # --- reach -----------------------------------------------------------------------------------------------------

    def _walk(self, handlers: list[int]) -> frozenset[Column]:
        """The columns that the handlers reach, passing through every handler on the way but no contribution."""
        columns: set[Column] = set()
        seen: set[int] = set()
        todo = list(handlers)
        while todo:
            number = todo.pop()
            if number in seen:
                continue
            seen.add(number)
            handler = self.program.handlers[number]
            for name in self.program.parents:
                if self._may_publish(handler, name):
                    direct, through = self._leads(handler.role, name)
                    columns |= direct
                    todo += through
        return frozenset(columns)

    def _leads(self, publisher: str, name: str) -> tuple[set[Column], list[int]]:
        columns: set[Column] = set(self.program.fed(publisher, name))
        if self.program.ends(publisher, name):
            columns.add(RESULT)
        groups = self.program.candidates(publisher, name)
        return columns, [number for group in groups for number in group] + self.program.opened(publisher, name)

    def _reach_of_event(self, publisher: str, name: str) -> frozenset[Column]:
        direct, through = self._leads(publisher, name)
        return frozenset(direct) | self._walk(through)

    def _reach(self, thing: Thing) -> frozenset[Column]:
        if isinstance(thing, Timer):
            assert thing.fact is not None
            return self._reach_of_event(self.program.handlers[thing.handler].role, thing.fact.name)
        return self.reaches[thing.handler]

    # --- the tree ----------------------------------------------------------------------------------------------------

    def _nearest(self, column: Column, node: Node) -> Join | None:
        """The instance of a join, open or not, at the nearest scope that has one."""
        for place in node.up():
            for join in place.joins:
                if join.handler == column:
                    return join
        return None

    def _targets(self, thing: Thing, closing: set[Join] = frozenset()) -> list[Join]:  # type: ignore[assignment]
        return self._targets_of(self._reach(thing), thing.node, closing)

    def _targets_of(self, columns: frozenset[Column], node: Node, closing: Iterable[Join] = ()) -> list[Join]:
        """The joins that something at `node` counts for: nearest instances, open or just closed."""
        nearest = [self._nearest(column, node) for column in sorted(columns - {RESULT}, key=str)]
        return [join for join in nearest if join is not None and (join.live or join in closing)]

    def _spot(self, join: Join, node: Node) -> Spot:
        """The item of the join that `node` lies in: the outermost one whose map reaches the join."""
        spot: Spot = None
        for place in node.up():
            if place is join.scope:
                break
            if place.map is not None and join.handler in self.reaches[place.map.handler]:
                spot = (place.map, place.index)
        return spot

    def _spots(self, join: Join) -> list[tuple[Map, int]]:
        """All items of the join, in order."""
        return [
            (thing, index)
            for thing in self.things
            if isinstance(thing, Map)
            and join.handler in self.reaches[thing.handler]
            and self._nearest(join.handler, thing.node) is join
            and self._spot(join, thing.node) is None
            for index in range(thing.size)
        ]

    # --- one: what a record brings --------------------------------------------------------------------------------

    def _output(self, delivery: Delivery, fact: Fact) -> None:
        publisher = self.program.handlers[delivery.handler].role
        if self._publish(fact, publisher, delivery.node, delivery.envelope.hops + 1):
            self._hope(delivery, fact)

    def _publish(self, fact: Fact, publisher: str, node: Node, hops: int) -> bool:
        program = self.program
        envelope = Envelope(fact.serial, fact, hops)
        if not self._check_hops(envelope):
            return False
        if program.ends(publisher, fact.name):
            self._will_end("done")
        for number in program.fed(publisher, fact.name):
            join = self._nearest(number, node)
            if join is None or not join.live:
                self._note("contribution after the firing" if join else "contribution without an opener")
                self.warnings += 1
            else:
                join.arrived.append((self._spot(join, node), fact))
        opened = program.opened(publisher, fact.name)
        place = node
        if opened:
            place = Node(parent=node)
            for number in opened:
                join = Join(number, node, envelope, scope=place)
                place.joins.append(join)
                self.things.append(join)
                self._note_join(join)
        if CLIENT in program.receivers(publisher, fact.name):
            self.sent[fact.serial] = place
        for number in program.takers(publisher, fact):
            if not program.handlers[number].each:
                self._deliver(Delivery(number, place, envelope))
            elif fact.items:
                size = len(fact.items)
                self._note_map(place)
                cursor = Map(number, place, envelope, unopened=list(range(size)), size=size)
                self.things.append(cursor)
                self.step.maps.append(cursor)
            else:
                self._note("empty map")
        return True

    def _deliver(self, delivery: Delivery) -> None:
        self.things.append(delivery)
        self.step.delivered.append(delivery)

    def _check_hops(self, envelope: Envelope) -> bool:
        """Whether the envelope may be; one too deep ends the run, or is dropped where the end is decided."""
        if envelope.hops <= self.program.max_hops:
            return True
        self._note("hop limit")
        self.warnings += 1
        self._will_end("limit")
        return False

    # --- two: what a record ends -------------------------------------------------------------------------------------

    def _hope(self, mender: Delivery, fact: Fact) -> None:
        """Note whether what a mender publishes reaches what the failed delivery was to reach."""
        if mender.mends is None:
            return
        wanted = mender.mends.wanted
        reach = self._reach_of_event(self.program.handlers[mender.handler].role, fact.name)
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
        self._blame(self.reaches[delivery.handler], delivery.node, delivery.failure)

    def _blame(self, columns: frozenset[Column], node: Node, failure: Failure) -> None:
        """The nearest open joins take a failure; without any, the run does, or nobody."""
        targets = self._targets_of(columns, node)
        for join in targets:
            join.failures.append((self._spot(join, node), failure))
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

    # --- three: what is to be decided ------------------------------------------------------------------------------

    def _settle(self) -> None:
        self._carry_out()
        while (join := self._next_due()) is not None:
            self._decide(join)
            self._carry_out()
        if not self.living():
            if self.outcome is None and self.program.result is None:
                self.outcome = "done"
            elif self.outcome is None and not self._waits():
                self.outcome = "stalled"
            self.finished = self.outcome is not None
        self.notes |= self.step.notes

    def _waits(self) -> bool:
        """Whether something that the client may still send leads to the result, through contributions as well."""
        program = self.program
        todo = [(CLIENT, name) for name in program.sends]
        seen = set()
        while todo:
            publisher, name = todo.pop()
            if program.ends(publisher, name):
                self._note("waiting")
                return True
            if (publisher, name) in seen:
                continue
            seen.add((publisher, name))
            _, through = self._leads(publisher, name)
            for handler in (program.handlers[number] for number in (*through, *program.fed(publisher, name))):
                todo += [(handler.role, one) for one in program.parents if self._may_publish(handler, one)]
        return False

    def _may_publish(self, handler: Handler, name: str) -> bool:
        return any(self.program.is_a(name, declared) for declared in handler.publishes)

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
        doomed = [thing for thing in self.living() if RESULT in self._reach(thing)]
        closing = {thing for thing in doomed if isinstance(thing, Join)}
        if closing:
            self._note("result closes a join")
        self._cancel(doomed, closing)
        if self.living():
            self._note("rest after the result")

    def _quiet(self, join: Join) -> bool:
        return not any(
            join.handler in self._reach(thing) and any(place is join.scope for place in thing.node.up())
            for thing in self.living()
        )

    def _broken(self, join: Join) -> bool:
        spec = self._spec(join)
        return spec.partial == "fail" and spec.quorum is None and bool(join.failures)

    def _full(self, join: Join) -> bool:
        quorum = self._spec(join).quorum
        return quorum is not None and len(join.arrived) >= quorum

    def _spec(self, thing: Thing) -> Handler:
        return self.program.handlers[thing.handler]

    def _next_due(self) -> Join | None:
        """Joins are kept in order of their openers, those of one opener by handler: the latest opener comes first."""
        joins = self.joins()
        first = [one for one in joins if self._broken(one) or one.overdue or self._quiet(one)]
        due = first or [one for one in joins if self._full(one)]
        if not due:
            return None
        latest = due[-1].envelope
        return next(one for one in due if one.envelope is latest)

    def _decide(self, join: Join) -> None:
        spec = self._spec(join)
        join.live = False
        if self._broken(join):
            self._note("broken by a failure")
            self._break(join, join.failures[0][1])
            return
        was_quiet = self._quiet(join)
        if not was_quiet:
            self._note("deadline" if join.overdue else "quorum")
            self._cancel([], {join})
        contents = self._contents(join)
        lacking = bool(contents.missing)
        if spec.quorum is not None:
            lacking = len(join.arrived) < spec.quorum
        if lacking and spec.partial == "fail":
            self._note("quorum missed" if spec.quorum is not None else "broken by silence")
            failure = join.failures[0][1] if join.failures else Failure("missing", "missing", join.envelope.fact.key)
            self._break(join, failure)
            return
        self._note_contents(join, contents)
        self._deliver(Delivery(join.handler, join.node, join.envelope, joined=contents))

    def _break(self, join: Join, failure: Failure) -> None:
        self._cancel([], {join})
        self._blame(self.reaches[join.handler], join.node, failure)

    def _cancel(self, doomed: list[Thing], closing: set[Join]) -> None:
        """Cancel the doomed, then what counts for closing joins alone, until nothing more does."""
        cancelled: list[Thing] = []
        while True:
            for thing in doomed:
                thing.live = False
                cancelled.append(thing)
                if isinstance(thing, Join):
                    closing.add(thing)
            doomed = [thing for thing in self.living() if self._counts_alone(thing, closing)]
            if not doomed:
                break
        for thing in cancelled:
            for join in self._targets(thing, closing):
                self._cut(join, thing)
        self.step.cancelled += cancelled
        self._refusing += [one for one in cancelled if isinstance(one, Delivery) and one.mends is not None]

    def _counts_alone(self, thing: Thing, closing: set[Join]) -> bool:
        targets = self._targets(thing, closing)
        return (
            RESULT not in self._reach(thing)
            and any(join in closing for join in targets)
            and all(join in closing for join in targets)
        )

    def _cut(self, join: Join, thing: Thing) -> None:
        """Remember which items of the join lost something to a decision."""
        spot = self._spot(join, thing.node)
        if spot is None and isinstance(thing, Map):
            join.cut += [(thing, index) for index in thing.unopened]
        else:
            join.cut.append(spot)

    def _end(self, status: str) -> None:
        self.outcome = status
        for thing in self.living():
            thing.live = False
            self.step.cancelled.append(thing)

    # --- contents ----------------------------------------------------------------------------------------------------

    def _contents(self, join: Join) -> Contents:
        spec = self._spec(join)
        done: list[int] = []
        failed: list[tuple[str | None, str | None, str, tuple[int, ...]]] = []
        missing: list[Named] = []
        cancelled: list[Named] = []
        for spot in self._spots(join):
            text = spot[0].envelope.fact.items[spot[1]]
            brought = [fact for where, fact in join.arrived if where == spot]
            failures = [failure for where, failure in join.failures if where == spot]
            serials = tuple(fact.serial for fact in brought)
            if failures:
                key = brought[0].key if brought else failures[0].key
                failed.append((text, key if spec.keyed else None, failures[0].error, serials))
            elif brought:
                done += serials
            elif spot in join.cut:
                cancelled.append((text, None))
            else:
                missing.append((text, None))
        for where, failure in join.failures:
            if where is None:
                failed.append((None, failure.key if spec.keyed else None, failure.error, ()))
        done += [fact.serial for where, fact in join.arrived if where is None]
        if spec.expects:
            named = {fact.key for _, fact in join.arrived} | {key for _, key, _, _ in failed}
            missing += [(None, key) for key in join.envelope.fact.promises if key not in named]
        return Contents(join.envelope.fact.serial, tuple(done), tuple(failed), tuple(missing), tuple(cancelled))

    # --- notes ---------------------------------------------------------------------------------------------------------

    def _note(self, feature: str) -> None:
        self.step.notes.add(feature)

    def _note_contents(self, join: Join, contents: Contents) -> None:
        for feature in ("done", "failed", "missing", "cancelled"):
            if getattr(contents, feature):
                self._note(f"fired with {feature}")
        if not any((contents.done, contents.failed, contents.missing, contents.cancelled)):
            self._note("fired with nothing")

    def _note_join(self, join: Join) -> None:
        """Note how deep a join lies in others."""
        above = [other for place in join.node.up() for other in place.joins]
        if above:
            self._note("join in a join")
        if len({id(other.scope) for other in above}) > 2:
            self._note("join four deep")
        if any(other.handler == join.handler for other in above):
            self._note("join reopened in its own scope")
        if len(join.scope.joins) > 1:
            self._note("two joins of one opener")

    def _note_map(self, node: Node) -> None:
        depth = sum(1 for place in node.up() if place.map is not None)
        self._note("map in a map in a map" if depth > 1 else "map in a map" if depth else "map")
