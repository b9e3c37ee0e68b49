"""Turns the bytes of one file into text with the offsets of its pages; the only importer of the extraction library.

It runs inside a reading process (`reading_process.py`): it may crash, hang or eat memory without harm to anything else.
"""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

from roles.analysis.archives import damaged_parts, is_hollow
from roles.analysis.book import read_epub
from roles.analysis.content import Content
from roles.analysis.decoding import decode, replace_unusable, stated_encoding
from roles.analysis.html import text_of_html
from roles.analysis.kinds import (
    DOCX,
    EPUB,
    HTML,
    MAIL,
    ODS,
    PDF,
    SLIDES,
    SPREADSHEETS,
    XLSX,
    ZIPPED,
    Kind,
    kind_of,
    named,
    only_speaks_of_pdf,
)
from roles.analysis.mail import read_mail
from roles.analysis.sheets import compact, sheet_starts
from roles.analysis.word import read_docx
from roles.analysis.workbook import read_xlsx

if TYPE_CHECKING:
    from kreuzberg import ExtractionResult


Status = Literal["read", "partial", "empty", "encrypted", "no_text", "timed_out", "failed", "duplicate"]

_MARKER = "\n\n\N{SYMBOL FOR RECORD SEPARATOR}{page_num}\N{SYMBOL FOR RECORD SEPARATOR}\n\n"
_MARKER_PARTS = _MARKER.split("{page_num}")
_LIBRARY_WARNINGS = 3
_NAMED_PARTS = 3
_LONGEST_REASON = 240
_UNREADY = re.compile(r"initialization failed[^:]*: (.*)", re.DOTALL)
"""How the library says that a part of its own can't be loaded, which is no fault of the file's."""
_INLINE = ["a", "abbr", "b", "cite", "code", "del", "em", "i", "kbd", "mark", "q", "s", "samp", "span", "strong", "u"]
"""HTML inside Outlook mails: what these mark is read without the mark."""
_READERS: dict[Kind, Callable[[bytes], Content]] = {
    DOCX: read_docx,
    XLSX: read_xlsx,
    EPUB: read_epub,
    MAIL: lambda data: read_mail(data, extract),
}
"""The kinds of which the library would lose something in silence."""


@dataclass(frozen=True, slots=True)
class Extract:
    """What was got out of one file.

    Attributes:
        status: `read`, `partial`, `empty`, `encrypted`, `no_text` or `failed`.
        reason: why the status is not `read`, or what is odd about a file that was read; empty where nothing is.
        text: all characters; empty unless `read` or `partial`.
        pages: the offset at which each page starts, in order; empty where the format has no pages.
        unit: what a page is called: `page`, `slide` or `sheet`.
        warnings: sentences about the reading, without the file's name.
    """

    status: Status
    reason: str = ""
    text: str = ""
    pages: tuple[int, ...] = ()
    unit: str = "page"
    warnings: tuple[str, ...] = ()


def extract(data: bytes, suffix: str) -> Extract:
    """Read the text of a file.

    Args:
        data: the whole file.
        suffix: the ending of its name in small letters, with the point.

    Raises:
        MemoryError: the process has less memory than the file needs.
    """
    if not data:
        return Extract("empty", "the file has 0 bytes")
    kind = kind_of(data, suffix)
    read = _as(kind, data, suffix)
    if kind is PDF and read.status == "failed" and only_speaks_of_pdf(data, suffix):
        kind = kind_of(data, suffix, pdf=False)
        read = _as(kind, data, suffix)
    if read.status != "read":
        return read
    if not read.text.strip():
        return Extract(*_no_text(kind, read), pages=read.pages, unit=read.unit, warnings=read.warnings)
    return Extract("read", _misnamed(kind, suffix), read.text, read.pages, read.unit, read.warnings)


def _as(kind: Kind, data: bytes, suffix: str) -> Extract:
    if kind.family == "text":
        return _own_text(data)
    if kind is HTML:
        return _page(data)
    if kind in _READERS:
        return _with_damage(_read(_READERS[kind], data, kind), data, kind)
    if kind.family == "extracted":
        return _with_damage(_extracted(data, kind), data, kind)
    return _unreadable(kind, suffix)


