"""How a run is going, on standard error: a table that keeps itself up to date on a terminal, lines elsewhere.

What is known of a run is kept by the board; how it is shown is for `RunProgress`. Neither holds the run up.
"""

from __future__ import annotations

import sys
import threading
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TextIO

from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from swarmbus.board import Board, RoleCount
from swarmbus.graph.text import printable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from types import TracebackType
    from typing import Self

    from swarmbus.records import Envelope
    from swarmbus.results import Lifecycle

PAUSE = 2.0
"""Seconds between two lines that count what a role has done."""
BEAT = 10.0
"""Seconds without a line after which one says what is under way."""

_COLUMNS = ("role", "handled", "again", "failed", "calls", "tokens", "now")


class RunProgress:
    """Shows how a run is going, within a `with` block.

    Args:
        footer: what stands below the table just now.
        stream: where to, standard error by default.
        clock: seconds, from any start.
    """

    def __init__(
        self,
        footer: Callable[[], str] = str,
        *,
        stream: TextIO | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.board = Board(clock)
        self._stream = stream or sys.stderr
        self._clock = clock
        self._told: dict[str, str] = {}
        self._last = self._last_line = clock()
        self._over = threading.Event()
        self._beats = threading.Thread(target=self._keep_beating, name="progress", daemon=True)
        self._footer = footer
        self._waiting = ""
        self._live = _live(self._stream, self._screen)

    def __enter__(self) -> Self:
        if self._live is not None:
            self._live.start()
        else:
            self._beats.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._live is not None:
            self._live.stop()
            return
        self._over.set()
        self._beats.join()
        self._tell_counts()

    def note(self, item: Envelope | Lifecycle | Any) -> None:
        """Show what an item of `run.events()` tells."""
        self._show(self.board.note(item))

    def note_work(self, kind: str, name: str, status: str | None, *, failed: bool = False) -> None:
        """Show how work outside the roles is getting on; see `Board.note_work`."""
        self._show(self.board.note_work(kind, name, status, failed=failed))

    def note_stop(self, under_way: Mapping[str, int], seconds: float) -> None:
        """Show, when somebody asked for a stop, what is waited for.

        Args:
            under_way: how many deliveries each handler is at work on; see `Run.under_way`.
            seconds: for how long it is waited for at the most.
        """
        if not under_way:
            return
        named = ", ".join(f"{handler} ({number})" for handler, number in under_way.items())
        self._waiting = f"waiting {seconds:g} s at the most for {named}; a second Ctrl-C ends it at once"
        if self._live is None:
            self._tell(self._waiting)

    def beat(self) -> None:
        """Say what is under way, where lines are shown and there was none for a while."""
        if self._live is None and self._clock() - self._last_line >= BEAT and (work := self.board.under_way()):
            self._tell(f"still at work: {work}")

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Keep the screen still within the block."""
        if self._live is None:
            yield
            return
        self._live.stop()
        try:
            yield
        finally:
            self._live.start()

    def _keep_beating(self) -> None:
        """Beat once a second, in a thread of its own: what is under way may hold up the event loop."""
        while not self._over.wait(1.0):
            self.beat()

    def _show(self, lines: Iterator[str]) -> None:
        for line in lines:
            if self._live is None:
                self._tell(line)
        if self._live is None and self._clock() - self._last >= PAUSE:
            self._tell_counts()

    def _tell_counts(self) -> None:
        self._last = self._clock()
        for name, count in self.board.roles.items():
            if str(count) != self._told.get(name, str(RoleCount())):
                self._told[name] = str(count)
                self._tell(f"{name}: {count}")

    def _tell(self, line: str) -> None:
        self._last_line = self._clock()
        if self._stream is None:  # standard error was closed before the program began
            return
        try:
            self._stream.write(f"{_one_line(line)}\n")
            self._stream.flush()
        except OSError:
            return  # nobody reads it, and the run goes on

    def _screen(self) -> Group:
        return Group(self._table(), *(Text(line) for line in (self._footer(), self._waiting) if line))

    def _table(self) -> Table:
        table = Table(*_COLUMNS, box=None, pad_edge=False)
        for column in table.columns[1:-1]:
            column.justify = "right"
        for name, count in list(self.board.roles.items()):  # drawn by a thread of its own, while more are added
            numbers = (count.handled, count.again, count.failed, count.calls, count.tokens)
            cells = [Text(str(number) if number else "") for number in numbers]
            table.add_row(Text(name), *cells, Text(_one_line(self.board.now(name)), overflow="ellipsis", no_wrap=True))
        return table


def _one_line(text: str) -> str:
    """Return text, such as that of an error, as one line that does not control a terminal."""
    return printable(" ".join(line.strip() for line in text.splitlines()))


class _Screen(Console):
    """A terminal which, when it goes away, does not take the program with it."""

    def on_broken_pipe(self) -> None:
        self.quiet = True


def _live(stream: TextIO | None, content: Callable[[], Group]) -> Live | None:
    """Return a display that keeps itself up to date, where the stream is a terminal that can."""
    if stream is None or not stream.isatty():
        return None
    screen = _Screen(file=stream, highlight=False)
    return None if screen.is_dumb_terminal else Live(get_renderable=content, console=screen, refresh_per_second=8)
