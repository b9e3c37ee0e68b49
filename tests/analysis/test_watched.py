"""Work ends when nobody waits for it any more, even where it lets no other thread of its process run."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import pytest

from support.processes import is_alive

if TYPE_CHECKING:
    from pathlib import Path

WATCHED = """
import os, re, sys
from roles.analysis.watched import run_watched

def work():
    print(os.getpid(), flush=True)
    exec(sys.argv[2])

run_watched(work, sys.argv[1])
"""
STUBBORN = "re.match('(a+)+$', 'a' * 60 + 'b')"
ENVIRONMENT = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}


def watched(folder: Path, work: str) -> list[str]:
    folder.mkdir()
    return [sys.executable, "-c", WATCHED, str(folder), work]


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere a thread has to do")
@pytest.mark.parametrize("whose", ["parent", "own"])
def test_work_that_lets_nothing_else_run_ends_when_a_process_is_killed(whose: str, tmp_path: Path) -> None:
    folder = tmp_path / "temporary"
    program = "import subprocess, sys; print(subprocess.Popen(sys.argv[1:]).pid, flush=True); input()"
    command = [sys.executable, "-c", program, *watched(folder, STUBBORN)]
    with subprocess.Popen(command, env=ENVIRONMENT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        own, working = sorted(int(parent.stdout.readline()) for _ in range(2))
        assert (is_alive(own), is_alive(working)) == (True, True)
        if whose == "parent":
            parent.kill()
        else:
            os.kill(own, 9)
        deadline = time.monotonic() + 20
        while is_alive(working) or (whose == "parent" and folder.exists()):
            assert time.monotonic() < deadline
            time.sleep(0.05)
        parent.kill()


@pytest.mark.parametrize(
    ("work", "code"),
    [("pass", 0), ("sys.exit(3)", 3), ("os.kill(os.getpid(), 11)", -11), ("os.kill(os.getpid(), 9)", -9)],
    ids=["done", "a code", "SIGSEGV", "SIGKILL"],
)
def test_the_process_ends_as_its_work_does(work: str, code: int, tmp_path: Path) -> None:
    run = subprocess.run(watched(tmp_path / "folder", work), env=ENVIRONMENT, capture_output=True, check=False)
    assert (run.returncode, run.stderr) == (code, b"")
