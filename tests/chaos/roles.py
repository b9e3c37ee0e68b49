"""The roles of a round: classes with handlers whose annotations say what the program says, and what they do."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import partial, reduce
from inspect import Parameter, Signature
from operator import or_
from typing import Any, Never

import anyio
from ledger_model.program import Handler, picked
from ledger_model.translate import EVENTS, Told, event_of, serial_of
from ledger_model.tree import Contents
from pydantic import BaseModel

from chaos.draw import Manner, Round
from chaos.story import RUN, Beginning, Ending, Place, Script, Step, Story, told
from swarmbus import Event, FrozenDict, HandlerFailed, Joined, Retry, Retryable, Role, RoleContext, join, on

UNDECLARED = "E13x"
"""A class that no role may return."""
OVERTIME = 3.0
"""Seconds that an attempt takes that lets its time pass, or does not heed being stopped."""


class Tally(BaseModel, frozen=True):
    """What a role with state remembers: how many deliveries it handled, and which, with the attempt that did."""

    count: int = 0
    seen: FrozenDict[str, int] = FrozenDict()


class Exit(BaseException):
    """What no run can end with, so that it ends the swarm."""


@dataclass(eq=False)
class Flight:
    """An attempt in a thread; `over` once nobody waits for it any more."""

    gate: threading.Event = field(default_factory=threading.Event)
    until: float | None = None
    over: bool = False


FLIGHT: ContextVar[Flight] = ContextVar("flight")


@dataclass(frozen=True, slots=True)
class Acting:
    """One attempt: whose it is, which delivery, what it does and how it ends, and when it began."""

    story: Story
    place: Place
    context: RoleContext[Any] | None
    script: Script
    steps: tuple[Step, ...]
    ending: Ending
    began: float

    def note(self, kind: str, value: Any = None) -> None:
        """Keep what the attempt did."""
        self.story.note(kind, self.place, value, attempt=self.began)

    def cancel_itself(self) -> None:
        """Raise what cancels a task; on trio nobody can make that, so that there it is an error like any other."""
        cancelled = anyio.get_cancelled_exc_class()
        is_own = cancelled is asyncio.CancelledError
        text = "cancelled itself" if is_own else self.story.error()
        self.note("raise", text)
        raise cancelled if is_own else ValueError(text)

    async def publish(self, step: Step) -> None:
        """Publish early; what an earlier attempt published is not published again."""
        fact = step.fact
        assert fact is not None
        assert self.context is not None
        try:
            await self.context.publish(event_of(fact), after=step.seconds if step.deed == "delay" else None)
        except Exception:
            self.note("refused", self.context.attempt)
            raise
        if fact.serial not in self.story.published:
            self.story.published.add(fact.serial)
            self.note(step.deed, fact)

    def change_state(self) -> None:
        """Count the delivery in the role's state."""
        assert self.context is not None
        try:
            state = self.context.put("seen", repr(self.place), self.context.attempt)
            self.context.update(count=state.count + 1)
        except Exception:
            self.note("refused", self.context.attempt)
            raise


