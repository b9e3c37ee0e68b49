"""Ctrl-C, SIGTERM and SIGHUP: the first asks for an orderly stop, the second ends the process, as does the last moment.

Handlers of signals run in the main thread between any two instructions, so that a second one works even where the
event loop is blocked. Elsewhere than in the main thread signals are left alone.
"""

from __future__ import annotations

import os
import signal
import socket
import sys
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import FrameType

HANGUP = getattr(signal, "SIGHUP", None)
"""What tells of a terminal that was closed, where there is such a signal."""

SIGNALS = (signal.SIGINT, signal.SIGTERM, *([HANGUP] if HANGUP is not None else []))

GRACE = 10.0
"""Seconds that what is under way gets after the first signal."""

LAST_MOMENT = GRACE + 5.0
"""Seconds after the first signal at which the process ends, whatever keeps it from coming to an orderly end."""

MESSAGE = "stopping, press again to force"

STUCK = "ended by force: something does not stop, and keeps what was found from being reported"

_SHOW_CURSOR = "\x1b[?25h"


class Interrupted(BaseException):
    """A signal ended the program while it had nothing to bring to an end; no error, so nothing may catch it as one.

    Attributes:
        code: exit code that says so, 130, 143 or 129.
    """

    def __init__(self, code: int) -> None:
        super().__init__(code)
        self.code = code


class Stop:
    """Whether somebody asked for a stop.

    Attributes:
        code: exit code that says so, 130, 143 or 129; None as long as nobody did.
        at_last: is called, in a thread, before the process is ended by force; it may end it in a better way.
    """

    at_last: Callable[[], None] | None = None

    def __init__(self) -> None:
        self.code: int | None = None
        self._ours, self._theirs = socket.socketpair()
        self._ours.setblocking(False)
        self._asked = threading.Event()
        self._over = threading.Event()
        self._watch = threading.Thread(target=self._insist, name="swarmbus stop", daemon=True)
        self._watch.start()  # now, for a thread can't be started where a signal is handled

    @property
    def notice(self) -> str:
        """What a person is to know now: nothing, or that it is stopping."""
        return MESSAGE if self.code is not None else ""

    async def wait(self) -> None:
        """Wait until somebody asks for a stop."""
        import anyio  # noqa: PLC0415  # whoever listens to signals from the start has no time for it

        while self.code is None:
            await anyio.wait_readable(self._ours)

    def request(self, number: int) -> None:
        """Ask for a stop on behalf of a signal; the second time the process ends here, unless a terminal was closed."""
        if self.code is not None and number == HANGUP:
            return  # a terminal that is closed tells of it more than once, and nobody is there to press again
        if self.code is not None:
            _say(_SHOW_CURSOR if sys.stderr is not None and sys.stderr.isatty() else "")
            os._exit(128 + number)
        self.code = 128 + number
        _say(f"{MESSAGE}\n")
        self._theirs.send(b"\0")
        self._asked.set()

    def _insist(self) -> None:
        """End the process at the last moment, in a thread, for the event loop may be blocked."""
        self._asked.wait()
        if not self._over.wait(LAST_MOMENT):
            if self.at_last is not None:
                self.at_last()
            _say(f"{STUCK}\n")
            os._exit(self.code or 1)

    def close(self) -> None:
        """Let go of what `wait` waits on, and of the last moment."""
        self._over.set()
        self._asked.set()
        self._watch.join()
        self._ours.close()
        self._theirs.close()


@contextmanager
def stopping() -> Iterator[Stop]:
    """Let signals ask for a stop within the block."""
    stop = Stop()
    try:
        with _handled(lambda number, _frame: stop.request(number)):
            yield stop
    finally:
        stop.close()


@contextmanager
def exiting() -> Iterator[None]:
    """Let signals raise `Interrupted` within the block."""

    def leave(number: int, _frame: FrameType | None) -> None:
        raise Interrupted(128 + number)

    with _handled(leave):
        yield


@contextmanager
def _handled(handler: Callable[[int, FrameType | None], None]) -> Iterator[None]:
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    # What whoever started the program lets it ignore, as nohup does, stays ignored.
    heeded = [number for number in SIGNALS if signal.getsignal(number) is not signal.SIG_IGN]
    before = {number: signal.signal(number, handler) for number in heeded}
    try:
        yield
    finally:
        for number, handled in before.items():
            signal.signal(number, handled)


def _say(text: str) -> None:
    """Write to standard error past its buffer, which the code that was interrupted may be using."""
    try:
        os.write(2, text.encode())
    except OSError:
        return  # nobody reads it
