"""The default transport: one inbox for each role, and a fixed set of worker tasks that empty it.

Runs take turns in an inbox, so that a run of thousands does not starve a run of five; within a run, deliveries keep the
order of their arrival. A worker holds one cancel scope for many deliveries and yields to others every so often.
"""

from __future__ import annotations

import math
import time
from collections import deque
from typing import TYPE_CHECKING

import anyio
import anyio.lowlevel

from swarmbus.delivery.transports.base import Slot
from swarmbus.errors import RoleError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable
    from types import TracebackType

    from anyio.abc import TaskGroup, TaskStatus

    from swarmbus.delivery.deliveries import Delivery
    from swarmbus.delivery.runs import RunState
    from swarmbus.delivery.transports.base import Station, StopReason

    Work = Callable[[Slot, RunState, Delivery], Awaitable[None]]

BURST = 64
"""Deliveries a worker handles before it lets others run."""
SLICE = 0.001
"""Seconds after which it does so in any case."""


class _Lane:
    """What waits in one inbox for one run."""

    __slots__ = ("holder", "queue", "queued", "run")

    def __init__(self, run: RunState) -> None:
        self.run = run
        self.queue: deque[Delivery] = deque()
        self.queued = False
        self.holder: Delivery | None = None


class _Inbox:
    """The deliveries that wait for one role."""

    def __init__(self, station: Station) -> None:
        self.station = station
        self.limit = station.limit
        self.lanes: dict[str, _Lane] = {}
        self.ring: deque[_Lane] = deque()
        self.size = 0
        self.idle: deque[anyio.Event] = deque()
        self.blocked: list[anyio.Event] = []
        self.workers = 0

    def push(self, run: RunState, delivery: Delivery, *, first: bool) -> None:
        lane = self.lanes.get(run.id)
        if lane is None:
            lane = self.lanes[run.id] = _Lane(run)
        if first:
            lane.queue.appendleft(delivery)
        else:
            lane.queue.append(delivery)
        self.size += 1
        if self.idle or not lane.queued:
            self.offer(lane)

    def offer(self, lane: _Lane) -> None:
        """Put a lane into the ring, if one of its deliveries may be taken, and wake a worker."""
        if not lane.queued and lane.queue and (lane.holder is None or lane.holder is lane.queue[0]):
            lane.queued = True
            self.ring.append(lane)
        if self.idle and lane.queued:
            self.idle.popleft().set()

    async def wait(self) -> None:
        """Wait until a worker is needed."""
        wake = anyio.Event()
        self.idle.append(wake)
        try:
            await wake.wait()
        except anyio.get_cancelled_exc_class():
            if wake in self.idle:
                self.idle.remove(wake)
            elif self.idle:
                self.idle.popleft().set()  # it had been called for work that another one has to do now
            raise

    def pop(self) -> tuple[RunState, Delivery] | None:
        if not self.ring:
            return None
        lane = self.ring.popleft()
        delivery = lane.queue.popleft()
        self.size -= 1
        if self.station.serial:
            lane.holder = delivery
            lane.queued = False
        elif lane.queue:
            self.ring.append(lane)
        else:
            lane.queued = False
        if self.blocked:
            self.make_room()
        return lane.run, delivery

    def make_room(self) -> None:
        """Let those go on who wait for room, once half of it is left."""
        if self.size <= self.limit // 2:
            blocked, self.blocked = self.blocked, []
            for event in blocked:
                event.set()

    def release(self, run: RunState, delivery: Delivery) -> None:
        lane = self.lanes.get(run.id)
        if lane is not None and lane.holder is delivery:
            lane.holder = None
            self.offer(lane)

    def drop(self, run: RunState) -> None:
        lane = self.lanes.pop(run.id, None)
        if lane is not None:
            self.size -= len(lane.queue)
            lane.queue.clear()
            if lane.queued:
                self.ring.remove(lane)
            self.make_room()


class _Stoppable:
    """A cancel scope around a role's handlers, which says so where one of them left another open within it."""

    def __init__(self, role: str) -> None:
        self._role = role
        self._scope = anyio.CancelScope()

    def __enter__(self) -> anyio.CancelScope:
        return self._scope.__enter__()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> bool:
        try:
            return self._scope.__exit__(kind, error, traceback)
        except RuntimeError as misnested:
            raise RoleError(
                f"a handler of {self._role} left a cancel scope or a task group open, within which nothing can be told"
                " to stop any more; enter them by `with` and `async with` only"
            ) from misnested


