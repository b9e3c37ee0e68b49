"""The events of plan, execute and aggregate."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel

from swarmbus import Event


class Step(BaseModel, frozen=True):
    """One step of a plan.

    Attributes:
        id: names the step within its plan.
        text: what is to be done.
        depends_on: ids of the steps whose results it needs.
        expected: what a good result looks like.
    """

    id: str
    text: str
    depends_on: tuple[str, ...] = ()
    expected: str = ""


class TaskSubmitted(Event):
    """Somebody wants something done. One task for each run."""

    task: str


class TaskPlanned(Event):
    """The task was split into steps; opens the join over their results.

    Attributes:
        notes: what a reader of the report should know of the plan.
    """

    task: str
    steps: tuple[Step, ...]
    notes: tuple[str, ...] = ()


class StepDone(Event):
    """A step came to its end.

    Attributes:
        step_id: the step, or `r1` for the first revision of the plan where that would have brought no progress.
        status: `done`; `empty`, where there was nothing to find; `failed`; `superseded` by a revision of the plan;
            or `skipped`, since a step it depends on brought nothing.
        answer: the result of a step that is done.
        error: why it is not.
    """

    step_id: str
    status: Literal["done", "empty", "failed", "superseded", "skipped"]
    answer: str = ""
    error: str = ""


def without_details(step: StepDone) -> StepDone:
    """Return what every `StepDone` says, without what a subclass adds: an event holds others of its exact type only."""
    return StepDone(step_id=step.step_id, status=step.status, answer=step.answer, error=step.error)


class StepReady(Event):
    """A step can be carried out: the steps it depends on are done.

    Attributes:
        step_id: the step's id, under which its failure is known too.
        inputs: the results of the steps it depends on.
    """

    step_id: str
    text: str
    expected: str = ""
    inputs: tuple[StepDone, ...] = ()


class PlanRevised(Event):
    """A step brought nothing, and the plan goes on in another way; news for the client.

    Attributes:
        reason: what made the revision necessary.
        replaced: ids of the steps that will not be carried out.
        steps: the steps that take their place; the number of the revision stands before their ids.
        number: counts the revisions of the plan, from 1.
    """

    reason: str
    replaced: tuple[str, ...]
    steps: tuple[Step, ...]
    number: int


class ReportReady(Event):
    """The report over all steps.

    Attributes:
        steps: how each step ended.
    """

    task: str
    text: str
    steps: tuple[StepDone, ...] = ()
