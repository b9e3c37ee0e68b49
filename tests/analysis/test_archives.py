"""Office files that are damaged somewhere inside cost only what is damaged, and say so."""

from __future__ import annotations

import io
import zipfile
from typing import TYPE_CHECKING

import pytest
from docx import Document
from openpyxl import Workbook
from pptx import Presentation

from roles.analysis.archives import damaged_parts
from roles.analysis.extract import extract

if TYPE_CHECKING:
    from collections.abc import Callable

TEXT = "The pump of the northern basin was replaced on 4 May."


def docx() -> bytes:
    document = Document()
    document.add_paragraph(TEXT)
    return saved(document.save)


def pptx() -> bytes:
    slides = Presentation()
    for _ in range(2):
        title = slides.slides.add_slide(slides.slide_layouts[0]).shapes.title
        assert title is not None
        title.text = TEXT
    return saved(slides.save)


def xlsx() -> bytes:
    book = Workbook()
    for name in ("one", "two"):
        book.create_sheet(name)["A1"] = TEXT
    return saved(book.save)


def saved(save: Callable[[io.BytesIO], object]) -> bytes:
    file = io.BytesIO()
    save(file)
    return file.getvalue()


def damaged(data: bytes, name: str, *, how: str) -> bytes:
    """Spoil the content of one part, and leave the list of the parts as it is."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        part = archive.getinfo(name)
    start = data.index(name.encode(), part.header_offset) + len(name)
    end = start + part.compress_size
    inside = b"\xff" * (end - start) if how == "stream" else bytes([data[start], *data[start + 1 : end - 9], *bytes(9)])
    return data[:start] + inside + data[end:]


@pytest.mark.parametrize("how", ["stream", "end"])
@pytest.mark.parametrize(
    ("make", "suffix", "part", "status"),
    [
        (docx, ".docx", "word/document.xml", "failed"),
        (docx, ".docx", "word/theme/theme1.xml", "read"),
        (pptx, ".pptx", "ppt/slides/slide2.xml", "failed"),
        (xlsx, ".xlsx", "xl/worksheets/sheet2.xml", "partial"),
    ],
    ids=["DOCX", "what has no text", "PPTX", "a sheet"],
)
def test_what_is_damaged_is_told(make: Callable[[], bytes], suffix: str, part: str, status: str, how: str) -> None:
    assert extract(make(), suffix).status == "read"
    read = extract(damaged(make(), part, how=how), suffix)
    assert (read.status, "damaged" in read.reason, TEXT in read.text) == (status, status != "read", status != "failed")


def test_every_part_with_text_is_looked_at() -> None:
    assert damaged_parts(pptx()) == ()
    assert damaged_parts(damaged(pptx(), "ppt/slides/slide1.xml", how="stream")) == ("ppt/slides/slide1.xml",)
    assert damaged_parts(b"PK\x03\x04 and no more") == ()


@pytest.mark.parametrize("every", [7, 61, 509])
@pytest.mark.parametrize(("make", "suffix"), [(docx, ".docx"), (pptx, ".pptx"), (xlsx, ".xlsx")])
def test_no_damage_is_more_than_a_status(make: Callable[[], bytes], suffix: str, every: int) -> None:
    whole = make()
    for start in range(0, every, max(1, every // 7)):
        data = bytearray(whole)
        data[start::every] = bytes(byte ^ 0x55 for byte in data[start::every])
        assert extract(bytes(data), suffix).status in ("read", "partial", "failed", "no_text", "encrypted")
