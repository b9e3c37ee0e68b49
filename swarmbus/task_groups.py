"""Task groups whose errors come out as they were raised: what happened once is told once, without a group around it."""

from __future__ import annotations

from contextlib import asynccontextmanager, contextmanager
from typing import TYPE_CHECKING

import anyio

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from anyio.abc import TaskGroup


def lone(error: BaseException) -> BaseException:
    """Return the only error of a group, however deep it lies; a group of several is returned as it is."""
    inner = error
    while isinstance(inner, BaseExceptionGroup):
        if len(inner.exceptions) > 1:
            return error
        inner = inner.exceptions[0]
    return inner


@contextmanager
def singly() -> Iterator[None]:
    """Raise the only error of a group in its place."""
    try:
        yield
    except BaseExceptionGroup as errors:
        only = lone(errors)
        if only is errors:
            raise
    else:
        return
    raise only


@asynccontextmanager
async def background() -> AsyncIterator[TaskGroup]:
    """Open a task group for what goes on beside the block, and is cancelled when the block is left.

    An error of the block comes out as it is, whatever it is; so does that of a task, which ends the block.
    """
    problem: Exception | None = None
    with singly():
        async with anyio.create_task_group() as group:
            try:
                yield group
            except Exception as error:  # noqa: BLE001  # raised again below, without a group around it
                problem = error
            group.cancel_scope.cancel()
    if problem is not None:
        raise problem