class MemoryTransport:
    """Deliveries within one process, on one event loop."""

    def __init__(self, stations: Iterable[Station]) -> None:
        self._inboxes = {station.role: _Inbox(station) for station in stations}
        self._busy: dict[Delivery, Slot] = {}
        self._group: TaskGroup | None = None
        self._work: Work | None = None
        self._paused = False

    async def serve(self, work: Work, *, task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        """Run workers until cancelled; they are started as deliveries need them."""
        self._work = work
        async with anyio.create_task_group() as group:
            self._group = group
            for inbox in self._inboxes.values():
                self._hire(inbox)
            task_status.started()
            try:
                await anyio.sleep_forever()
            finally:
                self._group = None  # from here on nobody is hired

    def send(self, run: RunState, delivery: Delivery, *, first: bool = False) -> None:
        """Queue a delivery for its role."""
        inbox = self._inboxes[delivery.handler.role]
        inbox.push(run, delivery, first=first)
        if inbox.workers < inbox.station.concurrency and len(inbox.idle) < inbox.size:
            self._hire(inbox)

    def stop(self, run: RunState, delivery: Delivery, reason: StopReason, by: float) -> None:
        """Stop the attempt under way; what waits in an inbox is passed over when its turn comes."""
        slot = self._busy.get(delivery)
        if slot is not None:
            slot.stop(reason, by)
        else:
            self.release(run, delivery)

    def give_up(self, slot: Slot) -> None:
        """Count an attempt as over that goes on although it was stopped, and let another worker take its place."""
        run, delivery = slot.run, slot.delivery
        assert run is not None
        assert delivery is not None
        slot.stopped = "given_up"
        inbox = self._inboxes[delivery.handler.role]
        inbox.workers -= 1
        self._over(inbox, slot, run, delivery)
        if inbox.size:
            self._hire(inbox)

    def release(self, run: RunState, delivery: Delivery) -> None:
        """Give a serial role's turn to the next delivery of the run."""
        self._inboxes[delivery.handler.role].release(run, delivery)

    def drop(self, run: RunState, by: float) -> None:
        """Forget what waits for a run, and stop its attempts."""
        for inbox in self._inboxes.values():
            inbox.drop(run)
        for slot in self.slots():
            if slot.run is run:
                slot.stop("cancelled", by)

    def slots(self) -> list[Slot]:
        """Return the places where an attempt is under way."""
        return list(self._busy.values())

    def pause(self) -> None:
        """Start no further attempt."""
        self._paused = True

    def is_full(self, role: str) -> bool:
        """Whether as many deliveries wait for a role as its limit lets."""
        inbox = self._inboxes[role]
        return inbox.size >= inbox.limit

    async def room(self, role: str) -> None:
        """Wait until fewer deliveries wait for a role than its limit."""
        inbox = self._inboxes[role]
        while inbox.size >= inbox.limit:
            event = anyio.Event()
            inbox.blocked.append(event)
            await event.wait()

    def _hire(self, inbox: _Inbox) -> None:
        if self._group is not None and inbox.workers < inbox.station.concurrency:
            inbox.workers += 1
            self._group.start_soon(self._worker, inbox, name=f"swarmbus {inbox.station.role}")

    async def _worker(self, inbox: _Inbox) -> None:
        slot = Slot()
        try:
            while slot.stopped != "given_up":
                slot.stopped = None
                with _Stoppable(inbox.station.role) as slot.scope:
                    await self._empty(inbox, slot)
        except anyio.get_cancelled_exc_class():
            if anyio.current_effective_deadline() == -math.inf:
                raise
            if slot.stopped != "given_up":  # else it counts no more already
                inbox.workers -= 1  # a handler had this task cancelled, too late to be cancelled itself
                self._hire(inbox)

    async def _empty(self, inbox: _Inbox, slot: Slot) -> None:
        """Handle deliveries until an attempt was stopped, which uses up the cancel scope."""
        assert self._work is not None
        work, burst = self._work, BURST
        pause = time.monotonic() + SLICE
        while slot.stopped is None:
            taken = None if self._paused else inbox.pop()
            if taken is None:
                await inbox.wait()
                burst, pause = BURST, time.monotonic() + SLICE
                continue
            run, delivery = taken
            if delivery.live and not delivery.failed:
                slot.run, slot.delivery = run, delivery
                self._busy[delivery] = slot
                run.flights += 1
                try:
                    await work(slot, run, delivery)
                finally:
                    if slot.stopped != "given_up":
                        self._over(inbox, slot, run, delivery)
            else:
                inbox.release(run, delivery)
            burst -= 1
            if slot.yielded:
                slot.yielded = False
            elif burst and time.monotonic() < pause:
                continue
            else:
                await anyio.lowlevel.checkpoint()
            burst, pause = BURST, time.monotonic() + SLICE

    def _over(self, inbox: _Inbox, slot: Slot, run: RunState, delivery: Delivery) -> None:
        """Clear the place of an attempt that has come to its end, or is not waited for any longer."""
        if self._busy.get(delivery) is slot:
            del self._busy[delivery]
        slot.run = slot.delivery = None
        run.flights -= 1
        if not run.flights:
            run.landed()
        if inbox.station.serial and (delivery.question is None or not delivery.live):
            inbox.release(run, delivery)
