"""Divides a text into pages, paragraphs and passages, and names each place so that it can be found again.

All of it follows from the text and its page offsets alone: the same document has the same places in every run.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Iterator

Layout = Literal["prose", "lines", "printed"]
Span = tuple[int, int]

PASSAGE = 900
_SMALL = 350
_BLANK = re.compile(r"(?:\r\n|[\r\n])[^\S\r\n]*(?:(?:\r\n|[\r\n])[^\S\r\n]*)+")
_LINE = re.compile(r"[^\r\n]+")
_SENTENCE_END = re.compile(r"[.!?…][\"'”’»)\]]*(?=\s)|[。！？]|(?:\r?\n)")
_STARTS_ANEW = re.compile(r"(?:\d+(?:\.\d+)*\.?|[A-Z]\.|[•●▪*–—-]|\([a-z0-9]{1,3}\))\s+\S")
_LABEL = re.compile(r"(?:(?:page|slide|sheet) (\d+))?(?:,? ?(?:paragraph|line) (\d+))?", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Place:
    """A paragraph (or line) of a document.

    Attributes:
        start: offset of its first character.
        end: offset after its last one.
        label: its name, such as `page 3, paragraph 2`.
    """

    start: int
    end: int
    label: str


class Places:
    """The places of one text.

    Args:
        text: the whole text.
        pages: the offset at which each page starts, in order; empty for a text without pages.
        unit: what a page is called.
        layout: `prose` has blank lines between paragraphs; in `lines` each line stands for itself; in `printed` text
            the lines are those of a printed page, and paragraphs have to be told by their shape.
    """

    def __init__(self, text: str, pages: tuple[int, ...] = (), unit: str = "page", layout: Layout = "prose") -> None:
        self._text = text
        self._pages = pages
        self._unit = unit
        self._layout = layout

    @cached_property
    def spans(self) -> tuple[Span, ...]:
        """The span of every paragraph, in order; between them is nothing but white space."""
        return tuple(span for page in self._page_spans() for span in self._paragraphs(*page))

    def at(self, offset: int) -> Place:
        """The paragraph that holds the character at an offset, or the last one before it."""
        spans = self.spans
        if not spans:
            return Place(0, len(self._text), "paragraph 1")
        index = max(0, bisect_right(self._starts, offset) - 1)
        return Place(*spans[index], self._label(index))

    def named(self, label: str) -> Span | None:
        """The span of a place by its label; of a whole page where the label names no paragraph; None if unknown."""
        match = _LABEL.fullmatch(label.strip())
        if match is None or match.lastindex is None:
            return None
        page, number = (int(group) if group else 0 for group in match.groups())
        bounds = self._page_bounds(page)
        if bounds is None or (number and self._pages and not page):
            return None
        first, last = bounds
        if not number:
            return (self.spans[first][0], self.spans[last - 1][1]) if first < last else None
        return self.spans[first + number - 1] if first + number <= last else None

    def passages(self) -> Iterator[Span]:
        """Spans of some hundred characters that hold all the text once, none longer than `PASSAGE`.

        Short paragraphs, such as headings, are joined with what follows them on the same page; long ones are cut at
        the end of a sentence or, where there is none, between words or anywhere.
        """
        open_start = open_end = -1
        for index, (start, end) in enumerate(self.spans):
            if open_start >= 0:
                joins = end - open_start <= PASSAGE and open_end - open_start < _SMALL
                if joins and self._page_of(index) == self._page_of(index - 1):
                    open_end = end
                    continue
                yield open_start, open_end
                open_start = -1
            if end - start > PASSAGE:
                yield from cut(self._text, start, end, PASSAGE)
            else:
                open_start, open_end = start, end
        if open_start >= 0:
            yield open_start, open_end

    @cached_property
    def _starts(self) -> list[int]:
        return [start for start, _ in self.spans]

    @cached_property
    def _first_of_page(self) -> list[int]:
        """For each page the index of its first paragraph."""
        return [bisect_right(self._starts, page - 1) for page in self._pages]

    def _page_of(self, index: int) -> int:
        return bisect_right(self._pages, self.spans[index][0])

    def _page_bounds(self, page: int) -> Span | None:
        if not page:
            return 0, len(self.spans)
        if page > len(self._pages):
            return None
        following = self._first_of_page[page] if page < len(self._pages) else len(self.spans)
        return self._first_of_page[page - 1], following

    def _label(self, index: int) -> str:
        kind = "line" if self._layout == "lines" else "paragraph"
        page = self._page_of(index)
        if not page:
            return f"{kind} {index + 1}"
        return f"{self._unit} {page}, {kind} {index - self._first_of_page[page - 1] + 1}"

    def _page_spans(self) -> Iterator[Span]:
        bounds = (0, *(page for page in self._pages if page), len(self._text))
        yield from pairwise(bounds)

    def _paragraphs(self, start: int, end: int) -> Iterator[Span]:
        if self._layout == "lines":
            yield from _lines(self._text, start, end)
            return
        position = start
        for blank in _BLANK.finditer(self._text, start, end):
            yield from self._block(position, blank.start())
            position = blank.end()
        yield from self._block(position, end)

    def _block(self, start: int, end: int) -> Iterator[Span]:
        if self._layout == "printed":
            yield from _printed_paragraphs(self._text, start, end)
        else:
            yield from _trimmed(self._text, start, end)


def cut(text: str, start: int, end: int, size: int) -> Iterator[Span]:
    """Cut a span into pieces of at most `size` characters, at the best point in the second half of each, or the first.

    No word is cut but one that is longer than a piece.
    """
    while end - start > size:
        middle, limit = start + size // 2, start + size
        at = _best_cut(text, middle, limit)
        if at <= start:
            at = _best_cut(text, start + 1, middle)
        if at <= start:
            at = limit
        yield from _trimmed(text, start, at)
        start = at
    yield from _trimmed(text, start, end)


def _best_cut(text: str, first: int, last: int) -> int:
    """Return the last end of a sentence within a stretch, or the last space; -1 where there is neither."""
    ended = max((match.end() for match in _SENTENCE_END.finditer(text, first, last)), default=-1)
    return ended if ended >= 0 else max(text.rfind(" ", first, last), text.rfind("\t", first, last))


def sentences(text: str, start: int, end: int) -> Iterator[Span]:
    """The sentences of a span; a line break ends one only where the line is a heading or an item of a list."""
    position = start
    for match in re.finditer(
        r"[.!?…][\"'”’»)\]]*(?=\s+[^a-z\s])|[。！？]|\n(?=\s*(?:\n|[•●▪*#|-]\s?))", text[start:end]
    ):
        at = start + match.end()
        if at - position >= 25 or "\n" in match.group():
            yield from _trimmed(text, position, at)
            position = at
    yield from _trimmed(text, position, end)


def _lines(text: str, start: int, end: int) -> Iterator[Span]:
    for line in _LINE.finditer(text, start, end):
        yield from _trimmed(text, *line.span())


def _trimmed(text: str, start: int, end: int) -> Iterator[Span]:
    while start < end and text[start].isspace():
        start += 1
    while end > start and text[end - 1].isspace():
        end -= 1
    if start < end:
        yield start, end


def _printed_paragraphs(text: str, start: int, end: int) -> Iterator[Span]:
    lines = list(_lines(text, start, end))
    lengths = sorted(stop - begin for begin, stop in lines)
    width = lengths[len(lengths) * 9 // 10] if lengths else 0  # a few lines reach beyond the column
    opened = start
    for (begin, stop), (following, _) in pairwise(lines):
        short = stop - begin < 0.75 * width
        ended = text[stop - 1] in '.!?:;”"'
        next_is_new = text[following].isupper() or text[following].isdigit()
        if (short and (ended or next_is_new)) or _STARTS_ANEW.match(text, following):
            yield from _trimmed(text, opened, stop)
            opened = following
    yield from _trimmed(text, opened, end)
