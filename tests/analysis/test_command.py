"""`swarmbus analyze`: what is written where, what is refused before anything is spent, and how it ends."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from support.fake_openai import threaded_fake_server
from swarmbus.cli import main

if TYPE_CHECKING:
    from support.fake_openai import ChatRequest

QUESTION = "Why did the pump stop?"


@pytest.fixture(autouse=True)
def documents(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "papers"
    folder.mkdir()
    (folder / "log.txt").write_text("The pump stopped at noon because its filter was blocked.\n")
    (folder / "letter.md").write_text("Dear all,\n\nthe filter of the pump had not been changed since May.\n")
    return folder


def analyze(*options: str, question: str = QUESTION) -> int:
    return main(["analyze", "papers", "--question", question, *options])


def test_the_report_goes_to_standard_output_and_all_else_elsewhere(capsys: pytest.CaptureFixture[str]) -> None:
    assert analyze("--model", "offline") == 0
    out, err = capsys.readouterr()
    assert out.startswith(f"# {QUESTION}\n")
    assert "because its filter was blocked" in out
    assert [line for line in ("papers/log.txt: read", "documents: 2 handled") if line not in err.splitlines()] == []
    assert err.splitlines()[-1].startswith("done: ")


def test_the_report_is_written_to_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert analyze("--output", "report.md", "--json", "report.json") == 0
    assert capsys.readouterr().out == ""
    assert (tmp_path / "report.md").read_text().startswith(f"# {QUESTION}\n")
    report = json.loads((tmp_path / "report.json").read_text())
    assert (report["status"], report["model"]) == ("done", "offline")
    texts = {document["id"]: Path(document["path"]).read_text() for document in report["documents"]}
    quotes = [quote for claim in report["claims"] for quote in claim["quotes"]]
    assert quotes
    assert all(texts[q["document"]][q["start"] : q["end"]] == q["text"] and q["verified"] for q in quotes)


def test_json_alone_can_go_to_standard_output(capsys: pytest.CaptureFixture[str]) -> None:
    assert analyze("--json", "-") == 0
    assert json.loads(capsys.readouterr().out)["question"] == QUESTION


def test_without_a_key_the_model_is_offline_and_that_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    assert analyze() == 0
    out, err = capsys.readouterr()
    assert err.startswith("note: OPENAI_API_KEY is not set, so the model is `offline`")
    assert "model: offline" in out


def test_with_a_key_its_server_is_asked_and_that_is_said(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "a key")
    monkeypatch.setenv("SWARMBUS_NO_MODELS", "1")
    assert analyze() == 1
    out, err = capsys.readouterr()
    assert err.startswith("note: OPENAI_API_KEY is set, so the model is openai:gpt-5-mini")
    assert "Status: **failed**" in out


def test_a_damaged_document_costs_nothing_but_itself(documents: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (documents / "scan.pdf").write_bytes(b"%PDF-1.7 and no more")
    assert analyze("--json", "-") == 4
    out, err = capsys.readouterr()
    report = json.loads(out)
    assert report["status"] == "partial"
    assert [entry["path"] for entry in report["documents"] if entry["status"] != "read"] == ["papers/scan.pdf"]
    assert report["claims"]
    assert "papers/scan.pdf: " in err


def test_where_nothing_can_be_read_it_has_failed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "nothing.txt").touch()
    assert main(["analyze", "nothing.txt", "--question", QUESTION, "--json", "-"]) == 1
    out, err = capsys.readouterr()
    assert json.loads(out)["status"] == "failed"
    assert "nothing.txt: empty: the file has 0 bytes\nNo document could be read.\nfailed: " in err


@pytest.mark.parametrize("documents_given", [1, 2])
def test_a_server_that_cannot_be_reached_is_a_failure_that_says_so(
    documents_given: int, capsys: pytest.CaptureFixture[str]
) -> None:
    given = ["papers/log.txt", "papers/letter.md"][:documents_given]
    options = ["--question", QUESTION, "--model", "http://127.0.0.1:9/v1#none", "--timeout", "50"]
    assert main(["analyze", *given, *options]) == 1
    out, err = capsys.readouterr()
    assert "Status: **failed**" in out
    assert "ServerUnreachable" in out
    assert "ServerUnreachable" in err.splitlines()[-2]
    assert err.splitlines()[-1].startswith("failed: 0 claims from ")


def test_steps_that_all_fail_are_named_by_their_documents(capsys: pytest.CaptureFixture[str]) -> None:
    def answer(request: ChatRequest) -> str:
        form = request.body.get("response_format", {}).get("json_schema", {}).get("name")
        return '{"steps": []}' if form == "CrossSteps" else "no JSON, ever"

    with threaded_fake_server(answer) as server:
        assert analyze("--model", f"{server.url}#any", "--json", "-") == 1
    out, err = capsys.readouterr()
    report = json.loads(out)
    assert report["status"] == "failed"
    assert report["summary"].startswith("No step could be carried out: ")
    assert report["failures"][0]["reason"] in report["summary"]
    assert [failure["step"] for failure in report["failures"]] == ["read-d1", "read-d2"]
    for path in ("papers/letter.md", "papers/log.txt"):
        assert f"{path}: failed, 0 claims\n" in err
        assert f"{path}: failed: {report['failures'][0]['reason']}\n" in err
    assert "read-d" not in err


def test_a_time_limit_leaves_a_report(capsys: pytest.CaptureFixture[str]) -> None:
    hold = threading.Event()

    def answer(_: ChatRequest) -> str:
        hold.wait(20)
        return "late"

    with threaded_fake_server(answer) as server:
        assert analyze("--model", f"{server.url}#slow", "--timeout", "0.1", "--json", "-") == 1
        hold.set()
    assert json.loads(capsys.readouterr().out)["status"] == "timed_out"


def test_a_time_limit_holds_for_the_reading_too(documents: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for number in range(5000):
        (documents / f"{number}.txt").write_text(f"Page {number}.")
    assert analyze("--timeout", "0.5", "--json", "-") == 1
    out, err = capsys.readouterr()
    report = json.loads(out)
    assert report["status"] == "timed_out"
    reasons = [document["reason"] for document in report["documents"]]
    assert set(reasons) - {""} == {"not read, as the analysis ended before"}
    told = f"Out of time while the documents were being read: {reasons.count('')} of 5002 were read."
    assert report["summary"] == told
    assert told in err


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (("--output", "no/such/report.md"), "there is no folder no/such"),
        (("--json", "papers"), "papers is a folder"),
        (("--model", "opnai:x"), "did you mean 'openai'?"),
        (("--model", ""), "no model is known as ''"),
        (("--quesion", "x"), "--question"),
        (("lettre.md",), "there is no file or folder 'lettre.md'"),
        (("paper",), "there is no file or folder 'paper' (did you mean 'papers'?)"),
        (("",), "there is no file or folder ''"),
        (("--output", "papers/log.txt"), "papers/log.txt is one of the documents (papers/log.txt)"),
        (("papers/log.txt", "--json", "papers/log.txt"), "papers/log.txt is one of the documents"),
        (("--output", "link.md"), "link.md is one of the documents (papers/log.txt)"),
        (("--json", "hard.md"), "hard.md is one of the documents (papers/letter.md)"),
        (("--output", "same.md", "--json", "./same.md"), "--json: same.md is where --output goes too"),
        (("--output", "-", "--json", "-"), "- is where --output goes too"),
    ],
    ids=[
        "no folder", "folder", "model", "no model", "option", "no document", "no documents", "empty", "in the folder",
        "given too", "link", "hard link", "one file for two", "one output for two",
    ],
)  # fmt: skip
def test_what_cannot_be_is_refused_before_anything_is_read(
    options: tuple[str, ...], says: str, documents: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("link.md").symlink_to("papers/log.txt")
    Path("hard.md").hardlink_to("papers/letter.md")
    before = {path: path.read_bytes() for path in documents.iterdir()}
    assert analyze(*options) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert says in err
    assert ": read" not in err
    assert {path: path.read_bytes() for path in documents.iterdir()} == before


@pytest.mark.parametrize("question", ["", " ", "???", "\udcff", "\x1b"])
def test_a_question_without_a_word_is_refused(question: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert analyze(question=question) == 2
    err = capsys.readouterr().err
    assert "--question: the question" in err
    assert "has no word to search for; say in words what is to be found out" in err


def test_what_is_no_text_in_a_question_is_replaced_and_that_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    assert analyze("--output", "-", "--json", "report.json", question="Why did \x1b[31mthe pump \udcff stop?") == 0
    out, err = capsys.readouterr()
    assert out.startswith("# Why did \ufffd\\[31mthe pump \ufffd stop?\n")
    assert json.loads(Path("report.json").read_text())["question"] == "Why did \ufffd[31mthe pump \ufffd stop?"
    assert "warning: characters of the question that are no text, and were replaced: 2\n" in err


def test_a_file_whose_name_is_no_text_is_read_and_named(documents: Path, capsys: pytest.CaptureFixture[str]) -> None:
    odd = os.fsdecode(b"papers/\x1bcaf\xe9.txt")
    Path(odd).write_text("The pump stopped because of the coffee.")
    assert main(["analyze", odd, "--question", QUESTION, "--json", "-", "--output", "report.md"]) == 0
    out, err = capsys.readouterr()
    (document,) = json.loads(out)["documents"]
    assert (document["path"], json.loads(out)["warnings"]) == ("papers/\x1bcaf\\udce9.txt", [])
    assert "papers/\ufffdcaf\\\\udce9.txt" in Path("report.md").read_text()
    assert "papers/\\x1bcaf\\udce9.txt: read\n" in err
    assert "\x1b" not in err


@pytest.mark.parametrize(("option", "name"), [("--output", "report.md"), ("--json", "report.json")])
def test_a_report_among_the_documents_is_written_anew_and_never_read(
    option: str, name: str, documents: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first, second = (written_and_said(option, documents / name, capsys) for _ in range(2))
    assert first[0] == second[0] == 0
    assert first[1] == second[1]
    note = f"note: papers/{name} is where the report goes, so it is not read as a document\n"
    assert (note in first[2], note in second[2]) == (False, True)


def written_and_said(option: str, path: Path, capsys: pytest.CaptureFixture[str]) -> tuple[int, str, str]:
    code = analyze(option, str(path))
    return code, without_run(path.read_text()), capsys.readouterr().err


def without_run(report: str) -> str:
    return re.sub(r'run: \w+|"run_id": "\w+"', "", report)


def test_a_report_alone_is_no_document(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "void").mkdir()
    (tmp_path / "void" / "report.md").touch()
    assert main(["analyze", "void", "--question", QUESTION, "--output", "void/report.md"]) == 2
    assert "there is no file in void beside the report" in capsys.readouterr().err


@pytest.mark.parametrize("earlier", ["a report", "notes of somebody", "a failed report", "nothing"])
@pytest.mark.parametrize(("option", "name"), [("--output", "report.md"), ("--json", "report.json")])
def test_a_report_without_an_answer_takes_the_place_of_none_that_has_one(
    option: str, name: str, earlier: str, capsys: pytest.CaptureFixture[str]
) -> None:
    path = Path(name)
    match earlier:
        case "a report":
            analyze(option, name)
        case "a failed report":
            unreachable(option, name)
        case "notes of somebody":
            path.write_text("notes")
        case _:
            path.touch()
    before = path.read_text()
    capsys.readouterr()
    assert unreachable(option, name) == 1
    out, err = capsys.readouterr()
    assert out == ""
    kept = earlier in ("a report", "notes of somebody")
    assert (path.read_text() == before) == kept
    assert (f"note: {name} was left as it was, as this report (failed) holds no answer" in err) == kept
    assert "failed" in path.read_text() or kept


def unreachable(*options: str) -> int:
    return analyze("--model", "http://127.0.0.1:9/v1#none", *options)


def test_an_empty_folder_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "void").mkdir()
    assert main(["analyze", "void", "--question", QUESTION]) == 2
    assert "there is no file in void" in capsys.readouterr().err


def test_a_report_that_its_file_cannot_take_is_not_lost(capsys: pytest.CaptureFixture[str]) -> None:
    assert analyze("--output", "/dev/full") == 1
    out, err = capsys.readouterr()
    assert out.startswith(f"# {QUESTION}\n")
    assert "error: /dev/full can't be written" in err


def test_a_report_that_could_go_nowhere_is_refused(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "stdout", None)
    assert [analyze(), analyze("--json", "-"), analyze("--output", "report.md")] == [2, 2, 0]
    assert "standard output is closed; name a file for the report" in capsys.readouterr().err


def test_a_pipe_that_nobody_reads_costs_no_report(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    os.mkfifo(tmp_path / "pipe")
    assert analyze("--output", "pipe") == 1
    out, err = capsys.readouterr()
    assert out.startswith(f"# {QUESTION}\n")
    assert "error: pipe can't be written: nobody reads it; the report follows on standard output" in err


def start(*options: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "swarmbus", "analyze", "papers", "--question", QUESTION, "--json", "-", *options]
    pipe = subprocess.PIPE
    return subprocess.Popen(command, text=True, stdout=pipe, stderr=pipe, start_new_session=True)


def read_until(process: subprocess.Popen[str], text: str) -> None:
    assert process.stderr is not None
    assert any(text in line for line in iter(process.stderr.readline, ""))


def test_a_signal_during_a_model_call_leaves_a_report() -> None:
    asked, stopping = threading.Event(), threading.Event()

    def answer(_: ChatRequest) -> str:
        asked.set()
        stopping.wait(50)
        return '{"steps": []}'

    with threaded_fake_server(answer) as server, start("--model", f"{server.url}#slow") as process:
        assert asked.wait(50)
        os.killpg(process.pid, signal.SIGINT)  # as a terminal does
        read_until(process, "stopping, press again to force")
        stopping.set()
        out, err = process.communicate(timeout=50)
    assert process.returncode == 130
    report = json.loads(out)
    assert report["status"] == "stopped"
    assert [entry["status"] for entry in report["documents"]] == ["read", "read"]
    assert "Traceback" not in err


def test_a_signal_while_documents_are_read_leaves_a_report(documents: Path) -> None:
    for number in range(2000):
        (documents / f"{number}.txt").write_text(f"Page {number}.")
    with start("--model", "offline") as process:
        read_until(process, ": read")
        os.killpg(process.pid, signal.SIGTERM)
        out, err = process.communicate(timeout=50)
    assert process.returncode == 143
    report = json.loads(out)
    assert report["status"] == "stopped"
    reasons = [document["reason"] for document in report["documents"]]
    assert len(reasons) == 2002
    assert set(reasons) == {"", "not read, as the analysis ended before"}
    told = f"Stopped while the documents were being read: {reasons.count('')} of 2002 were read."
    assert report["summary"] == told
    assert told in err
    assert "not read, as" not in err
    assert "Traceback" not in err


def test_a_second_signal_ends_at_once() -> None:
    asked, over = threading.Event(), threading.Event()

    def answer(_: ChatRequest) -> str:
        asked.set()
        over.wait(50)
        return "late"

    with threaded_fake_server(answer) as server, start("--model", f"{server.url}#slow") as process:
        assert asked.wait(50)
        process.send_signal(signal.SIGINT)
        read_until(process, "waiting 10 s at the most for planner.plan (1); a second Ctrl-C ends it at once")
        process.send_signal(signal.SIGINT)
        assert process.communicate(timeout=5) == ("", "")
        over.set()
    assert process.returncode == 130
