"""The model `offline` finds the passage that answers a question asked in other words."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from roles.analysis import DocumentStore, analysis_swarm, load_documents
from roles.analysis.events import AnalysisRequested, DocumentInfo
from swarmbus import Agent
from swarmbus.errors import ModelError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

SAMPLES = Path(__file__).parent.parent.parent / "examples/documents"
ANSWERS = {
    "May the reading of the sensor at the door be taken as the warmth of the goods?": (
        "It hangs in the cold air that comes over from Hall 2 and says nothing about the goods"
    ),
    "Which motor was the first to give up that night?": "motor protection tripped at 01:31",
    "Why didn't the manufacturer put the delay of the alarm right at once?": (
        "The value can only be changed at the service level"
    ),
    "Where was the spare motor kept until the failure?": "lies in the workshop, shelf C4",
    "How big is the loss of goods in money?": "61340",
    "How many pallets can be stored in the building?": "1,900 pallets",
}


@pytest.fixture
async def store() -> AsyncIterator[DocumentStore]:
    with DocumentStore(await load_documents([SAMPLES])) as opened:
        yield opened


@pytest.mark.parametrize("question", ANSWERS)
async def test_the_answering_passage_is_quoted(question: str, store: DocumentStore) -> None:
    documents = tuple(DocumentInfo(id=d.id, title=d.title, characters=len(d.text)) for d in store.readable)
    request = AnalysisRequested(task=question, paths=(str(SAMPLES),), documents=documents)
    async with analysis_swarm("offline").open() as live:
        result = await (await live.submit(request, deps=store)).result()
    quoted = [" ".join(quote.text.split()) for claim in result.output.claims for quote in claim.quotes]
    assert any(ANSWERS[question] in text for text in quoted)
    assert not [claim.text for claim in result.output.claims if claim.text.startswith("(part")]


async def test_for_other_roles_it_writes_nothing_and_says_so() -> None:
    with pytest.raises(ModelError, match=r"^the model `offline` only plays the roles of the document analysis"):
        await Agent("offline").run("Write a poem.")
