"""The one place where model calls are tried again, and the gate through which all calls to one server pass.

The gate is shared by every role of the process (of the event loop, to be exact). It adapts to the server: a
rate-limit answer closes it for the time the server asks for, halves how many calls may be under way and doubles the
space between their starts; each success takes a little of that back.
"""

from __future__ import annotations

import math
import random
from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractContextManager, aclosing, nullcontext
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import anyio

from swarmbus.errors import ModelError, RateLimited
from swarmbus.messages import Restarted

if TYPE_CHECKING:
    from swarmbus.messages import StreamPart

MOST_UNDER_WAY = 64
FIRST_SPACE = 0.05
LARGEST_SPACE = 5.0


@dataclass(frozen=True, slots=True)
class Retries:
    """How often and how patiently a model call is tried again.

    Attributes:
        attempts: tries at a call that fails for a passing reason, the first included.
        rate_limits: tries at a call that the server's rate limit refuses, the first included.
        first_delay: seconds before the second try, at most; each further one may wait twice as long.
        longest_delay: seconds before a try, at most; a server that asks for more gets no further try.
    """

    attempts: int = 3
    rate_limits: int = 10
    first_delay: float = 0.5
    longest_delay: float = 60.0

    def delay(self, tries: int) -> float:
        """Return the seconds to wait after so many tries: half of it random, so that callers spread."""
        longest = min(self.first_delay * 2 ** (tries - 1), self.longest_delay)
        return random.uniform(longest / 2, longest)  # noqa: S311  # to spread callers, not to keep secrets


DEFAULT_RETRIES = Retries()


class Caller(Protocol):
    """Whoever limits the time in which model calls are made, and says at its end what it went by with."""

    def pause_clock(self) -> AbstractContextManager[None]:
        """Return a context for a wait at a gate, which is not to be counted."""
        ...

    def note_trouble(self, trouble: str) -> None:
        """Hear why a call failed that is to be made again; nothing once one succeeds."""
        ...


class _Nobody:
    def pause_clock(self) -> AbstractContextManager[None]:
        return nullcontext()

    def note_trouble(self, trouble: str) -> None:
        pass


NOBODY = _Nobody()

caller: ContextVar[Caller] = ContextVar("caller", default=NOBODY)
"""Who makes the calls of this task."""


class Gate:
    """Lets calls to one server start, as many and as fast as it takes them."""

    def __init__(self) -> None:
        self._most = float(MOST_UNDER_WAY)
        self._space = 0.0
        self._closed_until = -math.inf
        self._next_start = -math.inf
        self._last_decrease = -math.inf
        self._under_way = 0
        self._turn = anyio.Event()

    async def enter(self) -> float:
        """Wait until a call may start and return the time at which it does."""
        with caller.get().pause_clock():
            return await self._pass()

    async def _pass(self) -> float:
        while True:
            now = anyio.current_time()
            start = max(self._closed_until, self._next_start)
            if start > now:
                self._next_start = start + self._space
                await anyio.sleep_until(start)
                if self._closed_until > anyio.current_time():
                    continue
            elif self._space:
                self._next_start = now + self._space
            if self._under_way < max(int(self._most), 1):
                self._under_way += 1
                return anyio.current_time()
            await self._turn.wait()

    def leave(self) -> None:
        """Note that a call is over."""
        self._under_way -= 1
        self._turn.set()
        self._turn = anyio.Event()

    def succeeded(self) -> None:
        """Open a little after a success."""
        self._most = min(self._most + 1 / max(self._most, 1), MOST_UNDER_WAY)
        self._space = self._space * 0.9 if self._space > FIRST_SPACE / 10 else 0.0

    def refused(self, started: float, wait: float) -> None:
        """Close for a time after a rate-limit answer; answers to one burst narrow the gate once."""
        now = anyio.current_time()
        self._closed_until = max(self._closed_until, now + wait)
        if started >= self._last_decrease:
            self._last_decrease = now
            self._most = max(min(self._most, self._under_way) / 2, 1)
            self._space = min(max(self._space * 2, FIRST_SPACE), LARGEST_SPACE)


async def retried(
    attempt: Callable[[], AsyncGenerator[StreamPart, None]], gate: Gate, retries: Retries
) -> AsyncGenerator[StreamPart, None]:
    """Yield the parts of the first try that succeeds; before each further one, say so.

    Raises:
        ModelError: the last try's error, which says how often it was tried where that was more than once.
    """
    tries = refusals = 0
    while True:
        started = await gate.enter()
        try:
            async with aclosing(attempt()) as parts:
                async for part in parts:
                    yield part
            gate.succeeded()
            caller.get().note_trouble("")
        except RateLimited as error:
            refusals += 1
            delay = _delay(error, retries, refusals, retries.rate_limits, tries + refusals)
            gate.refused(started, delay)
            failure: ModelError = error
        except ModelError as error:
            tries += 1
            delay = _delay(error, retries, tries, retries.attempts, tries + refusals)
            failure = error
        else:
            return
        finally:
            gate.leave()
        caller.get().note_trouble(str(failure))
        yield Restarted(str(failure), delay, tries + refusals + 1)
        if not isinstance(failure, RateLimited):  # the gate itself waits for those
            await anyio.sleep(delay)


def _delay(error: ModelError, retries: Retries, tries: int, most: int, total: int) -> float:
    """Return the seconds until the next try, or raise the error where there is to be none."""
    wait: Any = error.retry_after
    if not error.retryable or tries >= most or (wait or 0) > retries.longest_delay:
        if total > 1:
            error.args = (f"{error} (tried {total} times)",)
        raise error
    return retries.delay(tries) if wait is None else float(wait) + random.uniform(0, retries.first_delay)  # noqa: S311
