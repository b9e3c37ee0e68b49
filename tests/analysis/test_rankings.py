"""A query that one document after the other is asked finds what it found when it was asked for the first time."""

from __future__ import annotations

from roles.analysis.documents import Document
from roles.analysis.rankings import REMEMBERED, Rankings
from roles.analysis.store import DocumentStore

QUERY = "Who replaced the pump of hall 7?"


def test_a_query_is_answered_the_same_however_often_it_was_asked() -> None:
    texts = [f"The pump of hall {number} was replaced.\n\nNobody knew of the valve." * 9 for number in range(40)]
    documents = [Document(f"d{number}", "a.txt", "read", text=text) for number, text in enumerate(texts)]
    with DocumentStore(documents) as asked_often:
        for _ in range(3):
            found = [asked_often.search(QUERY, 5, document.id) for document in documents]
    for document, passages in zip(documents, found, strict=True):
        with DocumentStore(documents) as asked_once:
            assert asked_once.search(QUERY, 5, document.id) == passages


def test_a_query_is_carried_out_whole_once_and_only_if_it_is_asked_again() -> None:
    asked: list[str] = []

    def ask(query: str) -> list[tuple[int, float]]:
        asked.append(query)
        return [(2, 0.5), (4, 0.25), (7, 1.0)]

    rankings = Rankings(ask)
    assert (rankings.within("pump", 1, 9), asked) == (None, [])
    assert [rankings.within("pump", first, last) for first, last in ((1, 9), (3, 4), (5, 6))] == [
        {2: 0.5, 4: 0.25, 7: 1.0},
        {4: 0.25},
        {},
    ]
    assert asked == ["pump"]


def test_few_of_many_queries_are_remembered() -> None:
    rankings = Rankings(lambda query: [])
    for number in range(3 * REMEMBERED):
        rankings.within(f"pump {number}", 1, 9)
    assert len(rankings) == REMEMBERED
    assert rankings.within("pump 0", 1, 9) is None
