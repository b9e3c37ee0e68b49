"""What assembly keeps for one open run: its dependencies, its budget, and what its roles remember."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import anyio

from swarmbus.arguments import require_manager
from swarmbus.messages import Usage
from swarmbus.role_agent import tools_of
from swarmbus.run_memory import RunMemory
from swarmbus.task_groups import raised_by, singly
from swarmbus.text import error_text, text_of, type_name
from swarmbus.thinking.asking import REPLY_TOKENS
from swarmbus.thinking.limits import Limits
from swarmbus.thinking.prices import price_of

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from contextlib import AbstractAsyncContextManager

    from anyio.abc import TaskGroup, TaskStatus

    from swarmbus.delivery.calllog import Kept
    from swarmbus.events import Event
    from swarmbus.role import Role
    from swarmbus.thinking.limits import Budget

    DepsFactory = Callable[[Event], AbstractAsyncContextManager[Any]]


class RunSpending:
    """A run's budget over all its roles: reserved before a model call, settled after it.

    A call that would pass the budget never starts: it ends the run instead.
    """

    def __init__(self, budget: Budget, end: Callable[[str], Awaitable[None]]) -> None:
        self._budget = budget
        self._end = end
        self._reserved = 0
        self._calls = 0
        self._spent = Usage()
        self._usd = 0.0
        self._prices: dict[str, Callable[[Usage], float]] = {}

    def carry_over(self, model: str, usage: Usage) -> None:
        """Book what calls to a model cost before the run was resumed."""
        self._calls += usage.calls
        self._spent += usage
        self._usd += self._price(model, usage)

    async def reserve(self, tokens: int, model: str) -> None:
        """Set tokens aside for a call about to be made, or end the run and never come back.

        Raises:
            UnknownPrice: the budget limits money, and the model's price is not known.
        """
        self._price(model, Usage())
        budget = self._budget
        expected = self._spent.total_tokens + self._reserved + tokens
        reason = ""
        if budget.calls is not None and self._calls >= budget.calls:
            made = "1 model call was" if self._calls == 1 else f"{self._calls} model calls were"
            reason = f"calls: {made} made, the budget allows {budget.calls}"
        elif budget.tokens is not None and expected > budget.tokens:
            spent = self._spent.total_tokens
            reason = (
                f"tokens: {spent} spent, {self._reserved} set aside for calls under way, {tokens} wanted for the next"
                f" one: its prompt, and its reply as long as it may be; the budget is {budget.tokens}. A reply takes"
                f" {REPLY_TOKENS} unless ctx.ask(..., settings=ModelSettings(max_tokens=)) says less; Budget(tokens=)"
                " allows more"
            )
        elif budget.usd is not None and self._usd >= budget.usd:
            reason = f"usd: {self._usd:.4f} US dollars were spent, the budget is {budget.usd}"
        if reason:
            await self._end(reason)
            await anyio.sleep_forever()
        self._reserved += tokens
        self._calls += 1

    def settle(self, reserved: int, usage: Usage, model: str) -> None:
        """Give back what was set aside and book what the call really cost."""
        self._reserved -= reserved
        self._spent += usage
        self._usd += self._price(model, usage)

    def _price(self, model: str, usage: Usage) -> float:
        """Return what calls of a model cost in US dollars, where the budget limits them."""
        if self._budget.usd is None:
            return 0.0
        if model not in self._prices:
            self._prices[model] = price_of(model)
        return self._prices[model](usage)


class Faults:
    """What the tools of a run's handlers, and the hooks around them, raised that nobody meant for the model."""

    def __init__(self) -> None:
        self._found: dict[tuple[str, str, str], tuple[int, str]] = {}

    def add(self, handler: str, culprit: str, error: BaseException) -> None:
        """Note one more; of those of one handler, culprit and type the text of the first is kept."""
        place = (handler, culprit, type_name(error))
        times, text = self._found.get(place, (0, text_of(error)))
        self._found[place] = (times + 1, text)

    def warnings(self) -> list[str]:
        """Say for each handler, culprit and type of exception how often it came."""
        return [
            f"in {handler} {culprit} raised {kind}{f' {times} times' if times > 1 else ''} ({text}): its model was told"
            " and went on; mend that, or raise swarmbus.errors.ToolError with what the model is to read"
            for (handler, culprit, kind), (times, text) in self._found.items()
        ]


class RunHost:
    """The surroundings of one run's handlers.

    Args:
        group: for the tasks that keep the dependencies open.
        give_up: ends the swarm, with the error for whoever opened it and the reason for whoever waits for a run.
    """

    def __init__(
        self,
        opening: Event,
        group: TaskGroup,
        *,
        give_up: Callable[[BaseException, str], None],
        factory: DepsFactory | None,
        deps: Any,
        limits: Limits | None,
        spending: RunSpending | None,
    ) -> None:
        self.memory = RunMemory()
        self.faults = Faults()
        self.spending = spending
        self.deps = deps
        self.ready = factory is None
        self._opening = opening
        self._group = group
        self._give_up = give_up
        self._factory = factory
        self._limits = limits or Limits()
        self._over = anyio.Event()
        self._closed: anyio.Event | None = None
        self._error: BaseException | None = None
        self._lock = anyio.Lock()
        self._tools: dict[str, tuple[Any, ...]] = {}

    def committed(self, role: str, calls: Kept) -> None:
        """Take from the recorded calls of a delivery that was handled what its role remembers."""
        self.memory.recall(role, calls)

    async def open(self) -> None:
        """Open the dependencies, if that has not been done, in a task of their own, which closes them too.

        Raises:
            BaseException: what the factory's context manager raised; it may be tried again.
        """
        async with self._lock:
            if not self.ready:
                await self._group.start(self._keep_open)
                error, self._error = self._error, None
                if error is not None:
                    raise error
                self.ready = True

    async def close(self, seconds: float) -> list[str]:
        """Close the dependencies within some seconds, and return what went wrong then and in tools."""
        return [*self.faults.warnings(), *await self._closed_within(seconds)]

    async def _closed_within(self, seconds: float) -> list[str]:
        if self._closed is None:
            return []
        self._over.set()
        with anyio.move_on_after(seconds) as patience:
            await self._closed.wait()
        if patience.cancelled_caught:
            return [f"the run's dependencies were not closed within {seconds:g} s"]
        if self._error is not None:
            return [f"the run's dependencies could not be closed: {error_text(self._error)}"]
        return []

    def tools_of(self, role: Role) -> tuple[Any, ...]:
        """Return a role's tools, its own methods bound to it."""
        tools = self._tools.get(role.name)
        if tools is None:
            tools = self._tools[role.name] = tools_of(role)
        return tools

    def limits_of(self, role: Role) -> Limits:
        """Return the limits of a role's agent."""
        return role.limits or self._limits

    async def _keep_open(self, *, task_status: TaskStatus[None]) -> None:
        closed = anyio.Event()
        try:
            self._error = await raised_by(self._hold(closed, task_status))
            if self._closed is None:  # it could not be opened, so that nobody was told yet
                task_status.started()
            elif not isinstance(self._error, Exception | None):
                reason = f"the run's dependencies raised {error_text(self._error)} when closed, which ended the swarm"
                self._give_up(self._error, reason)
        finally:
            closed.set()

    async def _hold(self, closed: anyio.Event, task_status: TaskStatus[None]) -> None:
        assert self._factory is not None
        made = self._factory(self._opening)
        require_manager("the function given as deps=", made)
        with singly():
            async with made as self.deps:
                self._closed = closed
                task_status.started()
                await self._over.wait()
