"""The same work as swarms: one publishing handler and its subscribers; plan, execute, aggregate; a role with state."""

from __future__ import annotations

from typing import Any

import anyio
from pydantic import BaseModel

from benchmarks.baselines import PAYLOAD
from swarmbus import CLIENT, Event, EventTable, FrozenDict, Joined, Role, RoleContext, Swarm, join, on


class Started(Event):
    count: int


class Measured(Event):
    name: str
    number: int
    data: FrozenDict[str, str]


class Source(Role):
    @on
    async def start(self, event: Started, ctx: RoleContext[Measured]) -> None:
        for number in range(event.count):
            await ctx.publish(Measured.model_validate({**PAYLOAD, "number": number}))


class Sink(Role):
    def __init__(self, seen: list[int]) -> None:
        self._seen = seen

    @on
    async def take(self, event: Measured) -> None:
        self._seen[0] += event.number >= 0


class Counts(BaseModel, frozen=True):
    handled: int = 0
    last: FrozenDict[str, int] = FrozenDict()


class Counter(Role):
    State = Counts

    @on
    async def take(self, event: Measured, counts: Counts, ctx: RoleContext) -> None:
        ctx.update(handled=counts.handled + 1)
        ctx.put("last", event.name, event.number)


async def bus(events: int, subscribers: int) -> int:
    """Bring events from one handler to the handlers of several roles; return how often one was handled."""
    seen = [0]
    sinks = [Sink(seen).named(f"sink{number}") for number in range(subscribers)]
    names = tuple(sink.name for sink in sinks)
    table = EventTable((CLIENT, Started, "source"), ("source", Measured, names))
    await Swarm(Source(), *sinks, table=table).run(Started(count=events))
    return seen[0]


async def state(events: int, runs: int) -> int:
    """Bring events to a role that changes its state at each, in some runs of one swarm; return how many there were."""
    table = EventTable((CLIENT, Started, "source"), ("source", Measured, "counter"))
    async with Swarm(Source(), Counter(), table=table).open() as live:
        for _ in range(runs):
            await (await live.submit(Started(count=events))).result()
    return events * runs


class Asked(Event):
    count: int


class Step(BaseModel, frozen=True):
    number: int
    text: str


class Planned(Event):
    steps: tuple[Step, ...]


class Done(Event):
    number: int
    text: str


class Ready(Event):
    count: int


class Planner(Role):
    @on
    async def plan(self, event: Asked) -> Planned:
        return Planned(steps=tuple(Step(number=number, text="look") for number in range(event.count)))


class Worker(Role):
    def __init__(self, seconds: float) -> None:
        self._seconds = seconds

    @on(Planned, each="steps")
    async def work(self, step: Step) -> Done:
        await anyio.sleep(self._seconds)
        return Done(number=step.number, text=step.text)


class Gatherer(Role):
    @join(Done, per=Planned)
    async def gather(self, _plan: Planned, done: Joined[Done]) -> Ready:
        return Ready(count=len({one.number for one in done.done}))


def steps_swarm(workers: int, seconds: float) -> Swarm[Ready]:
    """Return the swarm of plan, execute and aggregate."""
    table = EventTable(
        (CLIENT, Asked, "planner"),
        ("planner", Planned, ("worker", "gatherer")),
        ("worker", Done, "gatherer"),
        ("gatherer", Ready, CLIENT),
        result=Ready,
    )
    worker: Any = Worker(seconds).named("worker", concurrency=workers)
    return Swarm(Planner(), worker, Gatherer(), table=table)


async def steps(count: int, workers: int, seconds: float = 0.0) -> int:
    """Plan steps, carry them out, and gather what is done; return how many were."""
    return (await steps_swarm(workers, seconds).run(Asked(count=count))).output.count


async def runs(count: int) -> int:
    """Do many small runs of one open swarm, one after the other."""
    async with steps_swarm(1, 0.0).open() as live:
        return sum([(await (await live.submit(Asked(count=1))).result()).output.count for _ in range(count)])
