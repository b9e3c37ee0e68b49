"""How far a plan is: which steps wait, and for what. Plain values; the planner decides what to do about them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Self

from pydantic import BaseModel

from roles.standard.events import Step, StepDone, StepReady
from swarmbus import FrozenDict


class Progress(BaseModel, frozen=True):
    """A plan and how far it is.

    A step that no other step needs leaves no trace in it when it is done, so that a plan without dependencies costs
    no change of state per step; a step that others need costs one entry for each of them.

    Attributes:
        task: what the plan is for.
        steps: all steps but those that were replaced, by id.
        needed_by: for each step that others need, the ids of those.
        needs: for each step that waits, how many results it waits for.
        results: how the steps ended that others need.
        revisions: how often the plan was revised.
    """

    task: str = ""
    steps: FrozenDict[str, Step] = FrozenDict()
    needed_by: FrozenDict[str, tuple[str, ...]] = FrozenDict()
    needs: FrozenDict[str, int] = FrozenDict()
    results: FrozenDict[str, StepDone] = FrozenDict()
    revisions: int = 0

    def ready(self, step: Step) -> StepReady:
        """Return a step with the results it needs."""
        return step_ready(step, (self.results[name] for name in dict.fromkeys(step.depends_on)))

    def waiting_for(self, step_id: str) -> tuple[str, ...]:
        """Return the ids of the steps that wait for a step, directly or through others."""
        found: dict[str, None] = {}
        front = [step_id]
        while front:
            needing = [name for name in self.needed_by.get(front.pop(), ()) if name in self.needs and name not in found]
            found.update(dict.fromkeys(needing))
            front += needing
        return tuple(found)

    def following(self, gone: Iterable[str]) -> tuple[str, ...]:
        """Return the ids of the steps that new steps may depend on: those that wait or are needed, and are not gone."""
        without = set(gone)
        return tuple(name for name in dict.fromkeys((*self.needed_by, *self.needs)) if name not in without)

    def without(self, waiting: Iterable[str]) -> Self:
        """Return the progress without some steps that were waiting."""
        gone = set(waiting)
        return self.model_copy(
            update={
                "steps": FrozenDict({name: step for name, step in self.steps.items() if name not in gone}),
                "needs": FrozenDict({name: count for name, count in self.needs.items() if name not in gone}),
            }
        )

    def extended(self, steps: Iterable[Step]) -> Self:
        """Return the progress with further steps, none of them carried out yet."""
        known, needs = dict(self.steps), dict(self.needs)
        needed_by = {name: list(needing) for name, needing in self.needed_by.items()}
        for step in steps:
            known[step.id] = step
            needed = dict.fromkeys(step.depends_on)
            for name in needed:
                needed_by.setdefault(name, []).append(step.id)
            if missing := sum(name not in self.results for name in needed):
                needs[step.id] = missing
        return self.model_copy(
            update={
                "steps": FrozenDict(known),
                "needs": FrozenDict(needs),
                "needed_by": FrozenDict({name: tuple(needing) for name, needing in needed_by.items()}),
            }
        )


def step_ready(step: Step, inputs: Iterable[StepDone] = ()) -> StepReady:
    """Return a step as the executor gets it."""
    return StepReady(step_id=step.id, text=step.text, expected=step.expected, inputs=tuple(inputs))
