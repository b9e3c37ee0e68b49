"""What is not async runs in a thread; what it returns to be awaited is awaited in the event loop, on each of them."""

from __future__ import annotations

import functools
import threading
from collections.abc import Awaitable, Callable
from typing import Any, ParamSpec, TypeVar

import anyio
import pytest

from support.jobs import WorkDone, WorkGiven, worker_swarm
from swarmbus import Agent, Role, RoleContext, ToolContext, on, tool
from swarmbus.models import ScriptedModel, call
from swarmbus.threads import call_in_thread

P = ParamSpec("P")
T = TypeVar("T")

pytestmark = pytest.mark.anyio


def plain(function: Callable[P, T]) -> Callable[P, T]:
    """Decorate as those do who know nothing of async functions."""

    @functools.wraps(function)
    def wrapper(*args: P.args, **kwargs: P.kwargs) -> T:
        return function(*args, **kwargs)

    return wrapper


async def at_home() -> bool:
    await anyio.lowlevel.checkpoint()
    return threading.current_thread() is threading.main_thread()


class AsyncCallable:
    async def __call__(self) -> bool:
        return await at_home()


async def test_a_function_is_called_in_a_thread_and_what_it_returns_to_be_awaited_comes_back() -> None:
    def work() -> Awaitable[bool]:
        assert threading.current_thread() is not threading.main_thread()
        return at_home()

    assert await (await call_in_thread(work))


async def test_an_async_handler_behind_a_plain_decorator_is_awaited() -> None:
    class Worker(Role):
        @on
        @plain
        async def work(self, event: WorkGiven) -> WorkDone:
            return WorkDone(text=str(await at_home()))

    assert (await worker_swarm(Worker()).run(WorkGiven())).output.text == "True"


@pytest.mark.parametrize(
    "function",
    [lambda: at_home(), AsyncCallable(), plain(at_home)],  # noqa: PLW0108  # that it is one is what is tested
    ids=["lambda", "callable", "plain"],
)
async def test_what_a_function_called_once_returns_to_be_awaited_is_awaited(function: Callable[[], Any]) -> None:
    class Worker(Role):
        @on
        async def work(self, event: WorkGiven, ctx: RoleContext) -> WorkDone:
            return WorkDone(text=str(await ctx.once("effect", function)))

    assert (await worker_swarm(Worker()).run(WorkGiven())).output.text == "True"


async def test_an_async_tool_behind_a_plain_decorator_is_awaited_and_may_tell_of_its_progress() -> None:
    told: list[Any] = []

    @tool
    @plain
    async def look(ctx: ToolContext) -> str:
        """Look."""
        ctx.progress("looking")
        return f"at home: {await at_home()}"

    model = ScriptedModel([call("look"), lambda request: request.messages[-1].content])
    agent = Agent(model, tools=[look], on_event=lambda event: told.append(getattr(event, "data", None)))
    assert (await agent.run("go")).output == "at home: True"
    assert "looking" in told


async def test_an_async_tool_may_tell_of_its_progress_in_a_thread_of_its_own() -> None:
    told: list[Any] = []

    @tool
    async def look(ctx: ToolContext) -> str:
        """Look."""
        await call_in_thread(lambda: ctx.progress("looking"))
        return "seen"

    model = ScriptedModel([call("look"), "done"])
    await Agent(model, tools=[look], on_event=lambda event: told.append(getattr(event, "data", None))).run("go")
    assert "looking" in told
