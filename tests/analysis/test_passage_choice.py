"""What is asked is found in a passage, and questions that hold several are taken apart."""

from __future__ import annotations

import pytest

from roles.analysis.passage_choice import LONGEST, headline, in_turn, parts_of, quotation
from roles.analysis.thesaurus import related

LONG = "Nothing of it matters here at all. " * 30
ANSWER = "The valve stood open for nine hours. Nobody knew."


@pytest.mark.parametrize(
    ("question", "parts"),
    [
        ("Who opened the valve?", ["Who opened the valve?"]),
        ("Who opened the valve, and when did the pump stop?", ["Who opened the valve", "when did the pump stop"]),
        ("What failed first? Who was told of the alarm?", ["What failed first", "Who was told of the alarm"]),
        ("If nobody objects, when is my request granted?", ["If nobody objects, when is my request granted?"]),
        (
            "The old pump failed. Who knew of the noise?",
            ["The old pump failed. Who knew of the noise?", "The old pump failed", "Who knew of the noise"],
        ),
        ("Why?", ["Why?"]),
    ],
    ids=["one", "two in one", "two", "a clause is no question", "with what is told before", "no telling word"],
)
def test_a_question_is_taken_apart_into_those_it_is_made_of(question: str, parts: list[str]) -> None:
    assert parts_of(question) == parts


def test_a_quotation_is_whole_sentences_around_what_is_asked() -> None:
    quoted = quotation("How long was the valve open?", f"{LONG}{ANSWER} {LONG}")
    assert ANSWER in quoted
    assert len(quoted) <= LONGEST
    assert quoted.startswith("Nothing of it")
    assert quoted.endswith(".")


def test_a_passage_that_is_short_enough_is_quoted_whole() -> None:
    assert quotation("valve", f"Heading\n\n{ANSWER}") == f"Heading\n\n{ANSWER}"


def test_the_headline_is_the_sentence_that_answers() -> None:
    quoted = f"It was late in the evening.\n{ANSWER}"
    assert headline("How long was the valve open?", quoted) == "The valve stood open for nine hours."
    assert len(headline("x", "word " * 500)) < 210


def test_each_ranking_has_its_turn() -> None:
    assert in_turn([[1, 2, 3], [2, 4], []], 10) == [(0, 1), (1, 2), (0, 3), (1, 4)]
    assert in_turn([[1, 2, 3], [4, 5]], 3) == [(0, 1), (1, 4), (0, 2)]


def test_words_lead_to_those_that_say_nearly_the_same_whatever_their_ending() -> None:
    assert "limit" in related("maximum")
    assert related("refuses") == related("refused")
    assert "reject" in related("refused")
    assert related("valve") == ()
