"""What comes out: findings of the check, failures of deliveries, and what a join hands to its handler.

Plain frozen data. Nothing here decides anything; the checks, the ledger and assembly fill these in.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, Literal, TypeVar

from swarmbus.events import Event
from swarmbus.messages import Usage

E_co = TypeVar("E_co", bound=Event, covariant=True)

R_co = TypeVar("R_co", covariant=True)

Severity = Literal["error", "warning"]


@dataclass(frozen=True, slots=True)
class Finding:
    """One difference between table and code, or one weakness, that the check reports.

    Attributes:
        code: stable and documented by `swarmbus check --list`, such as `"SB102"`.
        severity: an error keeps the swarm from starting, a warning does not.
        message: what was found and what the table says.
        role: name of the role it is about, if it is about one.
        event: class name of the event it is about, if it is about one.
        where: `"file:line"` of the handler or table, if it is known.
        hint: what to do about it.
    """

    code: str
    severity: Severity
    message: str
    role: str | None = None
    event: str | None = None
    where: str | None = None
    hint: str | None = None

    def __str__(self) -> str:
        place = f"{self.where}: " if self.where else ""
        remedy = f"\n    {self.hint}" if self.hint else ""
        return f"{place}{self.code} {self.severity}: {self.message}{remedy}"


@dataclass(frozen=True, slots=True)
class Failure:
    """A delivery that failed for good.

    Attributes:
        role: name of the role.
        handler: name of the role's method.
        event: name of the event that was handled, such as `"task_planned"`.
        event_id: id of its envelope.
        item: index of the mapped item, if the handler was mapped.
        key: the item's key, where the join names one.
        attempt: number of the last attempt, from 1.
        error_type: class name of the exception.
        message: text of the exception.
        exception: the exception itself, as long as it is in this process.
        value: the mapped item in short, if the handler was mapped.
    """

    role: str
    handler: str
    event: str
    event_id: str
    item: int | None
    key: str | None
    attempt: int
    error_type: str
    message: str
    exception: BaseException | None = field(default=None, compare=False, repr=False)
    value: str = ""

    def __str__(self) -> str:
        item = f" item {self.item} ({self.value})" if self.item is not None else ""
        tries = f" (attempt {self.attempt})" if self.attempt > 1 else ""
        place = f"{self.role}.{self.handler} for {self.event} {self.event_id}{item}{tries}"
        return f"{place}: {self.error_type}: {self.message}"


@dataclass(frozen=True, slots=True)
class FailedItem(Generic[E_co]):
    """A mapped item below a join's opener that failed: the item, its key, why, and what it contributed before."""

    item: Any
    key: str | None
    error: Failure
    done: tuple[E_co, ...] = ()


@dataclass(frozen=True, slots=True)
class MissingItem:
    """A mapped item below a join's opener that ended, or was cancelled, without a contribution."""

    item: Any
    key: str | None


@dataclass(frozen=True, slots=True)
class Joined(Generic[E_co]):
    """What a join gives its handler beside the opener.

    Attributes:
        done: the contributions, in item order; those outside any item follow in order of arrival.
        failed: items that failed for good.
        missing: items that ended without a contribution.
        cancelled: items that a quorum or a deadline cut short.
    """

    done: tuple[E_co, ...] = ()
    failed: tuple[FailedItem[E_co], ...] = ()
    missing: tuple[MissingItem, ...] = ()
    cancelled: tuple[MissingItem, ...] = ()


@dataclass(frozen=True, slots=True)
class Lifecycle:
    """Something that happened to a run or a delivery, as those who watch a run see it.

    Attributes:
        type: `run_done`, `run_failed`, … (always the last), `delivery_started` (an attempt begins),
            `delivery_committed`, `delivery_retried`, `delivery_failed`, `delivery_cancelled`, `call_recorded`,
            `question_asked` or `progress`.
        time: seconds since the epoch.
        envelope: number of the envelope in its run; item: index of the mapped item.
        detail: what there is to say, such as the error; value: the mapped item in short, of a delivery that failed.
    """

    type: str
    run_id: str
    time: float
    role: str | None = None
    handler: str | None = None
    envelope: int | None = None
    item: int | None = None
    detail: str = ""
    value: str = ""


@dataclass(frozen=True, slots=True)
class RunResult(Generic[R_co]):
    """What a run brought.

    Attributes:
        output: the result event; None where the run ended without one.
        run_id: the run's id.
        usage: what its model calls cost; usage_by_role: the same for each role that made some.
        failures: the deliveries that failed for good and that nobody mended.
        warnings: what should not have happened and did no harm, and what was cut when the run ended.
        started, ended: seconds since the epoch.
    """

    output: R_co
    run_id: str
    usage: Usage
    usage_by_role: Mapping[str, Usage]
    failures: tuple[Failure, ...]
    warnings: tuple[str, ...]
    started: float
    ended: float
