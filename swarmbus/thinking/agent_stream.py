"""The loop events of one run of an agent, as they happen, for whoever iterates over them."""

from __future__ import annotations

from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any, Self

import anyio

from swarmbus.task_groups import background, raised_by

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable
    from contextlib import AbstractAsyncContextManager
    from types import TracebackType

    from anyio.streams.memory import MemoryObjectReceiveStream

    from swarmbus.thinking.agent import AgentResult
    from swarmbus.thinking.loop_events import LoopEvent
    from swarmbus.thinking.loop_state import Observer


class AgentStream:
    """The loop events of one run, as they happen; the run is over when the iteration is.

    Attributes:
        result: what came of the run, once it is over.
    """

    def __init__(self, start: Callable[[Observer], Awaitable[AgentResult[Any]]]) -> None:
        self._start = start
        self._opened: AbstractAsyncContextManager[AsyncIterator[LoopEvent]] | None = None
        self.result: AgentResult[Any] | None = None

    async def __aenter__(self) -> AsyncIterator[LoopEvent]:
        assert self._opened is None
        self._opened = self._open()
        return await self._opened.__aenter__()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> bool | None:
        assert self._opened is not None
        return await self._opened.__aexit__(kind, error, traceback)

    async def __aiter__(self) -> AsyncIterator[LoopEvent]:
        async with self as events:
            async for event in events:
                yield event

    @asynccontextmanager
    async def _open(self) -> AsyncIterator[AsyncIterator[LoopEvent]]:
        send, receive = anyio.create_memory_object_stream[Any](float("inf"))
        events = _Events(receive)

        async def answer() -> None:
            self.result = await self._start(send.send_nowait)

        async def watch() -> None:
            with send:
                events.failure = await raised_by(answer())

        async with background() as group:
            group.start_soon(watch)
            with receive:
                yield events


class _Events:
    """The events as they come in, then the error that ended the run, if one did."""

    def __init__(self, receive: MemoryObjectReceiveStream[LoopEvent]) -> None:
        self._receive = receive
        self.failure: BaseException | None = None

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> LoopEvent:
        with suppress(anyio.EndOfStream):
            return await self._receive.receive()
        raise self.failure or StopAsyncIteration
