"""Calls handlers: finds their arguments, gives them a context, checks what they return against what they declared."""

from __future__ import annotations

import inspect
from functools import partial
from typing import TYPE_CHECKING, Any

import anyio
from pydantic import BaseModel, TypeAdapter

from swarmbus.arguments import type_of
from swarmbus.delivery.attempt import Handled
from swarmbus.errors import PublishError
from swarmbus.events import Event
from swarmbus.questions import describe_question
from swarmbus.results import Lifecycle
from swarmbus.role_agent import RoleAgent
from swarmbus.role_context import RoleContext, changes_of
from swarmbus.run_memory import note
from swarmbus.thinking.models.retry import caller
from swarmbus.threads import call_in_thread

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine

    from swarmbus.delivery.attempt import Attempt
    from swarmbus.delivery.calllog import AttemptCalls
    from swarmbus.handler_signatures import Parameter
    from swarmbus.role import Role
    from swarmbus.run_host import RunHost
    from swarmbus.thinking.agent import Agent
    from swarmbus.thinking.models.base import Model
    from swarmbus.wiring import HandlerWiring

    CallNext = Callable[[], Awaitable[Any]]
    Middleware = Callable[[RoleContext[Any, Any], Any, CallNext], Awaitable[Any]]


class AttemptContext:
    """What stands behind a handler's context while the bus runs an attempt."""

    def __init__(self, attempt: Attempt, role: Role, host: RunHost, model: Callable[[str], Model]) -> None:
        self._attempt = attempt
        self._role = role
        self._host = host
        self._model = model
        self._asking: RoleAgent | None = None
        self.context: RoleContext[Any, Any] | None = None
        self.role = attempt.role
        self.attempt = attempt.number
        self.state = state_of(attempt)

    @property
    def run_id(self) -> str:
        """The id of the run."""
        return self._attempt.run.id

    @property
    def handler(self) -> str:
        """The name of the handler."""
        return self._attempt.delivery.handler.name

    @property
    def event_id(self) -> str:
        """The id of the envelope."""
        return self._attempt.event_id

    @property
    def delivery_id(self) -> str:
        """A text that identifies the delivery among all runs."""
        return self._attempt.delivery_id

    @property
    def early(self) -> tuple[type[Event], ...]:
        """What the handler may publish before it returns."""
        return self._attempt.delivery.handler.wiring.early

    @property
    def calls(self) -> AttemptCalls:
        """The recorded calls of the attempt."""
        return self._attempt.calls

    @property
    def deps(self) -> Any:
        """The run's dependencies."""
        return self._host.deps

    def require_current(self, call: str) -> None:
        """Refuse a call that comes too late to have an effect."""
        self._attempt.require_current(call)

    def agent(self) -> Agent:
        """Return the role's agent for this delivery; it is made when first asked for."""
        return self._role_agent().agent

    async def ask(self, prompt: str, output: Any, options: dict[str, Any]) -> Any:
        """Ask the role's model."""
        return await self._role_agent().ask(prompt, output, options)

    def remembered(self) -> Callable[[], None] | None:
        """Note what the attempt adds to a history that outlives it; the returned function, if any, makes it count."""
        if self._role.history != "run" or self._asking is None:
            return None
        memory = self._host.memory
        before, after = memory.of(self.role), self._asking.conversation.messages
        if after == before:
            return None
        note(self.calls, before, after)
        return lambda: memory.keep(self.role, after)

    def _role_agent(self) -> RoleAgent:
        if self._asking is None:
            role, host, run = self._role, self._host, self._attempt.run
            self._asking = RoleAgent(
                role,
                lambda: self._model(role.name),
                self.context,
                host.memory.of(role.name) if role.history == "run" else (),
                tools=host.tools_of(role),
                limits=host.limits_of(role),
                deps=host.deps,
                calls=self.calls,
                run_id=self.run_id,
                delivery=self.delivery_id,
                on_event=run.tell if run.watchers else None,
                on_fault=partial(host.faults.add, self._attempt.delivery.handler.qualified),
                spending=host.spending,
            )
        return self._asking

    def publish(self, event: Event, after: float | None, key: str | None) -> Coroutine[Any, Any, None]:
        """Publish an event early."""
        return self._attempt.publish(event, after=after, key=key)

    async def ask_person(self, question: BaseModel | str, reply: Any) -> Any:
        """Return a person's answer, suspending the delivery where there is none yet."""
        return await self._attempt.ask(describe_question(question, reply), TypeAdapter(reply))

    def progress(self, detail: str) -> None:
        """Renew the time limit, and show those who watch."""
        self._attempt.progress()
        run = self._attempt.run
        if run.watchers:
            run.tell(Lifecycle("progress", run.id, self.time(), self.role, self.handler, detail=detail))

    def time(self) -> float:
        """Return the seconds since the epoch."""
        return self._attempt.time()


class _Callee:
    """A handler ready to be called."""

    __slots__ = ("is_async", "method", "readers", "role", "takes_context", "wiring")

    def __init__(self, role: Role, wiring: HandlerWiring) -> None:
        self.role = role
        self.wiring = wiring
        self.method = getattr(role, wiring.name)
        self.is_async = inspect.iscoroutinefunction(self.method)
        self.readers = [_READERS[kind] for kind in wiring.parameters]
        self.takes_context = "context" in wiring.parameters

    async def call(self, attempt: Attempt, arguments: list[Any]) -> Any:
        """Call the handler; one that is not async runs in a worker thread, which is abandoned when cancelled."""
        if self.is_async:
            return await self.method(*arguments)
        try:
            returned = await call_in_thread(
                lambda: self.method(*arguments),
                abandon=True,
                limiter=anyio.CapacityLimiter(1),  # its own, for the role's concurrency is what limits them
            )
        except anyio.get_cancelled_exc_class():
            attempt.abandon_thread()
            raise
        return await returned if inspect.isawaitable(returned) else returned


