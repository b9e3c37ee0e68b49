"""The handle of one run: watch it, send to it, answer its questions, cancel it, and get its result."""

from __future__ import annotations

from types import NoneType
from typing import TYPE_CHECKING, Any, Generic

from pydantic import ValidationError
from typing_extensions import TypeVar

from swarmbus.arguments import require
from swarmbus.delivery.watching import Reading, tell_end
from swarmbus.errors import (
    LimitReached,
    QuestionError,
    RunCancelled,
    RunEnded,
    RunFailed,
    RunStalled,
    RunStopped,
    RunTimedOut,
)
from swarmbus.events import Event
from swarmbus.messages import Usage
from swarmbus.questions import misfit, recorded_answer
from swarmbus.results import RunResult
from swarmbus.table import CLIENT, External, Party
from swarmbus.text import clean_event, replaced_note, text_of

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from swarmbus.delivery.bus import Bus
    from swarmbus.delivery.runs import RunState
    from swarmbus.records import EndStatus, Envelope
    from swarmbus.results import Lifecycle

R = TypeVar("R", bound=Event, default=Event)

_ERRORS: dict[EndStatus, type[RunEnded]] = {
    "failed": RunFailed,
    "stalled": RunStalled,
    "timed_out": RunTimedOut,
    "cancelled": RunCancelled,
    "stopped": RunStopped,
    "limit": LimitReached,
}


