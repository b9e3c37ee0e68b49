"""The standard roles wired up."""

from __future__ import annotations

from typing import Any

from roles.standard.aggregator import Aggregator
from roles.standard.events import PlanRevised, ReportReady, StepDone, StepReady, TaskPlanned, TaskSubmitted
from roles.standard.executor import Executor
from roles.standard.planner import Planner
from swarmbus import CLIENT, SYSTEM, EventTable, HandlerFailed, Swarm


def standard_table() -> EventTable[ReportReady]:
    """Return the event table of planner, executor and aggregator."""
    return EventTable(
        (CLIENT, TaskSubmitted, "planner"),
        ("planner", TaskPlanned, ("planner", "aggregator")),
        ("planner", StepReady, "executor"),
        (("executor", "planner"), StepDone, ("planner", "aggregator")),
        ("planner", PlanRevised, "planner"),
        (SYSTEM, HandlerFailed, "planner"),
        ("aggregator", ReportReady, CLIENT),
        result=ReportReady,
    )


def standard_swarm(
    *,
    planner: Planner | None = None,
    executor: Executor | None = None,
    aggregator: Aggregator | None = None,
    **settings: Any,
) -> Swarm[ReportReady]:
    """Return a swarm of the standard roles.

    Args:
        planner: a planner of your own in place of the standard one.
        executor: an executor of your own.
        aggregator: an aggregator of your own.
        settings: those of `Swarm`, such as `model`.
    """
    roles = (planner or Planner(), executor or Executor(), aggregator or Aggregator())
    return Swarm(*roles, table=standard_table(), **settings)
