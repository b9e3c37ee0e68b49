"""Dates and times as spreadsheets keep them: numbers of days, which only a format makes a date.

Source: ECMA-376, part 1, 18.8.30 (numFmts) and 18.17.4 (dates and times).
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

_BUILT_IN = frozenset({*range(14, 23), *range(27, 37), *range(45, 48), *range(50, 59)})
_LITERAL = re.compile(r'"[^"]*"|\\.|[_*].|\[(?!(?:h+|m+|s+)\])[^\]]*\]', re.IGNORECASE)
_PART = re.compile(r"[dmyhs]", re.IGNORECASE)
_DAY_BEFORE_1900 = datetime(1899, 12, 30, tzinfo=UTC)
_DAY_1904 = datetime(1904, 1, 1, tzinfo=UTC)
_LEAP = 60
"""The day 29 February 1900, which there was not, but which every spreadsheet counts."""


def is_date(number: int, code: str | None) -> bool:
    """Whether a format shows a number as a date or time.

    Args:
        number: of the format.
        code: what the workbook says of it; None where it is one of those that every program knows.
    """
    if code is None:
        return number in _BUILT_IN
    return code.lower() != "general" and _PART.search(_LITERAL.sub("", code.partition(";")[0])) is not None


def shown(days: float, *, since_1904: bool) -> str:
    """Return a date, a time or both, whatever the number has; a number that is no date stays one."""
    if days < 0:
        return f"{days:g}"
    if not since_1904 and days < _LEAP and days >= 1:
        days += 1
    seconds = round((days % 1) * 86400)
    try:
        moment = (_DAY_1904 if since_1904 else _DAY_BEFORE_1900) + timedelta(days=int(days), seconds=seconds)
    except OverflowError:
        return f"{days:g}"
    if days < 1:
        return f"{moment:%H:%M:%S}"
    return f"{moment:%Y-%m-%d %H:%M:%S}" if seconds else f"{moment:%Y-%m-%d}"
