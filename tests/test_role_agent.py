"""What a role gives its agent: the tools that the check looks at before any model is asked."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from support.jobs import WorkDone, WorkGiven, worker_swarm
from swarmbus import Role, RoleContext, WiringError, on, tool
from swarmbus.models import ScriptedModel

pytestmark = pytest.mark.anyio


@tool(effects="read_only")
def search(words):  # type: ignore[no-untyped-def]
    """Search."""


@tool(effects="read_only")
def read(**where: str) -> None:
    """Read."""


@tool(effects="read_only")
def look(place: str) -> None:
    """Look."""


@tool(name="look", effects="read_only")
def see(place: str) -> None:
    """See."""


class Worker(Role):
    @on
    async def work(self, event: WorkGiven, ctx: RoleContext) -> WorkDone:
        return WorkDone(text=await ctx.ask("go"))


@pytest.mark.parametrize(
    ("tools", "told", "at"),
    [
        ((look, search), "search: parameter 'words' has no annotation; the model needs its type", search),
        ((read,), "read: parameter 'where' can't be given by name, as a model does", read),
        ((look, see), "two tools are named 'look': rename one with @tool(name=...)", see),
    ],
    ids=["no annotation", "any keywords", "two of one name"],
)
def test_a_tool_that_no_model_can_call_is_a_finding(tools: tuple[Any, ...], told: str, at: Any) -> None:
    (found,) = worker_swarm(Worker().named("worker", tools=tools)).check()
    assert (found.code, found.severity, found.role) == ("SB403", "error", "worker")
    assert found.message == f"worker has a tool that no model can call: {told}"
    assert found.where == f"{Path(__file__)}:{at.function.__code__.co_firstlineno}"


async def test_a_swarm_with_such_a_tool_does_not_open() -> None:
    model = ScriptedModel(["done"])
    with pytest.raises(WiringError, match="SB403"):
        await worker_swarm(Worker().named("worker", tools=(search,)), model=model).run(WorkGiven())
    assert model.requests == []


def test_a_tool_of_the_roles_own_and_a_plain_function_are_no_finding() -> None:
    class Worker(Role):
        @tool(effects="read_only")
        def own(self, place: str) -> str:
            """Look at it."""
            return place

        tools = (own, look)

        @on
        async def work(self, event: WorkGiven, ctx: RoleContext) -> WorkDone:
            return WorkDone(text=await ctx.ask("go"))

    assert worker_swarm(Worker()).check() == []
