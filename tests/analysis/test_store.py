"""The store finds passages by what they say, whatever is asked."""

from __future__ import annotations

from threading import Thread
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roles.analysis.documents import Document
from roles.analysis.store import DocumentStore, StoreClosedError, UnknownDocumentError

if TYPE_CHECKING:
    from collections.abc import Iterator

PUMPS = "The pumps were replaced in May.\n\nNobody checked the valves afterwards."
SOUP = "A soup needs onions, salt and an hour of time."
JAPANESE = "会議は午後三時に始まります。出席者は五人です。"


@pytest.fixture(scope="module")
def store() -> Iterator[DocumentStore]:
    documents = (
        Document("d1", "pumps.txt", "read", text=PUMPS),
        Document("d2", "soup.md", "read", text=SOUP),
        Document("d3", "meeting.txt", "read", text=JAPANESE),
        Document("d4", "broken.pdf", "failed", "damaged"),
    )
    with DocumentStore(documents) as opened:
        yield opened


@pytest.mark.parametrize(
    ("query", "document"),
    [
        ("Who replaced the pump?", "d1"),
        ("onion soup", "d2"),
        ("出席者", "d3"),
        ('"onions" AND NOT (salt', "d2"),
        ("VALVE checking", "d1"),
    ],
    ids=["stems", "another form", "without spaces", "operators are words", "capitals"],
)
def test_the_best_passage_comes_first(store: DocumentStore, query: str, document: str) -> None:
    assert store.search(query)[0].document == document


MIXED = "圧力は九バール。 The pump failed.\n\nสัญญานี้มีผลวันจันทร์"


@pytest.mark.parametrize("query", ["圧力", "九", "バール", "pumps", "圧力 of the pump", "วันจันทร์"])
def test_scripts_without_spaces_are_searched_beside_others(query: str) -> None:
    with DocumentStore(
        (Document("d1", "a.txt", "read", text=MIXED), Document("d2", "b.txt", "read", text=SOUP))
    ) as opened:
        assert [passage.document for passage in opened.search(query)] == ["d1"]


def test_a_passage_is_its_place_in_the_source(store: DocumentStore) -> None:
    (passage,) = store.search("valves")
    source = store.document(passage.document).text
    assert source[passage.start : passage.end] == passage.text


def test_of_equal_passages_the_one_beside_what_is_asked_comes_first() -> None:
    filler = "Nothing of it is of any interest to anybody at all, as far as one can see. " * 6
    said = f"It lasted for nine hours, says the log. {filler}"
    text = f"{said}\n\n{filler}\n\n{filler}\n\nThe cooling of Hall 3 failed. {filler}\n\n{said}"
    with DocumentStore((Document("d1", "a.txt", "read", text=text),)) as opened:
        found = [passage.start for passage in opened.search("hours of failed cooling")]
    assert found == [text.index("The cooling"), text.rindex("It lasted"), 0]


@pytest.mark.parametrize(
    ("query", "answer"),
    [
        ("Who turned the request down? It was refused.", "rejected"),
        ("How many came?", "12"),
        ("the licence", "license"),
    ],
    ids=["words that say the same", "a number", "spellings"],
)
def test_the_answer_need_not_use_the_words_of_the_question(query: str, answer: str) -> None:
    texts = ("The board rejected it in June.", "Some came in a bus.", "There came 12 of them.", "See its license.")
    documents = [Document(f"d{number}", "a.txt", "read", text=text) for number, text in enumerate(texts)]
    with DocumentStore(documents) as opened:
        assert answer in opened.search(query)[0].text


def test_a_search_can_be_kept_to_one_document(store: DocumentStore) -> None:
    assert [p.document for p in store.search("pumps onions", document="d2")] == ["d2"]


def test_reading_stops_at_the_end(store: DocumentStore) -> None:
    assert store.read("d2", 2, 10).text == SOUP[2:12]
    assert store.read("d2", 10**9).text == ""


def test_an_unknown_document_is_named_with_those_there_are(store: DocumentStore) -> None:
    with pytest.raises(UnknownDocumentError, match=r"no document 'd9'; there are d1, d2, d3, d4"):
        store.search("x", document="d9")


@given(st.text(max_size=80))
def test_no_query_is_an_error(query: str) -> None:
    with DocumentStore((Document("d1", "a.txt", "read", text=PUMPS),)) as opened:
        assert all(passage.document == "d1" for passage in opened.search(query))


def test_a_closed_store_can_not_be_searched() -> None:
    opened = DocumentStore((Document("d1", "a.txt", "read", text=PUMPS),))
    opened.close()
    opened.close()
    with pytest.raises(StoreClosedError, match="store was closed"):
        opened.search("pumps")


def test_closing_interrupts_a_search_and_waits_for_its_end() -> None:
    words = [f"w{number}" for number in range(4000)]
    document = Document("d1", "a.txt", "read", text="\n\n".join(f"{word} " * 60 for word in words))
    opened = DocumentStore((document,))
    ends: list[str] = []

    def search() -> None:
        try:
            while True:
                opened.search(" ".join(words))
        except StoreClosedError:
            ends.append("closed")

    threads = [Thread(target=search) for _ in range(3)]
    for thread in threads:
        thread.start()
    while not opened._lock.locked():  # a search is under way
        pass
    opened.close()
    for thread in threads:
        thread.join()
    assert ends == ["closed"] * 3
