"""Documents: which files are meant, what each of them is, and the order in which they are known.

Reading a single file is `reading_pool.py`'s business.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import anyio

from roles.analysis.kinds import LINED, named
from roles.analysis.places import Places
from roles.analysis.reading_pool import ReadingLimits, ReadingPool
from roles.analysis.reading_process import failure
from roles.analysis.stopping import unless_stopped

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Iterator

    from roles.analysis.extract import Status
    from roles.analysis.places import Layout
    from roles.analysis.reading_pool import Progress
    from roles.analysis.reading_process import Reading

NOT_READ = "not read, as the analysis ended before"
"""Why a document failed that had not been read to its end when the reading was given up."""


_ESCAPED = re.compile(r"\\(?=(?:x5c)*udc[89a-f][0-9a-f])")
"""The backslash of what looks like the escape of a byte, but stands in the name itself."""
_ESCAPE = re.compile(r"\\udc([89a-f][0-9a-f])|\\x5c(?=(?:x5c)*udc[89a-f][0-9a-f])")


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
        return "lines" if suffix in LINED else "printed" if suffix == ".pdf" else "prose"

    @cached_property
    def places(self) -> Places:
        """Its pages and paragraphs."""
        return Places(self.text, self.pages, self.unit, self.layout)


def find_files(paths: Iterable[str | Path]) -> list[str]:
    """Return the paths of all files meant, in order and each once.

    Folders are searched whole, without following links to folders; names that begin with a point are left out there.
    A path that does not exist is kept, and so are a folder that may not be read and one named like a document
    (`x.pdf`), beside what it holds: they become documents that failed.

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
    if not os.path.isdir(path):  # noqa: PTH112  # unlike its counterpart it is false where nobody may look
        yield path
        return
    closed: list[str] = []
    for folder, folders, files in os.walk(path, followlinks=False, onerror=lambda error: closed.append(error.filename)):
        if named(Path(folder).suffix.lower()) is not None:
            yield folder
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(files):
            if not name.startswith("."):
                yield str(Path(folder, name))
    yield from (str(Path(folder)) for folder in closed)


def document_ids(files: Iterable[str]) -> dict[str, str]:
    """Return the ids that files have as documents, by their paths: `d1`, `d2`, … in the order in which they come."""
    return {path: f"d{number}" for number, path in enumerate(files, start=1)}


def nowhere(paths: Iterable[str]) -> list[str]:
    """Return, for each path that leads to nothing, words that say so."""
    return [reason for path in paths if (reason := _nowhere(path))]


def _nowhere(path: str) -> str:
    try:
        os.lstat(path)
    except (FileNotFoundError, NotADirectoryError):
        folder, name = os.path.split(path)
        try:
            near = get_close_matches(name, [other.name for other in Path(folder or ".").iterdir()], 1)
        except OSError:
            near = []
        meant = f" (did you mean {str(Path(folder, near[0]))!r}?)" if near else ""
        return f"there is no file or folder {path!r}{meant}"
    except PermissionError:
        return ""  # it may well be there, and becomes a document that failed
    except OSError as error:
        return f"{path!r} can't be read: {error.strerror or error}"
    return ""


async def load_documents(
    paths: Iterable[str | Path],
    limits: ReadingLimits | None = None,
    on_progress: Progress | None = None,
    stop: Callable[[], Awaitable[object]] | None = None,
) -> tuple[Document, ...]:
    """Read all documents, several at a time, outside this process.

    Args:
        paths: files and folders.
        limits: what one file may cost.
        on_progress: see `ReadingPool`.
        stop: returns when the reading is to be given up; what has not been read by then has failed as `NOT_READ`.

    Raises:
        NoDocumentsError: there is nothing to read.
    """
    files = await anyio.to_thread.run_sync(find_files, list(paths))
    readings = dict.fromkeys(files, failure(NOT_READ))

    async def read(path: str, pool: ReadingPool) -> None:
        readings[path] = await pool.read(path)

    async def read_all() -> None:
        async with ReadingPool(limits, on_progress) as pool, anyio.create_task_group() as group:
            for path in files:
                group.start_soon(read, path, pool)

    await unless_stopped(stop, read_all)
    return _without_duplicates([_document(id_, path, readings[path]) for path, id_ in document_ids(files).items()])


def _document(id_: str, path: str, reading: Reading) -> Document:
    read = reading.extract
    return Document(
        id=id_,
        path=printable(path),
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


def printable(path: str | Path) -> str:
    """Return a path as text of its own: a name may hold bytes that are none, which are escaped."""
    told_apart = _ESCAPED.sub(r"\\x5c", os.fspath(path))
    return told_apart.encode("utf-8", "backslashreplace").decode()


def path_of(text: str) -> str:
    """Return the path that `printable` made this text of."""
    return _ESCAPE.sub(lambda match: chr(0xDC00 + int(match[1], 16)) if match[1] else "\\", text)
