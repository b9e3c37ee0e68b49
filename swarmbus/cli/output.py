"""What leaves the command line: results on standard output, notices on standard error, and the exit code.

A reader that closes its end early loses nothing but the rest of the text: the exit code stays what it was going to
be.
"""

from __future__ import annotations

import io
import os
import sys
from enum import IntEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path
    from typing import TextIO


class ExitCode(IntEnum):
    """How the command line ends; an interrupted one ends with 130 or 143."""

    DONE = 0
    FAILED = 1
    USAGE = 2
    FINDINGS = 3
    PARTIAL = 4
    LIMIT = 5


def write_text(text: str) -> None:
    """Write text for a person to standard output; what its encoding can't hold is escaped."""
    _write(sys.stdout, text)


def write_data(text: str, path: Path | None = None) -> None:
    """Write text for a program, as UTF-8 and without any colour, to standard output or a file.

    Raises:
        OSError: the file can't be written.
    """
    if path is not None:
        path.write_text(text, encoding="utf-8", errors="backslashreplace", newline="\n")
        return
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(encoding="utf-8", errors="backslashreplace")
    _write(sys.stdout, text)


def notice(text: str) -> None:
    """Write a line about what is going on to standard error."""
    _write(sys.stderr, f"{text}\n")


def _write(stream: TextIO | None, text: str) -> None:
    if stream is None:  # it was closed before the program began
        return
    if isinstance(stream, io.TextIOWrapper):
        stream.reconfigure(errors="backslashreplace")
    try:
        stream.write(text)
        stream.flush()
    except BrokenPipeError:
        _discard(stream)


def _discard(stream: TextIO) -> None:
    """Let what is still buffered go nowhere, so that nothing complains when the program ends."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, stream.fileno())
    os.close(nowhere)
