"""Models behind any server that speaks the OpenAI chat-completions interface, over the openai SDK.

This is the one module that imports the SDK, when the first call is made; the SDK's own retries are off, its stream
classes are not used. What travels is the business of `wire`, how it is read that of `bodies`, and what failures mean
that of `faults`.
"""

from __future__ import annotations

import logging
import os
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable
from contextlib import AsyncExitStack, aclosing, asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

import anyio
import anyio.to_thread
from anyio.lowlevel import RunVar

from swarmbus.errors import (
    IncompleteAnswer,
    NotAuthorised,
    RequestRefused,
    ServerSilent,
    ServerUnreachable,
    UnknownModel,
)
from swarmbus.messages import ModelReply
from swarmbus.thinking.models.base import require_models_allowed
from swarmbus.thinking.models.bodies import ENCODING, bounded, chunks_of, unwind
from swarmbus.thinking.models.faults import fault_from_status
from swarmbus.thinking.models.retry import DEFAULT_RETRIES, Gate, Retries, retried
from swarmbus.thinking.models.servers import SERVERS, ServerFamily
from swarmbus.thinking.models.wire import ReplyAssembler, request_body

if TYPE_CHECKING:
    from swarmbus.messages import ModelRequest, StreamPart

_log = logging.getLogger(__name__)

DROPPABLE = frozenset(
    {"stream_options", "parallel_tool_calls", "response_format", "temperature", "top_p", "seed", "reasoning_effort"}
)
"""Fields that a request can do without: all but what would change its meaning in silence."""

_CLOSING = 5.0


@dataclass(slots=True)
class _Server:
    """One server as this event loop knows it; the client lives as long as somebody has it open."""

    url: str
    key: str
    gate: Gate = field(default_factory=Gate)
    refused: set[str] = field(default_factory=set)
    users: int = 0
    client: Any = None
    opening: anyio.Lock = field(default_factory=anyio.Lock)


T = TypeVar("T")

_servers: RunVar[dict[tuple[str, str], _Server]] = RunVar("swarmbus_servers")


class OpenAIModel:
    """A model of an OpenAI-compatible server."""

    minds_silence = True

    def __init__(
        self,
        name: str,
        *,
        family: ServerFamily,
        url: str,
        key: str,
        retries: Retries = DEFAULT_RETRIES,
        label: str = "",
    ) -> None:
        """Make a model.

        Args:
            name: the server's name of the model.
            family: the server's quirks.
            url: the base URL, which usually ends in /v1.
            key: the key; may be empty where the server wants none.
            retries: how often and how patiently calls are tried again.
            label: how the model is called in records and messages; by default its URL and name.
        """
        self.model = name
        self.family = family
        self.url = url.rstrip("/")
        self.profile = family.profile
        self._key = key
        self._retries = retries
        self._label = label or f"{self.url}#{name}"

    @property
    def name(self) -> str:
        """The name as `resolve_model` takes it."""
        return self._label

    async def stream(self, request: ModelRequest) -> AsyncIterator[StreamPart]:
        """Ask the server; see `Model.stream`.

        Raises:
            ModelError: there is no complete answer, and trying again did not help.
        """
        require_models_allowed(self.name)
        async with (
            self.open() as server,
            aclosing(retried(lambda: self._attempt(server, request), server.gate, self._retries)) as parts,
        ):
            async for part in parts:
                yield part

    @asynccontextmanager
    async def open(self) -> AsyncIterator[_Server]:
        """Keep the connections to the server open, so that the calls within share them."""
        server = self._server()
        async with server.opening:
            if server.client is None:  # in a thread, since loading the SDK and the certificates takes its time
                server.client = await anyio.to_thread.run_sync(_client, server)
            server.users += 1
        try:
            yield server
        finally:
            server.users -= 1
            if not server.users:
                client, server.client = server.client, None
                with anyio.move_on_after(_CLOSING, shield=True):
                    await client.close()

    def _server(self) -> _Server:
        known = _servers.get({})
        _servers.set(known)
        place = (self.url, self._key)
        if place not in known:
            known[place] = _Server(*place)
        return known[place]

    async def _attempt(self, server: _Server, request: ModelRequest) -> AsyncGenerator[StreamPart, None]:
        """Yield the parts of one answer; fields that the server refuses are left out, from now on."""
        while True:
            body = request_body(request, self.model, self.family, server.refused)
            try:
                async with aclosing(self._answer(server, body, request.idle_timeout)) as parts:
                    async for part in parts:
                        yield part
            except RequestRefused as error:
                named = [name for name in body if name in DROPPABLE and name in str(error)]
                if not named:
                    raise
                server.refused.add(named[0])
                _log.warning("%s refuses the field %s; it is left out from now on", self.url, named[0])
            else:
                return

    async def _answer(
        self, server: _Server, body: dict[str, Any], idle_timeout: float | None
    ) -> AsyncGenerator[StreamPart, None]:
        import httpx2  # noqa: PLC0415  # what the SDK is built on; loaded with it
        import openai  # noqa: PLC0415  # takes half a second; whoever asks no server need not wait for it

        assembler = ReplyAssembler()
        extra = {name: value for name, value in body.items() if name not in {"model", "messages"}}
        try:
            async with AsyncExitStack() as stack:
                asked = server.client.chat.completions.with_streaming_response.create(
                    model=body["model"], messages=body["messages"], extra_body=extra, timeout=None
                )
                response = await _within(idle_timeout, stack.enter_async_context(asked))
                chunks = await stack.enter_async_context(aclosing(chunks_of(response, self.url)))
                while (chunk := await _within(idle_timeout, anext(chunks, None))) is not None:
                    for part in assembler.feed(chunk):
                        yield part
        except openai.APIStatusError as error:
            raise fault_from_status(error.status_code, error.response.headers, error.response.text, self.url) from error
        except TimeoutError as error:
            if not assembler.finished:
                told = (
                    f"{self.url} gave no sign of life for {idle_timeout} seconds; "
                    "give it longer with Limits(idle_timeout=)"
                )
                raise ServerSilent(told) from error
        except openai.APIConnectionError as error:
            raise ServerUnreachable(f"{self.url} can't be reached: {error.__cause__ or error}") from error
        except httpx2.TransportError as error:
            if not assembler.finished:
                text = f"the connection to {self.url} broke in the middle of an answer: {error}"
                raise IncompleteAnswer(text, partial=assembler.text) from error
        reply = assembler.reply()
        yield ModelReply(reply.message, reply.usage, reply.finish, self.name)


