"""Many documents: each accounted for, no prompt beyond the window, flat memory, and hardly slower than reading them.

`MANY_DOCUMENTS=2000 pytest tests/analysis/test_scale.py` does it with as many as one likes.
"""

from __future__ import annotations

import json
import os
import re
import resource
import sys
import time
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from roles.analysis import analyze
from roles.analysis.documents import load_documents
from roles.analysis.drafts import one_line
from roles.analysis.events import StepAnalysed
from roles.analysis.store import DocumentStore
from support.fake_openai import ChatRequest, ToolUse, fake_server
from support.many_documents import CONTRADICTION, QUESTION, ManyDocuments, make
from swarmbus import Event

if TYPE_CHECKING:
    from roles.analysis.report import Report

COUNT = int(os.environ.get("MANY_DOCUMENTS", "160"))
WINDOW = 32_000
BYTES_PER_TOKEN = 3
"""Fewer than a token has in any script, so that nothing is counted too small."""

pytestmark = pytest.mark.timeout(120 + COUNT // 2)


@pytest.fixture(scope="module", params=["asyncio"])
def anyio_backend(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> ManyDocuments:
    return make(tmp_path_factory.mktemp("many") / "papers", COUNT)


class Reader:
    """Plays all three roles, as one who reads what it is shown: it quotes what each document says of a valve."""

    def __init__(self) -> None:
        self.largest = 0
        self.asked: Counter[str] = Counter()

    def __call__(self, request: ChatRequest) -> str | list[ToolUse]:
        self.largest = max(self.largest, len(json.dumps(request.body, ensure_ascii=False).encode()) // BYTES_PER_TOKEN)
        asked = request.texts("user")[-1]
        if request.tool_names:
            return self._carry_out(request, re.findall(r"^Documents: (d\d+) \(", asked, re.MULTILINE)[0])
        form = request.body["response_format"]["json_schema"]["name"]
        return json.dumps({"steps": []} if form == "CrossSteps" else merged(asked))

    def _carry_out(self, request: ChatRequest, document: str) -> list[ToolUse]:
        if request.last["role"] != "tool":
            self.asked[document] += 1
            return [ToolUse("search", {"query": "relief valve", "document": document, "limit": 20})]
        said = re.findall(r"The relief valve of hall \w+ opens[^.]*\.", request.last["content"].replace("\\n", " "))
        claims = [{"text": text, "quotes": [{"document": document, "text": text}]} for text in said]
        return [ToolUse("final_answer", {"claims": claims})]


def merged(asked: str) -> dict[str, Any]:
    """Tell contradictions first, then as many of the other claims as may be."""
    most = int(re.findall(r"^Claims at the most: (\d+)$", asked, re.MULTILINE)[0])
    halls: dict[str, list[int]] = {}
    for number, hall in re.findall(r"^Claim (\d+): .*?hall (\w+)", asked, re.MULTILINE):
        halls.setdefault(hall, []).append(int(number))
    ordered = sorted(halls.items(), key=lambda item: -len(item[1]))
    drafts = [{"text": f"What is said of hall {hall}.", "sources": sources} for hall, sources in ordered[:most]]
    return {"summary": "All valves.", "claims": drafts}


def resident() -> float:
    """Return the MiB of memory that this process takes."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize() / 2**20


@pytest.mark.skipif(sys.platform != "linux", reason="memory is looked up where Linux tells it")
async def test_many_documents_are_analysed_over_http_in_flat_memory(many: ManyDocuments) -> None:
    reader = Reader()
    steps: Counter[str] = Counter()
    memory: list[float] = []

    def watch(item: Any) -> None:
        event = getattr(item, "event", None)
        if isinstance(event, StepAnalysed):
            steps[event.step_id] += 1
            server.requests.clear()
            memory.append(resident())

    async with fake_server(reader) as server:
        report = await analyze(many.folder, QUESTION, model=f"{server.url}#any", on_event=watch)
    assert_accounted_for(report, many)
    read = [entry.id for entry in report.documents if entry.status == "read"]
    assert steps == {f"read-{document}": 1 for document in read}
    assert reader.asked == dict.fromkeys(read, 1)
    assert reader.largest < WINDOW
    contradicting = [claim for claim in report.claims if len({quote.document for quote in claim.quotes}) == 2]
    assert [{one_line(quote.text) for quote in claim.quotes} for claim in contradicting] == [set(CONTRADICTION)]
    growth = memory[-1] - memory[len(memory) // 4]
    tell(f"largest request {reader.largest} tokens, {growth:.1f} MiB more for the last three quarters")
    assert growth < 8 + 0.01 * COUNT


async def test_one_of_twenty_megabytes_is_read_in_pieces(tmp_path: Path) -> None:
    filler = "The pump was replaced in May, and nobody has checked it since.\n\n" * 120_000
    half = len(filler) // 2
    (tmp_path / "long.txt").write_text(
        f"{filler[:half]}\n\n{CONTRADICTION[0]}\n\n{filler[half:]}{'x' * 5_000_000}{filler}"
    )
    (tmp_path / "short.txt").write_text(CONTRADICTION[1])
    assert (tmp_path / "long.txt").stat().st_size > 20_000_000
    reader = Reader()
    events: list[int] = []

    def watch(item: Any) -> None:
        if isinstance(getattr(item, "event", None), Event):
            events.append(len(item.event.model_dump_json()))

    async with fake_server(reader) as server:
        report = await analyze(tmp_path, QUESTION, model=f"{server.url}#any", on_event=watch)
    (claim,) = report.claims
    assert [(quote.text, quote.start) for quote in claim.quotes] == [
        (CONTRADICTION[0], half + 2),
        (CONTRADICTION[1], 0),
    ]
    assert reader.largest < WINDOW
    assert max(events) < 20_000


def assert_accounted_for(report: Report, many: ManyDocuments) -> None:
    assert report.status == "partial"
    assert report.failures == ()
    paths = {entry.id: Path(entry.path) for entry in report.documents}
    assert {paths[entry.id].name: entry.status for entry in report.documents} == many.statuses
    quotes = [quote for claim in report.claims for quote in claim.quotes]
    assert all(quote.verified for quote in quotes)
    for name, said in zip(many.contradicting, CONTRADICTION, strict=True):
        assert any(paths[quote.document].name == name and said in one_line(quote.text) for quote in quotes)


async def test_the_offline_model_takes_less_than_twice_the_time_of_reading_and_searching(many: ManyDocuments) -> None:
    reading, analysing = [], []
    for _ in range(2):  # what else the machine does hits both; the best of each counts
        began = time.perf_counter()
        documents = await load_documents([many.folder])
        with DocumentStore(documents) as store:
            store.search(QUESTION)
        read = time.perf_counter()
        report = await analyze(many.folder, QUESTION)
        reading.append(read - began)
        analysing.append(time.perf_counter() - read)
    assert_accounted_for(report, many)
    tell(f"{min(reading):.1f} s to read and to search them once, {min(analysing):.1f} s to analyse them")
    assert min(analysing) < 2 * min(reading)


def tell(figures: str) -> None:
    """Show what was measured, with `pytest -s`."""
    sys.stdout.write(f"\n{COUNT} documents: {figures}\n")
