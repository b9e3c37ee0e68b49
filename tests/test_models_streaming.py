"""A model that falls silent is given up, and one that never pauses leaves others their time."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import anyio
import anyio.lowlevel
import pytest

from support.jobs import WorkDone, WorkGiven, worker_swarm
from swarmbus import Limits, Role, RoleContext, RunFailed, on
from swarmbus.errors import AgentStopped, HandlerTimedOut, ServerSilent
from swarmbus.messages import AssistantMessage, ModelReply, ModelRequest, StreamPart, TextDelta
from swarmbus.models import FallbackModel, ScriptedModel
from swarmbus.thinking.agent import Agent
from swarmbus.thinking.models.streaming import STRETCH

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

pytestmark = pytest.mark.anyio

REPLY = ModelReply(AssistantMessage("at last"))


class Model:
    """Yields these parts; numbers are pauses in seconds."""

    name = "own"

    def __init__(self, *parts: Any) -> None:
        self.parts = parts
        self.closed = False

    async def stream(self, request: ModelRequest) -> AsyncIterator[StreamPart]:
        try:
            for part in self.parts:
                if isinstance(part, float):
                    await anyio.sleep(part)
                else:
                    yield part
        finally:
            self.closed = True


class Flood:
    """Yields for ever and waits for nothing."""

    name = "flood"

    async def stream(self, request: ModelRequest) -> AsyncIterator[StreamPart]:
        end = time.monotonic() + 5  # so that the test fails instead of going on for ever
        while time.monotonic() < end:
            yield TextDelta("x")
        yield REPLY


def limits(**given: Any) -> Limits:
    return Limits(**{"idle_timeout": 0.05, **given})


@pytest.mark.parametrize(
    "before", [(), (TextDelta("at "),), (REPLY,)], ids=["at once", "in between", "after the reply"]
)
async def test_a_silent_model_is_given_up(before: tuple[Any, ...]) -> None:
    model = Model(*before, 60.0, REPLY)
    with pytest.raises(
        ServerSilent, match=r"own gave no sign of life for 0\.05 seconds; give it longer with Limits\(idle_timeout=\)"
    ):
        await Agent(model, limits=limits()).run("go")
    assert model.closed


async def test_a_model_that_is_never_silent_for_long_may_go_on() -> None:
    drops = (0.1, TextDelta("x")) * 6
    assert (await Agent(Model(*drops, REPLY), limits=limits(idle_timeout=0.5)).run("go")).output == "at last"


async def test_without_a_limit_and_of_a_model_that_minds_it_silence_is_no_error() -> None:
    for model, given in ((Model(0.1, REPLY), limits(idle_timeout=None)), (Minding(0.1, REPLY), limits())):
        assert (await Agent(model, limits=given).run("go")).output == "at last"


class Minding(Model):
    minds_silence = True


async def test_where_a_model_is_silent_the_next_is_asked() -> None:
    model = FallbackModel([Model(60.0), ScriptedModel(["from the second"])])
    assert (await Agent(model, limits=limits()).run("go")).output == "from the second"
    with pytest.raises(ServerSilent):
        await Agent(FallbackModel([Model(60.0), Model(60.0)]), limits=limits()).run("go")


@pytest.mark.parametrize("model", [Flood(), FallbackModel([Flood(), Flood()])], ids=["alone", "among others"])
async def test_a_flood_ends_at_the_limit_of_seconds(model: Any) -> None:
    with pytest.raises(AgentStopped, match=r"\(seconds\)"):
        await Agent(model, limits=limits(seconds=0.1)).run("go")


async def test_a_flood_leaves_others_their_time() -> None:
    with anyio.move_on_after(0.1) as scope:
        await Agent(Flood(), limits=limits()).run("go")
    assert scope.cancelled_caught


async def test_a_flood_gives_way_no_more_often_than_others_need() -> None:
    turns = 0

    async def count() -> None:
        nonlocal turns
        while True:
            await anyio.lowlevel.checkpoint()
            turns += 1

    begun = time.monotonic()
    async with anyio.create_task_group() as group:
        group.start_soon(count)
        with anyio.move_on_after(0.2):
            await Agent(Flood(), limits=limits()).run("go")
        group.cancel_scope.cancel()
    assert 1 < turns < (time.monotonic() - begun) / STRETCH + 50


async def test_a_flood_ends_at_the_time_limit_of_its_handler() -> None:
    class Worker(Role):
        limits = Limits(seconds=None)

        @on
        async def work(self, event: WorkGiven, ctx: RoleContext) -> WorkDone:
            return WorkDone(text=await ctx.ask("go"))

    with pytest.raises(RunFailed) as caught:
        await worker_swarm(Worker(), model=Flood(), timeout=0.1, retry=None).run(WorkGiven())
    assert isinstance(caught.value.__cause__, HandlerTimedOut)