def _own_text(data: bytes) -> Extract:
    decoded = decode(data, stated_encoding(data) if data.lstrip().startswith(b"<?xml") else None)
    return Extract("read", text=decoded.text, warnings=decoded.warnings)


def _no_text(kind: Kind, read: Extract) -> tuple[Status, str]:
    if kind.family == "text":
        return "empty", "the file holds nothing but white space"
    pages = f" ({read.unit}s: {len(read.pages)})" if read.pages else ""
    return "no_text", f"the {kind.name} holds no text{pages}; text in pictures is not read"


def _unreadable(kind: Kind, suffix: str) -> Extract:
    promised = named(suffix)
    match kind.family:
        case "encrypted":
            return Extract("encrypted", f"the {kind.name} is protected by a password")
        case "image":
            return Extract("no_text", "a picture; text in pictures is not read")
        case "archive":
            return Extract("failed", "an archive; unpack it and give the folder instead")
        case _ if promised is not None:
            return Extract("failed", f"damaged: named like a {promised.name}, but holds {kind.name} of no known format")
        case _:
            return Extract("failed", f"{kind.name} of no known document format")


def _misnamed(kind: Kind, suffix: str) -> str:
    promised = named(suffix)
    if suffix in kind.suffixes or (promised is None and kind.family == "text"):
        return ""
    if promised is None and suffix not in (".txt", ".text", ".md", ".csv"):
        return ""
    return f"named {suffix}, but its content is {kind.name}, as which it was read"


def _page(data: bytes) -> Extract:
    try:
        text, warnings = text_of_html(data)
    except ImportError:
        return _not_installed(HTML)
    except ValueError as error:
        return _refused(HTML, str(error))
    text, unusable = replace_unusable(text)
    return Extract("read", "", text, warnings=(*warnings, *_replaced(unusable)))


def _read(reader: Callable[[bytes], Content], data: bytes, kind: Kind) -> Extract:
    try:
        content = reader(data)
    except ImportError:
        return _not_installed(kind)
    except ValueError as error:
        return _refused(kind, str(error))
    text, unusable = replace_unusable(content.text)
    status: Status = "partial" if content.lost else "read"
    warnings = (*_replaced(unusable), *content.warnings)
    return Extract(status, content.lost, text, content.pages, content.unit, warnings)


def _extracted(data: bytes, kind: Kind) -> Extract:
    try:
        result = _by_library(data, kind)
        if kind in SPREADSHEETS:
            return _workbook(result, data, kind)
    except ImportError:
        return _not_installed(kind)
    except ValueError as error:
        return _refused(kind, str(error))
    return _told(result, *_without_markers(_content(result, kind)), unit="slide" if kind in SLIDES else "page")


def _with_damage(read: Extract, data: bytes, kind: Kind) -> Extract:
    """Say what of an archive is damaged where the library has said nothing: it reads what is left."""
    if read.status not in ("read", "partial"):
        return read
    if kind in ZIPPED and not read.text.strip() and is_hollow(data):
        return Extract("failed", "damaged: the part that holds its text is missing")
    damaged = damaged_parts(data) if kind in ZIPPED else ()
    reason = f"damaged: {', '.join(damaged[:_NAMED_PARTS])}" if damaged else read.reason
    if not reason:
        return read
    return replace(read, status="partial", reason=reason) if read.text.strip() else Extract("failed", reason)


def _by_library(data: bytes, kind: Kind) -> ExtractionResult:
    """Let the library read a file.

    Raises:
        ImportError: the library is not installed.
        ValueError: it could not make anything of the file.
    """
    import kreuzberg  # noqa: PLC0415  # part of an extra, and needed in a reading process only

    config = kreuzberg.ExtractionConfig(
        use_cache=False,
        # Only as a table does a spreadsheet keep its cells apart; elsewhere plain text is nearest to the source.
        output_format="markdown" if kind in SPREADSHEETS else "plain",
        pages=kreuzberg.PageConfig(extract_pages=True, insert_page_markers=True, marker_format=_MARKER),
        html_options={"strip_tags": _INLINE},  # type: ignore[arg-type]  # the library takes a dict
        concurrency=kreuzberg.ConcurrencyConfig(max_threads=1),
    )
    try:
        return kreuzberg.extract_bytes_sync(data, kind.mime, config=config)
    except (kreuzberg.KreuzbergError, OSError, RuntimeError) as error:  # the latter where its own code has panicked
        raise ValueError(getattr(error, "message", str(error))) from error


