"""What the loop is given, what it has come to, and how it reports: the plain data under the functions of the loop."""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from swarmbus.errors import AgentStopped
from swarmbus.messages import AssistantMessage, Message, ToolCall, ToolSpec, Usage, UserMessage
from swarmbus.thinking.context import estimate_message, estimate_text
from swarmbus.thinking.limits import Limits, Repetition
from swarmbus.thinking.prices import price_of

if TYPE_CHECKING:
    from swarmbus.messages import ModelSettings
    from swarmbus.thinking.hooks import Hooks
    from swarmbus.thinking.limits import Spending, StopReason
    from swarmbus.thinking.loop_events import LoopEvent
    from swarmbus.thinking.models.base import Model
    from swarmbus.thinking.output import Output
    from swarmbus.thinking.recording import Recorder
    from swarmbus.thinking.tools import Tool

Observer: TypeAlias = "Callable[[LoopEvent], None]"
"""Is called with every loop event, at once and in the loop's own task; it must not raise or take long."""

Approve: TypeAlias = "Callable[[ToolCall, dict[str, Any]], Awaitable[bool]]"
"""Asks a person whether a call with these arguments may run."""

OnFault: TypeAlias = "Callable[[str, BaseException], None]"
"""Is told who raised what nobody meant for the model, such as `the tool search`, and the exception."""

_SETTINGS = {**{limit.name: limit.name for limit in fields(Limits)}, "repeated_results": "repeated_calls"}
"""The limit behind a reason to stop."""

QueueMode = Literal["all", "one"]


class MessageQueue:
    """Texts waiting to enter a loop as user messages.

    Attributes:
        mode: whether all that wait enter together, or one at a time.
    """

    def __init__(self, mode: QueueMode) -> None:
        self.mode = mode
        self._waiting: deque[UserMessage] = deque()

    def put(self, text: str) -> None:
        """Add a text at the end."""
        self._waiting.append(UserMessage(text))

    def take(self) -> list[UserMessage]:
        """Take out what may enter now."""
        if self.mode == "one" and self._waiting:
            return [self._waiting.popleft()]
        taken = list(self._waiting)
        self._waiting.clear()
        return taken


@dataclass(slots=True)
class LoopSetup:
    """What the loop is given; a hook may change model and tools between turns."""

    model: Model
    instructions: str
    tools: dict[str, Tool[..., Any]]
    hooks: Hooks
    limits: Limits
    settings: ModelSettings
    output: Output[Any] | None
    deps: Any
    recorder: Recorder
    steering: MessageQueue
    follow_ups: MessageQueue
    spending: Spending | None = None
    approve: Approve | None = None
    on_fault: OnFault | None = None
    price: Callable[[Usage], float] | None = field(init=False)
    specs: tuple[ToolSpec, ...] = field(init=False)
    spec_tokens: int = field(init=False)
    longest_tool: float = field(init=False)

    def __post_init__(self) -> None:
        self.use_model(self.model)
        self.use_tools(self.tools)

    def use_model(self, model: Model) -> None:
        """Ask this model from now on.

        Raises:
            UnknownPrice: money is limited, and the model's price is not known.
        """
        self.price = price_of(model.name) if self.limits.usd is not None else None
        self.model = model

    def use_tools(self, tools: dict[str, Tool[..., Any]]) -> None:
        """Take these tools from now on."""
        self.tools = tools
        self.specs = tuple(tool.spec for tool in tools.values())
        self.spec_tokens = sum(tool.tokens for tool in tools.values())
        limits = [self.time_limit(tool) for tool in tools.values()]
        self.longest_tool = max((math.inf if limit is None else limit for limit in limits), default=0.0)

    def time_limit(self, tool: Tool[..., Any]) -> float | None:
        """Return the seconds that a tool may run."""
        return tool.options.timeout or self.limits.tool_timeout


class Reporter:
    """Makes loop events and hands them to the observer; without one it makes none."""

    __slots__ = ("_observer", "_sequence", "delivery", "role", "run_id", "turn")

    def __init__(self, run_id: str, role: str, delivery: str, observer: Observer | None) -> None:
        self.run_id = run_id
        self.role = role
        self.delivery = delivery
        self.turn = 0
        self._sequence = 0
        self._observer = observer

    def emit(self, kind: type[LoopEvent], **facts: Any) -> None:
        """Report an event of this kind with these facts."""
        if self._observer is None:
            return
        self._sequence += 1
        event = kind(
            run_id=self.run_id,
            role=self.role,
            delivery=self.delivery,
            turn=self.turn,
            sequence=self._sequence,
            time=time.time(),
            **facts,
        )
        self._observer(event)


@dataclass(slots=True)
class LoopState:
    """What the loop has come to.

    Attributes:
        messages: the history, valid to send at every await outside a batch of tools.
        reporter: tells the observer.
        repetition: counts what happens again and again.
        deadline: the time on anyio's clock at which the seconds are used up.
        now: the time on anyio's clock when the limits were last checked.
        usage: what the model calls cost.
        usd: the same in US dollars, where money is limited.
        tool_calls: how many tool calls there were.
        repairs: how often an answer went back because it did not validate.
        whole_results: the results that were cut, whole, by the ids of their calls.
    """

    messages: list[Message]
    reporter: Reporter
    repetition: Repetition
    deadline: float
    now: float = -math.inf
    usage: Usage = field(default_factory=Usage)
    usd: float = 0.0
    tool_calls: int = 0
    repairs: int = 0
    whole_results: dict[str, str] = field(default_factory=dict)
    _call_ids: set[str] = field(default_factory=set)
    _sized: int = 0
    _tokens: int = 0

    def __post_init__(self) -> None:
        for message in self.messages:
            if isinstance(message, AssistantMessage):
                self._call_ids.update(call.id for call in message.tool_calls)

    @property
    def turn(self) -> int:
        """The turn, from 1; 0 before the first."""
        return self.reporter.turn

    def book(self, usage: Usage, price: Callable[[Usage], float] | None) -> None:
        """Add what a model call cost."""
        self.usage += usage
        if price is not None:
            self.usd += price(usage)

    def stopped(self, reason: StopReason, detail: str = "") -> AgentStopped:
        """Return the error for a loop that ends without an answer."""
        last = next((message for message in reversed(self.messages) if isinstance(message, AssistantMessage)), None)
        if reason in _SETTINGS:
            detail += f"; allow more with Limits({_SETTINGS[reason]}=)"
        return AgentStopped(reason, last.content if last else "", self.messages, detail)

    def with_own_ids(self, calls: Iterable[ToolCall]) -> tuple[ToolCall, ...]:
        """Return the calls with ids that no other call of the history has; good ids are kept."""
        named = []
        for position, call in enumerate(calls):
            made = call
            if not call.id or call.id in self._call_ids:
                made = ToolCall(self._new_id(position), call.name, call.arguments)
            self._call_ids.add(made.id)
            named.append(made)
        return tuple(named)

    def context_tokens(self, setup: LoopSetup) -> int:
        """Return about how many tokens a request with the whole history takes."""
        for message in self.messages[self._sized :]:
            self._tokens += estimate_message(message)
        self._sized = len(self.messages)
        return self._tokens + estimate_text(setup.instructions) + setup.spec_tokens

    def replace_messages(self, messages: Iterable[Message]) -> None:
        """Go on from another history."""
        self.messages[:] = messages
        self._sized = self._tokens = 0

    def _new_id(self, position: int) -> str:
        made = f"call_t{self.turn}_{position + 1}"
        while made in self._call_ids:
            made += "x"
        return made
