"""How a run goes on that had failed: the failure that ended it becomes one after which its delivery is tried again."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from swarmbus.delivery.ledger import Ledger
from swarmbus.events import HandlerFailed
from swarmbus.records import Ended, Failed

if TYPE_CHECKING:
    from collections.abc import Sequence

    from swarmbus.delivery.topology import Topology
    from swarmbus.records import DeliveryKey, EndStatus, Record
    from swarmbus.results import Failure

NOT_FINAL: frozenset[EndStatus] = frozenset(("stopped", "failed", "limit", "timed_out"))
"""How runs end that can be resumed; what had been cancelled is open again."""


def reopened(topology: Topology, run_id: str, records: Sequence[Record]) -> list[Record]:
    """Return the records of a run with what failed it taken back, and what came too late because of it left out.

    Where somebody had been asked to mend that failure, it stays: their answers are records too.
    """
    ledger = Ledger(topology, run_id)
    kept: list[Record] = []
    final: dict[DeliveryKey, int] = {}
    for record in records:
        if not isinstance(record, Ended):
            effects = ledger.apply(record)
            if effects.ignored:
                continue
            asked = any(isinstance(envelope.event, HandlerFailed) for envelope in effects.published)
            if isinstance(record, Failed) and record.retry_at is None and not asked:
                final[record.delivery] = len(kept)
        kept.append(record)
    failure = ledger.outcome.failure if ledger.outcome is not None and ledger.outcome.status == "failed" else None
    place = final.get(_delivery(topology, failure)) if failure is not None else None
    if place is None:
        return list(records)
    failed = kept[place]
    assert isinstance(failed, Failed)
    kept[place] = replace(failed, retry_at=failed.at)
    return kept


def _delivery(topology: Topology, failure: Failure) -> DeliveryKey:
    number = int(failure.event_id.rpartition("/")[2])
    handler = topology.by_name[f"{failure.role}.{failure.handler}"]
    return (number, handler.number, failure.item if failure.item is not None else -1)
