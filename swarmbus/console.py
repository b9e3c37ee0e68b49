"""How a run is going, on standard error: a table that keeps itself up to date on a terminal, lines elsewhere.

What is known of a run is counted by `Board`; how it is shown is for `RunProgress`. Neither holds the run up.
"""

from __future__ import annotations

import sys
import time
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TextIO

from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from swarmbus.events import event_name
from swarmbus.graph.text import printable
from swarmbus.records import Envelope
from swarmbus.results import Lifecycle

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from types import TracebackType
    from typing import Self

PAUSE = 2.0
"""Seconds between two lines that count what a role has done."""

_COLUMNS = ("role", "handled", "again", "failed", "calls", "tokens", "now")


@dataclass(slots=True)
class RoleCount:
    """What one role has done in a run.

    Attributes:
        handled: deliveries that were handled.
        again: attempts that failed and are made again.
        failed: deliveries that failed for good.
        calls: replies of its model; those that come from a record are left out.
        tokens: what these cost.
        now: what it was last seen doing.
    """

    handled: int = 0
    again: int = 0
    failed: int = 0
    calls: int = 0
    tokens: int = 0
    now: str = ""

    def __str__(self) -> str:
        told = [f"{self.handled} handled", f"{self.again} again" * bool(self.again)]
        told += [f"{self.failed} failed" * bool(self.failed)]
        told += [f"{self.calls} model call{'s' * (self.calls > 1)}, {self.tokens} tokens" * bool(self.calls)]
        return ", ".join(part for part in told if part)


class Board:
    """Counts what the items of `run.events()` tell.

    Attributes:
        roles: what each role has done, and each kind of work beside them, in the order in which they were first heard
            of.
    """

    def __init__(self) -> None:
        self.roles: dict[str, RoleCount] = {}
        self._seen: set[tuple[str, str]] = set()

    def note(self, item: Envelope | Lifecycle | Any) -> Iterator[str]:
        """Take an item into account, and yield the lines that should be told at once."""
        if isinstance(item, Envelope):
            yield from self._note_event(item)
        elif isinstance(item, Lifecycle):
            yield from self._note_lifecycle(item)
        elif getattr(item, "role", ""):
            self._note_loop(item)

    def note_work(self, kind: str, name: str, status: str | None, *, failed: bool = False) -> Iterator[str]:
        """Take into account how work outside the roles is getting on, such as the reading of documents.

        Args:
            kind: what is counted together.
            name: the one thing that is worked on.
            status: how it ended, or None where it begins.
            failed: whether it ended badly.
        """
        count = self._role(kind)
        if status is None:
            count.now = name
            return
        count.now = ""
        count.failed += failed
        count.handled += not failed
        yield f"{name}: {status}"

    def _role(self, name: str) -> RoleCount:
        return self.roles.setdefault(name, RoleCount())

    def _note_event(self, envelope: Envelope) -> Iterator[str]:
        kind = (envelope.source, event_name(envelope.event))
        if kind not in self._seen:  # one line for each kind; the rest is counted
            self._seen.add(kind)
            yield f"{envelope.source}: {kind[1]}"

    def _note_lifecycle(self, item: Lifecycle) -> Iterator[str]:
        if item.role is None:
            return  # the end of the run, which whoever waits for it tells
        role = self._role(item.role)
        place = _place(item)
        match item.type:
            case "delivery_committed":
                role.handled += 1
                role.now = ""
            case "delivery_retried":
                role.again += 1
                yield f"{place}: {item.detail}; trying again"
            case "delivery_failed":
                role.failed += 1
                yield f"{place}: {item.detail}"
            case "question_asked":
                role.now = "waits for a person"
                yield f"{place}: waits for a person"
            case "progress":
                role.now = item.detail
                yield f"{item.role}: {item.detail}"
            case _:
                pass

    def _note_loop(self, item: Any) -> None:
        role = self._role(item.role)
        match item.type:
            case "message_start":
                role.now = f"asks {item.model}"
            case "tool_execution_start":
                role.now = f"runs {item.call.name}"
            case "message_end" if not item.replayed and item.message is not None:
                role.calls += 1
                role.tokens += item.usage.total_tokens


def _place(item: Lifecycle) -> str:
    """Name the delivery that something happened to, with its item where it has one."""
    value = f" ({item.value})" if item.value else ""
    return f"{item.role}.{item.handler}" + (f"[{item.item}]{value}" if item.item is not None else "")


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
        self.board = Board()
        self._stream = stream or sys.stderr
        self._clock = clock
        self._told: dict[str, str] = {}
        self._last = clock()
        self._footer = footer
        self._waiting = ""
        self._live = _live(self._stream, self._screen)

    def __enter__(self) -> Self:
        if self._live is not None:
            self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._live is not None:
            self._live.stop()
        else:
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
        if self._stream is None:  # standard error was closed before the program began
            return
        try:
            self._stream.write(f"{printable(line)}\n")
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
            table.add_row(Text(name), *cells, Text(printable(count.now), overflow="ellipsis", no_wrap=True))
        return table


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
