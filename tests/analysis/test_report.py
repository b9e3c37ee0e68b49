"""The report as JSON and as Markdown."""

from __future__ import annotations

import json

from roles.analysis.events import QuotedClaim, QuotedText
from roles.analysis.report import DocumentEntry, FailureEntry, Report

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
    assert "- read-d2 (failed): none" in text
    assert "quotes the passages that fit the question best and writes no prose" in text


def test_no_text_of_a_document_becomes_markup() -> None:
    assert "The \\*pump\\* \\<b\\>failed\\</b\\>" in REPORT.to_markdown()
