"""Where a bus lives: in one thread, that of its event loop, which nothing but what runs there may touch."""

from __future__ import annotations

import threading


class Home:
    """The thread in which this was made."""

    def __init__(self) -> None:
        self._thread = threading.get_ident()

    def require(self, call: str) -> None:
        """Refuse a call, such as `run.send()`, from another thread: it would wake tasks of a foreign event loop.

        Raises:
            RuntimeError: says how to call it.
        """
        if threading.get_ident() != self._thread:
            raise RuntimeError(
                f"{call} was called in {threading.current_thread().name}, another thread than the one the swarm was"
                " opened in; have that one call it, with `anyio.from_thread.run` or `asyncio.run_coroutine_threadsafe`"
            )
