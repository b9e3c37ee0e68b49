"""A model that writes without end costs no more than one that does not, and the report says what was left out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from roles.analysis.bounds import (
    CLAIM_TEXT,
    CROSS_STEPS,
    QUOTATION_TEXT,
    STEP_CLAIMS,
    STEP_QUOTES,
    SUMMARY_TEXT,
    first_of,
    shortened,
)
from roles.analysis.pipeline import analyze
from swarmbus.models import ScriptedModel

if TYPE_CHECKING:
    from pathlib import Path

    from swarmbus.models import ModelRequest

QUESTION = "Was the valve open?"
QUOTE = {"document": "d1", "text": "The valve was open."}


def endless(request: ModelRequest) -> Any:
    form = request.output.name if request.output is not None else ""
    if form == "CrossSteps":
        return {"steps": [{"text": f"compare {'x' * 2000}", "documents": ["d1"] * 500}] * 3000}
    if form == "ReportDraft":
        claims = [{"text": "c" * 5000, "sources": list(range(1, 999))}]
        return {"summary": "s" * 9000, "claims": claims}
    if "compare" in str(request.messages[-1].content):
        return {"claims": []}
    long = {"text": "t" * 5000, "quotes": [QUOTE] * 500}
    return {"claims": [long, {"text": "q", "quotes": [{"document": "d1", "text": "q" * 9000}]}, *[long] * 500]}


async def test_what_a_model_writes_beyond_measure_is_left_out_and_said(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / f"{name}.txt").write_text(f"The valve was open. {name}")
    model = ScriptedModel([endless] * 200)
    report = await analyze(tmp_path, QUESTION, model=model)
    assert len(model.requests) < CROSS_STEPS + 20
    assert len(report.summary) < SUMMARY_TEXT + 5
    assert all(len(claim.text) < CLAIM_TEXT + 5 for claim in report.claims)
    for told in (
        f"steps across documents beyond the first {CROSS_STEPS} were left out: {3000 - CROSS_STEPS}",
        f"claims of the step read-d1 beyond the first {STEP_CLAIMS} were left out: {502 - STEP_CLAIMS}",
        f"quotations of one claim beyond the first {STEP_QUOTES} were left out: {500 - STEP_QUOTES}",
    ):
        assert told in report.warnings
    for told in (
        f"the text of a step of 2008 characters was cut after {CLAIM_TEXT}: 'compare xxx",
        f"the text of a claim of 5000 characters was cut after {CLAIM_TEXT}: 'ttt",
        f"the text of a claim of 5000 characters was cut after {CLAIM_TEXT}: 'ccc",
        f"a quotation of 9000 characters was cut after {QUOTATION_TEXT}: 'qqq",
        f"a summary of 9000 characters was cut after {SUMMARY_TEXT}: 'sss",
    ):
        assert any(warning.startswith(told) for warning in report.warnings)
    assert max(map(len, report.warnings)) < 500
    assert len(report.warnings) < 200


def test_what_is_no_more_than_may_be_is_taken_whole() -> None:
    notes: list[str] = []
    assert first_of([1, 2], 2, "numbers", notes) == [1, 2]
    assert shortened("ab", 2, "a text", notes) == "ab"
    assert notes == []
