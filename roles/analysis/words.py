"""Words as retrieval compares them: small letters, without those that say nothing, cut down to their stems."""

from __future__ import annotations

import re
from functools import lru_cache

UNSPACED = re.compile(
    r"[\u0e00-\u0fff\u1000-\u109f\u1780-\u17ff\u3005-\u3007\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\uac00-\ud7af"
    r"\U00020000-\U0003ffff]+"
)
"""Letters of scripts without spaces between words, and of Korean, whose words carry their endings."""
_WORD = re.compile(r"[^\W_]+(?:[.,:/-]\d+)*", re.UNICODE)
_SUFFIXES = tuple(
    "ational fulness ations ation ments ment ingly edly ings ing ies ied ers er ed es ly s e y".split()  # noqa: SIM905  # legible
)

STOP_WORDS = frozenset(
    """
    a about above after again all also am an and any are as at be because been before being between both but by can
    could did do does doing during each for from further had has have having he her here hers him his how i if in into
    is it its itself just me more most my no nor not of off on once only or other our out over own please same she
    should so some such tell than that the their theirs them then there these they this those through to too under
    until up us very was we were what when where which while who whom whose why will with would you your
    """.split()  # noqa: SIM905  # a list of strings is harder to read
)
"""English words that tell nothing about what a question asks for."""


def words_of(text: str) -> list[str]:
    """Return the words and numbers of a text in small letters."""
    return list(map(str.lower, _WORD.findall(spaced(text))))


def spaced(text: str) -> str:
    """Return a text in which every two neighbouring letters of a script without spaces are a word.

    Which letters make a word nobody can tell there without a dictionary; pairs find words of any length.
    """
    return text if text.isascii() else UNSPACED.sub(_pairs, text)


def _pairs(match: re.Match[str]) -> str:
    run = match[0]
    return f" {' '.join(run[at : at + 2] for at in range(max(1, len(run) - 1)))} "


@lru_cache(maxsize=2**16)
def stem(word: str) -> str:
    """Cut a word down to what its forms share; cruder than Porter's algorithm, and the same on both sides."""
    if any(letter.isdigit() for letter in word):
        return word
    for suffix in _SUFFIXES:
        if word.endswith(suffix) and len(word) - len(suffix) >= 3:
            return word[: -len(suffix)]
    return word


def stems_of(text: str) -> list[str]:
    """Return the stems of a text's telling words; of all its words where none is telling."""
    words = words_of(text)
    return [stem(word) for word in words if word not in STOP_WORDS] or [stem(word) for word in words]
