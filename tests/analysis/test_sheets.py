"""No sheet of an OpenDocument spreadsheet is left out in silence, however far apart its cells lie."""

from __future__ import annotations

import io
import zipfile

import pytest

from roles.analysis.extract import extract
from roles.analysis.sheets import compact, sheet_starts

ONE, FIRST, LAST, THREE = "sheet one", "the first compressor", "the last compressor", "sheet three"


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


@pytest.mark.parametrize("data", [ods((ONE,), (FIRST, LAST), (), (THREE,), apart=apart) for apart in (999, 200_000)])
def test_a_sheet_whose_cells_lie_far_apart_is_read(data: bytes) -> None:
    read = extract(data, ".ods")
    assert (read.status, read.reason, read.warnings, len(read.pages)) == ("read", "", (), 4)
    sheets = [read.text[start:end] for start, end in zip(read.pages, [*read.pages[1:], len(read.text)], strict=True)]
    assert [[value for value in (ONE, FIRST, LAST, THREE) if value in sheet] for sheet in sheets] == [
        [ONE], [FIRST, LAST], [], [THREE],
    ]  # fmt: skip


def test_what_can_not_be_told_has_no_places() -> None:
    assert sheet_starts("## a\n\n## b\n", [1], 2) == ()
    assert sheet_starts("", [], 2) == ()


def test_what_is_no_archive_can_not_be_compacted() -> None:
    with pytest.raises(ValueError, match="not a zip file"):
        compact(b"PK\x03\x04 and no more")
