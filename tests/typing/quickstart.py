"""The example of the design, with its tools and prompts filled in; mypy has nothing to say about it."""

from __future__ import annotations

from swarmbus import CLIENT, Event, EventTable, Joined, Role, RoleContext, Swarm, join, on, tool
from swarmbus.models import ScriptedModel


class QuestionAsked(Event):
    question: str


class TaskPlanned(Event):
    question: str
    steps: tuple[str, ...]


class StepDone(Event):
    step: str
    answer: str


class ReportReady(Event):
    text: str


@tool(effects="read_only")
async def search(words: str) -> list[str]:
    """Return the places at which the words occur."""
    return [f"page 1: {words}"]


@tool(effects="read_only")
def read(page: int) -> str:
    """Return the text of a page."""
    return f"the text of page {page}"


class Planner(Role):
    """Splits the question into steps."""

    @on
    async def plan(self, event: QuestionAsked, ctx: RoleContext) -> TaskPlanned:
        steps = await ctx.ask(f"Split into steps: {event.question}", output=list[str])
        return TaskPlanned(question=event.question, steps=tuple(steps))


class Executor(Role):
    """Carries out one step in a fresh context."""

    tools = (search, read)
    concurrency = 8

    @on(TaskPlanned, each="steps")
    async def work(self, step: str, ctx: RoleContext) -> StepDone:
        return StepDone(step=step, answer=await ctx.ask(step))


class Aggregator(Role):
    """Waits for every step and writes the report."""

    @join(StepDone, per=TaskPlanned)
    async def write(self, plan: TaskPlanned, steps: Joined[StepDone], ctx: RoleContext) -> ReportReady:
        answers = "\n".join(f"{step.step}: {step.answer}" for step in steps.done)
        return ReportReady(text=await ctx.ask(f"Answer {plan.question} from:\n{answers}"))


swarm = Swarm(
    Planner(),
    Executor(),
    Aggregator(),
    table=EventTable(
        (CLIENT, QuestionAsked, "planner"),
        ("planner", TaskPlanned, ("executor", "aggregator")),
        ("executor", StepDone, "aggregator"),
        ("aggregator", ReportReady, CLIENT),
        result=ReportReady,
    ),
    model={
        "planner": ScriptedModel([["look it up", "write it down"]]),
        "executor": ScriptedModel(["found", "written"]),
        "aggregator": ScriptedModel(["the report"]),
    },
)


async def main() -> str:
    result = await swarm.run(QuestionAsked(question="How many?"))
    return result.output.text
