"""Everything that ever happened in a run, and the questions about it, each answered by looking at all of it."""

from __future__ import annotations

from collections.abc import Iterable

from ledger_model.program import RESULT, Handler, Program
from ledger_model.reach import Reach
from ledger_model.tree import Column, Contents, Delivery, Join, Map, Node, Spot, Thing, Timer


class Survey:
    """The whole tree of one run. Things are kept in the order in which they came to be."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.reach = Reach(program)
        self.root = Node()
        self.things: list[Thing] = []

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

    def reach_of(self, thing: Thing) -> frozenset[Column]:
        """The columns that a thing reaches: a timer those of its event, others those of their handler."""
        if isinstance(thing, Timer):
            return self.reach.of_event(self.spec(thing).role, thing.fact.name)
        return self.reach.handlers[thing.handler]

    def spec(self, thing: Thing) -> Handler:
        """The handler of a thing, as the program has it."""
        return self.program.handlers[thing.handler]

    def nearest(self, column: Column, node: Node) -> Join | None:
        """The instance of a join, open or not, at the nearest scope that has one."""
        for place in node.up():
            for join in place.joins:
                if join.handler == column:
                    return join
        return None

    def targets(self, thing: Thing, closing: Iterable[Join] = ()) -> list[Join]:
        """The joins that a thing counts for."""
        return self.targets_of(self.reach_of(thing), thing.node, closing)

    def targets_of(self, columns: frozenset[Column], node: Node, closing: Iterable[Join] = ()) -> list[Join]:
        """The joins that something at `node` counts for: nearest instances, open or just closed."""
        nearest = [self.nearest(column, node) for column in sorted(columns - {RESULT}, key=str)]
        return [join for join in nearest if join is not None and (join.live or join in closing)]

    def spot(self, join: Join, node: Node) -> Spot:
        """The item of the join that `node` lies in: the outermost one whose map reaches the join."""
        spot: Spot = None
        for place in node.up():
            if place is join.scope:
                break
            if place.map is not None and join.handler in self.reach.handlers[place.map.handler]:
                spot = (place.map, place.index)
        return spot

    def spots(self, join: Join) -> list[tuple[Map, int]]:
        """All items of the join, in order."""
        return [
            (thing, index)
            for thing in self.things
            if isinstance(thing, Map)
            and join.handler in self.reach.handlers[thing.handler]
            and self.nearest(join.handler, thing.node) is join
            and self.spot(join, thing.node) is None
            for index in range(thing.size)
        ]

    def is_quiet(self, join: Join) -> bool:
        """Nothing live below its opener reaches it."""
        return not any(
            join.handler in self.reach_of(thing) and any(place is join.scope for place in thing.node.up())
            for thing in self.living()
        )

    def is_broken(self, join: Join) -> bool:
        """A failure that it does not stand was noted."""
        spec = self.spec(join)
        return spec.partial == "fail" and spec.quorum is None and bool(join.failures)

    def is_full(self, join: Join) -> bool:
        """Its quorum is reached."""
        quorum = self.spec(join).quorum
        return quorum is not None and len(join.arrived) >= quorum

    def next_due(self) -> Join | None:
        """The join to decide next: of the latest opener, and of its joins the first."""
        joins = self.joins()
        first = [one for one in joins if self.is_broken(one) or one.overdue or self.is_quiet(one)]
        due = first or [one for one in joins if self.is_full(one)]
        if not due:
            return None
        latest = due[-1].envelope
        return next(one for one in due if one.envelope is latest)

    def counts_alone(self, thing: Thing, closing: set[Join]) -> bool:
        """Whether a thing counts for closing joins, and for nothing else."""
        targets = self.targets(thing, closing)
        return (
            RESULT not in self.reach_of(thing)
            and any(join in closing for join in targets)
            and all(join in closing for join in targets)
        )

    def contents(self, join: Join) -> Contents:
        """What a join hands to its handler if it fires now."""
        spec = self.spec(join)
        contents = Contents(join.envelope.fact.serial)
        for spot in self.spots(join):
            text = spot[0].envelope.fact.items[spot[1]]
            brought = [fact for where, fact in join.arrived if where == spot]
            failures = [failure for where, failure in join.failures if where == spot]
            serials = tuple(fact.serial for fact in brought)
            if failures:
                key = brought[0].key if brought else failures[0].key
                contents.failed.append((text, key if spec.keyed else None, failures[0].error, serials))
            elif brought:
                contents.done.extend(serials)
            elif spot in join.cut:
                contents.cancelled.append((text, None))
            else:
                contents.missing.append((text, None))
        for where, failure in join.failures:
            if where is None:
                contents.failed.append((None, failure.key if spec.keyed else None, failure.error, ()))
        contents.done.extend(fact.serial for where, fact in join.arrived if where is None)
        if spec.expects:
            named = {fact.key for _, fact in join.arrived} | {key for _, key, _, _ in contents.failed}
            contents.missing.extend((None, key) for key in join.envelope.fact.promises if key not in named)
        return contents
