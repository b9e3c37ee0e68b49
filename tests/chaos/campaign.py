"""Many rounds one after the other: counts what they had, and keeps the seed of each that went wrong."""

from __future__ import annotations

import gc
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from chaos.clock import EPOCH
from chaos.draw import draw_round
from chaos.model import judge
from chaos.play import play
from support.watchdog import Watchdog


@dataclass
class Campaign:
    """What came of some rounds: how many runs had each feature, and what went wrong, by seed.

    Attributes:
        memory: the bytes in use and the objects alive each time a tenth of the runs was over.
    """

    runs: int = 0
    rounds: int = 0
    features: Counter[str] = field(default_factory=Counter)
    faults: dict[str, list[str]] = field(default_factory=dict)
    memory: list[tuple[int, int]] = field(default_factory=list)

    def play(self, seed: str, backend: str) -> list[str]:
        """Play the round of a seed, and return what went wrong."""
        faults: list[str] = []
        for story in play(draw_round(seed), backend):
            model = judge(story, EPOCH)
            self.runs += 1
            self.features.update(model.features)
            faults += model.faults
        self.rounds += 1
        if faults:
            self.faults[seed] = faults
        return faults

    def play_many(self, runs: int, seed: str, backend: str, tell: Callable[[str], None]) -> None:
        """Play rounds until there were so many runs; `tell` is given each fault as it is found."""
        watchdog = Watchdog()
        while self.runs < runs:
            number = f"{seed}.{self.rounds}"
            for fault in self.play(number, backend):
                tell(f"seed {number}: {fault}")
            if self.runs * 10 >= runs * (len(self.memory) + 1):
                gc.collect()
                self.memory.append((resident(), len(gc.get_objects())))
        for left in watchdog.left_over():
            tell(f"left over: {left}")


def resident() -> int:
    """Return the bytes of memory that the process has in use (on Linux; elsewhere 0)."""
    try:
        return int(Path("/proc/self/statm").read_text().split()[1]) * 4096
    except OSError:
        return 0
