"""Turns HTML into the text that a reader of the page sees: no markup, no addresses of links, nothing hidden."""

from __future__ import annotations

import re
from html.parser import HTMLParser

from roles.analysis.decoding import decode, stated_encoding

TOO_DEEP = "its elements lie too deep within each other for lists and tables to be told; their text alone was taken"

_DEPTH_EXCEEDED = "depth_limit_exceeded"
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
_UNDISPLAYED = re.compile(r"display\s*:\s*none", re.IGNORECASE)
_BREAK = re.compile(r"\s*\n\s*")


def text_of_html(data: bytes, encoding: str | None = None) -> tuple[str, tuple[str, ...]]:
    """Return the visible text of a page, with warnings about its encoding and its form.

    Args:
        data: the whole page.
        encoding: as it was stated outside the page, which counts more than what the page says.

    Raises:
        ImportError: the library is not installed.
        ValueError: the library could not make anything of it.
    """
    import html_to_markdown as library  # noqa: PLC0415  # part of an extra, and needed in a reading process only

    decoded = decode(data, encoding or stated_encoding(data))
    options = library.ConversionOptions(
        output_format="plain",
        extract_metadata=False,
        skip_images=True,
        # It would leave out what it takes for navigation, and with it headings and forms that belong to the text.
        preprocessing=library.PreprocessingOptions(enabled=False),
    )
    try:
        result = library.convert(decoded.text, options)
    except library.ConversionError as error:
        raise ValueError(str(error)) from error
    if any(str(warning.kind) == _DEPTH_EXCEEDED for warning in result.warnings):
        return flat_text(decoded.text), (*decoded.warnings, TOO_DEEP)
    return result.content or "", decoded.warnings


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
        self._hiding = ""
        self._depth = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if self._hiding:
            self._depth += tag == self._hiding
        elif tag not in _VOID and (tag in _UNSEEN or _is_hidden(dict(attrs))):
            self._hiding, self._depth = tag, 1
        self._divide(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag == self._hiding:
            self._depth -= 1
            self._hiding = self._hiding if self._depth else ""
        if tag not in ("td", "th"):
            self._divide(tag)

    def handle_data(self, data: str) -> None:
        if not self._hiding:
            self.pieces.append(" ".join(f"|{data}|".split())[1:-1])

    def _divide(self, tag: str) -> None:
        if tag == "body":  # it ends a head that nobody has closed
            self._hiding = ""
        if tag not in _INLINE and not self._hiding:
            self.pieces.append("\t" if tag in ("td", "th") else "\n")


def _is_hidden(attributes: dict[str, str | None]) -> bool:
    return "hidden" in attributes or _UNDISPLAYED.search(attributes.get("style") or "") is not None
