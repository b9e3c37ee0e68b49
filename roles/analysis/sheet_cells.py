"""Takes sheets, rows, shared texts, formats and comments out of the parts of an XLSX workbook.

What is damaged is read as far as it can be, and told; what becomes of it all is `workbook.py`'s.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING

from roles.analysis.serial_dates import is_date, shown

if TYPE_CHECKING:
    from collections.abc import Mapping

    from roles.analysis.packages import Package

_LETTERS = re.compile(r"[A-Z]{1,3}")
_ESCAPED = re.compile(r"_x([0-9A-Fa-f]{4})_")
_NUMBER = re.compile(r"[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d{1,3})?", re.ASCII)


@dataclass(slots=True)
class Book:
    """What the sheets of a workbook share, and what was found missing in them.

    Attributes:
        sheets: name of each and id of its part, in order.
        strings: texts that cells name by their number.
        dates: the numbers of the styles of cells that show a number as a date, as the cells write them.
        since_1904: whether days are counted from 1904, not from 1900.
        uncalculated: how many cells have a formula that no program has calculated.
    """

    sheets: list[tuple[str, str]] = field(default_factory=list)
    strings: list[str] = field(default_factory=list)
    dates: set[str] = field(default_factory=set)
    since_1904: bool = False
    uncalculated: int = 0


def read_book(package: Package, main: str) -> tuple[Book, list[str]]:
    """Return what the sheets share, and what is damaged of it.

    Raises:
        ValueError: the list of the sheets can't be got at.
    """
    book = Book()
    package.parse(main, _WorkbookReader(book).start)
    folder = main.rpartition("/")[0]
    damage: list[str] = []
    for kind, reader in (("sharedStrings", _StringReader(book)), ("styles", _StyleReader(book))):
        named = [relation.part for relation in package.related(main) if relation.type == kind]
        part = named[0] if named else f"{folder}/{kind}.xml"
        damage += _parsed(package, part, reader) if package.has(part) else []
    return book, damage


def read_rows(package: Package, part: str, book: Book) -> tuple[list[dict[int, str]], list[str]]:
    """Return the rows of a sheet that hold a value, each as values by the numbers of columns, and what is damaged."""
    reader = _SheetReader(book)
    damage = _parsed(package, part, reader)
    return reader.rows, damage + ([f"cells whose text is missing: {reader.textless}"] if reader.textless else [])


def read_comments(package: Package, part: str) -> tuple[list[str], list[str]]:
    """Return the comments of a sheet, with the places of their cells, and what is damaged of them."""
    reader = _CommentReader()
    damage = _parsed(package, part, reader)
    return reader.comments, damage


def _parsed(package: Package, part: str, reader: _PartReader) -> list[str]:
    """Read a part as far as it can be read; return what is damaged of it."""
    try:
        package.parse(part, reader.start, reader.end, reader.text)
    except ValueError as error:
        reader.close()
        return [str(error)]
    return []


class _PartReader:
    """Collects the text of the elements it is asked for, but for the pronunciation of Japanese words."""

    def __init__(self) -> None:
        self.pieces: list[str] = []
        self._open: list[str] = []
        self._spoken = 0

    def start(self, tag: str, attributes: Mapping[str, str]) -> None:
        self._open.append(tag)
        self._spoken += tag == "rPh"

    def end(self, tag: str) -> None:
        self._open.pop()
        self._spoken -= tag == "rPh"

    def text(self, text: str) -> None:
        if self._open[-1] == "t" and not self._spoken:
            self.pieces.append(text)

    def close(self) -> None:
        """End what the XML has not."""
        while self._open:
            self.end(self._open[-1])

    def taken(self) -> str:
        """Return what was collected, and begin again."""
        text = "".join(self.pieces)
        self.pieces.clear()
        return _ESCAPED.sub(lambda match: chr(int(match[1], 16)), text) if "_x" in text else text


class _WorkbookReader(_PartReader):
    """Reads the list of the sheets."""

    def __init__(self, book: Book) -> None:
        super().__init__()
        self._book = book

    def start(self, tag: str, attributes: Mapping[str, str]) -> None:
        if tag == "sheet":
            self._book.sheets.append((attributes.get("name", ""), attributes.get("id", "")))
        elif tag == "workbookPr":
            self._book.since_1904 = attributes.get("date1904") in ("1", "true")


class _StringReader(_PartReader):
    """Reads the texts that cells share."""

    def __init__(self, book: Book) -> None:
        super().__init__()
        self._strings = book.strings

    def end(self, tag: str) -> None:
        super().end(tag)
        if tag == "si":
            self._strings.append(self.taken())


class _StyleReader(_PartReader):
    """Reads which styles show dates."""

    def __init__(self, book: Book) -> None:
        super().__init__()
        self._dates = book.dates
        self._codes: dict[int, str] = {}
        self._styles = 0

    def start(self, tag: str, attributes: Mapping[str, str]) -> None:
        if tag == "numFmt":
            self._codes[_number(attributes, "numFmtId")] = attributes.get("formatCode", "")
        elif tag == "xf" and self._open[-1:] == ["cellXfs"]:
            number = _number(attributes, "numFmtId")
            if is_date(number, self._codes.get(number)):
                self._dates.add(str(self._styles))
            self._styles += 1
        super().start(tag, attributes)


class _CommentReader(_PartReader):
    """Reads the comments on the cells of a sheet."""

    def __init__(self) -> None:
        super().__init__()
        self.comments: list[str] = []
        self._cell = ""

    def start(self, tag: str, attributes: Mapping[str, str]) -> None:
        super().start(tag, attributes)
        if tag == "comment":
            self._cell = attributes.get("ref", "?")

    def end(self, tag: str) -> None:
        super().end(tag)
        if tag == "comment":
            self.comments.append(f"Comment on {self._cell}: {_in_one_line(self.taken())}")


class _SheetReader(_PartReader):
    """Reads the rows that hold a value: for each its values by the numbers of their columns."""

    def __init__(self, book: Book) -> None:
        super().__init__()
        self.rows: list[dict[int, str]] = []
        self.textless = 0
        self._book = book
        self._row: dict[int, str] = {}
        self._cell: Mapping[str, str] = {}
        self._column = 0
        self._formula: list[str] | None = None

    def start(self, tag: str, attributes: Mapping[str, str]) -> None:
        super().start(tag, attributes)
        if tag == "c":
            self._column = _column(attributes.get("r", "").rstrip("0123456789")) or self._column + 1
            self._cell, self._formula = attributes, None
        elif tag == "row":
            self._row, self._column = {}, 0
        elif tag == "f":
            self._formula = []

    def text(self, text: str) -> None:
        if self._open[-1] == "v":
            self.pieces.append(text)
        elif self._open[-1] == "f" and self._formula is not None:
            self._formula.append(text)
        else:
            super().text(text)

    def end(self, tag: str) -> None:
        super().end(tag)
        if tag == "c":
            value = _in_one_line(self._value(self._cell.get("t", "n")))
            if value:
                self._row[self._column] = value
        if tag == "row" or (tag == "sheetData" and self._row):
            self.rows += [self._row] if self._row else []
            self._row = {}

    def _value(self, kind: str) -> str:
        kept = self.taken()
        if not kept and self._formula is not None and kind != "str":
            self._book.uncalculated += 1
            return f"={''.join(self._formula)}"
        match kind:
            case "s":
                return self._shared(kept)
            case "b":
                return {"1": "true", "0": "false"}.get(kept, kept)
            case "n":
                return self._number(kept)
            case _:
                return kept

    def _shared(self, number: str) -> str:
        if number.isdecimal() and int(number) < len(self._book.strings):
            return self._book.strings[int(number)]
        self.textless += number != ""
        return ""

    def _number(self, kept: str) -> str:
        if not _NUMBER.fullmatch(kept):
            return kept
        if self._cell.get("s", "0") in self._book.dates:
            return shown(float(kept), since_1904=self._book.since_1904)
        if kept.isdecimal():
            return kept
        digits = f"{float(kept):.15g}"
        return kept if "e" in digits else digits


def _number(attributes: Mapping[str, str], name: str) -> int:
    text = attributes.get(name, "")
    return int(text) if text.isdecimal() else 0


@cache
def _column(letters: str) -> int:
    """Return the number of a column, from 1; 0 where the letters name none."""
    if not _LETTERS.fullmatch(letters):
        return 0
    number = 0
    for letter in letters:
        number = number * 26 + ord(letter) - ord("A") + 1
    return number


def _in_one_line(value: str) -> str:
    return " ".join(value.splitlines()).strip()
