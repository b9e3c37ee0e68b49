"""The executor's tools: search and read documents. They change nothing, and mark what they return as data."""

from __future__ import annotations

from typing import Any

from roles.analysis.store import DocumentStore, Passage
from roles.analysis.untrusted import wrap
from swarmbus import ToolContext, tool

LONGEST = 8000
"""Characters that one reading returns at the most."""


@tool(effects="read_only", max_result=40_000)
def search(query: str, ctx: ToolContext[DocumentStore], document: str | None = None, limit: int = 8) -> dict[str, Any]:
    """Find the passages that fit a query best, the best first, with how well each fits.

    Args:
        query: words to look for.
        ctx: holds the documents.
        document: the id of one document, such as d3; leave it out to search all.
        limit: how many passages, 20 at the most.
    """
    found = ctx.deps.search(query, max(1, min(limit, 20)), document or None)
    return {
        "passages": [_shown(passage) for passage in found],
        "scores": [float(f"{passage.score:.5g}") for passage in found],
    }


@tool(effects="read_only", max_result=40_000)
def read(document: str, ctx: ToolContext[DocumentStore], start: int = 0, length: int = 4000) -> dict[str, Any]:
    """Read on in a document.

    Args:
        document: its id, such as d3.
        ctx: holds the documents.
        start: the character to begin at, from 0.
        length: how many characters, 8000 at the most.
    """
    passage = ctx.deps.read(document, start, min(length, LONGEST))
    whole = len(ctx.deps.document(document).text)
    return {"characters": whole, "passages": [_shown(passage)]}


def _shown(passage: Passage) -> str:
    return wrap(passage.text, document=passage.document, place=passage.place, start=passage.start)
