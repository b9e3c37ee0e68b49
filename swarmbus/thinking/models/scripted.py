"""A model that answers from a list: deterministic, without network, shipped because users' tests need it too."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

import pydantic_core
from pydantic import BaseModel

from swarmbus.arguments import refusal, require_text, shown
from swarmbus.errors import ScriptEnded
from swarmbus.message_json import arguments_text
from swarmbus.messages import (
    AssistantMessage,
    ModelReply,
    TextDelta,
    ToolCall,
    ToolCallDelta,
)
from swarmbus.thinking.models.base import ANSWER_TOOL, DEFAULT_PROFILE, RESULT_FIELD, ModelProfile
from swarmbus.thinking.replies import checked

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from swarmbus.messages import ModelRequest, StreamPart


def call(name: str, /, **arguments: Any) -> ToolCall:
    """Return a tool call for a script; the model gives it an id when it is its turn."""
    require_text("call({}, ...)", name, "the name of a tool")
    return ToolCall(id="", name=name, arguments=arguments_text(arguments))


class ScriptedModel:
    """Answers the n-th request with the n-th reply of a script.

    A reply is a text; a `call` or a list of calls (texts among them stand beside the calls); an exception to raise;
    a function, plain or async, from the request to a reply; a whole `ModelReply`; or any other value, given as a
    typed answer.

    Attributes:
        requests: what was asked, in order.
    """

    def __init__(
        self, replies: Iterable[Any], *, name: str = "scripted", profile: ModelProfile = DEFAULT_PROFILE
    ) -> None:
        given: Any = replies
        if not isinstance(given, Iterable) or isinstance(given, (str, bytes, Mapping, BaseModel)):
            raise refusal("ScriptedModel({})", given, f"a list of replies: ScriptedModel([{shown(given)}])")
        require_text("ScriptedModel(name={})", name)
        self._replies = list(replies)
        self._name = name
        self.profile = profile
        self.requests: list[ModelRequest] = []

    @property
    def name(self) -> str:
        """The name given, `scripted` by default."""
        return self._name

    async def stream(self, request: ModelRequest) -> AsyncIterator[StreamPart]:
        """Yield the next reply of the script.

        Raises:
            ScriptEnded: there are no replies left.
        """
        number = len(self.requests)
        self.requests.append(request)
        if number >= len(self._replies):
            raise ScriptEnded(
                f"{self._name} used all {len(self._replies)} of its replies and was asked for one more: add a reply to "
                f"ScriptedModel([...]); the last message was: {request.messages[-1].content!r}"
            )
        reply = _reply(await _evaluate(self._replies[number], request), request)
        message = reply.message
        if message.content:
            yield TextDelta(message.content)
        if message.tool_calls:
            for position, wish in enumerate(message.tool_calls):
                yield ToolCallDelta(position, wish.name, wish.arguments)
            message = _with_ids(message, number + 1)
        yield ModelReply(message, reply.usage, reply.finish, reply.model or self._name)


def _with_ids(message: AssistantMessage, number: int) -> AssistantMessage:
    calls = tuple(
        wish if wish.id else ToolCall(f"call_{number}_{position}", wish.name, wish.arguments)
        for position, wish in enumerate(message.tool_calls, start=1)
    )
    return AssistantMessage(message.content, calls, message.reasoning)


async def _evaluate(item: Any, request: ModelRequest) -> Any:
    """Return what an item of the script comes to: functions called, exceptions raised."""
    if isinstance(item, str | ToolCall | list | ModelReply):
        return item
    if isinstance(item, BaseException) or (isinstance(item, type) and issubclass(item, BaseException)):
        raise item
    if isinstance(item, Callable):  # type: ignore[arg-type]  # the abstract class is what isinstance takes
        result = item(request)
        return await _evaluate(await result if inspect.isawaitable(result) else result, request)
    return item


def _reply(item: Any, request: ModelRequest) -> ModelReply:
    match item:
        case ModelReply():
            return checked(item, "in the script")
        case str():
            return ModelReply(AssistantMessage(item))
        case ToolCall():
            return ModelReply(AssistantMessage(tool_calls=(item,)), finish="tool_calls")
        case list() if any(isinstance(part, ToolCall) for part in item):
            text = "\n".join(part for part in item if isinstance(part, str))
            calls = tuple(part for part in item if isinstance(part, ToolCall))
            return ModelReply(AssistantMessage(text, calls), finish="tool_calls")
        case _:
            return _typed_reply(item, request)


def _typed_reply(value: Any, request: ModelRequest) -> ModelReply:
    try:
        data = pydantic_core.to_jsonable_python(value)
    except pydantic_core.PydanticSerializationError as error:
        raise TypeError(f"{shown(value)} is in the script of a model, which could not say it: {error}") from error
    if not any(tool.name == ANSWER_TOOL for tool in request.tools):
        return ModelReply(AssistantMessage(pydantic_core.to_json(data).decode()))
    text = arguments_text(data if isinstance(data, dict) else {RESULT_FIELD: data})
    return ModelReply(AssistantMessage(tool_calls=(ToolCall("", ANSWER_TOOL, text),)), finish="tool_calls")
