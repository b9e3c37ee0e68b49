"""Quotes for a question: which questions it is made of, where in a passage to begin and to end, whose turn it is."""

from __future__ import annotations

import math
import re
from collections import Counter
from functools import lru_cache
from typing import TYPE_CHECKING, TypeVar

from roles.analysis.places import sentences
from roles.analysis.words import stems_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

T = TypeVar("T")

PARTS = 4
"""Questions that a question is taken apart into, at the most."""
LONGEST = 700
"""Characters of a quotation, where its sentences allow it."""
HEADLINE = 200
"""Characters of a sentence that stands for a quotation, at the most."""
SAYS = 20
"""Characters with which a line begins to say something."""

_ASKS = r"(?:who|whom|whose|what|which|when|where|why|how|is|are|was|were|does|do|did|has|have|can)"
_PARTS = re.compile(rf"[,;]\s+(?:and\s+|or\s+)?(?={_ASKS}\b)|\s+and\s+(?={_ASKS}\b)", re.IGNORECASE)
_SENTENCES = re.compile(r"(?<=[.?!])\s+")
_QUESTION = re.compile(rf"{_ASKS}\b", re.IGNORECASE)


def parts_of(question: str) -> list[str]:
    """Return the questions that a question is made of, at most four.

    Only a sentence that begins as a question is taken apart. Where others tell what it is about, all of it comes first.
    """
    parts: list[str] = []
    told = False
    for sentence in _SENTENCES.split(question):
        asks = _QUESTION.match(sentence) is not None
        told = told or not asks
        parts += _PARTS.split(sentence) if asks else [sentence]
    telling = [part.strip(" ?.") for part in parts if len(stems_of(part)) > 1][:PARTS]
    if len(telling) < 2:
        return [question]
    return [question, *telling] if told else telling


def quotation(question: str, passage: str) -> str:
    """Return the run of whole sentences that holds the most of what is asked, as long as may be."""
    runs = list(_runs(passage)) or [passage]
    return runs[0] if len(runs) == 1 else max(runs, key=lambda run: (held(question, run), len(run)))


def headline(question: str, quoted: str) -> str:
    """Return the sentence of a quotation that holds the most of what is asked, on one line; no mere heading."""
    lines = [quoted[start:end] for start, end in sentences(quoted, 0, len(quoted))]
    said = [line for line in lines if len(line) > SAYS] or [quoted]
    line = " ".join(max(said, key=lambda line: held(question, line)).split())
    return line if len(line) <= HEADLINE else line[:HEADLINE].rsplit(" ", 1)[0] + " …"


def held(question: str, text: str) -> float:
    """Return how many words of a question a text holds; a word that it holds again counts a little more."""
    counts = Counter(stems_of(text))
    return sum(math.sqrt(min(counts[word], 2)) for word in _asked(question))


@lru_cache(maxsize=64)
def _asked(question: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(stems_of(question)))  # in order, for sums of the same numbers may differ by it


def in_turn(rankings: Iterable[Sequence[T]], most: int) -> list[tuple[int, T]]:
    """Return the first of each ranking, then the second of each, and so on, none twice, with the ranking's place."""
    waiting = [(place, iter(ranking)) for place, ranking in enumerate(rankings)]
    chosen: dict[T, int] = {}
    while waiting and len(chosen) < most:
        for place, ranking in list(waiting):
            fresh = next((item for item in ranking if item not in chosen), None)
            if fresh is None:
                waiting.remove((place, ranking))
            elif len(chosen) < most:
                chosen[fresh] = place
    return [(place, item) for item, place in chosen.items()]


def _runs(text: str) -> Iterable[str]:
    """The runs of whole sentences that are short enough to quote, each as long as may be, none within another."""
    spans = list(sentences(text, 0, len(text)))
    last = reached = 0
    for start, end in spans:
        while last < len(spans) and spans[last][1] - start <= LONGEST:
            last += 1
        stop = max(end, spans[last - 1][1])
        if stop > reached:
            yield text[start:stop]
            reached = stop
