"""Reads XLSX workbooks: every value of every sheet, as the program that wrote the file has kept it.

Source: ECMA-376, part 1, SpreadsheetML. Of the formats of numbers only those of dates and times are heeded.
"""

from __future__ import annotations

from roles.analysis.content import Content
from roles.analysis.packages import Package
from roles.analysis.sheet_cells import Book, read_book, read_comments, read_rows
from roles.analysis.word import read_blocks

_BESIDE = {"comments": read_comments, "drawing": read_blocks}
"""The relations to parts with text that stands on a sheet beside its cells, with what reads them."""
_ROOM = 200_000
_SPARSE = 20
_NAMED = 5


def read_xlsx(data: bytes) -> Content:
    """Read an XLSX file: a heading for each sheet that holds a value, and a line for each row that does.

    Raises:
        ValueError: the list of its sheets can't be got at.
    """
    package = Package(data)
    main = package.main("xl/workbook.xml")
    book, damage = read_book(package, main)
    parts = {relation.id: relation.part for relation in package.related(main)}
    sheets: list[str] = []
    for name, id_ in book.sheets:
        lines, damaged = _sheet(package, parts.get(id_, id_), book)
        damage += [f"sheet {name}: {reason}" for reason in damaged]
        sheets.append(f"## {' '.join(name.split())}\n\n" + "\n".join(lines) + "\n\n" if lines else "")
    return Content("".join(sheets), _starts(sheets), "sheet", _lost(damage), _said(book))


def _sheet(package: Package, part: str, book: Book) -> tuple[list[str], list[str]]:
    """Return the lines of a sheet, with comments and the text of shapes behind them, and what is damaged of it."""
    rows, damage = read_rows(package, part, book)
    lines = _lines(rows)
    try:
        related = package.related(part)
    except ValueError as error:
        return lines, [*damage, str(error)]
    for relation in related:
        if relation.type in _BESIDE:
            beside, damaged = _BESIDE[relation.type](package, relation.part)
            lines += beside
            damage += damaged
    return lines, damage


def _lines(rows: list[dict[int, str]]) -> list[str]:
    """Return a line for each row, with its values under each other; columns without a value are left out."""
    columns = sorted({column for row in rows for column in row})
    room = len(columns) * len(rows)
    if room > max(_ROOM, _SPARSE * sum(map(len, rows))):  # hardly any stands under another
        return [f"| {' | '.join(row[column] for column in sorted(row))} |" for row in rows]
    return [f"| {' | '.join(row.get(column, '') for column in columns)} |" for row in rows]


def _starts(sheets: list[str]) -> tuple[int, ...]:
    starts, length = [], 0
    for sheet in sheets:
        starts.append(length)
        length += len(sheet)
    return tuple(starts)


def _lost(damage: list[str]) -> str:
    more = [f"and {len(damage) - _NAMED} more"] if len(damage) > _NAMED else []
    return f"damaged: {', '.join(damage[:_NAMED] + more)}" if damage else ""


def _said(book: Book) -> tuple[str, ...]:
    if not book.uncalculated:
        return ()
    return (f"formulas that stand in place of their values, which the file does not hold: {book.uncalculated}",)
