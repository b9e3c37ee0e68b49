"""Notices handlers that keep the event loop to themselves: nothing else goes on then, time limits included."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Generator

    from swarmbus.delivery.attempt import Attempt
    from swarmbus.delivery.topology import Handler

T = TypeVar("T")

LONG = 1.0
"""Seconds between two awaits after which a handler is reported."""


class Stretches(Generic[T]):
    """Awaits what an attempt does in a context of its own, and has it note each long stretch between two of its awaits.

    Args:
        coroutine: what is awaited; whoever looks into the task finds its attributes here.
        attempt: its slot is told, too, that others had their turn.
    """

    __slots__ = ("_attempt", "_context", "_coroutine")

    def __init__(self, coroutine: Coroutine[Any, Any, T], attempt: Attempt) -> None:
        self._coroutine = coroutine
        self._attempt = attempt
        self._context = attempt.run.context.copy()

    def __await__(self) -> Generator[Any, Any, T]:
        steps: Any = self
        return steps  # type: ignore[no-any-return]

    def __iter__(self) -> Stretches[T]:
        return self

    def __next__(self) -> Any:
        began = time.perf_counter()
        try:
            awaited = self._context.run(self._coroutine.send, None)
        finally:
            if time.perf_counter() - began > LONG:
                self._attempt.note_blocking(time.perf_counter() - began)
        self._attempt.slot.yielded = True
        return awaited

    def send(self, value: Any) -> Any:
        """Go on to the next await."""
        return self._go_on(self._coroutine.send, value)

    def throw(self, *error: Any) -> Any:
        """Go on to the next await, from an exception."""
        return self._go_on(self._coroutine.throw, *error)

    def close(self) -> None:
        """End the coroutine where it stands."""
        self._coroutine.close()

    def _go_on(self, step: Callable[..., Any], *given: Any) -> Any:
        began = time.perf_counter()
        try:
            awaited = self._context.run(step, *given)
        finally:
            if time.perf_counter() - began > LONG:
                self._attempt.note_blocking(time.perf_counter() - began)
        self._attempt.slot.yielded = True
        return awaited

    def __getattr__(self, name: str) -> Any:
        return getattr(self._coroutine, name)


class Blocked:
    """How often each handler of a run blocked the event loop, and for how many seconds at most."""

    def __init__(self) -> None:
        self._found: dict[Handler, tuple[int, float]] = {}

    def add(self, handler: Handler, seconds: float) -> None:
        """Note one more time."""
        times, most = self._found.get(handler, (0, 0.0))
        self._found[handler] = (times + 1, max(most, seconds))

    def warnings(self) -> list[str]:
        """Say for each handler what it did, and what to do about it."""
        return [
            f"{handler.qualified} ({handler.wiring.where}) blocked the event loop {_how_long(*found)}: nothing else"
            " could go on, and no time limit could act; await what it waits for, or run the blocking part with `await"
            " anyio.to_thread.run_sync(...)`"
            for handler, found in self._found.items()
        ]


def _how_long(times: int, most: float) -> str:
    return f"for {most:.1f} s" if times == 1 else f"{times} times, for up to {most:.1f} s"
