"""OpenDocument sheets whose cells lie too far apart for the extraction library, which leaves them out in silence.

It moves their rows together, so that the library takes them, and finds where each sheet begins in its text.
"""

from __future__ import annotations

import io
import re
import zipfile
from bisect import bisect_left
from dataclasses import dataclass
from typing import TYPE_CHECKING

from roles.analysis.archives import ZIP_ERRORS

if TYPE_CHECKING:
    from collections.abc import Iterable

_TABLE = re.compile(rb"<table:table\s.*?</table:table>", re.DOTALL)
_PARAGRAPH = re.compile(rb"<text:p(?:\s[^>]*)?(?<!/)>")
_HEADING = re.compile(r"^## ", re.MULTILINE)
_REPEATED = re.compile(rb"""\stable:number-rows-repeated=(["'])\d{3,}\1""")


@dataclass(frozen=True, slots=True)
class Compacted:
    """A spreadsheet whose rows follow each other.

    Attributes:
        data: the whole file.
        filled: how many of its sheets hold a value.
    """

    data: bytes
    filled: int


def compact(data: bytes) -> Compacted:
    """Return an ODS file with its rows moved together; each cell keeps its column and its value.

    Raises:
        ValueError: the file is no archive that can be read.
    """
    written = io.BytesIO()
    filled = 0
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive, zipfile.ZipFile(written, "w") as compacted:
            for name in dict.fromkeys(archive.namelist()):
                content = archive.read(name)
                if name == "content.xml":
                    filled += sum(_PARAGRAPH.search(table[0]) is not None for table in _TABLE.finditer(content))
                    content = _REPEATED.sub(b"", content)
                compacted.writestr(name, content)
    except ZIP_ERRORS as error:
        raise ValueError(str(error)) from error
    return Compacted(written.getvalue(), filled)


def sheet_starts(text: str, shown: Iterable[int], total: int) -> tuple[int, ...]:
    """Return where each sheet begins in the library's text; empty where that can't be told.

    Args:
        text: with a heading for each sheet that is shown.
        shown: the numbers of these sheets, from 1, in order.
        total: how many sheets there are; one that is not shown begins where the next one does.
    """
    headings = [match.start() for match in _HEADING.finditer(text)]
    numbers = sorted(set(shown))
    if not headings or len(headings) != len(numbers) or numbers[-1] > total:
        return ()
    return tuple([*headings, len(text)][bisect_left(numbers, number)] for number in range(1, total + 1))
