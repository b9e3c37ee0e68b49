"""A quotation counts only where the source holds it, and is reported in the source's own words."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roles.analysis.documents import Document
from roles.analysis.matching import find
from roles.analysis.store import DocumentStore
from roles.analysis.verification import verify

if TYPE_CHECKING:
    from collections.abc import Iterator

SOURCE = "Head\n\nThe “northern” basin – built in 1931 – was\nrefil-\nled. The \ufb01rst pump failed.\n"


@pytest.fixture(scope="module")
def store() -> Iterator[DocumentStore]:
    documents = (Document("d1", "a.txt", "read", text=SOURCE), Document("d2", "b.pdf", "encrypted", "needs a password"))
    with DocumentStore(documents) as opened:
        yield opened


@pytest.mark.parametrize(
    ("claimed", "held"),
    [
        ("built in 1931", "built in 1931"),
        ('The "northern" basin - built', "The “northern” basin – built"),
        ("was refilled.", "was\nrefil-\nled."),
        ("The first pump failed", "The \ufb01rst pump failed"),
        ("the FIRST pump", "The \ufb01rst pump"),
    ],
    ids=["exact", "quotes and dashes", "hyphenated", "ligature", "case"],
)
def test_what_the_source_holds_is_verified(store: DocumentStore, claimed: str, held: str) -> None:
    quote = verify(store, "d1", claimed)
    assert (quote.verified, quote.text, SOURCE[quote.start : quote.end]) == (True, held, held)
    assert quote.place == "paragraph 2"


@pytest.mark.parametrize(
    ("document", "claimed", "reason"),
    [
        ("d1", "The southern basin", "does not hold these words"),
        ("d7", "built in 1931", "there is no such document"),
        ("d2", "built in 1931", "could not be read: encrypted"),
        ("d1", "  ", "does not hold these words"),
    ],
    ids=["invented", "unknown document", "unread document", "empty"],
)
def test_what_it_does_not_hold_is_refused(store: DocumentStore, document: str, claimed: str, reason: str) -> None:
    quote = verify(store, document, claimed)
    assert (quote.verified, quote.place, quote.start, quote.text) == (False, "", -1, claimed)
    assert reason in quote.reason


@pytest.mark.parametrize(
    ("source", "claimed", "held"),
    [
        ("im Cafe\u0301 gro\u0308\u00dfer als", "Caf\u00e9 gr\u00f6\u00dfer", "Cafe\u0301 gro\u0308\u00dfer"),
        ("im Cafe\u0301 dort", "im Caf\u00e9", "im Cafe\u0301"),
        ("the Caf\u00e9 was", "the Cafe\u0301", "the Caf\u00e9"),
        ("rules for manip-ulation of data", "manipulation of data", "manip-ulation of data"),
        ("a well known\u2014and feared\u2014pump", "well-known - and feared", "well known\u2014and feared"),
        ("the **main** valve", "the main valve", "the **main** valve"),
        ("at 10\n 20 bar", "at 10 20 bar", "at 10\n 20 bar"),
        ("the main valve", "** the main **", "the main"),
        ("at 10bar,then", "at 10 bar, then", "at 10bar,then"),
        ("\u5ef6\u8fdf\n\u4e86", "\u5ef6\u8fdf\u4e86", "\u5ef6\u8fdf\n\u4e86"),
    ],
    ids=[
        "accents apart",
        "accent at the end",
        "accents joined",
        "hyphen inside a line",
        "dashes",
        "emphasis",
        "numbers apart",
        "bare",
        "unit",
        "Han",
    ],
)
def test_what_only_looks_different_is_found(source: str, claimed: str, held: str) -> None:
    span = find(source, claimed)
    assert span is not None
    assert source[slice(*span)] == held


@pytest.mark.parametrize(
    ("source", "claimed"),
    [
        ("the pressure was 10 20 bar", "the pressure was 1020 bar"),
        ("cells 2.5\n9 bar", "cells 2.59 bar"),
        ("from 10-20 bar", "from 1020 bar"),
        ("it is 2**3 bar", "it is 23 bar"),
        ("it is 10\u00b2 bar", "it is 102 bar"),
        ("it is 2\u00bd bar", "it is 21/2 bar"),
        ("it is 2\u00bd bar", "it is 21\u20442 bar"),
    ],
    ids=["space", "line break", "dash", "power", "exponent", "fraction", "fraction slash"],
)
def test_numbers_are_not_joined(source: str, claimed: str) -> None:
    assert find(source, claimed) is None


@pytest.mark.parametrize(
    ("source", "claimed"),
    [
        ("the delay was 165 minutes", "65 minutes"),
        ("the delay was 165 minutes", "delay was 16"),
        ("at 12.5 bar", "2.5 bar"),
        ("at 12.5 bar", "5 bar"),
        ("at 12.5 bar", "at 12"),
        ("at .5 bar", "5 bar"),
        ("at 1,200 bar", "200 bar"),
        ("at 1 200 bar", "200 bar"),
        ("at 1\u202f200 bar", "at 1"),
        ("it was 01:31 then", "31 then"),
        ("from 10-20 bar", "20 bar"),
        ("on 2024-05-12", "on 2024"),
        ("at 10\u00b2 bar", "at 10"),
        ("at 2\u00bd bar", "2 bar"),
        ("at -12 °C", "12 °C"),
        ("at \u221212 °C", "12 °C"),
        ("at \u2212 12 °C", "12 °C"),
        ("at \u201312 °C", "12 °C"),
        ("at -**12** °C", "12 °C"),
        ("at ±0.5 °C", "0.5 °C"),
        ("lost -$12", "$12"),
        ("they were unable to stop it", "able to stop it"),
        ("they were **un**able to stop it", "able to stop it"),
        ("they were Unable to stop it", "able to stop it"),
        ("it was not able", "it was no"),
        ("it is non-compliant now", "compliant now"),
        ("it is non-compliant now", "it is non"),
        ("was refil-\nled again", "led again"),
        ("was un\u00adable to", "able to"),
        ("was in\ufb01nite here", "nite here"),
        ("was in\ufb01nite here", "inite here"),
        ("the o\ufb03 is", "the of"),
        ("they can\u2019t stop", "they can"),
        ("im Cafe\u0301 dort", "im Cafe"),
        ("of the compressor K2 alone", "the compressor K"),
        ("\u0915\u093f\u0924\u093e\u092c here", "\u0924\u093e\u092c here"),
    ],
)
def test_a_word_or_a_number_is_not_cut(source: str, claimed: str) -> None:
    assert find(source, claimed) is None


@pytest.mark.parametrize(
    ("source", "claimed"),
    [
        ("it was notable", "no table"),
        ("it had no table", "had notable"),
        ("it was **un**able", "un able"),
        ("im Cafe\u0301 dort", "Caf\u00e9dort"),
    ],
    ids=["space added", "space lost", "emphasis", "accent"],
)
def test_words_are_neither_joined_nor_parted(source: str, claimed: str) -> None:
    assert find(source, claimed) is None


@pytest.mark.parametrize(
    ("source", "claimed", "at"),
    [
        ("165 minutes, not 65 minutes", "65 minutes", 17),
        ("unable or able to stop", "ABLE", 10),
        ("(12 bar)", "12 bar", 1),
        ("it was\u2014and is\u2014so", "and is", 7),
        ("- 12 bar", "12 bar", 2),
        ("notes-\n\nthe valve", "the valve", 8),
        ("it is 12°C.", "is 12", 3),
        ("in 2024. Then", "in 2024", 0),
        ("l'alarme sonne", "alarme sonne", 2),
        ("K2's fan", "K2's", 0),
        ("of K2 165 minutes", "165 minutes", 6),
        ("the **main** valve", "main", 6),
        ("\u8b66\u62a5\u5ef6\u8fdf\u4e86165\u5206\u949f", "\u5ef6\u8fdf\u4e86165", 2),
        (
            "\u0e1b\u0e31\u0e4a\u0e21\u0e2b\u0e22\u0e38\u0e14\u0e17\u0e33\u0e07\u0e32\u0e19",
            "\u0e2b\u0e22\u0e38\u0e14",
            4,
        ),
    ],
)
def test_a_quotation_may_begin_and_end_between_words(source: str, claimed: str, at: int) -> None:
    span = find(source, claimed)
    assert span is not None
    assert span[0] == at


@given(st.text(max_size=60), st.text(min_size=3, max_size=20), st.text(max_size=60))
def test_every_part_of_a_text_is_found_with_its_own_characters(before: str, part: str, after: str) -> None:
    source = f"{before}\n\n{part}\n\n{after}"
    span = find(source, part)
    if len(part.strip()) >= 3:
        assert span is not None
        assert source[slice(*span)] == part.strip()


@given(st.text(max_size=40), st.text(max_size=20))
def test_a_span_always_lies_in_the_source(source: str, quotation: str) -> None:
    span = find(source, quotation)
    assert span is None or 0 <= span[0] < span[1] <= len(source)
