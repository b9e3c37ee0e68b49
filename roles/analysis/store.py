"""The searchable store over the documents that were read: SQLite full text in memory.

Passages are found by the stems of their words, by words that say nearly the same, and by pairs of letters where a
script writes no spaces. The ranking is BM25, as SQLite's FTS5 computes it; to it comes a part of what the neighbours
of a passage score, for what is asked is often named in one paragraph and said in the next.
"""

from __future__ import annotations

import re
import sqlite3
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Self

from roles.analysis.rankings import Rankings
from roles.analysis.thesaurus import related
from roles.analysis.words import STOP_WORDS, spaced, words_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from roles.analysis.documents import Document

TITLE = 0.4
"""What a word in a document's name counts, where one in its text counts 1."""
RELATED = 0.6
"""What a word counts that says nearly the same."""
NEAR = 0.4
"""How much of its own score a passage lends to the one before it and to the one after it."""
NUMBER = 1.2
"""By how much a passage with a number is the better answer to a question for one."""
WEIGHED = 1000
"""Passages that a search looks at more closely."""

_PATIENCE = 0.05
"""Seconds between two attempts to interrupt a search; one that has just not begun is not interrupted."""

_ASKS_FOR_NUMBER = re.compile(
    r"\b(?:how (?:many|much|long|large|big|small|old|often|far|high|fast|soon)|when"
    r"|(?:what|which) (?:number|share|percentage|year|date|day|version|release))\b",
    re.IGNORECASE,
)


_RANK = f"bm25(words, {TITLE}, 1.0)"
_ALL = f"SELECT rowid, -{_RANK} FROM words WHERE words MATCH ? ORDER BY rowid"  # noqa: S608  # what varies is written here
_BEST = (
    f"SELECT rowid, -{_RANK} FROM words WHERE words MATCH ? AND rowid BETWEEN ? AND ? "  # noqa: S608  # see above
    f"ORDER BY {_RANK}, rowid LIMIT ?"
)


class UnknownDocumentError(LookupError):
    """A document id that the store does not have."""


class StoreClosedError(RuntimeError):
    """The store was closed before a search, or during it."""

    def __init__(self) -> None:
        super().__init__("the documents can't be searched any more: their store was closed")


@dataclass(frozen=True, slots=True)
class Passage:
    """A stretch of a document.

    Attributes:
        document: the document's id.
        place: where it begins, such as `page 3, paragraph 2`.
        start: offset of its first character in the document's text.
        end: offset after its last one.
        text: those characters.
        score: how well it fits a query, the higher the better; 0 where nothing was asked.
    """

    document: str
    place: str
    start: int
    end: int
    text: str
    score: float = 0.0


