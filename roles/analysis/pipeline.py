"""The analysis from end to end: documents in, report out."""

from __future__ import annotations

from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import anyio

from roles.analysis.documents import load_documents
from roles.analysis.events import AnalysisReady, AnalysisRequested, DocumentInfo, StepAnalysed
from roles.analysis.report import DocumentEntry, FailureEntry, Report
from roles.analysis.roles import AnalysisAggregator, AnalysisExecutor, AnalysisPlanner
from roles.analysis.store import DocumentStore
from roles.standard import PlanRevised, StepDone, StepReady, TaskPlanned
from swarmbus import CLIENT, SYSTEM, Event, EventTable, HandlerFailed, Swarm
from swarmbus.errors import RunEnded
from swarmbus.models import resolve_model

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence

    from roles.analysis.documents import Document
    from roles.analysis.events import QuotedClaim
    from roles.analysis.reading import ReadingLimits
    from roles.analysis.report import Status
    from swarmbus import Run, RunResult
    from swarmbus.models import Model

    Watch = Callable[[Any], None]


T = TypeVar("T")


def analysis_table() -> EventTable[AnalysisReady]:
    """Return the event table of the analysis."""
    return EventTable(
        (CLIENT, AnalysisRequested, "planner"),
        ("planner", TaskPlanned, ("planner", "executor", "aggregator")),
        ("planner", StepReady, "executor"),
        ("executor", StepAnalysed, ("planner", "aggregator")),
        ("planner", StepDone, ("planner", "aggregator")),
        ("planner", PlanRevised, CLIENT),
        (SYSTEM, HandlerFailed, "planner"),
        ("aggregator", AnalysisReady, CLIENT),
        result=AnalysisReady,
    )


def analysis_swarm(model: str | Model = "offline", **settings: Any) -> Swarm[AnalysisReady]:
    """Return the swarm of the analysis; registered as `analysis`.

    Args:
        model: the model of all three roles.
        settings: further settings of `Swarm`.
    """
    return Swarm(
        AnalysisPlanner(),
        AnalysisExecutor(),
        AnalysisAggregator(),
        table=analysis_table(),
        model=model,
        deps=open_store,
        **settings,
    )


@asynccontextmanager
async def open_store(event: Event) -> AsyncIterator[DocumentStore]:
    """Load the documents that a run is about, so that any process can go on with it."""
    assert isinstance(event, AnalysisRequested)
    with DocumentStore(await load_documents(event.paths)) as store:
        yield store


async def analyze(
    paths: Iterable[str | Path] | str | Path,
    question: str,
    *,
    model: str | Model = "offline",
    limits: ReadingLimits | None = None,
    timeout: float | None = None,
    stop: Callable[[], Awaitable[object]] | None = None,
    grace: float = 10.0,
    on_reading: Callable[[str, Any], None] | None = None,
    on_event: Watch | None = None,
    **settings: Any,
) -> Report:
    """Analyse documents with regard to a question.

    Args:
        paths: files and folders.
        question: what is to be found out.
        model: a model or the name of one.
        limits: what the reading of one file may cost.
        timeout: seconds after which the analysis is given up; the report then holds what was found.
        stop: returns when somebody asks for a stop: nothing new starts then, and the report holds what was found.
        grace: seconds that what is under way gets then.
        on_reading: is called with a path and None when its reading begins, and with its status when it is over.
        on_event: is called with everything that `run.events()` yields.
        settings: further settings of the swarm, such as `budget` or `journal`.

    Raises:
        NoDocumentsError: nothing that could be a document was given.
        UnknownModel: nothing resolves the model's name.
    """
    given = [paths] if isinstance(paths, str | Path) else list(paths)
    resolved = resolve_model(model)
    swarm = analysis_swarm(resolved, **settings)
    documents = await _unless(stop, lambda: load_documents(given, limits, on_reading))
    if documents is None:
        return _Frame((), question, resolved.name).unread("Stopped while the documents were being read.")
    with DocumentStore(documents) as store:
        request = AnalysisRequested(
            task=question,
            paths=tuple(str(path) for path in given),
            documents=tuple(DocumentInfo(id=d.id, title=d.title, characters=len(d.text)) for d in store.readable),
        )
        found: list[StepAnalysed] = []
        async with swarm.open(grace=grace) as live:
            run = await live.submit(request, timeout=timeout, deps=store)
            await _unless(stop, lambda: _watch(run, found, on_event))
        return await _outcome(run, _Frame(documents, question, resolved.name), found)