def server_model(prefix: str, name: str, url: str = "") -> OpenAIModel:
    """Return the model of a server family by its name.

    Args:
        prefix: the family, a key of `SERVERS`.
        name: the server's name of the model.
        url: the base URL, where the family's own is not meant.

    Raises:
        UnknownModel: the name is empty, or no URL is known.
        NotAuthorised: the family needs a key, and its environment variable is not set.
    """
    family = SERVERS[prefix]
    place = url or os.environ.get(family.url_variable, "") or family.url
    if not name or not place:
        raise UnknownModel(f"write the model as {prefix}:NAME" if place else "write the model as http://HOST/v1#NAME")
    key = os.environ.get(family.key_variable, "") if family.key_variable else ""
    if family.key_required and not key:
        raise NotAuthorised(f"{prefix}:{name} needs a key: set {family.key_variable}")
    return OpenAIModel(name, family=family, url=place, key=key, label="" if url else f"{prefix}:{name}")


def _client(server: _Server) -> Any:
    import httpx2  # noqa: PLC0415  # see above
    import openai  # noqa: PLC0415

    class Bounded(httpx2.AsyncByteStream):
        def __init__(self, response: httpx2.Response) -> None:
            self._body: Any = response.stream
            self._told = response.status_code, httpx2.Headers(response.headers), server.url

        async def __aiter__(self) -> AsyncIterator[bytes]:
            raw = aiter(self._body)
            try:
                async with aclosing(bounded(raw, *self._told)) as pieces:
                    async for piece in pieces:
                        yield piece
            finally:
                await unwind(raw)

        async def aclose(self) -> None:
            await self._body.aclose()

    async def bound(response: httpx2.Response) -> None:
        response.stream = Bounded(response)
        response.headers.pop("content-encoding", None)  # what is read of it is decompressed

    hooks = {"response": [bound]}
    return openai.AsyncOpenAI(
        base_url=server.url,
        api_key=server.key or "none",
        max_retries=0,
        default_headers={"accept-encoding": ENCODING},
        http_client=openai.DefaultAsyncHttpxClient(event_hooks=hooks),
    )


async def _within(seconds: float | None, step: Awaitable[T]) -> T:
    """Wait for a sign of life of the server's: the whole head of its answer, or a whole line, not a mere byte of it.

    Raises:
        TimeoutError: it took longer.
    """
    with anyio.fail_after(seconds):
        return await step
