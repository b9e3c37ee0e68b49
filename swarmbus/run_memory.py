"""What roles with `history = "run"` remember of a run: kept with each commit, and rebuilt from the run's records."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from swarmbus.calls import CallRecord
from swarmbus.messages import messages_from_data, messages_to_data
from swarmbus.records import Called, Committed

if TYPE_CHECKING:
    from collections.abc import Iterable

    from swarmbus.delivery.calllog import AttemptCalls
    from swarmbus.delivery.topology import Topology
    from swarmbus.messages import Message
    from swarmbus.records import DeliveryKey, Record

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

    def rebuild(self, records: Iterable[Record], topology: Topology) -> None:
        """Take what the roles remember from a run's records."""
        noted: dict[DeliveryKey, Any] = {}
        for record in records:
            if isinstance(record, Called) and record.call.kind == "value" and record.call.key == _KEY:
                noted[record.delivery] = record.call.value
            elif isinstance(record, Committed) and record.delivery in noted:
                change = noted.pop(record.delivery)
                role = topology.handlers[record.delivery[1]].role
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
