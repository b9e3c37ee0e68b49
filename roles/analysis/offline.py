"""The model `offline`: plays planner, executor and aggregator without a network, by quoting instead of writing.

Deterministic. It looks only at what it is sent, as any model does: the form of the answer that is asked for tells it
what to do, and what it quotes it was shown by its tools. Which passages fit best the search says. How well a claim
fits stands before its text, for the model itself to read when it plays the aggregator; a report does not show it.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from roles.analysis.drafts import CLAIM, DOCUMENTS, MOST, PART, QUESTION, WHOLE
from roles.analysis.passage_choice import headline, held, in_turn, parts_of, quotation
from swarmbus.errors import ModelError
from swarmbus.models import AssistantMessage, ModelReply, ToolMessage, UserMessage, call

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable

    from swarmbus.models import ModelRequest, StreamPart

PASSAGES = 20
"""Passages that a search brings, and claims that a step across documents makes, at the most."""
STEP_CLAIMS = 3
"""Claims about one document, if its question has not more parts."""
REPORT_CLAIMS = 20
ENOUGH = 0.5
"""How well a claim of the report has to fit, where the best one fits by 1."""
OTHERS = (
    "the model `offline` only plays the roles of the document analysis, and writes nothing for others: name a model"
    " that does, such as openai:gpt-5-mini, or script one with swarmbus.models.ScriptedModel"
)

_BLOCK = re.compile(r'<document id="([^"]*)" place="[^"]*" start="\d+">\n(.*?)\n</document>', re.DOTALL)
_CLAIM = re.compile(rf"^{CLAIM}(\d+): (.*?)$(.*?)(?=^{CLAIM}\d+: |^{WHOLE}|^{PART}|\Z)", re.DOTALL | re.MULTILINE)
_FIT = re.compile(r"\(part (\d+), fit ([\d.e+-]+)\) ")


class OfflineModel:
    """Answers the requests of the document analysis."""

    name = "offline"

    async def stream(self, request: ModelRequest) -> AsyncIterator[StreamPart]:
        """Yield the one part of its reply.

        Raises:
            ModelError: it is asked what no role of the analysis asks.
        """
        yield self._reply(request)

    def _reply(self, request: ModelRequest) -> ModelReply:
        form = request.output.name if request.output is not None else ""
        asked = next((m.text for m in reversed(request.messages) if isinstance(m, UserMessage)), "")
        match form:
            case "CrossSteps":
                question = _line(asked, QUESTION)
                return _answer({"steps": [{"text": f"Compare what the documents say about: {question}"}]})
            case "Findings":
                return _findings(request, asked)
            case "ReportDraft":
                return _answer(_report(asked))
            case "Revision":
                return _answer({"steps": []})
            case _:
                raise ModelError(OTHERS)


def offline_model(_name: str = "") -> OfflineModel:
    """Return the model; registered as `offline`, whatever stands behind a colon."""
    return OfflineModel()


@dataclass(frozen=True, slots=True)
class _Passage:
    """What a search brought; equal where it is the same stretch of the same document."""

    document: str
    text: str


@dataclass(frozen=True, slots=True)
class _Claim:
    """A claim of the report as it is asked for.

    Attributes:
        text: the statement.
        fit: how well it fits a part of the question.
        part: which; 0 is the whole.
    """

    text: str
    fit: float
    part: int = 0


def _findings(request: ModelRequest, asked: str) -> ModelReply:
    """Search for each part of the question, then quote from what was found."""
    parts = parts_of(_line(asked, QUESTION))
    documents = re.findall(r"\b(d\d+) \(", _line(asked, DOCUMENTS))
    results = {m.call_id: m.content for m in request.messages if isinstance(m, ToolMessage)}
    if not results:
        within = {"document": documents[0]} if len(documents) == 1 else {}
        wishes = (call("search", query=part, limit=PASSAGES, **within) for part in parts)
        named = tuple(replace(wish, id=f"search_{number}") for number, wish in enumerate(wishes))
        return ModelReply(AssistantMessage(tool_calls=named), finish="tool_calls")
    found = [dict(_passages(results.get(f"search_{number}", ""))) for number in range(len(parts))]
    most = max(STEP_CLAIMS, len(parts)) if len(documents) == 1 else PASSAGES
    chosen = in_turn([list(passages) for passages in found], most)
    claims = []
    for part, passage in chosen:
        quoted = quotation(parts[part], passage.text)
        claim = _Claim(headline(parts[part], quoted), found[part][passage], part)
        claims.append({"text": _marked(claim), "quotes": [{"document": passage.document, "text": quoted}]})
    return _answer({"claims": claims})


def _passages(content: str) -> Iterable[tuple[_Passage, float]]:
    """Read what a search returned: passages and their scores."""
    try:
        shown = json.loads(content)
    except ValueError:
        return
    data = shown.get("data", shown) if isinstance(shown, dict) else {}
    if isinstance(data, dict):
        for passage, score in zip(data.get("passages", ()), data.get("scores", ()), strict=False):
            yield from ((_Passage(document, text), score) for document, text in _BLOCK.findall(passage))


def _report(asked: str) -> dict[str, Any]:
    """Return the claims that fit best, those about each part of the question in turn; what quotes the same is one."""
    question = _line(asked, QUESTION)
    sources: dict[str, list[int]] = {}
    claims: dict[str, _Claim] = {}
    for number, text, quotes in _CLAIM.findall(asked):
        key = quotes.strip() or text
        claim = _read_claim(text, text + quotes, question)
        if claim.fit > 0:
            sources.setdefault(key, []).append(int(number))
            claims[key] = max(claims.get(key, claim), claim, key=lambda one: one.fit)
    rankings: dict[int, list[str]] = {}
    for key in sorted(claims, key=lambda key: -claims[key].fit):
        ranking = rankings.setdefault(claims[key].part, [])
        if not ranking or claims[key].fit >= ENOUGH * claims[ranking[0]].fit:
            ranking.append(key)
    most = min(REPORT_CLAIMS, int(_line(asked, MOST) or REPORT_CLAIMS))
    chosen = in_turn([rankings[part] for part in sorted(rankings)], most)
    for_part = asked.endswith(PART)
    drafts = [
        {"text": _marked(claims[key]) if for_part else claims[key].text, "sources": sources[key]} for _, key in chosen
    ]
    summary = (
        f"Quoted, not written: the {len(drafts)} passages that fit the question best, the best first."
        if drafts
        else "The documents say nothing that fits the question."
    )
    return {"summary": summary, "claims": drafts}


def _read_claim(text: str, whole: str, question: str) -> _Claim:
    """Read one claim; where another model made it, the words it shares with the question tell how well it fits."""
    fit = _FIT.match(text)
    if fit is None:
        return _Claim(text, held(question, whole))
    return _Claim(text[fit.end() :], float(fit[2]), int(fit[1]))


def _marked(claim: _Claim) -> str:
    return f"(part {claim.part}, fit {claim.fit:.5g}) {claim.text}"


def _line(text: str, start: str) -> str:
    for line in text.splitlines():
        if line.startswith(start):
            return line[len(start) :]
    return ""


def _answer(value: dict[str, Any]) -> ModelReply:
    return ModelReply(AssistantMessage(json.dumps(value, ensure_ascii=False)))
