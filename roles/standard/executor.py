"""The executor: carries out one step in a fresh context, with its tools, and says how it ended."""

from __future__ import annotations

from roles.standard.events import StepDone, StepReady
from swarmbus import AgentStopped, Role, RoleContext, on
from swarmbus.errors import ModelError

NOTHING = "NOTHING FOUND"
"""What the model answers where a step has no result."""

INSTRUCTIONS = f"""\
You carry out one step of a larger plan that you do not see. Use your tools where they help, and answer with the result
of the step alone. Where there is nothing to find, answer exactly {NOTHING}."""


class Executor(Role):
    """Carries out single steps; knows nothing of the task as a whole."""

    instructions = INSTRUCTIONS
    concurrency = 8

    def prompt(self, event: StepReady) -> str:
        """Return what the model is asked for a step."""
        inputs = "".join(f"\n\nResult of step {done.step_id}:\n{done.answer}" for done in event.inputs)
        expected = f"\n\nExpected: {event.expected}" if event.expected else ""
        return f"{event.text}{expected}{inputs}"

    @on
    async def work(self, event: StepReady, ctx: RoleContext) -> StepDone:
        """Carry out a step; a model that gives up makes it a step that failed."""
        try:
            answer = (await ctx.ask(self.prompt(event))).strip()
        except (AgentStopped, ModelError) as error:
            return StepDone(step_id=event.step_id, status="failed", error=f"{type(error).__name__}: {error}")
        if not answer or answer.upper().startswith(NOTHING):
            return StepDone(step_id=event.step_id, status="empty", error=answer or "an empty answer")
        return StepDone(step_id=event.step_id, status="done", answer=answer)
