"""Starts the program: listens to signals first, and loads it then."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from swarmbus.cli.interrupts import Interrupted, exiting

if TYPE_CHECKING:
    from collections.abc import Sequence


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code.

    Args:
        arguments: what stands behind the program's name; the process's own by default.
    """
    try:
        with exiting():
            from swarmbus.cli.program import run_program  # noqa: PLC0415  # it takes over half a second

            return run_program(list(sys.argv[1:] if arguments is None else arguments))
    except Interrupted as interrupted:
        return interrupted.code
