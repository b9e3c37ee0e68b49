"""How a model's stream is read: closed at its end, given up when it falls silent, and never in nobody else's time."""

from __future__ import annotations

import inspect
import math
import time
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing, asynccontextmanager, nullcontext
from typing import TYPE_CHECKING, Any, Self

import anyio
from anyio import CancelScope, lowlevel

from swarmbus.errors import ServerSilent

if TYPE_CHECKING:
    from contextlib import AbstractAsyncContextManager

    from swarmbus.messages import ModelRequest, StreamPart
    from swarmbus.thinking.models.base import Model

STRETCH = 0.01
"""Seconds for which a stream that has its parts ready may go on before others have their turn."""


@asynccontextmanager
async def streamed(model: Model, request: ModelRequest) -> AsyncIterator[AsyncIterator[StreamPart]]:
    """Ask a model, and return a context in which its parts are read; the stream is closed at its end.

    A model that says `minds_silence = True` keeps to the request's `idle_timeout` itself; for others that is done here.

    Raises:
        ServerSilent: for so many seconds nothing came.
        TypeError: what its `stream` returned is no stream.
    """
    patience = None if getattr(model, "minds_silence", False) else request.idle_timeout
    with CancelScope() as scope:
        async with _closing(model.stream(request)) as parts:
            yield _Parts(parts, scope, math.inf if patience is None else patience)
    if scope.cancelled_caught:
        told = f"{model.name} gave no sign of life for {patience:g} seconds; give it longer with Limits(idle_timeout=)"
        raise ServerSilent(told)


class _Parts:
    """The parts of a stream; each puts off the time at which its scope gives up waiting for the next."""

    def __init__(self, parts: AsyncIterator[StreamPart], scope: CancelScope, patience: float) -> None:
        self._parts = parts
        self._scope = scope
        self._patience = patience
        self._seen = time.monotonic()
        scope.deadline = anyio.current_time() + patience

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> StreamPart:
        part = await self._parts.__anext__()
        now = time.monotonic()
        if now - self._seen >= STRETCH:
            self._seen = now
            self._scope.deadline = anyio.current_time() + self._patience
            await lowlevel.checkpoint()
        return part


def _closing(parts: AsyncIterator[StreamPart]) -> AbstractAsyncContextManager[AsyncIterator[StreamPart]]:
    """Return a context that closes a stream at its end, where it can be closed.

    Raises:
        TypeError: what a model's `stream` returned is no stream.
    """
    given: Any = parts
    if not hasattr(given, "__aiter__"):
        if inspect.iscoroutine(given):
            given.close()
        raise TypeError(f"a model's stream(request) has to yield its parts, and returned {type(given).__name__}")
    return aclosing(parts) if isinstance(parts, AsyncGenerator) else nullcontext(parts)
