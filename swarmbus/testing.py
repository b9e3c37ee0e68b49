"""For tests of your own swarms: a context to call a handler with, without a bus, and a clock that you move by hand.

A scripted model is in `swarmbus.models`; a journal in memory in `swarmbus.delivery.journal`.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import count
from typing import TYPE_CHECKING, Any

import anyio
import anyio.lowlevel
from pydantic import TypeAdapter, ValidationError

from swarmbus.arguments import require
from swarmbus.delivery.calllog import AttemptCalls, RunCalls
from swarmbus.delivery.home import Home
from swarmbus.errors import QuestionError, UnknownModel
from swarmbus.events import Event
from swarmbus.questions import misfit, recorded_answer
from swarmbus.records import Change
from swarmbus.role import Role
from swarmbus.role_agent import RoleAgent, tools_of
from swarmbus.role_context import RoleContext, changes_of
from swarmbus.thinking.limits import Limits
from swarmbus.wiring import read_role

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from pydantic import BaseModel

    from swarmbus.messages import Message
    from swarmbus.records import Called
    from swarmbus.thinking.agent import Agent
    from swarmbus.thinking.models.base import Model

__all__ = ["START", "EarlyEvent", "FakeClock", "HandlerContext", "context"]

START = datetime(2031, 3, 14, 9, 26, 53, tzinfo=UTC)
"""When a fake clock starts where nothing else is said."""


class FakeClock:
    """Time that stands still: sleepers wake, in order of their time, while the test moves it.

    It takes the place of the machine's clock in `Swarm(..., clock=FakeClock())`: for retries, timers, deadlines of
    joins, and the time limits of handlers and runs. What passes in an agent, a tool or on the way to a model server
    (`Limits(seconds=, tool_timeout=, idle_timeout=)`, waiting after a rate limit) goes by the event loop's own time.
    """

    def __init__(self, start: datetime = START) -> None:
        require("FakeClock({})", start, datetime, "a time, such as datetime(2031, 3, 14, tzinfo=UTC)")
        self._start = start
        self._elapsed = 0.0
        self._sleepers: list[tuple[float, int, anyio.Event]] = []
        self._order = count()

    def time(self) -> float:
        """Return the seconds since the epoch."""
        return self._start.timestamp() + self._elapsed

    def monotonic(self) -> float:
        """Return the seconds since the clock was made."""
        return self._elapsed

    async def sleep_until(self, deadline: float) -> None:
        """Wait until `monotonic()` has reached `deadline`."""
        if deadline <= self.monotonic():
            await anyio.lowlevel.checkpoint()
            return
        alarm = anyio.Event()
        sleeper = (deadline, next(self._order), alarm)
        heapq.heappush(self._sleepers, sleeper)
        try:
            await alarm.wait()
        finally:
            if not alarm.is_set():
                self._sleepers.remove(sleeper)
                heapq.heapify(self._sleepers)

    async def advance(self, seconds: float) -> None:
        """Move time forward; after each alarm, and at the end, wait until every other task waits for something."""
        target = self._elapsed + seconds
        await _quiet()
        while self._sleepers and self._sleepers[0][0] <= target:
            self._elapsed, _, alarm = heapq.heappop(self._sleepers)
            alarm.set()
            await _quiet()
        self._elapsed = target


async def _quiet() -> None:
    """Wait until every other task waits for something."""
    for _ in range(20):  # where tasks can run, waiting for them in earnest takes 0.1 s on asyncio
        await anyio.lowlevel.checkpoint()
    await anyio.wait_all_tasks_blocked()


@dataclass(frozen=True, slots=True)
class EarlyEvent:
    """An event that a handler published before it returned, how many seconds later it is due, and its key."""

    event: Event
    after: float | None = None
    key: str | None = None


class HandlerContext(RoleContext[Event, Any]):
    """A context that keeps what a handler does with it; `context` makes one."""

    def __init__(self, port: _Alone) -> None:
        super().__init__(port)
        self._alone = port
        port.context = self

    @property
    def published(self) -> tuple[EarlyEvent, ...]:
        """What the handler published early."""
        return tuple(self._alone.published)

    @property
    def state(self) -> Any:
        """The role's state with the changes that the handler asked for; None for a role without."""
        return self._state

    @property
    def changes(self) -> tuple[Change, ...]:
        """The changes of the role's state, in order."""
        return changes_of(self)

    @property
    def history(self) -> tuple[Message, ...]:
        """What the role's model was asked and said, with what it remembered before."""
        return self._alone.history

    @property
    def questions(self) -> tuple[BaseModel | str, ...]:
        """What the handler asked a person."""
        return tuple(self._alone.questions)

    @property
    def details(self) -> tuple[str, ...]:
        """What the handler said of its progress."""
        return tuple(self._alone.details)

    def again(self) -> HandlerContext:
        """Return the context of another attempt, which finds the calls recorded so far."""
        return HandlerContext(self._alone.again())


