"""The analysis over real HTTP, streaming and tool calls: with dependencies, and a plan that has to be revised."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

from roles.analysis.pipeline import analyze
from roles.standard import PlanRevised, StepReady
from support.fake_openai import ChatRequest, Reply, ToolUse, fake_server, say, use

if TYPE_CHECKING:
    from pathlib import Path

QUESTION = "When was the pump replaced, and who paid?"
FIRST = "The pump of the northern basin was replaced on 4 May. The invoice is number 77."
SECOND = "Invoice 77 was paid by the county."


def form_of(request: ChatRequest) -> str:
    """Tell from the schema that is asked for what kind of answer it is."""
    asked = request.body.get("response_format", {}).get("json_schema", {}).get("schema")
    tools = {tool["function"]["name"]: tool["function"]["parameters"] for tool in request.body.get("tools", ())}
    text = json.dumps(asked or tools.get("final_answer", {}))
    for mark, form in (('"summary"', "report"), ('"quotes"', "findings"), ('"depends_on"', "revision")):
        if mark in text:
            return form
    return "cross" if '"documents"' in text else "none"


def answer(request: ChatRequest) -> Reply:
    """Play all three roles, looking only at what was sent."""
    match form_of(request):
        case "cross":
            return given(request, {"steps": [{"text": "Who paid invoice 77?", "documents": ["d1", "d2"]}]})
        case "revision":
            assert "cross-1" in request.texts("user")[-1]
            return given(request, {"steps": [{"id": "again", "text": "Look for invoice 77 in every document."}]})
        case "findings":
            return find(request)
        case "report":
            numbers = [int(number) for number in re.findall(r"^Claim (\d+): ", request.texts("user")[-1], re.MULTILINE)]
            claims = [{"text": "The county paid for the pump replaced on 4 May.", "sources": numbers}]
            return given(request, {"summary": "On 4 May; the county.", "claims": claims})
        case _:
            return say("I was asked for nothing I know.")


def find(request: ChatRequest) -> Reply:
    """Search first, and quote what the search brought; the first cross step finds nothing."""
    asked = request.texts("user")[-1]
    results = request.texts("tool")
    if not results:
        return use(ToolUse("search", {"query": "pump invoice paid"}), ToolUse("read", {"document": "d1"}))
    if asked.startswith("Question:") and "Who paid" in asked:
        assert "Result of step read-d1" in asked
        return given(request, {"claims": []})
    shown = re.findall(r'<document id=\\?"(d\d)\\?"[^>]*>\\n(.*?)\\n</document>', " ".join(results))
    one = re.search(r"Documents: (d\d) \(", asked)
    quotes = {document: text for document, text in shown if one is None or document == one[1]}
    claims = [{"text": text, "quotes": [{"document": document, "text": text}]} for document, text in quotes.items()]
    return given(request, {"claims": claims})


def given(request: ChatRequest, value: dict[str, Any]) -> Reply:
    if "final_answer" in request.tool_names:
        return use(ToolUse("final_answer", value))
    return say(json.dumps(value))


async def test_planner_executor_and_aggregator_work_over_http_and_revise_the_plan(tmp_path: Path) -> None:
    (tmp_path / "1.txt").write_text(FIRST)
    (tmp_path / "2.txt").write_text(SECOND)
    seen: list[Any] = []
    async with fake_server(answer) as server:
        report = await analyze(tmp_path, QUESTION, model=f"{server.url}#any", on_event=seen.append, timeout=50)
    published = [item.event for item in seen if hasattr(item, "event")]
    revised = [event for event in published if isinstance(event, PlanRevised)]
    ready = {event.step_id: len(event.inputs) for event in published if isinstance(event, StepReady)}
    assert report.status == "done", (report, ready)
    assert [claim.text for claim in report.claims] == ["The county paid for the pump replaced on 4 May."]
    assert {quote.text for quote in report.claims[0].quotes} == {FIRST, SECOND}
    assert [event.number for event in revised] == [1]
    assert ready == {"cross-1": 2, "r1.again": 0}
    assert sum(bool(request.texts("tool")) for request in server.requests) >= 4
    assert all(request.body.get("stream") for request in server.requests)
    assert report.usage["calls"] == len(server.requests)
