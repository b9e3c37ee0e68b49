"""What is known of a run from what `run.events()` tells: counts by role, and what is under way for how long."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from swarmbus.events import event_name
from swarmbus.messages import Restarted
from swarmbus.records import Envelope
from swarmbus.results import Lifecycle

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

ASKS = "asks "
QUIET = 10.0
"""Seconds in which the same further try of a model call, which many may make at a time, is told once."""


@dataclass(slots=True)
class RoleCount:
    """What one role has done in a run.

    Attributes:
        handled: deliveries that were handled.
        again: attempts that failed and are made again.
        failed: deliveries that failed for good.
        calls: replies of its model; those that come from a record are left out.
        tokens: what these cost.
        now: what it last said it was doing.
    """

    handled: int = 0
    again: int = 0
    failed: int = 0
    calls: int = 0
    tokens: int = 0
    now: str = ""

    def __str__(self) -> str:
        told = [f"{self.handled} handled", f"{self.again} again" * bool(self.again)]
        told += [f"{self.failed} failed" * bool(self.failed)]
        told += [f"{self.calls} model call{'s' * (self.calls > 1)}, {self.tokens} tokens" * bool(self.calls)]
        return ", ".join(part for part in told if part)


@dataclass(slots=True)
class Doing:
    """A model call or a tool that is under way: what it is, since when in the clock's seconds, and which try it is."""

    what: str
    since: float
    tries: int = 1


@dataclass(slots=True)
class Work:
    """An attempt that is under way: whose, since when in the clock's seconds, and what it does just now.

    Work beside the roles has its kind in the role's place, a name of its own, and no handler.
    """

    role: str
    handler: str
    since: float
    doing: list[Doing] = field(default_factory=list)
    name: str = ""

    def begin(self, what: str, at: float) -> None:
        """Note the beginning of a model call or a tool."""
        self.doing.append(Doing(what, at))

    def end(self, what: str) -> None:
        """Note the end of a model call or a tool; of several that are alike the first counts as over."""
        ended = next((doing for doing in self.doing if doing.what.startswith(what)), None)
        if ended is not None:
            self.doing.remove(ended)

    def try_again(self, tries: int) -> None:
        """Note that a model is asked once more."""
        for doing in self.doing:
            if doing.what.startswith(ASKS) and doing.tries == tries - 1:
                doing.tries = tries
                return


