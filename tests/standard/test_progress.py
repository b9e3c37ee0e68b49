"""What waits for what in a plan."""

from __future__ import annotations

from roles.standard import Progress, Step, StepDone, StepReady
from swarmbus import FrozenDict

CHAIN = (
    Step(id="c", text="last", depends_on=("b",)),
    Step(id="b", text="next", depends_on=("a", "x", "a")),
    Step(id="a", text="first"),
    Step(id="x", text="other"),
)


def test_a_step_waits_for_each_result_once() -> None:
    assert Progress().extended(CHAIN).needs == {"c": 1, "b": 2}


def test_what_waits_for_a_step_waits_through_others_too() -> None:
    progress = Progress().extended(CHAIN)
    assert progress.waiting_for("a") == ("b", "c")
    assert progress.waiting_for("c") == ()


def test_new_steps_may_depend_on_what_waits_or_is_needed() -> None:
    progress = Progress().extended([*CHAIN, Step(id="alone", text="alone")])
    assert set(progress.following(["a", "b", "c"])) == {"x"}


def test_what_was_replaced_waits_no_more() -> None:
    progress = Progress().extended(CHAIN).without(["b", "c"])
    assert (set(progress.steps), progress.needs, progress.waiting_for("a")) == ({"a", "x"}, FrozenDict(), ())


def test_a_new_step_is_ready_where_the_results_it_needs_are_there() -> None:
    done = StepDone(step_id="a", status="done", answer="the first")
    progress = Progress().extended(CHAIN)
    progress = progress.model_copy(update={"results": progress.results.set("a", done)})
    new = Step(id="r1.d", text="again", depends_on=("a",))
    progress = progress.extended([new])
    assert "r1.d" not in progress.needs
    assert progress.ready(new) == StepReady(step_id="r1.d", text="again", inputs=(done,))
