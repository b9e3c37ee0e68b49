"""Keeps what models open, such as connections, as long as a swarm is open."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

import anyio

from swarmbus.task_groups import raised_by, singly
from swarmbus.thinking.models.base import kept_open

if TYPE_CHECKING:
    from types import TracebackType

    from swarmbus.thinking.models.base import Model


class OpenModels:
    """Keeps the connections of the models in use open as long as the swarm is."""

    def __init__(self) -> None:
        self._over = anyio.Event()
        self._group = anyio.create_task_group()
        self._held: list[Model] = []
        self._error: BaseException | None = None

    async def __aenter__(self) -> Self:
        await self._group.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> bool | None:
        self._over.set()
        handled = None
        with singly():
            if not isinstance(error, Exception):
                handled = await self._group.__aexit__(kind, error, traceback)
            else:  # which goes on by itself, without a group around it
                await self._group.__aexit__(None, None, None)
        if self._error is not None:
            raise self._error
        return handled

    def add(self, model: Model) -> None:
        """Open a model, unless it is open already."""
        if not any(held is model for held in self._held):
            self._held.append(model)
            self._group.start_soon(self._hold, model)

    async def _hold(self, model: Model) -> None:
        error = await raised_by(self._keep_open(model))
        if error is not None:  # raised by nobody but whoever waits, for an event loop obeys what is no `Exception`
            self._error = self._error or error
            self._group.cancel_scope.cancel()

    async def _keep_open(self, model: Model) -> None:
        async with kept_open(model):
            await self._over.wait()
