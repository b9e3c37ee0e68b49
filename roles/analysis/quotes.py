"""Checks quotations against the text they claim to come from.

A quotation counts if the source holds it word for word; white space, the shapes of quotes and dashes, ligatures,
hyphenation at line ends and letter case may differ. What is reported is always the source's own text and offsets.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from roles.analysis.store import DocumentStore

_SHAPES = str.maketrans(
    {
        **dict.fromkeys("\u2018\u2019\u201a\u201b\u2032\u00b4`", "'"),
        **dict.fromkeys("\u201c\u201d\u201e\u201f\u2033\u00ab\u00bb", '"'),
        **dict.fromkeys("\u2010\u2011\u2012\u2013\u2014\u2015\u2212", "-"),
        "\u00ad": "",
    }
)
_SHORTEST = 3


@dataclass(frozen=True, slots=True)
class Quote:
    """A quotation.

    Attributes:
        document: id of the document it is said to come from.
        place: where it stands there; empty where it was not found.
        start: offset of its first character in the document's text; -1 where it was not found.
        end: offset after its last one; -1 where it was not found.
        text: the source's own characters; what was claimed where they were not found.
        verified: whether the source holds it.
        reason: why it does not count.
    """

    document: str
    place: str
    start: int
    end: int
    text: str
    verified: bool
    reason: str = ""


def verify(store: DocumentStore, document: str, text: str) -> Quote:
    """Look a quotation up in its document."""
    known = {source.id for source in store.documents}
    if document not in known:
        return _refused(document, text, "there is no such document")
    source = store.document(document)
    if not source.readable:
        return _refused(document, text, f"the document could not be read: {source.status}")
    span = find(source.text, text)
    if span is None:
        return _refused(document, text, "the document does not hold these words")
    start, end = span
    return Quote(document, source.places.at(start).label, start, end, source.text[start:end], verified=True)


def find(source: str, quotation: str) -> tuple[int, int] | None:
    """Return where a text holds a quotation, or None; of several places the first."""
    wanted = quotation.strip()
    if len(wanted) < _SHORTEST:
        return None
    exact = source.find(wanted)
    if exact >= 0:
        return exact, exact + len(wanted)
    plain, _ = _plain(wanted)
    folded, offsets = _folded(source)
    at = folded.find(plain)
    if not plain or at < 0:
        return None
    return offsets[at], offsets[at + len(plain) - 1] + 1


@lru_cache(maxsize=64)
def _folded(source: str) -> tuple[str, tuple[int, ...]]:
    return _plain(source)


def _plain(text: str) -> tuple[str, tuple[int, ...]]:
    """Return a text without what may differ, and for each of its characters the offset it stands for."""
    letters: list[str] = []
    offsets: list[int] = []
    skip = {at for match in re.finditer(r"(?<=[^\W\d_])(-\s*\n\s*)(?=[^\W\d_])", text) for at in range(*match.span(1))}
    for offset, character in enumerate(text):
        if offset in skip or character.isspace():
            continue
        for letter in unicodedata.normalize("NFKC", character).translate(_SHAPES).casefold():
            if not letter.isspace():
                letters.append(letter)
                offsets.append(offset)
    return "".join(letters), tuple(offsets)


def _refused(document: str, text: str, reason: str) -> Quote:
    return Quote(document, "", -1, -1, text, verified=False, reason=reason)
