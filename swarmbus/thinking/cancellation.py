"""Tells a real cancellation from a cancellation exception that a tool raised of its own accord.

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
