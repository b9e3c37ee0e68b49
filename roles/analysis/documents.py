"""Documents: which files are meant, what each of them is, and the order in which they are known.

Reading a single file is `reading.py`'s business.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import anyio

from roles.analysis.kinds import named
from roles.analysis.places import Places
from roles.analysis.reading import ReadingLimits, ReadingPool

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from roles.analysis.extract import Status
    from roles.analysis.places import Layout
    from roles.analysis.reader import Reading

    Progress = Callable[[str, Status | None], None]

_LINED = (".csv", ".tsv", ".log", ".jsonl", ".xlsx", ".xls", ".ods")


class NoDocumentsError(ValueError):
    """Nothing that could be a document was given."""


@dataclass(frozen=True)
class Document:
    """One file as it was given.

    Attributes:
        id: `d1`, `d2`, … in order of the paths.
        path: as given, or found below a folder that was given.
        status: `read`, `partial`, `empty`, `encrypted`, `no_text`, `timed_out`, `failed` or `duplicate`.
        reason: why it is not simply `read`.
        text: all its characters; empty unless it was read.
        pages: the offset at which each page starts; empty where the format has none.
        unit: what a page is called.
        sha256: of the file's bytes, in hexadecimal digits; empty where they could not be read.
        warnings: sentences about the reading.
    """

    id: str
    path: str
    status: Status
    reason: str = ""
    text: str = field(default="", repr=False)
    pages: tuple[int, ...] = ()
    unit: str = "page"
    sha256: str = ""
    warnings: tuple[str, ...] = ()

    @property
    def title(self) -> str:
        """What people call it: the file's name."""
        return Path(self.path).name

    @property
    def readable(self) -> bool:
        """Whether there is text to analyse."""
        return self.status in ("read", "partial")

    @property
    def layout(self) -> Layout:
        """How its paragraphs are told apart."""
        suffix = Path(self.path).suffix.lower()
        return "lines" if suffix in _LINED else "printed" if suffix == ".pdf" else "prose"

    @cached_property
    def places(self) -> Places:
        """Its pages and paragraphs."""
        return Places(self.text, self.pages, self.unit, self.layout)


def find_files(paths: Iterable[str | Path]) -> list[str]:
    """Return the paths of all files meant, in order and each once.

    Folders are searched whole, without following links to folders; names that begin with a point are left out there.
    A path that does not exist is kept, and so is a folder named like a document (`x.pdf`), beside what it holds: they
    become documents that failed.

    Raises:
        NoDocumentsError: no path was given, or the folders given hold no file.
    """
    given = [os.fspath(path) for path in paths]
    if not given:
        raise NoDocumentsError("no document was given; name files or folders")
    found = dict.fromkeys(path for name in given for path in _files_below(name))
    if not found:
        raise NoDocumentsError(f"there is no file in {', '.join(given)}")
    return sorted(found)


def _files_below(path: str) -> Iterator[str]:
    if not Path(path).is_dir():
        yield path
        return
    for folder, folders, files in os.walk(path, followlinks=False):
        if named(Path(folder).suffix.lower()) is not None:
            yield folder
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(files):
            if not name.startswith("."):
                yield str(Path(folder, name))


async def load_documents(
    paths: Iterable[str | Path], limits: ReadingLimits | None = None, on_progress: Progress | None = None
) -> tuple[Document, ...]:
    """Read all documents, several at a time, outside this process.

    Args:
        paths: files and folders.
        limits: what one file may cost.
        on_progress: is called with a path and None when its reading begins, and with its status when it is over.

    Raises:
        NoDocumentsError: there is nothing to read.
    """
    limits = limits or ReadingLimits()
    files = await anyio.to_thread.run_sync(find_files, list(paths))
    readings: dict[str, Reading] = {}

    async def read(path: str, pool: ReadingPool) -> None:
        async with slots:
            if on_progress is not None:
                on_progress(path, None)
            readings[path] = reading = await pool.read(path)
            if on_progress is not None:
                on_progress(path, reading.extract.status)

    slots = anyio.CapacityLimiter(limits.processes)
    async with ReadingPool(limits) as pool, anyio.create_task_group() as group:
        for path in files:
            group.start_soon(read, path, pool)
    return _without_duplicates([_document(number, path, readings[path]) for number, path in enumerate(files, start=1)])


def _document(number: int, path: str, reading: Reading) -> Document:
    read = reading.extract
    return Document(
        id=f"d{number}",
        path=_printable(path),
        status=read.status,
        reason=read.reason,
        text=read.text,
        pages=read.pages,
        unit=read.unit,
        sha256=reading.sha256,
        warnings=read.warnings,
    )


def _without_duplicates(documents: list[Document]) -> tuple[Document, ...]:
    first: dict[str, Document] = {}

    def once(document: Document) -> Document:
        original = first.setdefault(document.sha256, document) if document.readable else document
        if original is document:
            return document
        reason = f"the same content as {original.path}"
        return replace(document, status="duplicate", reason=reason, text="", pages=())

    return tuple(once(document) for document in documents)


def _printable(path: str) -> str:
    """A name may hold bytes that are no text; what can't be written is escaped."""
    return path.encode("utf-8", "backslashreplace").decode()