def _told(result: ExtractionResult, text: str, pages: tuple[int, ...], *, unit: str) -> Extract:
    text, unusable = replace_unusable(text)
    said = tuple(warning.message for warning in result.processing_warnings[:_LIBRARY_WARNINGS])
    return Extract("read", "", text, pages, unit, (*_replaced(unusable), *said))


def _workbook(result: ExtractionResult, data: bytes, kind: Kind) -> Extract:
    """Read a spreadsheet again with its rows moved together where the library has left out a sheet that holds some."""
    names = result.metadata.get("sheet_names", [])
    filled = 0
    if kind is ODS and len(_shown(result)) < len(names):
        try:
            compacted = compact(data)
        except ValueError:  # nobody can tell whether there is more
            filled = len(names)
        else:
            filled = compacted.filled
            result = _by_library(compacted.data, kind) if len(_shown(result)) < filled else result
    shown = _shown(result)
    text = _content(result, kind)
    read = _told(result, text, sheet_starts(text, shown, len(names)), unit="sheet")
    if len(shown) >= filled:
        return read
    lost = ", ".join(name for number, name in enumerate(names, start=1) if number not in shown)
    return replace(read, status="partial", reason=f"sheets that could not be read: {lost}")


def _shown(result: ExtractionResult) -> set[int]:
    """Return the numbers of the sheets that the library has found something in, from 1."""
    return {table.page_number for table in result.tables}


def _replaced(unusable: int) -> tuple[str, ...]:
    return (f"{unusable} NUL characters were replaced by U+FFFD",) if unusable else ()


def _not_installed(kind: Kind) -> Extract:
    return Extract("failed", f"reading {kind.name} needs an extra: pip install 'swarmbus[documents]'")


def _refused(kind: Kind, message: str) -> Extract:
    if "password" in message.lower() or "encrypt" in message.lower():
        return Extract("encrypted", f"the {kind.name} is protected by a password")
    unready = _UNREADY.search(message)
    if unready is not None:
        # Where the folder has no room, Python chooses another, and the library does not.
        place, why = os.environ.get("TMPDIR") or tempfile.gettempdir(), " ".join(unready[1].split())
        return Extract(
            "failed", f"what reads {kind.name} can't be set up in the folder {place}: {why[:_LONGEST_REASON]}"
        )
    return Extract("failed", f"damaged or not really {kind.name}: {message[:120]}")


def _content(result: ExtractionResult, kind: Kind) -> str:
    text = result.content.replace("\r\n", "\n")
    if kind is PDF:
        # A bare carriage return is what is left of a glyph that has no character.
        text = text.replace("\r", " ")
    parts = [text]
    for child in result.children or []:
        attached = child["result"].content
        if attached.strip():
            parts.append(f"Attachment: {child['path']}\n\n{_without_markers(attached)[0]}")
    return "\n\n".join(parts)


def _without_markers(content: str) -> tuple[str, tuple[int, ...]]:
    """Take the page markers out of the library's text; return it and the offset at which each page starts."""
    before, after = (part.strip() for part in _MARKER_PARTS)
    pieces: list[str] = []
    pages: list[int] = []
    length = position = 0
    expected = 1
    while (found := content.find(f"{before}{expected}{after}", position)) >= 0:
        end = found + len(f"{before}{expected}{after}")
        piece = content[position:found].strip("\n")
        piece = f"{piece}\n\n" if piece or pages else ""
        pieces.append(piece)
        length += len(piece)
        pages.append(length)
        position, expected = end, expected + 1
    pieces.append(content[position:].strip("\n"))
    return "".join(pieces), tuple(pages)
