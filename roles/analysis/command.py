"""The command `swarmbus analyze`: documents and a question in, a report out, and an exit code that says how it went."""

from __future__ import annotations

import os
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import anyio
import typer

from roles.analysis.destinations import (
    STANDARD_OUTPUT,
    DestinationError,
    documents_beside,
    keeps_more,
    refuse_one_for_two,
)
from roles.analysis.documents import NOT_READ, NoDocumentsError, document_ids, nowhere
from roles.analysis.pipeline import analyze as analyze_documents
from roles.analysis.pipeline import clean_question
from roles.analysis.roles import DOCUMENT_STEP
from roles.analysis.step_progress import StepProgress
from swarmbus.cli import (
    GRACE,
    STREAMS,
    ExitCode,
    Leaving,
    WriteError,
    named_file,
    notice,
    stopping,
    unwritable,
    user_code,
    write_data,
)
from swarmbus.console import RunProgress
from swarmbus.errors import UnknownModel

if TYPE_CHECKING:
    from roles.analysis.report import Report
    from swarmbus.cli import Stop

DEFAULT_MODEL = "openai:gpt-5-mini"
DEFAULT_KEY = "OPENAI_API_KEY"
"""The environment variable whose being set makes `DEFAULT_MODEL` the default."""

UNREADABLE = ("empty", "encrypted", "no_text", "timed_out", "failed")


def analyze(
    paths: Annotated[list[str], typer.Argument(metavar="PATH", help="Files and folders.", show_default=False)],
    *,
    question: Annotated[str, typer.Option(help="What is to be found out.", show_default=False)],
    model: Annotated[
        str | None, typer.Option(help=f"Such as {DEFAULT_MODEL} or offline.", show_default="by what is configured")
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            metavar="PATH",
            parser=named_file,
            help="A file for the report, as Markdown; - for standard output.",
            show_default="-",
        ),
    ] = None,
    json: Annotated[
        Path | None,
        typer.Option(metavar="PATH", parser=named_file, help="A file for the report, as JSON; - for standard output."),
    ] = None,
    timeout: Annotated[float | None, typer.Option(help="Seconds until the analysis is given up.", min=0.001)] = None,
) -> None:
    """Answer a question from many documents; every claim of the report quotes where it is from."""
    destinations = {option: path for option, path in (("--output", output), ("--json", json)) if path is not None}
    files = _documents(paths, question, destinations)
    chosen = _default_model() if model is None else model
    try:
        code = _analyzed(files, question, chosen, timeout, destinations or {"--output": STANDARD_OUTPUT})
    except UnknownModel as error:
        raise typer.BadParameter(str(error), param_hint="--model") from error
    raise typer.Exit(code)


def _documents(paths: list[str], question: str, destinations: dict[str, Path]) -> list[str]:
    """Return the files to read; what can't be is refused before anything is spent on it."""
    try:
        clean_question(question)
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="--question") from error
    lost = nowhere(paths)
    if lost:
        raise typer.BadParameter("; ".join(lost), param_hint="PATH")
    if sys.stdout is None and (not destinations or STANDARD_OUTPUT in destinations.values()):
        raise typer.BadParameter("standard output is closed; name a file for the report", param_hint="--output")
    files = {option: path for option, path in destinations.items() if path != STANDARD_OUTPUT}
    for option, path in files.items():
        if reason := unwritable(path):
            raise typer.BadParameter(reason, param_hint=option)
    try:
        refuse_one_for_two(destinations)
        documents, reports = documents_beside(paths, files)
    except DestinationError as error:
        raise typer.BadParameter(str(error), param_hint=error.option) from error
    except NoDocumentsError as error:
        raise typer.BadParameter(str(error), param_hint="PATH") from error
    for report in reports:
        notice(f"note: {report} is where the report goes, so it is not read as a document")
    return documents


def _default_model() -> str:
    if os.environ.get(DEFAULT_KEY):
        notice(f"note: {DEFAULT_KEY} is set, so the model is {DEFAULT_MODEL}; choose another with --model")
        return DEFAULT_MODEL
    notice(
        f"note: {DEFAULT_KEY} is not set, so the model is `offline`, which quotes passages instead of writing; "
        "choose another with --model"
    )
    return "offline"


def _analyzed(files: list[str], question: str, model: str, timeout: float | None, destinations: dict[str, Path]) -> int:
    """Write the report, and return the exit code."""
    with ExitStack() as stack:
        stop = stack.enter_context(stopping())
        screen = stack.enter_context(ExitStack())
        screen.enter_context(user_code())
        progress = screen.enter_context(RunProgress(lambda: stop.notice, stream=STREAMS.notices))

        def tell(report: Report) -> int:
            screen.close()
            return _told(report, destinations, stop)

        settings: Any = {
            "model": model,
            "timeout": timeout,
            "on_report": stack.enter_context(Leaving(stop, tell)).begin,
        }
        report = anyio.run(lambda: _watched(files, question, stop, progress, **settings))
    return _told(report, destinations, stop)


def _told(report: Report, destinations: dict[str, Path], stop: Stop) -> int:
    written = _write(report, destinations)
    _say(report)
    return stop.code or (ExitCode.of(report.status) if written else ExitCode.FAILED)


async def _watched(files: list[str], question: str, stop: Stop, progress: RunProgress, **settings: Any) -> Report:
    names = {f"{DOCUMENT_STEP}{document}": path for path, document in document_ids(files).items()}

    def on_reading(path: str, status: str | None) -> None:
        progress.note_work("documents", path, status, failed=status in UNREADABLE)

    steps = StepProgress(names, lambda name, status, failed: progress.note_work("steps", name, status, failed=failed))

    def on_event(item: Any) -> None:
        progress.note(item)
        steps.note(item)

    return await analyze_documents(
        files,
        question,
        stop=stop.wait,
        grace=GRACE,
        on_stop=lambda under_way: progress.note_stop(under_way, GRACE),
        on_reading=on_reading,
        on_event=on_event,
        **settings,
    )


def _write(report: Report, destinations: dict[str, Path]) -> bool:
    """Write the report wherever it is wanted; what a file can't take goes to standard output, lest it be lost."""
    written = True
    for option, path in destinations.items():
        text = report.to_json() if option == "--json" else report.to_markdown()
        if path == STANDARD_OUTPUT:
            write_data(text)
        elif keeps_more(path, report):
            notice(f"note: {path} was left as it was, as this report ({report.status}) holds no answer to put there")
        else:
            try:
                write_data(text, path)
            except WriteError as error:
                notice(f"error: {error}; the report follows on standard output")
                write_data(text)
                written = False
    return written


def _say(report: Report) -> None:
    """Say in a few lines how it went, for those who don't read the report yet."""
    for warning in report.warnings:
        notice(f"warning: {warning}")
    names = report.step_names
    for failure in report.failures:
        notice(f"{names.get(failure.step, failure.step)}: {failure.status}: {failure.reason}")
    unread = [document for document in report.documents if document.status in UNREADABLE]
    for document in unread:
        if document.reason != NOT_READ:  # these may be thousands; the last line counts them
            notice(f"{document.path}: {document.status}{f': {document.reason}' if document.reason else ''}")
    if report.status not in ("done", "partial"):
        notice(report.summary)
    read = len(report.documents) - len(unread)
    documents = _counted(len(report.documents), "document")
    notice(f"{report.status}: {_counted(len(report.claims), 'claim')} from {read} of {documents}")


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"
