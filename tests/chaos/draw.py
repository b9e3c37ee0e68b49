"""What one round of chaos is, as data drawn from a seed: a swarm, how its roles are made, its runs, what befalls them.

Which events, maps and joins there are is drawn by the ledger's model; only wirings that the check accepts are played.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from random import Random

from ledger_model.generate import Temper, random_program, random_temper
from ledger_model.program import HANDLER_FAILED, Handler, Program
from ledger_model.translate import roles_of, table_of

from swarmbus.checks import check

TRIES = 1_000


@dataclass(frozen=True, slots=True)
class Manner:
    """How a role is made.

    Attributes:
        state: whether it keeps a state.
        threads: its handlers are synchronous.
        bare: those that need no context take none.
        timeout: seconds for one attempt, or None for the default.
        pause: seconds before another attempt.
        limit: how many deliveries may wait for it before others wait.
    """

    concurrency: int
    state: bool
    threads: bool
    bare: bool
    timeout: float | None
    pause: float
    limit: int

    def takes_context(self, handler: Handler) -> bool:
        """Whether a handler of the role takes a context."""
        needs = self.state or self.threads or handler.early or handler.takes == HANDLER_FAILED
        return bool(needs) or not self.bare


@dataclass(frozen=True, slots=True)
class Mood:
    """How handlers behave beside their temper: chances."""

    sleep: float
    overtime: float
    stubborn: float
    odd: float
    block: float
    once: float
    deaf: float


@dataclass(frozen=True, slots=True)
class Reader:
    """One who reads a run's events: from when on (seconds), how long each item takes, and after how many to leave."""

    start: float
    pace: float
    leave: int | None


@dataclass(frozen=True, slots=True)
class Plan:
    """One run: when it begins, and what happens to it from outside; times in seconds after its beginning, or None."""

    tag: int
    start: float
    temper: Temper
    mood: Mood
    timeout: float | None
    cancel: float | None
    sends: tuple[float, ...]
    readers: tuple[Reader, ...]
    twice: bool


@dataclass(frozen=True, slots=True)
class Round:
    """One swarm and its runs.

    Attributes:
        leave: when its block is left, in seconds, or None for when all runs are over.
        deps: how long the dependencies of a run take to open and to close, or None where they are given.
        exits: some handlers raise what ends the swarm.
    """

    seed: str
    program: Program
    manners: dict[str, Manner]
    plans: tuple[Plan, ...]
    grace: float
    leave: float | None
    deps: float | None
    exits: bool


def draw_round(seed: str) -> Round:
    """Draw a round; the same seed brings the same one."""
    random = Random(seed)
    program = _sound_program(random)
    manners = {role: _manner(random) for role in dict.fromkeys(one.role for one in program.handlers)}
    threads = random.random() < 0.3
    if not threads:
        manners = {role: replace(manner, threads=False) for role, manner in manners.items()}
    plans = tuple(_plan(random, tag, program) for tag in range(random.choice((1, 1, 2, 2, 3, 3, 6, 15))))
    grace = random.choice((0.0, 0.5, 10.0))
    leave = random.uniform(0, 8) if random.random() < 0.1 else None
    deps = random.choice((None, None, 0.0, 0.4))
    return Round(seed, program, manners, plans, grace, leave, deps, exits=random.random() < 0.03)


def _sound_program(random: Random) -> Program:
    for _ in range(TRIES):
        program = random_program(random)
        findings = check(tuple(roles_of(program)), table_of(program), [])
        if not any(finding.severity == "error" for finding in findings):
            return replace(program, handlers=tuple(_with_deadline(random, one) for one in program.handlers))
    raise AssertionError(f"no sound program in {TRIES}")


def _with_deadline(random: Random, handler: Handler) -> Handler:
    """Return a handler whose deadline, if it has one, may well pass."""
    return handler if handler.deadline is None else replace(handler, deadline=random.uniform(0.2, 4))


def _manner(random: Random) -> Manner:
    return Manner(
        concurrency=random.choice((1, 1, 2, 4)),
        state=random.random() < 0.25,
        threads=random.random() < 0.3,
        bare=random.random() < 0.4,
        timeout=random.choice((None, None, 1.5)),
        pause=random.choice((0.0, 0.3)),
        limit=random.choice((1000, 1000, 2)),
    )


def _plan(random: Random, tag: int, program: Program) -> Plan:
    temper = random_temper(random)
    if random.random() < 0.5:  # half of them in peace, for trouble ends a run early
        temper = replace(temper, fail=0.0, silent=0.0)
    if random.random() < 0.02:  # more items than a role opens at a time
        temper = replace(temper, most_items=150, budget=30)
    sends = random.choice((0, 0, 1, 3)) if temper.send else 0
    return Plan(
        tag=tag,
        start=random.choice((0.0, 0.0, random.uniform(0, 3))),
        temper=temper,
        mood=_mood(random),
        timeout=random.choice((None, None, random.uniform(0.2, 20))),
        cancel=random.uniform(0, 6) if random.random() < 0.15 else None,
        sends=tuple(random.uniform(0, 5) for _ in range(sends)),
        readers=tuple(_reader(random) for _ in range(random.choice((0, 0, 1, 2)))),
        twice=random.random() < 0.1,
    )


def _mood(random: Random) -> Mood:
    return Mood(
        sleep=random.choice((0.0, 0.3, 0.8)),
        overtime=random.choice((0.0, 0.0, 0.05)),
        stubborn=random.choice((0.0, 0.0, 0.05)),
        odd=random.choice((0.0, 0.0, 0.04)),
        block=random.choice((0.0, 0.3, 0.8)),
        once=random.choice((0.0, 0.2)),
        deaf=random.choice((0.0, 0.0, 0.3)),
    )


def _reader(random: Random) -> Reader:
    return Reader(
        start=random.choice((0.0, random.uniform(0, 3), 60.0)),
        pace=random.choice((0.0, 0.5)),
        leave=random.choice((None, None, random.randint(1, 10))),
    )
