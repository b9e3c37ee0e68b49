"""The swarm: roles and their event table, checked before anything runs, and opened to take runs."""

from __future__ import annotations

import threading
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager, contextmanager
from typing import TYPE_CHECKING, Any, Generic

import anyio
from typing_extensions import TypeVar

from swarmbus.arguments import refusal, require, require_manager, require_seconds
from swarmbus.checks import check
from swarmbus.delivery.clock import Clock, SystemClock
from swarmbus.delivery.transports.base import Station
from swarmbus.errors import WiringError
from swarmbus.events import Event
from swarmbus.handlers import Retry
from swarmbus.live_swarm import LiveSwarm
from swarmbus.open_models import OpenModels
from swarmbus.role import Role, check_settings
from swarmbus.role_agent import tool_findings
from swarmbus.role_models import RoleModels
from swarmbus.settings import require_settings
from swarmbus.table import EventTable
from swarmbus.task_groups import background, closed_within
from swarmbus.thinking.limits import Budget, Limits
from swarmbus.wiring import RoleWiring, read_role

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator

    from swarmbus.delivery.journal import Journal
    from swarmbus.delivery.transports.base import Transport
    from swarmbus.invocation import Middleware
    from swarmbus.results import Finding, RunResult
    from swarmbus.role_models import ModelSetting
    from swarmbus.run_host import DepsFactory

R = TypeVar("R", bound=Event, default=Event)

