"""A small research team, as many swarms are: a map, a join, an early event, conditions, a program outside."""

from __future__ import annotations

from pydantic import BaseModel

from swarmbus import (
    CLIENT,
    SYSTEM,
    Event,
    EventTable,
    External,
    HandlerFailed,
    Joined,
    Role,
    RoleContext,
    Swarm,
    join,
    on,
    tool,
)
from swarmbus.models import ScriptedModel, call


class QuestionAsked(Event):
    question: str
    urgent: bool = False


class TaskPlanned(Event):
    question: str
    steps: tuple[str, ...]


class PlanRefused(Event):
    reason: str


class StepStarted(Event):
    step: str


class StepDone(Event):
    step: str
    answer: str


class ReportReady(Event):
    text: str


@tool(effects="read_only")
def search(query: str) -> str:
    """Search the library."""
    return f"found {query}"


class Planner(Role):
    """Splits the question into steps."""

    class State(BaseModel, frozen=True):
        plans: int = 0

    @on(QuestionAsked, when=lambda event: not event.urgent)
    async def plan(self, event: QuestionAsked, state: State, ctx: RoleContext) -> TaskPlanned | PlanRefused | None:
        ctx.update(plans=state.plans + 1)
        steps = await ctx.ask(f"Split into steps: {event.question}", output=list[str])
        return TaskPlanned(question=event.question, steps=tuple(steps))

    @on(QuestionAsked, when=lambda event: event.urgent)
    async def hurry(self, event: QuestionAsked) -> TaskPlanned:
        return TaskPlanned(question=event.question, steps=(event.question,))


class Executor(Role):
    """Carries out one step in a fresh context."""

    tools = (search,)
    concurrency = 8

    @on(TaskPlanned, each="steps")
    async def work(self, step: str, ctx: RoleContext[StepStarted]) -> StepDone:
        await ctx.publish(StepStarted(step=step))
        return StepDone(step=step, answer=await ctx.ask(step))


class Aggregator(Role):
    """Waits for every step and writes the report."""

    @join(StepDone, per=TaskPlanned, partial="proceed")
    async def write(self, plan: TaskPlanned, steps: Joined[StepDone], ctx: RoleContext) -> ReportReady:
        return ReportReady(text=await ctx.ask(plan.question + "; ".join(step.answer for step in steps.done)))


class Auditor(Role):
    """Keeps count of what failed."""

    @on
    async def record(self, event: HandlerFailed) -> None:
        del event


def make() -> Swarm[ReportReady]:
    """Return the swarm with a fresh script."""
    return Swarm(
        Planner(),
        Executor(),
        Aggregator(),
        Auditor(),
        table=EventTable(
            (CLIENT, QuestionAsked, "planner"),
            ("planner", TaskPlanned, ("executor", "aggregator")),
            ("planner", PlanRefused, CLIENT),
            ("executor", StepStarted, External("dashboard")),
            ("executor", StepDone, "aggregator"),
            ("aggregator", ReportReady, CLIENT),
            (SYSTEM, HandlerFailed, "auditor"),
            result=ReportReady,
        ),
        model={
            "planner": ScriptedModel([["one", "two", "three"]]),
            "executor": ScriptedModel([call("search", query="x"), *["an answer"] * 3]),
            "aggregator": ScriptedModel(["the report"]),
        },
    )


swarm = make()
