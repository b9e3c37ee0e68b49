"""How much of what a model writes is taken, and how much it is shown, so that no answer and no prompt floods the run.

What is left out of an answer becomes a note.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Sequence

T = TypeVar("T")

CROSS_STEPS = 24
"""Steps across documents that a plan may have."""
STEP_CLAIMS = 40
"""Claims that one step may make."""
STEP_QUOTES = 12
"""Quotations of one claim that are looked up."""
CLAIM_TEXT = 1000
"""Characters of the text of a claim, or of a step."""
SUMMARY_TEXT = 4000
"""Characters of the summary of a report."""
QUOTATION_TEXT = 4000
"""Characters of a quotation that is looked up."""
ANSWER_TEXT = 4000
"""Characters of what a step found that the steps after it are given."""

QUESTION_TEXT = 4000
"""Characters of the question."""
TITLE_TEXT = 100
"""Characters of a document's title that a prompt names."""
SHOWN_DOCUMENTS = 200
"""Documents that a planner is told by name; of more it is told how many there are."""
STEP_DOCUMENTS = 40
"""Documents that a step is told by name; one about more waits for the reading of none."""
SHOWN_QUOTATION = 700
"""Characters of a quotation that the aggregator is shown."""
INPUTS = 16_000
"""Bytes of results of earlier steps that a step is shown."""
RESULTS = 64_000
"""Bytes of what its tools have brought that a step is shown at once; what they brought before is put away."""

_SHOWN = 60


def size(text: str) -> int:
    """Return the bytes of a text: three or four to a token, whatever the script."""
    return len(text.encode("utf-8", "replace"))


def excerpt(text: str, most: int) -> str:
    """Return the beginning of a text, of so many bytes at the most."""
    if size(text) <= most:
        return text
    return f"{text.encode('utf-8', 'replace')[:most].decode('utf-8', 'ignore')} …"


def first_of(items: Sequence[T], most: int, what: str, notes: list[str]) -> Sequence[T]:
    """Return as many items as may be, and note how many were left out."""
    if len(items) > most:
        notes.append(f"{what} beyond the first {most} were left out: {len(items) - most}")
    return items[:most]


def shortened(text: str, most: int, what: str, notes: list[str]) -> str:
    """Return a text, cut where it is too long, and note that it was cut."""
    if len(text) <= most:
        return text
    notes.append(f"{what} of {len(text)} characters was cut after {most}: {text[:_SHOWN]!r}")
    return f"{text[:most]} …"
