"""`swarmbus analyze`: what is written where, what is refused before anything is spent, and how it ends."""

from __future__ import annotations

import json
import os
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


def test_where_nothing_can_be_read_it_has_failed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["analyze", "nosuch.txt", "--question", QUESTION, "--json", "-"]) == 1
    out, err = capsys.readouterr()
    assert json.loads(out)["status"] == "failed"
    assert "nosuch.txt: failed: there is no such file" in err


def test_a_time_limit_leaves_a_report(capsys: pytest.CaptureFixture[str]) -> None:
    hold = threading.Event()

    def answer(_: ChatRequest) -> str:
        hold.wait(20)
        return "late"

    with threaded_fake_server(answer) as server:
        assert analyze("--model", f"{server.url}#slow", "--timeout", "0.1", "--json", "-") == 1
        hold.set()
    assert json.loads(capsys.readouterr().out)["status"] == "timed_out"


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (("--output", "no/such/report.md"), "there is no folder no/such"),
        (("--json", "papers"), "papers is a folder"),
        (("--model", "opnai:x"), "did you mean 'openai'?"),
        (("--quesion", "x"), "--question"),
    ],
    ids=["no folder", "folder", "model", "option"],
)
def test_what_cannot_be_is_refused_before_anything_is_read(
    options: tuple[str, ...], says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert analyze(*options) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert says in err
    assert ": read" not in err


def test_an_empty_question_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert analyze(question=" ") == 2
    assert "--question" in capsys.readouterr().err


def test_an_empty_folder_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "void").mkdir()
    assert main(["analyze", "void", "--question", QUESTION]) == 2
    assert "there is no file in void" in capsys.readouterr().err


def test_a_report_that_its_file_cannot_take_is_not_lost(capsys: pytest.CaptureFixture[str]) -> None:
    assert analyze("--output", "/dev/full") == 1
    out, err = capsys.readouterr()
    assert out.startswith(f"# {QUESTION}\n")
    assert "error: /dev/full can't be written" in err


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
    assert json.loads(out)["status"] == "stopped"
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
        read_until(process, "stopping, press again to force")
        process.send_signal(signal.SIGINT)
        assert process.communicate(timeout=5) == ("", "")
        over.set()
    assert process.returncode == 130
