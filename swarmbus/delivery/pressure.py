"""Who waits for whom when an inbox is full."""

from __future__ import annotations

from typing import TYPE_CHECKING

from swarmbus.table import CLIENT

if TYPE_CHECKING:
    from swarmbus.reach import Reach


def back_pressure(reach: Reach) -> dict[str, frozenset[str]]:
    """Return, for each publisher, the roles it waits for when they are full: those that nothing leads from back to it.

    Waiting only downstream can't deadlock: who waits is never upstream of those it waits for.
    """
    onward: dict[str, set[str]] = {"client": set()}
    for handler in reach.handlers:
        onward.setdefault(handler.role, set()).update(step.handler.role for step in reach.steps(handler))
    for entry in reach.entries:
        if CLIENT in entry.publishers:
            onward["client"].update(step.handler.role for step in reach.receivers(entry) if step.handler.kind == "on")
    below = {role: _below(role, onward) for role in onward}
    return {role: frozenset(other for other in below[role] if role not in below.get(other, ())) for role in onward}


def _below(role: str, onward: dict[str, set[str]]) -> set[str]:
    seen: set[str] = set()
    queue = [role]
    while queue:
        fresh = onward.get(queue.pop(), set()) - seen
        seen |= fresh
        queue += fresh
    return seen
