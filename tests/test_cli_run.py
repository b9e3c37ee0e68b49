"""`swarmbus run`: the report of a run as JSON, and where its first event and its model come from."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from swarmbus import CLIENT, Event, EventTable, Limits, Role, RoleContext, Swarm, on
from swarmbus.cli import main
from swarmbus.errors import AgentStopped
from swarmbus.models import AssistantMessage, ModelReply, ScriptedModel, Usage
from swarmbus.models import call as tool_call

HERE = Path(__file__)
EVENT = '{"text": "one"}'


class Asked(Event):
    text: str


class Told(Event):
    text: str


class Demanding(Exception):
    """An error that can't be copied: its class wants more than its text."""

    def __init__(self, place: str, reason: str) -> None:
        super().__init__(f"{place}: {reason}")


class Teller(Role):
    limits = Limits(turns=1)

    @on
    async def tell(self, event: Asked, ctx: RoleContext) -> Told:
        if event.text == "demand":
            raise Demanding("here", "no")
        return Told(text=await ctx.ask(event.text))


def make(result: type[Told] | None, *replies: object) -> Swarm[Any]:
    table: EventTable[Any] = EventTable((CLIENT, Asked, "teller"), ("teller", Told, CLIENT), result=result)
    return Swarm(Teller(), table=table, model=ScriptedModel(list(replies)))


def swarm() -> Swarm[Any]:
    return make(Told, "a reply")


def endless() -> Swarm[Any]:
    return make(Told, [tool_call("nothing")], [tool_call("nothing")])


def quiet() -> Swarm[Any]:
    return make(None, "a reply")


def counted() -> Swarm[Any]:
    return make(Told, ModelReply(AssistantMessage("a reply"), Usage(3, 2, calls=1)))


def estimated() -> Swarm[Any]:
    return make(Told, ModelReply(AssistantMessage("a reply"), Usage(3, 2, calls=1, estimated=True)))


def run(capsys: pytest.CaptureFixture[str], maker: str = "swarm", *options: str, event: str = EVENT) -> tuple[int, str]:
    """Run a swarm of this file, and return the exit code and what went to standard output."""
    code = main(["run", f"{HERE}:{maker}", "--event", event, *options])
    return code, capsys.readouterr().out


# --- the report ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("maker", "event", "error"),
    [("endless", EVENT, AgentStopped.__name__), ("swarm", '{"text": "demand"}', Demanding.__name__)],
    ids=["of ours", "of the user's"],
)
def test_an_error_that_cannot_be_copied_costs_no_report(
    maker: str, event: str, error: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out = run(capsys, maker, event=event)
    report = json.loads(out)
    assert (code, report["status"]) == (1, "failed")
    (failure,) = report["failures"]
    assert (failure["role"], failure["error_type"]) == ("teller", error)
    assert "exception" not in failure


@pytest.mark.parametrize(("maker", "expected"), [("counted", False), ("estimated", True)])
def test_estimated_is_true_or_false_everywhere(maker: str, expected: bool, capsys: pytest.CaptureFixture[str]) -> None:
    report = json.loads(run(capsys, maker)[1])
    assert [report["usage"]["estimated"], report["usage_by_role"]["teller"]["estimated"]] == [expected, expected]


def test_a_swarm_without_a_result_says_why_there_is_no_output(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", f"{HERE}:quiet", "--event", EVENT]) == 0
    out, err = capsys.readouterr()
    report = json.loads(out)
    assert (report["status"], report["output"]) == ("done", None)
    assert "names no `result=`" in report["reason"]
    assert report["reason"] in err
