"""The swarm: roles and their event table, checked before anything runs, and opened to take runs."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from typing import TYPE_CHECKING, Any, Generic
from weakref import WeakValueDictionary

import anyio
from typing_extensions import TypeVar

from swarmbus.checks import check
from swarmbus.delivery.bus import Bus
from swarmbus.delivery.clock import Clock, SystemClock
from swarmbus.delivery.supervisor import Policy
from swarmbus.delivery.topology import Topology, compile_topology
from swarmbus.delivery.transports.base import Station
from swarmbus.delivery.transports.memory import MemoryTransport
from swarmbus.errors import SubmitError, UnknownModel, WiringError
from swarmbus.events import Event, event_name
from swarmbus.handlers import Retry
from swarmbus.invocation import Invoker
from swarmbus.open_models import OpenModels
from swarmbus.role import Role
from swarmbus.run import Run
from swarmbus.run_host import RunHost, RunSpending
from swarmbus.table import EventTable
from swarmbus.text import clean_event
from swarmbus.thinking.limits import Budget, Limits
from swarmbus.thinking.models.base import Model
from swarmbus.thinking.models.registry import resolve_model
from swarmbus.wiring import RoleWiring, read_role

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator

    from anyio.abc import TaskGroup

    from swarmbus.delivery.journal import Journal
    from swarmbus.delivery.transports.base import Transport
    from swarmbus.invocation import Middleware
    from swarmbus.results import Finding, RunResult
    from swarmbus.run_host import DepsFactory

R = TypeVar("R", bound=Event, default=Event)

HANDLER_TIMEOUT = 600.0
"""Seconds an attempt at a delivery may take, where nothing else is said."""
INBOX_LIMIT = 1000
"""Deliveries that may wait for a role before those who publish to it wait."""
OPEN_ITEMS = 64
"""Items of one run's maps that a role keeps open at least; twice its concurrency where that is more."""
SERIAL_WORKERS = 64
"""Runs for which a role with state works at the same time at least."""


class Swarm(Generic[R]):
    """Roles wired by an event table.

    Making one never raises for its wiring: `check` reports, and `open` and `run` refuse.

    Args:
        roles: the role instances; two with one name are a finding.
        table: who publishes and who handles what, and which event is the result.
        model: the model of all roles, or of each by its name: a name such as `openai:gpt-5-mini`, or a `Model`.
        limits: what one question of a role's agent may use up.
        budget: what one run may use up.
        retry, timeout: defaults for handlers; the timeout is in seconds.
        deps: makes a run's dependencies from its first event.
        journal: where the records of runs are kept; None keeps none.
        transport: makes the transport from the roles' stations; in memory by default.
        clock: the clock to live by.
    """

    def __init__(
        self,
        *roles: Role,
        table: EventTable[R],
        model: str | Model | Mapping[str, str | Model] | None = None,
        limits: Limits | None = None,
        budget: Budget | None = None,
        retry: Retry | None = None,
        timeout: float | None = None,
        deps: DepsFactory | None = None,
        journal: Journal | None = None,
        transport: Callable[[list[Station]], Transport] | None = None,
        clock: Clock | None = None,
    ) -> None:
        self.roles = roles
        self.table = table
        self.middleware: list[Middleware] = []
        self._model = model
        self._model_override: str | Model | Mapping[str, str | Model] | None = None
        self._limits = limits
        self._budget = budget
        self._retry = retry
        self._timeout = timeout
        self._deps = deps
        self._journal = journal
        self._transport = transport
        self._clock: Clock = clock or SystemClock()
        self._wiring: tuple[RoleWiring, ...] | None = None

    @property
    def wiring(self) -> tuple[RoleWiring, ...]:
        """What the roles' classes really handle and publish."""
        if self._wiring is None:
            self._wiring = tuple(read_role(role) for role in self.roles)
        return self._wiring

    def check(self) -> list[Finding]:
        """Compare wiring and table, and return every finding, errors first. Calls no model and runs no tool."""
        return check(self.wiring, self.table)

    @contextmanager
    def override(
        self,
        *,
        model: str | Model | Mapping[str, str | Model] | None = None,
        deps: DepsFactory | None = None,
        clock: Clock | None = None,
        journal: Journal | None = None,
    ) -> Iterator[None]:
        """Use another model, other dependencies, another clock or journal for what is opened within the block.

        The model takes the place of the roles' own models too.
        """
        kept = (self._model_override, self._deps, self._clock, self._journal)
        self._model_override = model if model is not None else self._model_override
        self._deps = deps or self._deps
        self._clock = clock or self._clock
        self._journal = journal or self._journal
        try:
            yield
        finally:
            self._model_override, self._deps, self._clock, self._journal = kept

    @asynccontextmanager
    async def open(self, *, grace: float = 10.0) -> AsyncIterator[LiveSwarm[R]]:
        """Open the swarm for runs; leaving the block drains it.

        Args:
            grace: seconds that what is under way gets when a run ends or the block is left.

        Raises:
            WiringError: the wiring has errors; nothing was started.
        """
        findings = self.check()
        if any(finding.severity == "error" for finding in findings):
            raise WiringError(findings)
        error: Exception | None = None
        async with AsyncExitStack() as stack:
            for role in self.roles:
                await stack.enter_async_context(role.lifespan())
                stack.enter_context(_running(role))
            models = await stack.enter_async_context(OpenModels())
            async with anyio.create_task_group() as group:
                live = LiveSwarm(self, group, models, grace)
                await group.start(live.bus.serve)
                try:
                    yield live
                    await live.bus.endings.drain()
                except Exception as raised:  # noqa: BLE001  # raised again below, outside the task group
                    error = raised
                group.cancel_scope.cancel()
        if error is not None:
            raise error

    async def run(
        self, event: Event, *, timeout: float | None = None, run_id: str | None = None, deps: Any = None
    ) -> RunResult[R]:
        """Run the swarm on one event and return the result; see `Run.result` for what is raised.

        Args:
            event: of a class that the table accepts from the client.
            timeout: seconds until the run is given up; waiting for a person alone does not count.
            run_id: an id of your own.
            deps: dependencies to use instead of those that the swarm's factory makes.
        """
        async with self.open() as live:
            run = await live.submit(event, timeout=timeout, run_id=run_id, deps=deps)
            return await run.result()

    def run_sync(
        self, event: Event, *, timeout: float | None = None, run_id: str | None = None, deps: Any = None
    ) -> RunResult[R]:
        """Do what `run` does, for code that is not async."""

        async def main() -> RunResult[R]:
            return await self.run(event, timeout=timeout, run_id=run_id, deps=deps)

        return anyio.run(main)


