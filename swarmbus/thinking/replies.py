"""What a model replied, checked before anything is done with it: a model of one's own may say anything."""

from __future__ import annotations

from dataclasses import replace
from types import NoneType
from typing import Any, get_args

from swarmbus.arguments import require
from swarmbus.messages import AssistantMessage, FinishReason, ModelReply, ToolCall, Usage, whole_count

_FINISHES = get_args(FinishReason)


def checked(reply: ModelReply, model: str) -> ModelReply:
    """Return a reply as its types say it is; one call was made for it, and counts that can't be are left out.

    Raises:
        TypeError: a part of it is of another type, or the reason to finish is none that is known.
    """
    of = f"the reply of the model {model}: "
    message: Any = reply.message
    require(f"{of}ModelReply({{}})", message, AssistantMessage, "an AssistantMessage")
    require(f"{of}AssistantMessage({{}})", message.content, str, 'a text, "" where there is none')
    require(f"{of}AssistantMessage(reasoning={{}})", message.reasoning, (str, NoneType), "a text or None")
    require(f"{of}AssistantMessage(tool_calls={{}})", message.tool_calls, (tuple, list), "a tuple of ToolCall")
    for call in message.tool_calls:
        require(f"{of}AssistantMessage(tool_calls=({{}}, ))", call, ToolCall, "ToolCall")
        require(f"{of}ToolCall(id={{}})", call.id, str, 'a text, "" where there is none')
        require(f"{of}ToolCall(name={{}})", call.name, str, "the name of a tool")
        require(f"{of}ToolCall(arguments={{}})", call.arguments, str, "JSON text, such as json.dumps(arguments)")
    require(f"{of}ModelReply(model={{}})", reply.model, str, "a text")
    require(f"{of}ModelReply(usage={{}})", reply.usage, (Usage, NoneType), "Usage, or None where it is not known")
    finish: Any = reply.finish
    if finish not in _FINISHES:
        raise TypeError(f"{of}ModelReply(finish={finish!r}) takes one of {', '.join(_FINISHES)}")
    if isinstance(message.tool_calls, list):
        reply = replace(reply, message=replace(message, tool_calls=tuple(message.tool_calls)))
    return reply if reply.usage is None else replace(reply, usage=_possible(reply.usage, message))


def _possible(usage: Usage, message: AssistantMessage) -> Usage | None:
    """Return a usage as that of one call, or None where its tokens can't be what this one cost."""
    read, written = whole_count(usage.input_tokens), whole_count(usage.output_tokens)
    if read is None or written is None:
        return None
    if not (read or written) and (message.content or message.tool_calls):
        return None  # a form that nobody filled in
    cached, reasoning = whole_count(usage.cached_tokens) or 0, whole_count(usage.reasoning_tokens) or 0
    return Usage(read, written, min(cached, read), min(reasoning, written), 1, bool(usage.estimated))
