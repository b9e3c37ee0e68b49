"""Of an XLSX workbook every value is read, whatever else is wrong in its sheet, and what is missing is told."""

from __future__ import annotations

import io
import zipfile
from datetime import date, datetime, time
from typing import TYPE_CHECKING

import pytest
from openpyxl import Workbook
from openpyxl.comments import Comment

from roles.analysis.extract import extract
from roles.analysis.kinds import XLSB, kind_of

if TYPE_CHECKING:
    from collections.abc import Mapping

RELATION = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
SPACES = f'xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main" xmlns:r="{RELATION}"'
FAR = "Z200000"


def workbook(*sheets: str, strings: str = "", place: str = "worksheets/sheet{}.xml", styles: str = "") -> bytes:
    """Write a workbook of sheets called S1, S2, …, each given as the XML of its rows."""
    named = "".join(f'<sheet name="S{n}" r:id="r{n}"/>' for n, _ in enumerate(sheets, start=1))
    related = "".join(
        f'<Relationship Id="r{n}" Type="{RELATION}/worksheet" Target="{place.format(n)}"/>'
        for n, _ in enumerate(sheets, start=1)
    )
    parts = {
        "xl/workbook.xml": f"<workbook {SPACES}><sheets>{named}</sheets></workbook>",
        "xl/_rels/workbook.xml.rels": f"<Relationships>{related}</Relationships>",
        "xl/sharedStrings.xml": f"<sst {SPACES}>{strings}</sst>",
        "xl/styles.xml": f"<styleSheet {SPACES}>{styles}</styleSheet>",
    }
    for number, rows in enumerate(sheets, start=1):
        sheet = f"<worksheet {SPACES}><sheetData>{rows}</sheetData></worksheet>"
        parts[f"xl/{place.format(number)}"] = sheet
    return zipped(parts)


def zipped(parts: Mapping[str, str | bytes]) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for name, content in parts.items():
            archive.writestr(name, content)
    return file.getvalue()


def cell(value: str, kind: str = "str", place: str = "") -> str:
    where = f' r="{place}"' if place else ""
    return f'<c{where} t="{kind}"><v>{value}</v></c>'


def row(*cells: str) -> str:
    return f"<row>{''.join(cells)}</row>"


def saved(book: Workbook) -> bytes:
    file = io.BytesIO()
    book.save(file)
    return file.getvalue()


GOOD = row(cell("good"))


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (cell("#ERROR!", "e"), "#ERROR!"),
        (cell("Err:502", "e"), "Err:502"),
        (cell("#SPILL!", "e"), "#SPILL!"),
        (cell("#DIV/0!", "e"), "#DIV/0!"),
        (cell("1", "b"), "true"),
        (cell("x", "zzz"), "x"),
        (cell("x", place="1B"), "x"),
        (cell("2024-03-09T01:31:00Z", "d"), "2024-03-09T01:31:00Z"),
        (cell("1.10", "n"), "1.1"),
        (cell("0.30000000000000004", "n"), "0.3"),
        (cell("12345678901234567890", "n"), "12345678901234567890"),
        (cell("1E-7", "n"), "1E-7"),
        (cell("NaN", "n"), "NaN"),
        (cell("0", "s"), "shared text"),
        (cell("R&amp;D | &lt; 5"), "R&D | < 5"),
        (cell("<![CDATA[a & b]]>"), "a & b"),
        (cell("one&#10;two_x000D_ _x005F_"), "one two  _"),
        ('<c t="inlineStr"><is><r><t>in</t></r><r><t>line</t></r><rPh><t>spoken</t></rPh></is></c>', "inline"),
        ('<c s="1"><v>45360.0634</v></c>', "2024-03-09 01:31:18"),
        ('<c s="999"><v>1</v></c>', "1"),
        ("<c><f>SUM(A1)</f><v>3</v></c>", "3"),
    ],
)
def test_each_value_is_read_beside_the_others(value: str, text: str) -> None:
    strings = "<si><r><t>shared </t></r><r><t>text</t></r></si>"
    styles = '<cellStyleXfs><xf numFmtId="9"/></cellStyleXfs><cellXfs><xf numFmtId="0"/><xf numFmtId="22"/></cellXfs>'
    read = extract(workbook(GOOD, row(cell("before"), value), GOOD, strings=strings, styles=styles), ".xlsx")
    assert (read.status, read.reason, read.warnings) == ("read", "", ())
    assert read.text == f"## S1\n\n| good |\n\n## S2\n\n| before | {text} |\n\n## S3\n\n| good |\n\n"
    assert [read.text[start : start + 5] for start in read.pages] == ["## S1", "## S2", "## S3"]


def test_a_text_that_the_file_does_not_hold_is_missed_in_its_sheet() -> None:
    read = extract(workbook(GOOD, row(cell("before"), cell("99", "s"))), ".xlsx")
    assert (read.status, read.reason) == ("partial", "damaged: sheet S2: cells whose text is missing: 1")
    assert read.text.endswith("## S2\n\n| before |\n\n")


