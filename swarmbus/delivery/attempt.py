"""One try at one delivery, and what it may do before it returns: publish early, ask a person, show progress."""

from __future__ import annotations

import hashlib
import json
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import anyio
from pydantic import ValidationError

from swarmbus.delivery.calllog import AttemptCalls
from swarmbus.delivery.deliveries import Early
from swarmbus.errors import HandlerTimedOut, RoleError
from swarmbus.events import event_name
from swarmbus.records import Asked, Published

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator, Mapping

    from pydantic import TypeAdapter

    from swarmbus.delivery.clock import Clock
    from swarmbus.delivery.deliveries import Delivery
    from swarmbus.delivery.home import Home
    from swarmbus.delivery.pressure import Pressure
    from swarmbus.delivery.runs import RunState
    from swarmbus.delivery.transports.base import Slot
    from swarmbus.events import Event
    from swarmbus.records import Change, Record, Routes


@dataclass(slots=True)
class Handled:
    """What a handler brought: the events it returned and the changes to its role's state.

    Attributes:
        committed: is called once all of it is part of the run.
    """

    outputs: tuple[Event, ...] = ()
    changes: tuple[Change, ...] = ()
    committed: Callable[[], None] | None = None


class Suspended(BaseException):
    """Ends a thread that has asked a person, for its handler runs again when the answer is there; no error to catch."""


class AttemptPort:
    """What the bus offers an attempt.

    Attributes:
        prepare: decides where an event goes, or refuses it.
        has_room: whether its receivers have room; room: waits until they have.
        grace: seconds that an attempt gets to stop when told.
    """

    def __init__(
        self,
        prepare: Callable[[str, Event], Routes | None],
        pressure: Pressure,
        write: Callable[[RunState, Record], Awaitable[Any]],
        *,
        clock: Clock,
        home: Home,
        grace: float,
    ) -> None:
        self.prepare = prepare
        self.has_room = pressure.has_room
        self.room = pressure.room
        self.write = write
        self.time = clock.time
        self.monotonic = clock.monotonic
        self.home = home
        self.grace = grace


