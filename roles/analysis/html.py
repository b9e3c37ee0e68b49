"""Turns HTML into the text that a reader of the page sees: no markup, no addresses of links, nothing hidden."""

from __future__ import annotations

import re
from html import escape

from roles.analysis.decoding import decode, stated_encoding
from roles.analysis.flat_html import flat_text

TOO_DEEP = "its elements lie too deep within each other for lists and tables to be told; their text alone was taken"

_DEPTH_EXCEEDED = "depth_limit_exceeded"
_SELF_CLOSED = re.compile(
    r"<(title|style|script|textarea|iframe|noscript|noframes|noembed|xmp|template|select)((?:\s[^<>]*)?)/>",
    re.IGNORECASE,
)
_CDATA = re.compile(r"<!\[CDATA\[((?:[^\]<]|\](?!\]>)|<(?!!\[CDATA\[))*+)\]\]>")
_NO_TAG = re.compile(r"<(?=[a-z][^<>\"'=]*(?:<|\Z))", re.IGNORECASE)
_COMPARED = re.compile(r"(?<=\w)<(?=[a-z]\w*((?:\s+[a-z]\w*)+)\s*>)", re.IGNORECASE)
_WITHOUT_VALUE = frozenset(
    """
    allowfullscreen async autofocus autoplay checked compact controls default defer disabled hidden inert ismap
    itemscope loop multiple muted nohref noresize noshade novalidate nowrap open readonly required reversed selected
    """.split()  # noqa: SIM905  # a list of strings is harder to read
)
_NAMED = re.compile(r"<(title|desc)(?:\s[^<>]*)?>[^<]*</\1\s*>", re.IGNORECASE)
_DRAWN = re.compile(r"<(/?)(svg|math|text)(?=[\s/>])", re.IGNORECASE)
_DRAWN_AS = {"svg": "span", "math": "span", "text": "p"}


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
        page = _mended(decoded.text)
        result = library.convert(page, options)
    except library.ConversionError as error:
        raise ValueError(str(error)) from error
    if any(str(warning.kind) == _DEPTH_EXCEEDED for warning in result.warnings):
        return flat_text(page), (*decoded.warnings, TOO_DEEP)
    return result.content or "", decoded.warnings


def _mended(page: str) -> str:
    """Return a page in which what its writer has meant as text is text, though a parser would not take it for any."""
    page = _SELF_CLOSED.sub(r"<\1\2></\1>", page)  # elsewhere than in XHTML, the rest of the page would lie in it
    page = _CDATA.sub(lambda match: escape(match[1], quote=False), page)
    page = _NO_TAG.sub("&lt;", page)
    page = _COMPARED.sub(lambda match: "<" if _WITHOUT_VALUE.issuperset(match[1].lower().split()) else "&lt;", page)
    page = _NAMED.sub("", page)  # nobody sees what a page or a drawing is called
    return _DRAWN.sub(lambda match: f"<{match[1]}{_DRAWN_AS[match[2].lower()]}", page)
