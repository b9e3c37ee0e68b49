"""Gives orders to the process that tells stories, and reads what they left behind."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rebuild.story import DIED

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[2]


class Telling:
    """One story in one folder, told by as many processes as it takes.

    Attributes:
        output, warnings: how it ended.
    """

    def __init__(self, workshop: Workshop, story: str, folder: Path) -> None:
        folder.mkdir(exist_ok=True)
        self._workshop = workshop
        self._story = story
        self._folder = folder
        self.output: Any = None
        self.warnings: list[str] = []

    def go(self, *, last: int | None = None, resumed: bool = False) -> bool:
        """Let a process begin or go on, up to the last record it may keep; return whether it came to the end."""
        order = {"story": self._story, "folder": str(self._folder), "last": last, "resumed": resumed}
        status = self._workshop.order(order)
        if status == DIED:
            return False
        assert status == 0, f"{order} ended with {status}"
        outcome = json.loads((self._folder / "outcome").read_text())
        self.output, self.warnings = outcome["output"], outcome["warnings"]
        return True

    @property
    def records(self) -> list[dict[str, Any]]:
        """The records kept."""
        return [json.loads(line) for line in (self._folder / "records").read_bytes().splitlines()]

    @property
    def calls(self) -> Counter[str]:
        """How many calls of each kind are in the records, tools and own effects together, and a person's answers."""
        kinds = {"called": "kind", "answered": "record"}
        return Counter(record[kinds[record["record"]]] for record in self.records if record["record"] in kinds)

    def effects(self) -> list[str]:
        """Return what was done outside, in order, since this was last asked for."""
        file = self._folder / "effects"
        done = file.read_text().splitlines() if file.exists() else []
        file.unlink(missing_ok=True)
        return done


class Workshop:
    """The process that tells stories, with what it needs imported once."""

    def __init__(self, process: subprocess.Popen[str], backend: str) -> None:
        self._process = process
        self._backend = backend

    def order(self, order: dict[str, Any]) -> int:
        """Have an order carried out and return its exit status."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps({**order, "backend": self._backend}) + "\n")
        self._process.stdin.flush()
        return int(self._process.stdout.readline())


@contextmanager
def opened(backend: str) -> Iterator[Workshop]:
    """Run the process that tells stories on an event loop of this kind."""
    command = [sys.executable, "-m", "rebuild.process"]
    path = f"{ROOT}:{ROOT / 'tests'}"
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env={"PYTHONPATH": path}
    ) as process:
        yield Workshop(process, backend)
        assert process.stdin is not None
        process.stdin.close()