class Attempt:
    """One try at one delivery.

    Args:
        watch: has the attempt stopped once the clock's monotonic seconds have come to this.

    Attributes:
        number: from 1; an answer from a person continues the same attempt.
        over: its handler has come to its end, so that nothing it does any more counts.
    """

    __slots__ = (
        "_calls", "_closed", "_earlier", "_fresh_events", "_port", "_questions", "_suspending", "_waiting", "_watch",
        "delivery", "number", "over", "run", "slot",
    )  # fmt: skip

    def __init__(
        self, port: AttemptPort, slot: Slot, run: RunState, delivery: Delivery, watch: Callable[[float], None]
    ) -> None:
        self.run = run
        self.delivery = delivery
        self.number = delivery.attempt
        self.slot = slot
        self.over = False
        self._port = port
        self._watch = watch
        self._waiting: Waiting | None = None
        self._questions: dict[str, int] | None = None
        self._suspending: anyio.Lock | None = None
        self._closed: anyio.Event | None = None
        early = delivery.early
        self._earlier = Early(early.kinds, early.marks) if early is not None else None
        self._fresh_events: list[str] | None = None
        self._calls: AttemptCalls | None = None

    @property
    def calls(self) -> AttemptCalls:
        """The recorded calls of the delivery."""
        if self._calls is None:
            run, port, key = self.run, self._port, self.delivery.key
            self._calls = AttemptCalls(key, run.calls, port.time, lambda called: port.write(run, called), self.require)
        return self._calls

    def close(self) -> None:
        """Take note that the handler has come to its end."""
        self.over = True
        if self._waiting is not None:
            self._waiting.over = True
        if self._closed is not None:
            self._closed.set()

    def require(self, call: str) -> None:
        """Refuse a call, such as `ctx.ask()`, from another thread, or where nothing it does counts any more.

        Raises:
            RoleError: it came too late; RuntimeError: it came from another thread.
        """
        self._port.home.require(call)
        self.require_current(call)

    def require_current(self, call: str) -> None:
        """Refuse a call where nothing it does counts any more.

        Raises:
            RoleError: says so.
        """
        live = self.delivery.live and self.delivery.attempt == self.number and self.slot.stopped != "given_up"
        if self.over or self.run.ledger.ended is not None or not live:
            raise self._too_late(call)

    def _too_late(self, call: str) -> RoleError:
        return RoleError(
            f"{call} came too late: {self.delivery.handler.qualified} is over, or its run is, and the call has no"
            " effect; await what a handler starts before it returns, and keep its context for nobody"
        )

    @property
    def has_calls(self) -> bool:
        """Whether it has asked for recorded calls."""
        return self._calls is not None

    async def flush(self) -> None:
        """Write what was noted and not yet kept."""
        if self._calls is not None:
            await self._calls.flush()

    @property
    def role(self) -> str:
        """The name of the role that handles the delivery."""
        return self.delivery.handler.role

    @property
    def event_id(self) -> str:
        """The id of the envelope."""
        return self.run.ledger.event_id(self.delivery.envelope)

    @property
    def delivery_id(self) -> str:
        """A text that identifies the delivery among all runs."""
        item = f"#{self.delivery.item}" if self.delivery.item >= 0 else ""
        return f"{self.event_id}>{self.delivery.handler.qualified}{item}"

    async def publish(self, event: Event, *, after: float | None = None, key: str | None = None) -> None:
        """Publish an event before the handler returns, `after` seconds from now if given.

        Raises:
            PublishError: the table does not allow it; nothing was delivered.
            RoleError: it came too late; nothing was delivered.
        """
        port, run, role = self._port, self.run, self.delivery.handler.role
        port.home.require("ctx.publish()")
        if self.over or self.slot.stopped in ("given_up", "suspended"):
            raise self._too_late("ctx.publish()")
        routes = port.prepare(role, event)
        if self._calls is not None:
            await self._calls.flush()
        if self._earlier is not None and self._published_before(event, key):
            return
        if not port.has_room(run, role, event):
            with self.pause_clock():
                await port.room(run, role, event)
        now = port.time()
        due = now + after if after is not None else None
        effects = await port.write(run, Published(now, self.delivery.key, self.number, event, routes, due, key))
        if effects is None or effects.ignored:
            raise self._too_late("ctx.publish()")

    async def ask(self, content: Mapping[str, Any], reply: TypeAdapter[Any]) -> Any:
        """Return a person's answer; where there is none yet, suspend the delivery, and never come back.

        A question is known by what it says, so that tasks side by side get each its own answer; of theirs, one is open
        at a time. An answer of another type, which only a process that doesn't know the type takes, is asked for again.
        """
        self.require("ctx.ask_person()")
        question = self._question(content)
        answers = self.delivery.answers or {}
        while question in answers:
            try:
                return reply.validate_python(answers[question])
            except ValidationError:
                question += "'"
        if self._suspending is None or self._closed is None:
            self._suspending, self._closed = anyio.Lock(), anyio.Event()
        async with self._suspending:
            if self.over:
                raise Suspended
            await self.flush()
            self.run.replies[question] = reply
            await self._port.write(self.run, Asked(self._port.time(), self.delivery.key, question, content))
            gone = self._port.monotonic() + self._port.grace
            self.slot.stop("suspended", gone)
            self._watch(gone)
            await self._closed.wait()  # who belongs to the attempt is cancelled before
            raise Suspended

    def _question(self, content: Mapping[str, Any]) -> str:
        """Return the id of a question: that of the n-th question of this content in every attempt."""
        written = json.dumps(content, sort_keys=True).encode()
        digest = hashlib.blake2b(written, digest_size=6).hexdigest()
        if self._questions is None:
            self._questions = {}
        self._questions[digest] = asked = self._questions.get(digest, 0) + 1
        return f"{self.delivery_id}?{digest}" + (f".{asked}" if asked > 1 else "")

    def progress(self) -> None:
        """Renew the time limit."""
        if self._waiting is not None and self._waiting.blocks:
            self._waiting.left = self.slot.timeout
        else:
            self.slot.renew(self._port.monotonic() + self.slot.timeout)

    def differences(self) -> Iterator[str]:
        """Say how what this attempt asked for and published differs from what an earlier one did."""
        who = self.delivery.handler.qualified
        unused = self.calls.unused() if self.number > 1 else 0
        if unused:
            yield f"{unused} recorded calls of {who} were not asked for again"
        if self._earlier is not None and self._earlier.kinds:
            left = ", ".join(map(event_name, self._earlier.kinds))
            new = f" but {', '.join(self._fresh_events)}" if self._fresh_events else ""
            yield f"attempt {self.number} of {who} diverged: an earlier one had published {left}, this one did not{new}"

    def abandon_thread(self) -> None:
        """Report that the handler goes on in a thread that can't be stopped; its result will be discarded.

        One that asked a person from its thread does not go on.
        """
        if self.slot.stopped == "suspended":
            return
        place = (
            f"{self.delivery.handler.qualified} (attempt {self.number} for {event_name(self.delivery.envelope.event)})"
        )
        self.run.ledger.warn(f"{place} was cut off in a thread, which can't be stopped and was abandoned")

    def note_blocking(self, seconds: float) -> None:
        """Report that the handler let nobody else run for so many seconds."""
        self.run.blocked.add(self.delivery.handler, seconds)

    def timed_out(self) -> HandlerTimedOut:
        """Return the error for an attempt that ran too long."""
        handler = self.delivery.handler
        return HandlerTimedOut(
            f"{handler.qualified} ({handler.wiring.where}) ran longer than its {self.slot.timeout:g} s for"
            f" {event_name(self.delivery.envelope.event)}; raise `timeout`, or call ctx.progress() while it works"
        )

    def pause_clock(self) -> Waiting:
        """Return a context in which waiting does not count towards the time limit."""
        if self._waiting is None:
            self._waiting = Waiting(self.slot, self._port.monotonic, self._watch)
            self._waiting.over = self.over
        return self._waiting

    def note_trouble(self, trouble: str) -> None:
        """Keep why a model call failed that is made again; nothing once one succeeds."""
        if not self.over:
            self.slot.trouble = trouble

    def _published_before(self, event: Event, key: str | None) -> bool:
        assert self._earlier is not None
        if self._earlier.take(event, key):
            return True
        if self._fresh_events is None:
            self._fresh_events = []
        self._fresh_events.append(event_name(event))
        return False

    def time(self) -> float:
        """Return the clock's seconds since the epoch."""
        return self._port.time()


class Waiting:
    """What does not count towards an attempt's time limit; blocks that overlap are as one.

    Attributes:
        blocks: how many are entered; left: the seconds left of the time limit, while any is.
        over: the attempt is over, so that the slot may be another's.
    """

    def __init__(self, slot: Slot, monotonic: Callable[[], float], watch: Callable[[float], None]) -> None:
        self.blocks = 0
        self.left = 0.0
        self.over = False
        self._slot = slot
        self._monotonic = monotonic
        self._watch = watch

    def __enter__(self) -> None:
        if not (self.blocks or self.over):
            self.left = self._slot.deadline - self._monotonic()
            self._slot.renew(math.inf)
        self.blocks += 1

    def __exit__(self, *_: object) -> None:
        self.blocks -= 1
        if not (self.blocks or self.over):
            self._slot.renew(self._monotonic() + self.left)
            self._watch(self._slot.deadline)
