"""Checks quotations against the text they claim to come from.

A quotation counts if the source holds it word for word; white space and dashes between words, the shapes of quotes,
ligatures, how accents are written, marks of emphasis and letter case may differ; numbers may not. What is reported is
always the source's own text and offsets.
"""

from __future__ import annotations

import re
import unicodedata
from array import array
from dataclasses import dataclass
from functools import lru_cache
from threading import Lock
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from roles.analysis.store import DocumentStore

_SHAPES = str.maketrans(
    {
        **dict.fromkeys("\u2018\u2019\u201a\u201b\u2032\u00b4`", "'"),
        **dict.fromkeys("\u201c\u201d\u201e\u201f\u2033\u00ab\u00bb", '"'),
        **dict.fromkeys("\u2010\u2011\u2012\u2013\u2014\u2015\u2212", "-"),
    }
)
_SHORTEST = 3
_DASHES = r"-\u2010-\u2015\u2212"
_LETTER = r"[^\W\d_]"
_PIECE = re.compile(
    rf"""
      (?P<plain> [!-),.-^a-~]+ (?![\u0300-\u036f]) )         # ASCII that stands for itself
    | (?P<nothing>
          (?<={_LETTER}) \s* [{_DASHES}] \s* (?={_LETTER})   # a hyphen, at a line's end or not, or a dash
        | (?<!\d) (?:\*\*|__) | (?:\*\*|__) (?!\d)           # emphasis
        | \u00ad )
    | (?P<gap> (?<=\d) \s+ (?=\d) )                         # what keeps numbers apart
    | (?P<space> \s+ )
    | (?P<character> . [\u0300-\u036f]* )                    # with its accents
    """,
    re.VERBOSE | re.DOTALL,
)
_FOLDING = Lock()
"""Lets a long text be folded once, whichever threads ask for it."""


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
    with _FOLDING:
        folded, offsets = _folded(source)
    at = folded.find(plain)
    if not plain or at < 0:
        return None
    end = offsets[at + len(plain) - 1] + 1
    while end < len(source) and unicodedata.combining(source[end]):
        end += 1
    return offsets[at], end


@lru_cache(maxsize=64)
def _folded(source: str) -> tuple[str, array[int]]:
    return _plain(source)


def _plain(text: str) -> tuple[str, array[int]]:
    """Return a text without what may differ, and for each of its characters the offset it stands for."""
    pieces: list[str] = []
    offsets = array("Q")
    for match in _PIECE.finditer(text):
        piece, start = match[0], match.start()
        match match.lastgroup:
            case "plain":
                pieces.append(piece.lower())
                offsets.extend(range(start, match.end()))
            case "gap":
                pieces.append(" ")
                offsets.append(start)
            case "character":
                letters = "".join(unicodedata.normalize("NFKC", piece).translate(_SHAPES).casefold().split())
                pieces.append(letters)
                offsets.extend([start] * len(letters))
            case _:
                pass
    return "".join(pieces), offsets


def _refused(document: str, text: str, reason: str) -> Quote:
    return Quote(document, "", -1, -1, text, verified=False, reason=reason)