def context(
    role: Role | str = "role",
    *,
    model: str | Model | None = None,
    state: Any = None,
    history: Sequence[Message] = (),
    deps: Any = None,
    answers: Iterable[Any] = (),
    time: datetime = START,
) -> HandlerContext:
    """Return what a handler takes as its context.

    `await Planner().plan(event, context(Planner(), model=ScriptedModel([...])))` calls a handler like any method. What
    it returns is not compared with what it declares, nor what it publishes with an event table: that takes a run.

    Args:
        role: the role, whose settings count for `ctx.ask`, and of which `ctx.publish` takes what one of its handlers
            declares; or only the name of one, with which it takes every event.
        model: answers `ctx.ask`; the role's own model by default.
        state: what the handler finds as its role's state; a new one by default, where the role has any.
        history: what a role with `history = "run"` remembers: `history` of the context of the delivery before.
        deps: what it finds in `ctx.deps`.
        answers: what a person answers, question by question, to those for approval of a tool call too.
        time: what `ctx.now()` says.
    """
    require("context({})", role, (Role, str), "a role, or the name of one")
    require("context(time={})", time, datetime, "a time, such as datetime(2031, 3, 14, tzinfo=UTC)")
    given = role if isinstance(role, Role) else Role().named(role)
    kind = getattr(given, "State", None)
    if state is None and kind is not None:
        state = kind()
    if kind is not None:
        require("context(state={})", state, kind, f"the role's State, such as {kind.__qualname__}(...)")
    if history and given.history != "run":
        raise ValueError('context(history=...) is for a role with history = "run": no other remembers a delivery')
    port = _Alone(
        given,
        model or given.model,
        state=state,
        history=tuple(history),
        deps=deps,
        answers=list(answers),
        now=time.timestamp(),
    )
    return HandlerContext(port)


class _Alone:
    """What stands behind a context where there is no bus."""

    run_id = "run"
    event_id = "run/0"
    delivery_id = "run/0>handler"

    def __init__(
        self,
        role: Role,
        model: str | Model | None,
        *,
        state: Any,
        history: tuple[Message, ...],
        deps: Any,
        answers: list[Any],
        now: float,
    ) -> None:
        self.role = role.name
        self.state = state
        self.deps = deps
        self.attempt = 1
        self.published: list[EarlyEvent] = []
        self.questions: list[BaseModel | str] = []
        self.details: list[str] = []
        self.context: HandlerContext | None = None
        handlers = read_role(role).handlers
        self.handler = " or ".join(handler.name for handler in handlers) or "handler"
        declared = dict.fromkeys(cls for handler in handlers for cls in handler.early)
        self.early: tuple[type[Event], ...] = tuple(declared) if handlers else (Event,)
        self._role = role
        self._model = model
        self._history = history
        self._answers = answers
        self._now = now
        self._asking: RoleAgent | None = None
        self._recorded = RunCalls(frozenset())
        self.calls = self._call_log()

    def again(self) -> _Alone:
        """Return what stands behind the next attempt."""
        twin = _Alone(
            self._role,
            self._model,
            state=self.state,
            history=self._history,
            deps=self.deps,
            answers=self._answers,
            now=self._now,
        )
        twin.attempt = self.attempt + 1
        twin._recorded = self._recorded
        twin.calls = twin._call_log()
        return twin

    @property
    def history(self) -> tuple[Message, ...]:
        """The conversation so far."""
        return self._history if self._asking is None else self._asking.conversation.messages

    def require_current(self, call: str) -> None:
        """Take every call: an attempt without a bus is never over."""

    def agent(self) -> Agent:
        """Return the role's agent; it is made when first asked for."""
        return self._role_agent().agent

    async def ask(self, prompt: str, output: Any, options: dict[str, Any]) -> Any:
        """Return the model's answer."""
        return await self._role_agent().ask(prompt, output, options)

    async def publish(self, event: Event, after: float | None, key: str | None) -> None:
        """Keep what is published."""
        self.published.append(EarlyEvent(event, after, key))
        await anyio.lowlevel.checkpoint()

    async def ask_person(self, question: BaseModel | str, reply: Any) -> Any:
        """Return the next answer."""
        place = len(self.questions)
        self.questions.append(question)
        if place >= len(self._answers):
            raise QuestionError(f"{self.role} asked {question!r}, and context(answers=...) has {place} answers")
        await anyio.lowlevel.checkpoint()
        answer = self._answers[place]
        try:
            return TypeAdapter(reply).validate_python(recorded_answer(answer))
        except ValidationError as error:
            raise misfit(answer, error) from error

    def progress(self, detail: str) -> None:
        """Keep what is said."""
        self.details.append(detail)

    def time(self) -> float:
        """Return the time of the context."""
        return self._now

    def _role_agent(self) -> RoleAgent:
        if self._asking is None:
            role = self._role
            self._asking = RoleAgent(
                role,
                self._required_model,
                self.context,
                self._history,
                tools=tools_of(role),
                limits=role.limits or Limits(),
                deps=self.deps,
                calls=self.calls,
            )
        return self._asking

    def _required_model(self) -> str | Model:
        if self._model is None:
            raise UnknownModel(f"{self.role} has no model: give context(model=...)")
        return self._model

    def _call_log(self) -> AttemptCalls:
        place = (0, 0, -1)

        async def keep(called: Called) -> None:
            self._recorded.follow(called)
            await anyio.lowlevel.checkpoint()

        return AttemptCalls(place, self._recorded, self.time, keep, Home().require)
