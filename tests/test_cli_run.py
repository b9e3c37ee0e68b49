"""`swarmbus run`: the report of a run as JSON, and where its first event and its model come from."""

from __future__ import annotations

import json
import subprocess
import sys
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


class Echo(Role):
    @on
    async def tell(self, event: Asked) -> Told:
        return Told(text=event.text)


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


def echo() -> Swarm[Any]:
    return Swarm(Echo(), table=EventTable((CLIENT, Asked, "echo"), ("echo", Told, CLIENT), result=Told))


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


# --- the event -------------------------------------------------------------------------------------------------------


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("name", ["", "asked="])
@pytest.mark.parametrize("mark", ["", "\ufeff"], ids=["", "marked"])
def test_an_event_may_stand_in_a_file(name: str, mark: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "größe=1.json").write_text(f'{mark}{{"text": "größe"}}\n', encoding="utf-8")
    code, out = run(capsys, "echo", event=f"{name}@größe=1.json")
    assert (code, json.loads(out)["output"]) == (0, {"text": "größe"})


@pytest.mark.parametrize("event", ["-", "asked=-"])
def test_an_event_may_come_from_standard_input(event: str) -> None:
    command = [sys.executable, "-m", "swarmbus", "run", f"{HERE}:echo", "--event", event]
    ended = subprocess.run(
        command, input='{"text": "größe"}', capture_output=True, encoding="utf-8", check=False, timeout=50
    )
    assert (ended.returncode, json.loads(ended.stdout)["output"]) == (0, {"text": "größe"})


@pytest.mark.parametrize(
    ("event", "says"),
    [
        ("@nosuch.json", "nosuch.json can't be read: No such file or directory"),
        ("@.", ". can't be read: Is a directory"),
        ("@binary", "the JSON is no Asked"),
        ("event.json", "to read it from the file event.json, write @event.json"),
        ("\udcff", "the JSON is no Asked"),
        ("@/dev/zero", "/dev/zero holds more than 64 MiB, which is no event"),
    ],
    ids=["no file", "folder", "not UTF-8", "without the sign", "no text", "endless"],
)
def test_an_event_that_cannot_be_read_is_a_usage_error(
    event: str, says: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "binary").write_bytes(b'{"text": "\xff"}')
    (folder / "event.json").write_text(EVENT)
    assert main(["run", f"{HERE}:echo", "--event", event]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert says in err


def test_an_endless_standard_input_is_a_usage_error() -> None:
    command = [sys.executable, "-m", "swarmbus", "run", f"{HERE}:echo", "--event", "-"]
    with open("/dev/zero", "rb") as zeros:  # noqa: PTH123
        ended = subprocess.run(command, stdin=zeros, capture_output=True, text=True, check=False, timeout=50)
    assert (ended.returncode, ended.stdout) == (2, "")
    assert "standard input holds more than 64 MiB" in ended.stderr


def test_an_empty_model_is_a_usage_error(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", f"{HERE}:swarm", "--event", EVENT, "--model", ""]) == 2
    assert "no model is known as ''" in capsys.readouterr().err
