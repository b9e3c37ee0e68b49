"""Tasks whose errors come out as they were raised: what happened once is told once, without a group around it."""

from __future__ import annotations

from contextlib import asynccontextmanager, contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

import anyio
import anyio.lowlevel

from swarmbus.cancellation import being_cancelled, stray

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
    from contextlib import AbstractAsyncContextManager

    from anyio.abc import TaskGroup

T = TypeVar("T")


def lone(error: BaseException) -> BaseException:
    """Return the only error of a group, however deep it lies; a group of several is returned as it is."""
    inner: Any = error
    while issubclass(type(inner), BaseExceptionGroup):  # `isinstance` would ask the error itself
        if len(inner.exceptions) > 1:
            return error
        inner = inner.exceptions[0]
    only: BaseException = inner
    return only


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


async def raised_by(work: Awaitable[Any]) -> BaseException | None:
    """Let something do its work, and return what it raised; only being stopped passes through."""
    try:
        await work
    except GeneratorExit:
        raise
    except anyio.get_cancelled_exc_class() as error:
        if being_cancelled():
            raise
        return stray(error)
    except BaseException as error:  # noqa: BLE001  # whatever it is, who asked deals with it
        return error
    return None


async def side_by_side(function: Callable[[T], Awaitable[None]], values: Sequence[T], *, most: int) -> None:
    """Call an async function with each value, so many at a time, begun in order.

    Raises:
        BaseException: the first error of one of them, as it was raised; it stops the others.
    """
    first: BaseException | None = None
    waiting = iter(values)

    async def work() -> None:
        nonlocal first
        for value in waiting:
            error = await raised_by(function(value))
            if error is not None:
                first = first or error
                group.cancel_scope.cancel()
            await anyio.lowlevel.checkpoint()

    async with anyio.create_task_group() as group:
        for _ in range(min(most, len(values))):
            group.start_soon(work)
    if first is not None:
        raise first


@asynccontextmanager
async def closed_within(seconds: float, manager: AbstractAsyncContextManager[Any], what: str) -> AsyncIterator[None]:
    """Enter a context manager for the block; to leave it, it has so many seconds.

    Raises:
        TimeoutError: it was not left by then, and was cancelled; an error of the block comes first.
        RuntimeError: it let out a cancellation that nobody had asked for.
    """
    problem: BaseException | None = None
    with anyio.CancelScope() as scope:
        try:
            async with manager:
                try:
                    yield
                except BaseException as error:
                    problem = error
                    raise
                finally:
                    scope.deadline = anyio.current_time() + seconds
        except anyio.get_cancelled_exc_class() as error:
            if error is problem or being_cancelled():
                raise
            raise stray(error) from error
    if scope.cancelled_caught:
        raise problem or TimeoutError(f"{what} was not closed within {seconds:g} s")


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
