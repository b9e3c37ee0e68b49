"""What the bus carries and the journal keeps: envelopes, deliveries and the records of a run, as plain slots classes.

They stand on the hot path, so they are not models; the codec in `delivery` turns them into bytes and back.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Mapping

    from swarmbus.calls import CallRecord
    from swarmbus.events import Event

DeliveryKey: TypeAlias = tuple[int, int, int]
"""(envelope number, handler number, item index or -1): identifies a delivery within its run."""

Routes: TypeAlias = "tuple[tuple[int, int], ...]"
"""(handler number, item count or -1) for each handler that takes an event, where user code decided that."""

EndStatus = Literal["done", "failed", "stalled", "timed_out", "cancelled", "stopped", "limit"]


class Envelope:
    """An event on the bus.

    Attributes:
        number: its position in the run, from 0; with the run's id it is the CloudEvents `id`.
        event: the event itself.
        source: the address of the publisher: a role's name, `client`, `system` or `external:NAME`.
        cause: the number of the envelope whose handling published it, or None for a submitted one.
        time: seconds since the epoch.
        hops: how many envelopes stand before it in its line of causes.
    """

    __slots__ = ("cause", "event", "hops", "number", "source", "time")

    def __init__(  # noqa: PLR0917  # made for every event, and positional arguments are the quickest
        self, number: int, event: Event, source: str, cause: int | None, time: float, hops: int
    ) -> None:
        self.number = number
        self.event = event
        self.source = source
        self.cause = cause
        self.time = time
        self.hops = hops

    def __repr__(self) -> str:
        return f"<Envelope {self.number} {type(self.event).__name__} from {self.source}>"


@dataclass(slots=True, frozen=True)
class Change:
    """One change of a role's state: a field set, or one entry of a mapping field put or removed."""

    field: str
    value: Any
    kind: Literal["set", "put", "remove"] = "set"
    key: Any = None


@dataclass(slots=True, frozen=True)
class ErrorInfo:
    """An error as the journal keeps it: type name, message and traceback text."""

    type: str
    message: str
    traceback: str = ""


@dataclass(slots=True)
class Submitted:
    """An event from outside: the one that opens the run, with the run's limits (seconds, hops), or a further one."""

    at: float
    event: Event
    source: str
    cause: int | None = None
    routes: Routes | None = None
    max_hops: int = 1000
    timeout: float | None = None


@dataclass(slots=True)
class Published:
    """An event that a handler published before it returned; with `due`, a timer (seconds since the epoch)."""

    at: float
    delivery: DeliveryKey
    attempt: int
    event: Event
    routes: Routes | None = None
    due: float | None = None
    key: str | None = None


@dataclass(slots=True)
class Started:
    """An attempt began. Kept only where the journal outlives the process."""

    at: float
    delivery: DeliveryKey
    attempt: int


@dataclass(slots=True)
class Called:
    """A successful call to the outside, made by a delivery."""

    at: float
    delivery: DeliveryKey
    call: CallRecord


@dataclass(slots=True)
class Committed:
    """A delivery was handled: what it returned and how its role's state changed, in one."""

    at: float
    delivery: DeliveryKey
    attempt: int
    outputs: tuple[Event, ...] = ()
    routes: tuple[Routes | None, ...] | None = None
    changes: tuple[Change, ...] = ()


@dataclass(slots=True)
class Failed:
    """An attempt failed: to be tried again at `retry_at` (seconds since the epoch), or for good where that is None."""

    at: float
    delivery: DeliveryKey
    attempt: int
    error: ErrorInfo
    retry_at: float | None = None
    exception: BaseException | None = None


@dataclass(slots=True)
class Fired:
    """A timer came due: an event published with a delay, or a join's deadline."""

    at: float
    timer: int


@dataclass(slots=True)
class Asked:
    """A delivery waits for a person's answer."""

    at: float
    delivery: DeliveryKey
    question: str
    content: Mapping[str, Any]


@dataclass(slots=True)
class Answered:
    """A person answered."""

    at: float
    question: str
    value: Any


@dataclass(slots=True)
class Ended:
    """The run is over, or was ended from outside; what was still in flight is cut."""

    at: float
    status: EndStatus
    reason: str = ""


Record: TypeAlias = Submitted | Published | Started | Called | Committed | Failed | Fired | Asked | Answered | Ended
