"""Recorded calls as the loop uses them: how a request is told from another, and what of a call is kept.

A model call is known by the hash of its request, a tool call by its model call and its own id. The hashes of a
history are chained: each message is hashed once, however many turns show it.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

import pydantic_core
from anyio import CancelScope

from swarmbus.calls import CallRecord, NoCallLog
from swarmbus.message_json import message_to_json, reply_from_data, reply_to_data
from swarmbus.thinking.tool_result import ToolResult

if TYPE_CHECKING:
    from collections.abc import Sequence

    from swarmbus.calls import CallLog
    from swarmbus.messages import Message, ModelReply, ModelRequest, ToolCall

_DIGEST_SIZE = 16


class Recorder:
    """Looks up and keeps the calls of one loop; without a call log it does nothing and hashes nothing."""

    def __init__(self, calls: CallLog | None) -> None:
        self._calls = None if calls is None or isinstance(calls, NoCallLog) else calls
        self._chain = HistoryHash()
        self._request_key = ""

    async def recorded_reply(self, request: ModelRequest, model: str, turn: int) -> ModelReply | None:
        """Return the recorded reply to a request, if there is one, and remember the request for what follows."""
        if self._calls is None:
            self._request_key = str(turn)
            return None
        self._request_key = self._chain.key(request, model)
        record = await self._calls.recorded("model", self._request_key)
        return None if record is None else reply_from_data(record.value)

    async def keep_reply(self, reply: ModelReply) -> None:
        """Record the reply to the last request."""
        if self._calls is not None:
            usage = reply.usage.counts() if reply.usage is not None else {}
            await self._keep(CallRecord("model", self._request_key, reply_to_data(reply), usage))

    async def recorded_result(self, call: ToolCall) -> ToolResult | None:
        """Return the recorded result of a call in the last reply, if there is one."""
        if self._calls is None:
            return None
        record = await self._calls.recorded("tool", self._tool_key(call))
        return None if record is None else ToolResult.from_data(record.value)

    async def keep_result(self, call: ToolCall, result: ToolResult) -> None:
        """Record the successful result of a call in the last reply."""
        if self._calls is not None:
            await self._keep(CallRecord("tool", self._tool_key(call), result.to_data(), {}))

    def idempotency_key(self, delivery: str, call: ToolCall) -> str:
        """Return a key that every attempt at this call of this delivery has in common."""
        text = f"{delivery}\n{self._tool_key(call)}"
        return hashlib.blake2b(text.encode(), digest_size=_DIGEST_SIZE).hexdigest()

    def _tool_key(self, call: ToolCall) -> str:
        return f"{self._request_key}/{call.id}"

    async def _keep(self, record: CallRecord) -> None:
        assert self._calls is not None
        with CancelScope(shield=True):  # what was paid for or has taken effect must not be forgotten by a cancel
            await self._calls.record(record)


class HistoryHash:
    """The hash of a request, computed from the messages that were not in the request before."""

    def __init__(self) -> None:
        self._head: tuple[Any, ...] = ()
        self._start = hashlib.blake2b(digest_size=_DIGEST_SIZE)
        self._chain: list[tuple[Message, Any]] = []

    def key(self, request: ModelRequest, model: str) -> str:
        """Return the hash of model, tools, answer form, settings and messages, in hexadecimal."""
        head = (model, request.tools, request.output, request.settings)
        if head != self._head:
            self._head = head
            self._start = hashlib.blake2b(_encode(head), digest_size=_DIGEST_SIZE)
            self._chain.clear()
        del self._chain[self._common(request.messages) :]
        state = self._chain[-1][1] if self._chain else self._start
        for message in request.messages[len(self._chain) :]:
            state = state.copy()
            state.update(message_to_json(message))
            self._chain.append((message, state))
        digest: str = state.hexdigest()
        return digest

    def _common(self, messages: Sequence[Message]) -> int:
        common = 0
        for (known, _), message in zip(self._chain, messages, strict=False):
            if known is not message and known != message:
                break
            common += 1
        return common


def _encode(head: tuple[Any, ...]) -> bytes:
    return pydantic_core.to_json(head, fallback=repr)
