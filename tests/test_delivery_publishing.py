"""What is published, by whom and when it arrives; what may not be published; what comes from outside."""

from __future__ import annotations

import re
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import anyio
import anyio.lowlevel
import pytest
from pydantic import BaseModel

from support.clock import FakeClock
from support.jobs import WorkDone, WorkGiven, WorkSeen, events_in, read_all, started, worker_swarm
from swarmbus import CLIENT, Event, EventTable, External, Retry, Retryable, Role, RoleContext, RunFailed, Swarm, on
from swarmbus.errors import EventError, PublishError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

SCREEN = External("screen")


class Surprise(Event):
    """Stands in no table."""


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (Surprise(), r"Surprise; annotate the context as RoleContext\[Surprise\]"),
        ("text", "str; publish an event, of a class"),
        (WorkSeen, "the class WorkSeen; publish an event"),
        ([WorkSeen()], "list; publish an event"),
    ],
    ids=["of another class", "a text", "a class", "several"],
)
async def test_what_the_context_does_not_allow_raises_at_the_call_and_is_not_delivered(given: Any, told: str) -> None:
    seen: list[str] = []

    class Worker(Role):
        @on
        async def work(self, event: WorkGiven, ctx: RoleContext[WorkSeen]) -> WorkDone:
            with pytest.raises(PublishError, match=rf"worker.work declares WorkSeen .*, but published {told}"):
                await ctx.publish(given)
            await ctx.publish(WorkSeen(text="allowed"))
            return WorkDone()

        @on
        async def see(self, event: WorkSeen) -> None:
            seen.append(event.text)

    result = await worker_swarm(Worker(), ("worker", WorkSeen, "worker")).run(WorkGiven())
    assert (seen, result.warnings) == (["allowed"], ())


async def test_returning_what_is_not_declared_fails_the_handler_with_the_types_named() -> None:
    class Worker(Role):
        @on
        async def work(self, event: WorkGiven) -> WorkDone:
            return Surprise()  # type: ignore[return-value]

    with pytest.raises(RunFailed) as caught:
        await worker_swarm(Worker()).run(WorkGiven())
    assert isinstance(caught.value.__cause__, PublishError)
    assert re.search(
        r"worker\.work \(.*\.py:\d+\) declares that it returns WorkDone, but returned Surprise",
        str(caught.value.__cause__),
    )


@pytest.mark.parametrize(
    ("given", "told"), [(None, "returned None"), ([], "returned nothing"), ((None,), "returned nothing")], ids=repr
)
async def test_returning_nothing_where_an_event_is_declared_fails_the_handler(given: Any, told: str) -> None:
    class Worker(Role):
        @on
        async def work(self, event: WorkGiven) -> WorkDone:
            return given  # type: ignore[no-any-return]

    with pytest.raises(RunFailed) as caught:
        await worker_swarm(Worker()).run(WorkGiven())
    assert isinstance(caught.value.__cause__, PublishError)
    assert re.search(
        rf"worker\.work \(.*\.py:\d+\) declares that it returns WorkDone, but {told}; return what it declares, or "
        r"annotate it with `WorkDone \| None` where it may publish nothing$",
        str(caught.value.__cause__),
    )


@pytest.mark.parametrize("kind", [None, WorkSeen | None, tuple[WorkSeen, ...], list[WorkSeen]], ids=str)
async def test_returning_nothing_is_right_where_the_annotation_allows_it(kind: Any) -> None:
    class Worker(Role):
        @on
        async def work(self, event: WorkGiven, ctx: RoleContext[WorkDone]) -> Any:
            await ctx.publish(WorkDone())

        @on
        async def see(self, event: WorkSeen) -> WorkSeen | None:
            return None

    Worker.work.__annotations__["return"] = kind
    result = await worker_swarm(Worker(), ("worker", WorkSeen, "worker")).run(WorkGiven())
    assert (result.output, result.failures, result.warnings) == (WorkDone(), (), ())


