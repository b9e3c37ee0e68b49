"""A swarm while it is open: takes the events that start runs, and puts together what each run needs."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, Any, Generic
from weakref import WeakValueDictionary

import anyio
from typing_extensions import TypeVar

from swarmbus.arguments import refusal, require_seconds, require_text
from swarmbus.delivery.bus import Bus
from swarmbus.delivery.reopening import NOT_FINAL
from swarmbus.delivery.supervisor import Policy
from swarmbus.delivery.topology import Topology
from swarmbus.delivery.transports.base import Station
from swarmbus.delivery.transports.memory import MemoryTransport
from swarmbus.errors import SubmitError
from swarmbus.events import Event, event_name
from swarmbus.handlers import Retry
from swarmbus.invocation import Invoker
from swarmbus.run import Run
from swarmbus.run_host import RunHost, RunSpending
from swarmbus.text import clean_event, replaced_note
from swarmbus.thinking.limits import Budget

if TYPE_CHECKING:
    from anyio.abc import TaskGroup

    from swarmbus.open_models import OpenModels
    from swarmbus.role import Role
    from swarmbus.role_models import RoleModels
    from swarmbus.swarm import Swarm
    from swarmbus.thinking.models.base import Model
    from swarmbus.wiring import RoleWiring

R = TypeVar("R", bound=Event, default=Event)

HANDLER_TIMEOUT = 600.0
"""Seconds an attempt at a delivery may take, where nothing else is said."""
INBOX_LIMIT = 1000
"""Deliveries that may wait for a role before those who publish to it wait."""
OPEN_ITEMS = 64
"""Items of one run's maps that a role keeps open at least; twice its concurrency where that is more."""
SERIAL_WORKERS = 64
"""Runs for which a role with state works at the same time at least."""


class LiveSwarm(Generic[R]):
    """An open swarm: takes events that start runs, from the thread it was opened in; others get a `RuntimeError`."""

    def __init__(
        self,
        swarm: Swarm[R],
        group: TaskGroup,
        role_models: RoleModels,
        models: OpenModels,
        *,
        grace: float,
        attended: bool,
    ) -> None:
        self.swarm = swarm
        self._group = group
        self._runs: WeakValueDictionary[str, Run[R]] = WeakValueDictionary()
        self._turns: WeakValueDictionary[str, anyio.Lock] = WeakValueDictionary()
        self._models = role_models
        self._open_models = models
        self._topology = Topology(swarm.wiring, swarm.table)
        roles = {role.name: role for role in swarm.roles}
        stations = [_station(role, wiring) for role, wiring in zip(swarm.roles, swarm.wiring, strict=True)]
        make = swarm._transport or MemoryTransport  # noqa: SLF001
        self.bus = Bus(
            self._topology,
            make(stations),
            Invoker(roles, self._model_of, swarm.middleware),
            policies=_policies(self._topology),
            limits={role.name: max(OPEN_ITEMS, 2 * role.concurrency) for role in swarm.roles},
            clock=swarm._clock,  # noqa: SLF001
            journal=swarm._journal,  # noqa: SLF001
            around=group.cancel_scope,
            attended=attended,
            grace=grace,
        )

    async def submit(
        self, event: Event, *, run_id: str | None = None, timeout: float | None = None, deps: Any = None
    ) -> Run[R]:
        """Start a run with its first event; the same `run_id` again returns the run it started.

        Args:
            event: of a class that the table accepts from the client.
            run_id: an id of your own.
            timeout: seconds until the run is given up. While all that is left of it waits for a person, they don't
                count: `ask_person` may take days. Cancel the run to end it then.
            deps: dependencies to use instead of those that the swarm's factory makes.

        Raises:
            SubmitError: the table does not accept the event from the client; no run was made.
            TypeError, ValueError: a time limit or an id that can't be one.
        """
        self.bus.home.require("submit()")
        require_seconds("timeout={}", timeout, zero=True)
        if run_id is None:
            return await self._start(uuid.uuid4().hex, event, timeout, deps)
        require_text("run_id={}", run_id)
        async with self._turn(run_id):
            if (run := self._open(run_id)) is not None:
                return run
            if await self.bus.keeps(run_id):
                return await self._restore(run_id)
            return await self._start(run_id, event, timeout, deps)

    async def resume(self, run_id: str) -> Run[R]:
        """Go on with a run that the journal holds, unless it is done, stalled or was cancelled.

        One that failed tries the delivery again whose failure ended it, unless somebody was asked to mend that; what
        was cancelled for it is open again. What its model calls have cost counts towards its budget. Of its time limit
        what was left when its records ended counts on, or all of it where it had timed out; a budget of seconds begins
        anew.

        Raises:
            RecordError: the journal has no such run, or holds what this swarm can't read.
        """
        self.bus.home.require("resume()")
        require_text("resume({})", run_id, "the id of a run")
        async with self._turn(run_id):
            run = self._open(run_id)
            if run is None or (run.status in NOT_FINAL and await self.bus.keeps(run_id)):
                return await self._restore(run_id, reopen=True)
            return run

    async def drain(self) -> None:
        """Start nothing new, let what is under way finish within the grace time, and stop the runs that are left.

        Leaving the block does the same, but takes as long as handlers go on that don't stop when told.
        """
        self.bus.home.require("drain()")
        await self.bus.endings.drain()

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
        given: Any = event
        if not isinstance(given, Event):
            raise SubmitError(str(refusal("event={}", given, "an event that the table accepts from the client")))
        accepted = self._topology.submittable("client")
        if type(event) not in accepted:
            names = ", ".join(event_name(cls) for cls in accepted) or "none"
            raise SubmitError(f"the table does not accept {event_name(event)} from the client; it accepts: {names}")
        clean, replaced = clean_event(event)
        budget = self.swarm._budget or Budget()  # noqa: SLF001
        host = self._host(clean, run_id, deps, budget)
        state = await self.bus.submit(run_id, clean, timeout=timeout, max_hops=budget.hops, host=host)
        if replaced:
            state.ledger.warnings.append(replaced_note(event, replaced))
        if budget.seconds is not None:
            self.bus.endings.limit_seconds(state, budget.seconds)
        return self._adopt(state)

    async def _restore(self, run_id: str, *, reopen: bool = False) -> Run[R]:
        opening, records = await self.bus.recorded(run_id)
        budget = self.swarm._budget or Budget()  # noqa: SLF001
        host = self._host(opening, run_id, None, budget)
        state = await self.bus.restore(run_id, records, reopen=reopen, host=host)
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
            give_up=self.bus.give_up,
            factory=self.swarm._deps if deps is None else None,  # noqa: SLF001
            deps=deps,
            limits=self.swarm._limits,  # noqa: SLF001
            spending=RunSpending(budget, end) if limited else None,
        )

    def _model_of(self, role: str) -> Model:
        self.bus.home.require("what asks a role's model")
        model = self._models.of(role)
        self._open_models.add(model)
        return model


def _station(role: Role, wiring: RoleWiring) -> Station:
    serial = wiring.state is not None or role.history == "run"
    concurrency = max(role.concurrency, SERIAL_WORKERS) if serial else role.concurrency
    return Station(role.name, concurrency, serial, INBOX_LIMIT)


def _policies(topology: Topology) -> tuple[Policy, ...]:
    handlers = [handler.wiring for handler in topology.handlers]
    return tuple(
        Policy(wiring.retry or Retry(), HANDLER_TIMEOUT if wiring.timeout is None else wiring.timeout)
        for wiring in handlers
    )
