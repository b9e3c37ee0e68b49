"""Makes documents that hurt: of every kind of damage that a folder of real files can hold."""

from __future__ import annotations

import os
import socket
from functools import partial
from typing import TYPE_CHECKING

from fpdf import FPDF
from fpdf.enums import AccessPermission, EncryptionMethod

from support import bad_archives, bad_pdfs
from support.bad_archives import TEXT

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    Make = Callable[[Path], Path]


def pdf(path: Path, *pages: str, user: str = "", owner: str = "") -> Path:
    """Write a PDF with a page for each text; with passwords it is encrypted."""
    document = FPDF()
    for page in pages or (TEXT,):
        document.add_page()
        document.set_font("helvetica", size=12)
        document.multi_cell(0, 8, page)
    if owner:
        document.set_encryption(
            owner_password=owner,
            user_password=user or None,
            encryption_method=EncryptionMethod.RC4,
            permissions=AccessPermission.none(),
        )
    document.output(str(path))
    return path


def holding(content: Callable[[], bytes]) -> Make:
    """Return a maker of a file with such content."""

    def make(path: Path) -> Path:
        path.write_bytes(content())
        return path

    return make


def saying(text: str, encoding: str = "utf-8") -> Make:
    return holding(lambda: text.encode(encoding, "surrogatepass"))


def cut(path: Path) -> Path:
    data = pdf(path).read_bytes()
    path.write_bytes(data[:200])
    return path


