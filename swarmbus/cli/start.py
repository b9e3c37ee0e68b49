"""Starts the program: listens to signals first, and loads it then."""

from __future__ import annotations

import sys
import threading
from typing import TYPE_CHECKING

from swarmbus.cli.interrupts import Interrupted, exiting
from swarmbus.cli.leaving import bound_exit, goes_on, leave
from swarmbus.cli.streams import STREAMS

if TYPE_CHECKING:
    from collections.abc import Sequence

FIRST_SIGNAL = 128
"""Exit codes above it are those of signals."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code; see to it that the process ends, whatever goes on.

    Args:
        arguments: what stands behind the program's name; the process's own by default.
    """
    before = set(threading.enumerate())
    try:
        with exiting():
            from swarmbus.cli.program import run_program  # noqa: PLC0415  # it takes over half a second

            code = run_program(list(sys.argv[1:] if arguments is None else arguments))
    except Interrupted as interrupted:
        code = interrupted.code
    if goes_on(before, interrupted=code > FIRST_SIGNAL):
        leave(code)
    if arguments is None:
        bound_exit(code)
    else:  # who called goes on
        STREAMS.give_back()
    return code
