"""The work on which comparable projects are measured, as swarms and agents; the harness that calls it is not here.

The harness brings `benchlib`: a registry of cases, a clock, payloads, and a ledger that counts what was really done.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import anyio
import benchlib  # type: ignore[import-not-found]  # the harness brings it
from benchlib import Ledger, payload
from pydantic import BaseModel

from swarmbus import (
    CLIENT,
    Agent,
    Event,
    EventTable,
    FrozenDict,
    Joined,
    Limits,
    Role,
    RoleContext,
    Swarm,
    join,
    on,
    tool,
)
from swarmbus.models import ScriptedModel, call

Work = Callable[..., Awaitable[tuple[int, str]]]
case: Callable[[str, str], Callable[[Work], Work]] = benchlib.case

META = {"venv": "swarmbus", "dist": "swarmbus", "import": "import swarmbus; swarmbus.Swarm"}


class Started(Event):
    count: int


class PriceChanged(Event):
    name: str
    seq: int
    data: FrozenDict[str, str]


class Source(Role):
    @on
    async def start(self, event: Started, ctx: RoleContext[PriceChanged]) -> None:
        for number in range(event.count):
            await ctx.publish(PriceChanged(**payload(number)))


class Sink(Role):
    def __init__(self, handled: list[int]) -> None:
        self._handled = handled

    @on
    async def take(self, event: PriceChanged) -> None:
        self._handled[0] += event.seq >= 0


@case("w1", "Swarm.run")
async def w1(clock: Any, n: int, subs: int) -> tuple[int, str]:
    """Publish n events from one handler to the handlers of other roles."""
    handled = [0]
    sinks = [Sink(handled).named(f"sink{number}") for number in range(subs)]
    rows = (CLIENT, Started, "source"), ("source", PriceChanged, tuple(sink.name for sink in sinks))
    async with Swarm(Source(), *sinks, table=EventTable(*rows)).open() as live:
        clock.start()
        run = await live.submit(Started(count=n))
        await run.result()
        clock.stop()
    return handled[0], "typed table, checked; state, joins and endings kept by the ledger"


class Step(BaseModel, frozen=True):
    seq: int
    text: str


class Planned(Event):
    steps: tuple[Step, ...]


class StepDone(Event):
    seq: int
    result: str


class Finished(Event):
    done: int


class Planner(Role):
    @on
    async def plan(self, event: Started) -> Planned:
        return Planned(steps=tuple(Step(seq=number, text="do it") for number in range(event.count)))


class Executor(Role):
    def __init__(self, ledger: Any, delay: float) -> None:
        self._ledger = ledger
        self._delay = delay

    @on(Planned, each="steps")
    async def execute(self, step: Step) -> StepDone:
        self._ledger.enter()
        await anyio.sleep(self._delay)
        self._ledger.leave()
        return StepDone(seq=step.seq, result="ok")


class Aggregator(Role):
    @join(StepDone, per=Planned)
    async def gather(self, _plan: Planned, done: Joined[StepDone]) -> Finished:
        return Finished(done=len({each.seq for each in done.done}))


@case("w2", "Swarm.run")
async def w2(clock: Any, n: int, workers: int, delay: float) -> tuple[int, str]:
    """Plan n steps, carry them out on workers, and join what is done."""
    ledger = Ledger()
    table = EventTable(
        (CLIENT, Started, "planner"),
        ("planner", Planned, ("executor", "aggregator")),
        ("executor", StepDone, "aggregator"),
        ("aggregator", Finished, CLIENT),
        result=Finished,
    )
    executor: Any = Executor(ledger, delay).named("executor", concurrency=workers)
    async with Swarm(Planner(), executor, Aggregator(), table=table).open() as live:
        clock.start()
        result = await (await live.submit(Started(count=n))).result()
        clock.stop()
    return result.output.done, f"peak concurrency {ledger.peak}"


@case("w3", "Agent.run")
async def w3(clock: Any, n: int) -> tuple[int, str]:
    """One run of n turns with a tool call each, then the answer."""
    ledger = Ledger()

    @tool
    async def add(a: int, b: int) -> int:
        """Add two numbers."""
        return int(ledger.add(a, b))

    model = ScriptedModel([*(call("add", a=turn, b=1) for turn in range(n)), "done"])
    agent = Agent(model, tools=[add], limits=Limits(turns=n + 1, tool_calls=n))
    clock.start()
    answer = await agent.run("go")
    clock.stop()
    assert answer.output == "done"
    return ledger.calls, f"history {len(model.requests[-1].messages)}"


@case("w3b", "Agent.run")
async def w3b(clock: Any, n: int, calls: int, delay: float) -> tuple[int, str]:
    """Turns of several tool calls each, which take a while."""
    ledger = Ledger()

    @tool
    async def add(a: int, b: int) -> int:
        """Add two numbers."""
        return int(await ledger.slow_add(a, b, delay))

    replies = [[call("add", a=turn, b=number) for number in range(calls)] for turn in range(n)]
    agent = Agent(ScriptedModel([*replies, "done"]), tools=[add], limits=Limits(turns=n + 1, tool_calls=n * calls))
    clock.start()
    answer = await agent.run("go")
    clock.stop()
    assert answer.output == "done"
    return ledger.calls, f"peak concurrency {ledger.peak}"