class DocumentStore:
    """Keeps documents and finds passages in them. It may be used from several threads.

    Args:
        documents: all of them; those that could not be read are known, but hold nothing.
    """

    def __init__(self, documents: Iterable[Document]) -> None:
        self.documents = tuple(documents)
        self._by_id = {document.id: document for document in self.documents}
        self._lock = Lock()
        self._closed = False
        self._passages: list[tuple[str, int, int]] = []
        self._rows: dict[str, tuple[int, int]] = {}
        self._database = sqlite3.connect(":memory:", check_same_thread=False)
        self._database.execute("CREATE VIRTUAL TABLE words USING fts5(title, text, tokenize='porter unicode61')")
        self._rankings = Rankings(lambda query: self._database.execute(_ALL, (query,)))
        with self._database:
            for document in self.documents:
                self._add(document)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Let the database go, after the end of a search that still uses it, which is interrupted."""
        self._closed = True
        while not self._lock.acquire(timeout=_PATIENCE):
            self._database.interrupt()
        try:
            self._database.close()
        finally:
            self._lock.release()

    @property
    def readable(self) -> tuple[Document, ...]:
        """The documents that hold text, in order."""
        return tuple(document for document in self.documents if document.readable)

    def document(self, document: str) -> Document:
        """Return a document by its id.

        Raises:
            UnknownDocumentError: there is none; the message names some that there are.
        """
        found = self._by_id.get(document)
        if found is None:
            some = ", ".join(list(self._by_id)[:20])
            raise UnknownDocumentError(f"there is no document {document!r}; there are {some}")
        return found

    def search(self, query: str, limit: int = 10, document: str | None = None) -> list[Passage]:
        """Return the passages that fit a query best, the best first.

        Args:
            query: any text; its words are looked for, each for itself.
            limit: how many passages there may be at the most.
            document: the id of the only document to search.

        Raises:
            UnknownDocumentError: there is no such document.
            StoreClosedError: the store is closed, or was before the search had an end.
        """
        if document is not None:
            self.document(document)
        words = words_of(query)
        telling = dict.fromkeys([word for word in words if word not in STOP_WORDS] or words)
        meant = dict.fromkeys(other for word in telling for other in related(word) if other not in telling)
        scores = self._scores(telling, document)
        for row, score in self._scores(meant, document).items():
            scores[row] = scores.get(row, 0.0) + RELATED * score
        found = self._weighed(scores, for_number=_ASKS_FOR_NUMBER.search(query) is not None)
        best = sorted(found, key=lambda row: (-found[row], row))[: max(0, limit)]
        return [self._passage(*self._passages[row - 1], found[row]) for row in best]

    def read(self, document: str, start: int = 0, length: int = 4000) -> Passage:
        """Return a stretch of a document, shorter than asked for at its end.

        Raises:
            UnknownDocumentError: there is no such document.
        """
        text = self.document(document).text
        begin = min(max(start, 0), len(text))
        return self._passage(document, begin, min(begin + max(length, 0), len(text)), 0.0)

    def _passage(self, document: str, start: int, stop: int, score: float) -> Passage:
        source = self._by_id[document]
        return Passage(document, source.places.at(start).label, start, stop, source.text[start:stop], score)

    def _scores(self, words: Iterable[str], document: str | None) -> dict[int, float]:
        """Return the rows that hold some of the words, with their scores; of very many rows the best."""
        expression = _expression(words)
        if not expression:
            return {}
        first, last = (1, len(self._passages)) if document is None else self._rows[document]
        with self._lock:
            if self._closed:
                raise StoreClosedError
            try:
                known = None if document is None else self._rankings.within(expression, first, last)
                if known is not None:
                    return known
                return dict(self._database.execute(_BEST, (expression, first, last, WEIGHED)).fetchall())
            except sqlite3.OperationalError as error:
                if error.sqlite_errorcode != sqlite3.SQLITE_INTERRUPT:
                    raise
                raise StoreClosedError from error

    def _weighed(self, scores: dict[int, float], *, for_number: bool) -> dict[int, float]:
        """Return the scores with what neighbours lend, and what is due to an answer in numbers."""
        found: dict[int, float] = {}
        for row, own in scores.items():
            document, start, stop = self._passages[row - 1]
            first, last = self._rows[document]
            lent = sum(scores.get(near, 0.0) for near in (row - 1, row + 1) if first <= near <= last)
            text = self._by_id[document].text
            number = for_number and any(letter.isdigit() for letter in text[start:stop])
            found[row] = (own + NEAR * lent) * (NUMBER if number else 1.0)
        return found

    def _add(self, document: Document) -> None:
        title = spaced(_spoken(document.title))
        first = len(self._passages) + 1
        for start, stop in document.places.passages() if document.text else ():
            self._passages.append((document.id, start, stop))
            values = (len(self._passages), title, spaced(document.text[start:stop]))
            self._database.execute("INSERT INTO words(rowid, title, text) VALUES (?, ?, ?)", values)
        self._rows[document.id] = (first, len(self._passages))


def _spoken(title: str) -> str:
    """Return a file's name as words."""
    return re.sub(r"[\W_]+", " ", Path(title).stem)


def _expression(words: Iterable[str]) -> str:
    """Return the FTS5 query for any of the words, each quoted so that none is an operator."""
    # A letter of a script without spaces is indexed only as the first of a pair.
    return " OR ".join(f'"{word}"*' if len(word) == 1 and not word.isascii() else f'"{word}"' for word in words)
