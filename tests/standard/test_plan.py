"""Plans as models write them."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import TypeAdapter, ValidationError

from roles.standard import Plan, Step
from roles.standard.plan import Revision, check_steps, renamed


@pytest.mark.parametrize(
    "written",
    [
        {"steps": [{"id": "s1", "text": "one"}, {"id": "s2", "text": "two"}]},
        {"steps": ["one", "two"]},
        [{"text": "one"}, {"text": "two"}],
        ["one", "two"],
    ],
    ids=["a plan", "texts in a plan", "steps without ids", "texts"],
)
def test_a_plan_is_read_from_what_models_write(written: Any) -> None:
    assert TypeAdapter(Plan).validate_python(written) == Plan(
        steps=(Step(id="s1", text="one"), Step(id="s2", text="two"))
    )


@pytest.mark.parametrize("kind", [Plan, Revision])
def test_what_a_model_is_told_of_its_answer_is_an_instruction(kind: type[Revision]) -> None:
    told = kind.model_json_schema()["description"]
    assert told.startswith("Give ")
    assert "accepted" not in told


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ("do it all", "valid dictionary or instance"),
        ([{"id": "a", "text": "x"}, {"id": "a", "text": "y"}], "the id 'a' is used twice"),
        ([{"id": "a", "text": "x", "depends_on": ["z"]}], "step 'a' depends on z, which is no step that stands"),
        ([{"id": "a", "text": "x", "depends_on": ["a"]}], "steps depend on each other in a circle: a -> a"),
    ],
    ids=["prose", "id twice", "unknown dependency", "circle"],
)
def test_a_plan_that_can_not_be_carried_out_is_refused(written: Any, said: str) -> None:
    with pytest.raises(ValidationError, match=said):
        Plan.model_validate(written)


def test_further_steps_may_depend_on_those_that_stand() -> None:
    check_steps([Step(id="b", text="y", depends_on=("a",))], ["a"])


def test_renamed_steps_still_need_each_other_and_what_stands() -> None:
    steps = (Step(id="a", text="x", depends_on=("old",)), Step(id="b", text="y", depends_on=("a",)))
    assert renamed(steps, "r1.") == (
        Step(id="r1.a", text="x", depends_on=("old",)),
        Step(id="r1.b", text="y", depends_on=("r1.a",)),
    )
