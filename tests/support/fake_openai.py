"""A model server for tests: real HTTP on 127.0.0.1, streaming and tool calls, answering from what it is sent.

`answer` is a function from a `ChatRequest` to a `Reply`; a text or a list of `ToolUse` stands for an ordinary one.
A request with an invalid history gets a 400, and the server's context fails at its end.

    async with fake_server(lambda request: "42") as server:
        model = resolve_model(f"{server.url}#any-name")

`threaded_fake_server` is the same for code that runs an event loop of its own.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import anyio
from anyio.abc import ByteStream
from anyio.from_thread import start_blocking_portal
from anyio.streams.buffered import BufferedByteReceiveStream

from support.histories import history_faults

Chunk: TypeAlias = bytes | float
"""Bytes to send, or seconds to pause."""


@dataclass(frozen=True)
class ChatRequest:
    """One request: its number from 1, its headers in lower case, and its body."""

    number: int
    headers: dict[str, str]
    body: dict[str, Any]

    @property
    def messages(self) -> list[dict[str, Any]]:
        messages: list[dict[str, Any]] = self.body["messages"]
        return messages

    @property
    def last(self) -> dict[str, Any]:
        return self.messages[-1]

    @property
    def tool_names(self) -> list[str]:
        return [tool["function"]["name"] for tool in self.body.get("tools", ())]

    def texts(self, role: str) -> list[str]:
        """Return the contents of all messages of a role, in order."""
        return [str(message.get("content") or "") for message in self.messages if message["role"] == role]


@dataclass(frozen=True)
class ToolUse:
    """A tool call of a reply."""

    name: str
    arguments: dict[str, Any]
    id: str = ""


@dataclass(frozen=True)
class Reply:
    """What is sent back, byte for byte, as long as somebody reads it.

    Attributes:
        cut: the connection is closed without ending the answer.
        raw: the chunks are all that is sent, without a status line, headers or a form of their own.
    """

    chunks: Iterable[Chunk]
    status: int = 200
    headers: dict[str, str] = field(default_factory=lambda: {"content-type": "text/event-stream"})
    cut: bool = False
    raw: bool = False


Answer: TypeAlias = Callable[[ChatRequest], Reply | str | list[ToolUse]]


def events(*chunks: dict[str, Any] | str | float, done: bool = True) -> Reply:
    """Return a stream of server-sent events: objects as JSON, texts as they are, numbers as pauses in seconds."""
    lines: list[Chunk] = []
    for chunk in chunks:
        if isinstance(chunk, float):
            lines.append(chunk)
        else:
            data = chunk if isinstance(chunk, str) else json.dumps(chunk)
            lines.append(f"data: {data}\n\n".encode())
    return Reply([*lines, b"data: [DONE]\n\n"] if done else lines)


def delta(finish: str | None = None, **fields: Any) -> dict[str, Any]:
    """Return one chunk of a streamed reply."""
    return {"object": "chat.completion.chunk", "choices": [{"index": 0, "delta": fields, "finish_reason": finish}]}


def piece(index: int | None, call_id: str | None, name: str | None, arguments: str) -> dict[str, Any]:
    """Return one chunk with a piece of a tool call; None leaves a field out."""
    function = {"arguments": arguments, **({} if name is None else {"name": name})}
    call = {"index": index, "id": call_id, "type": "function", "function": function}
    return delta(tool_calls=[{key: value for key, value in call.items() if value is not None}])


def usage(prompt: int = 10, completion: int = 5) -> dict[str, Any]:
    """Return the last chunk of a stream, which tells the usage."""
    counts = {"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": prompt + completion}
    return {"object": "chat.completion.chunk", "choices": [], "usage": counts}


def say(text: str, finish: str = "stop") -> Reply:
    """Return a text in three pieces."""
    third = max(len(text) // 3, 1)
    pieces = [text[:third], text[third : 2 * third], text[2 * third :]]
    return events(*(delta(content=part) for part in pieces if part), delta(finish), usage())


def use(*calls: ToolUse, finish: str = "tool_calls") -> Reply:
    """Return tool calls, each in two pieces."""
    chunks = []
    for index, call in enumerate(calls):
        arguments = json.dumps(call.arguments)
        half = len(arguments) // 2
        chunks.append(piece(index, call.id or f"call_{call.name}_{index}", call.name, arguments[:half]))
        chunks.append(piece(index, None, None, arguments[half:]))
    return events(*chunks, delta(finish), usage())


def refuse(status: int, message: str, headers: dict[str, str] | None = None, **error: Any) -> Reply:
    """Return an error as the API gives it."""
    body = json.dumps({"error": {"message": message, **error}}).encode()
    return Reply([body], status, {"content-type": "application/json", **(headers or {})})


class FakeServer:
    """What a test sees of the server.

    Attributes:
        url: the base URL, ending in /v1.
        requests: all requests, refused ones included.
        faults: what was wrong with the histories it was sent.
    """

    def __init__(self, answer: Answer) -> None:
        self.url = ""
        self.requests: list[ChatRequest] = []
        self.faults: list[str] = []
        self._answer = answer

    def reply(self, request: ChatRequest) -> Reply:
        """Return what a request gets."""
        self.requests.append(request)
        faults = history_faults(request.messages)
        if faults:
            self.faults += [f"request {request.number}: {fault}" for fault in faults]
            return refuse(400, f"invalid history: {'; '.join(faults)}")
        answer = self._answer(request)
        if isinstance(answer, str):
            return say(answer)
        if isinstance(answer, list):
            return use(
                *(ToolUse(call.name, call.arguments, call.id or _new_id(request, i)) for i, call in enumerate(answer))
            )
        return answer

    async def serve(self, stream: ByteStream) -> None:
        """Answer the requests of one connection until either side closes it."""
        async with stream:
            received = BufferedByteReceiveStream(stream)
            try:
                while await self._serve_one(stream, received):
                    pass
            except (anyio.EndOfStream, anyio.IncompleteRead, anyio.BrokenResourceError):
                return

    async def _serve_one(self, stream: ByteStream, received: BufferedByteReceiveStream) -> bool:
        head = (await received.receive_until(b"\r\n\r\n", 65536)).decode("latin-1").split("\r\n")
        method, path, _ = head[0].split(" ")
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in head[1:])}
        content = await received.receive_exactly(int(headers.get("content-length", "0")))
        if (method, path) == ("POST", "/v1/chat/completions"):
            reply = self.reply(ChatRequest(len(self.requests) + 1, headers, json.loads(content)))
        else:
            reply = refuse(404, f"there is no {method} {path} here")
        await _send(stream, reply)
        return not reply.cut


def _new_id(request: ChatRequest, position: int) -> str:
    return f"call_{len(request.messages)}_{position}"


async def _send(stream: ByteStream, reply: Reply) -> None:
    fields = {**reply.headers, "transfer-encoding": "chunked"}
    lines = [f"HTTP/1.1 {reply.status} Fake", *(f"{name}: {value}" for name, value in fields.items())]
    if not reply.raw:
        await stream.send(("\r\n".join(lines) + "\r\n\r\n").encode("latin-1"))
    for chunk in reply.chunks:
        if isinstance(chunk, float):
            await anyio.sleep(chunk)
        elif chunk:
            await stream.send(chunk if reply.raw else f"{len(chunk):x}\r\n".encode() + chunk + b"\r\n")
    if not reply.cut and not reply.raw:
        await stream.send(b"0\r\n\r\n")


@asynccontextmanager
async def fake_server(answer: Answer, *, strict: bool = True) -> AsyncIterator[FakeServer]:
    """Serve on a free port of 127.0.0.1 in this event loop.

    Raises:
        AssertionError: at the end, if a request had an invalid history (unless `strict` is off).
    """
    server = FakeServer(answer)
    listener = await anyio.create_tcp_listener(local_host="127.0.0.1", local_port=0)
    async with listener, anyio.create_task_group() as group:
        port = listener.extra(anyio.abc.SocketAttribute.local_port)
        server.url = f"http://127.0.0.1:{port}/v1"
        group.start_soon(listener.serve, server.serve)
        try:
            yield server
        finally:
            group.cancel_scope.cancel()
    assert not (strict and server.faults), server.faults


@contextmanager
def threaded_fake_server(answer: Answer, *, strict: bool = True) -> Iterator[FakeServer]:
    """Serve from a thread, for code that blocks or runs an event loop of its own; `answer` is called in the thread."""
    with (
        start_blocking_portal() as portal,
        portal.wrap_async_context_manager(fake_server(answer, strict=strict)) as server,
    ):
        yield server
