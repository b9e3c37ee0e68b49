"""Where an event goes: what the user code that decides it may return, and what an event from outside may answer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from support.jobs import WorkDone, WorkGiven, WorkSeen, started, worker_swarm
from swarmbus import CLIENT, Event, External, Joined, Role, join, on
from swarmbus.errors import PublishError

if TYPE_CHECKING:
    from collections.abc import Callable


class Answered(Event):
    text: str = ""


async def awaited(value: object) -> object:
    return value


def soon(event: WorkGiven) -> object:
    return awaited(event)


@pytest.mark.parametrize(
    ("returned", "told"),
    [
        (soon, "something to be awaited or iterated; write a plain function that returns True or False"),
        (lambda event: (part for part in event.text), "something to be awaited or iterated"),
        (lambda event: event.text.isupper, "a function, which counts as True; call it"),
    ],
    ids=["coroutine", "generator", "method"],
)
async def test_a_condition_that_would_always_be_true_is_refused(
    returned: Callable[[WorkGiven], Any], told: str
) -> None:
    class Worker(Role):
        @on(WorkGiven, when=returned)
        async def work(self, event: WorkGiven) -> WorkDone:
            return WorkDone()

    with pytest.raises(PublishError, match=rf"`when` of worker.work .* asked about this work_given, returned {told}"):
        await worker_swarm(Worker()).run(WorkGiven())


@pytest.mark.parametrize(
    ("returned", "told"),
    [
        (soon, "no sequence"),
        (lambda event: event.text, "a text, which would be taken letter by letter"),
        (lambda event: {*event.text}, "a set, which has no order of its own"),
        (lambda event: {event.text: 1}, "a mapping"),
        (lambda event: event, "no sequence"),
        (lambda event: len(event.text), "no sequence"),
    ],
    ids=["coroutine", "text", "set", "mapping", "model", "number"],
)
async def test_items_and_promised_keys_come_as_a_sequence(returned: Callable[[WorkGiven], Any], told: str) -> None:
    class Mapped(Role):
        name = "worker"

        @on(WorkGiven, each=returned)
        async def work(self, item: str) -> WorkDone:
            return WorkDone()

    class Promised(Role):
        name = "worker"

        @on
        async def see(self, event: WorkGiven) -> WorkSeen:
            return WorkSeen()

        @join(WorkSeen, per=WorkGiven, expect=returned)
        async def work(self, event: WorkGiven, seen: Joined[WorkSeen]) -> WorkDone:
            return WorkDone()

    row = "worker", WorkSeen, "worker"
    for option, swarm in {"each": worker_swarm(Mapped()), "expect": worker_swarm(Promised(), row)}.items():
        with pytest.raises(PublishError, match=rf"`{option}` of worker.work .* this work_given, returned {told}"):
            await swarm.run(WorkGiven(text="ab"))


DESK = External("desk")


@pytest.mark.parametrize("cause", [0, 2, 99, -1])
async def test_an_answer_from_outside_names_an_envelope_that_left_the_swarm(cause: int) -> None:
    class Worker(Role):
        @on
        async def ask(self, event: WorkGiven) -> WorkSeen | None:
            return WorkSeen() if event.text == "ask" else None

        @on
        async def take(self, event: Answered) -> WorkDone:
            return WorkDone(text=event.text)

    rows = ("worker", WorkSeen, DESK), (DESK, Answered, "worker"), (CLIENT, Answered, "worker")
    async with started(worker_swarm(Worker(), *rows), WorkGiven(text="ask")) as (_, run):
        with pytest.raises(ValueError, match=rf"cause={cause}\) takes an envelope that left .*; those that did: 1$"):
            await run.send(Answered(), source=DESK, cause=cause)
        await run.send(Answered(text="yes"), source=DESK, cause=1)
        assert (await run.result()).output.text == "yes"
