"""What follows from a record: the ledger returns it, the bus carries it out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from swarmbus.delivery.deliveries import Delivery, MapCursor, Timer
    from swarmbus.records import Asked, EndStatus, Envelope
    from swarmbus.results import Failure


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a run ends.

    Attributes:
        envelope: the result, for a run that is done.
        failure: what made it fail or stall, where one delivery or join did.
    """

    status: EndStatus
    envelope: Envelope | None = None
    failure: Failure | None = None
    reason: str = ""


class Effects:
    """What follows from one record.

    Attributes:
        deliver: deliveries to hand to their roles; retry: those to hand out again, not before their `not_before`.
        maps: new maps, whose items are to be opened; ready: maps that may open another item.
        cancelled: deliveries, maps and timers that were cancelled.
        timers: new timers; asked: new questions for a person.
        published: all new envelopes; outbound: those of them that leave the swarm.
        decided: how the run ends became known.
        ignored: the record came too late to change anything.
    """

    __slots__ = (
        "asked", "cancelled", "decided", "deliver", "ignored", "maps", "outbound", "published", "ready", "retry",
        "timers",
    )  # fmt: skip

    def __init__(self) -> None:
        self.deliver: list[Delivery] = []
        self.ready: list[MapCursor] = []
        self.cancelled: list[Delivery | MapCursor | Timer] = []
        self.published: list[Envelope] = []
        self.outbound: list[Envelope] = []
        # Of these a record brings few, and most bring none: tuples, which cost nothing where they are empty.
        self.retry: tuple[Delivery, ...] = ()
        self.maps: tuple[MapCursor, ...] = ()
        self.timers: tuple[Timer, ...] = ()
        self.asked: tuple[Asked, ...] = ()
        self.decided = False
        self.ignored = False
