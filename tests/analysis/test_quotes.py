"""A quotation counts only where the source holds it, and is reported in the source's own words."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roles.analysis.documents import Document
from roles.analysis.quotes import find, verify
from roles.analysis.store import DocumentStore

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
        ("the Caf\u00e9 was", "the Cafe\u0301", "the Caf\u00e9"),
        ("rules for manip-ulation of data", "manipulation of data", "manip-ulation of data"),
        ("a well known\u2014and feared\u2014pump", "well-known - and feared", "well known\u2014and feared"),
        ("the **main** valve", "the main valve", "the **main** valve"),
        ("at 10\n 20 bar", "at 10 20 bar", "at 10\n 20 bar"),
    ],
    ids=["accents apart", "accents joined", "hyphen inside a line", "dashes", "emphasis", "numbers apart"],
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
    ],
    ids=["space", "line break", "dash", "power"],
)
def test_numbers_are_not_joined(source: str, claimed: str) -> None:
    assert find(source, claimed) is None


@given(st.text(max_size=60), st.text(min_size=3, max_size=20), st.text(max_size=60))
def test_every_part_of_a_text_is_found_with_its_own_characters(before: str, part: str, after: str) -> None:
    source = before + part + after
    span = find(source, part)
    if len(part.strip()) >= 3:
        assert span is not None
        assert source[slice(*span)] == part.strip()


@given(st.text(max_size=40), st.text(max_size=20))
def test_a_span_always_lies_in_the_source(source: str, quotation: str) -> None:
    span = find(source, quotation)
    assert span is None or 0 <= span[0] < span[1] <= len(source)
