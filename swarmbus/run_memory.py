"""What roles with `history = "run"` remember of a run: kept with each commit, and rebuilt from the run's records."""

from __future__ import annotations

from typing import TYPE_CHECKING

from swarmbus.calls import CallRecord
from swarmbus.message_json import messages_from_data, messages_to_data

if TYPE_CHECKING:
    from swarmbus.delivery.calllog import AttemptCalls, Kept
    from swarmbus.messages import Message

_KEY = "history"


class RunMemory:
    """The histories of one run, by role."""

    def __init__(self) -> None:
        self._histories: dict[str, tuple[Message, ...]] = {}

    def of(self, role: str) -> tuple[Message, ...]:
        """Return what a role remembers."""
        return self._histories.get(role, ())

    def keep(self, role: str, history: tuple[Message, ...]) -> None:
        """Take what a role remembers from now on."""
        self._histories[role] = history

    def recall(self, role: str, calls: Kept) -> None:
        """Take what a role remembers from the recorded calls of a delivery that was handled."""
        noted = calls.get(("value", _KEY))
        if noted:
            change = noted[-1].value
            self.keep(role, (*self.of(role)[: change["kept"]], *messages_from_data(change["added"])))


def note(calls: AttemptCalls, before: tuple[Message, ...], after: tuple[Message, ...]) -> None:
    """Have an attempt record how it changes a history: how many messages stay, and those after them."""
    while calls.find("value", _KEY) is not None:
        pass  # what earlier attempts noted and did not commit
    kept = 0
    for old, new in zip(before, after, strict=False):
        if old != new:
            break
        kept += 1
    calls.note(CallRecord("value", _KEY, {"kept": kept, "added": messages_to_data(after[kept:])}, {}))
