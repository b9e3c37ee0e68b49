"""The command `run`: what is refused before it starts, what is shown while it runs, and what is said at its end."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import anyio
import typer

from swarmbus.cli import findings
from swarmbus.cli.first_event import read_event
from swarmbus.cli.foreign import ProgramEnded, user_code
from swarmbus.cli.interrupts import stopping
from swarmbus.cli.leaving import Leaving
from swarmbus.cli.output import ExitCode, notice, write_data
from swarmbus.cli.person import Person
from swarmbus.cli.running import run_to_end, without_result
from swarmbus.cli.streams import STREAMS
from swarmbus.cli.tracebacks import own_traceback
from swarmbus.console import RunProgress
from swarmbus.errors import UnknownModel
from swarmbus.models import resolve_model

if TYPE_CHECKING:
    from swarmbus.cli.interrupts import Stop
    from swarmbus.cli.running import Outcome
    from swarmbus.events import Event
    from swarmbus.swarm import Swarm


def run_and_report(swarm: Swarm[Any], written: str, *, model: str | None, timeout: float | None) -> int:
    """Run a swarm, print the report, and return the exit code.

    Raises:
        typer.BadParameter: there is no such event or model.
    """
    found = swarm.check()
    if findings.has_errors(found):
        notice(findings.to_text(found) + "nothing was started")
        return ExitCode.FINDINGS
    try:
        event = read_event(swarm, written)
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="--event") from error
    with stopping() as stop:
        try:
            outcome = _run(swarm, event, stop, model=model, timeout=timeout)
        except ProgramEnded as error:
            outcome = without_result(error)
        return _report(outcome, stop)


def _report(outcome: Outcome, stop: Stop) -> int:
    """Print how a run ended, and return the exit code."""
    write_data(outcome.report())
    _explain(outcome)
    return stop.code or outcome.exit_code


def _run(swarm: Swarm[Any], event: Event, stop: Stop, *, model: str | None, timeout: float | None) -> Outcome:
    with ExitStack() as stack:
        if model is not None:
            stack.enter_context(swarm.override(model=_known(model)))
        screen = stack.enter_context(ExitStack())
        screen.enter_context(user_code())
        progress = screen.enter_context(RunProgress(lambda: stop.notice, stream=STREAMS.notices))
        person = Person(progress.paused, timed=timeout is not None)

        def tell(outcome: Outcome) -> int:
            screen.close()
            return _report(outcome, stop)

        on_end = stack.enter_context(Leaving(stop, tell)).begin
        return anyio.run(lambda: run_to_end(swarm, event, stop, progress, person, on_end=on_end, timeout=timeout))


def _known(model: str) -> Any:
    try:
        return resolve_model(model)
    except UnknownModel as error:
        raise typer.BadParameter(str(error), param_hint="--model") from error


def _explain(outcome: Outcome) -> None:
    for warning in outcome.result.warnings:
        notice(f"warning: {warning}")
    for failure in outcome.result.failures:
        notice(f"failed: {failure}")
    if outcome.error is not None:
        cause = outcome.error.__cause__
        if cause is not None:
            notice(own_traceback(cause))
        notice(str(outcome.error))
    elif outcome.reason is not None:
        notice(f"note: {outcome.reason}")
