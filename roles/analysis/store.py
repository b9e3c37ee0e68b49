"""The searchable store over the documents that were read: SQLite full text in memory.

Passages are found by the stems of their words, and by pairs of letters where a script writes no spaces. The ranking
is BM25, as SQLite's FTS5 computes it.
"""

from __future__ import annotations

import re
import sqlite3
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Self

from roles.analysis.words import STOP_WORDS, spaced, words_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from roles.analysis.documents import Document

TITLE = 0.4
"""What a word in a document's name counts, where one in its text counts 1."""


class UnknownDocumentError(LookupError):
    """A document id that the store does not have."""


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
        self._database = sqlite3.connect(":memory:", check_same_thread=False)
        self._database.execute("CREATE VIRTUAL TABLE words USING fts5(title, text, tokenize='porter unicode61')")
        self._database.execute("CREATE TABLE passages(id INTEGER PRIMARY KEY, document TEXT, start INT, stop INT)")
        self._database.execute("CREATE INDEX by_document ON passages(document)")
        with self._database:
            for document in self.documents:
                self._add(document)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Let the database go."""
        self._database.close()

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
        """
        if document is not None:
            self.document(document)
        if limit < 1:
            return []
        expression = _expression(query)
        if not expression:
            return []
        restriction = "AND p.document = ?" if document is not None else ""
        rank = f"bm25(words, {TITLE}, 1.0)"
        statement = (
            f"SELECT p.document, p.start, p.stop, -{rank} FROM words JOIN passages p ON p.id = words.rowid "  # noqa: S608  # what varies is written here
            f"WHERE words MATCH ? {restriction} ORDER BY {rank}, p.id LIMIT ?"
        )
        values = (expression, *((document,) if document is not None else ()), limit)
        with self._lock:
            rows = self._database.execute(statement, values).fetchall()
        return [self._passage(name, start, stop, score) for name, start, stop, score in rows]

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

    def _add(self, document: Document) -> None:
        title = spaced(_spoken(document.title))
        for start, stop in document.places.passages() if document.text else ():
            row = (document.id, start, stop)
            cursor = self._database.execute("INSERT INTO passages(document, start, stop) VALUES (?, ?, ?)", row)
            values = (cursor.lastrowid, title, spaced(document.text[start:stop]))
            self._database.execute("INSERT INTO words(rowid, title, text) VALUES (?, ?, ?)", values)


def _spoken(title: str) -> str:
    """Return a file's name as words."""
    return re.sub(r"[\W_]+", " ", Path(title).stem)


def _expression(query: str) -> str:
    """Return the FTS5 query for any of the words, each quoted so that none is an operator."""
    words = words_of(query)
    telling = [word for word in words if word not in STOP_WORDS] or words
    # A letter of a script without spaces is indexed only as the first of a pair.
    return " OR ".join(
        f'"{word}"*' if len(word) == 1 and not word.isascii() else f'"{word}"' for word in dict.fromkeys(telling)
    )
