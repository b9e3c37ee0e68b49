"""Plan, execute, aggregate: the smallest swarm, with a scripted model in place of a real one."""

from swarmbus import CLIENT, Event, EventTable, Joined, Role, RoleContext, Swarm, join, on, tool
from swarmbus.models import ModelRequest, ScriptedModel, call

HEIGHTS = {"Säntis": 2502, "Rigi": 1798, "Pilatus": 2128}


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
def height(mountain: str) -> int:
    """Return a mountain's height in metres."""
    return HEIGHTS[mountain]


class Planner(Role):
    """Splits the question into steps."""

    @on
    async def plan(self, event: QuestionAsked, ctx: RoleContext) -> TaskPlanned:
        steps = await ctx.ask(f"Split into steps: {event.question}", output=list[str])
        return TaskPlanned(question=event.question, steps=tuple(steps))


class Executor(Role):
    """Carries out one step in a fresh context."""

    tools = (height,)
    concurrency = 8

    @on(TaskPlanned, each="steps")
    async def work(self, step: str, ctx: RoleContext) -> StepDone:
        return StepDone(step=step, answer=await ctx.ask(step))


class Aggregator(Role):
    """Waits for every step and writes the report."""

    @join(StepDone, per=TaskPlanned)
    async def write(self, plan: TaskPlanned, steps: Joined[StepDone], ctx: RoleContext) -> ReportReady:
        answers = "\n".join(f"{done.step}: {done.answer}" for done in steps.done)
        return ReportReady(text=await ctx.ask(f"{plan.question}\n{answers}"))


def work(request: ModelRequest) -> object:
    """Play the executor's model: call the tool, then say what it brought."""
    last = request.messages[-1]
    if last.role == "tool":
        return f"{last.content} m"
    return call("height", mountain=str(last.content).removeprefix("How high is ").rstrip("?"))


def write(request: ModelRequest) -> str:
    """Play the aggregator's model: repeat what it was told."""
    return str(request.messages[-1].content)


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
        "planner": ScriptedModel([[f"How high is {mountain}?" for mountain in HEIGHTS]]),
        "executor": ScriptedModel([work] * 2 * len(HEIGHTS)),
        "aggregator": ScriptedModel([write]),
    },
)

if __name__ == "__main__":
    result = swarm.run_sync(QuestionAsked(question="Which mountain is the highest?"))
    print(result.output.text)
