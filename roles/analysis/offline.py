"""The model `offline`: plays planner, executor and aggregator without a network, by quoting instead of writing.

Deterministic. It looks only at what it is sent, as any model does: the form of the answer that is asked for tells it
what to do, and what it quotes it was shown by its tools. Passages are scored as in BM25, with the passages at hand as
the collection (Robertson and Zaragoza, The Probabilistic Relevance Framework: BM25 and Beyond, 2009).
"""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from roles.analysis.drafts import CLAIM, DOCUMENTS, QUESTION
from roles.analysis.places import sentences
from roles.analysis.words import stems_of
from swarmbus.models import AssistantMessage, ModelReply, ToolMessage, UserMessage, call

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable, Sequence

    from swarmbus.models import ModelRequest, StreamPart

PASSAGES = 8
STEP_CLAIMS = 3
ALL_CLAIMS = 10
REPORT_CLAIMS = 12
WINDOW = 420
"""Characters of a quotation, where its sentences allow it."""

K1, B = 1.2, 0.6
"""How soon a word's repetition says nothing more, and how much a text's length counts against it."""
RANK = 0.03
"""How much the place counts that the search gave a passage."""

_ASKS = r"(?:who|whom|whose|what|which|when|where|why|how|is|are|was|were|does|do|did|has|have|can)"
_PARTS = re.compile(rf"\?\s+|[,;]\s+(?:and\s+|or\s+)?(?={_ASKS}\b)|\s+and\s+(?={_ASKS}\b)", re.IGNORECASE)
_BLOCK = re.compile(r'<document id="([^"]*)" place="([^"]*)" start="(\d+)">\n(.*?)\n</document>', re.DOTALL)
_CLAIM = re.compile(rf"^{CLAIM}(\d+): (.*?)(?=^{CLAIM}\d+: |^Write the report|\Z)", re.DOTALL | re.MULTILINE)


class OfflineModel:
    """Answers the requests of the document analysis."""

    name = "offline"

    async def stream(self, request: ModelRequest) -> AsyncIterator[StreamPart]:
        """Yield the one part of its reply."""
        yield self._reply(request)

    def _reply(self, request: ModelRequest) -> ModelReply:
        form = request.output.name if request.output is not None else ""
        asked = next(m.text for m in reversed(request.messages) if isinstance(m, UserMessage))
        match form:
            case "CrossSteps":
                question = _line(asked, QUESTION)
                return _answer({"steps": [{"text": f"Compare what the documents say about: {question}"}]})
            case "Findings":
                return self._findings(request, asked)
            case "ReportDraft":
                return _answer(_report(asked))
            case "Revision":
                return _answer({"steps": []})
            case _:
                return ModelReply(AssistantMessage("The model `offline` only plays the roles of the analysis."))

    def _findings(self, request: ModelRequest, asked: str) -> ModelReply:
        question = _line(asked, QUESTION)
        documents = re.findall(r"\b(d\d+) \(", _line(asked, DOCUMENTS))
        results = [m for m in request.messages if isinstance(m, ToolMessage)]
        if not results:
            one = documents[0] if len(documents) == 1 else None
            limit = PASSAGES if one else 2 * PASSAGES
            within = {"document": one} if one is not None else {}
            wishes = [call("search", query=part, limit=limit, **within) for part in parts_of(question)]
            named = tuple(replace(wish, id=f"search_{number}") for number, wish in enumerate(wishes, start=1))
            return ModelReply(AssistantMessage(tool_calls=named), finish="tool_calls")
        blocks = [block for result in results for block in _blocks(result.content)]
        most = STEP_CLAIMS if len(documents) == 1 else ALL_CLAIMS
        chosen = _best(question, [window for block in blocks for window in _windows(block)], most)
        claims = [{"text": _headline(w.text), "quotes": [{"document": w.document, "text": w.text}]} for w in chosen]
        return _answer({"claims": claims})


def offline_model(_name: str = "") -> OfflineModel:
    """Return the model; registered as `offline`, whatever stands behind a colon."""
    return OfflineModel()


@dataclass(frozen=True, slots=True)
class _Text:
    """A stretch of a document as it was shown."""

    document: str
    text: str
    rank: int = 0