async def _unless(stop: Callable[[], Awaitable[object]] | None, work: Callable[[], Awaitable[T]]) -> T | None:
    """Return what the work brings, or None where somebody asked for a stop before."""
    if stop is None:
        return await work()
    brought: list[T] = []
    failed: list[Exception] = []

    async def wait() -> None:
        await stop()
        group.cancel_scope.cancel()

    async with anyio.create_task_group() as group:
        group.start_soon(wait)
        try:
            brought.append(await work())
        except Exception as error:  # noqa: BLE001  # raised again below, outside the task group
            failed.append(error)
        group.cancel_scope.cancel()
    if failed:
        raise failed[0]
    return brought[0] if brought else None


async def _watch(run: Run[AnalysisReady], found: list[StepAnalysed], on_event: Watch | None) -> None:
    """Follow a run to its end, keeping what its steps find."""
    async for item in run.events():
        event = getattr(item, "event", None)
        if isinstance(event, StepAnalysed):
            found.append(event)
        if on_event is not None:
            on_event(item)


async def _outcome(run: Run[AnalysisReady], frame: _Frame, found: list[StepAnalysed]) -> Report:
    try:
        result = await run.result()
    except RunEnded as ended:
        claims = tuple(claim for step in found for claim in step.claims)
        return frame.report(ended.result, _status(run.status), str(ended), claims, found, ())
    answer = result.output
    return frame.report(result, "done", answer.summary, answer.claims, answer.steps, answer.notes)


@dataclass(frozen=True, slots=True)
class _Frame:
    """What a report says of the analysis whatever comes of it."""

    documents: tuple[Document, ...]
    question: str
    model: str

    def unread(self, summary: str) -> Report:
        """Return the report of an analysis that was stopped before it had anything to analyse."""
        return Report(
            run_id="",
            question=self.question,
            model=self.model,
            status="stopped",
            summary=summary,
            claims=(),
            documents=(),
            failures=(),
            warnings=(),
            usage={},
        )

    def report(  # noqa: PLR0917  # what a report is made of, in the order in which it stands there
        self,
        result: RunResult[Any],
        status: Status,
        summary: str,
        claims: Sequence[QuotedClaim],
        steps: Sequence[StepDone],
        notes: Sequence[str],
    ) -> Report:
        failures = tuple(
            FailureEntry(step=step.step_id, status=step.status, reason=step.error)
            for step in steps
            if step.status in ("failed", "skipped")
        )
        if status == "done" and not any(document.readable for document in self.documents):
            status, summary = "failed", "No document could be read."
        elif status == "done" and (failures or any(_lost(document) for document in self.documents)):
            status = "partial"
        read = (f"{document.path}: {warning}" for document in self.documents for warning in document.warnings)
        return Report(
            run_id=result.run_id,
            question=self.question,
            model=self.model,
            status=status,
            summary=summary,
            claims=tuple(claims),
            documents=tuple(_entry(document) for document in self.documents),
            failures=failures,
            warnings=(*read, *notes, *result.warnings),
            usage={name: int(value) for name, value in asdict(result.usage).items()},
        )


def _entry(document: Document) -> DocumentEntry:
    return DocumentEntry(
        id=document.id,
        path=document.path,
        status=document.status,
        reason=document.reason,
        pages=len(document.pages),
        characters=len(document.text),
        sha256=document.sha256,
    )


def _lost(document: Document) -> bool:
    return document.status not in ("read", "duplicate")


def _status(status: str) -> Status:
    known: dict[str, Status] = {
        "stalled": "stalled",
        "limit": "limit",
        "timed_out": "timed_out",
        "cancelled": "cancelled",
        "stopped": "stopped",
    }
    return known.get(status, "failed")
