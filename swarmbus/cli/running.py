"""One run from the command line: how it ends, and the report of what it brought."""

from __future__ import annotations

import json
import time
from dataclasses import asdict, fields
from typing import TYPE_CHECKING, Any

import anyio

from swarmbus.cli.interrupts import GRACE
from swarmbus.cli.output import ExitCode
from swarmbus.errors import RunEnded, RunFailed
from swarmbus.events import event_name, to_json
from swarmbus.messages import Usage
from swarmbus.results import Lifecycle, RunResult

if TYPE_CHECKING:
    from collections.abc import Callable

    from swarmbus.cli.foreign import ProgramEnded
    from swarmbus.cli.interrupts import Stop
    from swarmbus.cli.person import Person
    from swarmbus.console import RunProgress
    from swarmbus.events import Event
    from swarmbus.results import Failure
    from swarmbus.run import Run
    from swarmbus.swarm import Swarm

NO_RESULT = (
    "the event table names no `result=`, so the run was done when it came to rest and brought no event; "
    "say there which event is the result, to have it printed"
)

NOTHING_MORE = "it came to rest without a result, and the command line has no further event to send"


class Outcome:
    """How a run ended.

    Attributes:
        status: `done`; `partial`, if it is done although some of it failed; `failed`, `stalled`, `timed_out`,
            `cancelled`, `stopped` or `limit`.
        result: what it brought until then.
        error: what says why there is no more, unless it is done.
    """

    def __init__(self, status: str, result: RunResult[Any], error: RunEnded | None = None) -> None:
        self.status = "partial" if status == "done" and result.failures else status
        self.result = result
        self.error = error

    @property
    def exit_code(self) -> int:
        """The code that says so."""
        return ExitCode.of(self.status)

    @property
    def reason(self) -> str | None:
        """Why there is no output; None where there is one."""
        if self.error is not None:
            return str(self.error)
        return NO_RESULT if self.result.output is None else None

    def report(self) -> str:
        """Return it as JSON."""
        result = self.result
        document = {
            "run_id": result.run_id,
            "status": self.status,
            "reason": self.reason,
            "event": event_name(result.output) if result.output is not None else None,
            "output": json.loads(to_json(result.output)) if result.output is not None else None,
            "failures": [_told(failure) for failure in result.failures],
            "warnings": list(result.warnings),
            "usage": asdict(result.usage),
            "usage_by_role": {role: asdict(usage) for role, usage in result.usage_by_role.items()},
            "started": result.started,
            "ended": result.ended,
        }
        return json.dumps(document, indent=2, ensure_ascii=False) + "\n"


def without_result(error: ProgramEnded) -> Outcome:
    """Return how a run ended whose code ended the program, and the event loop with it: nobody knows more of it."""
    now = time.time()
    result: RunResult[Any] = RunResult(None, "", Usage(), {}, (), (), now, now)
    failed = RunFailed(str(error), result)
    failed.__cause__ = error.__cause__
    return Outcome("failed", result, failed)


def _told(failure: Failure) -> dict[str, Any]:
    """Return what JSON can hold of a failure: all but the exception, which may be of any class and not even copied."""
    return {field.name: getattr(failure, field.name) for field in fields(failure) if field.name != "exception"}


async def run_to_end(
    swarm: Swarm[Any],
    event: Event,
    stop: Stop,
    progress: RunProgress,
    person: Person,
    *,
    on_end: Callable[[Outcome], None],
    timeout: float | None = None,
) -> Outcome:
    """Run a swarm on an event until the run ends, or until somebody asks for a stop: then it is drained.

    Args:
        swarm: the swarm, with a sound wiring.
        event: one that the table accepts from the client.
        stop: says when somebody asks for a stop.
        progress: is told each item of `run.events()`, and of the stop.
        person: answers the run's questions.
        on_end: is called with what is returned, which may take long where something does not stop.
        timeout: seconds until the run is given up.

    Raises:
        SwarmbusError: the run could not be started.
    """
    async with swarm.open(grace=GRACE) as live:
        run = await live.submit(event, timeout=timeout)
        async with anyio.create_task_group() as group:
            group.start_soon(_cancel_on, stop, run, progress, group.cancel_scope)
            async for item in run.events():
                progress.note(item)
                if isinstance(item, Lifecycle) and item.type == "question_asked":
                    group.start_soon(person.answer, run)
                elif run.status == "waiting":
                    await run.cancel(NOTHING_MORE)
            group.cancel_scope.cancel()
        await live.drain()
        outcome = await _outcome(run)
        on_end(outcome)
    return outcome


async def _outcome(run: Run[Any]) -> Outcome:
    try:
        return Outcome("done", await run.result())
    except RunEnded as ended:
        return Outcome(run.status, ended.result, ended)


async def _cancel_on(stop: Stop, run: Run[Any], progress: RunProgress, scope: anyio.CancelScope) -> None:
    await stop.wait()
    progress.note_stop(run.under_way, GRACE)
    scope.cancel()
