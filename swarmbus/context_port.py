"""What a handler's context needs to have behind it: a bus, or nothing but a test."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from swarmbus.calls import CallLog

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from swarmbus.calls import CallKind, CallRecord
    from swarmbus.events import Event
    from swarmbus.once import Effect
    from swarmbus.thinking.agent import Agent


class AttemptCallsPort(CallLog, Protocol):
    """The recorded calls of an attempt, as the context uses them."""

    def find(self, kind: CallKind, key: str) -> CallRecord | None:
        """Return the record for the next occurrence of this key, or None."""
        ...

    def note(self, call: CallRecord) -> None:
        """Keep a value before anything that could depend on it becomes visible."""
        ...

    def effect(self, key: str) -> Effect:
        """Return what all attempts at the delivery know of the effect under this key."""
        ...


class ContextPort(Protocol):
    """What stands behind a context: a bus, or nothing but a test."""

    role: str
    attempt: int
    state: Any

    @property
    def run_id(self) -> str:
        """The id of the run."""
        ...

    @property
    def handler(self) -> str:
        """The name of the handler."""
        ...

    @property
    def event_id(self) -> str:
        """The id of the envelope."""
        ...

    @property
    def delivery_id(self) -> str:
        """A text that identifies the delivery among all runs."""
        ...

    @property
    def early(self) -> tuple[type[Event], ...]:
        """What the handler may publish before it returns."""
        ...

    @property
    def calls(self) -> AttemptCallsPort:
        """The recorded calls of the attempt."""
        ...

    @property
    def deps(self) -> Any:
        """The run's dependencies."""
        ...

    def require_current(self, call: str) -> None:
        """Refuse a call that comes too late to have an effect."""
        ...

    def agent(self) -> Agent:
        """Return the role's agent for this delivery."""
        ...

    async def ask(self, prompt: str, output: Any, options: dict[str, Any]) -> Any:
        """Return the answer of the role's model."""
        ...

    def publish(self, event: Event, after: float | None, key: str | None) -> Awaitable[None]:
        """Publish an event early."""
        ...

    async def ask_person(self, question: Any, reply: Any) -> Any:
        """Return a person's answer, of the type asked for."""
        ...

    def progress(self, detail: str) -> None:
        """Renew the time limit."""
        ...

    def time(self) -> float:
        """Return the seconds since the epoch."""
        ...
