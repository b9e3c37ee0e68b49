"""`ctx.once`: an effect that all attempts at a delivery have once between them, and what each of them gets of it."""

from __future__ import annotations

import inspect
from contextvars import ContextVar
from copy import deepcopy
from typing import TYPE_CHECKING, Any

import anyio

from swarmbus.calls import CallRecord, as_recorded
from swarmbus.errors import RoleError
from swarmbus.text import error_text
from swarmbus.threads import call_in_thread

if TYPE_CHECKING:
    from collections.abc import Callable

    from swarmbus.calls import CallLog


class Effect:
    """One effect: its record, once it took place, and who sees to it now; the others wait."""

    __slots__ = ("call", "lock")

    def __init__(self) -> None:
        self.call: CallRecord | None = None
        self.lock = anyio.Lock()


_under_way: ContextVar[tuple[Effect, ...]] = ContextVar("_under_way", default=())


async def have_once(effect: Effect, calls: CallLog, key: str, function: Callable[[], Any]) -> Any:
    """Return what the function of an effect returned, calling it where nobody has.

    It may go on after the attempt that called it was given up, as in a thread; a later attempt waits for it then.

    Raises:
        RoleError: it is called from within itself, or what it returned can't be kept.
    """
    if effect in _under_way.get():
        raise RoleError(f"ctx.once({key!r}, ...) was called within its own function; give what is within another key")
    async with effect.lock:
        recorded = await calls.recorded("once", key) or await calls.recorded("once_lost", key)
        effect.call = recorded or effect.call
        if effect.call is None:
            await _take(effect, calls, key, function)
        assert effect.call is not None
        call = effect.call
    if call.kind == "once_lost":
        raise RoleError(
            f"ctx.once({key!r}, ...) took effect, but what its function returned can't be kept, so that it is not"
            f" called again: {call.value}; have it return what JSON can hold"
        )
    return deepcopy(call.value)


async def _take(effect: Effect, calls: CallLog, key: str, function: Callable[[], Any]) -> None:
    token = _under_way.set((*_under_way.get(), effect))
    try:
        made = await (function() if inspect.iscoroutinefunction(function) else call_in_thread(function))
        if inspect.isawaitable(made):
            made = await made
    finally:
        _under_way.reset(token)
    effect.call = _record(key, made)
    with anyio.CancelScope(shield=True):  # what has taken effect must not be forgotten by a cancel
        await calls.record(effect.call)


def _record(key: str, made: Any) -> CallRecord:
    """Return the record of an effect, with its value as JSON gives it back, or with why JSON can't hold that."""
    try:
        return CallRecord("once", key, as_recorded(made), {})
    except Exception as error:  # noqa: BLE001  # whatever hinders it, the effect took place
        return CallRecord("once_lost", key, error_text(error), {})
