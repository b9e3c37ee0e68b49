"""A reading process: takes one path after the other from its standard input and answers with what it could read.

It is started by `reading_pool.py` and imports nothing of the framework. Each answer is one JSON document behind its
length in eight bytes; each request is one line of JSON. Its memory is limited, and so is its time; when its parent is
gone, it ends, and removes the folder for its temporary files.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
import stat
import sys
from dataclasses import asdict, dataclass
from pathlib import PurePath
from typing import Any, BinaryIO

from roles.analysis.extract import Extract, extract
from roles.analysis.watched import run_watched

_GRACE = 10


@dataclass(frozen=True, slots=True)
class Reading:
    """One file as it was read.

    Attributes:
        extract: status, text and places.
        sha256: of the file's bytes, as hexadecimal digits; empty where they could not be read.
        exhausted: whether it failed because the process had no memory left.
    """

    extract: Extract
    sha256: str = ""
    exhausted: bool = False

    def to_json(self) -> bytes:
        """Write the reading as JSON in UTF-8."""
        return json.dumps(asdict(self), ensure_ascii=False).encode()

    @classmethod
    def from_json(cls, data: bytes) -> Reading:
        """Read what `to_json` wrote."""
        fields: dict[str, Any] = json.loads(data)
        inner = fields["extract"]
        inner.update(pages=tuple(inner["pages"]), warnings=tuple(inner["warnings"]))
        return cls(Extract(**inner), fields["sha256"], fields["exhausted"])


def failure(reason: str) -> Reading:
    """A reading that failed before there was any content."""
    return Reading(Extract("failed", reason))


def read_file(path: str | bytes, max_bytes: int) -> Reading:
    """Read one file; whatever is wrong with it becomes the reading's status and reason."""
    for _ in range(2):
        try:
            data, changed = _bytes_of(path, max_bytes)
        except OSError as error:
            return failure(_why(error))
        except ValueError:  # it holds a NUL character
            return failure("there is no such file")
        except _NotToBeRead as error:
            return failure(str(error))
        if not changed:
            break
    else:
        return failure("the file was changed while it was read")
    return Reading(extract(data, PurePath(os.fsdecode(path)).suffix.lower()), hashlib.sha256(data).hexdigest())


class _NotToBeRead(Exception):  # noqa: N818  # says what it is
    """What has the name of a file is none, or too large, and reading it might never end."""


def _bytes_of(path: str | bytes, limit: int) -> tuple[bytes, bool]:
    # Without O_NONBLOCK the mere opening of a FIFO waits for a writer.
    flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOCTTY", 0) | getattr(os, "O_BINARY", 0)
    with os.fdopen(os.open(path, flags), "rb") as file:
        before = os.fstat(file.fileno())
        if not stat.S_ISREG(before.st_mode):
            raise _NotToBeRead("not a regular file, but a device, pipe or socket")
        data = file.read(limit + 1) if before.st_size <= limit else b""
        if before.st_size > limit or len(data) > limit:
            raise _NotToBeRead(f"larger than the limit of {limit} bytes")
        after = os.fstat(file.fileno())
    return data, (before.st_size, before.st_mtime_ns) != (after.st_size, after.st_mtime_ns)


def _why(error: OSError) -> str:
    match error:
        case FileNotFoundError() | NotADirectoryError():
            return "there is no such file"
        case PermissionError():
            return "no permission to read the file"
        case IsADirectoryError():
            return "a folder, not a file"
        case _:
            return f"the file can't be read: {error.strerror or error}"


def _limit_memory(limit: int) -> None:
    try:
        import resource  # noqa: PLC0415  # not on every system
    except ImportError:
        return
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # what a library that fails leaves of itself is of no use
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    allowed = limit if hard == resource.RLIM_INFINITY else min(limit, hard)
    try:
        resource.setrlimit(resource.RLIMIT_AS, (allowed, hard))
    except (ValueError, OSError):
        return


def _limit_time(seconds: float) -> None:
    """Let the system end this process if nobody else does: the parent may have been killed meanwhile."""
    try:
        from signal import ITIMER_REAL, setitimer  # noqa: PLC0415  # not on every system
    except ImportError:
        return
    setitimer(ITIMER_REAL, seconds)


def serve(requests: BinaryIO, answers: BinaryIO, memory: int) -> None:
    """Answer requests until there are no more."""
    _limit_memory(memory)
    _answer(answers, b"ready")
    for line in requests:
        request = json.loads(line)
        _limit_time(request["seconds"] + _GRACE)
        try:
            reading = read_file(request["path"].encode("latin-1"), request["max_bytes"]).to_json()
        except MemoryError:
            reason = f"needs more memory than the limit of {memory // 2**20} MiB"
            reading = Reading(Extract("failed", reason), exhausted=True).to_json()
        _limit_time(0)
        _answer(answers, reading)


def _answer(answers: BinaryIO, content: bytes) -> None:
    answers.write(len(content).to_bytes(8, "big"))
    answers.write(content)
    answers.flush()


def main() -> None:
    """Serve over the standard streams, out of reach of libraries that print."""
    memory, folder = int(sys.argv[1]), sys.argv[2]
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)

    def work() -> None:
        with contextlib.suppress(BrokenPipeError):  # the parent was killed before it could take an answer
            serve(sys.stdin.buffer, answers, memory)
        shutil.rmtree(folder, ignore_errors=True)  # there is no parent any more to do it

    run_watched(work, folder)


if __name__ == "__main__":
    main()
