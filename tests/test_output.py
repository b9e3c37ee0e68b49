"""Typed answers: whatever stands in an answer's JSON becomes a value, or a complaint that the model can mend."""

from __future__ import annotations

import json

import pytest
from pydantic import BaseModel

from swarmbus.thinking.output import InvalidAnswer, Output


class Claim(BaseModel, frozen=True):
    text: str
    numbers: dict[str, int] = {}


@pytest.mark.parametrize("written", [r"a \ud800 b", "a \ud800 b", r"a \u0000 b"], ids=["escaped", "plain", "NUL"])
def test_what_no_text_can_hold_costs_one_character(written: str) -> None:
    answer = f'[{{"text": "{written}", "numbers": {{"{written}": 1}}}}, {{"text": "good \\ud83d\\ude00"}}]'
    assert Output(list[Claim]).parse(answer) == [
        Claim(text="a \ufffd b", numbers={"a \ufffd b": 1}),
        Claim(text="good \N{GRINNING FACE}"),
    ]


@pytest.mark.parametrize("depth", [240, 900, 20_000])
def test_values_that_lie_too_deep_within_each_other_are_for_the_model_to_mend(depth: int) -> None:
    with pytest.raises(InvalidAnswer):
        Output(Claim).parse('{"text": ' + "[" * depth + "]" * depth + "}")


def test_an_answer_beside_a_value_that_is_too_deep_is_found() -> None:
    answer = json.dumps({"text": "good"})
    assert Output(Claim).parse(f"{'[' * 20_000} no. Rather:\n```\n{answer}\n```") == Claim(text="good")
