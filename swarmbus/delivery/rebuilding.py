"""A run as its records tell it: what the ledger knows, the calls of live deliveries, and what is left of its time."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from swarmbus.delivery.deliveries import Delivery
from swarmbus.records import Ended, Started, Submitted

if TYPE_CHECKING:
    from collections.abc import Sequence

    from swarmbus.delivery.runs import RunState
    from swarmbus.records import Record


def rebuild(run: RunState, records: Sequence[Record]) -> float | None:
    """Apply the records of a run, all but the end of one that was drained, which goes on where it was.

    Of its time limit that is used up which went by between its records, as long as a process was at it and not
    everything was waiting for a person.

    Returns:
        How many seconds of its time limit are left; None where it has none or its clock stands still.

    Raises:
        RecordError: a record does not fit.
    """
    first = records[0]
    assert isinstance(first, Submitted)
    run.timeout = first.timeout
    run.deadline = first.at + (
        first.timeout if first.timeout is not None else math.inf
    )  # on the records' clock for now
    previous: Record = first
    for record in records:
        if run.left is None and _was_down(run, previous, record):
            run.deadline += record.at - previous.at
        if not (isinstance(record, Ended) and record.status == "stopped"):
            _apply(run, record)
        if run.timeout is not None:
            run.pause_for_people(record.at)
        previous = record
    left, run.deadline = run.deadline - previous.at, math.inf
    return left if math.isfinite(left) else None


def _was_down(run: RunState, previous: Record, record: Record) -> bool:
    """Whether no process was at the run between two records: it had been drained, or an attempt was lost to a crash."""
    if isinstance(previous, Ended):
        return True
    delivery = run.ledger.pending.get(record.delivery) if isinstance(record, Started) else None
    return delivery is not None and delivery.started


def _apply(run: RunState, record: Record) -> None:
    run.calls.follow(record)
    for gone in run.ledger.apply(record).cancelled:
        if isinstance(gone, Delivery):
            run.calls.forget(gone.key)
