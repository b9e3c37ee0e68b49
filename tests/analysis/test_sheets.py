"""No sheet of a spreadsheet is left out in silence, however far apart its cells lie."""

from __future__ import annotations

import io
import zipfile
from typing import TYPE_CHECKING

import pytest
from openpyxl import Workbook

from roles.analysis.extract import extract
from roles.analysis.sheets import compact, sheet_starts

if TYPE_CHECKING:
    from collections.abc import Mapping

FAR = "Z200000"
ONE, FIRST, LAST, THREE = "sheet one", "the first compressor", "the last compressor", "sheet three"


def xlsx(*sheets: Mapping[str, str], names: tuple[str, ...] = ()) -> bytes:
    book = Workbook()
    del book[book.sheetnames[0]]
    for number, cells in enumerate(sheets):
        sheet = book.create_sheet(names[number] if names else f"S{number + 1}")
        for place, value in cells.items():
            sheet[place] = value
    file = io.BytesIO()
    book.save(file)
    return file.getvalue()


def ods(*sheets: tuple[str, ...], apart: int) -> bytes:
    """Write sheets whose rows have empty ones between them."""
    gap = f'<table:table-row table:number-rows-repeated="{apart}"><table:table-cell/></table:table-row>'
    cell = '<table:table-cell office:value-type="string"><text:p>{}</text:p></table:table-cell>'
    row = f"<table:table-row><table:table-cell/>{cell}</table:table-row>"
    tables = "".join(
        f'<table:table table:name="S{number}">{gap.join(row.format(value) for value in rows)}</table:table>'
        for number, rows in enumerate(sheets, start=1)
    )
    spaces = " ".join(
        f'xmlns:{name}="urn:oasis:names:tc:opendocument:xmlns:{name}:1.0"'
        for name in ("manifest", "office", "table", "text")
    )
    content = (
        f"<office:document-content {spaces}><office:body><office:spreadsheet>{tables}"
        "</office:spreadsheet></office:body></office:document-content>"
    )
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("mimetype", "application/vnd.oasis.opendocument.spreadsheet")
        archive.writestr("META-INF/manifest.xml", f"<manifest:manifest {spaces}/>")
        archive.writestr("content.xml", content)
    return file.getvalue()


@pytest.mark.parametrize(
    ("data", "suffix"),
    [
        (xlsx({"A1": ONE}, {"A1": FIRST, FAR: LAST}, {}, {"A1": THREE}), ".xlsx"),
        (xlsx({"A1": ONE}, {"A1": FIRST, "A1048576": LAST}, {}, {"A1": THREE}), ".xlsx"),
        (ods((ONE,), (FIRST, LAST), (), (THREE,), apart=200_000), ".ods"),
    ],
    ids=["XLSX, a far corner", "XLSX, the last row", "ODS"],
)
def test_a_sheet_whose_cells_lie_far_apart_is_read(data: bytes, suffix: str) -> None:
    read = extract(data, suffix)
    assert (read.status, read.reason, read.warnings, len(read.pages)) == ("read", "", (), 4)
    sheets = [read.text[start:end] for start, end in zip(read.pages, [*read.pages[1:], len(read.text)], strict=True)]
    assert [[value for value in (ONE, FIRST, LAST, THREE) if value in sheet] for sheet in sheets] == [
        [ONE], [FIRST, LAST], [], [THREE],
    ]  # fmt: skip


def test_such_a_sheet_is_read_where_it_is_the_only_one() -> None:
    read = extract(xlsx({"B1": FIRST, "A1": "x", FAR: LAST}), ".xlsx")
    assert read.status == "read"
    first, _, last = (line for line in read.text.splitlines() if line.startswith("|"))
    assert [line.split("|").index(f" {value} ") for line, value in ((first, FIRST), (last, LAST))] == [2, 26]


def test_a_sheet_that_can_not_be_read_at_all_is_told() -> None:
    data, spoilt = xlsx({"A1": ONE}, {"A1": FIRST}), io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as whole, zipfile.ZipFile(spoilt, "w") as archive:
        for name in whole.namelist():
            content = whole.read(name)
            archive.writestr(name, content.replace(b'"A1"', b'"?"') if name.endswith("sheet2.xml") else content)
    read = extract(spoilt.getvalue(), ".xlsx")
    assert (read.status, read.reason) == ("partial", "sheets that could not be read: S2")
    assert ONE in read.text


def test_a_workbook_of_empty_sheets_holds_no_text() -> None:
    assert extract(xlsx({}, {}), ".xlsx").status == "no_text"


def test_sheets_have_places_whatever_they_are_called() -> None:
    read = extract(xlsx({"A1": "## a"}, {"A1": ONE}, names=("#1 <new>", "`b`")), ".xlsx")
    assert [read.text[start : start + 3] for start in read.pages] == ["## ", "## "]


def test_what_can_not_be_told_has_no_places() -> None:
    assert sheet_starts("## a\n\n## b\n", [1], 2) == ()
    assert sheet_starts("", [], 2) == ()


def test_what_is_no_archive_can_not_be_compacted() -> None:
    with pytest.raises(ValueError, match="not a zip file"):
        compact(b"PK\x03\x04 and no more")
