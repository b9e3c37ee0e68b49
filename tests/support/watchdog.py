"""What a test may not leave behind: tasks, busy threads and child processes; and how one that hangs is stopped.

pytest-timeout stops a test that hangs wherever it is, which leaves its event loop to nobody; so it is told before.
"""

from __future__ import annotations

import functools
import sys
import threading
import time
import traceback
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import anyio
import anyio.lowlevel

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine
    from types import FrameType

_T = TypeVar("_T")
_WAITING = ("threading.py", "queue.py", "thread.py", "_thread_cache.py", "_asyncio.py")  # an idle worker's frames
_LASTING = ("multiprocessing.resource_tracker", "multiprocessing.forkserver")  # the interpreter's own, one per process


def _is_idle(frame: FrameType | None) -> bool:
    """Tell whether a worker thread waits for work: no code but that of thread pools is on its stack."""
    while frame is not None:
        if Path(frame.f_code.co_filename).name not in _WAITING:
            return False
        frame = frame.f_back
    return True


def busy_threads() -> set[threading.Thread]:
    """Return the threads, other than the calling one, that are doing something."""
    frames = sys._current_frames()
    others = (thread for thread in threading.enumerate() if thread is not threading.current_thread())
    return {thread for thread in others if not _is_idle(frames.get(thread.ident or 0))}


def children() -> set[int]:
    """Return the process ids of this process's children (on Linux; elsewhere none are seen)."""
    found: set[int] = set()
    for task in Path("/proc/self/task").glob("*/children"):
        try:
            found.update(int(pid) for pid in task.read_text().split())
        except OSError:
            continue  # the thread has just ended
    return {pid for pid in found if not any(name in command_line(pid) for name in _LASTING)}


def command_line(pid: int) -> str:
    """Return what a process was started with, for a message."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
    except OSError:
        return ""


class Watchdog:
    """Remembers which threads and children there were, and says which are left over at the end."""

    def __init__(self, grace: float = 2.0) -> None:
        """Look now; later, `grace` is how many seconds a thread or child that is already ending is given."""
        self._grace = grace
        self._threads = busy_threads()
        self._children = children()

    def left_over(self) -> list[str]:
        """Return a line for each thread and child process that started since and still runs."""
        deadline = time.monotonic() + self._grace
        threads = _remaining(busy_threads, self._threads, deadline)
        processes = _remaining(children, self._children, deadline)
        return [f"thread {thread.name}" for thread in threads] + [
            f"process {pid} {command_line(pid)}" for pid in processes
        ]


class TaskWatch:
    """The same for the tasks of the running event loop."""

    def __init__(self) -> None:
        self._before = {task.id for task in anyio.get_running_tasks()}

    async def left_over(self) -> list[str]:
        """Return a line for each task that started since and still runs."""
        for _ in range(10):  # a task that was told to end needs a turn or two
            left = [task for task in anyio.get_running_tasks() if task.id not in self._before and not _is_runner(task)]
            if not left:
                break
            await anyio.lowlevel.checkpoint()
        return [f"task {task.name}" for task in left]


def _is_runner(task: anyio.TaskInfo) -> bool:
    """Tell whether this is the task in which anyio's plugin waits for the test or fixture that runs now."""
    return getattr(task.coro, "__name__", "") == "_call_in_runner_task"


def _remaining(now: Callable[[], set[_T]], before: set[_T], deadline: float) -> set[_T]:
    while (left := now() - before) and time.monotonic() < deadline:
        time.sleep(0.005)
    return left


def within(seconds: float, test: Callable[..., Coroutine[Any, Any, None]]) -> Callable[..., Coroutine[Any, Any, None]]:
    """Return a test that is cancelled, and fails with what it waited for, where it takes longer."""

    @functools.wraps(test)
    async def limited(**given: Any) -> None:
        waited = ""
        with anyio.CancelScope(deadline=anyio.current_time() + seconds) as scope:
            try:
                await test(**given)
            except anyio.get_cancelled_exc_class() as cut:
                waited = "".join(traceback.format_tb(cut.__traceback__))
                raise
        if scope.cancelled_caught:
            raise TimeoutError(f"the test took longer than {seconds:g} s; it waited in\n{waited}")

    return limited
