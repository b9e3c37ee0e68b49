"""Cleaning at the edges, near matches, and short forms."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from swarmbus.events import Event, to_json
from swarmbus.frozen import FrozenDict
from swarmbus.text import brief, clean_event, clean_text, did_you_mean, error_text, near_match, text_of


class Quote(BaseModel, frozen=True):
    text: str


class Corner(NamedTuple):
    name: str
    x: int


@dataclass(frozen=True)
class Size:
    unit: str


class Heard(Event):
    text: str
    count: int = 0
    quotes: tuple[Quote, ...] = ()
    words: frozenset[str] = frozenset()
    notes: FrozenDict[str, str] = FrozenDict()
    corner: Corner = Corner("a", 1)
    size: Size = Size("mm")
    more: Any = None


@pytest.mark.parametrize(
    ("text", "clean", "count"),
    [
        ("plain", "plain", 0),
        ("größe 🐝", "größe 🐝", 0),
        ("a\0b", "a\ufffdb", 1),
        ("\ud800x\udfff", "\ufffdx\ufffd", 2),
        ("\ud83d\ude00", "\ufffd\ufffd", 2),
        ("", "", 0),
    ],
    ids=["ascii", "unicode", "nul", "lone", "pair in two halves", "empty"],
)
def test_what_json_can_not_carry_is_replaced_one_for_one(text: str, clean: str, count: int) -> None:
    assert clean_text(text) == (clean, count)


@given(st.text(st.characters()))
def test_cleaned_text_can_always_be_written(text: str) -> None:
    clean, count = clean_text(text)
    clean.encode()
    assert len(clean) == len(text)
    assert clean_text(clean) == (clean, 0)
    assert (count == 0) == (clean == text)


def test_an_event_is_cleaned_all_through() -> None:
    bad = "x\0"
    event = Heard(
        text=bad,
        quotes=(Quote(text="fine"), Quote(text=bad)),
        words=frozenset({bad}),
        notes=FrozenDict({bad: bad}),
        corner=Corner(bad, 1),
        size=Size(bad),
        more=[{"deep": bad}],
    )
    good = "x\ufffd"
    cleaned, count = clean_event(event)
    assert count == 8
    assert cleaned == Heard(
        text=good,
        quotes=(Quote(text="fine"), Quote(text=good)),
        words=frozenset({good}),
        notes=FrozenDict({good: good}),
        corner=Corner(good, 1),
        size=Size(good),
        more=[{"deep": good}],
    )
    assert b"\\u0000" not in to_json(cleaned)


def test_a_clean_event_is_itself() -> None:
    event = Heard(text="fine", quotes=(Quote(text="fine"),))
    cleaned, count = clean_event(event)
    assert cleaned is event
    assert count == 0


def test_a_misspelt_name_gets_its_near_match() -> None:
    assert near_match("StepDnoe", ["StepDone", "TaskPlanned"]) == "StepDone"
    assert near_match("StepDone", ["StepDone"]) is None
    assert near_match("elsewhere", ["StepDone"]) is None
    assert did_you_mean("eahc", ["each", "when"]) == " (did you mean `each`?)"
    assert did_you_mean("nothing", ["each", "when"]) == ""


class Unspeakable:
    def __repr__(self) -> str:
        raise ValueError("no words")


def test_a_value_is_told_in_short_whatever_it_is() -> None:
    assert brief(7) == "7"
    assert brief(Quote(text="fine")) == "Quote(text='fine')"
    long = brief(Quote(text="on and on " * 1000))
    assert (long[:18], long[-3:], len(long)) == ("Quote(text='on and", " ')", 60)
    assert brief(Unspeakable()).startswith("<Unspeakable instance")


class Mute(Exception):
    def __str__(self) -> str:
        return str(self.detail)  # type: ignore[attr-defined]  # a common slip

    __repr__ = __str__


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (ValueError("too long"), "ValueError: too long"),
        (OSError(), "OSError: "),
        (ValueError("no file caf\udce9.txt\0"), "ValueError: no file caf\ufffd.txt\ufffd"),
        (Mute(), "Mute: <Mute that can't be shown: AttributeError>"),
        (ValueError(b"", 10**5000), "ValueError: <ValueError that can't be shown: ValueError>"),
    ],
    ids=["plain", "silent", "surrogate", "str raises", "huge int"],
)
def test_an_error_is_told_whatever_its_class_says_of_itself(error: Exception, told: str) -> None:
    assert error_text(error) == told
    assert text_of(error) == told.split(": ", 1)[1]


def test_a_group_of_errors_names_the_first_of_those_in_it() -> None:
    inner = ExceptionGroup("inner", [KeyError("a"), Mute()])
    one = ExceptionGroup("unhandled errors in a TaskGroup", [ValueError("no file")])
    assert error_text(one) == "ExceptionGroup: unhandled errors in a TaskGroup (1 sub-exception): ValueError: no file"
    many = ExceptionGroup("several", [inner, OSError("full"), ValueError("b"), ValueError("c")])
    assert text_of(many) == (
        "several (4 sub-exceptions): KeyError: 'a'; Mute: <Mute that can't be shown: AttributeError>; "
        "OSError: full; and 2 more"
    )


@pytest.mark.parametrize(
    ("value", "told"),
    [(Mute(), "Mute"), (10**5000, "int that can't be shown"), ((10**5000,), "tuple that can't be shown")],
    ids=["repr raises", "huge int", "huge int in a tuple"],
)
def test_a_short_form_is_found_for_every_value(value: object, told: str) -> None:
    assert told in brief(value)
