"""Messages and replies as JSON and back: how histories are kept, and how requests are told apart."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Annotated, Any

from pydantic import ConfigDict, Discriminator, Tag, TypeAdapter

from swarmbus.messages import AssistantMessage, Message, ModelReply, SystemMessage, ToolMessage, UserMessage


def reply_to_data(reply: ModelReply) -> dict[str, Any]:
    """Return a reply as JSON-compatible data, as a call record keeps it."""
    data: dict[str, Any] = _reply_adapter().dump_python(reply, mode="json")
    return data


def reply_from_data(data: Any) -> ModelReply:
    """Return the reply that `reply_to_data` wrote.

    Raises:
        pydantic.ValidationError: the data is no such reply.
    """
    return _reply_adapter().validate_python(data)


def messages_to_data(messages: Sequence[Message]) -> list[Any]:
    """Return messages as JSON-compatible data; binary parts are base64."""
    data: list[Any] = _messages_adapter().dump_python(tuple(messages), mode="json")
    return data


def messages_from_data(data: Any) -> tuple[Message, ...]:
    """Return the messages that `messages_to_data` wrote.

    Raises:
        pydantic.ValidationError: the data is no such history.
    """
    return _messages_adapter().validate_python(data)


def message_to_json(message: Message) -> bytes:
    """Return one message as UTF-8 JSON, always the same for equal messages."""
    return _messages_adapter().dump_json((message,))


def arguments_text(arguments: Mapping[str, Any]) -> str:
    """Return arguments as the JSON text of a tool call, non-ASCII characters left readable."""
    return json.dumps(arguments, ensure_ascii=False, separators=(", ", ": "))


@cache
def _reply_adapter() -> TypeAdapter[ModelReply]:
    return TypeAdapter(ModelReply)


@cache
def _messages_adapter() -> TypeAdapter[tuple[Message, ...]]:
    tagged: Any = Annotated[
        Annotated[SystemMessage, Tag("system")]
        | Annotated[UserMessage, Tag("user")]
        | Annotated[AssistantMessage, Tag("assistant")]
        | Annotated[ToolMessage, Tag("tool")],
        Discriminator("role"),
    ]
    return TypeAdapter(tuple[tagged, ...], config=ConfigDict(ser_json_bytes="base64", val_json_bytes="base64"))
