"""How much a model is shown: sizes in tokens, big results cut, old ones put away, all as pure functions."""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING

from swarmbus.messages import AssistantMessage, DataPart, Message, ToolMessage, UserMessage

if TYPE_CHECKING:
    from collections.abc import Sequence

    from swarmbus.messages import ToolSpec

CHARACTERS_PER_TOKEN = 4
MESSAGE_TOKENS = 4
DATA_TOKENS = 1000
FILL = 0.8
"""The part of the window that the messages shown may take; the rest is for the reply and for wrong estimates."""

_WIDE = re.compile(r"[^\u0000-\u024f]+")


def estimate_text(text: str) -> int:
    """Return about how many tokens a text has: a quarter of its characters, other scripts than Latin one for one."""
    if text.isascii():
        return (len(text) + CHARACTERS_PER_TOKEN - 1) // CHARACTERS_PER_TOKEN
    wide = sum(map(len, _WIDE.findall(text)))
    return wide + (len(text) - wide + CHARACTERS_PER_TOKEN - 1) // CHARACTERS_PER_TOKEN


def estimate_message(message: Message) -> int:
    """Return about how many tokens a message has, its frame included."""
    tokens = MESSAGE_TOKENS
    if isinstance(message, UserMessage):
        tokens += estimate_text(message.text)
        if not isinstance(message.content, str):
            tokens += DATA_TOKENS * sum(isinstance(part, DataPart) for part in message.content)
        return tokens
    tokens += estimate_text(message.content)
    if isinstance(message, AssistantMessage):
        for call in message.tool_calls:
            tokens += MESSAGE_TOKENS + estimate_text(call.name) + estimate_text(call.arguments)
    return tokens


def estimate_tools(tools: Sequence[ToolSpec]) -> int:
    """Return about how many tokens the descriptions of tools take."""
    return sum(estimate_text(f"{tool.name} {tool.description} {tool.parameters}") for tool in tools)


def cut(text: str, limit: int, handle: str, *, readable_on: bool) -> str:
    """Return a text of about `limit` characters: head and tail as they are, a note in between.

    Args:
        text: the whole text.
        limit: characters to keep; a shorter text is returned as it is.
        handle: names the whole, for reading on.
        readable_on: whether the model has the tool to read on with.
    """
    if len(text) <= limit:
        return text
    head = limit * 2 // 3
    tail = limit - head
    advice = f"; read on with read_result(handle={handle!r}, start={head})" if readable_on else f"; handle {handle}"
    note = f"[cut: {len(text) - limit} of {len(text)} characters left out here{advice}]"
    return f"{text[:head]}\n{note}\n{text[len(text) - tail :]}"


def fit(messages: Sequence[Message], window: int, reserved: int) -> tuple[Message, ...]:
    """Return the messages to show within a window: the oldest tool results are put away first, then oldest turns.

    A call and its results always stay together, as do the first message and the last turn.

    Args:
        messages: the history.
        window: the model's window in tokens.
        reserved: tokens that system message, tools and reply need.
    """
    room = int(window * FILL) - reserved
    sizes = [estimate_message(message) for message in messages]
    total = sum(sizes)
    if total <= room:
        return tuple(messages)
    shown = list(messages)
    starts = turn_starts(messages)
    for index in range(starts[-1] if starts else 0):
        message = shown[index]
        if total > room and isinstance(message, ToolMessage):
            note = replace(message, content=f"[put away: a result of {len(message.content)} characters]")
            saved = sizes[index] - estimate_message(note)
            if saved > 0:
                shown[index] = note
                sizes[index] -= saved
                total -= saved
    return _without_oldest_turns(shown, sizes, starts, total - room)


def turn_starts(messages: Sequence[Message]) -> list[int]:
    """Return where a history may be parted: before each message that is not a tool result."""
    return [index for index, message in enumerate(messages) if not isinstance(message, ToolMessage)]


def _without_oldest_turns(
    shown: Sequence[Message], sizes: Sequence[int], starts: Sequence[int], excess: int
) -> tuple[Message, ...]:
    """Leave out turns after the first message, oldest first, until the excess of tokens is gone."""
    first_kept = next((start for start in starts if start > 0), len(shown))
    begin = first_kept
    for start, end in pairwise(starts[1:]):
        if excess <= 0:
            break
        excess -= sum(sizes[start:end])
        begin = end
    return (*shown[:first_kept], *shown[begin:])
