"""Turns the bytes of a text file into characters, the same way on every machine, whatever its locale.

It owns the choice of the encoding and the replacing of characters no event may hold; which files are text at all is
also decided here, which other formats there are is not.
"""

from __future__ import annotations

import codecs
import re
from contextlib import suppress
from dataclasses import dataclass

REPLACEMENT = "\N{REPLACEMENT CHARACTER}"

_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_LEGACY = ("cp1252", "cp932", "euc_jp", "gb18030", "big5", "euc_kr", "cp1251", "koi8_r")
_STATED = re.compile(
    rb"""\s*<\?xml[^>]{1,200}?\sencoding\s*=\s*["']([\w.:-]+)|<meta\s[^>]{0,200}?\bcharset\s*=\s*["']?\s*([\w.:-]+)""",
    re.IGNORECASE,
)
_BEGINNING = 4096
_TEXT_ENCODINGS = re.compile(
    r"utf-[78]|iso8859-\d+|iso2022_\w+|cp\d+|koi8-\w|mac-\w+|euc_\w+|gb\w+|hz|big5\w*|shift_\w+"
)
_WIDER = {
    "ascii": "cp1252",
    "big5": "big5hkscs",
    "euc_kr": "cp949",
    "gb2312": "gb18030",
    "gbk": "gb18030",
    "iso8859-1": "cp1252",
    "iso8859-9": "cp1254",
    "iso8859-11": "cp874",
    "shift_jis": "cp932",
    "tis-620": "cp874",
    "iso-8859-8-i": "iso8859-8",
    "windows-874": "cp874",
    "x-mac-cyrillic": "mac-cyrillic",
    "x-sjis": "cp932",
}
"""Encodings that are meant where a narrower one is stated, or none by a name that Python knows.

Source: the Encoding Standard of the WHATWG.
"""
_CYRILLIC_WORD = re.compile(r"[\u0400-\u04ff]{2}")
_UNUSABLE = re.compile(r"[\x00\ud800-\udfff]")
_NO_TEXT = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
_CONTROLS = bytes(set(range(32)) - set(b"\t\n\v\f\r\b\x1b")) + b"\x7f"
_WIDE = (
    ("utf-32-le", 4, (2, 3), 0),
    ("utf-32-be", 4, (0, 1), 3),
    ("utf-16-le", 2, (1,), 0),
    ("utf-16-be", 2, (0,), 1),
)
"""Encodings of wide characters: how many bytes each has, which of them are mostly 0, and which one hardly ever is."""
_SAMPLE = 65_536


@dataclass(frozen=True, slots=True)
class DecodedText:
    """A file's characters and what had to be guessed or replaced to get at them.

    Attributes:
        text: the characters after the byte order mark, line ends untouched.
        encoding: Python's name of the encoding used.
        warnings: one sentence for each thing a reader should know; the caller adds the file's name.
    """

    text: str
    encoding: str
    warnings: tuple[str, ...]


def decode(data: bytes, stated: str | None = None) -> DecodedText:
    """Decode by byte order mark, else as is stated, else as UTF-8, else as the encoding that fits best; it never fails.

    What can't be decoded becomes U+FFFD, and so does, one for one, each NUL and each lone surrogate.

    Args:
        data: all bytes.
        stated: the name of the encoding, as it came with them.
    """
    warnings: list[str] = []
    encoding, marked = _marked(data)
    if not marked:
        meant = _meant(stated or "")
        encoding = meant if meant is not None and _may_be(data, meant) else _found(data)
        if encoding not in ("utf-8", meant):
            warnings.append(f"the encoding is not stated in the file; it was read as {encoding}")
    text = data[marked:].decode(encoding, "replace")
    own = REPLACEMENT.encode(encoding, "ignore")  # only Unicode encodings have the character themselves
    replaced = text.count(REPLACEMENT) - (data[marked:].count(own) if own else 0)
    if replaced > 0:
        warnings.append(f"bytes that are not {encoding} were replaced by U+FFFD in {replaced} places")
    text, unusable = replace_unusable(text)
    if unusable:
        warnings.append(f"{unusable} NUL characters or lone surrogates were replaced by U+FFFD")
    return DecodedText(text, encoding, tuple(warnings))


def stated_encoding(data: bytes) -> str | None:
    """Return the encoding that a page or an XML document states of itself."""
    found = _STATED.match(data[:_BEGINNING]) or _STATED.search(data[:_BEGINNING])
    return (found[1] or found[2]).decode("ascii", "replace") if found else None


