"""What the report of an analysis is made of, however the analysis ended; how it is written is for `report.py`."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Literal

from roles.analysis.documents import NOT_READ
from roles.analysis.report import DocumentEntry, FailureEntry, Report, earlier_report

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from roles.analysis.documents import Document
    from roles.analysis.events import QuotedClaim
    from roles.analysis.report import Status
    from roles.standard import StepDone
    from swarmbus import RunResult

_STATUSES: Mapping[str, Status] = {
    "done": "done",
    "stalled": "stalled",
    "limit": "limit",
    "timed_out": "timed_out",
    "cancelled": "cancelled",
    "stopped": "stopped",
}
"""How runs end that have not failed."""

_WITHOUT_ANSWER = ("failed", "skipped", "superseded")
"""How steps end that were not carried out to an answer, be it that there is none."""


@dataclass(frozen=True, slots=True)
class ReportAssembly:
    """What a report says of the analysis whatever comes of it.

    Attributes:
        replaced: how many characters of the question were no text.
    """

    documents: tuple[Document, ...]
    question: str
    model: str
    replaced: int

    def unread(self, status: Literal["stopped", "timed_out"]) -> Report:
        """Return the report of an analysis that ended before it had anything to analyse."""
        read = sum(document.reason != NOT_READ for document in self.documents)
        why = "Stopped" if status == "stopped" else "Out of time"
        summary = f"{why} while the documents were being read: {read} of {len(self.documents)} were read."
        return self._report("", status, summary)

    def report(  # noqa: PLR0917  # what a report is made of, in the order in which it stands there
        self,
        result: RunResult[Any],
        ended: str,
        summary: str,
        claims: Sequence[QuotedClaim],
        steps: Sequence[StepDone],
        notes: Sequence[str],
    ) -> Report:
        """Return the report of an analysis whose run ended as its status says."""
        status = _STATUSES.get(ended, "failed")
        failures = tuple(
            FailureEntry(step=step.step_id, status=step.status, reason=step.error)
            for step in steps
            if step.status in ("failed", "skipped")
        )
        if status == "done" and not any(document.readable for document in self.documents):
            status, summary = "failed", "No document could be read."
        elif status == "done" and failures and all(step.status in _WITHOUT_ANSWER for step in steps):
            ((reason, _),) = Counter(failure.reason for failure in failures).most_common(1)
            status, summary = "failed", f"No step could be carried out: {reason}"
        elif status == "done" and (failures or any(_lost(document) for document in self.documents)):
            status = "partial"
        return self._report(
            result.run_id, status, summary, claims, failures, (*notes, *result.warnings), asdict(result.usage)
        )

    def _report(  # noqa: PLR0917  # see above
        self,
        run_id: str,
        status: Status,
        summary: str,
        claims: Sequence[QuotedClaim] = (),
        failures: Sequence[FailureEntry] = (),
        notes: Sequence[str] = (),
        usage: Mapping[str, int] | None = None,
    ) -> Report:
        read = (f"{document.path}: {warning}" for document in self.documents for warning in _warnings(document))
        of_question = f"characters of the question that are no text, and were replaced: {self.replaced}"
        return Report(
            run_id=run_id,
            question=self.question,
            model=self.model,
            status=status,
            summary=summary,
            claims=tuple(claims),
            documents=tuple(map(_entry, self.documents)),
            failures=tuple(failures),
            warnings=(*([of_question] if self.replaced else ()), *read, *notes),
            usage=dict(usage or {}),
        )


def _entry(document: Document) -> DocumentEntry:
    return DocumentEntry(
        id=document.id,
        path=document.path,
        status=document.status,
        reason=document.reason,
        pages=len(document.pages),
        characters=len(document.text),
        sha256=document.sha256,
    )


def _warnings(document: Document) -> tuple[str, ...]:
    if earlier_report(document.text) is None:
        return document.warnings
    return (*document.warnings, "it is the report of an earlier analysis, and was read like any document")


def _lost(document: Document) -> bool:
    return document.status not in ("read", "duplicate")
