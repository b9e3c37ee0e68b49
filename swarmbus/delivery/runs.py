"""One run as the bus holds it: its ledger, the calls of its live deliveries, those who watch it, and its end."""

from __future__ import annotations

import math
from contextvars import copy_context
from typing import TYPE_CHECKING, Any

import anyio

from swarmbus.delivery.blocking import Blocked
from swarmbus.delivery.calllog import RunCalls

if TYPE_CHECKING:
    from pydantic import TypeAdapter

    from swarmbus.delivery.ledger import Ledger
    from swarmbus.delivery.pacing import Pacer
    from swarmbus.delivery.timekeeper import Alarm
    from swarmbus.delivery.watching import Watcher


class RunState:
    """One run.

    Attributes:
        ended: set once the run is over and nothing of it is under way.
        timeout: the seconds it may take, or None; deadline: when they are over, in the clock's monotonic seconds, or
            infinity; left: how many were left when the clock was stopped, or None while it goes.
        budget: the seconds its budget allows, or None; budget_over: when they are over, likewise.
        context: the context variables where it was submitted or resumed; each attempt works on a copy of its own.
        flights: how many attempts of it are under way.
        blocked: the handlers that blocked the event loop.
        host: what assembly keeps for the run (dependencies, budget); `close(seconds)` lets go of it and returns what
            went wrong; `committed(role, calls)` is told, as the run is rebuilt, of each delivery that was handled.
        replies: what reads the answers to questions asked in this process, by question id.
        alarms: what is set to happen at a time, as long as the run is open.
        cut: what was still going on when the run ended.
        writing: within which the journal is at work on a record.
        lost: why a record could not be kept, which ends the run.
    """

    def __init__(self, ledger: Ledger, timeout: float | None = None, *, fresh: frozenset[int] = frozenset()) -> None:
        self.id = ledger.run_id
        self.ledger = ledger
        self.calls = RunCalls(fresh)
        self.pacers: dict[str, Pacer] = {}
        self.watchers: list[Watcher] = []
        self.ended = anyio.Event()
        self.lock = anyio.Lock()
        self.timeout = timeout
        self.deadline = math.inf
        self.left: float | None = None
        self.budget: float | None = None
        self.budget_over = math.inf
        self.context = copy_context()
        self.flights = 0
        self.blocked = Blocked()
        self.host: Any = None
        self.replies: dict[str, TypeAdapter[Any]] = {}
        self.cut: list[str] = []
        self.writing: anyio.CancelScope | None = None
        self.lost: Exception | None = None
        self.alarms: list[Alarm] = []
        self._sweep_at = 100
        self._settled: anyio.Event | None = None

    @property
    def waits_for_people(self) -> bool:
        """All that is left of the run waits for a person."""
        ledger = self.ledger
        return bool(ledger.questions) and len(ledger.questions) == len(ledger.pending) and not ledger.timers

    def pause_for_people(self, now: float) -> bool:
        """Stop the clock while all that is left of the run waits for a person; say whether it goes on again."""
        waits = self.waits_for_people
        if waits and self.left is None:
            self.left, self.deadline = self.deadline - now, math.inf
        elif not waits and self.left is not None:
            self.deadline, self.left = now + self.left, None
            return True
        return False

    def keep(self, alarm: Alarm) -> None:
        """Keep an alarm, to be cancelled when the run is over; those that are over by now are forgotten."""
        if len(self.alarms) >= self._sweep_at:
            self.alarms = [one for one in self.alarms if one.call is not None]
            self._sweep_at = 100 + 2 * len(self.alarms)
        self.alarms.append(alarm)

    def landed(self) -> None:
        """Take note that the last attempt under way has come to an end."""
        if self._settled is not None:
            self._settled.set()

    async def landing(self) -> None:
        """Wait until `landed` is called."""
        if self._settled is None or self._settled.is_set():
            self._settled = anyio.Event()
        await self._settled.wait()

    def tell(self, item: Any) -> None:
        """Show an item to those who watch."""
        for watcher in self.watchers:
            watcher.put(item)
