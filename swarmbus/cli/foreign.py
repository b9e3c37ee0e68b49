"""The user's code while it runs: it neither writes to where results go, nor ends the program without a word."""

from __future__ import annotations

import os
import sys
from contextlib import contextmanager, redirect_stdout
from typing import TYPE_CHECKING

from swarmbus.errors import SwarmbusError

if TYPE_CHECKING:
    from collections.abc import Iterator


class ProgramEnded(SwarmbusError):  # noqa: N818  # named for what happened, as all errors of swarmbus are
    """The user's code ended the program; what it raised is the cause."""

    def __init__(self, how: BaseException) -> None:
        from swarmbus.text import text_of  # noqa: PLC0415  # see below

        said = f" ({text_of(how)})" if str(how) else ""
        super().__init__(
            f"the swarm's own code ended the program by {type(how).__name__}{said}; "
            "to end a run, let it raise another error, or publish an event that says so"
        )


@contextmanager
def user_code() -> Iterator[None]:
    """Run code of the user's in the block: its output goes to standard error, however it is written.

    Raises:
        ProgramEnded: the code raised what ends a program.
    """
    try:
        with redirect_stdout(sys.stderr), _standard_output_kept():
            yield
    except (SystemExit, KeyboardInterrupt, BaseExceptionGroup) as error:
        from swarmbus.task_groups import lone  # noqa: PLC0415  # whoever listens to signals has no time for it before

        only = lone(error)
        if isinstance(only, SystemExit | KeyboardInterrupt):
            raise ProgramEnded(only) from only
        raise


@contextmanager
def _standard_output_kept() -> Iterator[None]:
    """Let the descriptor of standard output lead to standard error: other programs, and C, write to that."""
    if sys.__stdout__ is None or sys.__stderr__ is None:  # closed; by now the number may be that of another file
        yield
        return
    sys.__stdout__.flush()
    kept = os.dup(1)
    try:
        os.dup2(2, 1)
        yield
    finally:
        os.dup2(kept, 1)
        os.close(kept)
