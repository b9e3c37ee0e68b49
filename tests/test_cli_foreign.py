"""Code of the user's on the command line: what it writes and how it ends is never taken for the result."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

SWARM = """
import ctypes, os, sys
from swarmbus import CLIENT, Event, EventTable, Role, Swarm, on

def noise(name):
    print(name, "by print")
    os.system(f"echo {name} by a program")
    os.write(1, f"{name} by its number\\n".encode())

class Asked(Event):
    text: str

class Told(Event):
    text: str

class Teller(Role):
    @on
    SIGNATURE
        noise("handler")
        BODY
        return Told(text="told")

noise("module")
swarm = Swarm(Teller(), table=EventTable((CLIENT, Asked, "teller"), ("teller", Told, CLIENT), result=Told))
"""
ASYNC = "async def tell(self, event: Asked) -> Told:"
NOISE = ["by print", "by a program", "by its number"]


def swarmbus(folder: Path, *arguments: str, body: str = "", signature: str = ASYNC) -> subprocess.CompletedProcess[str]:
    (folder / "app.py").write_text(SWARM.replace("BODY", body).replace("SIGNATURE", signature))
    command = [sys.executable, "-m", "swarmbus", *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, timeout=50)


@pytest.mark.parametrize("arguments", [("check", "app", "--format", "json"), ("table", "app"), ("graph", "app")])
def test_what_a_module_writes_is_no_part_of_the_result(arguments: tuple[str, ...], tmp_path: Path) -> None:
    ended = swarmbus(tmp_path, *arguments)
    assert ended.returncode == 0
    assert ended.stdout
    assert "by " not in ended.stdout
    assert [how for how in NOISE if f"module {how}\n" not in ended.stderr] == []


@pytest.mark.parametrize("signature", [ASYNC, ASYNC.removeprefix("async ")], ids=["async", "in a thread"])
def test_what_a_handler_writes_is_no_part_of_the_report(signature: str, tmp_path: Path) -> None:
    ended = swarmbus(tmp_path, "run", "app", "--event", '{"text": "one"}', signature=signature)
    assert (ended.returncode, json.loads(ended.stdout)["output"]) == (0, {"text": "told"})
    assert [how for how in NOISE if f"handler {how}\n" not in ended.stderr] == []


@pytest.mark.parametrize("signature", [ASYNC, ASYNC.removeprefix("async ")], ids=["async", "in a thread"])
@pytest.mark.parametrize(
    ("body", "how"),
    [
        ("sys.exit()", "SystemExit;"),
        ("sys.exit(0)", "SystemExit (0);"),
        ("sys.exit(3)", "SystemExit (3);"),
        ("sys.exit('fatal')", "SystemExit (fatal);"),
        ("raise KeyboardInterrupt", "KeyboardInterrupt;"),
    ],
)
def test_a_handler_that_ends_the_program_has_failed(body: str, how: str, signature: str, tmp_path: Path) -> None:
    ended = swarmbus(tmp_path, "run", "app", "--event", '{"text": "one"}', body=body, signature=signature)
    report = json.loads(ended.stdout)
    assert (ended.returncode, report["status"], report["output"]) == (1, "failed", None)
    assert report["reason"].startswith(f"the swarm's own code ended the program by {how}")
    assert ended.stderr.rstrip().endswith(report["reason"])
    assert body in ended.stderr
