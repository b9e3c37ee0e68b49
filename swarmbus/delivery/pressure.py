"""Who waits for whom when an inbox is full."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from swarmbus.delivery.topology import Topology


def back_pressure(topology: Topology) -> dict[str, frozenset[str]]:
    """Return, for each publisher, the roles it waits for when they are full: those that nothing leads from back to it.

    Waiting only downstream can't deadlock: who waits is never upstream of those it waits for.
    """
    onward: dict[str, set[str]] = {"client": set()}
    for handler in topology.handlers:
        onward.setdefault(handler.role, set())
    for source, target in topology.edges():
        onward.setdefault(source, set()).add(target)
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
