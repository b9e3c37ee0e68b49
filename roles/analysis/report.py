"""The report of an analysis: its form, and how it is written as JSON and as Markdown."""

from __future__ import annotations

import json
import re
from typing import Literal

from pydantic import BaseModel, ValidationError

from roles.analysis.decoding import replace_controls, replace_unusable
from roles.analysis.events import QuotedClaim
from roles.analysis.roles import DOCUMENT_STEP

Status = Literal["done", "partial", "failed", "stalled", "limit", "timed_out", "cancelled", "stopped"]

_ANSWERED = ("done", "partial")
_HEAD = re.compile(r"# [^\n]*\n\nStatus: \*\*(\w+)\*\* · model: ")
_FINDINGS = "## Findings"


class DocumentEntry(BaseModel, frozen=True):
    """One document and how its reading went."""

    id: str
    path: str
    status: str
    reason: str
    pages: int
    characters: int
    sha256: str


class FailureEntry(BaseModel, frozen=True):
    """A step that failed or was left out, and why."""

    step: str
    status: str
    reason: str


class Report(BaseModel, frozen=True):
    """What an analysis brought.

    Attributes:
        status: `done`; `partial`, if documents could not be read or steps failed; or how the run ended instead.
        claims: statements with quotations; `start` and `end` are offsets into the document's text as it was read.
        usage: tokens and calls, and whether any of these counts was estimated.
    """

    run_id: str
    question: str
    model: str
    status: Status
    summary: str
    claims: tuple[QuotedClaim, ...]
    documents: tuple[DocumentEntry, ...]
    failures: tuple[FailureEntry, ...]
    warnings: tuple[str, ...]
    usage: dict[str, bool | int]

    @property
    def answers(self) -> bool:
        """Whether it holds an answer, be it that there is none, or at least a part of one."""
        return self.status in _ANSWERED or bool(self.claims)

    def to_json(self) -> str:
        """Return the report as JSON."""
        written = json.dumps(self.model_dump(), indent=2, ensure_ascii=False)
        return replace_unusable(written)[0] + "\n"

    def to_markdown(self) -> str:
        """Return the report as Markdown."""
        titles = {document.id: document.path for document in self.documents}
        parts = [f"# {_inline(self.question)}", self._head(), _inline(self.summary)]
        if self.claims:
            parts.append(_FINDINGS)
            parts += [_claim(number, claim, titles) for number, claim in enumerate(self.claims, start=1)]
        parts.append("## Documents")
        parts.append(self._table())
        if self.failures:
            parts.append("## What failed")
            names = self.step_names
            parts.append(
                "\n".join(
                    f"- {_inline(names.get(f.step, f.step))} ({f.status}): {_inline(f.reason)}" for f in self.failures
                )
            )
        if self.warnings:
            parts.append("## Notes")
            parts.append("\n".join(f"- {_inline(warning)}" for warning in self.warnings))
        return "\n\n".join(part for part in parts if part) + "\n"

    @property
    def step_names(self) -> dict[str, str]:
        """What people call the steps that read one document: its path."""
        return {f"{DOCUMENT_STEP}{document.id}": document.path for document in self.documents}

    def _head(self) -> str:
        lines = [f"Status: **{self.status}** · model: {_inline(self.model)} · run: {self.run_id}"]
        if self.model == "offline":
            lines.append(
                "Written by the model `offline`: it quotes the passages that fit the question best and writes no prose."
            )
        return "\n\n".join(lines)

    def _table(self) -> str:
        rows = ["| id | document | status | characters |", "| --- | --- | --- | --- |"]
        for entry in self.documents:
            status = f"{entry.status}: {entry.reason}" if entry.reason else entry.status
            rows.append(f"| {entry.id} | {_inline(entry.path)} | {_inline(status)} | {entry.characters} |")
        return "\n".join(rows)


def earlier_report(text: str) -> bool | None:
    """Whether a text is a report that answers something; None where it is no report at all."""
    head = _HEAD.match(text)
    if head is not None:
        return head[1] in _ANSWERED or f"\n\n{_FINDINGS}\n\n" in text
    try:
        return Report.model_validate_json(text).answers
    except ValidationError:
        return None


def _claim(number: int, claim: QuotedClaim, titles: dict[str, str]) -> str:
    lines = [f"{number}. {_inline(claim.text)}"]
    for quote in claim.quotes:
        where = f"{titles.get(quote.document, quote.document)}, {quote.place}".rstrip(", ")
        mark = "" if quote.verified else " (not found in the document)"
        lines.append(f"\n   > {_inline(quote.text)}\n   >\n   > — {_inline(where)}{mark}")
    return "\n".join(lines)


def _inline(text: str) -> str:
    """Make a text harmless within a paragraph: one line, and no mark of Markdown's or HTML's takes effect.

    Nor does a character that controls a terminal or turns the direction of writing, which is replaced.
    """
    plain, _ = replace_controls(" ".join(text.split()))
    return re.sub(r"([\\`*_\[\]<>#|]|&(?=\w+;))", r"\\\1", plain)
