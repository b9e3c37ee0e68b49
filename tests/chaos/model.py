"""Judges a run: follows it, then compares how it ended with how it must have ended."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from typing import Any

from ledger_model.tree import Map

from chaos.follow import EPSILON, Astray, Followed
from chaos.story import Story, told

STATUS = {
    "done": "done",
    "RunFailed": "failed",
    "RunStalled": "stalled",
    "RunTimedOut": "timed_out",
    "RunCancelled": "cancelled",
    "RunStopped": "stopped",
    "LimitReached": "limit",
}
FROM_OUTSIDE = ("timed_out", "stopped")
"""Ends of which a run shows when they came only by showing nothing more."""
BESIDE = {
    "cut": "cut when the run ended: ",
    "thread": "was cut off in a thread, which can't be stopped and was abandoned",
    "stubborn": "did not stop when told, and was left to itself",
    "deps": "the run's dependencies were not closed within",
    "blocked": "blocked the event loop",
}
"""Warnings that are not the ledger's, by a part of their text."""


class Judged:
    """One run and what is wrong with it.

    Attributes:
        faults: what is wrong; features: what the run had.
    """

    def __init__(self, story: Story, epoch: float) -> None:
        self.story = story
        self.epoch = epoch
        self.run = Followed(story, epoch)
        self.faults = self.run.faults
        self.features = self.run.features
        if story.refused:
            self.features.add("refused after the end of the swarm")
        elif story.ended is None:
            self.run.fault("the run did not end")
        else:
            try:
                self._follow(story.ended[1].ended - epoch)
            except Astray as astray:
                self.run.fault(str(astray))
            if self.run.tied and self.faults:
                self.features.add("left open by two deadlines at one moment")
                self.faults[:] = story.faults
        self.features |= self.run.naive.notes

    def _follow(self, ended: float) -> None:
        run, story = self.run, self.story
        shown: list[tuple[float, Callable[[Any], None], Any]]
        shown = [(item.time - self.epoch, run.see, item) for item in story.stream[:-1]]
        if [at for at, _, _ in shown] != sorted(at for at, _, _ in shown):
            run.fault("what was seen is not in the order of its time")
        run.submitted()
        shown += [(note.at, run.hear, note) for note in story.notes]
        kept = min(ended, story.broken)  # nobody keeps time any longer
        for at, take, what in sorted(shown, key=lambda one: one[0]):
            run.expire(min(at, kept))
            take(what)
            run.note_cancelled()
            run.last = at
            if len(run.faults) > len(story.faults):
                return  # what follows from a fault is no news
        run.expire(kept)
        self._end(ended)
        self._readings()
        run.same("times the dependencies were closed", story.opened, story.closed)
        if story.opened > 1:
            run.fault(f"the dependencies were opened {story.opened} times")

    def _end(self, ended: float) -> None:
        assert self.story.ended is not None
        run, naive = self.run, self.run.naive
        name, result, error = self.story.ended
        status = STATUS[name]
        self.features.add(f"outcome {status}")
        run.same("last item", f"run_{status}", self.story.stream[-1].type)
        cut = sum(1 for one in naive.deliveries() if one.ident in run.under_way)
        loose = sum(len(one.unopened) if isinstance(one, Map) else 1 for one in naive.living())
        if naive.outcome is None:
            self._end_from_outside(status, ended)
        elif not (naive.finished or self._is_left) and ended - run.last > self.story.round.grace + EPSILON:
            run.fault(f"the rest was cut {ended - run.last} s after the last that happened")
        run.note_cancelled()
        run.same("status", naive.outcome, status)
        run.same("failures", naive.dead, [told(one.message) for one in result.failures])
        if status == "done":
            run.same("result", run.result and run.result.serial, getattr(result.output, "serial", None))
        if status == "failed":
            self._cause(error)
        self._came_late(status)
        self._cancellations(status)
        self._swallowed()
        self._warnings(result.warnings, status, cut, loose)

    @property
    def _is_left(self) -> bool:
        """Whether the swarm may have ended before its runs."""
        return self.story.broken < math.inf or self.story.round.leave is not None

    def _end_from_outside(self, status: str, ended: float) -> None:
        run, plan = self.run, self.story.plan
        allowed = {"stopped": self._is_left, "timed_out": plan.timeout is not None}
        if not allowed.get(status, False):
            run.fault(f"ended as {status}, while {run.naive.living()} goes on, and nobody ended it")
            return
        took = ended - run.times[run.origins[0]]
        if status == "timed_out" and took < (plan.timeout or 0) - EPSILON:
            run.fault(f"timed out after {took} of {plan.timeout} s")
        run.naive.end(status)

    def _cause(self, error: BaseException | None) -> None:
        """Compare what ended a run that failed; its cause is the error itself, without those of its menders."""
        run, expected = self.run, self.run.naive.cause or ""
        run.same("what ended it", expected, told(str(error)))
        cause = told(_words(error.__cause__ if error is not None else None))
        if not cause or not expected.startswith(cause):
            run.fault(f"its cause is {cause!r}, and should be that of {expected!r}")

    def _came_late(self, status: str) -> None:
        """Nothing was refused, or without effect, that came before the end."""
        seen = max((item.time - self.epoch for item in self.story.stream[:-1]), default=0.0)
        for note in self.run.late:
            if note.at < seen or status not in FROM_OUTSIDE:
                self.run.fault(f"{note} had no effect, though the run went on")

    def _cancellations(self, status: str) -> None:
        """Compare what was seen to be cancelled; of a run that is only stopped, nothing is."""
        run = self.run
        if status == "stopped":
            return
        wrong = [ident for ident in run.cancelled if ident not in run.doomed and ident[:2] not in run.doomed]
        unseen = [ident for ident in run.doomed if len(ident) > 2 and ident not in run.cancelled]
        if wrong or unseen:
            run.fault(f"{wrong} were cancelled for nothing, and {unseen} were not seen to be cancelled")
        if run.naive.finished and run.started:
            run.fault(f"{run.started} were started, and did not come to an end")

    def _swallowed(self) -> None:
        """Each error of a delivery that still counted was told; of one in a thread the loop may hear too late."""
        run = self.run
        told_nobody = {
            ident: text
            for ident, text in run.raised.items()
            if not run.in_thread(ident) or (run.naive.finished and ident not in run.doomed)
        }
        if told_nobody:
            run.fault(f"was never told of {told_nobody}")

    def _warnings(self, warnings: tuple[str, ...], status: str, cut: int, loose: int) -> None:
        run = self.run
        counts = Counter(
            next((kind for kind, part in BESIDE.items() if part in warning), "ledger") for warning in warnings
        )
        run.same("warnings of the ledger", run.naive.warnings, counts["ledger"])
        threads = sum(1 for note in self.story.notes if note.kind == "thread cut")
        if self.story.round.grace:
            run.same("threads reported as abandoned", threads, counts["thread"])
        elif counts["thread"] + counts["stubborn"] < threads:
            run.fault(f"{threads} threads were cut off, and reported: {counts}")
        if status == "done" and self.story.broken == math.inf and not cut <= counts["cut"] <= loose:
            run.fault(f"{counts['cut']} deliveries are named as cut, of {cut} under way and {loose} left")
        features = {"thread": "abandoned threads", "stubborn": "left to itself", "cut": "cut after the result"}
        self.features.update(feature for kind, feature in features.items() if counts[kind])

    def _readings(self) -> None:
        """Each further reader saw what the first one did, from where it began until it left."""
        stream = self.story.stream
        for reading in self.story.readings:
            self.features.add("further readers")
            seen = reading.items
            if len(seen) == 1 and getattr(seen[0], "type", None) == stream[-1].type:
                continue  # it came after the end
            start = next((place for place, item in enumerate(stream) if seen and item is seen[0]), len(stream))
            must = stream[start : start + len(seen)] if reading.left else stream[start:]
            if not seen or list(map(id, must)) != list(map(id, seen)):
                self.run.fault(f"a reader was shown {seen}, and the first one {must}")


def judge(story: Story, epoch: float) -> Judged:
    """Judge a run."""
    return Judged(story, epoch)


def _words(error: BaseException | None) -> str:
    if isinstance(error, BaseExceptionGroup):
        return " ".join(map(_words, error.exceptions))
    return str(error)
