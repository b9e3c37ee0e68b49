"""The aggregator: waits for every step of a plan and writes the report."""

from __future__ import annotations

from roles.standard.events import ReportReady, StepDone, TaskPlanned, without_details
from swarmbus import Joined, Role, RoleContext, join

INSTRUCTIONS = """\
You write the report on a task from the results of its steps, which are all you know. Leave out nothing that matters,
add nothing that no result says, and say what remains open because a step brought nothing."""


def step_ids(plan: TaskPlanned) -> tuple[str, ...]:
    """Return the ids of a plan's steps: what its join expects."""
    return tuple(step.id for step in plan.steps)


class Aggregator(Role):
    """Joins the results of all steps, those of revisions included."""

    instructions = INSTRUCTIONS

    def prompt(self, plan: TaskPlanned, steps: tuple[StepDone, ...]) -> str:
        """Return what the model is asked for a report."""
        results = "\n\n".join(f"Step {s.step_id}:\n{s.answer}" for s in steps if s.status == "done")
        failures = "\n".join(f"- {s.step_id} ({s.status}): {s.error}" for s in steps if s.status != "done")
        missing = f"\n\nSteps without a result:\n{failures}" if failures else ""
        return f"Task:\n{plan.task}\n\nResults:\n\n{results or 'none'}{missing}\n\nWrite the report."

    @join(StepDone, per=TaskPlanned, partial="proceed", key="step_id", expect=step_ids)
    async def write(self, plan: TaskPlanned, joined: Joined[StepDone], ctx: RoleContext) -> ReportReady:
        """Write the report; a plan without steps has an empty one, and costs no model call."""
        steps = all_steps(plan, joined)
        if not steps:
            return ReportReady(task=plan.task, text="")
        return ReportReady(
            task=plan.task, text=await ctx.ask(self.prompt(plan, steps)), steps=tuple(map(without_details, steps))
        )


def all_steps(plan: TaskPlanned, joined: Joined[StepDone]) -> tuple[StepDone, ...]:
    """Return how every step ended, in the plan's order, then those of revisions; the silent ones are included."""
    ends = [*joined.done, *(done for item in joined.failed for done in item.done)]
    told = {step.step_id for step in ends}
    ends += (
        StepDone(step_id=item.key, status="failed", error=f"{item.error.error_type}: {item.error.message}")
        for item in joined.failed
        if item.key is not None and item.key not in told
    )
    silent = [item.key for item in joined.missing if item.key is not None]
    ends += (StepDone(step_id=name, status="skipped", error="no result") for name in silent)
    place = {step.id: number for number, step in enumerate(plan.steps)}
    return tuple(sorted(ends, key=lambda step: (place.get(step.step_id, len(place)), step.step_id)))