def replace_unusable(text: str) -> tuple[str, int]:
    """Replace each NUL and each lone surrogate by U+FFFD, one for one; return the text and how many there were.

    It is what the framework does with text that comes in; a reading process does without the framework.
    """
    return _UNUSABLE.subn(REPLACEMENT, text)


def replace_controls(text: str) -> tuple[str, int]:
    """Replace also what controls a terminal or the direction of writing; return the text and how many there were.

    Tabs and line ends stay.
    """
    return _NO_TEXT.subn(REPLACEMENT, text)


def is_text(data: bytes) -> bool:
    """Whether the bytes look like a text in some encoding, by their byte order mark and share of control bytes."""
    sample = data[:_SAMPLE]
    if _marked(sample)[1] or _wide(sample):
        return True
    controls = len(sample) - len(sample.translate(None, _CONTROLS))
    allowed = 0.3 if _is_utf8(sample) else 0.02
    return controls <= allowed * len(sample)


def _marked(data: bytes) -> tuple[str, int]:
    for mark, encoding in _MARKS:
        if data.startswith(mark):
            return encoding, len(mark)
    return "utf-8", 0


def _meant(stated: str) -> str | None:
    """Return Python's name of a stated encoding; None where it is none that a text with ASCII in it can have."""
    name = stated.strip().lower()
    with suppress(LookupError, ValueError):
        name = codecs.lookup(name).name
    name = _WIDER.get(name, name)
    return name if _TEXT_ENCODINGS.fullmatch(name) else None


def _may_be(data: bytes, encoding: str) -> bool:
    """Whether a stated encoding is to be believed: not where the bytes are UTF-8, or can't be what is stated."""
    if _wide(data[:_SAMPLE]):
        return False
    return encoding != "utf-8" and (data.isascii() or not _decodes(data, "utf-8"))


def _found(data: bytes) -> str:
    if wide := _wide(data[:_SAMPLE]):
        return wide
    text = data.decode("utf-8", "replace")
    invalid = text.count(REPLACEMENT)
    if not invalid or _multibyte(text) >= invalid:
        return "utf-8"
    return _guess(data)


def _multibyte(text: str) -> int:
    """How many characters beyond ASCII were read as proper UTF-8, which in another encoding hardly ever happens."""
    return sum(character > "\x7f" and character != REPLACEMENT for character in text)


def _guess(data: bytes) -> str:
    guessed = _likeliest(_telling_lines(data))
    for encoding in (guessed, "cp1252"):
        if encoding is not None and _decodes(data, encoding):
            return encoding
    return guessed or "utf-8"


def _likeliest(sample: bytes) -> str | None:
    try:
        from charset_normalizer import from_bytes  # noqa: PLC0415  # part of an extra, and slow to import
    except ImportError:
        return None
    best = from_bytes(sample, cp_isolation=list(_LEGACY), preemptive_behaviour=False).best()
    if best is None:
        return None
    # Typographic quotes alone have the same bytes in both: without a word in Cyrillic letters it is Western.
    if best.encoding in ("cp1251", "koi8_r") and not _CYRILLIC_WORD.search(str(best)):
        return "cp1252"
    return best.encoding


def _telling_lines(data: bytes) -> bytes:
    """The lines that hold bytes beyond ASCII, up to a limit: a large file is judged by what can tell it apart."""
    lines: list[bytes] = []
    size = 0
    for line in data.splitlines(keepends=True):
        if not line.isascii():
            lines.append(line[:_SAMPLE])
            size += len(lines[-1])
        if size >= _SAMPLE:
            break
    return b"".join(lines)


def _wide(sample: bytes) -> str | None:
    """UTF-16 or UTF-32 without a byte order mark: nearly every NUL is at the same side of each character's bytes."""
    for encoding, width, empty, full in _WIDE:
        units = len(sample) // width
        zeros = [sample[place : units * width : width].count(0) for place in range(width)]
        most = 0.4 if width == 2 else 0.95  # half of UTF-16 may be beyond Latin letters
        if units > 1 and zeros[full] < 0.05 * units and all(zeros[place] > most * units for place in empty):
            return encoding if _is_written(sample.decode(encoding, "replace")) else None
    return None


def _is_written(text: str) -> bool:
    """Whether nearly all characters are of those that texts are made of."""
    odd = sum(not (character.isprintable() or character.isspace()) for character in text)
    return odd <= 0.05 * len(text)


def _is_utf8(sample: bytes) -> bool:
    try:
        codecs.getincrementaldecoder("utf-8")().decode(sample)
    except UnicodeDecodeError:
        return False
    return True


def _decodes(data: bytes, encoding: str) -> bool:
    try:
        data.decode(encoding)
    except UnicodeDecodeError:
        return False
    return True
