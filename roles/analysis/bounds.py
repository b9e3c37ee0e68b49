"""How much of what a model writes is taken, so that no answer floods the run; what is left out becomes a note."""

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

_SHOWN = 60


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
