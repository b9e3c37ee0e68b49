"""The planner: splits a task into steps, releases each when those before it are done, and revises what fails."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from roles.standard.events import PlanRevised, Step, StepDone, StepReady, TaskPlanned, TaskSubmitted, without_details
from roles.standard.plan import Plan, Revision, check_steps, refuse_too_many, renamed
from roles.standard.progress import Progress
from swarmbus import AgentStopped, HandlerFailed, Role, RoleContext, SwarmbusError, on
from swarmbus.errors import ModelError

R = TypeVar("R", bound=Revision)

INSTRUCTIONS = """\
You are the planner. You split a task into steps that others carry out, each on its own and without seeing the others.
Give each step an id, a text that says all that is needed to carry it out, the ids of the steps whose results it needs,
and what is expected of it. Prefer steps that do not depend on each other. You have no tools and do none of the work."""

TRIES = 2
"""How often the model may write one plan or revision."""
SHOWN_STEPS = 40
"""How many of the steps that stand the model is shown for a revision."""


class NoUsablePlan(SwarmbusError):  # noqa: N818  # named for what happened, as all errors of swarmbus are
    """The model wrote no plan that can be carried out."""


class Planner(Role):
    """Plans, releases steps and revises; never carries out a step, and has no tools.

    To plan in another way, override `make_plan`, `make_revision` or `suffices`. A step that depends on nothing is
    not released here: executors take it from `TaskPlanned`.

    Args:
        max_revisions: how often a plan may be revised; with 0 a step that fails stays the way it is.
    """

    instructions = INSTRUCTIONS
    State = Progress

    def __init__(self, max_revisions: int = 2) -> None:
        self._max_revisions = max_revisions

    async def make_plan(self, event: TaskSubmitted, ctx: RoleContext[Any, Any]) -> Plan:
        """Return the plan for a task.

        Raises:
            AgentStopped, ValueError: the model wrote none; the run fails.
        """
        return await _asked(ctx, f"Plan this task:\n\n{event.task}", Plan, refuse_too_many)

    async def make_revision(
        self, event: StepDone, stuck: tuple[str, ...], progress: Progress, ctx: RoleContext[Any, Any]
    ) -> Sequence[Step]:
        """Return the steps to carry out in place of one that brought nothing and those that need it; none to give up.

        Their ids are their own business: the planner sets the number of the revision before them.

        Args:
            event: how the step ended.
            stuck: ids of the steps that need it.
            progress: the plan and how far it is.
            ctx: the context.

        Raises:
            AgentStopped, ModelError, ValueError: there is no such revision; the steps that need it are skipped.
        """
        standing = progress.following((event.step_id, *stuck))
        prompt = revision_prompt(event, stuck, standing, progress)

        def check(steps: Sequence[Step]) -> None:
            refuse_too_many(steps)
            check_steps(steps, standing)

        return (await _asked(ctx, prompt, Revision, check)).steps

    def suffices(self, event: StepDone) -> bool:
        """Whether the steps that need this one can go on; override it where they can do without."""
        return event.status == "done"

    @on
    async def plan(self, event: TaskSubmitted, ctx: RoleContext) -> TaskPlanned:
        """Split the task into steps."""
        try:
            plan = await self.make_plan(event, ctx)
        except (AgentStopped, ValueError) as error:
            raise NoUsablePlan(f"no usable plan: {error}") from error
        return TaskPlanned(task=event.task, steps=plan.steps, notes=plan.notes)

    @on
    async def start(self, event: TaskPlanned, ctx: RoleContext) -> None:
        """Keep the plan, to know which step waits for which."""
        progress = Progress().extended(event.steps)
        ctx.update(task=event.task, steps=progress.steps, needs=progress.needs, needed_by=progress.needed_by)

    @on
    async def advance(
        self, event: StepDone, progress: Progress, ctx: RoleContext
    ) -> tuple[StepReady | StepDone | PlanRevised, ...]:
        """Release the steps that waited for this one, or revise the plan where it brought nothing."""
        if event.status in ("superseded", "skipped") or event.step_id in progress.results:
            return ()
        if self.suffices(event):
            return _release(event, progress, ctx)
        return await self._recover(event, progress, ctx)

    @on
    async def mend(self, event: HandlerFailed, ctx: RoleContext) -> StepDone | None:
        """Turn a step whose handler failed for good into a step that failed."""
        if event.key is None or event.role == ctx.role:
            return None
        return StepDone(step_id=event.key, status="failed", error=f"{event.error_type}: {event.message}")

    async def _recover(
        self, event: StepDone, progress: Progress, ctx: RoleContext
    ) -> tuple[StepReady | StepDone | PlanRevised, ...]:
        stuck = progress.waiting_for(event.step_id)
        reason = f"step {event.step_id} {'brought nothing' if event.status == 'empty' else 'failed'}: {event.error}"
        if progress.revisions >= self._max_revisions:
            return _give_up(stuck, f"{reason}; the plan was revised {progress.revisions} times already", progress, ctx)
        number = ctx.update(revisions=progress.revisions + 1).revisions
        try:
            steps = await self.make_revision(event, stuck, progress, ctx)
        except (AgentStopped, ModelError, ValueError) as error:
            return _give_up(stuck, f"{reason}; no usable revision: {error}", progress, ctx)
        if not steps:
            return _give_up(stuck, reason, progress, ctx)
        rest = progress.without(stuck)
        if {_plain(step) for step in steps} <= {_plain(step) for step in rest.steps.values()}:
            note = StepDone(step_id=f"r{number}", status="skipped", error=f"no progress: {reason}")
            return (note, *_give_up(stuck, note.error, progress, ctx))
        revised = PlanRevised(reason=reason, replaced=stuck, steps=renamed(steps, f"r{number}."), number=number)
        return (revised, *_adopt(revised, rest, ctx))


async def _asked(ctx: RoleContext[Any, Any], prompt: str, form: type[R], check: Callable[[Sequence[Step]], None]) -> R:
    """Return the steps that a model writes; what the check refuses it may write once more.

    Raises:
        ValueError: the check has refused that too.
    """
    for left in reversed(range(TRIES)):
        written = await ctx.ask(prompt, output=form)
        try:
            check(written.steps)
        except ValueError as error:
            if not left:
                raise
            prompt = f"This can't be carried out: {error}. Write the steps anew."
        else:
            break
    return written


def revision_prompt(event: StepDone, stuck: Sequence[str], standing: Sequence[str], progress: Progress) -> str:
    """Return what the model is asked for a revision."""
    failed = progress.steps.get(event.step_id)
    gone = "".join(f"\n- {name}: {progress.steps[name].text}" for name in stuck)
    others = [step for name, step in progress.steps.items() if name != event.step_id and name not in stuck]
    shown = "".join(f"\n- {step.id}: {step.text}" for step in others[:SHOWN_STEPS])
    more = f"\n- and {len(others) - SHOWN_STEPS} more" if len(others) > SHOWN_STEPS else ""
    return (
        f"Revise the plan for this task:\n\n{progress.task}\n\n"
        f"Step {event.step_id} {'brought nothing' if event.status == 'empty' else 'failed'}: {event.error}\n"
        f"It was: {failed.text if failed is not None else 'not known'}\n"
        f"Steps that need it and can't be carried out now:{gone or ' none'}\n"
        f"Steps that stand:{shown or ' none'}{more}\n\n"
        f"Write the steps to carry out in place of those that can't be. They may depend on each other"
        f"{' and on ' + ', '.join(standing[:SHOWN_STEPS]) if standing else ''}. "
        f"Write nothing that was tried already, and no step if there is no other way."
    )


def _release(event: StepDone, progress: Progress, ctx: RoleContext) -> tuple[StepReady, ...]:
    """Note a result for the steps that need it, and return those that wait for nothing else."""
    if event.step_id not in progress.needed_by:
        return ()
    progress = ctx.put("results", event.step_id, without_details(event))
    ready = []
    for name in progress.needed_by[event.step_id]:
        missing = progress.needs.get(name, 0) - 1
        if missing > 0:
            progress = ctx.put("needs", name, missing)
        elif missing == 0:
            progress = ctx.remove("needs", name)
            ready.append(progress.ready(progress.steps[name]))
    return tuple(ready)


def _give_up(stuck: Sequence[str], reason: str, progress: Progress, ctx: RoleContext) -> tuple[StepDone, ...]:
    """Close the steps that can't be carried out."""
    if stuck:
        ctx.update(needs=progress.without(stuck).needs)
    return tuple(StepDone(step_id=name, status="skipped", error=reason) for name in stuck)


def _adopt(revised: PlanRevised, rest: Progress, ctx: RoleContext) -> tuple[StepReady | StepDone, ...]:
    """Close the steps that a revision replaces, and release its own that wait for nothing."""
    after = rest.extended(revised.steps)
    ctx.update(steps=after.steps, needs=after.needs, needed_by=after.needed_by)
    closed = (StepDone(step_id=name, status="superseded", error=revised.reason) for name in revised.replaced)
    ready = (after.ready(step) for step in revised.steps if step.id not in after.needs)
    return (*closed, *ready)


def _plain(step: Step) -> str:
    return " ".join(step.text.lower().split())
