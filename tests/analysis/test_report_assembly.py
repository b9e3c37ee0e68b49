"""What makes a report whole, partial or failed."""

from __future__ import annotations

from typing import Any

import pytest

from roles.analysis.documents import Document
from roles.analysis.report import FailureEntry
from roles.analysis.report_assembly import ReportAssembly
from roles.standard import StepDone
from swarmbus import RunResult
from swarmbus.messages import Usage

RESULT: RunResult[None] = RunResult(None, "r1", Usage(), {}, (), (), 0.0, 1.0)
READ = Document("d1", "a.txt", "read", text="The valve was open.")
DONE = StepDone(step_id="read-d1", status="done", answer="it was open")


@pytest.mark.parametrize(
    ("reading", "status"),
    [("read", "done"), ("duplicate", "done"), ("partial", "partial"), ("encrypted", "partial"), ("empty", "partial")],
)
def test_a_document_that_is_not_wholly_there_makes_the_report_partial(reading: Any, status: str) -> None:
    assembly = ReportAssembly((READ, Document("d2", "b.xlsx", reading, "a sheet")), "Why?", "offline", replaced=0)
    assert assembly.report(RESULT, "done", "Because.", (), (DONE,), ()).status == status


@pytest.mark.parametrize(
    ("ended", "status"),
    [("done", "done"), ("empty", "done"), ("superseded", "done"), ("failed", "partial"), ("skipped", "partial")],
)
def test_a_step_that_was_not_carried_out_makes_the_report_partial_and_is_named(ended: Any, status: str) -> None:
    steps = (DONE, StepDone(step_id="cross-1", status=ended, error="why not"))
    report = ReportAssembly((READ,), "Why?", "offline", replaced=0).report(RESULT, "done", "Because.", (), steps, ())
    named = () if status == "done" else (FailureEntry(step="cross-1", status=ended, reason="why not"),)
    assert (report.status, report.failures) == (status, named)
