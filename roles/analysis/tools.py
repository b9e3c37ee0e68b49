"""The executor's tools: search and read documents. They change nothing, and mark what they return as data.

How much of what they have brought a model is shown at once is decided here too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from roles.analysis.bounds import RESULTS, excerpt, size
from roles.analysis.store import DocumentStore, Passage
from roles.analysis.untrusted import wrap
from swarmbus import ToolContext, tool
from swarmbus.models import Message, ToolMessage

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


def latest_results(messages: Sequence[Message]) -> list[Message]:
    """Return a history with the latest results that fit a prompt; in place of earlier ones stands that there were."""
    shown: list[Message] = []
    room = RESULTS
    for message in reversed(messages):
        if isinstance(message, ToolMessage):
            own = size(message.content)
            if own > room:
                advice = "call the tool again where you need it, with fewer calls at a time"
                left = f"[put away: a result of {len(message.content)} characters; {advice}]"
                kept = excerpt(message.content, RESULTS) if room == RESULTS else left
                shown.append(replace(message, content=kept))
            else:
                shown.append(message)
            room = max(0, room - own)
        else:
            shown.append(message)
    return shown[::-1]


def _shown(passage: Passage) -> str:
    return wrap(passage.text, document=passage.document, place=passage.place, start=passage.start)
