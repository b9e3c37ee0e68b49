"""Reads files in processes of their own, so that no file can stop, slow or exhaust the program.

It owns starting, limiting and ending those processes; what they do with a file is `reading_process.py`'s and
`extract.py`'s.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from contextlib import AsyncExitStack
from dataclasses import dataclass
from subprocess import DEVNULL, PIPE
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Self

import anyio
from anyio.streams.buffered import BufferedByteReceiveStream

from roles.analysis.extract import Extract
from roles.analysis.reading_process import Reading, failure

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from types import TracebackType

    from anyio.abc import ByteSendStream, Process

    from roles.analysis.extract import Status

    Progress = Callable[[str, Status | None], None]

_START_SECONDS = 60
_DEATH_SECONDS = 2


@dataclass(frozen=True, slots=True)
class ReadingLimits:
    """How much one file may cost.

    Attributes:
        seconds: time to read one file; then its status is `timed_out`.
        memory: bytes of address space of a reading process, where the system can limit it (POSIX).
        max_bytes: size of a file; a larger one is not read.
        processes: how many files are read at a time.
    """

    seconds: float = 60
    memory: int = 2 * 2**30
    max_bytes: int = 256 * 2**20
    processes: int = max(1, min(4, os.cpu_count() or 1))


class ReadingPool:
    """Reading processes, started when first needed and kept until the `async with` block ends.

    Args:
        limits: what one file may cost.
        on_progress: is called with a path and None when its reading begins, and with its status when it is over.
        command: the program to start instead of the shipped reader; it speaks the same protocol.
    """

    def __init__(
        self,
        limits: ReadingLimits | None = None,
        on_progress: Progress | None = None,
        command: Sequence[str] | None = None,
    ) -> None:
        self.limits = limits or ReadingLimits()
        self._on_progress = on_progress
        # -P keeps the working folder, whose files may have any name, out of the process's imports.
        self._command = command or (
            sys.executable,
            "-P",
            "-m",
            "roles.analysis.reading_process",
            str(self.limits.memory),
        )
        self._slots = anyio.CapacityLimiter(self.limits.processes)
        self._idle: list[_Reader] = []
        self._folder: TemporaryDirectory[str] | None = None

    async def __aenter__(self) -> Self:
        """Open the pool; no process is started yet."""
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """End every process, and remove what they have left."""
        while self._idle:
            await self._idle.pop().end()
        if self._folder is not None:
            self._folder.cleanup()

    async def read(self, path: str) -> Reading:
        """Read one file; whatever happens to it or to its process is in the reading's status and reason."""
        async with self._slots:
            self._note(path, None)
            began = anyio.current_time()
            reading, blamed = await self._attempt(path, self.limits.seconds)
            if not blamed:
                # What an earlier file left behind in the process may be the cause: a file is judged in a fresh one.
                left = self.limits.seconds - (anyio.current_time() - began)
                reading, _ = await self._attempt(path, max(0.0, left))
            self._note(path, reading.extract.status)
        return reading

    def _temporary_folder(self) -> str:
        """Return a folder that nobody else may enter: what a library puts there it also loads as code."""
        if self._folder is None:
            self._folder = TemporaryDirectory(prefix="swarmbus-", ignore_cleanup_errors=True)
        return self._folder.name

    def _note(self, path: str, status: Status | None) -> None:
        if self._on_progress is not None:
            self._on_progress(path, status)

    async def _attempt(self, path: str, seconds: float) -> tuple[Reading, bool]:
        """Read in an idle process or a new one; the flag says whether the outcome is the file's own.

        Args:
            path: the file.
            seconds: how long it may take; the start of a process is not counted.
        """
        fresh = not self._idle
        async with AsyncExitStack() as cleanup:
            try:
                reader = await _Reader.start(self._command, self._temporary_folder()) if fresh else self._idle.pop()
            except (OSError, EOFError, TimeoutError) as error:
                return failure(f"no reading process could be started: {str(error) or type(error).__name__}"), True
            cleanup.push_async_callback(reader.end)
            with anyio.move_on_after(seconds) as timer:
                try:
                    reading = await reader.read(path, self.limits)
                except EOFError:
                    return failure(await reader.death()), fresh
            if timer.cancelled_caught:
                reason = f"not read within {self.limits.seconds:g} seconds"
                return Reading(Extract("timed_out", reason)), True
            if reading.exhausted:
                return reading, fresh
            cleanup.pop_all()
            self._idle.append(reader)
        return reading, True


class _Reader:
    """One reading process and its two pipes."""

    def __init__(self, process: Process) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        self._process = process
        self._requests: ByteSendStream = process.stdin
        self._answers = BufferedByteReceiveStream(process.stdout)

    @classmethod
    async def start(cls, command: Sequence[str], folder: str) -> _Reader:
        """Start a process that has a folder for its temporary files, and wait until it is ready."""
        environment = os.environ | {
            "PYTHONPATH": os.pathsep.join(path for path in sys.path if path),
            "MALLOC_ARENA_MAX": "2",
            "OMP_NUM_THREADS": "1",
            **dict.fromkeys(("TMPDIR", "TEMP", "TMP"), folder),
        }
        # In a session of its own it is out of reach of a terminal's Ctrl-C, which is this process's to handle.
        process = await anyio.open_process(
            (*command, folder), stdin=PIPE, stdout=PIPE, stderr=DEVNULL, env=environment, start_new_session=True
        )
        reader = cls(process)
        try:
            with anyio.fail_after(_START_SECONDS):
                await reader._answer()
        except BaseException:
            await reader.end()
            raise
        return reader

    async def read(self, path: str, limits: ReadingLimits) -> Reading:
        """Ask for one file.

        Raises:
            EOFError: the process died.
        """
        name = os.fsencode(path).decode("latin-1")  # the other process may know another locale
        request = {"path": name, "seconds": limits.seconds, "max_bytes": limits.max_bytes}
        try:
            await self._requests.send(json.dumps(request).encode() + b"\n")
        except (anyio.BrokenResourceError, anyio.ClosedResourceError):
            raise EOFError from None
        return Reading.from_json(await self._answer())

    async def death(self) -> str:
        """Why the process is gone, in words."""
        with anyio.move_on_after(_DEATH_SECONDS):
            await self._process.wait()
        await self.end()
        code = self._process.returncode or 0
        if code >= 0:
            return f"reading it ended the reading process with code {code}"
        try:
            name = signal.Signals(-code).name
        except ValueError:
            name = f"signal {-code}"
        memory = ", probably for want of memory" if name in ("SIGABRT", "SIGKILL", "SIGBUS") else ""
        return f"reading it ended the reading process by {name}{memory}"

    async def end(self) -> None:
        """End the process and wait for it, also when cancelled."""
        with anyio.CancelScope(shield=True):
            if self._process.returncode is None:
                self._process.kill()
            await self._process.aclose()

    async def _answer(self) -> bytes:
        try:
            size = int.from_bytes(await self._answers.receive_exactly(8), "big")
            return await self._answers.receive_exactly(size)
        except (anyio.IncompleteRead, anyio.ClosedResourceError, anyio.BrokenResourceError):
            raise EOFError from None
