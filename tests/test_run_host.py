"""What assembly keeps for one run: what its tools raised, told once for each kind."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

import anyio
import pytest

from support.jobs import JobGiven, PieceDone, WorkDone, WorkGiven, gatherer, job_swarm, worker_swarm
from swarmbus import Hooks, Role, RoleContext, on, tool
from swarmbus.errors import ToolError
from swarmbus.messages import ToolCall
from swarmbus.models import ScriptedModel, call

if TYPE_CHECKING:
    from swarmbus.messages import ModelRequest


@tool(effects="read_only")
async def look(place: str) -> str:
    """Look somewhere."""
    if place == "sea":
        raise ToolError("no boat")
    raise {"home": LookupError, "hell": OSError}[place](f"nothing at {place}")


def places(*names: str) -> list[ToolCall]:
    return [call("look", place=name) for name in names]


class Looker(Role):
    name = "worker"
    tools = (look,)

    @on
    async def work(self, event: WorkGiven, ctx: RoleContext) -> WorkDone:
        return WorkDone(text=await ctx.ask("Look."))


async def test_what_tools_raise_is_a_warning_of_the_run_for_each_kind(caplog: pytest.LogCaptureFixture) -> None:
    script = [places("home"), places("hell", "home", "sea"), "done"]
    result = await worker_swarm(Looker(), model=ScriptedModel(script)).run(WorkGiven(), run_id="r")
    assert result.output.text == "done"
    hint = (
        "its model was told and went on; mend that, or raise swarmbus.errors.ToolError with what the model is to read"
    )
    assert result.warnings == (
        f"in worker.work the tool look raised LookupError 2 times (nothing at home): {hint}",
        f"in worker.work the tool look raised OSError (nothing at hell): {hint}",
    )
    logged = [record for record in caplog.records if record.name == "swarmbus.thinking.batch"]
    assert {(record.levelno, record.getMessage().partition("\n")[0]) for record in logged} == {
        (logging.WARNING, "call call_1_1 of tool look in r/0>worker.work raised LookupError: nothing at home"),
        (logging.WARNING, "call call_2_1 of tool look in r/0>worker.work raised OSError: nothing at hell"),
        (logging.WARNING, "call call_2_2 of tool look in r/0>worker.work raised LookupError: nothing at home"),
    }
    assert all(f'File "{__file__}", line' in record.getMessage() for record in logged)


async def test_what_a_tool_raises_is_logged_in_text_that_can_be_written(caplog: pytest.LogCaptureFixture) -> None:
    @tool(effects="read_only")
    def see() -> str:
        """See."""
        raise OSError("no file caf\udce9.txt")

    class Seer(Role):
        name = "worker"
        tools = (see,)

        @on
        async def work(self, event: WorkGiven, ctx: RoleContext) -> WorkDone:
            return WorkDone(text=await ctx.ask("?"))

    await worker_swarm(Seer(), model=ScriptedModel([call("see"), "done"])).run(WorkGiven())
    assert "OSError: no file caf\ufffd.txt" in caplog.text
    assert caplog.text.encode()


@pytest.mark.parametrize("hook", ["before_tool_call", "after_tool_call"])
async def test_what_a_hook_around_a_tool_raises_is_a_warning_too(hook: Any) -> None:
    def broken(*_: Any) -> Any:
        raise KeyError("guard")

    @tool(effects="read_only")
    def see() -> str:
        """See."""
        return "seen"

    class Seer(Role):
        tools = (see,)

        @on
        async def work(self, event: WorkGiven, ctx: RoleContext) -> WorkDone:
            return WorkDone(text=await ctx.ask("Look.", hooks=Hooks(**{hook: broken})))

    swarm = worker_swarm(Seer().named("worker"), model=ScriptedModel([call("see"), "done"]))
    (warning,) = (await swarm.run(WorkGiven())).warnings
    assert warning.startswith("in worker.work a hook around the tool see raised KeyError ('guard'): ")


async def test_a_tool_that_takes_too_long_is_a_warning_that_names_the_setting() -> None:
    @tool(effects="read_only", timeout=0.01)
    async def wait() -> None:
        """Wait."""
        await anyio.sleep_forever()

    class Waiter(Role):
        tools = (wait,)

        @on
        async def work(self, event: WorkGiven, ctx: RoleContext) -> WorkDone:
            return WorkDone(text=await ctx.ask("Wait."))

    swarm = worker_swarm(Waiter().named("worker"), model=ScriptedModel([call("wait"), "done"]))
    (warning,) = (await swarm.run(WorkGiven())).warnings
    told = "no result within 0.01 seconds; give it longer with @tool(timeout=) or Limits(tool_timeout=)"
    assert warning.startswith(f"in worker.work the tool wait raised TimeoutError ({told}): ")


async def test_what_the_items_of_a_map_meet_is_told_together() -> None:
    class Worker(Role):
        tools = (look,)

        @on(JobGiven, each="pieces")
        async def work(self, piece: int, ctx: RoleContext) -> PieceDone:
            await ctx.ask("Look.", history=())
            return PieceDone(piece=piece)

    def reply(request: ModelRequest) -> Any:
        return "done" if len(request.messages) > 1 else call("look", place="home")

    swarm = job_swarm(Worker(), gatherer(), model=ScriptedModel([reply] * 6))
    (warning,) = (await swarm.run(JobGiven(pieces=(1, 2, 3)))).warnings
    assert warning.startswith("in worker.work the tool look raised LookupError 3 times (nothing at home): ")


async def test_arguments_that_do_not_fit_are_logged_with_the_role_and_handler(caplog: pytest.LogCaptureFixture) -> None:
    model = ScriptedModel([call("look", where="home"), "done"])
    await worker_swarm(Looker(), model=model).run(WorkGiven(), run_id="r")
    (record,) = [record for record in caplog.records if record.name == "swarmbus.thinking.batch"]
    told = "call call_1_1 of tool look in r/0>worker.work has arguments that do not fit: "
    assert record.getMessage() == told + "place: Field required; where: Extra inputs are not permitted, got 'home'"
