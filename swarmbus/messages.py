"""What is said to a model and what it says back: messages, requests, replies, usage and the parts of a stream.

Plain immutable data without behaviour of any one model server; how it travels to a server is the business of the
models in `swarmbus.thinking.models`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import Discriminator

FinishReason = Literal["stop", "tool_calls", "length", "content_filter"]
JsonSchema: TypeAlias = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class TextPart:
    """A piece of text in a user message that has other parts too."""

    text: str
    kind: Literal["text"] = "text"


@dataclass(frozen=True, slots=True)
class DataPart:
    """Binary content of a user message.

    Attributes:
        data: the bytes themselves.
        media_type: what they are, such as `image/png`.
    """

    data: bytes
    media_type: str
    kind: Literal["data"] = "data"


Content: TypeAlias = str | tuple[Annotated[TextPart | DataPart, Discriminator("kind")], ...]


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A model's wish that a tool be run.

    Attributes:
        id: names the call; its result carries the same id.
        name: the tool's name, as the model wrote it.
        arguments: the arguments as the model wrote them: JSON text, or what was meant to be.
    """

    id: str
    name: str
    arguments: str = "{}"


@dataclass(frozen=True, slots=True)
class SystemMessage:
    """Standing instructions; sent first and never part of a history."""

    content: str
    role: Literal["system"] = "system"


@dataclass(frozen=True, slots=True)
class UserMessage:
    """What the model is asked, as text or as a sequence of parts."""

    content: Content
    role: Literal["user"] = "user"

    @property
    def text(self) -> str:
        """The text of the message, without its binary parts."""
        if isinstance(self.content, str):
            return self.content
        return "\n".join(part.text for part in self.content if isinstance(part, TextPart))


@dataclass(frozen=True, slots=True)
class AssistantMessage:
    """What the model said: text, tool calls, or both.

    Attributes:
        content: the text; empty beside tool calls as a rule.
        tool_calls: the calls in the order the model made them.
        reasoning: thinking text that some servers send beside the answer and want back; never the answer.
    """

    content: str = ""
    tool_calls: tuple[ToolCall, ...] = ()
    reasoning: str | None = None
    role: Literal["assistant"] = "assistant"


@dataclass(frozen=True, slots=True)
class ToolMessage:
    """The result of one tool call.

    Attributes:
        call_id: the id of the call that this answers.
        name: the tool's name.
        content: the result as the model reads it; always text.
        ok: whether the tool ran and succeeded.
    """

    call_id: str
    name: str
    content: str
    ok: bool = True
    role: Literal["tool"] = "tool"


Message: TypeAlias = SystemMessage | UserMessage | AssistantMessage | ToolMessage


@dataclass(frozen=True, slots=True)
class Usage:
    """What model calls cost, as counts; two usages can be added.

    Attributes:
        input_tokens: tokens read, cached ones included.
        output_tokens: tokens written, thinking included.
        cached_tokens: those of the input that came from the server's cache.
        reasoning_tokens: those of the output that were thinking.
        calls: how many model calls this is the sum of; they are counted where a model is asked, whatever it reports.
        estimated: whether a count in it was estimated because a server gave none.
    """

    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    reasoning_tokens: int = 0
    calls: int = 0
    estimated: bool = False

    @property
    def total_tokens(self) -> int:
        """Tokens read and written."""
        return self.input_tokens + self.output_tokens

    def __add__(self, other: Usage) -> Usage:
        """Return the sum; it is estimated if either part is."""
        return Usage(
            self.input_tokens + other.input_tokens,
            self.output_tokens + other.output_tokens,
            self.cached_tokens + other.cached_tokens,
            self.reasoning_tokens + other.reasoning_tokens,
            self.calls + other.calls,
            self.estimated or other.estimated,
        )

    def counts(self) -> dict[str, float]:
        """Return the counts that are not zero, by name, as call records keep them."""
        return {name: float(value) for name in _USAGE_COUNTS if (value := getattr(self, name))}


MOST_COUNTED = 10**15
"""Above this a count is none: nobody reads or writes as much in a call."""


def whole_count(value: object) -> int | None:
    """Return what somebody else counted, or None for what can't be a count, such as -1 or NaN."""
    if not isinstance(value, (int, float)) or not 0 <= value <= MOST_COUNTED:
        return None
    return int(value)


_USAGE_COUNTS = tuple(item.name for item in fields(Usage))


@dataclass(frozen=True, slots=True)
class ToolSpec:
    """A tool as a model sees it.

    Attributes:
        name: what the model calls it by.
        description: what it does and when to use it.
        parameters: the JSON Schema of its arguments, always of an object.
    """

    name: str
    description: str
    parameters: JsonSchema


@dataclass(frozen=True, slots=True)
class OutputSpec:
    """The form in which the final answer has to come.

    Attributes:
        name: a short name for the form, as some servers ask for one.
        schema: its JSON Schema, always of an object.
    """

    name: str
    schema: JsonSchema


@dataclass(frozen=True, slots=True)
class ModelSettings:
    """How a model is to answer; None leaves a setting to the server.

    Attributes:
        temperature: 0 for the most likely answer, higher for more varied ones.
        max_tokens: the longest reply, in tokens.
        extra: further fields for the request body, sent as they are; what a server can do without, such as `seed`, is
            left out once it has refused it.
    """

    temperature: float | None = None
    max_tokens: int | None = None
    extra: Mapping[str, Any] = field(default_factory=dict)


DEFAULT_SETTINGS = ModelSettings()


@dataclass(frozen=True, slots=True)
class ModelRequest:
    """One question to a model.

    Attributes:
        messages: the context, system message first.
        tools: the tools that it may call.
        output: the form of the final answer, where the server is to enforce it.
        settings: how to answer.
        idle_timeout: seconds of silence from the server after which the call is given up; None waits for ever.
    """

    messages: tuple[Message, ...]
    tools: tuple[ToolSpec, ...] = ()
    output: OutputSpec | None = None
    settings: ModelSettings = DEFAULT_SETTINGS
    idle_timeout: float | None = None


@dataclass(frozen=True, slots=True)
class TextDelta:
    """A further piece of the answer's text."""

    text: str


@dataclass(frozen=True, slots=True)
class ReasoningDelta:
    """A further piece of the thinking beside the answer."""

    text: str


@dataclass(frozen=True, slots=True)
class ToolCallDelta:
    """A further piece of a tool call.

    Attributes:
        position: which call of the reply it belongs to, from 0.
        name: the tool's name, in the first piece of a call.
        arguments: a further piece of the arguments' JSON text.
    """

    position: int
    name: str
    arguments: str


@dataclass(frozen=True, slots=True)
class Restarted:
    """The model layer asks again: what was streamed of this reply until now is void.

    Attributes:
        reason: what went wrong with the try before.
        delay: seconds waited before the next try.
        tries: which try the next one is.
    """

    reason: str
    delay: float
    tries: int = 2


@dataclass(frozen=True, slots=True)
class ModelReply:
    """A complete reply, the last part of every stream.

    Attributes:
        message: what the model said.
        usage: what this one call cost; None where the server did not say, so that it has to be estimated, as it is
            where the tokens reported can't be counts, or are none though something was said.
        finish: why the model stopped.
        model: the name of the model that answered.
    """

    message: AssistantMessage
    usage: Usage | None = None
    finish: FinishReason = "stop"
    model: str = ""


Delta: TypeAlias = TextDelta | ReasoningDelta | ToolCallDelta | Restarted
StreamPart: TypeAlias = Delta | ModelReply
