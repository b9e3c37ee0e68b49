"""Plans as a model writes them, and what can be said of their steps without a model.

The docstrings of `Revision` and `Plan` are shown to the model, as the description of the answer.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from graphlib import CycleError, TopologicalSorter
from typing import Any, Self

from pydantic import BaseModel, model_validator
from pydantic.json_schema import SkipJsonSchema

from roles.standard.events import Step

MOST_STEPS = 100
"""How many steps a model may write for one plan or one revision; a planner of your own may plan more."""


class Revision(BaseModel, frozen=True):
    """Give the steps to carry out in place of those that can't be; they may need each other and steps that stand."""

    steps: tuple[Step, ...]

    @model_validator(mode="before")
    @classmethod
    def _accept_arrays(cls, given: Any) -> Any:
        """Take a plain array too, of steps or of their texts; a step without an id gets one."""
        steps = given.get("steps") if isinstance(given, dict) else given
        if not isinstance(steps, list | tuple):
            return given
        return {"steps": [_step(number, step) for number, step in enumerate(steps, start=1)]}


class Plan(Revision, frozen=True):
    """Give all steps of the plan, each with an id of its own; a step may need only others, and not in a circle."""

    notes: SkipJsonSchema[tuple[str, ...]] = ()
    """What a planner, but no model, may say of the plan to the readers of the report; set it on a copy."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        check_steps(self.steps)
        return self


def check_steps(steps: Iterable[Step], standing: Iterable[str] = ()) -> None:
    """Refuse steps that can't be carried out.

    Args:
        steps: the steps.
        standing: ids of other steps that they may depend on.

    Raises:
        ValueError: an id stands twice, a dependency is unknown, or steps depend on each other in a circle.
    """
    own: dict[str, tuple[str, ...]] = {}
    for step in steps:
        if step.id in own:
            raise ValueError(f"the id {step.id!r} is used twice; give every step an id of its own")
        own[step.id] = step.depends_on
    known = own.keys() | set(standing)
    for name, needed in own.items():
        unknown = sorted(set(needed) - known)
        if unknown:
            raise ValueError(f"step {name!r} depends on {', '.join(unknown)}, which is no step that stands")
    try:
        TopologicalSorter(own).prepare()
    except CycleError as error:
        raise ValueError(f"steps depend on each other in a circle: {' -> '.join(error.args[1])}") from None


def refuse_too_many(steps: Sequence[Step], most: int = MOST_STEPS) -> None:
    """Raise ValueError where there are more steps than a model may plan at once."""
    if len(steps) > most:
        raise ValueError(f"{len(steps)} steps are too many; write {most} at most")


def renamed(steps: Sequence[Step], prefix: str) -> tuple[Step, ...]:
    """Return steps with a prefix before their ids, so that they are like no others; what else they need stays."""
    own = {step.id: f"{prefix}{step.id}" for step in steps}
    return tuple(
        step.model_copy(
            update={"id": own[step.id], "depends_on": tuple(own.get(name, name) for name in step.depends_on)}
        )
        for step in steps
    )


def _step(number: int, step: Any) -> Any:
    if isinstance(step, str):
        return {"id": f"s{number}", "text": step}
    if isinstance(step, dict) and "id" not in step:
        return {"id": f"s{number}", **step}
    return step
