"""What leaves the command line: results on standard output, notices on standard error, and the exit code.

A reader that closes its end early loses nothing but the rest of the text: the exit code stays what it was going to
be. Nor does a notice that nobody can be given change how a command ends.
"""

from __future__ import annotations

import io
import os
import re
from enum import IntEnum
from typing import TYPE_CHECKING

from swarmbus.cli.files import WriteError, write_file
from swarmbus.cli.streams import STREAMS

if TYPE_CHECKING:
    from pathlib import Path
    from typing import TextIO

_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


class ExitCode(IntEnum):
    """How the command line ends; an interrupted one ends with 130, 143 or 129."""

    DONE = 0
    FAILED = 1
    USAGE = 2
    FINDINGS = 3
    PARTIAL = 4
    LIMIT = 5

    @classmethod
    def of(cls, status: str) -> ExitCode:
        """Return the code for the status of a run or a report; all ends that have none of their own are failures."""
        return {"done": cls.DONE, "partial": cls.PARTIAL, "limit": cls.LIMIT}.get(status, cls.FAILED)


EXIT_CODE_HELP = """\
\b
Exit codes:
  0        done
  1        failed, stalled, timed out or cancelled
  2        an option or an argument is wrong, or the target can't be loaded; nothing was started
  3        the check found errors in the wiring; nothing was started
  4        done in part: some of the documents or steps failed
  5        a limit was reached
  129      its terminal was closed (SIGHUP)
  130 143  interrupted by Ctrl-C or SIGTERM"""
"""What `--help` says of them, on lines of its own."""


def write_text(text: str) -> None:
    """Write text for a person to standard output; what its encoding can't hold is escaped."""
    _write(STREAMS.results, text)


def write_data(text: str, path: Path | None = None) -> None:
    """Write text for a program, as UTF-8 and without any colour, to standard output or a file.

    Raises:
        WriteError: it can't be written.
    """
    if path is not None:
        write_file(path, text)
        return
    if isinstance(STREAMS.results, io.TextIOWrapper):
        STREAMS.results.reconfigure(encoding="utf-8", errors="backslashreplace")
    _write(STREAMS.results, text)


def notice(text: str) -> None:
    """Write a line about what is going on to standard error; what would control a terminal is escaped."""
    _write(STREAMS.notices, f"{_CONTROLS.sub(_escaped, text)}\n")


def _write(stream: TextIO | None, text: str) -> None:
    if stream is None:  # it was closed before the program began
        return
    if isinstance(stream, io.TextIOWrapper):
        stream.reconfigure(errors="backslashreplace")
    try:
        stream.write(text)
        stream.flush()
    except OSError as error:
        _discard(stream)
        if stream is STREAMS.results and not isinstance(error, BrokenPipeError):
            raise WriteError.of("standard output", error) from error


def _escaped(match: re.Match[str]) -> str:
    return match[0].encode("unicode_escape").decode()


def _discard(stream: TextIO) -> None:
    """Let what is still buffered go nowhere, so that nothing complains when the program ends."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, stream.fileno())
    os.close(nowhere)
