"""Reads Word documents: every text that a reader of the document can see, in order, in paragraphs.

Source: ECMA-376, part 1, WordprocessingML, and part 3, Markup Compatibility.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from roles.analysis.content import Content
from roles.analysis.packages import Package

if TYPE_CHECKING:
    from collections.abc import Mapping

_SIGNS = {"tab": "\t", "ptab": "\t", "br": "\n", "cr": "\n", "noBreakHyphen": "-"}
_BESIDE = ("header", "footer", "footnotes", "endnotes", "comments", "diagramData")
"""The relations to parts that hold text beside the document's own."""
_UNREAD = {
    "aFChunk": "documents of other formats in it",
    "chart": "charts",
    "oleObject": "files in it",
    "package": "files in it",
}
"""The relations to parts that are not read."""


def read_docx(data: bytes) -> Content:
    """Read a DOCX file.

    Raises:
        ValueError: its text can't be got at.
    """
    package = Package(data)
    main = package.main("word/document.xml")
    text, damage = read_blocks(package, main)
    if damage and not text:
        raise ValueError(damage[0])
    try:
        related = package.related(main)
    except ValueError as error:
        related = ()
        damage.append(str(error))
    # There are headers for the first page, for even pages and for each section, most of them the same.
    beside: dict[str, None] = {}
    for part in dict.fromkeys(relation.part for kind in _BESIDE for relation in related if relation.type == kind):
        blocks, damaged = read_blocks(package, part)
        beside |= dict.fromkeys(blocks)
        damage += damaged
    unread = Counter(_UNREAD[relation.type] for relation in related if relation.type in _UNREAD)
    lost = [f"damaged: {part}" for part in damage] + [f"not read: {name} ({n})" for name, n in unread.items()]
    return Content("\n\n".join([*text, *beside]), lost="; ".join(lost))


def read_blocks(package: Package, part: str) -> tuple[list[str], list[str]]:
    """Return the paragraphs and tables of a part, in whichever Office file, and what is damaged of it."""
    reader = _Reader()
    try:
        package.parse(part, reader.start, reader.end, reader.text)
    except ValueError as error:
        reader.close()
        return reader.blocks, [str(error)]
    return reader.blocks, []


class _Reader:
    """Collects paragraphs; those of a table's row become a line, with tabs between its cells."""

    def __init__(self) -> None:
        self.blocks: list[str] = []
        self._containers: list[list[str]] = [self.blocks]
        self._cells: list[list[list[str]]] = []
        self._rows: list[list[str]] = []
        self._paragraphs: list[list[str]] = []
        self._open: list[str] = []
        self._unread = 0
        self._written = 0
        self._alternatives: list[int] = []
        self._note = ""

    def start(self, tag: str, attributes: Mapping[str, str]) -> None:
        self._open.append(tag)
        if self._unread or tag == "moveFrom" or (tag in ("Choice", "Fallback") and self._is_answered()):
            self._unread += 1
        elif tag == "AlternateContent":
            self._alternatives.append(self._written)
        elif tag == "p":
            self._paragraphs.append([])
        elif tag == "tbl":
            self._rows.append([])
        elif tag == "tr":
            self._cells.append([])
        elif tag == "tc":
            self._containers.append([])
        else:
            self._mark(tag, attributes)

    def _mark(self, tag: str, attributes: Mapping[str, str]) -> None:
        """Write what an element stands for that holds no text itself, or begins."""
        if tag in ("footnote", "endnote"):
            self._note = f"[^{attributes.get('id', '')}]: "
        elif tag == "comment":
            self._note = f"Comment by {attributes.get('author', 'somebody')}: "
        elif tag in ("footnoteReference", "endnoteReference"):
            self._write(f"[^{attributes.get('id', '')}]")
        elif tag in _SIGNS and self._open[-2:-1] in (["r"], ["p"]):
            self._write(_SIGNS[tag])

    def end(self, tag: str) -> None:
        self._open.pop()
        if self._unread:
            self._unread -= 1
        elif tag == "AlternateContent":
            self._alternatives.pop()
        elif tag == "p":
            self._end_paragraph("".join(self._paragraphs.pop()))
        elif tag == "tbl":
            self._add("\n".join(self._rows.pop()))
        elif tag == "tr":
            self._end_row(self._cells.pop())
        elif tag == "tc":
            cell = self._containers.pop()
            if self._cells:
                self._cells[-1].append(cell)
            else:
                self._containers[-1] += cell

    def text(self, text: str) -> None:
        if not self._unread and self._open[-1] == "t":
            self._write(text)

    def close(self) -> None:
        """End what the XML has not."""
        while self._open:
            self.end(self._open[-1])

    def _is_answered(self) -> bool:
        """Whether an earlier one of the alternatives around has been read and holds text."""
        return bool(self._alternatives) and self._written > self._alternatives[-1]

    def _write(self, text: str) -> None:
        self._written += 1
        if self._paragraphs:
            self._paragraphs[-1].append(text)
        else:
            self._add(text)

    def _add(self, block: str) -> None:
        if block.strip():
            self._containers[-1].append(block.strip("\n"))

    def _end_paragraph(self, text: str) -> None:
        if text.strip():
            self._add(self._note + text)
            self._note = ""

    def _end_row(self, cells: list[list[str]]) -> None:
        # A row of a single cell is a frame around any text, with paragraphs and tables of its own.
        row = "\n\n".join(cells[0]) if len(cells) == 1 else "\t".join(" ".join(cell) for cell in cells)
        if self._rows:
            self._rows[-1] += [row] if row.strip() else []
        else:
            self._add(row)
