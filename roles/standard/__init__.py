"""The three standard roles: a planner, executors and an aggregator, with their events and their table."""

from roles.standard.aggregator import Aggregator, all_steps, step_ids
from roles.standard.events import (
    PlanRevised,
    ReportReady,
    Step,
    StepDone,
    StepReady,
    TaskPlanned,
    TaskSubmitted,
    without_details,
)
from roles.standard.executor import Executor, first_steps
from roles.standard.plan import Plan
from roles.standard.planner import NoUsablePlan, Planner
from roles.standard.progress import Progress
from roles.standard.swarm import standard_swarm, standard_table

__all__ = [
    "Aggregator",
    "Executor",
    "NoUsablePlan",
    "Plan",
    "PlanRevised",
    "Planner",
    "Progress",
    "ReportReady",
    "Step",
    "StepDone",
    "StepReady",
    "TaskPlanned",
    "TaskSubmitted",
    "all_steps",
    "first_steps",
    "standard_swarm",
    "standard_table",
    "step_ids",
    "without_details",
]
