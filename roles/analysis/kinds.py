"""Says what kind of document some bytes are, by what they hold; the name only decides where the content does not.

It knows signatures and names, and reads nothing itself.
"""

from __future__ import annotations

import io
import re
import zipfile
from dataclasses import dataclass, replace
from typing import Literal

from roles.analysis.archives import ZIP_ERRORS
from roles.analysis.decoding import is_text

Family = Literal["text", "extracted", "encrypted", "image", "archive", "unknown"]

_OPENDOCUMENT = "application/vnd.oasis.opendocument."
_OFFICE = "application/vnd.openxmlformats-officedocument."


@dataclass(frozen=True, slots=True)
class Kind:
    """What a file is.

    Attributes:
        family: `text` is read as its own characters, `extracted` by the extraction library; the others are not read.
        name: for people, such as "PDF".
        mime: the media type, for the library; empty where there is none.
        suffixes: file name endings that go with the kind; empty where any will do.
    """

    family: Family
    name: str
    mime: str = ""
    suffixes: tuple[str, ...] = ()


TEXT = Kind("text", "text")
HTML = Kind("extracted", "HTML", "text/html", (".html", ".htm", ".xhtml"))
PDF = Kind("extracted", "PDF", "application/pdf", (".pdf",))
MAIL = Kind("extracted", "mail", "message/rfc822", (".eml", ".mht", ".mhtml"))
RTF = Kind("extracted", "RTF", "application/rtf", (".rtf",))
DOCX = Kind("extracted", "DOCX", _OFFICE + "wordprocessingml.document", (".docx", ".docm", ".dotx"))
PPTX = Kind("extracted", "PPTX", _OFFICE + "presentationml.presentation", (".pptx", ".pptm", ".ppsx"))
XLSX = Kind("extracted", "XLSX", _OFFICE + "spreadsheetml.sheet", (".xlsx", ".xlsm", ".xltx"))
XLSB = Kind("extracted", "XLSB", "application/vnd.ms-excel.sheet.binary.macroEnabled.12", (".xlsb",))
ODT = Kind("extracted", "ODT", _OPENDOCUMENT + "text", (".odt",))
ODS = Kind("extracted", "ODS", _OPENDOCUMENT + "spreadsheet", (".ods",))
ODP = Kind("extracted", "ODP", _OPENDOCUMENT + "presentation", (".odp",))
EPUB = Kind("extracted", "EPUB", "application/epub+zip", (".epub",))
DOC = Kind("extracted", "DOC", "application/msword", (".doc", ".dot"))
PPT = Kind("extracted", "PPT", "application/vnd.ms-powerpoint", (".ppt", ".pps"))
XLS = Kind("extracted", "XLS", "application/vnd.ms-excel", (".xls",))
MSG = Kind("extracted", "Outlook mail", "application/vnd.ms-outlook", (".msg",))
ENCRYPTED_OFFICE = Kind("encrypted", "Office file", "", (".docx", ".pptx", ".xlsx"))
IMAGE = Kind("image", "picture")
MEDIA = Kind("unknown", "sound or film")
ARCHIVE = Kind("archive", "archive")
UNKNOWN = Kind("unknown", "binary data")

NAMED = (HTML, PDF, MAIL, RTF, DOCX, PPTX, XLSX, XLSB, ODT, ODS, ODP, EPUB, DOC, PPT, XLS, MSG)
SPREADSHEETS = (XLSX, XLSB, XLS, ODS)
SLIDES = (PPTX,)
LINED = (".csv", ".tsv", ".log", ".jsonl", ".ndjson", *(end for kind in SPREADSHEETS for end in kind.suffixes))
"""Endings of files in which each line stands for itself."""

PLAIN = frozenset(
    """
    .adoc .asciidoc .bib .c .cfg .conf .cpp .cs .csv .go .h .ini .java .js .json .jsonl .log .markdown .md .ndjson .org
    .py .rb .rs .rst .sh .sql .srt .tex .text .textile .toml .ts .tsv .txt .vtt .wiki .yaml .yml
    """.split()  # noqa: SIM905  # a list of strings is harder to read
) | {""}
"""Endings of files that may speak of a format, at their very beginning even, without being of it."""

