"""The agent: instructions, model, tools and limits with a conversation, wrapped round the stateless loop."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Generic, get_args, overload

import anyio
from anyio import lowlevel
from typing_extensions import TypeForm, TypeVar

from swarmbus.arguments import refusal, require
from swarmbus.messages import (
    DEFAULT_SETTINGS,
    AssistantMessage,
    DataPart,
    Message,
    ModelSettings,
    SystemMessage,
    TextPart,
    ToolMessage,
    Usage,
    UserMessage,
)
from swarmbus.text import clean_text
from swarmbus.thinking.agent_stream import AgentStream
from swarmbus.thinking.conversation import Conversation
from swarmbus.thinking.hooks import NO_HOOKS, Hooks
from swarmbus.thinking.limits import DEFAULT_LIMITS, Limits, Repetition
from swarmbus.thinking.loop import run_loop
from swarmbus.thinking.loop_state import LoopSetup, LoopState, MessageQueue, QueueMode, Reporter
from swarmbus.thinking.models.base import kept_open
from swarmbus.thinking.models.registry import resolve_model
from swarmbus.thinking.output import output_for
from swarmbus.thinking.prices import price_of
from swarmbus.thinking.recording import Recorder
from swarmbus.thinking.tools import toolset

if TYPE_CHECKING:
    from swarmbus.calls import CallLog
    from swarmbus.messages import Content
    from swarmbus.thinking.limits import Spending, StopReason
    from swarmbus.thinking.loop_events import LoopEvent
    from swarmbus.thinking.loop_state import Approve, Observer, OnFault
    from swarmbus.thinking.models.base import Model
    from swarmbus.thinking.tools import Tool

T = TypeVar("T")

ASK_OPTIONS = ("instructions", "tools", "model", "limits", "hooks", "settings", "history", "approve")
"""The settings that one question of a role's agent may have of its own."""


@dataclass(frozen=True, slots=True)
class AgentResult(Generic[T]):
    """What came of one run of an agent.

    Attributes:
        output: the answer.
        messages: the whole history, valid to go on from; the instructions are not part of it.
        usage: what the model calls cost, those answered from records included.
        stop_reason: `done`, or `turns` where the answer is the last word at the limit of turns.
    """

    output: T
    messages: tuple[Message, ...]
    usage: Usage
    stop_reason: StopReason