async def test_a_handler_that_publishes_what_is_not_declared_and_does_not_care_fails() -> None:
    seen: list[str] = []

    class Worker(Role):
        concurrency = 2

        @on
        async def work(self, event: WorkGiven, ctx: RoleContext[WorkSeen]) -> WorkDone:
            await ctx.publish(Surprise())  # type: ignore[arg-type]
            return WorkDone()

        @on
        async def see(self, event: Surprise | WorkSeen) -> None:
            seen.append(type(event).__name__)

    rows = ("worker", WorkSeen, "worker"), (CLIENT, Surprise, "worker")
    with pytest.raises(RunFailed) as caught:
        await worker_swarm(Worker(), *rows).run(WorkGiven())
    assert isinstance(caught.value.__cause__, PublishError)
    assert seen == []


async def test_a_subclass_that_the_table_does_not_name_is_refused() -> None:
    class Special(WorkDone):
        pass

    class Worker(Role):
        @on
        async def work(self, event: WorkGiven) -> WorkDone:
            return Special()

    with pytest.raises(RunFailed) as caught:
        await worker_swarm(Worker()).run(WorkGiven())
    assert isinstance(caught.value.__cause__, PublishError)
    assert "special" in str(caught.value.__cause__)


@pytest.mark.parametrize("early", [True, False], ids=["early", "returned"])
async def test_early_events_arrive_at_once_and_returned_ones_with_the_commit(early: bool) -> None:
    seen, go = list[str](), anyio.Event()

    class Worker(Role):
        concurrency = 2

        @on
        async def work(self, event: WorkGiven, ctx: RoleContext[WorkSeen]) -> tuple[WorkSeen | WorkDone, ...]:
            if early:
                await ctx.publish(WorkSeen(text="a"))
            await go.wait()
            return (WorkDone(),) if early else (WorkSeen(text="a"), WorkDone())

        @on
        async def see(self, event: WorkSeen) -> None:
            seen.append(event.text)

    async with started(worker_swarm(Worker(), ("worker", WorkSeen, "worker")), WorkGiven()) as (_, run):
        assert seen == (["a"] if early else [])
        go.set()
        await run.result()
    assert seen == ["a"]


async def test_early_events_stay_when_the_handler_fails_and_returned_ones_never_were() -> None:
    class Worker(Role):
        @on
        async def work(self, event: WorkGiven, ctx: RoleContext[WorkSeen]) -> tuple[WorkSeen | WorkDone, ...]:
            await ctx.publish(WorkSeen(text="early"))
            if ctx.attempt == 1:
                raise Retryable("after it")
            return (WorkSeen(text="returned"), WorkDone())

    async with worker_swarm(Worker(), ("worker", WorkSeen, SCREEN), retry=Retry(delay=0)).open() as live:
        run = await live.submit(WorkGiven())
        seen = events_in(await read_all(run), WorkSeen)
    assert [event.text for event in seen] == ["early", "returned"]


async def test_envelopes_say_what_caused_them_and_how_deep_they_are() -> None:
    class Worker(Role):
        @on
        async def work(self, event: WorkGiven) -> WorkSeen:
            return WorkSeen()

        @on
        async def see(self, event: WorkSeen) -> WorkDone:
            return WorkDone()

    async with worker_swarm(Worker(), ("worker", WorkSeen, "worker")).open() as live:
        run = await live.submit(WorkGiven())
        seen = [item for item in await read_all(run) if isinstance(getattr(item, "event", None), Event)]
    assert [(envelope.number, envelope.source, envelope.cause, envelope.hops) for envelope in seen] == [
        (1, "worker", 0, 1),
        (2, "worker", 1, 2),
    ]


class Payload(BaseModel, frozen=True):
    plain: int = 0


class RichPayload(Payload, frozen=True):
    extra: str


class Carried(Event):
    payload: Payload


