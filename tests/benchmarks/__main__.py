"""Measures swarms against what a person would write by hand for the same work, and prints a table of ratios.

Run it with `cd tests && python -m benchmarks`. Both sides take turns within one process, so that what else the machine
does hits both; each figure is the best of its rounds, in CPU seconds but where the work is waiting.
"""

from __future__ import annotations

import argparse
import gc
import subprocess
import sys
import time
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from functools import partial
from typing import Any

import anyio
from rich.console import Console
from rich.table import Table

from benchmarks import baselines, workloads

Work = Callable[[], Coroutine[Any, Any, int]]
IMPORT = (
    "import anyio; from pydantic import BaseModel; Model = type('Model', (BaseModel,), {'__annotations__': {'x': int}})"
)


@dataclass(frozen=True)
class Pair:
    """One piece of work on both sides; both have to say that they handled `count` things."""

    name: str
    count: int
    by_hand: Work
    swarm: Work
    clock: Callable[[], float] = time.process_time


def pairs(scale: int) -> list[Pair]:
    """Return what is measured; `scale` divides the sizes, for a look that takes seconds."""
    events, small = 20_000 // scale, 500 // scale
    found = [
        Pair("bus, 1 subscriber", events, partial(baselines.bus, events, 1), partial(workloads.bus, events, 1)),
        Pair(
            "bus, 10 subscribers",
            events,
            partial(baselines.bus, events // 10, 10),
            partial(workloads.bus, events // 10, 10),
        ),
        Pair("small runs", small, partial(baselines.runs, small), partial(workloads.runs, small)),
    ]
    for steps in (1_000, 10_000, 30_000):
        count = steps // scale
        by_hand, swarm = partial(baselines.steps, count, 8), partial(workloads.steps, count, 8)
        found.append(Pair(f"plan, execute, aggregate: {count:,} steps", count, by_hand, swarm))
    waits = 200 // scale
    slow = partial(baselines.steps, waits, 16, 0.02), partial(workloads.steps, waits, 16, 0.02)
    return [*found, Pair("steps of 20 ms on 16 workers", waits, *slow, time.perf_counter)]


def best(pair: Pair, rounds: int) -> tuple[float, float]:
    """Return the seconds of the best round of each side, which take turns."""
    found: tuple[list[float], list[float]] = ([], [])
    for _ in range(rounds):
        for work, seconds in zip((pair.by_hand, pair.swarm), found, strict=True):
            gc.collect()
            began = pair.clock()
            handled = anyio.run(work)
            seconds.append(pair.clock() - began)
            if handled != pair.count:
                raise RuntimeError(f"{pair.name}: {handled} of {pair.count} were handled")
    return min(found[0]), min(found[1])


def of_state(events: int, rounds: int) -> tuple[float, float]:
    """Return the seconds for so many events to a role with state: in a hundred short runs, and in a long one."""
    return best(
        Pair(
            "role with state", events, partial(workloads.state, events // 100, 100), partial(workloads.state, events, 1)
        ),
        rounds,
    )


def of_import(rounds: int) -> tuple[float, float]:
    """Return the seconds that a process takes for the libraries that any such project imports, and for swarmbus."""
    found: tuple[list[float], list[float]] = ([], [])
    for _ in range(rounds):
        for code, seconds in zip((IMPORT, "import swarmbus; swarmbus.Swarm"), found, strict=True):
            began = time.perf_counter()
            subprocess.run([sys.executable, "-c", code], check=True)
            seconds.append(time.perf_counter() - began)
    return min(found[0]), min(found[1])


def main() -> None:
    """Measure all, and print the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--rounds", type=int, default=5, help="how often each side has its turn")
    parser.add_argument("--scale", type=int, default=1, help="divide all sizes by this")
    options = parser.parse_args()
    table = Table("work", "by hand, µs each", "swarmbus, µs each", "ratio")
    for pair in pairs(options.scale):
        by_hand, swarm = best(pair, options.rounds)
        each = 1e6 / pair.count
        table.add_row(pair.name, f"{by_hand * each:.1f}", f"{swarm * each:.1f}", f"{swarm / by_hand:.2f}")
    events = 10_000 // options.scale
    short, long = (seconds / events * 1e6 for seconds in of_state(events, options.rounds))
    table.add_row(
        "role with state: 100 runs, and one as long as all", f"{short:.1f}", f"{long:.1f}", f"{long / short:.2f}"
    )
    libraries, ours = of_import(options.rounds)
    table.add_row("import, with `Swarm`", f"{libraries * 1e6:.0f}", f"{ours * 1e6:.0f}", f"{ours / libraries:.2f}")
    Console().print(table)


if __name__ == "__main__":
    main()
