"""Finds a quotation in a text.

It is found if the text holds it word for word; white space and dashes between words, the shapes of quotes, ligatures,
how accents are written, marks of emphasis and letter case may differ; numbers may not. It may begin and end between any
two words, but never within a word or a number, nor between a number and its sign.
"""

from __future__ import annotations

import re
import unicodedata
from array import array
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain
from threading import Lock
from typing import TYPE_CHECKING

from roles.analysis.words import UNSPACED

if TYPE_CHECKING:
    from collections.abc import Iterator

_SHAPES = str.maketrans(
    {
        **dict.fromkeys("\u2018\u2019\u201a\u201b\u2032\u00b4`", "'"),
        **dict.fromkeys("\u201c\u201d\u201e\u201f\u2033\u00ab\u00bb", '"'),
        **dict.fromkeys("\u2010\u2011\u2012\u2013\u2014\u2015\u2212", "-"),
    }
)
_SHORTEST = 3
_DASHES = r"-\u2010-\u2015\u2212"
_LETTER = r"[^\W\d_]"
_PIECE = re.compile(
    rf"""
      (?P<plain> [!-),.-^a-~]+ (?![\u0300-\u036f]) )         # ASCII that stands for itself
    | (?P<dash>
          (?<={_LETTER}) \s* [{_DASHES}] \s* (?={_LETTER})   # a hyphen, at a line's end or not, or a dash
        | \u00ad )
    | (?P<emphasis> (?<!\d) (?:\*\*|__) | (?:\*\*|__) (?!\d) )
    | (?P<gap> (?<=\d) \s+ (?=\d) )                         # what keeps numbers apart
    | (?P<space> \s+ )
    | (?P<apart> (?<=\d) [\u00b2\u00b3\u00b9\u00bc-\u00be\u2070-\u2089\u2150-\u215e] )  # an exponent, a fraction
    | (?P<character> . [\u0300-\u036f]* )                    # with its accents
    """,
    re.VERBOSE | re.DOTALL,
)
_CUT = "\ufdd0"
"""Marks, between what stands before it and what follows, where a quotation begins or ends."""
_AROUND = 16
"""Characters to either side that are looked at."""
_WORD = r"[^\W_]"
_HYPHEN = r"[-\u2010\u2011]"
_BROKEN = rf"{_HYPHEN}[^\S\n]*\n[^\S\n]*"
_POINT = r"[-.,:/'\u2019\u00b7\u066b\u066c\u2010-\u2013\u2212]"
_GAP = r"[\ \u00a0\u2009\u202f]"
_SIGN = r"[-+\u00b1\u2010-\u2013\u2212]"
_WITHIN = re.compile(
    rf"""
      {_WORD}{_CUT}{_WORD}
    | {_WORD}(?:{_HYPHEN}|{_BROKEN}){_CUT}{_WORD} | {_WORD}{_CUT}(?:{_HYPHEN}|{_BROKEN}){_WORD}
    | n{_CUT}['\u2019]t\b                                                        # can't
    | \d{_POINT}{_CUT}\d | \d{_CUT}{_POINT}\d                                   # decimals, times, dates, fractions
    | \b\d{{1,3}} (?: {_GAP}{_CUT} | {_CUT}{_GAP} ) \d{{3}}\b                    # thousands
    | (?:^|\s)[.,]{_CUT}\d                                                      # .5
    | (?: {_SIGN}{_CUT} | \u2212\s{_CUT} ) [$\u00a3\u00a5\u20ac]?[.,]?\d
    """,
    re.VERBOSE | re.IGNORECASE,
)
_FOLDING = Lock()
"""Lets a long text be folded once, whichever threads ask for it."""


def find(source: str, quotation: str) -> tuple[int, int] | None:
    """Return where a text holds a quotation, or None; of several places the first."""
    wanted = quotation.strip()
    if len(wanted) < _SHORTEST:
        return None
    exact = ((at, at + len(wanted)) for at in _occurrences(source, wanted))
    return next((span for span in chain(exact, _alike(source, wanted)) if _is_whole(source, *span)), None)


def _alike(source: str, wanted: str) -> Iterator[tuple[int, int]]:
    """Yield where a text holds a quotation but for what may differ."""
    claimed = _fold(wanted)
    with _FOLDING:
        folded = _folded(source)
    offsets = folded.offsets
    for at in _occurrences(folded.text, claimed.text):
        first, last, after = offsets[at], offsets[at + len(claimed.text) - 1], at + len(claimed.text)
        if (at and offsets[at - 1] == first) or (after < len(offsets) and offsets[after] == last):
            continue  # part of a ligature
        end = last + 1
        while end < len(source) and unicodedata.combining(source[end]):
            end += 1
        if _has_same_words(claimed, _fold(source[first:end])):
            yield first, end


def _has_same_words(one: _Folded, other: _Folded) -> bool:
    """Whether equal letters are parted into equal words; a hyphen may stand for a space, and for none."""
    differ = set(one.spaces).symmetric_difference(other.spaces).difference(one.dashes, other.dashes)
    return not any(_is_spelt(one.text[at - 1 : at]) and _is_spelt(one.text[at : at + 1]) for at in differ if at)


def _is_spelt(letter: str) -> bool:
    """Whether it is a letter of a script whose words are parted by spaces."""
    return letter.isalpha() and UNSPACED.match(letter) is None


def _occurrences(text: str, part: str) -> Iterator[int]:
    at = text.find(part) if part else -1
    while at >= 0:
        yield at
        at = text.find(part, at + 1)


def _is_whole(source: str, start: int, end: int) -> bool:
    """Whether a span begins and ends between words; in a script without spaces, between any two letters."""
    return not any(
        _WITHIN.search(f"{_bare(source[max(0, at - _AROUND) : at])}{_CUT}{_bare(source[at : at + _AROUND])}")
        for at in (start, end)
    )


def _bare(text: str) -> str:
    """Return a text without emphasis, its marks as letters, and the letters that need no space between them as none."""
    letters = "".join("m" if unicodedata.category(letter)[0] == "M" else letter for letter in UNSPACED.sub("|", text))
    return re.sub(rf"\*\*|__|[\u00ad{_CUT}]", "", letters)


@dataclass(frozen=True, slots=True)
class _Folded:
    """A text without what may differ.

    Attributes:
        text: what is left.
        offsets: for each of its characters the offset in the whole text that it stands for.
        spaces: before which of its characters there was white space.
        dashes: before which of them there was a dash or a hyphen between letters.
    """

    text: str
    offsets: array[int]
    spaces: array[int]
    dashes: array[int]


@lru_cache(maxsize=8)  # few, as each takes several times the memory of its text
def _folded(source: str) -> _Folded:
    return _fold(source)


def _fold(text: str) -> _Folded:
    pieces: list[str] = []
    offsets = array("I")
    spaces, dashes = array("I"), array("I")
    for match in _PIECE.finditer(text):
        piece, start = match[0], match.start()
        match match.lastgroup:
            case "plain":
                pieces.append(piece.lower())
                offsets.extend(range(start, match.end()))
            case "gap":
                pieces.append(" ")
                offsets.append(start)
            case "apart":
                pieces.append(piece)
                offsets.append(start)
            case "character":
                letters = "".join(unicodedata.normalize("NFKC", piece).translate(_SHAPES).casefold().split())
                pieces.append(letters)
                offsets.extend([start] * len(letters))
            case "space":
                spaces.append(len(offsets))
            case "dash":
                dashes.append(len(offsets))
            case _:
                pass
    return _Folded("".join(pieces), offsets, spaces, dashes)
