"""The benchmarks run, and measure work that was really done."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import anyio
import pytest

TESTS = Path(__file__).parent


def test_the_benchmarks_print_a_ratio_for_each_work() -> None:
    command = [sys.executable, "-m", "benchmarks", "--scale", "100", "--rounds", "1"]
    run = subprocess.run(command, capture_output=True, text=True, check=False, cwd=TESTS, timeout=55, encoding="utf-8")
    assert run.returncode == 0, run.stderr
    for work in ("bus, 1 subscriber", "small runs", "plan, execute", "20 ms", "role with state", "import"):
        assert work in run.stdout


class Clock:
    """Counts how often it was started and stopped."""

    def __init__(self) -> None:
        self.calls: list[str] = []

    def start(self) -> None:
        self.calls.append("start")

    def stop(self) -> None:
        self.calls.append("stop")


class Counts:
    """What the harness counts with: additions, and what is under way."""

    def __init__(self) -> None:
        self.calls = self.active = self.peak = 0

    def add(self, a: int, b: int) -> int:
        self.calls += 1
        return a + b

    async def slow_add(self, a: int, b: int, delay: float) -> int:
        self.enter()
        await anyio.sleep(delay)
        self.leave()
        return a + b

    def enter(self) -> None:
        self.active += 1
        self.peak = max(self.peak, self.active)

    def leave(self) -> None:
        self.active -= 1
        self.calls += 1


@pytest.fixture
def cases(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Load the adapter with a harness that only registers, and return what it registered."""
    registered: dict[str, Any] = {}

    def case(work: str, _how: str) -> Any:
        return lambda function: registered.setdefault(work, function)

    harness: Any = ModuleType("benchlib")
    harness.case, harness.Ledger = case, Counts
    harness.payload = lambda number: {"name": "price.changed", "seq": number, "data": {"sku": "A-1", "why": "sale"}}
    monkeypatch.setitem(sys.modules, "benchlib", harness)
    spec = importlib.util.spec_from_file_location("adapter", TESTS / "benchmarks" / "adapters" / "swarmbus.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "adapter", module)
    spec.loader.exec_module(module)
    return registered


@pytest.mark.parametrize("anyio_backend", ["asyncio"])  # on which the harness measures
@pytest.mark.parametrize(
    ("work", "size", "options", "handled"),
    [
        ("w1", 20, {"subs": 3}, 60),
        ("w2", 20, {"workers": 4, "delay": 0}, 20),
        ("w3", 5, {}, 5),
        ("w3b", 2, {"calls": 3, "delay": 0.001}, 6),
    ],
)
async def test_the_adapter_does_the_work_that_comparable_projects_are_measured_on(
    work: str, size: int, options: dict[str, Any], handled: int, cases: dict[str, Any]
) -> None:
    clock = Clock()
    did, _note = await cases[work](clock, size, **options)
    assert did == handled
    assert clock.calls == ["start", "stop"]
