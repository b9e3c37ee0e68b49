"""Claims are divided into batches that fit a prompt, and those that contradict each other come into the same one."""

from __future__ import annotations

import random

from roles.analysis.batches import BATCH, alike_together, claim_batches
from roles.analysis.events import QuotedClaim, QuotedText


def claim(text: str, *documents: str) -> QuotedClaim:
    quotes = (
        QuotedText(document=name, place="", start=0, end=9, text="its words", verified=True) for name in documents
    )
    return QuotedClaim(text=text, quotes=tuple(quotes))


def text_size(one: QuotedClaim) -> int:
    return len(one.text)


def test_claims_are_divided_into_batches_that_fit() -> None:
    claims = [claim(f"{number} " + "x" * 2000) for number in range(100)]
    batches = claim_batches(claims, text_size)
    assert sorted(one.text for batch in batches for one in batch) == sorted(one.text for one in claims)
    assert all(sum(map(text_size, batch)) <= BATCH for batch in batches)
    assert {len(batch) for batch in batches} <= {19, 20, 21}


def test_a_claim_longer_than_a_batch_has_one_to_itself() -> None:
    claims = [claim("x" * 2 * BATCH)] * 3
    assert [len(batch) for batch in claim_batches(claims, text_size)] == [1, 1, 1]


def test_no_claim_has_no_batch() -> None:
    assert claim_batches([], text_size) == []


def test_claims_that_contradict_each_other_come_into_one_batch_wherever_they_were_made() -> None:
    chance = random.Random(0)
    names = [f"{chance.choice('BDFGKLMNPRSTVZ')}{chance.randrange(10**6)}" for _ in range(1000)]
    claims = [claim(f"The valve of hall {name} opens at {chance.randint(2, 40)} bar.") for name in names]
    nine = claim("The valve of hall Kestrel opens at 9 bar.")
    twelve = claim("In hall Kestrel, the valve opens only at 12 bar, as its maker states.")
    claims[100:100], claims[900:900] = [nine], [twelve]
    ordered = alike_together(claims)
    assert abs(ordered.index(nine) - ordered.index(twelve)) == 1
    assert sorted(one.text for one in ordered) == sorted(one.text for one in claims)
    assert any(nine in batch and twelve in batch for batch in claim_batches(claims, lambda _: 2000))


def test_claims_about_several_documents_come_first() -> None:
    claims = [claim("one", "d1"), claim("two", "d1", "d2"), claim("three", "d3"), claim("four", "d1", "d2", "d3")]
    assert [one.text for one in alike_together(claims)] == ["four", "two", "one", "three"]
