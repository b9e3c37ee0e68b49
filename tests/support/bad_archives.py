"""Makes office files, books and packed files that hurt: cut, damaged, empty, or far larger inside than outside."""

from __future__ import annotations

import gzip
import io
import struct
import zipfile
from typing import TYPE_CHECKING

from docx import Document
from openpyxl import Workbook
from pptx import Presentation

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

TEXT = "The pump of the northern basin was replaced on 4 May after the bearing had failed."
ZEROS = 120 * 2**20
"""Bytes that a bomb holds, which take a thousandth of it in the file."""

_WORD = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
_SHEET = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
_OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
_LAUGHS = '<!ENTITY l0 "lol">' + "".join(f'<!ENTITY l{n} "{f"&l{n - 1};" * 10}">' for n in range(1, 10))


def docx(text: str = TEXT) -> bytes:
    document = Document()
    document.add_paragraph(text)
    return _saved(document.save)


def xlsx(text: str = TEXT, cell: str = "A1") -> bytes:
    book = Workbook()
    sheet = book.active
    assert sheet is not None
    sheet[cell] = text
    return _saved(book.save)


def pptx(text: str = TEXT) -> bytes:
    slides = Presentation()
    if text:
        slides.slides.add_slide(slides.slide_layouts[5]).shapes.title.text = text
    return _saved(slides.save)


def odt(*, content: bool = True) -> bytes:
    spaces = " ".join(f'xmlns:{name}="urn:oasis:names:tc:opendocument:xmlns:{name}:1.0"' for name in ("office", "text"))
    body = f"<office:body><office:text><text:p>{TEXT}</text:p></office:text></office:body>"
    parts = {"content.xml": f"<office:document-content {spaces}>{body}</office:document-content>"} if content else {}
    return zipped({"mimetype": "application/vnd.oasis.opendocument.text", **parts})


def odt_with_password() -> bytes:
    """Return a text file as programs for open documents keep it under a password: its content is noise."""
    space = 'xmlns:manifest="urn:oasis:names:tc:opendocument:xmlns:manifest:1.0"'
    entry = '<manifest:file-entry manifest:full-path="content.xml"><manifest:encryption-data/></manifest:file-entry>'
    manifest = f"<manifest:manifest {space}>{entry}</manifest:manifest>"
    noise = bytes(range(255, 0, -1)) * 9
    kind = "application/vnd.oasis.opendocument.text"
    return zipped({"mimetype": kind, "META-INF/manifest.xml": manifest, "content.xml": noise})


def epub_without_book() -> bytes:
    return zipped({"mimetype": "application/epub+zip", "META-INF/container.xml": "<container/>"})


def zipped(parts: Mapping[str, str | bytes]) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        for name, content in parts.items():
            archive.writestr(name, content)
    return file.getvalue()


def with_part(data: bytes, name: str, change: Callable[[bytes], bytes]) -> bytes:
    """Return an archive with one part changed."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        parts = {part: archive.read(part) for part in archive.namelist()}
    return zipped({**parts, name: change(parts.get(name, b""))})


def flipped(data: bytes, part: str) -> bytes:
    """Return an archive in which a few bytes of a part are damaged."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        at = archive.getinfo(part).header_offset + 30 + len(part) + 40
    return data[:at] + bytes(byte ^ 255 for byte in data[at : at + 40]) + data[at + 40 :]


def with_password(data: bytes) -> bytes:
    """Return an archive whose parts say that they are encrypted."""
    marked = bytearray(data)
    for signature, at in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        place = marked.find(signature)
        while place >= 0:
            marked[place + at] |= 1
            place = marked.find(signature, place + 4)
    return bytes(marked)


def bomb(data: bytes, part: str, begin: bytes, end: bytes) -> bytes:
    """Return an archive with a part that holds a sentence and then some hundred MB of spaces."""
    return with_part(data, part, lambda _: begin + TEXT.encode() + b" " * ZEROS + end)


def docx_bomb() -> bytes:
    begin, end = f'<w:document xmlns:w="{_WORD}"><w:body><w:p><w:r><w:t>', ".</w:t></w:r></w:p></w:body></w:document>"
    return bomb(docx(), "word/document.xml", begin.encode(), end.encode())


def xlsx_bomb() -> bytes:
    begin = f'<worksheet xmlns="{_SHEET}"><sheetData><row r="1"><c r="A1" t="inlineStr"><is><t>'
    end = ".</t></is></c></row></sheetData></worksheet>"
    return bomb(xlsx(), "xl/worksheets/sheet1.xml", begin.encode(), end.encode())


def entities(kind: str) -> bytes:
    """Return a text file of an office program whose one paragraph is an entity: a billion laughs, or another file."""
    declared, used = (_LAUGHS, "&l9;") if kind == "laughs" else ('<!ENTITY x SYSTEM "file:///etc/passwd">', "&x;")
    body = f"<w:body><w:p><w:r><w:t>{used}</w:t></w:r></w:p></w:body>"
    xml = f'<?xml version="1.0"?><!DOCTYPE d [{declared}]><w:document xmlns:w="{_WORD}">{body}</w:document>'
    return with_part(docx(), "word/document.xml", lambda _: xml.encode())


def deep_docx() -> bytes:
    depth = 100_000
    nested = "<w:sdt><w:sdtContent>" * depth + f"<w:p><w:r><w:t>{TEXT}</w:t></w:r></w:p>"
    xml = f'<w:document xmlns:w="{_WORD}"><w:body>{nested}{"</w:sdtContent></w:sdt>" * depth}</w:body></w:document>'
    return with_part(docx(), "word/document.xml", lambda _: xml.encode())


def wide_sheet() -> bytes:
    """Return a table that says that it is as large as one may be, and holds one value."""

    def claimed(content: bytes) -> bytes:
        return content.replace(b'ref="A1:A1"', b'ref="A1:XFD1048576"').replace(b'ref="A1"', b'ref="A1:XFD1048576"')

    return with_part(xlsx(), "xl/worksheets/sheet1.xml", claimed)


def outside() -> bytes:
    """Return a text file of an office program with a part that would be unpacked outside its folder."""
    return with_part(docx(), "../../outside.txt", lambda _: b"outside")


def packed_in_itself() -> bytes:
    inner = zipped({"zeros": bytes(ZEROS // 10)})
    for level in range(5):
        inner = zipped({f"{level}-{number}.zip": inner for number in range(8)})
    return inner


def packed() -> bytes:
    return gzip.compress(TEXT.encode() * 100)


def ole(*streams: str) -> bytes:
    """Return the beginning of a file of an older office program, with names of streams and nothing in them."""
    return _OLE + bytes(504) + b"".join(name.encode("utf-16-le") + bytes(64) for name in streams) + bytes(2048)


def tape() -> bytes:
    return b"a.txt" + bytes(95) + b"0000644\x00" + bytes(157) + b"ustar" + struct.pack("<243x") + TEXT.encode()


def _saved(save: Callable[[io.BytesIO], None]) -> bytes:
    file = io.BytesIO()
    save(file)
    return file.getvalue()