def test_a_formula_without_a_value_is_shown_itself() -> None:
    book = Workbook()
    book.create_sheet("S")["A1"] = "=SUM(B1:B3)"
    read = extract(saved(book), ".xlsx")
    assert (read.status, read.text) == ("read", "## S\n\n| =SUM(B1:B3) |\n\n")
    assert read.warnings == ("formulas that stand in place of their values, which the file does not hold: 1",)


@pytest.mark.parametrize(
    "rows",
    [
        row(cell("first", place="A1")) + row(cell("last", place=FAR)),
        f"<row r='1'>{cell('first', place='A1')}</row><row\n r = '200000' >{cell('last', place=FAR)}</row >",
        row(cell("<![CDATA[first]]>", place="A1")) + row(cell("last", place="XFD1048576")),
    ],
    ids=["plain", "in other marks", "CDATA"],
)
@pytest.mark.parametrize("place", ["worksheets/sheet{}.xml", "other/s{}.xml", "Worksheets/Sheet{}.XML"])
def test_cells_may_lie_far_apart_in_whatever_part(rows: str, place: str) -> None:
    read = extract(workbook(GOOD, rows, "", GOOD, place=place), ".xlsx")
    assert (read.status, len(read.pages)) == ("read", 4)
    assert read.text == "## S1\n\n| good |\n\n## S2\n\n| first |  |\n|  | last |\n\n## S4\n\n| good |\n\n"


def test_many_cells_may_lie_far_apart() -> None:
    rows = "".join(f"<row>{'<c/>' * number}{cell(str(number))}</row>" for number in range(600))
    read = extract(workbook(rows), ".xlsx")
    assert (read.status, read.text.count("\n| ")) == ("read", 600)
    assert len(read.text) < 100_000


def test_the_text_of_shapes_follows_the_cells() -> None:
    with zipfile.ZipFile(io.BytesIO(workbook(GOOD))) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    drawing = (
        f'<Relationships><Relationship Id="d" Type="{RELATION}/drawing" Target="../drawings/d.xml"/></Relationships>'
    )
    shape = (
        '<x:wsDr xmlns:x="x" xmlns:a="a"><x:sp><a:p><a:r><a:t>seen &amp; </a:t></a:r><a:r><a:t>read</a:t></a:r></a:p>'
    )
    more = {"xl/worksheets/_rels/sheet1.xml.rels": drawing, "xl/drawings/d.xml": f"{shape}</x:sp></x:wsDr>"}
    assert extract(zipped({**parts, **more}), ".xlsx").text == "## S1\n\n| good |\nseen & read\n\n"


def test_a_sheet_that_is_damaged_is_named_and_read_as_far_as_it_goes() -> None:
    read = extract(workbook(GOOD, row(cell("whole")) + "<row><c><v>hal"), ".xlsx")
    assert read.status == "partial"
    assert read.reason.startswith("damaged: sheet S2: xl/worksheets/sheet2.xml: ")
    assert "| whole |" in read.text


def test_a_sheet_that_is_missing_is_named() -> None:
    with zipfile.ZipFile(io.BytesIO(workbook(GOOD, GOOD))) as archive:
        parts = {name: archive.read(name) for name in archive.namelist() if "sheet2" not in name}
    read = extract(zipped(parts), ".xlsx")
    assert (read.status, read.reason) == ("partial", "damaged: sheet S2: xl/worksheets/sheet2.xml is missing")


def test_a_workbook_as_it_is_commonly_written_is_read() -> None:
    book = Workbook()
    sheet = book.create_sheet("#1 <new>")
    sheet["B2"] = "R&D"
    sheet["C2"] = datetime(2024, 3, 9, 1, 31)  # noqa: DTZ001  # a cell has no time zone
    sheet["C3"] = date(2024, 3, 9)
    sheet["D3"] = time(9, 30)
    sheet["E3"] = 0.165
    sheet["B2"].comment = Comment("Who\nsays so?", "Ann")
    read = extract(saved(book), ".xlsx")
    assert (read.status, read.text.splitlines()) == (
        "read",
        ["## #1 <new>", "", "| R&D | 2024-03-09 01:31:00 |  |  |", "|  | 2024-03-09 | 09:30:00 | 0.165 |",
         "Comment on B2: Who says so?", ""],
    )  # fmt: skip


@pytest.mark.parametrize("data", [saved(Workbook()), workbook("", "<row><c/></row>")])
def test_a_workbook_of_empty_sheets_holds_no_text(data: bytes) -> None:
    assert extract(data, ".xlsx").status == "no_text"


def test_a_binary_workbook_is_told_from_one_of_xml() -> None:
    assert kind_of(zipped({"xl/workbook.bin": b"\x83\x01"}), ".xlsx") is XLSB
