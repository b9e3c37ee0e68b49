from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING

import pytest
from ledger_model.drive import check_one
from ledger_model.pair import Difference, Engine
from ledger_model.plant import Bug, planted

if TYPE_CHECKING:
    from pathlib import Path

RUNS = 2_000

BUGS = {
    "a quorum is one too many": Bug("joins", "self.count >= self.quorum", "self.count > self.quorum"),
    "a failure breaks a join with a quorum": Bug(
        "joins", 'self.partial == "fail" and self.quorum is None and', 'self.partial == "fail" and'
    ),
    "contributions stay in order of arrival": Bug(
        "joins", "for item in sorted(self.taken):", "for item in self.taken:"
    ),
    "what was cut short is missing": Bug(
        "joins", "self.taken.keys() | self.failures.keys() | self.cancelled", "self.taken.keys() | self.failures.keys()"
    ),
    "the earliest opener is decided first": Bug("deciding", "return max(joins,", "return min(joins,"),
    "a deadline cancels nothing": Bug("deciding", "if join.overdue and not join.quiet:", "if False:"),
    "a firing says something else later on": Bug("deciding", "    join.fired = True\n", ""),
    "what counts for another join is cancelled too": Bug(
        "cancelling", "        elif join.open:\n            return False\n", ""
    ),
    "what could still reach the result is cancelled": Bug(
        "cancelling", "    if RESULT in reach:\n        return False\n", ""
    ),
    "a result leaves what counts for its joins alone": Bug("cancelling", "    if closed:\n", "    if False:\n"),
    "anything a mender publishes mends": Bug("mending", "if reaches & self.wanted:", "if reaches:"),
    "a cancelled mender is never a no": Bug("book", "            mending.menders.discard(delivery.key)\n", ""),
    "only one join takes a failure": Bug(
        "ladder", "            taken = True\n", "            taken = True\n            break\n"
    ),
    "reach passes through contributions": Bug(
        "topology",
        "self.reach.below([handler.wiring])",
        "self.reach.after([handler.wiring])",
    ),
    "an open join does not count for the outer one": Bug(
        "topology",
        "for handler in (*(h for g in groups for h in g), *opens):",
        "for handler in (h for g in groups for h in g):",
    ),
    "a late contribution counts for the outer join": Bug(
        "scopes",
        "elif node.joins is not None and column in node.joins:",
        "elif node.joins is not None and column in node.joins and node.joins[column].open:",
    ),
    "an attempt that is over may commit": Bug("ledger", "delivery.attempt != attempt", "False"),
    "a delayed event does not count": Bug(
        "publishing", "timer.columns = routing.reach\n", "timer.columns = routing.reach[:1]\n"
    ),
}


def first_noticed(engine: Engine) -> int:
    """The first random run in which ledger and model differ, or in which the ledger breaks down."""
    for number in range(RUNS):
        try:
            check_one(Random(number), engine)
        except (Difference, LookupError, AssertionError):
            return number
    pytest.fail(f"not noticed in {RUNS} runs")


@pytest.mark.parametrize("bug", BUGS.values(), ids=BUGS)
def test_random_runs_catch_a_bug_planted_in_the_ledger(bug: Bug, tmp_path: Path) -> None:
    with planted(bug, tmp_path) as engine:
        number = first_noticed(engine)
    check_one(Random(number))


def test_a_copy_without_a_bug_goes_unnoticed(tmp_path: Path) -> None:
    with planted(None, tmp_path) as engine:
        for number in range(100):
            check_one(Random(number), engine)