_MEDIA = (b"RIFF", b"RIFX", b"FORM", b"OggS", b"fLaC", b"ID3")
_SIGNATURES: tuple[tuple[bytes, Kind], ...] = (
    (b"\x89PNG", IMAGE),
    (b"\xff\xd8\xff", IMAGE),
    (b"GIF8", IMAGE),
    (b"BM", IMAGE),
    (b"II*\x00", IMAGE),
    (b"MM\x00*", IMAGE),
    *((signature, MEDIA) for signature in _MEDIA),
    (b"\x1f\x8b", ARCHIVE),
    (b"BZh", ARCHIVE),
    (b"\xfd7zXZ", ARCHIVE),
    (b"7z\xbc\xaf", ARCHIVE),
    (b"Rar!", ARCHIVE),
    (b"(\xb5/\xfd", ARCHIVE),
)
ZIPPED = (DOCX, PPTX, XLSX, XLSB, ODT, ODS, ODP, EPUB)

_ZIP_PARTS = (("word/document", DOCX), ("ppt/presentation", PPTX), ("xl/workbook.bin", XLSB), ("xl/workbook", XLSX))
_ZIP_TYPES = {kind.mime.encode(): kind for kind in (ODT, ODS, ODP, EPUB)}
_LONGEST_TYPE = 200
_LONGEST_MANIFEST = 2**20
_OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
_OLE_STREAMS = (
    ("EncryptedPackage", ENCRYPTED_OFFICE),
    ("WordDocument", DOC),
    ("PowerPoint Document", PPT),
    ("Workbook", XLS),
    ("__substg1.0_", MSG),
)
_RTF_START = re.compile(rb"\{\\rtf\d")
_HTML_START = re.compile(
    rb"\s*(?:<\?xml[^>]*>\s*)?(?:<!--(?:(?!-->).)*-->\s*)*<(?:!doctype\s+html|html|head|body)\b",
    re.IGNORECASE | re.DOTALL,
)
_HTML_END = re.compile(rb"</(?:html|body)\s*>\s*(?:<!--(?:(?!-->).)*-->\s*)*\Z", re.IGNORECASE | re.DOTALL)
_HTML_PARTS = (re.compile(rb"<html\b", re.IGNORECASE), re.compile(rb"<body\b", re.IGNORECASE))
_PDF_HEADER = re.compile(rb"^[\s\xef\xbb\xbf]*%PDF-\d", re.MULTILINE)
_PDF_OBJECT = re.compile(rb"\d{1,10}\s{1,9}\d{1,5}\s{1,9}obj\b")
_MAIL_FIELD = re.compile(
    rb"^(from|to|subject|date|message-id|mime-version|received|return-path|delivered-to|content-type):",
    re.IGNORECASE | re.MULTILINE,
)
_TRANSPORT = frozenset({b"message-id", b"mime-version", b"received"})
"""Fields that programs write, and of which nobody writes one into a text."""
_FIELDS_ALONE = re.compile(rb"(?:[!-9;-~]+:[^\n]*(?:\r?\n[ \t][^\n]*)*(?:\r?\n|\Z))+")
_BLANK_LINE = re.compile(rb"\r?\n\r?\n")
_LONGEST_HEAD = 16_384


def kind_of(data: bytes, suffix: str, *, pdf: bool = True) -> Kind:  # noqa: PLR0911  # signatures, from top to bottom
    """Find the kind of a file.

    Args:
        data: the whole file.
        suffix: the ending of its name in small letters, with the point.
        pdf: whether it may be a PDF, which cannot be told before it has been read as one.
    """
    if pdf and _is_pdf(data, suffix):
        return PDF
    if data.startswith(b"PK\x03\x04"):
        return _zip_kind(data, suffix)
    if data.startswith(_OLE):
        return _ole_kind(data, suffix)
    if not is_text(data) or _is_media(data):
        signed = next((kind for signature, kind in _SIGNATURES if data.startswith(signature)), UNKNOWN)
        return MAIL if signed is UNKNOWN and suffix in MAIL.suffixes and _is_mail(data, suffix) else signed
    if _is_rtf(data, suffix):
        return RTF
    if suffix in HTML.suffixes or _is_page(data, suffix):
        return HTML
    return MAIL if _is_mail(data, suffix) else TEXT


