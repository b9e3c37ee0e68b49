"""What a rebuild test needs of a swarm: how it is made, how its run starts, and what is paid for on the way."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from swarmbus import Event, Swarm
    from swarmbus.delivery.journal import Journal

DIED = 17
"""Exit status of a process that died where it was told to."""


class Effects:
    """A file to which everything that is done or paid for outside the swarm adds a line."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def add(self, kind: str, name: str) -> None:
        """Add a line that a death of the process does not lose."""
        file = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        os.write(file, f"{kind} {name}\n".encode())
        os.close(file)


@dataclass(frozen=True)
class Story:
    """A run that can be told again in another process.

    Attributes:
        make: makes the swarm, from a journal and the file for its effects.
        answer: is what a person says to a question.
    """

    make: Callable[[Journal, Effects], Swarm[Any]]
    opening: Callable[[], Event]
    answer: Callable[[str], Any]
