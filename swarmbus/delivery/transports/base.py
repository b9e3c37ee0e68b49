"""What the bus needs of a transport: take deliveries out to workers, and stop them when told."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, Protocol

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    import anyio
    from anyio.abc import TaskStatus

    from swarmbus.delivery.deliveries import Delivery
    from swarmbus.delivery.runs import RunState

StopReason = Literal["cancelled", "timed_out", "suspended", "given_up"]


@dataclass(frozen=True, slots=True)
class Station:
    """How one role takes deliveries.

    Attributes:
        concurrency: how many it handles at a time, over all runs.
        serial: one at a time for each run (roles with state or a history over the run).
        limit: how many may wait before those who publish to it wait too.
    """

    role: str
    concurrency: int
    serial: bool
    limit: int


class Slot:
    """One worker's place: what it works on, and how to stop it.

    Attributes:
        since: when the attempt began, in the clock's monotonic seconds.
        deadline: when it times out, moved by progress; once it is being stopped, when it is given up.
        yielded: the attempt let others have their turn.
        stopped: why the attempt is being stopped, or None; `given_up` where it went on all the same.
        trouble: why what it asked of a model failed, as long as that is tried again.
    """

    __slots__ = ("deadline", "delivery", "run", "scope", "since", "stopped", "timeout", "trouble", "yielded")

    def __init__(self) -> None:
        self.run: RunState | None = None
        self.delivery: Delivery | None = None
        self.scope: anyio.CancelScope | None = None
        self.since = 0.0
        self.deadline = 0.0
        self.timeout = 0.0
        self.stopped: StopReason | None = None
        self.yielded = False
        self.trouble = ""

    def stop(self, reason: StopReason, by: float) -> None:
        """Cancel the attempt under way, which has to be gone at a time in the clock's monotonic seconds."""
        if self.stopped is None and self.scope is not None:
            self.stopped = reason
            self.deadline = by
            self.scope.cancel()

    def renew(self, deadline: float) -> None:
        """Move the time limit, unless the attempt is being stopped."""
        if self.stopped is None:
            self.deadline = deadline


class Transport(Protocol):
    """Carries deliveries to workers, which call `work` for each attempt, and counts them as the run's `flights`."""

    async def serve(
        self,
        work: Callable[[Slot, RunState, Delivery], Awaitable[None]],
        *,
        task_status: TaskStatus[None],
    ) -> None:
        """Run workers until cancelled."""
        ...

    def send(self, run: RunState, delivery: Delivery, *, first: bool = False) -> None:
        """Queue a delivery for its role; `first` puts it before the others of its run."""
        ...

    def stop(self, run: RunState, delivery: Delivery, reason: StopReason, by: float) -> None:
        """Take a delivery back, stopping the attempt under way if there is one; see `Slot.stop`."""
        ...

    def give_up(self, slot: Slot) -> None:
        """Count an attempt as over that goes on although it was stopped, and let another worker take its place."""
        ...

    def release(self, run: RunState, delivery: Delivery) -> None:
        """Give a serial role's turn to the next delivery of the run."""
        ...

    def drop(self, run: RunState, by: float) -> None:
        """Forget what is queued for a run, and stop its attempts; see `Slot.stop`."""
        ...

    def slots(self) -> list[Slot]:
        """Return the places where an attempt is under way."""
        ...

    def pause(self) -> None:
        """Start no further attempt."""
        ...

    def is_full(self, role: str) -> bool:
        """Whether as many deliveries wait for a role as its limit lets."""
        ...

    async def room(self, role: str) -> None:
        """Wait until fewer deliveries wait for a role than its limit."""
        ...
