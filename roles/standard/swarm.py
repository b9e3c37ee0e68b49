"""The standard roles wired up."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from roles.standard.aggregator import Aggregator
from roles.standard.events import PlanRevised, ReportReady, StepDone, StepReady, TaskPlanned, TaskSubmitted
from roles.standard.executor import Executor
from roles.standard.planner import Planner
from swarmbus import CLIENT, SYSTEM, EventTable, HandlerFailed, Swarm

if TYPE_CHECKING:
    from swarmbus.models import Model


def standard_table() -> EventTable[ReportReady]:
    """Return the event table of planner, executor and aggregator."""
    return EventTable(
        (CLIENT, TaskSubmitted, "planner"),
        ("planner", TaskPlanned, ("planner", "executor", "aggregator")),
        ("planner", StepReady, "executor"),
        (("planner", "executor"), StepDone, ("planner", "aggregator")),
        ("planner", PlanRevised, CLIENT),
        (SYSTEM, HandlerFailed, "planner"),
        ("aggregator", ReportReady, CLIENT),
        result=ReportReady,
    )


def standard_swarm(
    model: str | Model | Mapping[str, str | Model] | None = None,
    tools: Iterable[Callable[..., Any]] = (),
    *,
    planner: Planner | None = None,
    executor: Executor | None = None,
    aggregator: Aggregator | None = None,
    **settings: Any,
) -> Swarm[ReportReady]:
    """Return a swarm that plans a `TaskSubmitted`, carries out its steps, and ends with a `ReportReady`.

    Args:
        model: the model of all three roles, or of each by its name.
        tools: what executors work with, beside the tools that `executor` has.
        planner: a planner of your own in place of the standard one.
        executor: an executor of your own.
        aggregator: an aggregator of your own.
        settings: further settings of `Swarm`, such as `journal`.
    """
    worker = executor or Executor()
    return Swarm(
        planner or Planner(),
        worker.named("executor", tools=(*worker.tools, *tools)),
        aggregator or Aggregator(),
        table=standard_table(),
        model=model,
        **settings,
    )