class LiveSwarm(Generic[R]):
    """An open swarm: takes events that start runs."""

    def __init__(self, swarm: Swarm[R], group: TaskGroup, models: OpenModels, grace: float) -> None:
        self.swarm = swarm
        self._group = group
        self._runs: WeakValueDictionary[str, Run[R]] = WeakValueDictionary()
        self._turns: WeakValueDictionary[str, anyio.Lock] = WeakValueDictionary()
        self._models: dict[str, Model] = {}
        self._open_models = models
        self._model_settings = (swarm._model_override, swarm._model)  # noqa: SLF001  # settings, and what they open
        self._topology = compile_topology(swarm.wiring, swarm.table)
        roles = {role.name: role for role in swarm.roles}
        stations = [_station(role, wiring) for role, wiring in zip(swarm.roles, swarm.wiring, strict=True)]
        make = swarm._transport or MemoryTransport  # noqa: SLF001
        self.bus = Bus(
            self._topology,
            make(stations),
            Invoker(roles, self._model_of, swarm.middleware),
            policies=_policies(self._topology, roles, swarm._retry, swarm._timeout),  # noqa: SLF001
            limits={role.name: max(OPEN_ITEMS, 2 * role.concurrency) for role in swarm.roles},
            clock=swarm._clock,  # noqa: SLF001
            journal=swarm._journal,  # noqa: SLF001
            grace=grace,
        )

    async def submit(
        self, event: Event, *, run_id: str | None = None, timeout: float | None = None, deps: Any = None
    ) -> Run[R]:
        """Start a run with its first event; the same `run_id` again returns the run it started.

        Raises:
            SubmitError: the table does not accept the event from the client; no run was made.
        """
        if run_id is None:
            return await self._start(uuid.uuid4().hex, event, timeout, deps)
        async with self._turn(run_id):
            if (run := self._open(run_id)) is not None:
                return run
            if await self.bus.keeps(run_id):
                return await self._restore(run_id)
            return await self._start(run_id, event, timeout, deps)

    async def resume(self, run_id: str) -> Run[R]:
        """Go on with a run that the journal holds.

        What its model calls have cost counts towards its budget; a budget of seconds begins anew.

        Raises:
            RecordError: the journal has no such run, or holds what this swarm can't read.
        """
        async with self._turn(run_id):
            return self._open(run_id) or await self._restore(run_id)

    def _turn(self, run_id: str) -> anyio.Lock:
        """Return what lets those who start or resume a run under one id take turns."""
        return self._turns.setdefault(run_id, anyio.Lock())

    def _open(self, run_id: str) -> Run[R] | None:
        """Return the run that goes on here under an id, or has ended and is still held by somebody."""
        run = self._runs.get(run_id)
        if run is None and run_id in self.bus.runs:
            run = self._adopt(self.bus.runs[run_id])
        return run

    async def _start(self, run_id: str, event: Event, timeout: float | None, deps: Any) -> Run[R]:
        if not isinstance(event, Event):
            raise SubmitError(f"{event!r} is no event; submit an instance of an Event class that the table accepts")
        accepted = self._topology.submittable("client")
        if type(event) not in accepted:
            names = ", ".join(event_name(cls) for cls in accepted) or "none"
            raise SubmitError(f"the table does not accept {event_name(event)} from the client; it accepts: {names}")
        clean, replaced = clean_event(event)
        budget = self.swarm._budget or Budget()  # noqa: SLF001
        host = self._host(clean, run_id, deps, budget)
        state = await self.bus.submit(run_id, clean, timeout=timeout, max_hops=budget.hops, host=host)
        if replaced:
            where = event_name(event)
            state.ledger.warnings.append(f"{replaced} characters that no text can hold were replaced in {where}")
        if budget.seconds is not None:
            self.bus.endings.limit_seconds(state, budget.seconds)
        return self._adopt(state)

    async def _restore(self, run_id: str) -> Run[R]:
        opening, records = await self.bus.recorded(run_id)
        budget = self.swarm._budget or Budget()  # noqa: SLF001
        host = self._host(opening, run_id, None, budget)
        state = await self.bus.restore(run_id, records, host=host)
        run = self._adopt(state)
        if host.spending is not None:
            for role, usage in run.usage_by_role.items():
                host.spending.carry_over(self._model_of(role).name, usage)
        if budget.seconds is not None:
            self.bus.endings.limit_seconds(state, budget.seconds)
        return run

    def _adopt(self, state: Any) -> Run[R]:
        run = self._runs[state.id] = Run[R](self.bus, state)
        return run

    def _host(self, opening: Event, run_id: str, deps: Any, budget: Budget) -> RunHost:
        async def end(reason: str) -> None:
            await self.bus.endings.end(self.bus.runs[run_id], "limit", reason)

        limited = budget.tokens is not None or budget.calls is not None or budget.usd is not None
        return RunHost(
            opening,
            self._group,
            factory=self.swarm._deps if deps is None else None,  # noqa: SLF001
            deps=deps,
            limits=self.swarm._limits,  # noqa: SLF001
            spending=RunSpending(budget, end) if limited else None,
        )

    def _model_of(self, role: str) -> Model:
        model = self._models.get(role)
        if model is None:
            own: Any = next((r.model for r in self.swarm.roles if r.name == role), None)
            setting = _model_setting(role, own, *self._model_settings)
            if setting is None:
                raise UnknownModel(f"{role} has no model: give Swarm(model=...), or the role's class a `model`")
            model = self._models[role] = resolve_model(setting)
            self._open_models.add(model)
        return model


