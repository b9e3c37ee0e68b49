"""A run as its records tell it: what the ledger knows, the calls of live deliveries, and what is left of its time."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

from swarmbus.delivery.deliveries import Delivery
from swarmbus.delivery.reopening import NOT_FINAL, reopened
from swarmbus.records import Called, Committed, Ended, Started, Submitted

if TYPE_CHECKING:
    from collections.abc import Sequence

    from swarmbus.delivery.runs import RunState
    from swarmbus.records import Record


def in_order(records: Sequence[Record]) -> list[Record]:
    """Return the records of a run with each call that outlasted an end of it before that end."""
    ordered: list[Record] = []
    for record in records:
        if isinstance(record, Called) and isinstance(ordered[-1], Ended):
            ordered.insert(-1, replace(record, at=ordered[-1].at))
        else:
            ordered.append(record)
    return ordered


def rebuild(run: RunState, records: Sequence[Record], *, reopen: bool) -> float | None:
    """Apply the records of a run, but no end after which it went on, or goes on now.

    Of its time limit that is used up which went by between its records, as long as a process was at it and not
    everything was waiting for a person. A run that timed out has all of it again.

    Args:
        run: a new one.
        records: all that were kept, in order.
        reopen: whether a run goes on that failed, reached a limit or timed out; one that was drained does in any case.

    Returns:
        How many seconds of its time limit are left; None where it has none or its clock stands still.

    Raises:
        RecordError: a record does not fit.
    """
    first = records[0]
    assert isinstance(first, Submitted)
    run.timeout = first.timeout
    run.deadline = first.at + (math.inf if run.timeout is None else run.timeout)  # by the records' clock until the end
    taken_back = _taken_back(records[-1], reopen=reopen)
    previous: Record = first
    for record in _going_on(run, records, taken_back=taken_back):
        if run.left is None and _was_down(run, previous, record):
            run.deadline += record.at - previous.at
        if not isinstance(record, Ended) or (record is records[-1] and not taken_back):
            _apply(run, record)
        else:
            run.ledger.go_on()
            if record.status == "timed_out" and run.timeout is not None:
                run.left, run.deadline = None, record.at + run.timeout
        if run.timeout is not None:
            run.pause_for_people(record.at)
        previous = record
    decided = run.ledger.outcome is not None and run.ledger.ended is None
    if decided and isinstance(previous, Ended) and previous.status != "stopped":
        _apply(run, previous)  # what ended it is in the other records too, and can't be taken back
    left, run.deadline = run.deadline - previous.at, math.inf
    return left if math.isfinite(left) else None


def _taken_back(last: Record, *, reopen: bool) -> bool:
    """Whether the run goes on after its last record, though that is an end."""
    return isinstance(last, Ended) and (last.status == "stopped" or (reopen and last.status in NOT_FINAL))


def _going_on(run: RunState, records: Sequence[Record], *, taken_back: bool) -> list[Record]:
    """Return the records, after each failure of the run that was taken back those that it goes on from."""
    kept: list[Record] = []
    for record in records:
        kept.append(record)
        if isinstance(record, Ended) and record.status == "failed" and (record is not records[-1] or taken_back):
            kept = reopened(run.ledger.topology, run.id, kept)
    return kept


def _was_down(run: RunState, previous: Record, record: Record) -> bool:
    """Whether no process was at the run between two records: it had been drained, or an attempt was lost to a crash."""
    if isinstance(previous, Ended):
        return True
    delivery = run.ledger.pending.get(record.delivery) if isinstance(record, Started) else None
    return delivery is not None and delivery.started


def _apply(run: RunState, record: Record) -> None:
    calls = run.calls.of(record.delivery) if isinstance(record, Committed) else None
    effects = run.ledger.apply(record)
    if effects.ignored:
        return
    run.calls.follow(record)
    if calls and isinstance(record, Committed) and run.host is not None:
        run.host.committed(run.ledger.topology.handlers[record.delivery[1]].role, calls)
    for gone in effects.cancelled:
        if isinstance(gone, Delivery):
            run.calls.forget(gone.key)
