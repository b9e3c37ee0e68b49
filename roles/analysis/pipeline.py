"""The analysis from end to end: documents in, report out."""

from __future__ import annotations

import math
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
import anyio.to_thread

from roles.analysis.bounds import QUESTION_TEXT
from roles.analysis.decoding import replace_controls
from roles.analysis.documents import NOT_READ, load_documents, path_of, printable
from roles.analysis.events import AnalysisReady, AnalysisRequested, DocumentInfo, StepAnalysed
from roles.analysis.report_assembly import ReportAssembly
from roles.analysis.roles import AnalysisAggregator, AnalysisExecutor, AnalysisPlanner
from roles.analysis.stopping import unless_stopped
from roles.analysis.store import DocumentStore
from roles.analysis.words import words_of
from roles.standard import PlanRevised, StepDone, StepReady, TaskPlanned
from swarmbus import CLIENT, SYSTEM, Event, EventTable, HandlerFailed, Swarm
from swarmbus.errors import RunEnded
from swarmbus.models import resolve_model

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping

    from roles.analysis.reading_pool import ReadingLimits
    from roles.analysis.report import Report
    from swarmbus import Run
    from swarmbus.models import Model

    Watch = Callable[[Any], None]

_LEAST_SECONDS = 0.001


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
    documents = await load_documents([path_of(path) for path in event.paths])
    with await anyio.to_thread.run_sync(DocumentStore, documents) as store:
        yield store


def clean_question(question: str) -> tuple[str, int]:
    """Return a question as text that any file can hold, and how many characters of it were none and were replaced.

    Raises:
        ValueError: it has no word that could be searched for, or is longer than every prompt can hold.
    """
    cleaned, count = replace_controls(question)
    if len(cleaned) > QUESTION_TEXT:
        raise ValueError(
            f"the question has {len(cleaned)} characters; say it in {QUESTION_TEXT}, and give what it rests on as a "
            "document"
        )
    if not words_of(cleaned):
        raise ValueError(f"the question {cleaned!r} has no word to search for; say in words what is to be found out")
    return cleaned, count


async def analyze(
    paths: Iterable[str | Path] | str | Path,
    question: str,
    *,
    model: str | Model = "offline",
    limits: ReadingLimits | None = None,
    timeout: float | None = None,
    stop: Callable[[], Awaitable[object]] | None = None,
    grace: float = 10.0,
    on_stop: Callable[[Mapping[str, int]], None] | None = None,
    on_reading: Callable[[str, Any], None] | None = None,
    on_event: Watch | None = None,
    on_report: Callable[[Report], None] | None = None,
    **settings: Any,
) -> Report:
    """Analyse documents with regard to a question.

    Args:
        paths: files and folders.
        question: what is to be found out.
        model: a model or the name of one.
        limits: what the reading of one file may cost.
        timeout: seconds after which the analysis is given up, from the first document on; the report then holds what
            was found.
        stop: returns when somebody asks for a stop: nothing new starts then, and the report holds what was found.
        grace: seconds that what is under way gets then.
        on_stop: is called with `run.under_way` when a stop is asked for during the run.
        on_reading: is called with a path and None when its reading begins, and with its status when it is over.
        on_event: is called with everything that `run.events()` yields.
        on_report: is called with what is returned, which may take long where a model does not stop.
        settings: further settings of the swarm, such as `budget` or `journal`.

    Raises:
        NoDocumentsError: nothing that could be a document was given.
        UnknownModel: nothing resolves the model's name.
        ValueError: the question has no word that could be searched for, or is too long.
    """
    given = [paths] if isinstance(paths, str | Path) else list(paths)
    asked, replaced = clean_question(question)
    resolved = resolve_model(model)
    swarm = analysis_swarm(resolved, **settings)
    deadline = math.inf if timeout is None else anyio.current_time() + timeout
    documents = await load_documents(given, limits, on_reading, lambda: _given_up(stop, deadline))
    assembly = ReportAssembly(documents, asked, resolved.name, replaced)
    if any(document.reason == NOT_READ for document in documents):
        return assembly.unread("stopped" if anyio.current_time() < deadline else "timed_out")
    with await anyio.to_thread.run_sync(DocumentStore, documents) as store:
        found: list[StepAnalysed] = []
        async with swarm.open(grace=grace) as live:
            run = await live.submit(_request(asked, given, store), timeout=_left(deadline), deps=store)
            reading = run.events()
            seen = await unless_stopped(stop, lambda: _watch(reading, found, on_event))
            if not seen and on_stop is not None:
                on_stop(run.under_way)
            await live.drain()
            await _watch(reading, found, on_event)  # what was finished within the grace time
            report = await _outcome(run, assembly, found)
            if on_report is not None:
                on_report(report)
        return report


def _request(task: str, paths: Iterable[str | Path], store: DocumentStore) -> AnalysisRequested:
    documents = (DocumentInfo(id=d.id, title=d.title, characters=len(d.text)) for d in store.readable)
    return AnalysisRequested(task=task, paths=tuple(map(printable, paths)), documents=tuple(documents))


async def _given_up(stop: Callable[[], Awaitable[object]] | None, deadline: float) -> None:
    """Wait until a stop is asked for, or the time is over."""
    with anyio.CancelScope(deadline=deadline):
        await (anyio.sleep_forever() if stop is None else stop())


def _left(deadline: float) -> float | None:
    """Return the seconds that are left for a run: some, however long the reading took."""
    return None if deadline == math.inf else max(_LEAST_SECONDS, deadline - anyio.current_time())


async def _watch(reading: AsyncIterator[Any], found: list[StepAnalysed], on_event: Watch | None) -> bool:
    """Follow a run, keeping what its steps find; return that it was seen to its end."""
    async for item in reading:
        event = getattr(item, "event", None)
        if isinstance(event, StepAnalysed):
            found.append(event)
        if on_event is not None:
            on_event(item)
    return True


async def _outcome(run: Run[AnalysisReady], assembly: ReportAssembly, found: list[StepAnalysed]) -> Report:
    try:
        result = await run.result()
    except RunEnded as ended:
        claims = tuple(claim for step in found for claim in step.claims)
        return assembly.report(ended.result, run.status, str(ended), claims, found, ())
    answer = result.output
    return assembly.report(result, "done", answer.summary, answer.claims, answer.steps, answer.notes)
