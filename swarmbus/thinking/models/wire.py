"""Requests as chat-completions bodies, and streamed chunks as replies: pure functions and one assembler, without I/O.

The format is that of https://platform.openai.com/docs/api-reference/chat, with what other servers make of it.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar, assert_never

from swarmbus.errors import AnswerFiltered, IncompleteAnswer, NotTheApi
from swarmbus.messages import (
    AssistantMessage,
    DataPart,
    Delta,
    FinishReason,
    Message,
    ModelReply,
    ModelRequest,
    ReasoningDelta,
    SystemMessage,
    TextDelta,
    TextPart,
    ToolCall,
    ToolCallDelta,
    ToolMessage,
    Usage,
    UserMessage,
    whole_count,
)
from swarmbus.text import brief
from swarmbus.thinking.output import instruction

if TYPE_CHECKING:
    from swarmbus.thinking.models.servers import ServerFamily

T = TypeVar("T")

_FINISH: dict[str, FinishReason] = {
    "tool_calls": "tool_calls",
    "function_call": "tool_calls",
    "tool_use": "tool_calls",
    "length": "length",
    "max_tokens": "length",
    "content_filter": "content_filter",
    "safety": "content_filter",
}
"""What servers call the end reasons; any other name is an ordinary stop."""


def request_body(
    request: ModelRequest, model: str, family: ServerFamily, refused: Collection[str] = ()
) -> dict[str, Any]:
    """Return the body of a request.

    Args:
        request: what is asked.
        model: the server's name of the model.
        family: the server's quirks.
        refused: fields that the server does not take; an answer form that it does not take stands in the prompt.
    """
    messages = list(request.messages)
    body: dict[str, Any] = {"model": model, "stream": True, "stream_options": {"include_usage": True}}
    if request.output is not None:
        body["response_format"] = {
            "type": "json_schema",
            "json_schema": {"name": request.output.name, "schema": request.output.schema, "strict": False},
        }
        if "response_format" in refused:
            messages.insert(0, SystemMessage(instruction(request.output)))
    if request.tools:
        body["tools"] = [
            {
                "type": "function",
                "function": {"name": tool.name, "description": tool.description, "parameters": tool.parameters},
            }
            for tool in request.tools
        ]
    if request.settings.temperature is not None:
        body["temperature"] = request.settings.temperature
    if request.settings.max_tokens is not None:
        body[family.max_tokens_field] = request.settings.max_tokens
    body.update(request.settings.extra)
    body["messages"] = [_message(message, family) for message in messages if not _says_nothing(message)]
    return {name: value for name, value in body.items() if name not in refused}


def _says_nothing(message: Message) -> bool:
    return isinstance(message, AssistantMessage) and not message.content and not message.tool_calls


def _message(message: Message, family: ServerFamily) -> dict[str, Any]:
    match message:
        case SystemMessage():
            return {"role": "system", "content": message.content}
        case UserMessage(content=str() as text):
            return {"role": "user", "content": text}
        case UserMessage(content=parts):
            assert not isinstance(parts, str)
            return {"role": "user", "content": [_part(part) for part in parts]}
        case ToolMessage():
            return {"role": "tool", "tool_call_id": message.call_id, "content": message.content}
        case AssistantMessage():
            return _assistant(message, family)
    assert_never(message)


def _part(part: TextPart | DataPart) -> dict[str, Any]:
    if isinstance(part, TextPart):
        return {"type": "text", "text": part.text}
    url = f"data:{part.media_type};base64,{base64.b64encode(part.data).decode()}"
    if part.media_type.startswith("image/"):
        return {"type": "image_url", "image_url": {"url": url}}
    extension = part.media_type.rpartition("/")[2]
    return {"type": "file", "file": {"filename": f"attachment.{extension}", "file_data": url}}


def _assistant(message: AssistantMessage, family: ServerFamily) -> dict[str, Any]:
    wire: dict[str, Any] = {"role": "assistant", "content": message.content}
    if message.tool_calls:
        if not message.content and family.null_content:
            wire["content"] = None
        wire["tool_calls"] = [
            {
                "id": call.id,
                "type": "function",
                "function": {"name": call.name, "arguments": _sendable(call.arguments)},
            }
            for call in message.tool_calls
        ]
        if message.reasoning is not None and family.return_reasoning == "with_tool_calls":
            wire["reasoning_content"] = message.reasoning
    return wire


def _sendable(arguments: str) -> str:
    """Return arguments as a JSON object in every case: servers that read the history fail on anything else."""
    try:
        if isinstance(json.loads(arguments), dict):
            return arguments
    except (ValueError, RecursionError):
        pass
    return json.dumps({"malformed_arguments": arguments} if arguments.strip() else {}, ensure_ascii=False)


@dataclass(slots=True)
class _Call:
    id: str
    name: str
    index: int | None
    arguments: str = ""

    def is_complete(self) -> bool:
        try:
            json.loads(self.arguments)
        except (ValueError, RecursionError):
            return False
        return True


class ReplyAssembler:
    """Puts a reply together from chunks, as servers really send them.

    A piece of a tool call is told from the next call by its index and its id as far as the server gives them, and
    by the completeness of what came before where it does not.
    """

    def __init__(self) -> None:
        self._text: list[str] = []
        self._reasoning: list[str] = []
        self._refusal: list[str] = []
        self._calls: list[_Call] = []
        self._finish: str | None = None
        self._usage: Usage | None = None
        self._model = ""
        self._chunks = 0

    @property
    def text(self) -> str:
        """The answer's text as far as it has come."""
        return "".join(self._text)

    @property
    def finished(self) -> bool:
        """Whether an end reason has come."""
        return self._finish is not None

    def feed(self, chunk: Mapping[str, Any]) -> Iterator[Delta]:
        """Take in a chunk, or a whole answer of the same form, and yield what it adds.

        Raises:
            NotTheApi: something in it is of a type that it never is.
        """
        self._chunks += bool(chunk)
        self._model = _text(chunk.get("model")) or self._model
        self._usage = _usage(chunk.get("usage")) or self._usage
        choices = _given(list, chunk.get("choices"), "choices") or [None]
        choice = _given(dict, choices[0], "a choice")
        if choice is None:
            return
        self._finish = _given(str, choice.get("finish_reason"), "finish_reason") or self._finish
        delta = _given(dict, choice.get("delta") or choice.get("message"), "a choice's message") or {}
        if delta.get("refusal"):
            self._refusal.append(str(delta["refusal"]))
        if reasoning := delta.get("reasoning_content") or delta.get("reasoning"):
            self._reasoning.append(str(reasoning))
            yield ReasoningDelta(str(reasoning))
        if text := _text(delta.get("content")):
            self._text.append(text)
            yield TextDelta(text)
        for given in _given(list, delta.get("tool_calls"), "tool_calls") or ():
            if piece := _given(dict, given, "a tool call"):
                yield self._take_piece(piece)

    def reply(self) -> ModelReply:
        """Return the whole reply.

        Raises:
            IncompleteAnswer: no end reason has come, or nothing at all.
            AnswerFiltered: the model refused, or the end reason is the content filter.
        """
        if self._refusal:
            raise AnswerFiltered(f"the model refused: {''.join(self._refusal)}")
        if self._finish is None:
            what = "stopped without an end reason" if self._chunks else "was empty"
            raise IncompleteAnswer(f"the model's answer {what}", partial=self.text)
        finish = _FINISH.get(self._finish, "stop")
        if finish == "content_filter":
            raise AnswerFiltered("the server's content filter stopped the answer")
        calls = tuple(ToolCall(call.id, call.name, call.arguments) for call in self._calls)
        message = AssistantMessage(self.text, calls, "".join(self._reasoning) or None)
        return ModelReply(message, self._usage, finish, self._model)

    def _take_piece(self, piece: Mapping[str, Any]) -> ToolCallDelta:
        function = _given(dict, piece.get("function"), "a tool call's function") or {}
        name = _given(str, function.get("name"), "a function's name") or ""
        given_id, index = str(piece.get("id") or ""), piece.get("index")
        arguments = function.get("arguments") or ""
        if not isinstance(arguments, str):
            arguments = json.dumps(arguments, ensure_ascii=False)
        call = self._owner(index, given_id, name)
        if call is None:
            call = _Call(given_id, name, index)
            self._calls.append(call)
        call.id, call.name = call.id or given_id, call.name or name
        call.arguments += arguments
        return ToolCallDelta(_position(self._calls, call), name, arguments)

    def _owner(self, index: int | None, given_id: str, name: str) -> _Call | None:
        """Return the call that a piece goes on with, or None where it begins one."""
        same_index = [call for call in self._calls if index is not None and call.index == index]
        if index is not None and not same_index:
            return None
        among = same_index or self._calls
        if given_id:
            named = [call for call in among if call.id == given_id]
            among = named or [call for call in among[-1:] if not call.id]
        call = among[-1] if among else None
        if call is not None and name and call.name and call.is_complete():
            return None
        return call


