"""Tells of each step when it begins and how it ends, by the document that it is about, from what a run shows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from roles.analysis.events import StepAnalysed
from roles.analysis.roles import AnalysisExecutor
from roles.standard import StepReady, TaskPlanned, first_steps

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


class StepProgress:
    """Knows which step each attempt of the executor is about.

    Args:
        names: what people call steps, by their ids; others are called by their ids.
        tell: is called with the name of a step, with None where it begins and with how it ended, and whether badly.
    """

    def __init__(self, names: Mapping[str, str], tell: Callable[[str, str | None, bool], None]) -> None:
        self._names = names
        self._tell = tell
        self._first: tuple[str, ...] = ()
        self._released: dict[int, str] = {}

    def note(self, item: Any) -> None:
        """Take an item of `run.events()` into account."""
        match getattr(item, "event", None):
            case TaskPlanned() as plan:
                self._first = tuple(step.step_id for step in first_steps(plan))
            case StepReady() as step:
                self._released[item.number] = step.step_id
            case StepAnalysed() as step:
                claims = f"{len(step.claims)} claim{'' if len(step.claims) == 1 else 's'}"
                self._tell(self._name(step.step_id), f"{step.status}, {claims}", step.status == "failed")
            case _ if getattr(item, "role", "") == AnalysisExecutor.name:
                self._note_attempt(item)
            case _:
                pass

    def _note_attempt(self, item: Any) -> None:
        if item.type not in ("delivery_started", "delivery_failed"):
            return
        step = self._released.get(item.envelope) if item.item is None else self._first[item.item]
        if step is not None:
            failed = item.type == "delivery_failed"
            self._tell(self._name(step), "failed" if failed else None, failed)

    def _name(self, step: str) -> str:
        return self._names.get(step, step)
