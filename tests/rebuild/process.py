"""Tells stories in processes of their own, one fork for each order, so that only bytes get from one to the next.

Orders come as JSON lines on standard input; an answer is the exit status of the process that carried one out. A process
may be told to die as soon as a number of records has been kept: at that point, without a further instruction.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

import anyio
from rebuild.census import CENSUS
from rebuild.papers import papers
from rebuild.story import DIED, Effects, Story

from swarmbus import Lifecycle, Run

PATIENCE = 20
"""Seconds after which a process is taken to hang."""


class FileJournal:
    """One line for each record of the only run; the process dies when `last` records have been kept."""

    def __init__(self, path: Path, last: int | None) -> None:
        self._path = path
        self._last = last
        self._kept = len(self._lines())

    async def append(self, run_id: str, record: bytes) -> None:
        with self._path.open("ab") as file:
            file.write(record + b"\n")
        self._kept += 1
        if self._kept == self._last:
            os._exit(DIED)

    async def read(self, run_id: str) -> list[bytes]:
        return self._lines()

    async def runs(self) -> list[str]:
        return ["r"]

    def _lines(self) -> list[bytes]:
        return self._path.read_bytes().splitlines() if self._path.exists() else []


async def tell(story: Story, folder: Path, *, last: int | None, resumed: bool) -> None:
    """Start the story's run or go on with it, answer what it asks, and write down how it ends."""
    journal, effects = FileJournal(folder / "records", last), Effects(folder / "effects")
    async with story.make(journal, effects).open() as live:
        run = await (live.resume("r") if resumed else live.submit(story.opening(), run_id="r"))
        async with anyio.create_task_group() as group:
            group.start_soon(answer_all, story, run, effects)
            result = await run.result()
            group.cancel_scope.cancel()
    data = {"output": result.output.model_dump(mode="json"), "warnings": result.warnings}
    (folder / "outcome").write_text(json.dumps(data, sort_keys=True))


async def answer_all(story: Story, run: Run[Any], effects: Effects) -> None:
    await answer_open(story, run, effects)
    async for item in run.events():
        if isinstance(item, Lifecycle) and item.type == "question_asked":
            await answer_open(story, run, effects)


async def answer_open(story: Story, run: Run[Any], effects: Effects) -> None:
    for question in list(run.questions):
        effects.add("answered", question.partition(">")[2])  # without the number of the envelope
        await run.answer(question, story.answer(question))


def carry_out(order: dict[str, Any]) -> int:
    """Carry out one order in a process of its own and return its exit status."""
    child = os.fork()
    if child:
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    signal.alarm(PATIENCE)
    folder = Path(order["folder"])
    story = CENSUS if order["story"] == "census" else papers(folder)
    status = 1
    try:
        anyio.run(lambda: tell(story, folder, last=order["last"], resumed=order["resumed"]), backend=order["backend"])
        status = 0
    finally:
        sys.stderr.flush()
        if status:
            sys.excepthook(*sys.exc_info())
        os._exit(status)


if __name__ == "__main__":
    for backend in ("asyncio", "trio"):  # loaded once, not by every fork
        anyio.run(anyio.sleep, 0, backend=backend)
    for line in sys.stdin:
        sys.stdout.write(f"{carry_out(json.loads(line))}\n")
        sys.stdout.flush()
