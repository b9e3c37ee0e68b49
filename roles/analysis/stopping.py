"""Work that somebody may ask to stop; who asks, and what becomes of what was done until then, is for others."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

import anyio

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

T = TypeVar("T")


async def unless_stopped(stop: Callable[[], Awaitable[object]] | None, work: Callable[[], Awaitable[T]]) -> T | None:
    """Return what the work brings, or None where a stop was asked for before; then the work is cancelled.

    Args:
        stop: returns when a stop is asked for; None where nobody will.
        work: what to do; an error of it comes out as it was raised.
    """
    brought: T | None = None

    async def wait() -> None:
        await (anyio.sleep_forever() if stop is None else stop())
        group.cancel_scope.cancel()

    try:
        async with anyio.create_task_group() as group:
            group.start_soon(wait)
            brought = await work()
            group.cancel_scope.cancel()
    except BaseExceptionGroup as errors:
        error: BaseException = errors
        while isinstance(error, BaseExceptionGroup) and len(error.exceptions) == 1:
            error = error.exceptions[0]
        if error is errors:
            raise
    else:
        return brought
    raise error
