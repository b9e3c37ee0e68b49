"""Which threads the end of the program does not wait for; that it ends all the same is tested with its signals."""

from __future__ import annotations

import subprocess
import sys
import threading
from typing import TYPE_CHECKING

import anyio
import anyio.to_thread
import pytest

from swarmbus.cli.interrupts import Stop
from swarmbus.cli.leaving import Leaving, goes_on

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def gate() -> Iterator[threading.Event]:
    event = threading.Event()
    yield event
    event.set()


def test_a_thread_of_the_users_own_is_waited_for_unless_the_program_is_told_to_end(gate: threading.Event) -> None:
    before = set(threading.enumerate())
    thread = threading.Thread(target=gate.wait)
    thread.start()
    assert not goes_on(before, interrupted=False, patience=0.05)
    assert goes_on(before, interrupted=True, patience=0.05)
    assert not goes_on({*before, thread}, interrupted=True, patience=0.05)
    gate.set()
    thread.join()
    assert not goes_on(before, interrupted=True, patience=0.05)


def test_a_thread_that_a_handler_left_behind_is_not_waited_for(gate: threading.Event) -> None:
    before = set(threading.enumerate())

    async def leave_behind() -> None:
        with anyio.move_on_after(0.05):
            await anyio.to_thread.run_sync(gate.wait, abandon_on_cancel=True)

    anyio.run(leave_behind, backend="asyncio")
    assert goes_on(before, interrupted=False, patience=0.05)
    gate.set()


@pytest.mark.parametrize(
    ("waits", "ended", "told"),
    [("gate.wait", 3, "ended by force: the thread endless, which the swarm's own code began, goes on"), ("int", 0, "")],
    ids=["thread", "none"],
)
def test_the_end_of_the_process_is_not_put_off_for_ever(waits: str, ended: int, told: str) -> None:
    code = f"""
import threading
from swarmbus.cli.leaving import bound_exit
gate = threading.Event()
threading.Thread(target={waits}, name="endless").start()
bound_exit(3, 0.3)
"""
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=50)
    assert (run.returncode, run.stderr.partition(";")[0]) == (ended, told)


def test_work_whose_block_is_left_is_not_told_by_force() -> None:
    def tell(brought: str) -> int:
        told.append(brought)
        return 0

    told: list[str] = []
    stop = Stop()
    with Leaving(stop, tell) as leaving:
        leaving.insist()  # nothing was brought yet
        leaving.begin("all")
    assert stop.at_last is not None
    stop.at_last()
    stop.close()
    assert told == []
