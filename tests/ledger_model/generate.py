"""Random programs: wirings that hang together, and the temper in which their handlers behave."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from random import Random

from ledger_model.program import CLIENT, HANDLER_FAILED, SYSTEM, Handler, Program, Row

CLASSES = 14
"""How many event classes there are to choose from: E0 to E13, each with a child such as E3x, and Result."""

START = "E0"
RESULT_NAME = "Result"


@dataclass(frozen=True, slots=True)
class Temper:
    """How the handlers of one run behave: chances for each step, and sizes."""

    budget: int
    most_items: int
    fail: float
    retry: float
    silent: float
    early: float
    delay: float
    ask: float
    expire: float
    stale: float
    send: float
    cut: float
    child: float


def random_temper(random: Random) -> Temper:
    """Tempers differ strongly from each other, so that runs of every kind come about."""
    return Temper(
        budget=random.choice((15, 30, 50, 80)),
        most_items=random.choice((1, 2, 3, 5)),
        fail=random.choice((0.0, 0.03, 0.12, 0.3)),
        retry=random.choice((0.0, 0.1)),
        silent=random.choice((0.0, 0.1, 0.4)),
        early=random.choice((0.1, 0.3, 0.6)),
        delay=random.choice((0.0, 0.0, 0.2)),
        ask=random.choice((0.0, 0.1)),
        expire=random.choice((0.01, 0.1)),
        stale=random.choice((0.0, 0.05)),
        send=random.choice((0.0, 0.0, 0.02)),
        cut=random.choice((0.0, 0.0, 0.0, 0.01)),
        child=random.choice((0.0, 0.2)),
    )


def random_program(random: Random) -> Program:
    """Return a program: a shaped one, whose blocks nest, or a loose one, thrown together."""
    builder = _Builder(random)
    ending = RESULT_NAME if random.random() < 0.8 else builder.new_class()
    if random.random() < 0.75:
        builder.block(START, ending, random.choice((1, 2, 2, 3)))
    else:
        builder.loose(ending)
    builder.sprinkle()
    return builder.program(RESULT_NAME if ending == RESULT_NAME else None)


class _Builder:
    def __init__(self, random: Random) -> None:
        self.random = random
        self.classes = [START]
        self.handlers: list[Handler] = []
        self.roles = [f"role{number}" for number in range(random.randint(2, 5))]

    def chance(self, probability: float) -> bool:
        return self.random.random() < probability

    def new_class(self) -> str:
        """A class of its own, or an old one where there are no more."""
        if len(self.classes) < CLASSES:
            self.classes.append(f"E{len(self.classes)}")
            return self.classes[-1]
        return self.random.choice(self.classes[1:])

    def add(self, takes: str, *returns: str, **options: object) -> None:
        """Add a handler to a role in which no other one takes the same."""
        free = [
            role
            for role in self.roles
            if "per" in options
            or all(one.role != role or one.per or one.picky or one.takes != takes for one in self.handlers)
        ]
        role = self.random.choice(free) if free else f"role{len(self.roles)}"
        if not free:
            self.roles.append(role)
        name = f"h{len(self.handlers)}"
        self.handlers.append(Handler(role, name, takes, tuple(returns), **options))  # type: ignore[arg-type]

    def policy(self) -> dict[str, object]:
        random = self.random
        keyed = self.chance(0.3)
        return {
            "partial": random.choice(("fail", "proceed")),
            "quorum": random.randint(1, 3) if self.chance(0.3) else None,
            "deadline": 60.0 if self.chance(0.25) else None,
            "keyed": keyed,
            "expects": keyed and self.chance(0.4),
        }

    # --- shaped ---

    def block(self, takes: str, gives: str, depth: int) -> None:
        """Add handlers that lead from one class to another."""
        if depth == 0:
            self.add(takes, gives)
            return
        shapes = (self.fan, self.fan, self.fan, self.chain, self.gather, self.release, self.recursion)
        self.random.choice(shapes)(takes, gives, depth)

    def fan(self, takes: str, gives: str, depth: int) -> None:
        """A map and its join, with a block in between."""
        opener = takes
        if self.chance(0.6):
            opener = self.new_class()
            self.add(takes, opener)
        brought = self.new_class()
        inner = self.new_class() if self.chance(0.6) else brought
        self.add(opener, inner, each=True, counted=self.chance(0.2))
        if inner != brought:
            self.block(inner, brought, depth - 1)
        self.add(brought, gives, per=opener, **self.policy())

    def chain(self, takes: str, gives: str, depth: int) -> None:
        middle = self.new_class()
        self.block(takes, middle, depth - 1)
        self.block(middle, gives, depth - 1)

    def gather(self, takes: str, gives: str, depth: int) -> None:
        """Several handlers of one opener, and a join over what they bring."""
        brought = self.new_class()
        for _ in range(self.random.randint(1, 3)):
            self.add(takes, brought)
        if self.chance(0.5):
            self.block(takes, brought, depth - 1)
        self.add(brought, gives, per=takes, **self.policy())

    def release(self, takes: str, gives: str, depth: int) -> None:
        """Steps released one by one, as the earlier ones are done."""
        ready, brought = self.new_class(), self.new_class()
        self.add(takes, ready, early=(ready,))
        self.block(ready, brought, depth - 1)
        self.add(brought, ready)
        self.add(brought, gives, per=takes, **self.policy())

    def recursion(self, takes: str, gives: str, depth: int) -> None:
        """Divide and conquer: an item may be divided again, in a scope within the scope."""
        brought = self.new_class()
        self.add(takes, brought, takes, each=self.chance(0.7))
        self.add(brought, *dict.fromkeys((gives, brought)), per=takes, **self.policy())

    # --- loose ---

    def loose(self, ending: str) -> None:
        """Handlers thrown together, mostly publishing later classes than they take."""
        random = self.random
        for _ in range(random.randint(3, 7)):
            self.new_class()
        self.add(START, *self.later(0), each=self.chance(0.4))
        for _ in range(random.randint(2, 6)):
            place = random.randrange(len(self.classes) - 1)
            self.add(self.classes[place], *self.later(place), each=self.chance(0.4))
        for _ in range(random.randint(1, 3)):
            place = random.randrange(len(self.classes) - 1)
            brought = random.randrange(place + 1, len(self.classes))
            self.add(self.classes[brought], *self.later(brought, ending), per=self.classes[place], **self.policy())
        self.add(self.classes[-1], ending)

    def later(self, place: int, ending: str | None = None) -> tuple[str, ...]:
        choice = self.classes[place + 1 : place + 4] or [ending or self.classes[-1]]
        chosen = self.random.sample(choice, self.random.randint(1, min(2, len(choice))))
        if ending is not None and self.chance(0.5):
            chosen.append(ending)
        return tuple(dict.fromkeys(chosen))

    # --- what is strewn over either ---

    def sprinkle(self) -> None:
        """Each of these for some of the programs."""
        for probability, add in (
            (0.4, self.bystander),
            (0.25, self.second_join),
            (0.2, self.child),
            (0.25, self.loop),
            (0.4, self.menders),
            (0.1, self.shortcut),
            (0.15, self.picky),
            (0.4, self.early),
            (0.4, self.early),
        ):
            if self.chance(probability):
                add()

    def bystander(self) -> None:
        self.add(self.random.choice(self.classes), *([self.new_class()] if self.chance(0.4) else []))

    def second_join(self) -> None:
        """A join beside another one, with a policy of its own."""
        joins = [one for one in self.handlers if one.per is not None]
        if joins:
            other = self.random.choice(joins)
            self.add(other.takes, *(other.returns if self.chance(0.5) else ()), per=other.per, **self.policy())

    def child(self) -> None:
        """A handler of the child of a class."""
        self.add(self.random.choice(self.classes) + "x", self.random.choice(self.classes[1:] or self.classes))

    def menders(self) -> None:
        for _ in range(self.random.choice((1, 1, 2))):
            count = min(len(self.classes), self.random.randint(0, 2))
            self.add(HANDLER_FAILED, *self.random.sample(self.classes, count))

    def shortcut(self) -> None:
        """Somebody in the middle may publish the result."""
        self.change(lambda one: replace(one, returns=(*one.returns, RESULT_NAME)))

    def early(self) -> None:
        self.change(lambda one: replace(one, early=tuple(dict.fromkeys(one.early + one.returns[:1]))))

    def loop(self) -> None:
        back = self.random.choice(self.classes)
        self.change(lambda one: replace(one, returns=tuple(dict.fromkeys((*one.returns, back)))))

    def picky(self) -> None:
        """A handler beside another one of its role, which takes only some of the events."""
        other = self.random.choice(self.handlers)
        if other.per is None and other.takes != HANDLER_FAILED:
            name = f"h{len(self.handlers)}"
            returns = other.returns if self.chance(0.5) else (self.random.choice(self.classes),)
            each = self.chance(0.3)
            self.handlers.append(Handler(other.role, name, other.takes, returns, each=each, picky=True))

    def change(self, change: Callable[[Handler], Handler]) -> None:
        place = self.random.randrange(len(self.handlers))
        self.handlers[place] = change(self.handlers[place])

    # --- the table ---

    def program(self, result: str | None) -> Program:
        parents: dict[str, str | None] = dict.fromkeys((*self.classes, RESULT_NAME))
        parents |= {name + "x": name for name in self.classes}
        handlers = tuple(sorted(self.handlers, key=lambda one: self.roles.index(one.role)))
        bare = Program(parents, handlers, (), result, START)
        published: dict[tuple[str, str], None] = {}
        for handler in handlers:
            for name in handler.publishes:
                published[handler.role, name] = None
                if name + "x" in parents:
                    published[handler.role, name + "x"] = None
        rows = [Row((CLIENT,), START, self.takers(bare, START, 1.0))]
        sends = tuple(self.random.sample(self.classes[1:], 1)) if len(self.classes) > 1 and self.chance(0.15) else ()
        rows += [Row((CLIENT,), name, self.takers(bare, name, 1.0)) for name in sends]
        for role, name in published:
            takers = self.takers(bare, name, 0.95)
            if name == result or not takers or self.chance(0.1):
                takers = (*takers, CLIENT)
            rows.append(Row((role,), name, takers))
        menders = self.takers(bare, HANDLER_FAILED, 1.0)
        if menders:
            rows.append(Row((SYSTEM,), HANDLER_FAILED, menders))
        max_hops = self.random.randint(3, 7) if self.chance(0.1) else 1000
        return Program(parents, handlers, tuple(rows), result, START, sends, max_hops)

    def takers(self, program: Program, name: str, chance: float) -> tuple[str, ...]:
        wanted: dict[str, None] = {}
        for handler in program.handlers:
            handled = (handler.takes,) if handler.per is None else (handler.takes, handler.per)
            if any(program.is_a(name, one) for one in handled) and (handler.role in wanted or self.chance(chance)):
                wanted[handler.role] = None
        return tuple(wanted)