def half(content: Callable[[], bytes]) -> Make:
    def halved() -> bytes:
        data = content()
        return data[: len(data) // 2]

    return holding(halved)


def locked(path: Path) -> Path:
    return pdf(path, user="secret", owner="owner")


def owner_locked(path: Path) -> Path:
    return pdf(path, owner="owner")


def link_to(target: str) -> Make:
    def make(path: Path) -> Path:
        path.symlink_to(target)
        return path

    return make


def pipe(path: Path) -> Path:
    os.mkfifo(path)
    return path


def listening(path: Path) -> Path:
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(os.path.relpath(path))  # a socket's path may have a hundred characters only
    return path


def huge(path: Path) -> Path:
    with path.open("wb") as file:
        file.truncate(300 * 2**20)
    return path


def folder(path: Path) -> Path:
    path.mkdir()
    return path


_PAGE = f"<!DOCTYPE html><html><body><p>{TEXT}</p></body></html>"
_LINES = "line one: " + "pump " * 12 + "\n"
_MAIL = f"From: a@example.org\nTo: b@example.org\nSubject: pump\nMIME-Version: 1.0\nContent-Type: {{}}\n\n{TEXT}\n"
_NESTED = "".join(f'Content-Type: multipart/mixed; boundary="b{number}"\n\n--b{number}\n' for number in range(500))

_TEXTS: dict[str, tuple[str, Make, str]] = {
    "0 bytes": ("empty.txt", saying(""), "empty"),
    "white space": ("blank.md", saying(" \n\t\n"), "empty"),
    "a million line ends": ("lines.txt", saying("\n" * 1_000_000), "empty"),
    "a mark of UTF-8 alone": ("mark8.txt", saying("\ufeff"), "empty"),
    "a mark of UTF-16 alone": ("mark16.txt", saying("\ufeff", "utf-16-le"), "empty"),
    "UTF-16 without a mark": ("wide.txt", saying(TEXT, "utf-16-le"), "read"),
    "UTF-16 with half a character": ("odd.txt", holding(lambda: TEXT.encode("utf-16") + b"x"), "read"),
    "UTF-32": ("wider.txt", saying(TEXT, "utf-32"), "read"),
    "surrogates in UTF-8": ("lone.txt", saying(f"{TEXT} \ud800 \udfff"), "read"),
    "half a pair in UTF-16": ("half.txt", saying(f"\ufeff{TEXT} \ud800 end", "utf-16-le"), "read"),
    "NULs in a text": ("nuls.txt", saying(f"{TEXT}\0\0{TEXT}"), "read"),
    "nothing but NULs": ("zeros.txt", holding(lambda: bytes(5000)), "failed"),
    "bytes of no encoding": ("bytes.txt", holding(lambda: TEXT.encode() + b"\x81\x8d\xff\xfe" * 3), "read"),
    "terminal controls": ("screen.log", saying(f"\x1b[31m{TEXT}\x1b[0m\x07"), "read"),
    "one line of 5 MB without a space": ("endless.txt", saying(TEXT + "x" * 5_000_000), "read"),
    "old line ends": ("mac.txt", saying(f"{TEXT}\r{TEXT}\r"), "read"),
    "deep JSON": ("deep.json", saying("[" * 100_000 + f'"{TEXT}"' + "]" * 100_000), "read"),
    "entities in XML": ("laughs.xml", saying('<!DOCTYPE x [<!ENTITY a "ha">]>' + f"<x>{TEXT}&a;</x>"), "read"),
    "cells of a megabyte": ("cells.csv", saying(f'"{TEXT}","{"x" * 1_000_000}"\n' * 3), "read"),
}
_PAGES: dict[str, tuple[str, Make, str]] = {
    "HTML named .pdf": ("page.pdf", saying(_PAGE), "read"),
    "HTML of depth 30,000": ("deep.html", saying("<div>" * 30_000 + TEXT + "</div>" * 30_000), "read"),
    "HTML of a script alone": ("script.html", saying("<html><script>pump()</script></html>"), "no_text"),
    "HTML that nobody has closed": ("open.html", saying(f"<html><body><p>{TEXT}<table><tr><td>"), "read"),
    "HTML of half a tag of 4 MB": ("tag.html", saying(TEXT + "<a" * 2_000_000), "read"),
    "mail without its parts": ("parts.eml", saying(_MAIL.format('multipart/mixed; boundary="never"')), "read"),
    "mail in mail in mail": ("nested.eml", saying(f"From: a@b.c\nMIME-Version: 1.0\n{_NESTED}\n{TEXT}"), "read"),
    "mail of no known encoding": ("odd.eml", saying(_MAIL.format("text/plain; charset=klingon")), "read"),
    "RTF of depth 100,000": ("deep.rtf", saying(r"{\rtf1 " + "{" * 100_000 + TEXT + "}" * 100_001), "read"),
    "RTF with bytes that never come": ("bin.rtf", saying(rf"{{\rtf1 {TEXT} {{\pict\bin99999999 x}}}}"), "read"),
    "RTF that nobody has closed": ("open.rtf", saying(rf"{{\rtf1 {TEXT}"), "read"),
}
_PDFS: dict[str, tuple[str, Make, str]] = {
    "cut after 200 bytes": ("cut.pdf", cut, "failed"),
    "PDF named .txt": ("paper.txt", pdf, "read"),
    "user password": ("locked.pdf", locked, "encrypted"),
    "owner password only": ("owner.pdf", owner_locked, "read"),
    "PDF of a header alone": ("header.pdf", saying("%PDF-1.7\n"), "failed"),
    "PDF behind other bytes": ("behind.pdf", holding(lambda: bytes(500) + bad_pdfs.ordinary()), "read"),
    "PDF without a table": ("table.pdf", holding(partial(bad_pdfs.ordinary, table=False)), "read"),
    "PDF of drawings alone": ("drawing.pdf", holding(bad_pdfs.without_text), "no_text"),
    "PDF whose pages hold themselves": ("circle.pdf", holding(bad_pdfs.circle), "failed"),
    "PDF that promises 2,000,000,000 pages": ("promise.pdf", holding(bad_pdfs.many_pages), "read"),
    "PDF of one page 500,000 times": ("pages.pdf", holding(bad_pdfs.one_page_many_times), "timed_out"),
    "PDF of depth 200,000": ("deep.pdf", holding(bad_pdfs.deep), "no_text"),
    "PDF with a bomb": (
        "bomb.pdf",
        holding(lambda: bad_pdfs.bomb(bad_archives.ZEROS)),
        "failed or timed_out or no_text",
    ),
    "PDF with a bomb in a bomb": (
        "bombs.pdf",
        holding(lambda: bad_pdfs.bomb_in_bomb(bad_archives.ZEROS)),
        "failed or timed_out or no_text",
    ),
    "PDF with a form in itself": ("form.pdf", holding(bad_pdfs.form_in_itself), "failed or timed_out or no_text"),
    "PDF that acts": ("acting.pdf", holding(bad_pdfs.acting), "read"),
    "PDF with zeros in its middle": ("hole.pdf", holding(lambda: bad_pdfs.overwritten(bad_pdfs.ordinary())), "failed"),
    "PDF and archive in one": ("both.pdf", holding(lambda: bad_pdfs.ordinary() + bad_archives.docx()), "read"),
}
_ARCHIVES: dict[str, tuple[str, Make, str]] = {
    "half a DOCX": ("half.docx", half(bad_archives.docx), "failed"),
    "half an XLSX": ("half.xlsx", half(bad_archives.xlsx), "failed"),
    "half a PPTX": ("half.pptx", half(bad_archives.pptx), "failed"),
    "half an ODT": ("half.odt", half(bad_archives.odt), "failed"),
    "DOCX with damaged text": (
        "flipped.docx", holding(lambda: bad_archives.flipped(bad_archives.docx(), "word/document.xml")), "failed",
    ),
    "DOCX without text": ("silent.docx", holding(lambda: bad_archives.docx("")), "no_text"),
    "XLSX without a value": ("silent.xlsx", holding(lambda: bad_archives.xlsx("")), "no_text"),
    "PPTX without a slide": ("silent.pptx", holding(lambda: bad_archives.pptx("")), "no_text"),
    "ODT without content": ("silent.odt", holding(lambda: bad_archives.odt(content=False)), "failed"),
    "EPUB without a book": ("silent.epub", holding(bad_archives.epub_without_book), "failed"),
    "DOCX with a billion laughs": ("laughs.docx", holding(lambda: bad_archives.entities("laughs")), "failed"),
    "DOCX that asks for another file": ("other.docx", holding(lambda: bad_archives.entities("other")), "failed"),
    "DOCX of depth 100,000": ("deep.docx", holding(bad_archives.deep_docx), "read"),
    "DOCX with a bomb": ("bomb.docx", holding(bad_archives.docx_bomb), "failed or timed_out or read"),
    "XLSX with a bomb": ("bomb.xlsx", holding(bad_archives.xlsx_bomb), "failed or timed_out or read"),
    "XLSX in its last cell": ("far.xlsx", holding(lambda: bad_archives.xlsx(cell="XFD1048576")), "read"),
    "XLSX that says it is full": ("wide.xlsx", holding(bad_archives.wide_sheet), "read"),
    "XLSX with a cell of 30,000 characters": ("cell.xlsx", holding(lambda: bad_archives.xlsx(TEXT * 380)), "read"),
    "DOCX with a part outside": ("outside.docx", holding(bad_archives.outside), "read"),
    "DOCX with a password": (
        "secret.docx", holding(lambda: bad_archives.with_password(bad_archives.docx())), "encrypted",
    ),
    "ODT with a password": ("secret.odt", holding(bad_archives.odt_with_password), "encrypted"),
    "office file with a password": ("secret.xlsx", holding(lambda: bad_archives.ole("EncryptedPackage")), "encrypted"),
    "an older DOC without content": ("old.doc", holding(lambda: bad_archives.ole("WordDocument")), "failed"),
    "an archive in an archive": ("zips.zip", holding(bad_archives.packed_in_itself), "failed"),
    "an archive named .docx": ("zips.docx", holding(bad_archives.packed_in_itself), "failed"),
    "packed text named .txt": ("packed.txt", holding(bad_archives.packed), "failed"),
    "a tape archive": ("tape.txt", holding(bad_archives.tape), "failed"),
}  # fmt: skip
_OTHERS: dict[str, tuple[str, Make, str]] = {
    "binary data": ("data.bin", holding(lambda: bytes(range(256)) * 40), "failed"),
    "a program named .pdf": ("program.pdf", holding(lambda: b"\x7fELF\x02\x01" + bytes(range(256)) * 16), "failed"),
    "picture": ("scan.png", holding(lambda: b"\x89PNG\r\n\x1a\n" + bytes(200)), "no_text"),
    "picture named .docx": ("scan.docx", holding(lambda: b"\xff\xd8\xff\xe0" + bytes(range(256)) * 9), "no_text"),
    "text named .docx": ("text.docx", saying(f"{TEXT} Never."), "read"),
    "larger than may be": ("huge.txt", huge, "failed"),
    "dangling link": ("link.txt", link_to("gone.txt"), "failed"),
    "link to itself": ("loop.txt", link_to("loop.txt"), "failed"),
    "link to a device": ("device.txt", link_to("/dev/zero"), "failed"),
    "named pipe": ("pipe.txt", pipe, "failed"),
    "socket": ("socket.txt", listening, "failed"),
    "folder named like a document": ("folder.pdf", folder, "failed"),
    "name with line end and marks": ("a\nb\u202etxt.\x1b[31m*`|.txt", saying(TEXT), "read"),
    "name that is no text": (os.fsdecode(b"\xff\xfe.txt"), saying(f"{TEXT} Once."), "read"),
    "name like an option": ("--help.txt", saying(f"{TEXT} Twice."), "read"),
    "name of 250 characters": (f"{'n' * 246}.txt", saying(f"{TEXT} Thrice."), "read"),
}  # fmt: skip

KINDS: dict[str, tuple[str, Make, str]] = {**_TEXTS, **_PAGES, **_PDFS, **_ARCHIVES, **_OTHERS}
"""Name, maker and expected status of each kind; where several are right, it depends on which limit is met first."""

SLOW = frozenset(kind for kind in KINDS if "bomb" in kind or "form in itself" in kind or "500,000" in kind)
"""Kinds that cost seconds."""
