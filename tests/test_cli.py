"""The command line: what it prints where, how it ends, and what it says to a target that leads nowhere."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from contextlib import ExitStack, contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from swarms import mended, research, twelve_faults

from swarmbus.cli import main
from swarmbus.cli.table_view import to_text
from swarmbus.codes import CODES
from swarmbus.graph import FORMATS, draw

if TYPE_CHECKING:
    from collections.abc import Iterator

TESTS = Path(__file__).parent
SWARMS = TESTS / "swarms"

WORKING = """
from swarmbus import CLIENT, Event, EventTable, Role, Swarm, on

class Asked(Event):
    text: str

class Told(Event):
    text: str

class Teller(Role):
    @on
    async def tell(self, event: Asked) -> Told:
        return Told(text=event.text.upper())

def make():
    return Swarm(Teller(), table=EventTable((CLIENT, Asked, "teller"), ("teller", Told, CLIENT), result=Told))

swarm = make()
teller = Teller()
rows = EventTable()
def a_role(): return teller
number = 7
def needy(x): return x
async def later(): return swarm
def failing(): raise RuntimeError("no swarm today")
"""


@pytest.fixture(autouse=True)
def untouched_imports(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.chdir(tmp_path)
    path, modules = list(sys.path), set(sys.modules)
    yield
    sys.path[:] = path
    for name in set(sys.modules) - modules:
        if str(tmp_path) in str(getattr(sys.modules[name], "__file__", "")):
            del sys.modules[name]


@pytest.fixture
def app(tmp_path: Path) -> Path:
    path = tmp_path / "app.py"
    path.write_text(WORKING)
    return path


def start(*arguments: object, cwd: Path | None = None, **options: Any) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "swarmbus", *map(str, arguments)]
    pipes = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    return subprocess.Popen(command, text=True, cwd=cwd, **{**pipes, **options})


def call(*arguments: object, cwd: Path | None = None, **options: Any) -> tuple[int, str, str]:
    """Run the command line as a process of its own."""
    with start(*arguments, cwd=cwd, **options) as process:
        out, err = process.communicate(timeout=50)
    return process.returncode, out, err


def told(*steps: str) -> str:
    return f"told={json.dumps({'steps': steps})}"


# --- check, table, graph ---------------------------------------------------------------------------------------------


def test_check_of_a_sound_swarm(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", str(SWARMS / "mended.py")]) == 0
    assert capsys.readouterr() == ("the wiring is sound\n", "")


def test_check_names_all_findings_at_once(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", str(SWARMS / "twelve_faults.py")]) == 3
    out, err = capsys.readouterr()
    found = twelve_faults.swarm.check()
    assert len({finding.code for finding in found}) == len(found) == 12
    for finding in found:
        told = (finding.code, str(finding.where), finding.message, str(finding.hint))
        assert [part for part in told if part not in out] == []
    assert out.splitlines()[-1] == f"{len(found)} errors"
    assert err == ""


def test_check_as_json_is_the_list_of_findings(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", str(SWARMS / "twelve_faults.py"), "--format", "json"]) == 3
    assert json.loads(capsys.readouterr().out) == [asdict(finding) for finding in twelve_faults.swarm.check()]


def test_check_for_github_has_a_line_for_each_finding(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", str(SWARMS / "twelve_faults.py"), "--format", "github"]) == 3
    lines = capsys.readouterr().out.splitlines()
    found = twelve_faults.swarm.check()
    assert len(lines) == len(found)
    for line, finding in zip(lines, found, strict=True):
        assert line.startswith(f"::{finding.severity} file={str(finding.where).rpartition(':')[0]},line=")
        assert f"title={finding.code} " in line


def test_a_warning_alone_is_no_failure(app: Path, capsys: pytest.CaptureFixture[str]) -> None:
    app.write_text(WORKING.replace("@on\n", "@on(timeout=float('inf'))\n"))
    assert main(["check", "app.py"]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == "1 warning"


@pytest.mark.parametrize("written", ["text", "json"])
def test_check_lists_the_codes(written: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", "--list", "--format", written]) == 0
    out = capsys.readouterr().out
    listed = (
        [entry["code"] for entry in json.loads(out)] if written == "json" else [line[:5] for line in out.splitlines()]
    )
    assert listed == list(CODES)


def test_table_prints_the_table(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["table", f"{SWARMS / 'research.py'}:make"]) == 0
    assert capsys.readouterr() == (to_text(research.swarm.table), "")


@pytest.mark.parametrize("written", ["text", "markdown", "json"])
def test_what_the_code_alone_gives_is_the_table_of_a_sound_swarm(
    written: str, capsys: pytest.CaptureFixture[str]
) -> None:
    outputs = []
    for options in ([], ["--derive"]):
        assert main(["table", str(SWARMS / "mended.py"), "--format", written, *options]) == 0
        outputs.append(capsys.readouterr().out)
    assert outputs[0] == outputs[1]


@pytest.mark.parametrize("written", FORMATS)
@pytest.mark.parametrize("view", ["roles", "events"])
def test_graph_prints_the_picture(written: str, view: Any, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["graph", str(SWARMS / "mended.py"), "--view", view, "--format", written]) == 0
    assert capsys.readouterr().out == FORMATS[written](draw(mended.swarm, view))


def test_graph_writes_a_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["graph", str(SWARMS / "research.py"), "--format", "mermaid", "-o", "picture.mmd"]) == 0
    assert (tmp_path / "picture.mmd").read_text() == FORMATS["mermaid"](draw(research.swarm))
    assert capsys.readouterr().out == ""


def test_a_broken_wiring_is_drawn_and_said_to_be_broken(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["graph", str(SWARMS / "twelve_faults.py"), "--format", "dot"]) == 0
    out, err = capsys.readouterr()
    assert out == FORMATS["dot"](draw(twelve_faults.swarm))
    assert "swarmbus check" in err


def test_pictures_are_the_same_from_process_to_process() -> None:
    command = ("graph", SWARMS / "twelve_faults.py", "--format", "dot", "--view", "events")
    first, second = (call(*command, env={**os.environ, "PYTHONHASHSEED": seed}) for seed in ("1", "2"))
    assert first == second
    assert first[0] == 0


# --- targets ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("target", ["app", "app:swarm", "app:make", "app.py", "./app.py:make", "app.py:swarm"])
def test_a_target_leads_to_a_swarm(target: str, app: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", target]) == 0
    assert str(app.parent) == sys.path[-1]


def test_a_target_may_be_a_file_in_a_package(tmp_path: Path) -> None:
    package = tmp_path / "house" / "rooms"
    package.mkdir(parents=True)
    for init in (package.parent / "__init__.py", package / "__init__.py"):
        init.touch()
    (package / "names.py").write_text(WORKING)
    (package / "hall.py").write_text("from .names import make\nswarm = make()\n")
    assert main(["check", "house/rooms/hall.py"]) == 0
    assert sys.modules["house.rooms.hall"].__file__ == str(package / "hall.py")


@pytest.mark.parametrize("name", ["json.py", "my-app.py"], ids=["taken by another module", "no module's name"])
def test_a_file_is_found_whatever_its_name(name: str, app: Path) -> None:
    app.rename(name)
    before = sys.modules["json"]
    assert main(["check", name]) == 0
    assert sys.modules["json"] is before


@pytest.mark.parametrize("target", ["pk:swarm", "pk", "./pk:swarm", "pk/", "pk/__init__.py:make", "pk.inner:swarm"])
def test_a_target_may_be_a_package_in_the_working_folder(target: str, tmp_path: Path) -> None:
    package = tmp_path / "pk"
    package.mkdir()
    (package / "inner.py").write_text(WORKING)
    (package / "__init__.py").write_text("from .inner import make, swarm\n")
    assert main(["check", target]) == 0


def test_a_working_folder_that_was_deleted_is_told(tmp_path: Path) -> None:
    (tmp_path / "gone").mkdir()
    command = ["sh", "-c", 'cd gone && rmdir ../gone && exec "$@"', "sh", sys.executable, "-m", "swarmbus", "check"]
    environment = {**os.environ, "PYTHONPATH": str(TESTS.parent)}
    ended = subprocess.run(
        [*command, "app"], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False, timeout=50
    )
    assert ended.returncode == 2
    assert "the working folder was deleted; change to one that exists" in ended.stderr


def test_a_package_whose_name_is_taken_finds_its_modules(tmp_path: Path) -> None:
    package = tmp_path / "json"
    package.mkdir()
    (package / "inner.py").write_text(WORKING)
    (package / "__init__.py").write_text("from .inner import swarm\n")
    assert main(["check", "./json:swarm"]) == 0


def test_a_folder_beside_a_module_of_its_name_is_no_target(app: Path) -> None:
    app.with_suffix("").mkdir()
    assert main(["check", "app:swarm"]) == 0


def test_a_file_elsewhere_finds_the_modules_beside_it(app: Path, tmp_path: Path) -> None:
    folder = tmp_path / "other place"
    folder.mkdir()
    app.rename(folder / "beside_it.py")
    (folder / "main_part.py").write_text("from beside_it import swarm\n")
    assert main(["check", "other place/main_part.py"]) == 0


@pytest.mark.parametrize(
    ("target", "says"),
    [
        ("app.py:swrm", ("app.py has no 'swrm'", "did you mean `swarm`?", "swarm (a swarm)", "make (a function)")),
        ("app:nothing", ("app.py has no 'nothing'", "swarm (a swarm)")),
        ("app.py:number", ("number is of type int",)),
        ("app.py:Teller", ("Teller is a role, one of the parts", "not a swarm", "swarm (a swarm), make (a function)")),
        ("app.py:teller", ("teller is a role",)),
        ("app.py:Asked", ("Asked is an event",)),
        ("app.py:rows", ("rows is an event table",)),
        ("app.py:a_role", ("a_role is a role",)),
        ("app.py:needy", ("app.needy can't be called without arguments", "'x'")),
        ("app.py:later", ("app.later is an async function",)),
        ("ap.py", ("there is no file ap.py", "did you mean `app.py`?")),
        ("notes.txt", ("notes.txt is no Python file",)),
        ("folder/", ("folder is a folder", "inside.py")),
        ("nosuchmodule:swarm", ("there is no module 'nosuchmodule'", "registered: analysis")),
        ("analysys", ("did you mean `analysis`?",)),
        ("what is this", ("is no target", "MODULE:NAME")),
        ("folder.deeper:swarm", ("deeper, a folder without an __init__.py, has no 'swarm'",)),
    ],
    ids=["attribute", "no near match", "no swarm", "role class", "role", "event", "table", "makes a role", "arguments",
         "async", "file", "text", "folder", "module", "registered", "nonsense", "namespace"],
)  # fmt: skip
def test_a_target_that_leads_nowhere_is_a_usage_error(
    target: str, says: tuple[str, ...], app: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "notes.txt").touch()
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "inside.py").touch()
    (tmp_path / "folder" / "deeper").mkdir()
    assert main(["check", target]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert [part for part in says if part not in err] == []


@pytest.mark.parametrize(
    ("target", "there"),
    [("roles.standard", "standard_swarm (a function)"), ("roles.analysis", "analysis_swarm (a function)")],
    ids=["imported", "loaded when asked for"],
)
def test_a_package_names_the_functions_that_return_a_swarm(
    target: str, there: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["check", target]) == 2
    assert capsys.readouterr().err.rstrip().endswith(f" has: {there}")


@pytest.mark.parametrize("target", ["broken.py", "broken:swarm"])
@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("import a_package_that_is_not_there\n", "ModuleNotFoundError: No module named 'a_package_that_is_not_there'"),
        ("raise OSError('no database')\n", "OSError: no database"),
        ("def swarm(:\n", "SyntaxError: invalid syntax"),
        ("raise SystemExit(5)\n", "SystemExit: 5"),
        ("import inner\n", "KeyError: 'deep'"),
    ],
    ids=["missing package", "raises", "syntax", "exits", "raises further in"],
)
def test_an_error_of_the_users_module_is_shown_as_it_is(
    content: str, says: str, target: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "broken.py").write_text(content)
    (tmp_path / "inner.py").write_text("raise KeyError('deep')\n")
    assert main(["check", target]) == 2
    err = capsys.readouterr().err
    assert says in err
    assert f'File "{tmp_path / "broken.py"}", line 1' in err
    assert "no such file" not in err.lower()
    assert "importlib" not in err
    assert "swarmbus/" not in err


def test_an_error_of_a_function_that_makes_the_swarm_is_shown(app: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", "app.py:failing"]) == 2
    err = capsys.readouterr().err
    assert "RuntimeError: no swarm today" in err
    assert f'File "{app}"' in err


def test_a_users_package_that_hides_ours_is_named_with_the_cure(tmp_path: Path) -> None:
    (tmp_path / "roles").mkdir()
    hiding = tmp_path / "roles" / "__init__.py"
    hiding.touch()
    (tmp_path / "app.py").write_text("import roles.standard\n" + WORKING)
    code, _, err = call("check", "app.py", cwd=tmp_path)
    assert code == 2
    assert "No module named 'roles.standard'" in err
    assert f"{hiding} hides the package 'roles'" in err
    cure = err.splitlines()[-1].partition("line into it: ")[2]
    hiding.write_text(cure)
    assert call("check", "app.py", cwd=tmp_path)[0] == 0


# --- run -------------------------------------------------------------------------------------------------------------


def test_run_prints_what_it_brought_and_nothing_else(app: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "app.py", "--event", '{"text": "größe"}']) == 0
    out, err = capsys.readouterr()
    report = json.loads(out)
    assert {**report, "run_id": "", "started": 0, "ended": 0, "usage": {}} == {
        "run_id": "",
        "status": "done",
        "reason": None,
        "event": "told",
        "output": {"text": "GRÖSSE"},
        "failures": [],
        "warnings": [],
        "usage": {},
        "usage_by_role": {},
        "started": 0,
        "ended": 0,
    }
    assert "teller: 1 handled" in err


@pytest.mark.parametrize(
    ("target", "event", "options", "code", "status"),
    [
        ("trouble.py", told("a"), (), 0, "done"),
        ("trouble.py", told("a", "fail"), (), 4, "partial"),
        ("trouble.py:strict", told("a", "fail"), (), 1, "failed"),
        ("trouble.py", told("spend"), (), 5, "limit"),
        ("trouble.py", told("a", "wait"), ("--timeout", 0.2), 1, "timed_out"),
        ("trouble.py", told("a", "silent"), (), 1, "cancelled"),
        ("trouble.py", told("a", "person"), (), 1, "cancelled"),
    ],
    ids=["done", "partial", "failed", "limit", "timeout", "waiting", "nobody to ask"],
)
def test_run_ends_with_a_code_that_says_how_and_reports_what_there_is(
    target: str, event: str, options: tuple[object, ...], code: int, status: str
) -> None:
    ended, out, err = call("run", SWARMS / target, "--event", event, *options)
    report = json.loads(out)
    assert (ended, report["status"]) == (code, status)
    assert (report["output"] is not None) == (status in ("done", "partial"))
    assert report["reason"] is None or report["reason"] in err


def test_each_item_that_failed_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", str(SWARMS / "trouble.py"), "--event", told("fail", "a", "fail")]) == 4
    lines = capsys.readouterr().err.splitlines()
    said = "('fail'): ValueError: this step can't be done"
    told_at_once = [line for line in lines if line.startswith("worker.work[")]
    assert told_at_once == [f"worker.work[0] {said}", f"worker.work[2] {said}"]
    told_at_the_end = [line for line in lines if line.startswith("failed: worker.work for planned ")]
    assert [line.partition(" item ")[2] for line in told_at_the_end] == [f"0 {said}", f"2 {said}"]


def test_a_failed_run_says_where(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", f"{SWARMS / 'trouble.py'}:strict", "--event", told("a", "fail")]) == 1
    out, err = capsys.readouterr()
    assert [failure["message"] for failure in json.loads(out)["failures"]] == ["this step can't be done"]
    assert f'File "{SWARMS / "trouble.py"}"' in err
    assert "/delivery/" not in err


def test_a_broken_wiring_is_not_run(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", str(SWARMS / "twelve_faults.py"), "--event", "paper_submitted={}"]) == 3
    out, err = capsys.readouterr()
    assert out == ""
    assert all(finding.code in err for finding in twelve_faults.swarm.check())
    assert twelve_faults.swarm._model.requests == []  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("event", "says"),
    [
        ('{"steps": ["a"]}', ("say which event this is", "told, corrected")),
        ('tol={"steps": []}', ("accepts no 'tol'", "did you mean `told`?", "told, corrected")),
        ('planned={"steps": []}', ("accepts no 'planned'",)),
        ("told=nonsense", ("the JSON is no Told",)),
        ("told={}", ("steps: Field required",)),
        ('told={"steps": [], "stps": []}', ("it has no field 'stps'", "did you mean `steps`?")),
    ],
    ids=["which", "misspelt", "not the client's", "no JSON", "field missing", "field misspelt"],
)
def test_an_event_that_is_none_is_a_usage_error(
    event: str, says: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["run", str(SWARMS / "trouble.py"), "--event", event]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert [part for part in says if part not in err] == []


@pytest.mark.parametrize("name", ["told", "Told"])
def test_an_event_is_named_as_on_the_wire_or_in_code(name: str) -> None:
    assert main(["run", str(SWARMS / "trouble.py"), "--event", f'{name}={{"steps": ["a=b"]}}']) == 0


def test_a_model_that_nothing_resolves_is_a_usage_error(app: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "app.py", "--event", '{"text": ""}', "--model", "opnai:x"]) == 2
    assert "did you mean 'openai'?" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("step", "lines", "brought", "asked"),
    [
        ("person", "a=b\n", "a=b", "? Which step?\n"),
        ("number", "many\n\n3\n", "3", "? How many?\n  a whole number\n"),
        ("agree", "perhaps\nYes\n", "True", "? Agreed?\n  All of it?\n  yes or no\n"),
        ("colour", "blue\nred\n", "red", "? Which colour?\n  one of: red, green\n"),
    ],
)
def test_a_person_answers_on_standard_input(step: str, lines: str, brought: str, asked: str) -> None:
    with start("run", SWARMS / "trouble.py", "--event", told(step, step), stdin=subprocess.PIPE) as process:
        out, err = process.communicate(lines * 2, timeout=50)
    assert json.loads(out)["output"] == {"steps": [brought, brought]}
    assert process.returncode == 0
    assert err.count(asked) == 2
    assert "time limit" not in err


def test_it_is_said_once_that_the_time_limit_is_paused_for_a_person() -> None:
    limited = ("run", SWARMS / "trouble.py", "--event", told("person", "person"), "--timeout", 40)
    with start(*limited, stdin=subprocess.PIPE) as process:
        _, err = process.communicate("a\nb\n", timeout=50)
    assert process.returncode == 0
    assert err.count("the time limit is paused while all that is left waits for an answer") == 1


def test_a_person_answers_from_a_file(tmp_path: Path) -> None:
    (tmp_path / "answers").write_text("from a file")
    with (tmp_path / "answers").open() as file:
        code, out, _ = call("run", SWARMS / "trouble.py", "--event", told("person"), stdin=file)
    assert (code, json.loads(out)["output"]) == (0, {"steps": ["from a file"]})


# --- signals ---------------------------------------------------------------------------------------------------------


@contextmanager
def run_that_waits(*steps: str) -> Iterator[subprocess.Popen[str]]:
    with start("run", SWARMS / "trouble.py", "--event", told(*steps)) as process:
        read_until(process, "waiting for a signal")
        yield process


def read_until(process: subprocess.Popen[str], text: str) -> None:
    assert process.stderr is not None
    assert any(text in line for line in iter(process.stderr.readline, ""))


@pytest.mark.parametrize(
    ("number", "code"),
    [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)],
    ids=["INT", "TERM", "HUP"],
)
def test_the_first_signal_stops_and_reports(number: int, code: int) -> None:
    with run_that_waits(*["slow"] * 5) as process:  # one more than are handled at a time
        process.send_signal(number)
        out, err = process.communicate(timeout=50)
    assert process.returncode == code
    assert json.loads(out)["status"] == "stopped"
    assert "stopping, press again to force\n" in err
    assert "waiting 10 s at the most for worker.work (4); a second Ctrl-C ends it at once\n" in err
    assert "pending: worker.work item 4" in err
    assert "Traceback" not in err


def test_a_run_that_has_nothing_under_way_when_it_is_stopped_waits_for_nothing() -> None:
    with start("run", SWARMS / "trouble.py", "--event", told("person"), stdin=subprocess.PIPE) as process:
        read_until(process, "Which step?")
        process.send_signal(signal.SIGINT)
        assert process.stderr is not None
        err = process.stderr.read()
    assert process.returncode == 130
    assert "at the most" not in err


@pytest.mark.parametrize(
    "step", ["wait", "block", "native"], ids=["during the drain", "while the loop is blocked", "within a C library"]
)
@pytest.mark.parametrize(("second", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)], ids=["INT", "TERM"])
def test_the_second_signal_ends_at_once(step: str, second: int, code: int) -> None:
    with run_that_waits(step) as process:
        process.send_signal(signal.SIGINT)
        read_until(process, "at the most" if step == "wait" else "stopping, press again to force")
        process.send_signal(second)
        assert process.communicate(timeout=50) == ("", "")
    assert process.returncode == code


def test_what_does_not_stop_keeps_neither_the_process_nor_its_report() -> None:
    with ExitStack() as stack:  # at the same time, for each takes longer than the grace
        stuck, thread, blocked = (stack.enter_context(run_that_waits(step)) for step in ("stick", "thread", "block"))
        timed = stack.enter_context(start("run", SWARMS / "trouble.py", "--event", told("stick"), "--timeout", "0.5"))
        for process in (stuck, thread, blocked):
            process.send_signal(signal.SIGTERM)
        brought = [process.communicate(timeout=50) for process in (stuck, thread, blocked, timed)]
    assert [process.returncode for process in (stuck, thread, blocked, timed)] == [143, 143, 143, 1]
    reports = [json.loads(out or "{}") for out, _ in brought]
    assert [report.get("status") for report in reports] == ["stopped", "stopped", None, "timed_out"]
    left = "worker.work item 0 ('stick') for planned 1 did not stop when told, and was left to itself"
    assert [reports[number]["warnings"] for number in (0, 3)] == [[left]] * 2
    assert "ended by force: something does not stop" in brought[2][1]


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)], ids=["INT", "TERM"])
def test_a_signal_before_there_is_a_run_ends_without_a_traceback(number: int, code: int, tmp_path: Path) -> None:
    (tmp_path / "slow.py").write_text(
        "import sys, time\nprint('loading', file=sys.stderr, flush=True)\ntime.sleep(60)\n"
    )
    with start("check", "slow.py", cwd=tmp_path) as process:
        read_until(process, "loading")
        process.send_signal(number)
        assert process.communicate(timeout=50) == ("", "")
    assert process.returncode == code


def test_a_terminal_that_is_closed_says_so_more_than_once_and_the_report_is_written() -> None:
    with run_that_waits("slow") as process:
        process.send_signal(signal.SIGHUP)
        read_until(process, "stopping, press again to force")
        process.send_signal(signal.SIGHUP)
        out, _ = process.communicate(timeout=50)
    assert (process.returncode, json.loads(out)["status"]) == (129, "stopped")


def test_a_signal_that_is_to_be_ignored_stays_ignored() -> None:
    with start("run", SWARMS / "trouble.py", "--event", told("slow"), preexec_fn=ignore_hangups) as process:
        read_until(process, "waiting for a signal")
        process.send_signal(signal.SIGHUP)
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=50)
    assert process.returncode == 143


def ignore_hangups() -> None:
    signal.signal(signal.SIGHUP, signal.SIG_IGN)


def test_a_signal_while_the_program_is_loaded_ends_without_a_traceback(tmp_path: Path) -> None:
    (tmp_path / "pydantic.py").write_text(
        "import sys, time\nprint('loading', file=sys.stderr, flush=True)\ntime.sleep(60)\n"
    )
    loading = {**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), str(TESTS.parent)])}
    with start("check", "analysis", env=loading) as process:
        read_until(process, "loading")
        process.send_signal(signal.SIGINT)
        assert process.communicate(timeout=50) == ("", "")
    assert process.returncode == 130


# --- standard output -------------------------------------------------------------------------------------------------


def test_a_reader_that_goes_away_changes_nothing_but_the_output() -> None:
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "w") as closed:
        code, _, err = call("check", SWARMS / "twelve_faults.py", stdout=closed)
    assert (code, err) == (3, "")


def test_help_that_nobody_can_be_given_is_an_error_in_words() -> None:
    with Path("/dev/full").open("w") as full:
        code, _, err = call("--help", stdout=full)
    assert (code, err.splitlines()[0]) == (1, "error: No space left on device")


def test_output_that_was_closed_before_is_no_error() -> None:
    command = f"exec {sys.executable} -m swarmbus check {SWARMS / 'twelve_faults.py'} >&-"
    run = subprocess.run(["sh", "-c", command], capture_output=True, text=True, check=False, timeout=50)
    assert (run.returncode, run.stderr) == (3, "")


def test_output_that_fails_is_an_error_with_a_message() -> None:
    with Path("/dev/full").open("w") as full:
        code, _, err = call("check", SWARMS / "mended.py", stdout=full)
    assert (code, err) == (1, "error: standard output can't be written: No space left on device\n")


def test_notices_that_nobody_can_be_given_change_nothing(app: Path) -> None:
    with Path("/dev/full").open("w") as full:
        code, out, _ = call("run", "app.py", "--event", '{"text": "a"}', cwd=app.parent, stderr=full)
    assert (code, json.loads(out)["status"]) == (0, "done")


def test_text_that_an_encoding_cannot_hold_is_escaped_and_data_is_utf8(app: Path) -> None:
    app.write_text(WORKING.replace("class Teller(Role):", 'class Teller(Role):\n    """Größe."""'))
    ascii_only = {**os.environ, "PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"}
    assert "Gr\\xf6\\xdfe." in call("graph", "app.py", cwd=app.parent, env=ascii_only)[1]
    code, out, _ = call("graph", "app.py", "--format", "json", cwd=app.parent, env=ascii_only, encoding="utf-8")
    assert (code, json.loads(out)["nodes"][1]["says"]) == (0, "Größe.")


@pytest.mark.parametrize("command", [("check",), ("table", "--format", "json"), ("graph", "--format", "mermaid")])
def test_data_has_no_colours_even_where_they_are_forced(command: tuple[str, ...]) -> None:
    name, *options = command
    colourful = {**os.environ, "FORCE_COLOR": "1", "TERM": "xterm-256color"}
    code, out, err = call(name, SWARMS / "mended.py", *options, env=colourful)
    assert (code, err) == (0, "")
    assert "\x1b" not in out


def test_what_the_users_code_prints_stays_out_of_the_results(app: Path) -> None:
    app.write_text(
        WORKING.replace("        return Told", "        print('telling')\n        return Told") + "print('hello')\n"
    )
    code, out, err = call("check", "app.py", "--format", "json", cwd=app.parent)
    assert (code, json.loads(out), err) == (0, [], "hello\n")
    code, out, err = call("run", "app.py", "--event", '{"text": ""}', cwd=app.parent)
    assert (code, json.loads(out)["status"]) == (0, "done")
    assert "telling" in err.splitlines()


# --- the program -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("chek", "app.py"), ("No such command 'chek'", "'check'")),
        (("check", "app.py", "--fromat", "json"), ("No such option: --fromat", "--format")),
        (("check", "app.py", "--format", "yaml"), ("'yaml'", "github")),
        (("check",), ("say what to check",)),
        (("graph",), ("TARGET",)),
        (("run", "app.py"), ("--event",)),
    ],
    ids=["command", "option", "value", "no target", "no argument", "no event"],
)
def test_what_is_misspelt_or_missing_is_named(
    arguments: tuple[str, ...], says: tuple[str, ...], app: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert [part for part in says if part not in err] == []


def test_help_lists_the_commands_and_those_of_packages(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--help"]) == 0
    out = capsys.readouterr().out
    assert [name for name in ("check", "table", "graph", "run", "analyze") if f"\n  {name} " not in out] == []


@pytest.mark.parametrize("command", [(), ("check",), ("table",), ("graph",), ("run",), ("analyze",)])
def test_help_says_what_the_exit_codes_mean(command: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*command, "--help"]) == 0
    lines = capsys.readouterr().out.partition("Exit codes:\n")[2].splitlines()
    assert [line.split()[0] for line in lines] == ["0", "1", "2", "3", "4", "5", "129", "130"]


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--version"]) == 0
    assert capsys.readouterr().out.startswith("swarmbus ")


def package(folder: Path, **commands: str) -> dict[str, str]:
    """Put commands into a package as if it were installed, and return the environment in which it is."""
    info = folder / "extra-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: extra\nVersion: 1.0\n")
    lines = [f"{name} = {place}" for name, place in commands.items()]
    (info / "entry_points.txt").write_text("\n".join(["[swarmbus.commands]", *lines, ""]))
    return {**os.environ, "PYTHONPATH": os.pathsep.join([str(folder), str(TESTS.parent)])}


def test_a_package_adds_a_command(tmp_path: Path) -> None:
    installed = package(tmp_path, greet="extra:greet")
    (tmp_path / "extra.py").write_text(
        "import typer\ndef greet(name: str, loud: bool = False) -> None:\n"
        "    'Greet somebody.'\n    print(name.upper() if loud else name)\n    raise typer.Exit(4)\n"
    )
    assert call("greet", "you", "--loud", env=installed) == (4, "YOU\n", "")
    assert "Greet somebody." in call("--help", env=installed)[1]


@pytest.mark.parametrize("content", ["import nothere\n", "def other(): ...\n"], ids=["import", "name"])
def test_a_command_that_cannot_be_loaded_harms_no_other(content: str, tmp_path: Path) -> None:
    installed = package(tmp_path, greet="extra:greet")
    (tmp_path / "extra.py").write_text(content)
    code, out, err = call("greet", "you", "--loud", env=installed)
    assert (code, out) == (1, "")
    assert "extra" in err
    code, out, _ = call("--help", env=installed)
    assert code == 0
    assert "greet" in out
    assert call("check", SWARMS / "mended.py", env=installed)[0] == 0


def test_checking_loads_nothing_that_only_running_or_drawing_needs() -> None:
    code = (
        f"import sys; from swarmbus.cli import main; main(['check', {str(SWARMS / 'mended.py')!r}]);"
        "print(*sorted({'openai', 'networkx', 'rich', 'kreuzberg'} & set(sys.modules)))"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=50)
    assert run.stdout == "the wiring is sound\n\n"
