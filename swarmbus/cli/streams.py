"""Standard output and standard error: ours alone once the user's code has run, whatever that does to them.

From then on results and notices go to copies that nobody else knows. What others write to standard output, however they
do it and however late, goes to standard error, or nowhere where that is closed.
"""

from __future__ import annotations

import io
import os
import sys
from contextlib import ExitStack, suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import TextIO


class Streams:
    """The streams of the process."""

    def __init__(self) -> None:
        self._ours: tuple[TextIO | None, TextIO | None] | None = None
        self._undo = ExitStack()

    @property
    def results(self) -> TextIO | None:
        """Where results go; None where it was closed before the program began."""
        return sys.stdout if self._ours is None else self._ours[0]

    @property
    def notices(self) -> TextIO | None:
        """Where notices go; None where it was closed before the program began."""
        return sys.stderr if self._ours is None else self._ours[1]

    def keep(self) -> None:
        """Keep them from everybody else, from here on."""
        if self._ours is not None:
            return
        before, standing_in = (sys.stdout, sys.stderr), self._copy(sys.stderr)
        self._ours = (self._copy(sys.stdout), self._copy(sys.stderr))
        self._undo.callback(self._set, *before)
        if sys.__stdout__ is not None:  # closed, its number may be that of another file by now
            self._divert()
        self._set(standing_in, standing_in)

    def give_back(self) -> None:
        """Let everything be as it was."""
        self._undo.close()
        self._ours = None

    def _copy(self, stream: TextIO | None) -> TextIO | None:
        """Return a stream to the same place that closes for itself; what is none of the process's own stays itself."""
        if stream is None or stream not in (sys.__stdout__, sys.__stderr__) or not isinstance(stream, io.TextIOWrapper):
            return stream
        stream.flush()
        number = os.dup(stream.fileno())
        copy = open(number, "w", buffering=1, encoding=stream.encoding, errors=stream.errors)  # noqa: PTH123, SIM115
        self._undo.callback(copy.close)
        return copy

    def _divert(self) -> None:
        """Let the descriptor of standard output lead elsewhere: other programs, and C, write to that."""
        kept = os.dup(1)
        self._undo.callback(os.close, kept)
        self._undo.callback(os.dup2, kept, 1)
        if sys.__stderr__ is not None:
            os.dup2(2, 1)
            return
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, 1)
        os.close(nowhere)

    def _set(self, out: TextIO | None, err: TextIO | None) -> None:
        for stream in (sys.stdout, sys.stderr):
            with suppress(AttributeError, OSError, ValueError):  # it is closed, or nobody reads it
                stream.flush()
        sys.stdout, sys.stderr = out, err


STREAMS = Streams()
