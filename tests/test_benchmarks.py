"""The benchmarks run, and measure work that was really done."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

TESTS = Path(__file__).parent


def test_the_benchmarks_print_a_ratio_for_each_work() -> None:
    command = [sys.executable, "-m", "benchmarks", "--scale", "100", "--rounds", "1"]
    run = subprocess.run(command, capture_output=True, text=True, check=False, cwd=TESTS, timeout=55, encoding="utf-8")
    assert run.returncode == 0, run.stderr
    for work in ("bus, 1 subscriber", "small runs", "plan, execute", "20 ms", "role with state", "import"):
        assert work in run.stdout
