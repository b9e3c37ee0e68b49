"""Whether a delivery that failed for good is mended: handlers of `HandlerFailed` are asked, while it keeps counting."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from swarmbus.delivery.deliveries import Delivery
    from swarmbus.records import DeliveryKey
    from swarmbus.results import Failure


class Mending:
    """One failed delivery and those asked to mend it.

    Attributes:
        menders: those that have not decided yet.
        answered: those that published something that reaches what the failed delivery was counted for.
        wanted: the columns it was counted in.
    """

    __slots__ = ("answered", "delivery", "failure", "menders", "refusals", "wanted")

    def __init__(self, delivery: Delivery, failure: Failure, wanted: frozenset[int]) -> None:
        self.delivery = delivery
        self.failure = failure
        self.menders: set[DeliveryKey] = set()
        self.answered: set[DeliveryKey] = set()
        self.refusals: list[Failure] = []
        self.wanted = wanted

    def hear(self, mender: DeliveryKey, reaches: frozenset[int]) -> None:
        """Take note of what a mender's event reaches."""
        if reaches & self.wanted:
            self.answered.add(mender)

    def refuse(self, failure: Failure) -> None:
        """Count a mender that failed itself as a no."""
        self.refusals.append(failure)

    def verdict(self) -> Failure:
        """Return the failure, with the errors of the menders that failed attached."""
        if not self.refusals:
            return self.failure
        errors = "; ".join(f"{r.role}.{r.handler} failed too: {r.error_type}: {r.message}" for r in self.refusals)
        return replace(self.failure, message=f"{self.failure.message} (while mending: {errors})")
