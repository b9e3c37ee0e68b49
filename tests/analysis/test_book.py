"""Of a book every chapter is read in its place, and one that is missing is told."""

from __future__ import annotations

import io
import zipfile
from typing import TYPE_CHECKING

from roles.analysis.extract import extract

if TYPE_CHECKING:
    from collections.abc import Mapping

CHAPTER = '<?xml version="1.0"?><html><title>t</title><body><h1>{}</h1><p>R&amp;D&nbsp;5</p></body></html>'
DOCTYPE = '<!DOCTYPE package PUBLIC "+//ISBN//DTD OEB 1.0//EN" "oeb.dtd">'


def book(chapters: Mapping[str, str], *, order: str, folder: str = "OEBPS/") -> bytes:
    """Write a book of parts by their names; the order names addresses."""
    items = "".join(f'<item id="{address}" href="{address}"/>' for address in order.split())
    spine = "".join(f'<itemref idref="{address}"/>' for address in order.split())
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("mimetype", "application/epub+zip")
        root = f'<container><rootfiles><rootfile full-path="{folder}c.opf"/></rootfiles></container>'
        archive.writestr("META-INF/container.xml", root)
        listed = f"<package><manifest>{items}</manifest><spine>{spine}</spine></package>"
        archive.writestr(f"{folder}c.opf", DOCTYPE + listed)
        for name, content in chapters.items():
            archive.writestr(folder + name, content)
    return file.getvalue()


def test_chapters_are_read_in_order_whatever_their_parts_are_called() -> None:
    chapters = {"b b.xhtml": CHAPTER.format("two"), "text/a.xhtml": CHAPTER.format("one"), "c.xhtml": "not listed"}
    read = extract(book(chapters, order="text/a.xhtml b%20b.xhtml"), ".epub")
    assert (read.status, read.reason, read.warnings) == ("read", "", ())
    assert read.text == "one\n\nR&D 5\n\ntwo\n\nR&D 5"


def test_a_chapter_that_is_missing_is_told() -> None:
    read = extract(book({"a.xhtml": CHAPTER.format("one")}, order="a.xhtml b.xhtml", folder=""), ".epub")
    assert (read.status, read.reason, read.text[:3]) == ("partial", "damaged: b.xhtml is missing", "one")


def test_a_chapter_may_lie_deep() -> None:
    read = extract(book({"a.xhtml": "<html>" + "<div>" * 3000 + "deep"}, order="a.xhtml"), ".epub")
    assert read.text == "deep"


def test_a_book_without_chapters_holds_no_text() -> None:
    assert extract(book({}, order=""), ".epub").status in ("no_text", "failed")
