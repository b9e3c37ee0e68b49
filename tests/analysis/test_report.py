"""The report as JSON and as Markdown."""

from __future__ import annotations

import json
from typing import Any

import pytest

from roles.analysis.events import QuotedClaim, QuotedText
from roles.analysis.report import DocumentEntry, FailureEntry, Report, earlier_report

QUOTE = QuotedText(document="d1", place="page 2, paragraph 1", start=3, end=9, text="pumps!", verified=True)
REPORT = Report(
    run_id="r1",
    question="Why?",
    model="offline",
    status="partial",
    summary="Because.",
    claims=(
        QuotedClaim(
            text="The *pump* <b>failed</b>",
            quotes=(QUOTE,),
        ),
    ),
    documents=(
        DocumentEntry(id="d1", path="a|b.pdf", status="read", reason="", pages=2, characters=900, sha256="00"),
        DocumentEntry(id="d2", path="c.pdf", status="encrypted", reason="a password", pages=0, characters=0, sha256=""),
    ),
    failures=(FailureEntry(step="read-d2", status="failed", reason="none"),),
    warnings=("c.pdf is odd",),
    usage={"calls": 3},
)  # fmt: skip


def test_json_has_the_agreed_form() -> None:
    data = json.loads(REPORT.to_json())
    assert list(data) == [
        "run_id", "question", "model", "status", "summary", "claims", "documents", "failures", "warnings", "usage",
    ]  # fmt: skip
    assert list(data["claims"][0]) == ["text", "quotes"]
    assert list(data["claims"][0]["quotes"][0]) == ["document", "place", "start", "end", "text", "verified"]
    assert list(data["documents"][0]) == ["id", "path", "status", "reason", "pages", "characters", "sha256"]


def test_markdown_names_document_and_place_of_each_quotation() -> None:
    text = REPORT.to_markdown()
    assert "   > pumps!\n   >\n   > — a\\|b.pdf, page 2, paragraph 1" in text
    assert "| d2 | c.pdf | encrypted: a password | 0 |" in text
    assert "- c.pdf (failed): none" in text
    assert "quotes the passages that fit the question best and writes no prose" in text


def test_no_text_of_a_document_becomes_markup() -> None:
    assert "The \\*pump\\* \\<b\\>failed\\</b\\>" in REPORT.to_markdown()
    named = with_text("path", "R&D &amp; &#38; &x.md").to_markdown()
    assert "| R&D \\&amp; &\\#38; &x.md |" in named


UNFIT = {"escape": "\x1b[31m", "NUL": "\x00", "C1": "\x9b", "surrogate": "\udcff", "direction": "\u202e"}


@pytest.mark.parametrize("unfit", UNFIT.values(), ids=UNFIT)
@pytest.mark.parametrize("place", ["question", "summary", "path", "quotation", "warning", "reason"])
def test_what_controls_a_terminal_or_is_no_text_reaches_no_report(unfit: str, place: str) -> None:
    report = with_text(place, f"before{unfit}after")
    report.to_json().encode()
    assert "before" in report.to_json()
    text = report.to_markdown()
    text.encode()
    assert "before\ufffd" in text
    assert unfit not in text


def with_text(place: str, text: str) -> Report:
    changes: dict[str, Any] = {
        "path": {"documents": (REPORT.documents[0].model_copy(update={"path": text}),)},
        "quotation": {"claims": (QuotedClaim(text="c", quotes=(QUOTE.model_copy(update={"text": text}),)),)},
        "warning": {"warnings": (text,)},
        "reason": {"failures": (FailureEntry(step="cross-1", status="failed", reason=text),)},
    }
    return REPORT.model_copy(update=changes.get(place, {place: text}))


@pytest.mark.parametrize(
    ("changes", "answers"),
    [
        ({}, True),
        ({"status": "stopped"}, True),
        ({"status": "done", "claims": ()}, True),
        ({"status": "stopped", "claims": ()}, False),
        ({"status": "failed", "claims": (), "documents": ()}, False),
    ],
    ids=["partial", "stopped with a claim", "done without one", "stopped", "failed"],
)
def test_an_earlier_report_is_known_by_its_text(changes: dict[str, Any], answers: bool) -> None:
    report = REPORT.model_copy(update=changes)
    assert report.answers == answers
    assert [earlier_report(report.to_markdown()), earlier_report(report.to_json())] == [answers, answers]


@pytest.mark.parametrize("text", ["", "# A title\n\nand a text", '{"status": "done"}', "[]"])
def test_another_text_is_no_report(text: str) -> None:
    assert earlier_report(text) is None
