"""The end of the process where something goes on that can't be stopped: tasks that swallow cancellation, threads.

An event loop waits for its last task, and the interpreter for its last thread, however long they take. So once there is
nothing left to wait for, the process ends without them.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from typing import TYPE_CHECKING, Generic, TypeVar

from swarmbus.cli.interrupts import GRACE
from swarmbus.cli.output import notice
from swarmbus.cli.streams import STREAMS

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Self

    from swarmbus.cli.interrupts import Stop

T = TypeVar("T")

MOST = GRACE + 2.0
"""Seconds that closing what was opened may take when the work is over."""
PATIENCE = 2.0
"""Seconds that threads get to end by themselves at the end of the program."""

_WORKER = "AnyIO worker thread"  # anyio's name for those in which handlers and tools run that are not async


def leave(code: int) -> None:
    """End the process here."""
    for stream in (STREAMS.results, STREAMS.notices, sys.stdout, sys.stderr):
        try:
            stream.flush()  # type: ignore[union-attr]
        except (AttributeError, OSError, ValueError):
            continue  # it is closed, or nobody reads it
    os._exit(code)


def bound_exit(code: int, patience: float = GRACE) -> None:
    """Give the interpreter so many seconds to end the process: it waits for the threads that the user's code began."""
    timer = threading.Timer(patience, _end, [code])
    timer.daemon = True
    timer.start()


def _end(code: int) -> None:
    others = (thread for thread in threading.enumerate() if not thread.daemon)
    names = ", ".join(thread.name for thread in others if thread is not threading.main_thread())
    what = f"the thread {names}, which the swarm's own code began, goes on" if names else "something goes on"
    notice(f"ended by force: {what}; let it end with the work, or make it a daemon thread")
    leave(code)


class Leaving(Generic[T]):
    """A block in which the work of a command is done, and which is left then in any case.

    Args:
        stop: at whose last moment it is left too.
        tell: writes what the work brought, where the block can't be left otherwise, and returns the exit code; it is
            called in another thread.
    """

    def __init__(self, stop: Stop, tell: Callable[[T], int]) -> None:
        stop.at_last = self.insist
        self._tell = tell
        self._brought: list[T] = []
        self._turn = threading.Lock()
        self._timer = threading.Timer(MOST, self.insist)
        self._timer.daemon = True

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        with self._turn:  # who tells ends the process
            self._brought.clear()
        self._timer.cancel()

    def begin(self, brought: T) -> None:
        """Take what the work brought, which is over: from here on the block has `MOST` seconds."""
        self._brought.append(brought)
        self._timer.start()

    def insist(self) -> None:
        """End the process if the work is over and the block goes on."""
        with self._turn:
            if self._brought:
                leave(self._tell(self._brought[0]))


def goes_on(before: set[threading.Thread], *, interrupted: bool, patience: float = PATIENCE) -> bool:
    """Whether threads that have begun since go on which nothing is to be waited for.

    Args:
        before: the threads that there were.
        interrupted: whether the program was told to end; else only what its handlers left behind is not waited for.
        patience: seconds that they get to end by themselves.
    """
    over = time.monotonic() + patience
    begun = [thread for thread in threading.enumerate() if thread not in before and not thread.daemon]
    left = [thread for thread in begun if interrupted or thread.name == _WORKER]
    for thread in left:
        thread.join(max(0.0, over - time.monotonic()))
    return any(thread.is_alive() for thread in left)
