"""What a run tells about itself, made by hand, and a clock to go with it."""

from __future__ import annotations

from swarmbus.events import Event
from swarmbus.records import Envelope
from swarmbus.results import Lifecycle


class StepDone(Event):
    pass


class Clock:
    """A clock that moves by hand."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def lifecycle(
    kind: str, role: str | None = "executor", item: int | None = None, detail: str = "", value: str = ""
) -> Lifecycle:
    return Lifecycle(kind, "run", 0.0, role, "work" if role else None, 1, item, detail, value)


def envelope(source: str = "executor") -> Envelope:
    return Envelope(1, StepDone(), source, 0, 0.0, 1)
