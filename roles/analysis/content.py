"""What a reader of one format has got out of a file."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Content:
    """Text and what is to be said of it.

    Attributes:
        text: all characters.
        pages: the offset at which each page starts, in order; empty where the format has no pages.
        unit: what a page is called.
        lost: what could not be read, in words; empty where nothing is missing.
        warnings: sentences about the reading.
    """

    text: str
    pages: tuple[int, ...] = ()
    unit: str = "page"
    lost: str = ""
    warnings: tuple[str, ...] = ()
