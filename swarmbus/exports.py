"""The public names of `swarmbus` itself, with where they come from."""

from swarmbus.errors import (
    AgentStopped,
    LimitReached,
    Retryable,
    RunCancelled,
    RunFailed,
    RunStalled,
    RunStopped,
    RunTimedOut,
    SwarmbusError,
    WiringError,
)
from swarmbus.events import Event, HandlerFailed
from swarmbus.frozen import FrozenDict
from swarmbus.handlers import Retry, join, on
from swarmbus.live_swarm import LiveSwarm
from swarmbus.results import FailedItem, Failure, Finding, Joined, Lifecycle, MissingItem, RunResult
from swarmbus.role import Role
from swarmbus.role_context import RoleContext
from swarmbus.run import Run
from swarmbus.swarm import Swarm
from swarmbus.table import CLIENT, SYSTEM, EventTable, External, Row
from swarmbus.thinking.agent import Agent, AgentResult
from swarmbus.thinking.hooks import Hooks
from swarmbus.thinking.limits import Budget, Limits
from swarmbus.thinking.tools import ToolContext, tool

__all__ = [
    "CLIENT",
    "SYSTEM",
    "Agent",
    "AgentResult",
    "AgentStopped",
    "Budget",
    "Event",
    "EventTable",
    "External",
    "FailedItem",
    "Failure",
    "Finding",
    "FrozenDict",
    "HandlerFailed",
    "Hooks",
    "Joined",
    "Lifecycle",
    "LimitReached",
    "Limits",
    "LiveSwarm",
    "MissingItem",
    "Retry",
    "Retryable",
    "Role",
    "RoleContext",
    "Row",
    "Run",
    "RunCancelled",
    "RunFailed",
    "RunResult",
    "RunStalled",
    "RunStopped",
    "RunTimedOut",
    "Swarm",
    "SwarmbusError",
    "ToolContext",
    "WiringError",
    "join",
    "on",
    "tool",
]
