"""The analysis over real HTTP, streaming and tool calls: with dependencies, and a plan that has to be revised.

What is asked for stands in three documents that lead from one to the next: the pump's invoice, the receipt for the
invoice, and who signed the receipt. Only the planner's second thought follows them to the end.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
import pytest

from roles.analysis import analyze
from roles.analysis.events import StepAnalysed
from roles.standard import PlanRevised, StepReady
from support.fake_openai import ChatRequest, Reply, ToolUse, fake_server, refuse, threaded_fake_server

if TYPE_CHECKING:
    from collections.abc import Callable

QUESTION = "Which pump was replaced, and who signed for it?"
TEXTS = {
    "1-order.txt": "The pump of the northern basin was replaced on 4 May, on invoice 77.",
    "2-ledger.txt": "Invoice 77 was settled with receipt R-5, like the pump before it.",
    "3-receipts.txt": "Receipt R-5 was signed by the county.",
}
CROSS = {"text": "Who signed invoice 77?", "documents": ["d1", "d2"]}
SECOND_THOUGHT = {"id": "receipt", "text": "Who signed the receipt that was found?", "depends_on": ["read-d2"]}


@pytest.fixture
def documents(tmp_path: Path) -> Path:
    folder = tmp_path / "papers"
    folder.mkdir()
    for name, text in TEXTS.items():
        (folder / name).write_text(text)
    return folder


def answer(request: ChatRequest) -> str | list[ToolUse]:
    """Play all three roles, told apart by the form that is asked for and the tools that are offered."""
    asked = request.texts("user")[-1]
    if request.tool_names:
        return carry_out(request, asked)
    form = request.body["response_format"]["json_schema"]["name"]
    if form == "CrossSteps":
        return json.dumps({"steps": [CROSS]})
    if form == "Revision":
        return json.dumps({"steps": [SECOND_THOUGHT] if "Step cross-1 brought nothing" in asked else []})
    assert form == "ReportDraft"
    claims = re.findall(r"^Claim (\d+): (.*)$", asked, re.MULTILINE)
    drafts = [{"text": text, "sources": [int(number)]} for number, text in claims]
    return json.dumps({"summary": f"{len(drafts)} claims answer it.", "claims": drafts})


def carry_out(request: ChatRequest, asked: str) -> list[ToolUse]:
    """Use the tools, then quote from what they brought: one document on pumps, or whoever signed something."""
    one = re.search(r"^Documents: (d\d) \([^,]*\)$", asked, re.MULTILINE)
    if request.last["role"] == "tool":
        quoted = [passage for passage in passages(request) if to_the_point(*passage, one)]
        claims = [{"text": text, "quotes": [{"document": document, "text": text}]} for document, text in quoted]
        return [ToolUse("final_answer", {"claims": claims})]
    if one is not None:
        return [ToolUse("read", {"document": one[1]}), ToolUse("search", {"query": "pump"})]
    receipt = re.search(r"receipt R-\d", asked) if "Who signed the receipt" in asked else None
    return [ToolUse("search", {"query": "invoice 77" if receipt is None else receipt[0]})]


def to_the_point(document: str, text: str, one: re.Match[str] | None) -> bool:
    return "signed by" in text if one is None else document == one[1] and "pump" in text


def passages(request: ChatRequest) -> dict[tuple[str, str], None]:
    """Return document and text of all passages that tools brought."""
    brought = [passage for result in request.texts("tool") for passage in json.loads(result)["passages"]]
    found = (re.fullmatch(r'<document id="(d\d)"[^>]*>\n(.*)\n</document>', passage) for passage in brought)
    return dict.fromkeys((match[1], match[2]) for match in found if match is not None)


async def test_the_report_holds_what_only_the_revised_plan_found(documents: Path) -> None:
    async with fake_server(answer) as server:
        report = await analyze(documents, QUESTION, model=f"{server.url}#any", timeout=50)
    assert (report.status, report.failures, report.warnings) == ("done", (), ())
    assert [claim.text for claim in report.claims] == list(TEXTS.values())
    paths = {document.id: Path(document.path) for document in report.documents}
    for claim in report.claims:
        (quote,) = claim.quotes
        assert quote.verified
        assert paths[quote.document].read_text()[quote.start : quote.end] == quote.text == claim.text


async def test_steps_wait_for_those_they_depend_on_and_the_plan_is_revised_once(documents: Path) -> None:
    seen: list[Any] = []
    async with fake_server(answer) as server:
        await analyze(documents, QUESTION, model=f"{server.url}#any", on_event=seen.append, timeout=50)
    published = [item.event for item in seen if hasattr(item, "event")]
    revised = [event for event in published if isinstance(event, PlanRevised)]
    released = {e.step_id: [done.step_id for done in e.inputs] for e in published if isinstance(e, StepReady)}
    assert [(event.number, [step.id for step in event.steps]) for event in revised] == [(1, ["r1.receipt"])]
    assert revised[0].steps[0].text.startswith(f"Question: {QUESTION}\nDocuments: all\n\n")
    assert released == {"cross-1": ["read-d1", "read-d2"], "r1.receipt": ["read-d2"]}


async def test_every_call_and_tool_result_goes_over_http_as_a_stream(documents: Path) -> None:
    async with fake_server(answer) as server:
        report = await analyze(documents, QUESTION, model=f"{server.url}#any", timeout=50)
    assert all(request.body["stream"] for request in server.requests)
    assert report.usage["calls"] == len(server.requests)
    assert report.usage["input_tokens"] == 10 * len(server.requests)
    results = sorted(len(request.texts("tool")) for request in server.requests if request.texts("tool"))
    assert results == [1, 1, 2, 2, 2]
    with_tools = [set(request.tool_names) for request in server.requests if request.tool_names]
    assert with_tools == [{"search", "read", "final_answer"}] * 10


def test_the_command_ends_well_with_such_a_server(documents: Path, tmp_path: Path) -> None:
    written = tmp_path / "out.json"
    with threaded_fake_server(answer) as server:
        command = [sys.executable, "-m", "swarmbus", "analyze", str(documents), "--question", QUESTION]
        command += ["--model", f"{server.url}#any", "--json", str(written), "--timeout", "50"]
        run = subprocess.run(command, capture_output=True, text=True, check=False, timeout=55)
    assert run.returncode == 0, run.stderr
    report = json.loads(written.read_text())
    assert (report["status"], report["model"]) == ("done", f"{server.url}#any")
    assert [claim["text"] for claim in report["claims"]] == list(TEXTS.values())
    assert all(quote["verified"] for claim in report["claims"] for quote in claim["quotes"])


async def test_a_document_of_fifty_whose_requests_all_fail_costs_only_itself(tmp_path: Path) -> None:
    for number in range(1, 51):
        (tmp_path / f"{number:02}.txt").write_text(f"Finding number {number}.")

    def reply(request: ChatRequest) -> str | list[ToolUse] | Reply:
        asked = request.texts("user")[-1]
        if not request.tool_names:
            form = request.body["response_format"]["json_schema"]["name"]
            return json.dumps({"steps": []} if form == "CrossSteps" else {"summary": "all", "claims": []})
        document = asked.split("Documents: ")[1].split(" ", 1)[0]
        if document == "d13":
            return refuse(500, "out of order", {"retry-after": "0"})
        quotes = [{"document": document, "text": f"number {document[1:]}"}]
        return [ToolUse("final_answer", {"claims": [{"text": document, "quotes": quotes}]})]

    found: list[StepAnalysed] = []
    async with fake_server(reply) as server:
        watch = on_step(found)
        report = await analyze(tmp_path, "Which numbers were found?", model=f"{server.url}#fake", on_event=watch)
        asked = len(server.requests)
        await anyio.wait_all_tasks_blocked()
        assert len(server.requests) == asked
    assert sum("Documents: d13 " in request.texts("user")[-1] for request in server.requests) == 3
    assert sorted(step.step_id for step in found if step.status == "done") == sorted(
        f"read-d{number}" for number in range(1, 51) if number != 13
    )
    (failure,) = report.failures
    assert (report.status, report.step_names[failure.step]) == ("partial", str(tmp_path / "13.txt"))
    assert "out of order" in failure.reason


def on_step(found: list[StepAnalysed]) -> Callable[[Any], None]:
    def watch(item: Any) -> None:
        event = getattr(item, "event", None)
        if isinstance(event, StepAnalysed):
            found.append(event)

    return watch
