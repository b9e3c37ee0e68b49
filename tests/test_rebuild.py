"""A run whose process dies right after any of its records goes on in another one as if nothing had happened."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from collections import Counter
from itertools import count
from typing import TYPE_CHECKING

import pytest
from rebuild.workshop import Telling, Workshop, opened

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

FLOW = """
    import sys
    import anyio
    from swarmbus import CLIENT, Event, EventTable, Role, RoleContext, Swarm, on
    from swarmbus.delivery.journal import MemoryJournal

    class Asked(Event):
        text: str

    class Heard(Event):
        text: str

    class Told(Event):
        text: str

    class Teller(Role):
        @on
        async def hear(self, event: Asked) -> Heard:
            return Heard(text=event.text)

        @on
        async def tell(self, event: Heard, ctx: RoleContext) -> Told:
            return Told(text=event.text + await ctx.ask_person("?", reply=str))

    def make(journal):
        rows = (CLIENT, Asked, "teller"), ("teller", Heard, "teller"), ("teller", Told, CLIENT)
        return Swarm(Teller(), table=EventTable(*rows, result=Told), journal=journal)

    async def main():
        journal = MemoryJournal()
        async with make(journal).open() as live:
            await live.submit(Asked(text="a"), run_id="r")
            await anyio.wait_all_tasks_blocked()
        for record in journal.records["r"]:
            print(record.decode())

    if __name__ == "__main__":
        assert Asked.__module__ == "__main__"
        anyio.run(main)
"""
READER = """
    import sys
    import anyio
    from app.flow import make
    from swarmbus.delivery.journal import MemoryJournal

    async def main():
        records = [line.encode() for line in sys.stdin.read().splitlines()]
        async with make(MemoryJournal({"r": records})).open() as live:
            run = await live.resume("r")
            await run.answer(next(iter(run.questions)), "b")
            print((await run.result()).output.text)

    anyio.run(main)
"""


@pytest.fixture(scope="module")
def workshop(anyio_backend: str) -> Iterator[Workshop]:
    with opened(anyio_backend) as workshop:
        yield workshop


@pytest.mark.timeout(300)  # it makes some four hundred processes
@pytest.mark.parametrize("story", ["census", "papers"])
def test_a_run_goes_on_after_any_record(workshop: Workshop, story: str, tmp_path: Path) -> None:
    whole = Telling(workshop, story, tmp_path / "whole")
    whole.go()
    done = whole.effects()
    assert len(set(done)) == len(done)
    for last in count(1):
        telling = Telling(workshop, story, tmp_path / str(last))
        if telling.go(last=last):
            break
        before, paid = telling.effects(), telling.calls
        telling.go(resumed=True)
        after = telling.effects()
        assert telling.output == whole.output, last
        assert set(before) | set(after) == set(done), last
        assert kinds(after) == kinds(done) - paid, last
        assert telling.calls == whole.calls, last
    assert last == len(whole.records) + 1


@pytest.mark.timeout(300)
@pytest.mark.parametrize("story", ["census", "papers"])
def test_a_run_goes_on_after_a_second_death_as_well(workshop: Workshop, story: str, tmp_path: Path) -> None:
    whole = Telling(workshop, story, tmp_path / "whole")
    whole.go()
    done = set(whole.effects())
    for first in range(1, len(whole.records) - 5, 6):
        telling = Telling(workshop, story, tmp_path / str(first))
        assert not telling.go(last=first)
        telling.go(last=first + 5, resumed=True)
        telling.go(resumed=True)
        assert telling.output == whole.output, first
        assert set(telling.effects()) == done, first
        assert telling.calls == whole.calls, first


def test_a_run_of_the_main_module_goes_on_where_that_is_imported(tmp_path: Path) -> None:
    (tmp_path / "app").mkdir()
    (tmp_path / "app" / "flow.py").write_text(textwrap.dedent(FLOW))
    (tmp_path / "reader.py").write_text(textwrap.dedent(READER))
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), *sys.path])}

    def python(*arguments: str, given: str = "") -> str:
        command = [sys.executable, *arguments]
        told = {"input": given, "capture_output": True, "text": True, "cwd": tmp_path, "env": environment}
        return subprocess.run(command, check=True, timeout=50, **told).stdout  # type: ignore[call-overload, no-any-return]

    records = python("-m", "app.flow")
    assert "__main__" not in records
    assert python("reader.py", given=records) == "ab\n"


def kinds(effects: list[str]) -> Counter[str]:
    """Count effects by their kind, which stands first."""
    return Counter(effect.split(" ", 1)[0] for effect in effects)
