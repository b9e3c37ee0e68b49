"""How every step of a plan ended, whatever its join was given."""

from __future__ import annotations

import pytest

from roles.standard import Step, StepDone, TaskPlanned, all_steps
from swarmbus import Failure, Joined
from swarmbus.results import FailedItem, MissingItem

PLAN = TaskPlanned(task="the task", steps=tuple(Step(id=name, text=name) for name in "cab"))
FAILURE = Failure("executor", "begin", "task_planned", "r/0", 1, "a", 1, "ConnectionError", "no answer")


def done(name: str) -> StepDone:
    return StepDone(step_id=name, status="done", answer=f"result of {name}")


def test_steps_stand_in_the_order_of_the_plan_and_those_of_revisions_after_them() -> None:
    steps = all_steps(PLAN, Joined(done=tuple(map(done, ("r1.x", "b", "a", "c")))))
    assert steps == tuple(map(done, ("c", "a", "b", "r1.x")))


@pytest.mark.parametrize(
    ("before", "ended"),
    [
        ((), StepDone(step_id="a", status="failed", error="ConnectionError: no answer")),
        ((done("a"),), done("a")),
    ],
    ids=["without a result", "after its result"],
)
def test_a_step_whose_handler_failed_is_told_of_once(before: tuple[StepDone, ...], ended: StepDone) -> None:
    joined = Joined(done=(done("c"),), failed=(FailedItem(None, "a", FAILURE, before),))
    assert all_steps(PLAN, joined) == (done("c"), ended)


def test_a_step_that_stayed_silent_brought_no_result() -> None:
    joined = Joined(done=(done("c"),), missing=(MissingItem(None, "b"),))
    assert all_steps(PLAN, joined)[1] == StepDone(step_id="b", status="skipped", error="no result")