class Invoker:
    """Calls the handlers of a swarm's roles."""

    def __init__(self, roles: dict[str, Role], model: Callable[[str], Model], middleware: list[Middleware]) -> None:
        self._roles = roles
        self._model = model
        self._middleware = middleware
        self._callees: dict[int, _Callee] = {}

    async def __call__(self, attempt: Attempt) -> Handled:
        """Call the handler of an attempt and return what it brought.

        Raises:
            PublishError: it returned something it does not declare.
        """
        caller.set(attempt)
        try:
            callee = self._callees.get(attempt.delivery.handler.number) or self._meet(attempt)
            host: RunHost = attempt.run.host
            if not host.ready:
                with attempt.pause_clock():
                    await host.open()
            if callee.takes_context or self._middleware or not callee.is_async:
                return await self._call(attempt, callee, host)
            returned = await callee.method(*[read(attempt, None) for read in callee.readers])
            return Handled(outputs_of(callee.wiring, returned))
        finally:
            attempt.close()

    async def _call(self, attempt: Attempt, callee: _Callee, host: RunHost) -> Handled:
        """Call a handler with what not every one needs: a context, middleware, a thread."""
        port: AttemptContext | None = None
        context: RoleContext[Any, Any] | None = None
        if callee.takes_context or self._middleware:
            port = AttemptContext(attempt, callee.role, host, self._model)
            context = port.context = RoleContext(port)
        arguments = [read(attempt, context) for read in callee.readers]
        if context is not None and self._middleware:
            returned = await self._wrapped(callee, attempt, arguments, context)
        else:
            returned = await callee.call(attempt, arguments)
        outputs = outputs_of(callee.wiring, returned)
        if port is None or context is None:
            return Handled(outputs)
        return Handled(outputs, changes_of(context), port.remembered())

    def _meet(self, attempt: Attempt) -> _Callee:
        wiring = attempt.delivery.handler.wiring
        callee = self._callees[attempt.delivery.handler.number] = _Callee(self._roles[wiring.role], wiring)
        return callee

    async def _wrapped(
        self, callee: _Callee, attempt: Attempt, arguments: list[Any], context: RoleContext[Any, Any]
    ) -> Any:
        async def innermost() -> Any:
            return await callee.call(attempt, arguments)

        event = attempt.delivery.envelope.event
        handle: CallNext = innermost
        for wrap in reversed(self._middleware):
            handle = _around(wrap, context, event, handle)
        return await handle()


def state_of(attempt: Attempt) -> Any:
    """Return the role's state, or None for a role without."""
    ledger = attempt.run.ledger
    return ledger.state_of(attempt.role) if attempt.role in ledger.topology.states else None


def _around(wrap: Middleware, context: RoleContext[Any, Any], event: Event, handle: CallNext) -> CallNext:
    async def call() -> Any:
        wrapped: Any = wrap(context, event, handle)
        if not inspect.isawaitable(wrapped):
            name = getattr(wrap, "__qualname__", type(wrap).__name__)
            raise TypeError(f"the middleware {name} has to be async: async def {name}(ctx, event, call_next)")
        return await wrapped

    return call


_READERS: dict[Parameter, Callable[[Attempt, RoleContext[Any, Any] | None], Any]] = {
    "event": lambda attempt, _: attempt.delivery.envelope.event,
    "opener": lambda attempt, _: attempt.delivery.envelope.event,
    "item": lambda attempt, _: attempt.delivery.value,
    "joined": lambda attempt, _: attempt.delivery.joined,
    "state": lambda attempt, _: state_of(attempt),
    "context": lambda _, context: context,
}
"""What brings each parameter of a handler."""


def outputs_of(wiring: HandlerWiring, returned: Any) -> tuple[Event, ...]:
    """Return the events a handler returned.

    Raises:
        PublishError: one is no event, or of a type its annotation does not name; or there is none, and it names one.
    """
    if type(returned) in wiring.publishes:
        return (returned,)
    if returned is None and (wiring.silent or not wiring.publishes):
        return ()
    outputs = (returned,) if isinstance(returned, Event) else () if returned is None else returned
    if isinstance(outputs, list | tuple):
        outputs = tuple(output for output in outputs if output is not None)
        undeclared = [output for output in outputs if not isinstance(output, wiring.publishes)]
        if not undeclared and (outputs or wiring.silent or not wiring.publishes):
            return outputs
        returned = undeclared[0] if undeclared else returned
    raise _undeclared(wiring, returned)


def _undeclared(wiring: HandlerWiring, returned: Any) -> PublishError:
    names = [cls.__name__ for cls in wiring.publishes]
    told, remedy = type_of(returned), "change its annotation and the event table"
    if returned is None or isinstance(returned, list | tuple):
        told = "None" if returned is None else "nothing"
        remedy = f"annotate it with `{' | '.join([*names, 'None'])}` where it may publish nothing"
    return PublishError(
        f"{wiring.role}.{wiring.name} ({wiring.where}) declares that it returns {', '.join(names) or 'nothing'}, but "
        f"returned {told}; return what it declares, or {remedy}"
    )