def _given(kind: type[T], value: Any, what: str) -> T | None:
    """Return a part of an answer; None where it is missing or empty.

    Raises:
        NotTheApi: it is of another type.
    """
    if value and not isinstance(value, kind):
        raise NotTheApi(f"the model's answer is not the API's: {what} is {brief(value)}, which is no {kind.__name__}")
    return value or None


def _text(content: Any) -> str:
    if isinstance(content, list):
        return "".join(str(part.get("text", "")) for part in content if isinstance(part, Mapping))
    return content if isinstance(content, str) else ""


def _usage(data: Any) -> Usage | None:
    if not isinstance(data, Mapping) or not data.get("prompt_tokens"):
        return None
    read, written = _count(data["prompt_tokens"]), _count(data.get("completion_tokens"))
    if read is None or written is None:
        return None
    cached = _detail(data, "prompt_tokens_details", "cached_tokens")
    return Usage(read, written, cached, _detail(data, "completion_tokens_details", "reasoning_tokens"), calls=1)


def _detail(data: Mapping[str, Any], details: str, name: str) -> int:
    given = data.get(details)
    return (isinstance(given, Mapping) and _count(given.get(name))) or 0


def _count(value: Any) -> int | None:
    """Return a count as servers write it, or None for what can't be one."""
    try:
        return whole_count(float(value or 0))
    except (TypeError, ValueError, OverflowError):
        return None


def _position(calls: list[_Call], wanted: _Call) -> int:
    return next(position for position, call in enumerate(calls) if call is wanted)