@contextmanager
def _running(role: Role) -> Iterator[None]:
    """Refuse to set the role's attributes within the block."""
    object.__setattr__(role, "_open", role._open + 1)  # noqa: SLF001  # the guard that only assembly may move
    try:
        yield
    finally:
        object.__setattr__(role, "_open", role._open - 1)  # noqa: SLF001


def _model_setting(role: str, own: Any, override: Any, default: Any) -> Any:
    for setting in (override, default):
        if isinstance(setting, Mapping) and role in setting:
            return setting[role]
        if setting is override and setting is not None and not isinstance(setting, Mapping):
            return setting
    return own or (default if not isinstance(default, Mapping) else None)


def _station(role: Role, wiring: RoleWiring) -> Station:
    serial = wiring.state is not None or role.history == "run"
    concurrency = max(role.concurrency, SERIAL_WORKERS) if serial else role.concurrency
    return Station(role.name, concurrency, serial, INBOX_LIMIT)


def _policies(
    topology: Topology, roles: dict[str, Role], retry: Retry | None, timeout: float | None
) -> tuple[Policy, ...]:
    policies = []
    for handler in topology.handlers:
        role, wiring = roles[handler.role], handler.wiring
        limits = (limit for limit in (wiring.timeout, role.timeout, timeout) if limit is not None)
        policies.append(Policy(wiring.retry or role.retry or retry or Retry(), next(limits, HANDLER_TIMEOUT)))
    return tuple(policies)
