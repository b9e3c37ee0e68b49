"""The executor: carries out one step in a fresh context, with its tools, and says how it ended."""

from __future__ import annotations

from typing import Any

from roles.standard.events import StepDone, StepReady, TaskPlanned
from roles.standard.progress import step_ready
from swarmbus import AgentStopped, Role, RoleContext, on
from swarmbus.errors import ModelError

NOTHING = "NOTHING FOUND"
"""What the model answers where a step has no result."""

INSTRUCTIONS = f"""\
You carry out one step of a larger plan that you do not see. Use your tools where they help, and answer with the result
of the step alone. Where there is nothing to find, answer exactly {NOTHING}."""


def first_steps(plan: TaskPlanned) -> tuple[StepReady, ...]:
    """Return the steps of a plan that depend on nothing."""
    return tuple(step_ready(step) for step in plan.steps if not step.depends_on)


class Executor(Role):
    """Carries out single steps; knows nothing of the task as a whole.

    To carry them out in another way, override `prompt` or `carry_out`.
    """

    instructions = INSTRUCTIONS
    concurrency = 8

    def prompt(self, step: StepReady) -> str:
        """Return what the model is asked for a step."""
        inputs = "".join(f"\n\nResult of step {done.step_id}:\n{done.answer or done.error}" for done in step.inputs)
        expected = f"\n\nExpected: {step.expected}" if step.expected else ""
        return f"{step.text}{expected}{inputs}"

    async def carry_out(self, step: StepReady, ctx: RoleContext[Any, Any]) -> StepDone:
        """Carry out a step; a model that gives up makes it a step that failed."""
        try:
            answer = (await ctx.ask(self.prompt(step))).strip()
        except (AgentStopped, ModelError) as error:
            return StepDone(step_id=step.step_id, status="failed", error=f"{type(error).__name__}: {error}")
        if not answer or answer.upper().startswith(NOTHING):
            return StepDone(step_id=step.step_id, status="empty", error=answer or "an empty answer")
        return StepDone(step_id=step.step_id, status="done", answer=answer)

    @on(TaskPlanned, each=first_steps)
    async def begin(self, step: StepReady, ctx: RoleContext) -> StepDone:
        """Carry out a step that depends on nothing."""
        return await self.carry_out(step, ctx)

    @on
    async def work(self, step: StepReady, ctx: RoleContext) -> StepDone:
        """Carry out a step that the planner released."""
        return await self.carry_out(step, ctx)
