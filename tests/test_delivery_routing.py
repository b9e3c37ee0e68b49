"""Where an event goes: what the user code that decides it may return, and what an event from outside may answer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from support.jobs import WorkDone, WorkGiven, WorkSeen, started, worker_swarm
from swarmbus import CLIENT, Event, EventTable, External, Joined, Role, RoleContext, RunFailed, Swarm, join, on
from swarmbus.delivery.journal import MemoryJournal
from swarmbus.errors import EventEncodingError, PublishError

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


@pytest.mark.parametrize("journal", [None, MemoryJournal()], ids=["no journal", "journal"])
@pytest.mark.parametrize("early", [True, False], ids=["early", "returned"])
async def test_what_json_can_not_carry_is_refused_where_it_is_published(journal: Any, early: bool) -> None:
    class Worker(Role):
        @on
        async def work(self, event: WorkGiven, ctx: RoleContext[WorkSeen]) -> WorkSeen | None:
            seen = WorkSeen(text="caf\udce9")
            if early:
                await ctx.publish(seen)
            return seen

    table = EventTable((CLIENT, WorkGiven, "worker"), ("worker", WorkSeen, CLIENT), result=WorkSeen)
    swarm = Swarm(Worker(), table=table, journal=journal)
    with pytest.raises(RunFailed, match=r"EventEncodingError: WorkSeen\.text can't be written to JSON") as caught:
        await swarm.run(WorkGiven())
    assert isinstance(caught.value.__cause__, EventEncodingError)


class Held(Event):
    held: Any


async def test_an_event_from_outside_that_json_can_not_carry_starts_no_run() -> None:
    class Worker(Role):
        @on
        async def work(self, event: WorkGiven | Held) -> WorkDone:
            return WorkDone()

    async with worker_swarm(Worker(), (CLIENT, Held, "worker")).open() as live:
        with pytest.raises(EventEncodingError, match=r"Held\.held can't be written to JSON"):
            await live.submit(Held(held=10**5000))
        assert live.bus.runs == {}


async def test_unfit_characters_that_are_sent_are_replaced_and_reported() -> None:
    class Worker(Role):
        @on
        async def wait(self, event: WorkGiven) -> None: ...

        @on
        async def take(self, event: Answered) -> WorkDone:
            return WorkDone(text=event.text)

    async with started(worker_swarm(Worker(), (CLIENT, Answered, "worker")), WorkGiven()) as (_, run):
        await run.send(Answered(text="caf\udce9"))
        result = await run.result()
    assert result.output.text == "caf\N{REPLACEMENT CHARACTER}"
    assert result.warnings == ("1 character that no text can hold was replaced in answered",)
