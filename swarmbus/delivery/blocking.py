"""Notices handlers that keep the event loop to themselves: nothing else goes on then, time limits included."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Generator

    from swarmbus.delivery.topology import Handler

T = TypeVar("T")

LONG = 1.0
"""Seconds between two awaits after which a handler is reported."""


class Stretches(Generic[T]):
    """Awaits a coroutine, and reports how long it went on between two of its awaits where that was long.

    Args:
        coroutine: what is awaited; whoever looks into the task finds its attributes here.
        report: takes the seconds.
    """

    __slots__ = ("_coroutine", "_report")

    def __init__(self, coroutine: Coroutine[Any, Any, T], report: Callable[[float], None]) -> None:
        self._coroutine = coroutine
        self._report = report

    def __await__(self) -> Generator[Any, Any, T]:
        return cast("Generator[Any, Any, T]", self)

    def __iter__(self) -> Stretches[T]:
        return self

    def __next__(self) -> Any:
        began = time.perf_counter()
        try:
            return self._coroutine.send(None)
        finally:
            if time.perf_counter() - began > LONG:
                self._look_back(began)

    def send(self, value: Any) -> Any:
        """Go on to the next await."""
        began = time.perf_counter()
        try:
            return self._coroutine.send(value)
        finally:
            self._look_back(began)

    def throw(self, *error: Any) -> Any:
        """Go on to the next await, from an exception."""
        began = time.perf_counter()
        try:
            return self._coroutine.throw(*error)
        finally:
            self._look_back(began)

    def close(self) -> None:
        """End the coroutine where it stands."""
        self._coroutine.close()

    def _look_back(self, began: float) -> None:
        seconds = time.perf_counter() - began
        if seconds > LONG:
            self._report(seconds)

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
