"""What the agent loop tells whoever watches it: typed events in a fixed grammar, telemetry beside the bus.

The grammar holds in every case, failure and cancellation included:

    run   = agent_start turn* agent_end
    turn  = turn_start [ message_start message_update* message_end ] tool* turn_end
    tool  = tool_execution_start tool_execution_update* tool_execution_end      (interleaved for parallel calls)

A tool's start and end carry the call, so that each call is seen to begin and end exactly once.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from swarmbus.messages import AssistantMessage, Delta, FinishReason, Message, ToolCall, Usage
from swarmbus.thinking.limits import StopReason
from swarmbus.thinking.tool_result import ToolResult


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopEventBase:
    """What every loop event carries.

    Attributes:
        run_id: the run, or an empty string outside a swarm.
        role: the role, or an empty string outside a swarm.
        delivery: the delivery, or an empty string outside a swarm.
        turn: the turn, from 1; 0 before the first.
        sequence: the event's number within its loop, from 1.
        time: seconds since the epoch.
    """

    run_id: str
    role: str
    delivery: str
    turn: int
    sequence: int
    time: float


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentStart(LoopEventBase):
    """The loop begins with a prompt."""

    prompt: Message
    type: Literal["agent_start"] = "agent_start"


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnStart(LoopEventBase):
    """A model call is about to be made, with so many messages shown."""

    messages: int
    type: Literal["turn_start"] = "turn_start"


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageStart(LoopEventBase):
    """The model is asked."""

    model: str
    type: Literal["message_start"] = "message_start"


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageUpdate(LoopEventBase):
    """A piece of the reply came in, or what came until now is void because the model layer asks again."""

    delta: Delta
    type: Literal["message_update"] = "message_update"


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageEnd(LoopEventBase):
    """The reply is complete, or there is none.

    Attributes:
        message: the reply, or None where the call failed or was cancelled.
        finish: why the model stopped.
        usage: what the call cost.
        replayed: whether the reply comes from a record and was not paid again.
        error: why there is no reply.
    """

    message: AssistantMessage | None
    finish: FinishReason | None
    usage: Usage
    replayed: bool
    error: str | None
    type: Literal["message_end"] = "message_end"


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolExecutionStart(LoopEventBase):
    """A call's turn has come; whether the tool itself runs, the end says."""

    call: ToolCall
    type: Literal["tool_execution_start"] = "tool_execution_start"


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolExecutionUpdate(LoopEventBase):
    """A tool reported progress."""

    call: ToolCall
    data: Any
    type: Literal["tool_execution_update"] = "tool_execution_update"


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolExecutionEnd(LoopEventBase):
    """A call has its result.

    Attributes:
        call: the call.
        result: what came of it; its outcome tells returned, failed and not run apart.
        seconds: how long it took.
        replayed: whether the result comes from a record, and the tool did not run again.
    """

    call: ToolCall
    result: ToolResult
    seconds: float
    replayed: bool
    type: Literal["tool_execution_end"] = "tool_execution_end"


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnEnd(LoopEventBase):
    """A turn is over, its tool calls answered."""

    type: Literal["turn_end"] = "turn_end"


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentEnd(LoopEventBase):
    """The loop is over.

    Attributes:
        stop_reason: why.
        usage: what the loop's model calls cost, replayed ones included.
        error: the error that ended it, if one did.
    """

    stop_reason: StopReason
    usage: Usage
    error: str | None
    type: Literal["agent_end"] = "agent_end"


LoopEvent: TypeAlias = (
    AgentStart
    | TurnStart
    | MessageStart
    | MessageUpdate
    | MessageEnd
    | ToolExecutionStart
    | ToolExecutionUpdate
    | ToolExecutionEnd
    | TurnEnd
    | AgentEnd
)
