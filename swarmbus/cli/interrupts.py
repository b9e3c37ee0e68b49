"""Ctrl-C, SIGTERM and SIGHUP: the first asks for an orderly stop, the second ends the process, as does the last moment.

A signal is heeded even where the event loop is blocked. Elsewhere than in the main thread signals are left alone.
"""

from __future__ import annotations

import os
import signal
import socket
import sys
import threading
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import FrameType
    from typing import NoReturn

HANGUP = getattr(signal, "SIGHUP", None)
"""What tells of a terminal that was closed, where there is such a signal."""

SIGNALS = (signal.SIGINT, signal.SIGTERM, *([HANGUP] if HANGUP is not None else []))

GRACE = 10.0
"""Seconds that what is under way gets after the first signal."""

LAST_MOMENT = GRACE + 5.0
"""Seconds after the first signal at which the process ends, whatever keeps it from coming to an orderly end."""

MESSAGE = "stopping, press again to force"

_ASKED = b"\0"
"""No signal's number: says to the thread only that there was one."""

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

    A signal arrives in two ways: its handler runs in the main thread, and its number is written to `wakes`, where a
    thread reads it. The handler alone would not do: it does not run while the main thread is inside a call of a C
    library, nor where a signal comes just before such a call begins. Each way counts for itself.

    Attributes:
        code: exit code that says so, 130, 143 or 129; None as long as nobody did.
        at_last: is called, in a thread, before the process is ended by force; it may end it in a better way.
        wakes: takes the numbers of signals, a byte each.
    """

    at_last: Callable[[], None] | None = None

    def __init__(self) -> None:
        self.code: int | None = None
        self._handled = False
        self._first = threading.Lock()  # taken once, by whoever is the first to learn of a signal
        self._ours, self._theirs = socket.socketpair()
        self._ours.setblocking(False)
        self._woken, self.wakes = socket.socketpair()
        self.wakes.setblocking(False)
        self._watch = threading.Thread(target=self._listen, name="swarmbus stop", daemon=True)
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

    def handle(self, number: int) -> None:
        """Do in the main thread what a signal asks for, and see that the thread knows of it."""
        self._handled = self._heed(number, again=self._handled)
        self.wakes.send(_ASKED)

    def _heed(self, number: int, *, again: bool) -> bool:
        """Ask for a stop on behalf of a signal; the second time the process ends here, unless a terminal was closed."""
        if again and number == HANGUP:
            return True  # a terminal that is closed tells of it more than once, and nobody is there to press again
        if again:
            _say(_SHOW_CURSOR if sys.stderr is not None and sys.stderr.isatty() else "")
            os._exit(128 + number)
        if self._first.acquire(blocking=False):
            self.code = 128 + number
            _say(f"{MESSAGE}\n")
            self._theirs.send(b"\0")
        return True

    def _listen(self) -> None:
        """Hear of signals, in a thread, and end the process at the last moment, for the event loop may be blocked."""
        again = False
        end: float | None = None
        while True:
            try:
                numbers = self._woken.recv(64)
            except TimeoutError:
                self._end()
            if not numbers:
                return
            for number in numbers:
                if number in SIGNALS:
                    again = self._heed(number, again=again)
            if self.code is not None:
                end = end or time.monotonic() + LAST_MOMENT
                self._woken.settimeout(max(end - time.monotonic(), 0.001))

    def _end(self) -> NoReturn:
        if self.at_last is not None:
            self.at_last()
        _say(f"{STUCK}\n")
        os._exit(self.code or 1)

    def close(self) -> None:
        """Let go of what `wait` waits on, and of the last moment."""
        self.wakes.close()  # ends the thread
        self._watch.join()
        for end in (self._woken, self._ours, self._theirs):
            end.close()


@contextmanager
def stopping() -> Iterator[Stop]:
    """Let signals ask for a stop within the block."""
    stop = Stop()
    try:
        with _told(stop.wakes), _handled(lambda number, _frame: stop.handle(number)):
            yield stop
    finally:
        stop.close()


@contextmanager
def _told(wakes: socket.socket) -> Iterator[None]:
    """Have the numbers of signals written to a socket the moment they arrive."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.set_wakeup_fd(wakes.fileno(), warn_on_full_buffer=False)
    try:
        yield
    finally:
        signal.set_wakeup_fd(before)


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
