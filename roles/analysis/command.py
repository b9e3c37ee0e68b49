"""The command `swarmbus analyze`: documents and a question in, a report out, and an exit code that says how it went."""

from __future__ import annotations

import os
import sys
from contextlib import ExitStack, redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import anyio
import typer

from roles.analysis.documents import NoDocumentsError
from roles.analysis.events import StepAnalysed
from roles.analysis.pipeline import analyze as analyze_documents
from swarmbus.cli import ExitCode, notice, stopping, write_data
from swarmbus.console import RunProgress
from swarmbus.errors import UnknownModel

if TYPE_CHECKING:
    from typing import Any

    from roles.analysis.report import Report
    from swarmbus.cli import Stop

DEFAULT_MODEL = "openai:gpt-5-mini"
DEFAULT_KEY = "OPENAI_API_KEY"
"""The environment variable whose being set makes `DEFAULT_MODEL` the default."""

EXIT_CODES = {"done": ExitCode.DONE, "partial": ExitCode.PARTIAL, "limit": ExitCode.LIMIT}
"""All other ends are failures."""

UNREADABLE = ("empty", "encrypted", "no_text", "timed_out", "failed")


def analyze(
    paths: Annotated[list[Path], typer.Argument(metavar="PATH", help="Files and folders.", show_default=False)],
    *,
    question: Annotated[str, typer.Option(help="What is to be found out.", show_default=False)],
    model: Annotated[
        str | None, typer.Option(help=f"Such as {DEFAULT_MODEL} or offline.", show_default="by what is configured")
    ] = None,
    output: Annotated[
        Path | None, typer.Option(help="A file for the report, as Markdown.", show_default="standard output")
    ] = None,
    json: Annotated[Path | None, typer.Option(help="A file for the report, as JSON; - for standard output.")] = None,
    timeout: Annotated[float | None, typer.Option(help="Seconds until the analysis is given up.", min=0.001)] = None,
) -> None:
    """Answer a question from many documents; every claim of the report quotes where it is from."""
    if not question.strip():
        raise typer.BadParameter("say what is to be found out", param_hint="--question")
    for option, path in (("--output", output), ("--json", json)):
        _refuse_unwritable(option, path)
    chosen = model or _default_model()
    try:
        report, stopped = _analyzed(paths, question, chosen, timeout)
    except UnknownModel as error:
        raise typer.BadParameter(str(error), param_hint="--model") from error
    except NoDocumentsError as error:
        raise typer.BadParameter(str(error), param_hint="PATH") from error
    written = _write(report, output, json)
    _say(report)
    raise typer.Exit(stopped or (EXIT_CODES.get(report.status, ExitCode.FAILED) if written else ExitCode.FAILED))


def _default_model() -> str:
    if os.environ.get(DEFAULT_KEY):
        notice(f"note: {DEFAULT_KEY} is set, so the model is {DEFAULT_MODEL}; choose another with --model")
        return DEFAULT_MODEL
    notice(
        f"note: {DEFAULT_KEY} is not set, so the model is `offline`, which quotes passages instead of writing; "
        "choose another with --model"
    )
    return "offline"


def _analyzed(paths: list[Path], question: str, model: str, timeout: float | None) -> tuple[Report, int | None]:
    """Return the report, and the exit code of a signal that stopped the analysis."""
    with ExitStack() as stack:
        stop = stack.enter_context(stopping())
        stack.enter_context(redirect_stdout(sys.stderr))
        progress = stack.enter_context(RunProgress(lambda: stop.notice))
        report = anyio.run(lambda: _watched(paths, question, stop, progress, model=model, timeout=timeout))
    return report, stop.code


async def _watched(
    paths: list[Path], question: str, stop: Stop, progress: RunProgress, *, model: str, timeout: float | None
) -> Report:
    def on_reading(path: str, status: str | None) -> None:
        progress.note_work("documents", path, status, failed=status in UNREADABLE)

    def on_event(item: Any) -> None:
        progress.note(item)
        step = getattr(item, "event", None)
        if isinstance(step, StepAnalysed):
            told = f"{step.status}, {_counted(len(step.claims), 'claim')}"
            progress.note_work("steps", step.step_id, told, failed=step.status == "failed")

    return await analyze_documents(
        paths,
        question,
        model=model,
        timeout=timeout,
        stop=stop.wait,
        on_reading=on_reading,
        on_event=on_event,
    )


def _refuse_unwritable(option: str, path: Path | None) -> None:
    """Refuse a file that can't be written before anything is spent on what would stand in it."""
    if path is None or str(path) == "-":
        return
    if path.is_dir():
        raise typer.BadParameter(f"{path} is a folder; name a file", param_hint=option)
    if not path.parent.is_dir():
        raise typer.BadParameter(f"there is no folder {path.parent}", param_hint=option)
    if not os.access(path if path.exists() else path.parent, os.W_OK):
        raise typer.BadParameter(f"no permission to write {path}", param_hint=option)


def _write(report: Report, output: Path | None, json: Path | None) -> bool:
    """Write the report wherever it is wanted; what a file can't take goes to standard output, lest it be lost."""
    to_screen = json is not None and str(json) == "-"
    written = True
    for path, text in ((output, report.to_markdown()), (json, report.to_json())):
        if path is None or str(path) == "-":
            continue
        try:
            write_data(text, path)
        except OSError as error:
            notice(f"error: {path} can't be written: {error}; the report follows on standard output")
            write_data(text)
            written = False
    if to_screen:
        write_data(report.to_json())
    elif output is None and json is None:
        write_data(report.to_markdown())
    return written


def _say(report: Report) -> None:
    """Say in a few lines how it went, for those who don't read the report yet."""
    for warning in report.warnings:
        notice(f"warning: {warning}")
    for failure in report.failures:
        notice(f"{failure.step} {failure.status}: {failure.reason}")
    unread = [document for document in report.documents if document.status in UNREADABLE]
    for document in unread:
        notice(f"{document.path}: {document.status}{f': {document.reason}' if document.reason else ''}")
    read = len(report.documents) - len(unread)
    documents = _counted(len(report.documents), "document")
    notice(f"{report.status}: {_counted(len(report.claims), 'claim')} from {read} of {documents}")


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"