@pytest.mark.parametrize("early", [True, False], ids=["early", "returned"])
async def test_an_event_that_would_lose_something_on_the_wire_is_refused(early: bool) -> None:
    class Worker(Role):
        @on
        async def work(self, event: WorkGiven, ctx: RoleContext[Carried]) -> tuple[Carried | WorkDone, ...]:
            carried = Carried(payload=RichPayload(extra="lost"))
            if early:
                await ctx.publish(carried)
            return (carried, WorkDone())

    with pytest.raises((RunFailed, EventError)) as caught:
        await worker_swarm(Worker(), ("worker", Carried, SCREEN)).run(WorkGiven())
    assert "payload" in str(caught.value)


async def test_a_role_may_publish_from_its_start_hook_before_later_roles_are_ready() -> None:
    ready: list[str] = []

    class Worker(Role):
        @asynccontextmanager
        async def lifespan(self) -> AsyncIterator[None]:
            await anyio.lowlevel.checkpoint()
            ready.append("worker")
            yield

        @on
        async def work(self, event: WorkGiven) -> WorkSeen:
            assert ready == ["worker", "late"]
            return WorkSeen(text=event.text)

    class Late(Role):
        @asynccontextmanager
        async def lifespan(self) -> AsyncIterator[None]:
            for _ in range(50):
                await anyio.lowlevel.checkpoint()
            ready.append("late")
            yield
            ready.append("closed")

        @on
        async def see(self, event: WorkSeen) -> WorkDone:
            return WorkDone(text=event.text)

    table = EventTable(
        (CLIENT, WorkGiven, "worker"), ("worker", WorkSeen, "late"), ("late", WorkDone, CLIENT), result=WorkDone
    )
    result = await Swarm(Worker(), Late(), table=table).run(WorkGiven(text="first of all"))
    assert (result.output.text, ready) == ("first of all", ["worker", "late", "closed"])


async def test_a_handler_of_several_events_runs_once_for_each_that_comes() -> None:
    handled: list[str] = []

    class Worker(Role):
        @on
        async def work(self, event: WorkGiven | WorkSeen) -> tuple[WorkGiven | WorkSeen | WorkDone, ...]:
            handled.append(type(event).__name__)
            answers: list[tuple[WorkGiven | WorkSeen | WorkDone, ...]] = [
                (WorkSeen(),),  # to the first WorkGiven
                (WorkGiven(), WorkSeen()),  # a wave of both
                (),
                (WorkDone(),),
            ]
            return answers[len(handled) - 1]

    rows = ("worker", WorkSeen, "worker"), ("worker", WorkGiven, "worker")
    await worker_swarm(Worker(), *rows).run(WorkGiven())
    assert handled == ["WorkGiven", "WorkSeen", "WorkGiven", "WorkSeen"]


async def test_an_event_goes_to_the_handler_whose_condition_takes_it() -> None:
    class Worker(Role):
        @on(WorkGiven, when=lambda event: event.text == "quick")
        async def quick(self, event: WorkGiven) -> WorkDone:
            return WorkDone(text="quickly")

        @on(WorkGiven, when=lambda event: event.text == "slow")
        async def slow(self, event: WorkGiven) -> WorkDone:
            return WorkDone(text="slowly")

    async with worker_swarm(Worker()).open() as live:
        assert (await (await live.submit(WorkGiven(text="slow"))).result()).output.text == "slowly"
        assert (await (await live.submit(WorkGiven(text="quick"))).result()).output.text == "quickly"
        with pytest.raises(
            PublishError, match=r"no `when` accepts this work_given: asked worker.quick .*, worker.slow"
        ):
            await live.submit(WorkGiven(text="neither"))
        assert live.bus.runs == {}


