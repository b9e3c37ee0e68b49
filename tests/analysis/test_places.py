"""A text is divided into passages that hold all of it once, none longer than may be, whatever the text."""

from __future__ import annotations

import time
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roles.analysis.matching import find
from roles.analysis.places import PASSAGE, Layout, Places

PIECES = st.sampled_from(
    ["word ", "Another one. ", "\n", "\n\n", "\r\n", "\t", " ", "x" * 500, "x" * 2000, "会議は午後。", "é", "1.", "- "]
)


@given(st.lists(PIECES, max_size=80).map("".join), st.sampled_from(["prose", "lines", "printed"]), st.data())
def test_passages_hold_all_of_a_text_once(text: str, layout: Layout, data: st.DataObject) -> None:
    pages = data.draw(st.lists(st.integers(0, len(text)), max_size=4).map(sorted))
    spans = list(Places(text, tuple(pages), layout=layout).passages())
    assert all(0 < end - start <= PASSAGE for start, end in spans)
    assert all(first[1] <= second[0] for first, second in pairwise(spans))
    assert "".join("".join(text[start:end].split()) for start, end in spans) == "".join(text.split())


def test_no_word_is_cut_but_one_longer_than_a_passage() -> None:
    text = f"The valve opens at 9 bar. It is\t{'y' * 5000} closed."
    cut = [text[start:end] for start, end in Places(text).passages()]
    assert cut[:2] == ["The valve opens at 9 bar.", "It is"]
    assert [find(text, piece) for piece in cut[:2]] == [(0, 25), (26, 31)]


@pytest.mark.parametrize("layout", ["prose", "lines", "printed"])
def test_ten_megabytes_are_divided_in_seconds(layout: Layout) -> None:
    text = "The pump was replaced in May. Nobody checked it.\n\n" * 100_000 + "x" * 5_000_000
    began = time.process_time()
    spans = list(Places(text, layout=layout).passages())
    assert time.process_time() - began < 20
    assert max(end - start for start, end in spans) <= PASSAGE
    assert sum(end - start for start, end in spans) > 9_800_000
