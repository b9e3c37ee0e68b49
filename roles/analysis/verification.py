"""Checks quotations against the documents they claim to come from.

What is reported of one that holds is always the document's own text, place and offsets; when one holds is for
`matching.py` to say.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from roles.analysis.matching import find
from roles.analysis.store import UnknownDocumentError

if TYPE_CHECKING:
    from roles.analysis.store import DocumentStore


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
    try:
        source = store.document(document)
    except UnknownDocumentError:
        return _refused(document, text, "there is no such document")
    if not source.readable:
        return _refused(document, text, f"the document could not be read: {source.status}")
    span = find(source.text, text)
    if span is None:
        return _refused(document, text, "the document does not hold these words as whole words and numbers")
    start, end = span
    return Quote(document, source.places.at(start).label, start, end, source.text[start:end], verified=True)


def _refused(document: str, text: str, reason: str) -> Quote:
    return Quote(document, "", -1, -1, text, verified=False, reason=reason)
