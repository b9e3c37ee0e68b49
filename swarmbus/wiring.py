"""The wiring: what a role's handlers accept and publish, read from its class.

Reading never fails: what the code does not say is a finding of the handler. Whether the wiring agrees with the
event table is for `checks`.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, Protocol

from swarmbus.handler_signatures import Events, Parameter, read_signature
from swarmbus.handlers import HandlerSpec, Partial, Retry, spec_of

if TYPE_CHECKING:
    from pydantic import BaseModel

    from swarmbus.events import Event
    from swarmbus.results import Finding


class ReadableRole(Protocol):
    """What is read of a role beside its handlers."""

    @property
    def name(self) -> str:
        """How the event table calls it."""
        ...

    @property
    def concurrency(self) -> int:
        """Deliveries at a time."""
        ...

    @property
    def tools(self) -> Sequence[Any]:
        """The tools it lists."""
        ...

    @property
    def timeout(self) -> float | None:
        """Seconds for one attempt, where a handler does not say so."""
        ...

    @property
    def retry(self) -> Retry | None:
        """When to attempt again, where a handler does not say so."""
        ...


@dataclass(frozen=True, slots=True)
class HandlerWiring:
    """One handler of one role.

    Attributes:
        role: name of the role.
        name: name of the method.
        kind: `"on"` for one event at a time, `"join"` for many at once.
        accepts: the classes it handles; for a join, the contributions.
        opener: the class that opens a join.
        publishes: the classes it returns.
        early: the classes it publishes before it returns.
        silent: whether it may return nothing.
        each: what is mapped: a field of the event, or a function of it.
        each_type: annotation of the item.
        when: whether it takes an event; see `on`.
        key, expect, partial, quorum, deadline: see `join`.
        timeout: seconds for one attempt, as the handler says, else its role, else the swarm; None if none does.
        retry: when to attempt again, as one of them says.
        parameters: what the method is called with, in order.
        file, line: where the method is written.
        problems: what its signature fails to say.
        unread_inputs, unread_outputs: whether that leaves open what it handles, or what it publishes.
    """

    role: str
    name: str
    kind: Literal["on", "join"]
    accepts: Events
    opener: type[Event] | None
    publishes: Events
    early: Events
    silent: bool
    each: str | Callable[[Any], Iterable[Any]] | None
    each_type: Any
    when: Callable[[Any], bool] | None
    key: str | None
    expect: str | Callable[[Any], Iterable[str]] | None
    partial: Partial
    quorum: int | None
    deadline: float | None
    timeout: float | None
    retry: Retry | None
    parameters: tuple[Parameter, ...]
    file: str
    line: int
    problems: tuple[Finding, ...] = ()
    unread_inputs: bool = False
    unread_outputs: bool = False

    @property
    def where(self) -> str:
        """Where the method is written, as `file:line`."""
        return f"{self.file}:{self.line}"

    @property
    def qualified(self) -> str:
        """Role and method, such as `planner.plan`."""
        return f"{self.role}.{self.name}"

    @property
    def produces(self) -> Events:
        """All that it publishes, returned or early."""
        return tuple(dict.fromkeys((*self.publishes, *self.early)))

    @property
    def handles(self) -> Events:
        """All that has to reach it, a join's opener included."""
        return self.accepts if self.opener is None else tuple(dict.fromkeys((self.opener, *self.accepts)))


@dataclass(frozen=True, slots=True)
class RoleWiring:
    """One role of a swarm, and its handlers in the order in which they are written.

    Attributes:
        name: name of the role.
        cls: its class.
        handlers: its handlers, inherited ones first.
        state: its `State`, if it has one.
        concurrency: deliveries at a time.
        tools: the tools it lists.
    """

    name: str
    cls: type
    handlers: tuple[HandlerWiring, ...]
    state: type[BaseModel] | None
    concurrency: int
    tools: tuple[Any, ...]


def read_role(role: ReadableRole, *, timeout: float | None = None, retry: Retry | None = None) -> RoleWiring:
    """Read a role's wiring; what can't be read is in the handlers' `problems`.

    Args:
        role: the role.
        timeout: of the swarm, for handlers where neither they nor their role say so.
        retry: of the swarm, likewise.
    """
    timeout = role.timeout if role.timeout is not None else timeout
    retry = role.retry or retry
    cls = type(role)
    attributes: dict[str, Any] = {}
    for base in reversed(cls.__mro__):
        attributes.update(vars(base))
    handlers = [
        _read_handler(role, name, attribute, timeout, retry)
        for name, attribute in attributes.items()
        if spec_of(attribute)
    ]
    return RoleWiring(
        name=role.name,
        cls=cls,
        handlers=tuple(handlers),
        state=getattr(role, "State", None),
        concurrency=role.concurrency,
        tools=tuple(role.tools),
    )


def _read_handler(
    role: ReadableRole, name: str, method: Callable[..., Any], timeout: float | None, retry: Retry | None
) -> HandlerWiring:
    spec = spec_of(method)
    assert isinstance(spec, HandlerSpec)
    function = inspect.unwrap(method)
    signature = read_signature(function, spec, type(role), f"{role.name}.{name}", getattr(role, "State", None))
    return HandlerWiring(
        role=role.name,
        name=name,
        kind=spec.kind,
        accepts=signature.accepts,
        opener=signature.opener,
        publishes=signature.publishes,
        early=signature.early,
        silent=signature.silent,
        each=spec.each,
        each_type=signature.each_type,
        when=spec.when,
        key=spec.key,
        expect=spec.expect,
        partial=spec.partial,
        quorum=spec.quorum,
        deadline=spec.deadline,
        timeout=spec.timeout if spec.timeout is not None else timeout,
        retry=spec.retry or retry,
        parameters=signature.parameters,
        file=function.__code__.co_filename,
        line=function.__code__.co_firstlineno,
        problems=signature.problems,
        unread_inputs=signature.unread_inputs,
        unread_outputs=signature.unread_outputs,
    )