def named(suffix: str) -> Kind | None:
    """The kind that a file's name promises, or None where the ending promises nothing that is checked."""
    return next((kind for kind in NAMED if suffix in kind.suffixes), None)


def _is_pdf(data: bytes, suffix: str) -> bool:
    """Whether it may be a PDF; other bytes may stand before its beginning, as programs that show PDFs allow too."""
    if suffix in PDF.suffixes:
        return b"%PDF-" in data[:1024]
    header = _PDF_HEADER.match(data)
    if header is None and suffix not in PLAIN and not _is_mail(data, suffix):
        header = _PDF_HEADER.search(data[:1024])
    return header is not None and _PDF_OBJECT.search(data) is not None


def only_speaks_of_pdf(data: bytes, suffix: str) -> bool:
    """Whether a file that could not be read as PDF is a text that shows how one begins."""
    return is_text(data) and not (suffix in PDF.suffixes and _PDF_HEADER.match(data))


def _is_media(data: bytes) -> bool:
    """Whether it is sound or film: what is quiet has the bytes of a text, behind letters that no text has so."""
    return data.startswith(_MEDIA) and b"\0" in data[:_LONGEST_HEAD]


def _is_rtf(data: bytes, suffix: str) -> bool:
    whole = _RTF_START.match(data) is not None and data.rstrip(b"\0\r\n ").endswith(b"}")
    return whole or (suffix not in PLAIN and data.startswith(b"{\\rtf"))


def _is_page(data: bytes, suffix: str) -> bool:
    """Whether it is HTML: of what is named as text only a whole page, for a text may begin and end with a tag."""
    starts = _HTML_START.match(data[:4096].removeprefix(b"\xef\xbb\xbf")) is not None
    if suffix not in PLAIN:
        return starts
    return starts and _HTML_END.search(data[-4096:]) is not None and all(part.search(data) for part in _HTML_PARTS)


def _is_mail(data: bytes, suffix: str) -> bool:
    """Whether it is a mail: of what is named as text only a whole one, as texts may begin with fields like it."""
    head, *body = _BLANK_LINE.split(data[:_LONGEST_HEAD].removeprefix(b"\xef\xbb\xbf"), maxsplit=1)
    fields = {match.lower() for match in _MAIL_FIELD.findall(head)}
    if suffix in MAIL.suffixes:
        return bool(fields)
    if _MAIL_FIELD.match(head) is None or len(fields) < 4 or b"from" not in fields:
        return False
    return suffix not in PLAIN or (
        bool(body) and bool(fields & _TRANSPORT) and _FIELDS_ALONE.fullmatch(head) is not None
    )


def _zip_kind(data: bytes, suffix: str) -> Kind:
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            kind = _zipped_kind(archive)
            return replace(kind, family="encrypted") if kind is not ARCHIVE and _is_locked(archive) else kind
    except ZIP_ERRORS:
        return named(suffix) or (TEXT if is_text(data) else ARCHIVE)


def _zipped_kind(archive: zipfile.ZipFile) -> Kind:
    for part, kind in _ZIP_PARTS:
        if any(name.startswith(part) for name in archive.namelist()):
            return kind
    stated = _beginning(archive, "mimetype", _LONGEST_TYPE).strip()  # OpenDocument and EPUB say there what they are
    return _ZIP_TYPES.get(stated, ARCHIVE)


def _is_locked(archive: zipfile.ZipFile) -> bool:
    """Whether a password is needed: for the archive, for the content as OpenDocument keeps it, or for a bought book."""
    parts = archive.infolist()
    return (
        any(part.flag_bits & 1 for part in parts)
        or any(part.filename == "META-INF/rights.xml" for part in parts)
        or b"encryption-data" in _beginning(archive, "META-INF/manifest.xml", _LONGEST_MANIFEST)
    )


def _beginning(archive: zipfile.ZipFile, name: str, length: int) -> bytes:
    """Return the first bytes of a part; none where there is no such part, or a password is needed."""
    if name not in archive.namelist() or archive.getinfo(name).flag_bits & 1:
        return b""
    with archive.open(name) as member:
        return member.read(length)


def _ole_kind(data: bytes, suffix: str) -> Kind:
    for stream, kind in _OLE_STREAMS:
        if stream.encode("utf-16-le") in data:
            return kind
    return named(suffix) or UNKNOWN