class Cast:
    """Makes the roles of a round, and does what their handlers do.

    Attributes:
        stories: the runs, by tag; moving: attempts in threads that will come to an end by themselves; waiting: those
            that wait until they are let go; over: the round is, so that none of them waits any more.
    """

    def __init__(self, round_: Round, stories: dict[int, Story], clock: Any) -> None:
        self.round = round_
        self.stories = stories
        self.clock = clock
        self.moving: set[Flight] = set()
        self.waiting: set[Flight] = set()
        self.over = False

    def roles(self) -> list[Role]:
        """Return the roles, in the program's order."""
        return [self._role(name, manner) for name, manner in self.round.manners.items()]

    def _role(self, name: str, manner: Manner) -> Role:
        members: dict[str, Any] = {
            "__module__": __name__,
            "name": name,
            "concurrency": manner.concurrency,
            "timeout": manner.timeout,
            "retry": Retry(attempts=3, delay=manner.pause, jitter=0),
        }
        if manner.state:
            members["State"] = Tally
        for number, handler in enumerate(self.round.program.handlers):
            if handler.role == name:
                members[handler.name] = self._decorated(number, handler, manner)
        made: Role = type(name.title(), (Role,), members)()
        return made

    def _decorated(self, number: int, handler: Handler, manner: Manner) -> Any:
        method = self._method(number, handler, manner)
        if handler.per is not None:
            return join(
                EVENTS[handler.takes],
                per=EVENTS[handler.per],
                key="key" if handler.keyed else None,
                expect="promises" if handler.expects else None,
                partial=handler.partial,
                quorum=handler.quorum,
                deadline=handler.deadline,
            )(method)
        each: Any = "items" if handler.each else None
        if handler.counted:
            each = _items
        return on(EVENTS[handler.takes], each=each, when=_is_picked if handler.picky else None)(method)

    def _method(self, number: int, handler: Handler, manner: Manner) -> Any:
        method: Any

        if manner.threads:

            def method(role: Role, *given: Any) -> Any:
                return self.act_in_thread(number, given)
        else:

            async def method(role: Role, *given: Any) -> Any:
                return await self.act(number, given)

        given = self._given(handler, manner)
        union = _union(handler.returns) if handler.returns else None
        returned: Any = tuple.__class_getitem__((union, ...)) if handler.returns else None
        parameters = [Parameter(name, Parameter.POSITIONAL_OR_KEYWORD) for name in ("self", *given)]
        method.__signature__ = Signature(parameters)
        method.__annotations__ = {**given, "return": returned}
        method.__name__, method.__qualname__ = handler.name, f"{handler.role}.{handler.name}"
        return method

    def _given(self, handler: Handler, manner: Manner) -> dict[str, Any]:
        given: dict[str, Any] = {"event": EVENTS[handler.takes]}
        if handler.each:
            given["item"] = str
        if handler.per is not None:
            contribution: Any = EVENTS[handler.takes]
            given = {"event": EVENTS[handler.per], "joined": Joined[contribution]}
        if manner.state:
            given["state"] = Tally
        if manner.takes_context(handler):
            early: Any = _union(handler.early) if handler.early else Never
            given["ctx"] = RoleContext[early]
        return given

    # --- what handlers do

    def _begin(self, number: int, given: tuple[Any, ...]) -> Acting:
        """Note that an attempt begins, and return what it needs."""
        handler = self.round.program.handlers[number]
        event, context = given[0], next((one for one in given if isinstance(one, RoleContext)), None)
        item = int(given[1].rpartition(".")[2]) if handler.each else -1
        origin: Any
        if isinstance(event, HandlerFailed):
            run_id, _, envelope = event.event_id.rpartition("/")
            tag = int(run_id.removeprefix("run"))
            origin = ("failed", int(envelope), event.handler, event.item if event.item is not None else -1)
        else:
            origin = serial_of(event)
            tag = origin // RUN
        story, place = self.stories[tag], (origin, number, item)
        if context is not None and context.run_id != story.id:
            story.faults.append(f"{place} was handled in {context.run_id}")
        if context is not None and context.deps is not story:
            story.faults.append(f"{place} was given the dependencies of another run")
        if handler.each and given[1] != event.items[item]:
            story.faults.append(f"{place} was given the item {given[1]} of {event.items}")
        joined = next((one for one in given if isinstance(one, Joined)), None)
        state = next((one for one in given if isinstance(one, Tally)), None)
        seen = {**state.seen, "": state.count} if state is not None else None
        threaded = self.round.manners[handler.role].threads
        attempt = context.attempt if context is not None else None
        contents = _contents(event, joined) if joined is not None else None
        tries = sum(1 for note in story.notes if note.kind == "raise" and note.place == place)
        script = story.script(place)
        ending, steps = script.endings[min(tries, len(script.endings) - 1)]
        began = story.note("begin", place, Beginning(attempt, contents, seen, threaded))
        return Acting(story, place, context, script, script.steps[:steps], ending, began)

    async def act(self, number: int, given: tuple[Any, ...]) -> Any:
        """Handle a delivery on the event loop."""
        acting = self._begin(number, given)
        try:
            for step in acting.steps:
                await self._do(acting, step)
            if acting.ending in ("overtime", "stubborn"):
                with anyio.CancelScope(shield=acting.ending == "stubborn"):
                    await self.clock.sleep(OVERTIME)
            if acting.ending == "self-cancel":
                acting.cancel_itself()
        except anyio.get_cancelled_exc_class():
            acting.note("cut")
            raise
        return self._end(acting)

    def act_in_thread(self, number: int, given: tuple[Any, ...]) -> Any:
        """Handle a delivery in a worker thread."""
        flight = FLIGHT.get()
        acting = self._begin(number, given)
        for step in acting.steps:
            flight.until = self.clock.monotonic() + step.seconds
            self.waiting.add(flight)
            self.moving.discard(flight)
            if self.over:
                flight.gate.set()
            if not flight.gate.wait(30):
                acting.story.faults.append(f"{acting.place} was never let go")
        return self._end(acting)

    async def _do(self, acting: Acting, step: Step) -> None:
        story, place, context = acting.story, acting.place, acting.context
        if step.deed == "sleep":
            await self.clock.sleep(step.seconds)
            return
        assert context is not None
        if step.deed == "ask":
            answer = await context.ask_person(f"May {place}?", reply=int)
            if answer != story.plan.tag:
                story.faults.append(f"{place} was given the answer {answer}")
        elif step.deed == "once":
            value = await context.once("effect", partial(_take_effect, story, place))
            if value != 1:
                story.faults.append(f"the effect of {place} was taken {value} times")
        else:
            await acting.publish(step)

    def _end(self, acting: Acting) -> Any:
        handler, ending = self.round.program.handlers[acting.place[1]], acting.ending
        if ending in ("fail", "retry", "group"):
            text = acting.story.error()
            acting.note("raise", text)
            if ending == "group":
                raise BaseExceptionGroup("several", [ValueError(text)])
            raise (Retryable if ending == "retry" else ValueError)(text)
        if ending == "exit":
            for story in self.stories.values():
                story.broken = min(story.broken, self.clock.stamp())
            raise Exit
        if ending == "undeclared":
            acting.note("raise", "declares that it returns")
            return (EVENTS[UNDECLARED](serial=-1),)  # type: ignore[call-arg]
        if self.round.manners[handler.role].state:
            acting.change_state()
        acting.note("return", acting.script.facts)
        return tuple(event_of(fact) for fact in acting.script.facts) if handler.returns else None

    async def around(self, ctx: Any, event: Any, call_next: Callable[[], Any]) -> Any:
        """Middleware that knows which attempts in threads are still waited for."""
        if not self.round.manners[ctx.role].threads:
            return await call_next()
        flight = Flight()
        FLIGHT.set(flight)
        self.moving.add(flight)
        try:
            return await call_next()
        except anyio.get_cancelled_exc_class():
            self.stories[int(ctx.run_id.removeprefix("run"))].note("thread cut")
            raise
        finally:
            flight.over = True
            self.moving.discard(flight)

    def let_go(self, moment: float) -> None:
        """Let those attempts in threads go on that were to wait until a moment."""
        self.over = moment == float("inf")  # before looking who waits, so that a thread that comes later sees it
        for flight in [one for one in list(self.waiting) if one.until is not None and one.until <= moment]:
            self.waiting.discard(flight)
            if not flight.over:
                self.moving.add(flight)
            flight.gate.set()


async def _take_effect(story: Story, place: Place) -> int:
    story.effects[place] = story.effects.get(place, 0) + 1
    return story.effects[place]


def _contents(event: Any, joined: Joined[Any]) -> Contents:
    def failed(error: Any) -> str:
        return told(error.message) or "missing"

    return Contents(
        opener=serial_of(event),
        done=list(map(serial_of, joined.done)),
        failed=[(one.item, one.key, failed(one.error), tuple(map(serial_of, one.done))) for one in joined.failed],
        missing=[(one.item, one.key) for one in joined.missing],
        cancelled=[(one.item, one.key) for one in joined.cancelled],
    )


def _items(event: Any) -> tuple[str, ...]:
    items: tuple[str, ...] = event.items
    return items


def _is_picked(event: Any) -> bool:
    assert isinstance(event, Told)
    return picked(event.serial)


def _union(names: tuple[str, ...]) -> Any:
    classes: list[type[Event]] = [EVENTS[name] for name in names]
    return reduce(or_, classes)
