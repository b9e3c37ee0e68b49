"""A swarm that does as it is told by its first event: works, fails in part, waits, asks, overspends, blocks."""

from __future__ import annotations

import ctypes
import sys
import time
from typing import Any, Literal

import anyio
import anyio.to_thread

from swarmbus import (
    CLIENT,
    Budget,
    Event,
    EventTable,
    Joined,
    Role,
    RoleContext,
    Swarm,
    join,
    on,
)
from swarmbus.models import ScriptedModel

QUESTIONS: dict[str, tuple[str, Any]] = {
    "person": ("Which step?", str),
    "number": ("How many?", int),
    "agree": ("Agreed?\nAll of it?", bool),
    "colour": ("Which colour?", Literal["red", "green"]),
}


class Told(Event):
    steps: tuple[str, ...]


class Corrected(Event):
    steps: tuple[str, ...]


class Planned(Event):
    steps: tuple[str, ...]


class Done(Event):
    step: str


class Finished(Event):
    steps: tuple[str, ...]


class Planner(Role):
    @on(Told, Corrected)
    async def plan(self, event: Told | Corrected) -> Planned:
        return Planned(steps=event.steps)


class Worker(Role):
    concurrency = 4

    @on(Planned, each="steps")
    async def work(self, step: str, ctx: RoleContext) -> Done | None:
        match step:
            case "fail":
                raise ValueError("this step can't be done")
            case "slow":
                ctx.progress("waiting for a signal")
                await anyio.sleep(3)
            case "wait":
                ctx.progress("waiting for a signal")
                await anyio.sleep_forever()
            case "stick" | "thread":
                ctx.progress("waiting for a signal")
                await anyio.to_thread.run_sync(time.sleep, 60, abandon_on_cancel=step == "thread")
            case "block" | "native":
                block(step)
            case "spend":
                await ctx.ask("one")
                await ctx.ask("two")
            case "person" | "number" | "agree" | "colour":
                question, reply = QUESTIONS[step]
                step = str(await ctx.ask_person(question, reply=reply))
            case "silent":
                return None
            case _:
                pass
        return Done(step=step)


class Collector(Role):
    @join(Done, per=Planned, partial="proceed")
    async def collect(self, plan: Planned, done: Joined[Done]) -> Finished | None:
        return Finished(steps=tuple(each.step for each in done.done)) if "silent" not in plan.steps else None


class Strict(Role):
    @join(Done, per=Planned)
    async def collect(self, plan: Planned, done: Joined[Done]) -> Finished:
        return Finished(steps=tuple(each.step for each in done.done))


def block(step: str) -> None:
    """Block the event loop in Python, or in C, where no signal interrupts and no handler of one runs."""
    sys.stderr.write("waiting for a signal\n")
    sys.stderr.flush()
    if step == "block":
        time.sleep(60)
    mutex = ctypes.create_string_buffer(256)
    threads = ctypes.CDLL(None)
    threads.pthread_mutex_init(mutex, None)
    threads.pthread_mutex_lock(mutex)
    threads.pthread_mutex_lock(mutex)  # never returns


def make(collector: Role | None = None) -> Swarm[Finished]:
    """Return the swarm; by default one that takes what it gets."""
    name = "strict" if collector is not None else "collector"
    return Swarm(
        Planner(),
        Worker(),
        collector or Collector(),
        table=EventTable(
            (CLIENT, Told, "planner"),
            (CLIENT, Corrected, "planner"),
            ("planner", Planned, ("worker", name)),
            ("worker", Done, name),
            (name, Finished, CLIENT),
            result=Finished,
        ),
        model=ScriptedModel(["a reply", "another"]),
        budget=Budget(calls=1),
    )


def strict() -> Swarm[Finished]:
    """Return a swarm that fails with its first step that does."""
    return make(Strict())


swarm = make()
