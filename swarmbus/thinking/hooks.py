"""The places where a user's functions can step into the loop, each with its contract.

Every hook may be plain or async. A hook that raises never hangs the loop: around a tool call it makes an error
result of that call (before the call: the tool is not run), elsewhere it ends the loop with reason `hook_failed`.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, fields
from types import NoneType
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from swarmbus.arguments import refusal, shown
from swarmbus.messages import Message, ModelReply, ModelRequest, ToolCall, Usage
from swarmbus.text import error_text
from swarmbus.thinking.tool_result import ToolResult

if TYPE_CHECKING:
    from swarmbus.thinking.models.base import Model
    from swarmbus.thinking.tools import Tool

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Allow:
    """Let the call go on as it is."""


@dataclass(frozen=True, slots=True)
class Block:
    """Do not run the tool; the model reads the reason."""

    reason: str


@dataclass(frozen=True, slots=True)
class Change:
    """Run the tool with other arguments, which are checked like the model's."""

    arguments: dict[str, Any]


Decision: TypeAlias = Allow | Block | Change | None
"""None allows."""


@dataclass(frozen=True, slots=True)
class NextTurn:
    """What the next turn is to be made with; None leaves things as they are."""

    model: str | Model | None = None
    tools: Sequence[Tool[..., Any]] | None = None
    messages: Sequence[Message] | None = None


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a loop has come, for the hooks that decide about it."""

    turn: int
    messages: Sequence[Message]
    usage: Usage
    deps: Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Hooks:
    """The functions that step in.

    Attributes:
        transform_context: the messages to be shown become others, for this request only; the history stays.
        before_model_call: the finished request becomes another, or the same.
        after_model_call: the reply becomes another, or the same; before it is recorded in the history.
        before_tool_call: allow, block or change a call with checked arguments; failing closed.
        after_tool_call: the result becomes another, or the same: redact, shorten, annotate.
        prepare_next_turn: change model, tools or history before a turn other than the first.
        should_stop: asked after each turn that would go on; True ends the loop with reason `should_stop`.
    """

    transform_context: Callable[[Sequence[Message]], Sequence[Message] | Awaitable[Sequence[Message]]] | None = None
    before_model_call: Callable[[ModelRequest], ModelRequest | Awaitable[ModelRequest]] | None = None
    after_model_call: Callable[[ModelReply], ModelReply | Awaitable[ModelReply]] | None = None
    before_tool_call: Callable[[ToolCall, dict[str, Any]], Decision | Awaitable[Decision]] | None = None
    after_tool_call: Callable[[ToolCall, ToolResult], ToolResult | Awaitable[ToolResult]] | None = None
    prepare_next_turn: Callable[[Progress], Awaitable[NextTurn | None] | NextTurn | None] | None = None
    should_stop: Callable[[Progress], bool | Awaitable[bool]] | None = None

    def __post_init__(self) -> None:
        for item in fields(self):
            hook = getattr(self, item.name)
            if hook is not None and not callable(hook):
                raise refusal(f"Hooks({item.name}={{}})", hook, "a function")


NO_HOOKS = Hooks()


class HookFailed(Exception):  # noqa: N818  # a signal inside the loop, which turns it into a stop reason
    """A hook raised; its exception is the cause."""


async def ask_hook(hook: Callable[..., Any], *arguments: Any, returns: type | tuple[type, ...] = object) -> Any:
    """Call a plain or async hook.

    Raises:
        HookFailed: it raised, or returned something else than it has to.
    """
    name = getattr(hook, "__name__", type(hook).__name__)
    try:
        answer = hook(*arguments)
        answer = await answer if inspect.isawaitable(answer) else answer
    except Exception as error:
        raise HookFailed(f"hook {name} raised {error_text(error)}") from error
    if not isinstance(answer, returns):
        kinds = returns if isinstance(returns, tuple) else (returns,)
        wanted = " or ".join("None" if kind is NoneType else kind.__name__ for kind in kinds)
        raise HookFailed(f"hook {name} returned {shown(answer)}; it has to return {wanted}")
    return answer
