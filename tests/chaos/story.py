"""What is kept of one run while it is played: what its handlers do, what they noted, and what its watchers saw."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from typing import Any, Literal, TypeAlias

from ledger_model.program import Fact, Handler
from ledger_model.tree import Contents

from chaos.draw import Manner, Plan, Round

RUN = 100_000
"""The serials of a run's facts begin at its tag times this, so that each tells whose it is."""

Place: TypeAlias = "tuple[int | tuple[str, int, str, int], int, int]"
"""A delivery as its handler knows it: (serial, or what is known of a failure; handler number; item or -1)."""

Deed = Literal["sleep", "early", "delay", "ask", "once", "block"]
Ending = Literal["return", "fail", "retry", "group", "undeclared", "self-cancel", "overtime", "stubborn", "exit"]


@dataclass(frozen=True, slots=True)
class Step:
    """One thing that a handler does; a fact for those that publish, seconds for those that take time."""

    deed: Deed
    fact: Fact | None = None
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class Script:
    """What all attempts at one delivery do: the steps, the facts it returns, and how each attempt ends, after how many
    steps; the last one holds for all further attempts."""

    steps: tuple[Step, ...]
    facts: tuple[Fact, ...]
    endings: tuple[tuple[Ending, int], ...]


@dataclass(frozen=True, slots=True)
class Note:
    """Something that was done by a handler or from outside; `attempt` is when the attempt began that did it."""

    at: float
    kind: str
    place: Place | None = None
    value: Any = None
    attempt: float = 0.0


@dataclass(frozen=True, slots=True)
class Beginning:
    """What an attempt was given."""

    attempt: int | None
    contents: Contents | None
    state: dict[str, int] | None
    threaded: bool


@dataclass(slots=True)
class Reading:
    """What a reader of the run's events saw, and whether it left before the end."""

    items: list[Any] = field(default_factory=list)
    left: bool = False


class Story:
    """One run.

    Attributes:
        notes: what was done; stream: what the watcher saw that began with the run.
        made: for each serial, where the fact came from, and how it was published.
        ended: "done" or the name of the error that was raised, the result, and that error; None before.
        refused: the swarm was closed before the run could begin.
        broken: when the swarm ended from within, or infinity.
        opened, closed: how often its dependencies were.
        faults: what went wrong where it was played.
    """

    def __init__(self, round_: Round, plan: Plan, now: Callable[[], float]) -> None:
        self.round = round_
        self.plan = plan
        self.id = f"run{plan.tag}"
        self.now = now
        self.notes: list[Note] = []
        self.stream: list[Any] = []
        self.readings: list[Reading] = []
        self.made: dict[int, tuple[Place | None, Deed | Literal["returned", "sent"], Fact]] = {}
        self.ended: tuple[str, Any, BaseException | None] | None = None
        self.refused = False
        self.broken = math.inf
        self.opened = 0
        self.closed = 0
        self.faults: list[str] = []
        self.effects: dict[Place, int] = {}
        self.published: set[int] = set()
        self.run: Any = None
        self._scripts: dict[Place, Script] = {}
        self._errors = 0

    def note(self, kind: str, place: Place | None = None, value: Any = None, *, attempt: float = 0.0) -> float:
        """Keep what was done, and return its time, by which an attempt is known that begins so."""
        at = self.now()
        self.notes.append(Note(at, kind, place, value, attempt))
        return at

    def error(self) -> str:
        """Return the text of a new error."""
        self._errors += 1
        return f"boom {self.plan.tag * RUN + self._errors}"

    def random(self, what: object) -> Random:
        """Return the chances for one thing, which no other thing changes."""
        return Random(f"{self.round.seed} {self.plan.tag} {what}")

    def has_room(self) -> bool:
        """Whether more may be published."""
        return len(self.made) < self.plan.temper.budget

    def fact(self, random: Random, name: str, place: Place | None, how: Any) -> Fact:
        """Make a new fact of a class, or of its child."""
        program, temper = self.round.program, self.plan.temper
        submitted = name in (program.start, *program.sends)
        if not submitted and name + "x" in program.parents and random.random() < temper.child:
            name += "x"
        serial = self.plan.tag * RUN + len(self.made)
        size = 0 if random.random() < 0.1 else random.randint(1, temper.most_items)
        items = tuple(f"{serial}.{index}" for index in range(size))
        promises = tuple(random.sample("abcd", random.choice((0, 0, 1, 2))))
        fact = Fact(serial, name, items, random.choice("abcd"), promises)
        self.made[serial] = (place, how, fact)
        return fact

    def script(self, place: Place) -> Script:
        """Return what is to be done at a delivery."""
        script = self._scripts.get(place)
        if script is None:
            handler = self.round.program.handlers[place[1]]
            script = self._scripts[place] = self._write(place, handler, self.round.manners[handler.role])
        return script

    def _write(self, place: Place, handler: Handler, manner: Manner) -> Script:
        random = self.random(place)
        steps = tuple(self._steps(random, place, handler, manner))
        facts: list[Fact] = []
        temper = self.plan.temper
        if self.has_room() and handler.returns and random.random() >= temper.silent:
            count = min(len(handler.returns), random.choice((1, 1, 1, 2, 3)))
            facts = [self.fact(random, name, place, "returned") for name in random.sample(handler.returns, count)]
        endings: list[tuple[Ending, int]] = []
        while random.random() < temper.retry and len(endings) < 3:
            endings.append(("retry", random.randint(0, len(steps))))
        last = self._ending(random, manner)
        endings.append((last, len(steps) if last == "return" else random.randint(0, len(steps))))
        return Script(steps, tuple(facts), tuple(endings))

    def _steps(self, random: Random, place: Place, handler: Handler, manner: Manner) -> list[Step]:
        temper, mood = self.plan.temper, self.plan.mood
        if manner.threads:
            return [Step("block", seconds=random.uniform(0.01, 3))] if random.random() < mood.block else []
        steps = []
        if random.random() < mood.sleep:
            steps.append(Step("sleep", seconds=random.uniform(0.001, 1)))
        while handler.early and self.has_room() and random.random() < temper.early:
            deed: Deed = "delay" if random.random() < temper.delay else "early"
            fact = self.fact(random, random.choice(handler.early), place, deed)
            steps.append(Step(deed, fact, random.uniform(0.001, 4)))
        if manner.takes_context(handler):
            steps += [Step("ask")] * (random.random() < temper.ask)
            steps += [Step("once")] * (random.random() < mood.once)
        random.shuffle(steps)
        if random.random() < mood.sleep / 3:
            steps.append(Step("sleep", seconds=random.uniform(0.001, 1)))
        return steps

    def _ending(self, random: Random, manner: Manner) -> Ending:
        mood = self.plan.mood
        if random.random() < self.plan.temper.fail:
            return random.choice(("fail", "fail", "group"))
        if self.round.exits and not manner.threads and random.random() < 0.05:
            return "exit"
        if random.random() < mood.odd:
            return "undeclared" if manner.threads else random.choice(("undeclared", "self-cancel"))
        if manner.timeout is not None and not manner.threads and random.random() < mood.overtime:
            return "overtime"
        if not manner.threads and random.random() < mood.stubborn:
            return "stubborn"
        return "return"


def told(message: str) -> str:
    """Return an error's own words, without those around them."""
    return " ".join(re.findall(r"boom \d+|ran longer than|cancelled itself|declares that it returns", message))
