"""The planner: splits a task into steps, releases each when those before it are done, and revises what fails."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel

from roles.standard.events import PlanRevised, Step, StepDone, StepReady, TaskPlanned, TaskSubmitted
from roles.standard.plan import Plan, check_steps, dependents
from swarmbus import AgentStopped, FrozenDict, HandlerFailed, Role, RoleContext, SwarmbusError, on

INSTRUCTIONS = """\
You are the planner. You split a task into steps that others carry out, each on its own and without seeing the others.
Give each step an id, a text that says all that is needed to carry it out, the ids of the steps whose results it needs,
and what is expected of it. Prefer steps that do not depend on each other. You have no tools and do none of the work."""


class NoUsablePlan(SwarmbusError):  # noqa: N818  # named for what happened, as all errors of swarmbus are
    """The model wrote no plan that can be carried out."""


class Planner(Role):
    """Plans, releases steps and revises; never carries out a step, and has no tools.

    Args:
        max_revisions: how often a plan may be revised.
    """

    instructions = INSTRUCTIONS
    history = "run"

    class State(BaseModel, frozen=True):
        """The plan of the run and how far it is; steps that nothing depends on leave no trace in it."""

        task: str = ""
        steps: tuple[Step, ...] = ()
        results: FrozenDict[str, StepDone] = FrozenDict()
        revisions: int = 0
        tried: tuple[tuple[str, ...], ...] = ()

    def __init__(self, max_revisions: int = 2) -> None:
        self._max_revisions = max_revisions

    async def make_plan(self, event: TaskSubmitted, ctx: RoleContext[Any, Any]) -> Plan:
        """Return the plan for a task; override it to plan without a model."""
        return await ctx.ask(f"Plan this task:\n\n{event.task}", output=Plan)

    def suffices(self, event: StepDone) -> bool:
        """Whether the steps that need this one can go on; override it where they can do without."""
        return event.status == "done"

    @on
    async def plan(self, event: TaskSubmitted, ctx: RoleContext) -> TaskPlanned:
        """Split the task into steps."""
        try:
            plan = await self.make_plan(event, ctx)
        except AgentStopped as stopped:
            raise NoUsablePlan(f"no usable plan: {stopped}") from stopped
        return TaskPlanned(task=event.task, steps=plan.steps)

    @on
    async def start(self, event: TaskPlanned, ctx: RoleContext) -> tuple[StepReady, ...]:
        """Release the steps that depend on nothing."""
        ctx.update(task=event.task, steps=event.steps, tried=(_outline(event.steps),))
        return tuple(_ready(step, {}) for step in event.steps if not step.depends_on)

    @on
    async def advance(
        self, event: StepDone, state: State, ctx: RoleContext
    ) -> tuple[StepReady | StepDone | PlanRevised, ...]:
        """Release the steps that waited for this one, or revise the plan where it brought nothing."""
        if event.status in ("superseded", "skipped"):
            return ()
        if self.suffices(event):
            return self._release(event, state, ctx)
        return await self._recover(event, state, ctx)

    @on
    async def adopt(self, event: PlanRevised, state: State, ctx: RoleContext) -> tuple[StepReady | StepDone, ...]:
        """Close the steps that a revision replaces, and release its own."""
        kept = tuple(step for step in state.steps if step.id not in event.replaced)
        ctx.update(steps=(*kept, *event.steps))
        closed = (StepDone(step_id=name, status="superseded", error=event.reason) for name in event.replaced)
        ready = (
            _ready(step, state.results)
            for step in event.steps
            if all(needed in state.results for needed in step.depends_on)
        )
        return (*closed, *ready)

    @on
    async def mend(self, event: HandlerFailed) -> StepDone | None:
        """Turn a step whose handler failed for good into a step that failed."""
        if event.key is None or event.event != "step_ready":
            return None
        return StepDone(step_id=event.key, status="failed", error=f"{event.error_type}: {event.message}")

    def _release(self, event: StepDone, state: State, ctx: RoleContext) -> tuple[StepReady, ...]:
        waiting = [step for step in state.steps if event.step_id in step.depends_on]
        if not waiting:
            return ()
        results = ctx.put("results", event.step_id, event).results
        return tuple(_ready(step, results) for step in waiting if all(needed in results for needed in step.depends_on))

    async def _recover(self, event: StepDone, state: State, ctx: RoleContext) -> tuple[StepDone | PlanRevised, ...]:
        replaced = dependents(state.steps, event.step_id)
        reason = f"step {event.step_id} {'brought nothing' if event.status == 'empty' else 'failed'}: {event.error}"
        if state.revisions >= self._max_revisions:
            return _skipped(replaced, f"{reason}; the plan was revised {state.revisions} times already")
        try:
            revision = await self._ask_revision(event, reason, replaced, state, ctx)
        except (AgentStopped, ValueError) as error:
            return _skipped(replaced, f"{reason}; no usable revision: {error}")
        outline = _outline(revision.steps)
        if not revision.steps:
            return _skipped(replaced, reason)
        if outline in state.tried:
            note = StepDone(step_id=f"revision-{state.revisions + 1}", status="skipped", error=f"no progress: {reason}")
            return (note, *_skipped(replaced, f"no progress: {reason}"))
        number = ctx.update(revisions=state.revisions + 1, tried=(*state.tried, outline)).revisions
        return (PlanRevised(reason=reason, replaced=replaced, steps=revision.steps, number=number),)

    async def _ask_revision(
        self, event: StepDone, reason: str, replaced: tuple[str, ...], state: State, ctx: RoleContext
    ) -> Plan:
        kept = [step for step in state.steps if step.id not in replaced and step.id != event.step_id]
        lines = "\n".join(f"- {step.id}: {step.text}" for step in kept) or "- none"
        gone = ", ".join(replaced) or "none"
        prompt = (
            f"The task is:\n\n{state.task}\n\nOf the plan, {reason}\nSteps that can't be carried out now: {gone}\n"
            f"Steps that stand:\n{lines}\n\nWrite new steps, with new ids, that reach the same in another way. "
            f"They may depend on steps that stand. Write no step if there is no other way."
        )
        revision = await ctx.ask(prompt, output=Revision)
        check_steps(revision.steps, [step.id for step in state.steps])
        unknown = {needed for step in revision.steps for needed in step.depends_on} & {*replaced, event.step_id}
        if unknown:
            raise ValueError(f"new steps depend on {', '.join(sorted(unknown))}, which can't be carried out")
        return Plan.model_construct(steps=revision.steps)


class Revision(BaseModel, frozen=True):
    """Steps that take the place of those that can't be carried out; they may depend on steps that stand."""

    steps: tuple[Step, ...] = ()


def _ready(step: Step, results: Mapping[str, StepDone]) -> StepReady:
    inputs = tuple(results[needed] for needed in step.depends_on)
    return StepReady(step_id=step.id, text=step.text, expected=step.expected, inputs=inputs)


def _skipped(steps: tuple[str, ...], reason: str) -> tuple[StepDone, ...]:
    return tuple(StepDone(step_id=name, status="skipped", error=reason) for name in steps)


def _outline(steps: tuple[Step, ...]) -> tuple[str, ...]:
    return tuple(sorted(" ".join(step.text.lower().split()) for step in steps))
