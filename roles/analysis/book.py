"""Reads EPUB books: the chapters in their order, each as the page that it is.

Source: EPUB 3.3, sections 4.2 (the container) and 5 (the package document).
"""

from __future__ import annotations

import posixpath
from typing import TYPE_CHECKING
from urllib.parse import unquote

from roles.analysis.content import Content
from roles.analysis.html import text_of_html
from roles.analysis.packages import Package

if TYPE_CHECKING:
    from collections.abc import Mapping

_CONTAINER = "META-INF/container.xml"
_NAMED = 5


def read_epub(data: bytes) -> Content:
    """Read an EPUB file.

    Raises:
        ImportError: what reads its pages is not installed.
        ValueError: the list of its chapters can't be got at.
    """
    package = Package(data)
    chapters: list[str] = []
    lost: list[str] = []
    warnings: dict[str, None] = {}
    for part in _chapters(package):
        try:
            text, said = text_of_html(package.read(part))
        except ValueError as error:
            lost.append(str(error))
            continue
        warnings |= dict.fromkeys(said)
        chapters += [text.strip()] if text.strip() else []
    more = [f"and {len(lost) - _NAMED} more"] if len(lost) > _NAMED else []
    damage = f"damaged: {', '.join(lost[:_NAMED] + more)}" if lost else ""
    return Content("\n\n".join(chapters), lost=damage, warnings=tuple(warnings))


def _chapters(package: Package) -> list[str]:
    """Return the names of the parts that hold the chapters, in order."""
    listed: list[str] = []
    items: dict[str, str] = {}
    order: list[str] = []

    def start(tag: str, attributes: Mapping[str, str]) -> None:
        if tag == "rootfile":
            listed.append(attributes.get("full-path", ""))
        elif tag == "item":
            items[attributes.get("id", "")] = attributes.get("href", "")
        elif tag == "itemref":
            order.append(attributes.get("idref", ""))

    package.parse(_CONTAINER, start)
    if not listed:
        raise ValueError(f"{_CONTAINER} names no book")
    package.parse(listed[0], start)
    folder = posixpath.dirname(listed[0])
    addresses = (unquote(items.get(name, name).partition("#")[0]) for name in order)
    return [posixpath.normpath(posixpath.join("/", folder, address)).lstrip("/") for address in addresses]