class Board:
    """Counts what the items of `run.events()` tell.

    Args:
        clock: seconds, from any start.

    Attributes:
        roles: what each role has done, and each kind of work beside them, in the order in which they were first heard
            of.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.roles: dict[str, RoleCount] = {}
        self._clock = clock
        self._seen: set[tuple[str, str]] = set()
        self._work: dict[str, Work] = {}
        self._again: dict[str, float] = {}

    def note(self, item: Envelope | Lifecycle | Any) -> Iterator[str]:
        """Take an item into account, and yield the lines that should be told at once."""
        if isinstance(item, Envelope):
            yield from self._note_event(item)
        elif isinstance(item, Lifecycle):
            yield from self._note_lifecycle(item)
        elif getattr(item, "role", ""):
            yield from self._note_loop(item)

    def note_work(self, kind: str, name: str, status: str | None, *, failed: bool = False) -> Iterator[str]:
        """Take into account how work outside the roles is getting on, such as the reading of documents.

        Args:
            kind: what is counted together.
            name: the one thing that is worked on.
            status: how it ended, or None where it begins.
            failed: whether it ended badly.
        """
        count = self._role(kind)
        if status is None:
            self._work[f"{kind} {name}"] = Work(kind, "", self._clock(), name=name)
            return
        self._work.pop(f"{kind} {name}", None)
        count.failed += failed
        count.handled += not failed
        yield f"{name}: {status}"

    def under_way(self) -> str:
        """Say who is at work, what they do and for how long; nothing where nobody is."""
        handlers: dict[str, list[Work]] = {}
        for work in list(self._work.values()):  # asked for by another thread, while more are added
            handlers.setdefault(f"{work.role}.{work.handler}".rstrip("."), []).append(work)
        told = []
        for handler, works in handlers.items():
            longest = min(works, key=lambda work: work.since)
            doing = self._said(doing for work in works for doing in list(work.doing))
            name = f": {longest.name}" if longest.name else ""
            told.append(", ".join([f"{handler} ({len(works)}) {self._for(longest.since)}{name}", *doing]))
        return "; ".join(told)

    def now(self, role: str) -> str:
        """Say what a role is doing, and for how long."""
        works = [work for work in list(self._work.values()) if work.role == role]
        said = self.roles[role].now
        if not works:
            return said
        doing = self._said(doing for work in works for doing in list(work.doing))
        longest = min(works, key=lambda work: work.since)
        return ", ".join(doing) or f"{longest.name or said or 'works'} {self._for(longest.since)}"

    def _said(self, doing: Iterable[Doing]) -> list[str]:
        """Say what is being done, what is alike once."""
        alike: dict[str, list[Doing]] = {}
        for one in doing:
            alike.setdefault(one.what, []).append(one)
        said = []
        for what, ones in alike.items():
            number = f" ({len(ones)})" if len(ones) > 1 else ""
            tries = max(one.tries for one in ones)
            again = f", try {tries}" if tries > 1 else ""
            said.append(f"{what}{number} {self._for(min(one.since for one in ones))}{again}")
        return said

    def _for(self, since: float) -> str:
        return f"for {self._clock() - since:.0f} s"

    def _unless_told(self, line: str) -> Iterator[str]:
        """Yield a line, unless it was told a moment ago."""
        now = self._clock()
        self._again = {told: at for told, at in self._again.items() if now - at < QUIET}
        if line not in self._again:
            self._again[line] = now
            yield line

    def _role(self, name: str) -> RoleCount:
        return self.roles.setdefault(name, RoleCount())

    def _note_event(self, envelope: Envelope) -> Iterator[str]:
        kind = (envelope.source, event_name(envelope.event))
        if kind not in self._seen:  # one line for each kind; the rest is counted
            self._seen.add(kind)
            yield f"{envelope.source}: {kind[1]}"

    def _note_lifecycle(self, item: Lifecycle) -> Iterator[str]:
        if item.role is None:
            return  # the end of the run, which whoever waits for it tells
        role = self._role(item.role)
        place = _place(item)
        if item.type == "delivery_started":
            self._work[_delivery(item)] = Work(item.role, item.handler or "", self._clock())
        elif item.type != "progress":
            self._work.pop(_delivery(item), None)
        match item.type:
            case "delivery_committed":
                role.handled += 1
                role.now = ""
            case "delivery_retried":
                role.again += 1
                yield f"{place}: {item.detail}; trying again"
            case "delivery_failed":
                role.failed += 1
                yield f"{place}: {item.detail}"
            case "question_asked":
                role.now = "waits for a person"
                yield f"{place}: waits for a person"
            case "progress":
                role.now = item.detail
                yield f"{item.role}: {item.detail}"
            case _:
                pass

    def _note_loop(self, item: Any) -> Iterator[str]:
        role = self._role(item.role)
        work = self._work.get(item.delivery) or Work(item.role, "", self._clock())
        match item.type:
            case "message_start":
                work.begin(f"{ASKS}{item.model}", self._clock())
            case "message_update" if isinstance(item.delta, Restarted):
                work.try_again(item.delta.tries)
                yield from self._unless_told(f"{item.role}: asks again, try {item.delta.tries}: {item.delta.reason}")
            case "tool_execution_start":
                work.begin(f"runs {item.call.name}", self._clock())
            case "tool_execution_end":
                work.end(f"runs {item.call.name}")
            case "message_end":
                work.end(ASKS)
                if not item.replayed and item.message is not None:
                    role.calls += 1
                    role.tokens += item.usage.total_tokens
            case _:
                pass


def _delivery(item: Lifecycle) -> str:
    """Return the delivery as loop events name it."""
    number = f"#{item.item}" if item.item is not None else ""
    return f"{item.run_id}/{item.envelope}>{item.role}.{item.handler}{number}"


def _place(item: Lifecycle) -> str:
    """Name the delivery that something happened to, with its item where it has one."""
    value = f" ({item.value})" if item.value else ""
    return f"{item.role}.{item.handler}" + (f"[{item.item}]{value}" if item.item is not None else "")
