"""Takes the text out of HTML of any depth, for which a parser that builds a tree has no room.

It knows paragraphs, cells, and what is not shown; lists and headings are its readers' to guess.
"""

from __future__ import annotations

import re
from html.parser import HTMLParser

_INLINE = frozenset(
    """
    a abbr acronym b bdi bdo big cite code data del dfn em font i img ins kbd label mark nobr q s samp small span
    strike strong sub sup time tt u var wbr
    """.split()  # noqa: SIM905  # a list of strings is harder to read
)
_UNSEEN = frozenset({"head", "noscript", "script", "style", "template", "title"})
_VOID = frozenset(
    {"area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "track", "wbr"}
)
_BLOCKS = frozenset(
    """
    address article aside blockquote center details dialog dir div dl fieldset figcaption figure footer form h1 h2 h3
    h4 h5 h6 header hr main menu nav ol p pre search section table ul
    """.split()  # noqa: SIM905  # a list of strings is harder to read
)
_ROWS = frozenset({"tr", "tbody", "thead", "tfoot"})
_ENDED_BY = {
    "p": _BLOCKS,
    "li": frozenset({"li"}),
    **dict.fromkeys(("dt", "dd"), frozenset({"dt", "dd"})),
    **dict.fromkeys(("td", "th"), _ROWS | {"td", "th"}),
    "tr": _ROWS,
    **dict.fromkeys(("tbody", "thead", "tfoot"), _ROWS - {"tr"}),
    "option": frozenset({"option", "optgroup"}),
    "optgroup": frozenset({"optgroup"}),
    **dict.fromkeys(("rt", "rp"), frozenset({"rt", "rp"})),
}
"""Elements that need no end tag, and the beginnings of others that end them. Source: HTML Standard, 13.1.2.4."""
_HOLDERS = frozenset({"dl", "menu", "ol", "ruby", "select", "table", "ul"})
"""Elements inside which the beginning of another ends nothing outside."""
_UNDISPLAYED = re.compile(r"display\s*:\s*none", re.IGNORECASE)
_BREAK = re.compile(r"\s*\n\s*")


def flat_text(page: str) -> str:
    """Return the visible text of a page of any depth: a paragraph for each stretch between two marks of blocks."""
    reader = _FlatReader()
    reader.feed(page)
    reader.close()
    return _BREAK.sub("\n\n", "".join(reader.pieces)).strip()


class _FlatReader(HTMLParser):
    """Collects what is seen; it does not care how elements lie within each other, except within hidden ones."""

    def __init__(self) -> None:
        super().__init__()
        self.pieces: list[str] = []
        self._hidden: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if self._hidden and tag in _ENDED_BY.get(self._hidden[0], ()) and not _HOLDERS & set(self._hidden[1:]):
            self._hidden.clear()
        if tag not in _VOID and (self._hidden or tag in _UNSEEN or _is_hidden(dict(attrs))):
            self._hidden.append(tag)
        self._divide(tag)

    def handle_endtag(self, tag: str) -> None:
        if self._hidden[-1:] == [tag]:
            self._hidden.pop()
        elif tag in self._hidden:
            del self._hidden[len(self._hidden) - 1 - self._hidden[::-1].index(tag) :]
        elif self._hidden and self._hidden[0] in _ENDED_BY and tag not in _ENDED_BY:  # it ends what is around it
            self._hidden.clear()
        if tag not in ("td", "th"):
            self._divide(tag)

    def handle_data(self, data: str) -> None:
        if not self._hidden:
            self.pieces.append(" ".join(f"|{data}|".split())[1:-1])

    def _divide(self, tag: str) -> None:
        if tag == "body":  # it ends a head that nobody has closed
            self._hidden.clear()
        if tag not in _INLINE and not self._hidden:
            self.pieces.append("\t" if tag in ("td", "th") else "\n")


def _is_hidden(attributes: dict[str, str | None]) -> bool:
    return "hidden" in attributes or _UNDISPLAYED.search(attributes.get("style") or "") is not None
