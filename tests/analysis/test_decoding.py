"""A text is read in the encoding that it states, where it can be that one."""

from __future__ import annotations

import pytest

from roles.analysis.decoding import decode, stated_encoding
from roles.analysis.extract import extract

POLISH = "Zażółć gęślą jaźń"
RUSSIAN = "Компрессор остановился"
GREEK = "συμπιεστής σταμάτησε"
JAPANESE = "圧縮機が停止した。"
STATED = [
    ("iso-8859-2", POLISH),
    ("windows-1250", POLISH),
    ("iso-8859-5", RUSSIAN),
    ("koi8-r", RUSSIAN),
    ("iso-8859-7", GREEK),
    ("iso-8859-15", "5 € œuvre"),
    ("euc-jp", JAPANESE),
    ("iso-2022-jp", JAPANESE),
    ("shift_jis", JAPANESE),
]


@pytest.mark.parametrize(("encoding", "text"), STATED)
@pytest.mark.parametrize(
    ("start", "suffix"),
    [
        ('<html><head><meta charset="{}"></head><body>', ".html"),
        ("<html><head><meta http-equiv=content-type content='text/html; charset={}'></head><body>", ".htm"),
        ('<?xml version="1.0" encoding="{}"?><html><body>', ".xhtml"),
        ("<?xml version='1.0' encoding='{}'?><text>", ".xml"),
    ],
    ids=["charset", "http-equiv", "XHTML", "XML"],
)
def test_the_encoding_that_a_page_states_is_used(start: str, suffix: str, encoding: str, text: str) -> None:
    read = extract(f"{start.format(encoding)}{text}".encode(encoding), suffix)
    assert (read.status, read.warnings) == ("read", ())
    assert text in read.text


@pytest.mark.parametrize(
    ("data", "stated", "text"),
    [
        (POLISH.encode(), "iso-8859-1", POLISH),
        (f"\ufeff{POLISH}".encode("utf-16-le"), "iso-8859-1", POLISH),
        (POLISH.encode("utf-16-le"), "iso-8859-1", POLISH),
        ("naïve € 5".encode("cp1252"), "iso-8859-1", "naïve € 5"),
        ("①".encode("cp932"), "x-sjis", "①"),
        (RUSSIAN.encode("cp1251"), "utf-16", RUSSIAN),
        (RUSSIAN.encode("cp1251"), "utf-8", RUSSIAN),
        (RUSSIAN.encode("cp1251"), "klingon", RUSSIAN),
        (b"68656c6c6f", "hex", "68656c6c6f"),
    ],
    ids=[
        "UTF-8",
        "a mark",
        "UTF-16",
        "the wider one",
        "an alias",
        "what it can't be",
        "what it is not",
        "none",
        "a codec",
    ],
)
def test_what_is_stated_is_not_always_believed(data: bytes, stated: str, text: str) -> None:
    assert decode(data, stated).text == text


@pytest.mark.parametrize(
    ("data", "text"),
    [
        ("naïve €5".encode("utf-16-le") + b"\n", "naïve €5\ufffd"),
        (POLISH.encode("utf-16-be")[:-1], f"{POLISH[:-1]}\ufffd"),
        (POLISH.encode("utf-32-le"), POLISH),
        (JAPANESE.encode("utf-32-be"), JAPANESE),
        (POLISH.encode("utf-32-le") + b"\n", f"{POLISH}\ufffd"),
    ],
    ids=["UTF-16 and a byte", "UTF-16 without its last byte", "UTF-32", "UTF-32, big end first", "UTF-32 and a byte"],
)
def test_wide_characters_are_known_without_a_mark(data: bytes, text: str) -> None:
    read = extract(data, ".txt")
    assert (read.status, read.text) == ("read", text)
    assert "the encoding is not stated" in read.warnings[0]


@pytest.mark.parametrize("data", [bytes(4000), b"\0\0\0\1" * 500, bytes(range(256)) * 20, b"\1\0\2\0\0\0" * 100])
def test_what_is_no_text_is_taken_for_none(data: bytes) -> None:
    assert extract(data, ".bin").status == "failed"


def test_what_states_nothing_has_no_stated_encoding() -> None:
    assert stated_encoding(b"<p>charset=latin1") is None
    assert decode(b"plain").warnings == ()