class Agent:
    """Answers prompts with a model and tools, and remembers the conversation.

    A run goes on from the history of the runs before it. Runs that overlap fork the history: none of them sees the
    others, and the agent's own history stays as it was before them; each result has its fork.

    Raises:
        TypeError: an argument of the wrong type.
        UnknownModel: nothing resolves the model's name.
        UnknownPrice: `limits.usd` is set, and the model's price is not known.
        ToolDefinitionError: a tool's signature says too little, or two have one name.
    """

    def __init__(
        self,
        model: str | Model,
        instructions: str = "",
        tools: Iterable[Tool[..., Any] | Callable[..., Any]] = (),
        hooks: Hooks = NO_HOOKS,
        limits: Limits = DEFAULT_LIMITS,
        *,
        settings: ModelSettings = DEFAULT_SETTINGS,
        history: Sequence[Message] = (),
        conversation: Conversation | None = None,
        deps: Any = None,
        calls: CallLog | None = None,
        spending: Spending | None = None,
        approve: Approve | None = None,
        on_event: Observer | None = None,
        on_fault: OnFault | None = None,
        run_id: str = "",
        role: str = "",
        delivery: str = "",
        queues: QueueMode = "all",
    ) -> None:
        """Make an agent.

        Args:
            model: a model, or the name of one.
            instructions: what the model is told before everything else.
            tools: what the model may call; plain functions become tools.
            hooks: functions that step into the loop.
            limits: what each run may use up.
            settings: how the model is to answer.
            history: the messages to go on from.
            conversation: shares the history with other agents, instead of `history`.
            deps: what tools find in `ctx.deps`.
            calls: recorded calls, used again and added to.
            spending: a purse outside the agent that every model call is paid from.
            approve: asks a person about calls of tools that need it; without it they are not run.
            on_event: is called with every loop event, in the loop's task.
            on_fault: is told what a tool, or a hook around one, raised that is no `ToolError`; it is logged anyway.
            run_id: the run that events and tools name.
            role: the role that events and tools name.
            delivery: the delivery that events name and idempotency keys depend on.
            queues: whether all waiting texts of `steer` and `follow_up` enter together, or one at a time.
        """
        _require_settings(instructions, hooks, limits, settings, queues)
        self.model = resolve_model(model)
        self.instructions = instructions
        self.tools = toolset(tools)
        self.hooks = hooks
        self.limits = limits
        self.settings = settings
        self.conversation = conversation or Conversation(_messages("Agent(history={})", history))
        self._deps, self._calls, self._spending = deps, calls, spending
        self._approve = approve
        self._on_event = on_event
        self._on_fault = on_fault
        self._place = (run_id, role, delivery)
        self._steering, self._follow_ups = MessageQueue(queues), MessageQueue(queues)
        if limits.usd is not None:
            price_of(self.model.name)  # refuses a model whose price is not known

    @property
    def history(self) -> tuple[Message, ...]:
        """The conversation so far."""
        return self.conversation.messages

    def steer(self, text: str) -> None:
        """Add a message that enters after the current batch of tools and before the next model call."""
        require("steer({})", text, str, "a text")
        self._steering.put(text)

    def follow_up(self, text: str) -> None:
        """Add a message that enters only when the loop would stop, and keeps it going."""
        require("follow_up({})", text, str, "a text")
        self._follow_ups.put(text)

    @overload
    async def run(self, prompt: Content, *, history: Sequence[Message] | None = None) -> AgentResult[str]: ...
    @overload
    async def run(
        self, prompt: Content, output: TypeForm[T], *, history: Sequence[Message] | None = None
    ) -> AgentResult[T]: ...
    async def run(
        self, prompt: Content, output: Any = str, *, history: Sequence[Message] | None = None
    ) -> AgentResult[Any]:
        """Answer a prompt.

        Args:
            prompt: what is asked, as text or as parts.
            output: the type of the answer: anything pydantic can validate, text by default.
            history: the conversation to go on from, instead of the agent's own.

        Raises:
            AgentStopped: there is no answer; never half of one.
            ModelError: the model layer gave up.
            TypeError: an argument of the wrong type.
        """
        return await self._run(prompt, output, history, self._on_event)

    def stream(self, prompt: Content, output: Any = str, *, history: Sequence[Message] | None = None) -> AgentStream:
        """Answer a prompt and watch: iterate over the result for the loop's events.

        Leave the iteration early only inside `async with agent.stream(...) as events`, which cancels the run; a bare
        `async for` has to be read to its end, for nobody else would close what it has opened in the right task.
        """

        async def start(observer: Observer) -> AgentResult[Any]:
            def both(event: LoopEvent) -> None:
                observer(event)
                if self._on_event is not None:
                    self._on_event(event)

            return await self._run(prompt, output, history, both)

        return AgentStream(start)

    async def _run(
        self, prompt: Content, output: Any, history: Sequence[Message] | None, observer: Observer | None
    ) -> AgentResult[Any]:
        require_prompt("run({})", prompt)
        setup = self._setup(output)
        given = None if history is None else list(_messages("run(..., history={})", history))
        with self.conversation.branch() if given is None else nullcontext(given) as messages:
            state = self._state(messages, observer)
            await lowlevel.checkpoint()  # runs started together fork from the same history, however fast they end
            async with kept_open(self.model):
                answer, reason = await run_loop(setup, state, UserMessage(_clean(prompt)))
            return AgentResult(answer, tuple(messages), state.usage, reason)

    def _state(self, messages: list[Message], observer: Observer | None) -> LoopState:
        seconds = self.limits.seconds
        return LoopState(
            messages,
            Reporter(*self._place, observer),
            Repetition(self.limits),
            deadline=float("inf") if seconds is None else anyio.current_time() + seconds,
        )

    def _setup(self, output: Any) -> LoopSetup:
        return LoopSetup(
            model=self.model,
            instructions=self.instructions,
            tools=self.tools,
            hooks=self.hooks,
            limits=self.limits,
            settings=self.settings,
            output=output_for(output),
            deps=self._deps,
            recorder=Recorder(self._calls),
            steering=self._steering,
            follow_ups=self._follow_ups,
            spending=self._spending,
            approve=self._approve,
            on_fault=self._on_fault,
        )


def _require_settings(instructions: Any, hooks: Any, limits: Any, settings: Any, queues: Any) -> None:
    require("Agent(instructions={})", instructions, str, "a text")
    require("Agent(hooks={})", hooks, Hooks, "Hooks, such as Hooks(before_tool_call=...)")
    require("Agent(limits={})", limits, Limits, "Limits, such as Limits(turns=5)")
    require("Agent(settings={})", settings, ModelSettings, "ModelSettings, such as ModelSettings(temperature=0)")
    if queues not in get_args(QueueMode):
        raise refusal("Agent(queues={})", queues, '"all" or "one"')


def require_prompt(call: str, prompt: object) -> None:
    """Refuse what is neither a text nor the parts of a message.

    Raises:
        TypeError: says so.
    """
    parts = prompt if isinstance(prompt, (tuple, list)) else ()
    if not (isinstance(prompt, str) or (parts and all(isinstance(part, (TextPart, DataPart)) for part in parts))):
        raise refusal(call, prompt, "a text, or parts such as TextPart and DataPart")


def _messages(call: str, history: Any) -> tuple[Message, ...]:
    """Return a history as a tuple."""
    if not isinstance(history, Iterable) or isinstance(history, str):
        raise refusal(call, history, "messages, such as result.messages")
    messages = tuple(history)
    for message in messages:
        require(call, message, (SystemMessage, UserMessage, AssistantMessage, ToolMessage), "messages")
    return messages


def _clean(prompt: Content) -> Content:
    if isinstance(prompt, str):
        return clean_text(prompt)[0]
    return tuple(
        replace(part, text=clean_text(part.text)[0]) if isinstance(part, TextPart) else part for part in prompt
    )
