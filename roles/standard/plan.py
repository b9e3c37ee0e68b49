"""Plans as a model writes them, and what can be said of their steps without a model."""

from __future__ import annotations

from collections.abc import Iterable
from graphlib import CycleError, TopologicalSorter
from typing import Any, Self

from pydantic import BaseModel, model_validator

from roles.standard.events import Step


class Plan(BaseModel, frozen=True):
    """Steps and what they depend on. A plain array of texts, or of steps, is a plan too."""

    steps: tuple[Step, ...]

    @model_validator(mode="before")
    @classmethod
    def _accept_arrays(cls, given: Any) -> Any:
        steps = given.get("steps") if isinstance(given, dict) else given
        if not isinstance(steps, list | tuple):
            return given
        return {"steps": [_step(number, step) for number, step in enumerate(steps, start=1)]}

    @model_validator(mode="after")
    def _check(self) -> Self:
        check_steps(self.steps, ())
        return self


def check_steps(steps: Iterable[Step], known: Iterable[str]) -> None:
    """Refuse steps that can't be carried out.

    Args:
        steps: the new steps.
        known: ids of steps that are there already, and may be depended on.

    Raises:
        ValueError: an id stands twice, a dependency is unknown, or steps depend on each other in a circle.
    """
    taken = set(known)
    own: dict[str, tuple[str, ...]] = {}
    for step in steps:
        if step.id in own or step.id in taken:
            raise ValueError(f"the id {step.id!r} is used twice; give every step an id of its own")
        own[step.id] = step.depends_on
    for name, needed in own.items():
        unknown = sorted(set(needed) - own.keys() - taken)
        if unknown:
            raise ValueError(f"step {name!r} depends on {', '.join(unknown)}, which is no step of the plan")
    try:
        TopologicalSorter(own).prepare()
    except CycleError as error:
        raise ValueError(f"steps depend on each other in a circle: {' -> '.join(error.args[1])}") from None


def dependents(steps: Iterable[Step], step_id: str) -> tuple[str, ...]:
    """Return the ids of the steps that need a step, directly or through others, in the plan's order."""
    needing = {step_id}
    ordered = tuple(steps)
    grown = True
    while grown:
        grown = False
        for step in ordered:
            if step.id not in needing and needing & set(step.depends_on):
                needing.add(step.id)
                grown = True
    return tuple(step.id for step in ordered if step.id in needing and step.id != step_id)


def _step(number: int, step: Any) -> Any:
    if isinstance(step, str):
        return {"id": f"s{number}", "text": step}
    if isinstance(step, dict) and "id" not in step:
        return {"id": f"s{number}", **step}
    return step
