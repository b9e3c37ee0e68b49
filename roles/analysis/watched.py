"""Lets the work of a reading process end with the program it works for, even where that was killed outright.

On Linux the work is done in a child of the process that the program knows, which only watches: the work may be inside
a library for minutes, during which no other thread of its own process runs. Elsewhere such a thread has to do.
"""

from __future__ import annotations

import ctypes
import os
import shutil
import signal
import sys
import time
from threading import Thread
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

_WATCH_SECONDS = 0.5
_PR_SET_PDEATHSIG = 1
"""The option of `prctl` by which a process is sent a signal when its parent dies. Source: prctl(2)."""


def run_watched(work: Callable[[], None], folder: str) -> None:
    """Do some work until it is done or the parent of this process is gone.

    Args:
        work: what is to be done.
        folder: is removed when the parent is gone.
    """
    parent = os.getppid()
    child = 0
    if sys.platform == "linux":
        watcher = os.getpid()
        child = os.fork()
        if child == 0:
            _end_with_parent(watcher)
            work()
            return
    Thread(target=_watch, args=(parent, folder, child), daemon=True).start()
    if child == 0:
        work()
        return
    _, status = os.waitpid(child, 0)
    if os.getppid() != parent:
        shutil.rmtree(folder, ignore_errors=True)
    _end_like(os.waitstatus_to_exitcode(status))


def _end_with_parent(parent: int) -> None:
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:  # it was gone before
        os._exit(1)


def _watch(parent: int, folder: str, child: int) -> None:
    while os.getppid() == parent:
        time.sleep(_WATCH_SECONDS)
    if child:
        os.kill(child, signal.SIGKILL)
    shutil.rmtree(folder, ignore_errors=True)
    os._exit(1)


def _end_like(code: int) -> None:
    """End this process with an exit code, or by a signal where it is negative."""
    if code < 0:
        if -code != signal.SIGKILL:
            signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    sys.exit(code)
