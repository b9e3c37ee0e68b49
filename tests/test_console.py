"""The progress of a run: what a terminal and a file get to see of what is counted and told at once."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any

import pytest

from support.progress import Clock, envelope, lifecycle
from swarmbus.console import BEAT, PAUSE, RunProgress

if TYPE_CHECKING:
    from collections.abc import Iterable


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def shown(stream: io.StringIO, clock: Clock, items: Iterable[tuple[float, Any]]) -> str:
    with RunProgress(stream=stream, clock=clock) as progress:
        for seconds, item in items:
            clock.now += seconds
            progress.note(item)
    return stream.getvalue()


def test_counts_are_told_now_and_then_and_at_the_end() -> None:
    committed = lifecycle("delivery_committed")
    items = [
        (0.0, committed),
        (0.1, committed),
        (PAUSE, committed),
        (0.1, committed),
        (0.1, lifecycle("run_done", None)),
    ]
    assert shown(io.StringIO(), Clock(), items) == "executor: 3 handled\nexecutor: 4 handled\n"


def test_what_has_not_changed_is_not_told_again() -> None:
    items = [(PAUSE, lifecycle("delivery_committed")), (PAUSE, lifecycle("delivery_started"))]
    assert shown(io.StringIO(), Clock(), items) == "executor: 1 handled\n"


def test_a_file_gets_plain_lines_even_where_colours_are_forced(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    text = shown(io.StringIO(), Clock(), [(0.0, lifecycle("progress", detail="[bold]a\x1b[31mb\nc"))])
    assert text == "executor: [bold]a\\x1b[31mb c\n"


def test_a_long_line_is_not_broken() -> None:
    text = shown(io.StringIO(), Clock(), [(0.0, lifecycle("progress", detail="x" * 500))])
    assert text.splitlines()[0] == f"executor: {'x' * 500}"


def test_a_terminal_gets_a_table(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "100")
    text = shown(Terminal(), Clock(), [(0.0, envelope()), (0.0, lifecycle("delivery_committed"))])
    assert "\x1b[?25l" in text
    assert text.endswith("\x1b[?25h")
    assert "executor: step_done" not in text
    assert [word for word in ("role", "handled", "tokens", "executor") if word not in text] == []


def test_what_a_person_has_to_know_stays_on_the_screen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    stream = Terminal()
    with RunProgress(lambda: "stopping", stream=stream):
        pass
    assert stream.getvalue().rpartition("\x1b[2K")[2].splitlines()[-2] == "stopping"


@pytest.mark.parametrize("stream", [io.StringIO(), Terminal()], ids=["file", "terminal"])
def test_after_a_stop_it_is_said_what_is_waited_for(stream: io.StringIO, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "120")
    with RunProgress(lambda: "stopping", stream=stream) as progress:
        progress.note_stop({"executor.work": 4, "auditor.look": 1}, 10.0)
    said = "waiting 10 s at the most for executor.work (4), auditor.look (1); a second Ctrl-C ends it at once"
    assert said in stream.getvalue()


def test_after_a_stop_with_nothing_under_way_nothing_is_said() -> None:
    stream = io.StringIO()
    with RunProgress(stream=stream) as progress:
        progress.note_stop({}, 10.0)
    assert stream.getvalue() == ""


def test_a_terminal_without_abilities_gets_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "dumb")
    assert shown(Terminal(), Clock(), [(0.0, envelope())]) == "executor: step_done\n"


def test_the_table_stands_still_while_something_else_is_on_the_screen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    stream = Terminal()
    with RunProgress(stream=stream, clock=Clock()) as progress, progress.paused():
        assert stream.getvalue().endswith("\x1b[?25h")
    assert stream.getvalue().count("\x1b[?25l") == 2


def test_a_file_is_told_what_is_under_way_where_there_was_no_line_for_a_while() -> None:
    stream, clock = io.StringIO(), Clock()
    with RunProgress(stream=stream, clock=clock) as progress:
        progress.note(lifecycle("delivery_started"))
        for seconds in (BEAT - 1, 1, BEAT - 1, 1):
            clock.now += seconds
            progress.beat()
        progress.note(lifecycle("progress", detail="page 3"))
        clock.now += BEAT - 1
        progress.beat()
    assert stream.getvalue().splitlines() == [
        "still at work: executor.work (1) for 10 s",
        "still at work: executor.work (1) for 20 s",
        "executor: page 3",
    ]


def test_nothing_is_said_of_work_where_none_is_under_way() -> None:
    stream, clock = io.StringIO(), Clock()
    with RunProgress(stream=stream, clock=clock) as progress:
        clock.now += BEAT
        progress.beat()
    assert stream.getvalue() == ""


def test_a_terminal_shows_for_how_long_a_role_works(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "100")
    stream, clock = Terminal(), Clock()
    with RunProgress(stream=stream, clock=clock) as progress:
        progress.note(lifecycle("delivery_started"))
        clock.now += 7
        progress.beat()
    assert "works for 7 s" in stream.getvalue()
    assert "still at work" not in stream.getvalue()


class Broken(io.StringIO):
    def write(self, text: str) -> int:
        raise BrokenPipeError


def test_a_screen_that_goes_away_does_not_end_the_run() -> None:
    with RunProgress(stream=Broken(), clock=Clock()) as progress:
        progress.note(lifecycle("delivery_failed"))
    assert progress.board.roles["executor"].failed == 1