def _blocks(content: str) -> Iterable[_Text]:
    try:
        shown = json.loads(content)
    except ValueError:
        return
    data = shown.get("data", shown) if isinstance(shown, dict) else {}
    for rank, passage in enumerate(data.get("passages", ()) if isinstance(data, dict) else ()):
        for document, _, _, text in _BLOCK.findall(passage):
            yield _Text(document, text, rank)


def _windows(block: _Text) -> Iterable[_Text]:
    """The runs of whole sentences that are short enough to quote."""
    spans = list(sentences(block.text, 0, len(block.text)))
    for first, (start, _) in enumerate(spans):
        end = spans[first][1]
        for _, stop in spans[first + 1 :]:
            if stop - start > WINDOW:
                break
            end = stop
        yield _Text(block.document, block.text[start:end], block.rank)


def parts_of(question: str) -> list[str]:
    """Return the questions that a question is made of, at most four."""
    parts = [part.strip(" ?") for part in _PARTS.split(question)]
    telling = [part for part in parts if len(stems_of(part)) > 1]
    return telling[:4] or [question]


def _best(question: str, candidates: Sequence[_Text], most: int) -> list[_Text]:
    """Return the stretches that fit a question best, none overlapping another; each of its parts has its turn."""
    rankings = [iter(_ranked(part, candidates)) for part in parts_of(question)]
    chosen: list[_Text] = []
    while rankings and len(chosen) < most:
        for ranking in list(rankings):
            fresh = next((c for c in ranking if not any(_overlap(c, other) for other in chosen)), None)
            if fresh is None:
                rankings.remove(ranking)
            elif len(chosen) < most:
                chosen.append(fresh)
    return chosen


def _ranked(part: str, candidates: Sequence[_Text]) -> list[_Text]:
    scores = scored(part, [candidate.text for candidate in candidates])
    order = sorted(range(len(candidates)), key=lambda at: (-scores[at] / (1 + RANK * candidates[at].rank), at))
    return [candidates[at] for at in order if scores[at] > 0]


def _overlap(one: _Text, other: _Text) -> bool:
    mine, theirs = set(stems_of(one.text)), set(stems_of(other.text))
    return len(mine & theirs) > 0.6 * min(len(mine), len(theirs))


def scored(question: str, texts: Sequence[str]) -> list[float]:
    """Return how well each text fits a question, as BM25 has it, weighted by how much of the question it holds."""
    wanted = list(dict.fromkeys(stems_of(question)))
    counted = [Counter(stems_of(text)) for text in texts]
    mean = sum(sum(counts.values()) for counts in counted) / max(1, len(counted))
    rarity = {}
    for word in wanted:
        having = sum(word in counts for counts in counted)
        rarity[word] = math.log(1 + (len(counted) - having + 0.5) / (having + 0.5))
    whole = sum(rarity.values()) or 1.0
    scores = []
    for counts in counted:
        length = 1 - B + B * sum(counts.values()) / max(1.0, mean)
        single = sum(rarity[word] * counts[word] * (K1 + 1) / (counts[word] + K1 * length) for word in wanted)
        held = sum(rarity[word] for word in wanted if word in counts) / whole
        scores.append(single * (0.5 + held))
    return scores


def _report(asked: str) -> dict[str, Any]:
    question = _line(asked, QUESTION)
    numbered = [_Text(number, text.strip()) for number, text in _CLAIM.findall(asked)]
    chosen = _best(question, numbered, REPORT_CLAIMS)
    claims = [{"text": claim.text.split("\n", 1)[0], "sources": [int(claim.document)]} for claim in chosen]
    summary = (
        f"Quoted, not written: the {len(claims)} passages that fit the question best, the best first."
        if claims
        else "The documents say nothing that fits the question."
    )
    return {"summary": summary, "claims": claims}


def _headline(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= 200 else line[:200].rsplit(" ", 1)[0] + " …"


def _line(text: str, start: str) -> str:
    for line in text.splitlines():
        if line.startswith(start):
            return line[len(start) :]
    return ""


def _answer(value: dict[str, Any]) -> ModelReply:
    return ModelReply(AssistantMessage(json.dumps(value, ensure_ascii=False)))
