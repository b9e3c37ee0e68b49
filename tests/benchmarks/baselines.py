"""What a person would write by hand for the same work, with `asyncio` and pydantic."""

from __future__ import annotations

import asyncio

from pydantic import BaseModel

PAYLOAD = {"name": "measured", "data": {"unit": "kPa", "place": "hall 3"}}


class Measured(BaseModel):
    name: str
    number: int
    data: dict[str, str]


class Step(BaseModel):
    number: int
    text: str


class Done(BaseModel):
    number: int
    text: str


async def bus(events: int, subscribers: int) -> int:
    """Bring validated events to subscribers over queues of 1,000; return how often one was handled."""
    queues = [asyncio.Queue[Measured | None](1000) for _ in range(subscribers)]
    handled = 0

    async def subscribe(queue: asyncio.Queue[Measured | None]) -> None:
        nonlocal handled
        while (event := await queue.get()) is not None:
            handled += event.number >= 0

    async with asyncio.TaskGroup() as group:
        for queue in queues:
            group.create_task(subscribe(queue))
        for number in range(events):
            event = Measured.model_validate({**PAYLOAD, "number": number})
            for queue in queues:
                await queue.put(event)
        for queue in queues:
            await queue.put(None)
    return handled


async def steps(count: int, workers: int, seconds: float = 0.0) -> int:
    """Plan steps, carry them out on workers, and gather what is done; return how many were."""
    planned = asyncio.Queue[Step | None]()
    done = asyncio.Queue[Done]()

    async def work() -> None:
        while (step := await planned.get()) is not None:
            await asyncio.sleep(seconds)
            await done.put(Done(number=step.number, text=step.text))

    gathered: set[int] = set()
    async with asyncio.TaskGroup() as group:
        for _ in range(workers):
            group.create_task(work())
        for number in range(count):
            await planned.put(Step(number=number, text="look"))
        while len(gathered) < count:
            gathered.add((await done.get()).number)
        for _ in range(workers):
            await planned.put(None)
    return len(gathered)


async def runs(count: int) -> int:
    """Do very small pieces of work one after the other, each with a queue and a task of its own."""
    return sum([await steps(1, 1) for _ in range(count)])
