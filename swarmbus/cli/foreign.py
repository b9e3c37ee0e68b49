"""The user's code while it runs: it neither writes to where results go, nor ends the program without a word."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from swarmbus.cli.interrupts import Interrupted
from swarmbus.cli.streams import STREAMS
from swarmbus.errors import SwarmbusError

if TYPE_CHECKING:
    from collections.abc import Iterator


_LOOP_STOPPED = "Event loop stopped before Future completed"
"""What asyncio says where its loop was stopped from within."""


class ProgramEnded(SwarmbusError):  # noqa: N818  # named for what happened, as all errors of swarmbus are
    """The user's code ended the program; what it raised is the cause."""

    def __init__(self, how: BaseException) -> None:
        from swarmbus.text import text_of  # noqa: PLC0415  # whoever listens to signals has no time for it before

        said = f" ({text})" if (text := text_of(how)) else ""
        super().__init__(
            f"the swarm's own code ended the program by {type(how).__name__}{said}; "
            "to end a run, let it raise another error, or publish an event that says so"
        )


@contextmanager
def user_code() -> Iterator[None]:
    """Run code of the user's in the block: its output goes to standard error, however it is written, and stays there.

    Raises:
        ProgramEnded: the code raised what ends a program, or stopped the event loop.
    """
    STREAMS.keep()
    try:
        yield
    except Interrupted:
        raise
    except BaseException as error:
        if (how := _what_ends_programs(error)) is not None:
            raise ProgramEnded(how) from how
        raise


def _what_ends_programs(error: BaseException) -> BaseException | None:
    """Return what is no mere error, be it one of several."""
    if isinstance(error, BaseExceptionGroup):
        return next(filter(None, map(_what_ends_programs, error.exceptions)), None)
    stopped = type(error) is RuntimeError and _LOOP_STOPPED in str(error)
    return error if stopped or not isinstance(error, Exception) else None