async def test_the_client_may_send_further_events_and_only_those_the_table_gives_it() -> None:
    clock = FakeClock()

    class Stop(Event):
        pass

    class Worker(Role):
        concurrency = 2

        @on
        async def work(self, event: WorkGiven) -> None:
            await clock.sleep_until(100)

        @on
        async def stop(self, event: Stop) -> WorkDone:
            return WorkDone(text="stopped")

    async with started(worker_swarm(Worker(), (CLIENT, Stop, "worker"), clock=clock), WorkGiven()) as (_, run):
        with pytest.raises(PublishError, match="work_seen"):
            await run.send(WorkSeen())
        await run.send(Stop())
        await clock.advance(10)
        assert (await run.result()).output.text == "stopped"


async def test_a_handler_cannot_wait_for_what_only_it_would_handle() -> None:
    """There is no call that awaits an answer: a handler ends, and the answer comes as an event of its own."""
    assert [name for name in dir(RoleContext) if "wait" in name or name in {"request", "call", "result"}] == []

    class Worker(Role):
        @on
        async def work(self, event: WorkGiven, ctx: RoleContext[WorkSeen]) -> None:
            await ctx.publish(WorkSeen(text="mine"))

        @on
        async def answer(self, event: WorkSeen) -> WorkDone:
            return WorkDone(text=event.text)

    with anyio.fail_after(5):
        result = await worker_swarm(Worker(), ("worker", WorkSeen, "worker")).run(WorkGiven())
    assert result.output.text == "mine"


class Special(WorkSeen):
    more: int = 0


class Listener(Role):
    """Hears the parent class alone."""

    def __init__(self) -> None:
        self.heard: list[tuple[str, Event]] = []

    @on
    async def hear(self, event: WorkSeen) -> None:
        self.heard.append(("hear", event))


class Both(Listener):
    @on
    async def listen(self, event: Special) -> None:
        self.heard.append(("listen", event))


async def test_a_child_event_reaches_each_role_once_in_its_most_specific_handler_and_whole() -> None:
    class Worker(Role):
        @on
        async def work(self, event: WorkGiven) -> tuple[Special | WorkSeen | WorkDone, ...]:
            return (Special(text="a", more=1), WorkSeen(text="b"))

    listeners = ("listener", "both")
    table: EventTable[Event] = EventTable(
        (CLIENT, WorkGiven, "worker"),
        ("worker", Special, listeners),
        ("worker", WorkSeen, listeners),
        ("worker", WorkDone, CLIENT),
    )
    listener, both = Listener(), Both()
    await Swarm(Worker(), listener, both, table=table).run(WorkGiven())
    child, parent = Special(text="a", more=1), WorkSeen(text="b")
    assert listener.heard == [("hear", child), ("hear", parent)]
    assert both.heard == [("listen", child), ("hear", parent)]


Kind = TypeVar("Kind")


class Measured(Event, Generic[Kind]):
    value: Kind


async def test_each_form_of_a_generic_event_goes_to_its_own_role_and_all_to_who_takes_any() -> None:
    heard: list[tuple[str, Any]] = []

    class Worker(Role):
        @on
        async def work(self, event: WorkGiven) -> tuple[Measured[int] | Measured[str], ...]:
            return (Measured[int](value=1), Measured[str](value="a"))

    class Numbers(Role):
        @on
        async def hear(self, event: Measured[int]) -> None:
            heard.append(("numbers", event.value))

    class Texts(Role):
        @on
        async def hear(self, event: Measured[str]) -> None:
            heard.append(("texts", event.value))

    class Everything(Role):
        @on
        async def hear(self, event: Measured) -> None:  # type: ignore[type-arg]
            heard.append(("everything", event.value))

    table: EventTable[Event] = EventTable(
        (CLIENT, WorkGiven, "worker"),
        ("worker", Measured[int], ("numbers", "everything")),
        ("worker", Measured[str], ("texts", "everything")),
    )
    await Swarm(Worker(), Numbers(), Texts(), Everything(), table=table).run(WorkGiven())
    assert sorted(heard, key=str) == [("everything", "a"), ("everything", 1), ("numbers", 1), ("texts", "a")]