GRACE = 10.0
"""Seconds that what is under way gets when a run ends or the swarm is closed, where nothing else is said."""
CLOSING = 1.0
"""Seconds that what roles and models have opened gets to close at least, however short the grace is."""


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
        model: ModelSetting = None,
        limits: Limits | None = None,
        budget: Budget | None = None,
        retry: Retry | None = None,
        timeout: float | None = None,
        deps: DepsFactory | None = None,
        journal: Journal | None = None,
        transport: Callable[[list[Station]], Transport] | None = None,
        clock: Clock | None = None,
    ) -> None:
        for role in roles:
            many = isinstance(role, (list, tuple))
            require("Swarm({}, table=...)", role, Role, "roles one by one: Swarm(*roles, ...)" if many else "roles")
            check_settings(role)
        require_settings("Swarm", table=table, model=model, limits=limits, budget=budget, retry=retry, timeout=timeout)
        require_settings("Swarm", deps=deps, journal=journal, transport=transport, clock=clock)
        self.roles = roles
        self.table = table
        self.middleware: list[Middleware] = []
        self._model = model
        self._model_override: ModelSetting = None
        self._overriding: list[int | None] = []
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
            self._wiring = tuple(read_role(role, timeout=self._timeout, retry=self._retry) for role in self.roles)
        return self._wiring

    @property
    def models(self) -> RoleModels:
        """The models that the roles would ask now."""
        return RoleModels(self.roles, self._model, self._model_override)

    def check(self) -> list[Finding]:
        """Compare wiring and table, and return every finding, errors first. Calls no model and runs no tool."""
        return check(self.wiring, self.table, [*self.models.findings(self.wiring), *tool_findings(self.roles)])

    def _asking(self) -> list[str]:
        """Return the roles with a handler that could ask a model."""
        return [each.name for each in self.wiring if any("context" in handler.parameters for handler in each.handlers)]

    def _ready_models(self) -> RoleModels:
        """Return the models of the roles, each made and its price known as far as that is needed."""
        models, limits = self.models, self._limits or Limits()
        in_all = self._budget is not None and self._budget.usd is not None
        priced = [role.name for role in self.roles if in_all or (role.limits or limits).usd is not None]
        models.prepare(self._asking(), priced)
        return models

    @contextmanager
    def override(
        self,
        *,
        model: ModelSetting = None,
        deps: DepsFactory | None = None,
        clock: Clock | None = None,
        journal: Journal | None = None,
    ) -> Iterator[None]:
        """Use another model, other dependencies, another clock or journal for what is opened within the block.

        The model takes the place of the roles' own models too. Blocks may be nested.

        Raises:
            RuntimeError: another task or thread has such a block, which counts for the whole swarm.
        """
        require_settings("override", model=model, deps=deps, clock=clock, journal=journal)
        here = _task_or_thread()
        if self._overriding and self._overriding[-1] not in (here, None):
            raise RuntimeError(
                "swarm.override(...) is in use in another task or thread, and counts for the whole swarm; leave that"
                " block first, or make a swarm for each"
            )
        self._overriding.append(here)
        kept = (self._model_override, self._deps, self._clock, self._journal)
        self._model_override = model if model is not None else self._model_override
        self._deps = deps or self._deps
        self._clock = clock or self._clock
        self._journal = journal or self._journal
        try:
            yield
        finally:
            self._model_override, self._deps, self._clock, self._journal = kept
            self._overriding.pop()

    def open(self, *, grace: float = GRACE) -> AbstractAsyncContextManager[LiveSwarm[R]]:
        """Open the swarm for runs; leaving the block drains it.

        A handler that does not stop when told is left to itself after the grace: its run ends and says so, and another
        takes its place in its role. But it can't be ended by force, so that leaving the block takes until it returns.

        Args:
            grace: seconds that what is under way gets when a run ends or the block is left, and what roles have
                opened to close.

        Raises:
            WiringError: the wiring has errors; nothing was started.
            ModelError: a role's model can't be made, as for lack of a key, or its price is not known while money is
                limited; nothing was started.
            TimeoutError: a role's `lifespan`, or a model, was not closed in time.
            BaseException: a handler raised what is no `Exception`, such as `SystemExit`. It ends the swarm; its runs
                are stopped, and can be resumed.
        """
        require("open(grace={})", grace, (int, float), "a number of seconds, from 0")
        require_seconds("open(grace={})", grace, zero=True)
        return self._opened(grace, attended=True)

    @asynccontextmanager
    async def _opened(self, grace: float, *, attended: bool) -> AsyncIterator[LiveSwarm[R]]:
        findings = self.check()
        if any(finding.severity == "error" for finding in findings):
            raise WiringError(findings)
        for wrap in self.middleware:
            if not callable(wrap):
                raise refusal("swarm.middleware.append({})", wrap, "a function of context, event and call_next")
        role_models = self._ready_models()
        async with AsyncExitStack() as stack:
            closing = max(grace, CLOSING)
            for role in self.roles:
                await stack.enter_async_context(closed_within(closing, _resources(role), f"{role.name}.lifespan()"))
                stack.enter_context(_running(role))
            models = OpenModels()
            await stack.enter_async_context(closed_within(closing, models, "what the models had opened"))
            group = await stack.enter_async_context(background())
            live = LiveSwarm(self, group, role_models, models, grace=grace, attended=attended)
            await group.start(live.bus.serve)
            yield live
            await live.drain()
        if live.bus.broken is not None:  # which cancelled the block
            raise live.bus.broken

    async def run(
        self, event: Event, *, timeout: float | None = None, run_id: str | None = None, deps: Any = None
    ) -> RunResult[R]:
        """Run the swarm on one event and return the result; see `Run.result` for what is raised.

        Nobody can answer a person's questions here, or send further events: a run that can only wait for them is
        stopped, and raises `RunStopped`. Use `open`, `submit` and the run's `answer` and `send` for such a swarm.

        Args:
            event: of a class that the table accepts from the client.
            timeout: seconds until the run is given up; see `LiveSwarm.submit`.
            run_id: an id of your own.
            deps: dependencies to use instead of those that the swarm's factory makes.
        """
        async with self._opened(GRACE, attended=False) as live:
            run = await live.submit(event, timeout=timeout, run_id=run_id, deps=deps)
            return await run.result()

    def run_sync(
        self, event: Event, *, timeout: float | None = None, run_id: str | None = None, deps: Any = None
    ) -> RunResult[R]:
        """Do what `run` does, for code that is not async.

        Raises:
            RuntimeError: an event loop is running here, as in a notebook.
        """
        if _runs_in_event_loop():
            raise RuntimeError(
                "an event loop is running here already: write `await swarm.run(...)` instead of run_sync"
            )

        async def main() -> RunResult[R]:
            return await self.run(event, timeout=timeout, run_id=run_id, deps=deps)

        return anyio.run(main)


def _task_or_thread() -> int | None:
    """Return what tells the current task from others, or the thread; None in the main thread outside of tasks."""
    if _runs_in_event_loop():
        return anyio.get_current_task().id
    return None if threading.current_thread() is threading.main_thread() else threading.get_ident()


def _runs_in_event_loop() -> bool:
    try:
        anyio.current_time()
    except RuntimeError:
        return False
    return True


def _resources(role: Role) -> AbstractAsyncContextManager[None]:
    opened = role.lifespan()
    require_manager(f"{role.name}.lifespan()", opened)
    return opened


@contextmanager
def _running(role: Role) -> Iterator[None]:
    """Refuse to set the role's attributes within the block."""
    object.__setattr__(role, "_open", role._open + 1)  # noqa: SLF001  # the guard that only assembly may move
    try:
        yield
    finally:
        object.__setattr__(role, "_open", role._open - 1)  # noqa: SLF001
