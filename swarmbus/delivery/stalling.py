"""Says why nothing goes on any more: what a join or the run lacks, and who was to publish it."""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING, Any

from swarmbus.events import event_name
from swarmbus.text import brief

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from swarmbus.delivery.book import Book
    from swarmbus.delivery.deliveries import Delivery
    from swarmbus.delivery.joins import Join, Lack
    from swarmbus.reach import Reach
    from swarmbus.wiring import HandlerWiring

MOST = 10
"""How much of what is lacking is named one by one."""


def join_lacks(join: Join, reach: Reach) -> str:
    """Say what a join has and lacks."""
    wiring, opener = join.handler.wiring, join.opener
    names = " or ".join(map(event_name, wiring.accepts))
    needed = f" of {join.quorum}" if join.quorum is not None else ""
    lacking = join.lacking()
    lacks = f" and lacks {_listed(lacking)}" if lacking else ""
    sources = _sources(reach, lambda handler: any(s.contributes and s.handler is wiring for s in reach.steps(handler)))
    return (
        f"join {wiring.qualified} ({wiring.where}) for {event_name(opener.event)} {opener.number} has"
        f" {join.count}{needed} {names}{lacks}; {names} was to come from {sources}."
        ' Publish it for each of them, or say partial="proceed" to go on without'
    )


def _listed(lacking: Sequence[Lack]) -> str:
    groups = groupby(lacking[:MOST], lambda lack: f" of {lack.source}" if lack.source else "")
    listed = [f"{', '.join(map(str, lacks))}{source}" for source, lacks in groups]
    return ", ".join(listed) + (f" and {len(lacking) - MOST} more" if len(lacking) > MOST else "")


def run_lacks(book: Book) -> str:
    """Say which result is lacking, and what else may have gone wrong."""
    assert book.topology.result is not None
    result, reach = event_name(book.topology.result), book.topology.reach
    unheard = f"; nobody took {', '.join(dict.fromkeys(book.unheard))}" if book.unheard else ""
    troubles = "".join(f"; {warning}" for warning in book.warnings[-5:])
    sources = _sources(reach, reach.sends_result)
    return (
        f"nothing is left to do, and no {result} was published; it was to come from {sources}"
        f"{unheard}{_last_word(book.silent)}{troubles}"
    )


def _last_word(delivery: Delivery | None) -> str:
    """Name the delivery whose handler ended last without publishing anything."""
    if delivery is None:
        return ""
    wiring, envelope = delivery.handler.wiring, delivery.envelope
    place = f"{event_name(envelope.event)} {envelope.number}"
    return f"; {wiring.qualified} ({wiring.where}), at work on {place}, was the last to publish nothing"


def outside_lacks(book: Book) -> str:
    """Say for whom a run waits that nobody can answer or send to."""
    asking = [f"{delivery.handler.qualified} asks {brief(_asked(delivery))}" for delivery in book.questions.values()]
    if asking:
        waits = f"it waits for a person: {'; '.join(asking[:MOST])}"
        how = "run.answer(question, value)"
    else:
        waits, how = "it waits for an event from outside that could lead to its result", "run.send(event)"
    return f"{waits}. Where nobody holds the run this can't come: open the swarm, live.submit(event), and {how}"


def _asked(delivery: Delivery) -> object:
    asked: Any = delivery.asked
    return asked["question"]


def _sources(reach: Reach, publishes: Callable[[HandlerWiring], bool]) -> str:
    return " or ".join(f"{h.qualified} ({h.where})" for h in reach.handlers if publishes(h)) or "outside"