class Run(Generic[R]):
    """One run of a swarm, from outside.

    As long as it goes on, its methods raise `RuntimeError` in another thread than the one the swarm was opened in.
    """

    def __init__(self, bus: Bus, state: RunState) -> None:
        self._bus = bus
        self._state = state
        self.id = state.id

    @property
    def status(self) -> str:
        """`running`, `waiting` (for an event from outside), or how the run ended.

        A run that waits for a person is `running`, also while nothing else is left of it: see `questions`.
        """
        ledger = self._state.ledger
        if ledger.outcome is not None and self._state.ended.is_set():
            return ledger.outcome.status
        return "waiting" if ledger.waiting else "running"

    @property
    def questions(self) -> dict[str, Any]:
        """The open questions to a person, by id: what is asked and the JSON schema of the answer."""
        return {question: delivery.asked for question, delivery in self._state.ledger.questions.items()}

    @property
    def under_way(self) -> dict[str, int]:
        """How many deliveries each handler is at work on now, by the handler's name, such as `executor.work`."""
        return self._bus.endings.under_way(self._state)

    @property
    def usage_by_role(self) -> dict[str, Usage]:
        """What the model calls of each role that made some have cost so far."""
        return {role: _usage(counts) for role, counts in self._state.ledger.usage.items()}

    def events(self) -> AsyncIterator[Envelope | Lifecycle | Any]:
        """Iterate over envelopes, what happens to deliveries, and loop events; the last is how the run ended.

        The reading begins with this call and may be left at any time. A reader that falls far behind loses the oldest
        items, and never holds up the run. One that comes after the end gets the end. Each iterator is for one task.
        """
        self._at_home("run.events()")
        reading = Reading(self._state.watchers, self._bus.home)
        if self._state.ended.is_set():
            tell_end(self._state, self._ended_at())
        return reading

    async def send(self, event: Event, *, source: Party | External = CLIENT, cause: int | None = None) -> None:
        """Bring a further event into the run, from the client or an outside program.

        Waits while too much waits for a role that takes it. Who also answers what such a role waits for, such as
        questions to a person, should do so in another task.

        Args:
            event: of a class that the table lets the source publish.
            source: who publishes it.
            cause: the number of an envelope that left the swarm, as `events()` shows it; the event then enters that
                one's scope: what follows counts for the joins there that are still open, though none waits for it.

        Raises:
            PublishError: the table does not allow it.
            EventEncodingError: JSON can't carry it.
            RunEnded: the run is over.
            TypeError: an argument of the wrong type.
            ValueError: no envelope of that number left the swarm.
        """
        self._at_home("run.send()")
        require("send({})", event, Event, "an event")
        require("send(..., source={})", source, (Party, External), 'CLIENT, or External("name")')
        require("send(..., cause={})", cause, (int, NoneType), "the number of an envelope")
        if self._state.ledger.outcome is None:
            await self._bus.room(None, source.address, event)
        if self._state.ledger.outcome is not None:
            self._raise_over()
        outside = self._state.ledger.outside
        if cause is not None and cause not in outside:
            left = ", ".join(map(str, outside)) or "none"
            raise ValueError(f"send(..., cause={cause}) takes an envelope that left the swarm; those that did: {left}")
        clean, replaced = clean_event(event)
        if await self._bus.send(self._state, clean, source.address, cause) is None:
            self._raise_over()
        if replaced:
            self._state.ledger.warnings.append(replaced_note(event, replaced))

    async def answer(self, question: str, value: Any) -> None:
        """Give a person's answer; the delivery that asked goes on.

        Raises:
            QuestionError: no such question is open, or the answer is not of the type that was asked for.
            RunEnded: the run is over, as a drained one is whose questions are open again when it is resumed.
        """
        self._at_home("run.answer()")
        if question not in self._state.ledger.questions:
            raise self._not_open(question)
        reply = self._state.replies.get(question)
        given = recorded_answer(value)
        if reply is not None:
            try:
                reply.validate_python(given)  # for now only whether it fits: its value is read where it was asked for
            except ValidationError as error:
                raise misfit(value, error) from error
        effects = await self._bus.answer(self._state, question, given)
        if effects is None:
            self._raise_over(f"; its question {question!r} is open when it is resumed")
        elif effects.ignored:
            raise self._not_open(question)

    def _not_open(self, question: str) -> QuestionError:
        ledger = self._state.ledger
        state = "was answered already" if question in ledger.answered else "is not known"
        known = ", ".join(ledger.questions) or "none"
        return QuestionError(f"question {question!r} of run {self.id} {state}; open questions: {known}")

    async def cancel(self, reason: str = "cancelled") -> None:
        """Cancel the run; returns when nothing of it is under way any more."""
        self._at_home("run.cancel()")
        require("cancel({})", reason, str, "the reason as text")
        await self._bus.endings.end(self._state, "cancelled", text_of(reason))
        await self._state.ended.wait()

    async def result(self) -> RunResult[R]:
        """Wait for the run's end and return its result.

        Raises:
            RunFailed, RunStalled, RunTimedOut, RunCancelled, RunStopped, LimitReached: it ended without one; `.result`
                holds what was finished, and the cause is the original exception where there is one.
        """
        self._at_home("run.result()")
        await self._state.ended.wait()
        outcome = self._state.ledger.outcome
        assert outcome is not None
        if outcome.status != "done":
            self._raise(f"run {self.id} {_VERBS[outcome.status]}: {outcome.reason}")
        return self._result()

    def _at_home(self, call: str) -> None:
        """Refuse a call from another thread; of a run that is over nothing changes any more."""
        if not self._state.ended.is_set():
            self._bus.home.require(call)

    def _result(self) -> RunResult[Any]:
        ledger = self._state.ledger
        outcome = ledger.outcome
        by_role = self.usage_by_role
        return RunResult(
            output=outcome.envelope.event if outcome is not None and outcome.envelope is not None else None,
            run_id=self.id,
            usage=sum(by_role.values(), Usage()),
            usage_by_role=by_role,
            failures=tuple(ledger.dead),
            warnings=tuple(ledger.warnings),
            started=ledger.started_at,
            ended=self._ended_at(),
        )

    def _raise_over(self, advice: str = "") -> None:
        outcome = self._state.ledger.outcome
        assert outcome is not None
        resumable = outcome.status == "stopped"
        self._raise(f"run {self.id} is over: {outcome.status}{advice if resumable else ''}")

    def _raise(self, message: str) -> None:
        outcome = self._state.ledger.outcome
        assert outcome is not None
        error = _ERRORS.get(outcome.status, RunEnded)(message, self._result())
        cause = outcome.failure.exception if outcome.failure is not None else self._state.lost
        raise error from cause

    def _ended_at(self) -> float:
        ended = self._state.ledger.ended
        return ended.at if ended is not None else self._bus.clock.time()


_VERBS: dict[EndStatus, str] = {
    "failed": "failed",
    "stalled": "stalled",
    "timed_out": "timed out",
    "cancelled": "was cancelled",
    "stopped": "was stopped",
    "limit": "reached a limit",
}


def _usage(counts: dict[str, float]) -> Usage:
    whole: dict[str, Any] = {name: int(value) for name, value in counts.items()}
    return Usage(**{**whole, "estimated": bool(counts.get("estimated"))})
