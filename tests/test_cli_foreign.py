"""Code of the user's on the command line: what it writes and how it ends is never taken for the result."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

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
        ("raise GeneratorExit('over')", "GeneratorExit (over);"),
        ("raise type('Own', (BaseException,), {})('mine')", "Own (mine);"),
        ("raise type('Mute', (SystemExit,), {'__str__': None})", "Mute (<Mute that can't be shown: TypeError>);"),
    ],
)
def test_a_handler_that_ends_the_program_has_failed(body: str, how: str, signature: str, tmp_path: Path) -> None:
    ended = swarmbus(tmp_path, "run", "app", "--event", '{"text": "one"}', body=body, signature=signature)
    report = json.loads(ended.stdout)
    assert (ended.returncode, report["status"], report["output"]) == (1, "failed", None)
    assert report["reason"].startswith(f"the swarm's own code ended the program by {how}")
    assert ended.stderr.rstrip().endswith(report["reason"])
    assert body in ended.stderr


@pytest.mark.parametrize(
    ("body", "how"),
    [
        ("raise BaseExceptionGroup('both', [ValueError('one'), SystemExit('two')])", "SystemExit (two)"),
        ("import asyncio; asyncio.get_running_loop().stop(); await asyncio.sleep(1)", "(Event loop stopped"),
    ],
    ids=["one of several", "loop"],
)
def test_a_handler_that_ends_the_program_by_the_way_has_failed(body: str, how: str, tmp_path: Path) -> None:
    ended = swarmbus(tmp_path, "run", "app", "--event", '{"text": "one"}', body=body)
    report = json.loads(ended.stdout)
    assert (ended.returncode, report["status"]) == (1, "failed")
    assert how in report["reason"]


@pytest.mark.parametrize("stream", ["sys.stdout", "sys.stderr", "sys.__stdout__", "sys.__stderr__"])
def test_a_handler_that_closes_a_stream_costs_no_report(stream: str, tmp_path: Path) -> None:
    ended = swarmbus(tmp_path, "run", "app", "--event", '{"text": "one"}', body=f"{stream}.close()")
    assert (ended.returncode, json.loads(ended.stdout)["output"]) == (0, {"text": "told"})
    assert "teller: 1 handled" in ended.stderr
    assert "Traceback" not in ended.stderr


LATE = """
        import atexit, threading, time
        atexit.register(noise, "exit")
        end = time.monotonic() + 1
        def go_on():
            while time.monotonic() < end:
                time.sleep(0.01)
                noise("thread")
        threading.Thread(target=go_on).start()
"""


def test_what_is_written_after_the_run_is_no_part_of_the_report(tmp_path: Path) -> None:
    ended = swarmbus(tmp_path, "run", "app", "--event", '{"text": "one"}', body=LATE)
    assert (ended.returncode, json.loads(ended.stdout)["output"]) == (0, {"text": "told"})
    assert [how for how in NOISE if f"exit {how}\n" not in ended.stderr] == []
    assert [how for how in NOISE if f"thread {how}\n" not in ended.stderr] == []


def test_what_is_written_is_no_part_of_the_result_where_standard_error_is_closed(tmp_path: Path) -> None:
    (tmp_path / "app.py").write_text(SWARM.replace("BODY", "").replace("SIGNATURE", ASYNC))
    command = [sys.executable, "-m", "swarmbus", "run", "app", "--event", '{"text": "one"}']
    closing = ["sh", "-c", '"$@" 2>&-', "sh", *command]
    ended = subprocess.run(closing, cwd=tmp_path, stdout=subprocess.PIPE, text=True, check=False, timeout=50)
    assert (ended.returncode, json.loads(ended.stdout)["output"]) == (0, {"text": "told"})


def test_a_module_whose_thread_does_not_end_is_checked_to_the_end(tmp_path: Path) -> None:
    thread = "import threading; threading.Thread(target=threading.Event().wait, name='endless').start()"
    (tmp_path / "endless.py").write_text(f"{thread}\nfrom swarms.research import swarm\n")
    command = [sys.executable, "-m", "swarmbus", "check", "endless"]
    place: dict[str, Any] = {"cwd": tmp_path, "env": {**os.environ, "PYTHONPATH": str(Path(__file__).parent)}}
    ended = subprocess.run(command, **place, capture_output=True, text=True, check=False, timeout=50)
    assert (ended.returncode, ended.stdout) == (0, "the wiring is sound\n")
    assert "ended by force: the thread endless, which the swarm's own code began, goes on" in ended.stderr


@pytest.mark.parametrize("raised", ["GeneratorExit('over')", "BaseExceptionGroup('both', [SystemExit('over')])"])
def test_a_module_that_ends_the_program_is_told_in_words(raised: str, tmp_path: Path) -> None:
    (tmp_path / "app.py").write_text(f"raise {raised}\n")
    command = [sys.executable, "-m", "swarmbus", "check", "app"]
    ended = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=50)
    assert (ended.returncode, ended.stdout) == (2, "")
    assert "Traceback (most recent call last):" in ended.stderr
    assert "app can't be imported: " in ended.stderr
    assert ended.stderr.endswith('put that under `if __name__ == "__main__":`\n')
