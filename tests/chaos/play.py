"""Plays a round: opens its swarm, starts its runs, disturbs them, and keeps what happened for the model to judge."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from importlib import import_module
from typing import Any

import anyio
from anyio.abc import TaskGroup
from ledger_model.program import CLIENT
from ledger_model.translate import Told, event_of, table_of

from chaos.clock import VirtualClock, all_tasks_wait
from chaos.draw import Reader, Round
from chaos.roles import Cast, Exit
from chaos.story import RUN, Note, Reading, Story
from support.watchdog import TaskWatch
from swarmbus import Budget, Lifecycle, LiveSwarm, Swarm, SwarmbusError
from swarmbus.delivery.transports.memory import MemoryTransport
from swarmbus.errors import QuestionError, RunEnded, SubmitError

PATIENCE = 30.0
"""Seconds of real time that a round may take."""
MOST_NUDGES = 20
"""How often nothing may be found to go on with before it is a hang; there may be a callback on its way."""


class Hang(Exception):
    """Nothing can go on any more, and something has not come to its end."""


def play(round_: Round, backend: str) -> list[Story]:
    """Play a round to its end and return its runs."""
    if backend == "trio":  # whose order of tasks is random otherwise, so that a seed would bring something else
        trio_run: Any = import_module("trio._core._run")
        trio_run._ALLOW_DETERMINISTIC_SCHEDULING = True
        trio_run._r.seed(round_.seed)
    return anyio.run(Play(round_, backend).main, backend=backend)


class Play:
    """One round under way."""

    def __init__(self, round_: Round, backend: str) -> None:
        self.round = round_
        self.backend = backend
        self.clock = VirtualClock()
        self.stories = {plan.tag: Story(round_, plan, self.clock.stamp) for plan in round_.plans}
        self.cast = Cast(round_, self.stories, self.clock)
        self.swarm = Swarm(
            *self.cast.roles(),
            table=table_of(round_.program),
            clock=self.clock,
            budget=Budget(hops=round_.program.max_hops),
            transport=self._transport,
            deps=self._deps if round_.deps is not None else None,
        )
        if any(manner.threads for manner in round_.manners.values()):
            self.swarm.middleware.append(self.cast.around)
        self.unattended = len(self.stories)
        self.all_over = anyio.Event()
        self.nudged: set[str] = set()

    def _transport(self, stations: list[Any]) -> MemoryTransport:
        return MemoryTransport(replace(one, limit=self.round.manners[one.role].limit) for one in stations)

    @asynccontextmanager
    async def _deps(self, opening: Any) -> AsyncIterator[Story]:
        story = self.stories[opening.serial // RUN]
        await self.clock.sleep(self.round.deps or 0.0)
        story.opened += 1
        try:
            yield story
            await self.clock.sleep(self.round.deps or 0.0)
        finally:
            story.closed += 1

    async def main(self) -> list[Story]:
        """Play it all; faults of the round as a whole are noted in its first run."""
        watch = TaskWatch()
        first = self.stories[0]
        try:
            with anyio.fail_after(PATIENCE):
                async with anyio.create_task_group() as group:
                    group.start_soon(self._keep_time, group)
                    try:
                        async with self.swarm.open(grace=self.round.grace) as live:
                            for story in self.stories.values():
                                group.start_soon(self._attend, live, story)
                            await self._until_left()
                    except Exit:
                        pass  # the handler that raised it has told the stories
                    await self.all_over.wait()
                    group.cancel_scope.cancel()
        except* (Hang, TimeoutError) as hangs:
            first.faults.append(f"hang: {hangs.exceptions[0]!r} at {self.clock.stamp()}: {self._going_on()}")
        finally:
            self.cast.let_go(float("inf"))
        if not first.faults:
            first.faults += await watch.left_over()
            first.faults += [f"run {run_id} is still held" for run_id in live.bus.runs]
        return list(self.stories.values())

    async def _until_left(self) -> None:
        if self.round.leave is None:
            await self.all_over.wait()
        else:
            with anyio.CancelScope() as scope:
                async with anyio.create_task_group() as group:
                    group.start_soon(self._cancel_after_all, scope)
                    await self.clock.sleep(self.round.leave)
                    scope.cancel()

    async def _cancel_after_all(self, scope: anyio.CancelScope) -> None:
        await self.all_over.wait()
        scope.cancel()

    # --- time

    async def _keep_time(self, group: TaskGroup) -> None:
        cast, clock = self.cast, self.clock
        vain = 0
        while True:
            await all_tasks_wait(self.backend)
            if cast.moving:
                await anyio.sleep(0.0002)
                continue
            gate = min((flight.until for flight in cast.waiting if flight.until is not None), default=float("inf"))
            moment = min(gate, clock.next_alarm)
            if moment == float("inf"):
                vain = 0 if self._nudge(group) else vain + 1
                await anyio.sleep(0.001 * vain)
                if vain > MOST_NUDGES:
                    raise Hang(self._going_on())
                continue
            vain = 0
            clock.move_to(moment)
            cast.let_go(moment)

    def _nudge(self, group: TaskGroup) -> bool:
        """Where nothing happens by itself, answer who was not answered, and cancel what waits for something else."""
        for story in self._going():
            for question in story.run.questions:
                if (key := f"{story.id} {question}") not in self.nudged:
                    self.nudged.add(key)
                    group.start_soon(self._answer, story, question)
                    return True
            if story.run.status == "waiting" and story.id not in self.nudged:
                self.nudged.add(story.id)
                group.start_soon(self._cancel, story, 0.0)
                return True
        return False

    def _going(self) -> list[Story]:
        return [story for story in self.stories.values() if story.run is not None]

    def _going_on(self) -> str:
        """Say what goes on, for a hang."""
        return (
            "; ".join(
                f"{story.id} is {story.run.status}, under way {story.run.under_way}, open {story.run.questions}"
                for story in self._going()
            )
            or "all runs are over"
        )

    # --- one run

    async def _attend(self, live: LiveSwarm[Any], story: Story) -> None:
        try:
            await self.clock.sleep(story.plan.start)
            await self._run(live, story)
        finally:
            self.unattended -= 1
            if not self.unattended:
                self.all_over.set()

    async def _run(self, live: LiveSwarm[Any], story: Story) -> None:
        plan = story.plan
        fact = story.fact(story.random("start"), self.round.program.start, None, "sent")
        given = story if self.round.deps is None else None
        try:
            run = await live.submit(event_of(fact), run_id=story.id, timeout=plan.timeout, deps=given)
        except SubmitError:
            story.refused = True
            return
        story.run = run
        watched = run.events()
        async with anyio.create_task_group() as group:
            group.start_soon(self._watch, story, watched, group)
            for reader in plan.readers:
                group.start_soon(self._read, story, reader)
            if plan.twice:
                again = await live.submit(event_of(fact), run_id=story.id)
                if again is not run:
                    story.faults.append("the same id brought another run")
            with anyio.CancelScope() as scope:
                async with anyio.create_task_group() as others:
                    if plan.cancel is not None:
                        others.start_soon(self._cancel, story, plan.cancel)
                    for number, after in enumerate(plan.sends):
                        others.start_soon(self._send, story, number, after)
                    await self._await_result(story)
                    scope.cancel()
        story.run = None

    async def _await_result(self, story: Story) -> None:
        try:
            result = await story.run.result()
        except RunEnded as error:
            story.ended = (type(error).__name__, error.result, error)
        else:
            story.ended = ("done", result, None)
        story.note("result", value=story.run.status)

    async def _watch(self, story: Story, watched: Any, group: TaskGroup) -> None:
        """Keep all that the run shows, and answer its questions."""
        asked = 0
        async for item in watched:
            story.stream.append(item)
            if isinstance(item, Lifecycle) and item.type == "question_asked":
                asked += 1
                random = story.random(f"answer {asked}")
                if random.random() >= story.plan.mood.deaf:
                    group.start_soon(self._answer_later, story, random.uniform(0.001, 2))

    async def _answer_later(self, story: Story, after: float) -> None:
        with anyio.CancelScope() as scope:
            async with anyio.create_task_group() as group:
                group.start_soon(self._leave_with, story, scope)
                await self.clock.sleep(after)
                questions = list(story.run.questions) if story.run is not None else []
                if questions:
                    await self._answer(story, questions[0])
                scope.cancel()

    async def _leave_with(self, story: Story, scope: anyio.CancelScope) -> None:
        """Leave once the run has come to its end."""
        with suppress(RunEnded):
            await story.run.result()
        scope.cancel()

    async def _answer(self, story: Story, question: str) -> None:
        with suppress(QuestionError):
            await story.run.answer(question, "perhaps")
            story.faults.append(f"{question} took an answer of another type")
        at = story.now()
        try:
            await story.run.answer(question, story.plan.tag)
        except (QuestionError, RunEnded):
            return
        story.notes.append(Note(at, "answer", None, question))
        with suppress(QuestionError, RunEnded):
            await story.run.answer(question, story.plan.tag)
            story.faults.append(f"{question} was answered twice")

    async def _cancel(self, story: Story, after: float) -> None:
        if after:
            await self.clock.sleep(after)
        story.note("cancel")
        await story.run.cancel("chaos")

    async def _send(self, story: Story, number: int, after: float) -> None:
        """Send a further event, into the scope of one that left the swarm where there is one."""
        await self.clock.sleep(after)
        program, random = self.round.program, story.random(f"send {number}")
        left = [
            item.number
            for item in story.stream
            if isinstance(getattr(item, "event", None), Told)
            and CLIENT in program.receivers(item.source, type(item.event).__name__)
        ]
        cause = random.choice(left) if left and random.random() < 0.7 else None
        fact = story.fact(random, random.choice((program.start, *program.sends)), None, "sent")
        try:
            await story.run.send(event_of(fact), cause=cause)
        except RunEnded:
            story.note("too late", value=fact)
        except SwarmbusError as error:
            story.faults.append(f"send was refused: {error!r}")

    async def _read(self, story: Story, reader: Reader) -> None:
        if reader.start:
            await self.clock.sleep(reader.start)
        reading = Reading()
        story.readings.append(reading)
        async for item in story.run.events():
            reading.items.append(item)
            if len(reading.items) == reader.leave:
                reading.left = True
                return
            await self.clock.sleep(reader.pace)
