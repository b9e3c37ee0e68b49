"""The three standard roles: a planner, executors and an aggregator, with their events and their table."""

from roles.standard.aggregator import Aggregator
from roles.standard.events import (
    PlanRevised,
    ReportReady,
    Step,
    StepDone,
    StepReady,
    TaskPlanned,
    TaskSubmitted,
)
from roles.standard.executor import Executor
from roles.standard.plan import Plan
from roles.standard.planner import NoUsablePlan, Planner
from roles.standard.swarm import standard_swarm, standard_table

__all__ = [
    "Aggregator",
    "Executor",
    "NoUsablePlan",
    "Plan",
    "PlanRevised",
    "Planner",
    "ReportReady",
    "Step",
    "StepDone",
    "StepReady",
    "TaskPlanned",
    "TaskSubmitted",
    "standard_swarm",
    "standard_table",
]
