"""Tells a real cancellation from a cancellation exception that somebody's code let out of its own accord.

Under asyncio, awaiting somebody else's cancelled task raises the same exception as being cancelled. anyio knows of
its own scopes only, so this one module asks asyncio, where it runs, about cancellations from outside of them.
"""

from __future__ import annotations

import asyncio

import anyio
from anyio import get_current_task


def being_cancelled() -> bool:
    """Say whether the current task is being cancelled, by an enclosing scope or from outside."""
    if anyio.current_effective_deadline() == float("-inf") or get_current_task().has_pending_cancellation():
        return True
    try:
        task = asyncio.current_task()
    except RuntimeError:  # another event loop than asyncio's, where nobody but a scope cancels
        return True
    return task is not None and task.cancelling() > 0


def stray(error: BaseException) -> RuntimeError:
    """Return what stands for a cancellation exception raised though nobody was cancelling the current task.

    Let out, it would end without a word whatever waits for the task.
    """
    made = RuntimeError(
        f"{type(error).__name__} was raised though nobody had cancelled this, as by awaiting a task that was"
        " cancelled; suppress it there"
    )
    made.__cause__ = error
    return made
