"""A conversation: the history that an agent's runs go on from, and what becomes of it where they overlap."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from swarmbus.messages import Message


class Conversation:
    """A history that may be shared by agents.

    Runs that overlap fork it: none of them sees the others, and the history stays as it was before them.

    Attributes:
        messages: the history.
    """

    def __init__(self, messages: Iterable[Message] = ()) -> None:
        self.messages = tuple(messages)
        self._overlapped: dict[int, bool] = {}

    @contextmanager
    def branch(self) -> Iterator[list[Message]]:
        """Give a copy of the history to go on from; as it is at the end of the block, it becomes the history."""
        messages = list(self.messages)
        for other in self._overlapped:
            self._overlapped[other] = True
        self._overlapped[id(messages)] = bool(self._overlapped)
        try:
            yield messages
        finally:
            if not self._overlapped.pop(id(messages)):
                self.messages = tuple(messages)
