"""Calls functions that may block in worker threads, alike on every event loop."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import anyio.to_thread

if TYPE_CHECKING:
    from collections.abc import Callable


async def call_in_thread(
    function: Callable[[], Any], *, abandon: bool = False, limiter: anyio.CapacityLimiter | None = None
) -> Any:
    """Call a function in a worker thread and return what it returned, be it something to be awaited here.

    An async function behind a plain decorator or a lambda returns such a thing, for which Trio would blame it.

    Args:
        function: what is called.
        abandon: whether a cancellation leaves the thread to itself; else it is waited for.
        limiter: how many may do so at a time; all that give none share one.
    """
    (returned,) = await anyio.to_thread.run_sync(lambda: (function(),), abandon_on_cancel=abandon, limiter=limiter)
    return returned
