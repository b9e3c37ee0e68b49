"""What is known of a run: what is counted, which lines are told at once, and what is under way for how long."""

from __future__ import annotations

from typing import Any

import pytest
from swarms import research

from support.jobs import WorkDone, WorkGiven, worker_swarm
from support.progress import Clock, envelope, lifecycle
from swarmbus import Role, RoleContext, on
from swarmbus.board import Board, RoleCount
from swarmbus.events import Event
from swarmbus.messages import Restarted, ToolCall, Usage
from swarmbus.models import ScriptedModel
from swarmbus.results import Lifecycle
from swarmbus.swarm import Swarm
from swarmbus.thinking.loop_events import MessageEnd, MessageStart, MessageUpdate, ToolExecutionEnd, ToolExecutionStart
from swarmbus.thinking.tool_result import ToolResult


def loop(kind: type[Any], **facts: Any) -> Any:
    """A loop event of the delivery that `lifecycle` is about."""
    return kind(run_id="run", role="executor", delivery="run/1>executor.work", turn=1, sequence=1, time=0.0, **facts)


def lines(board: Board, *items: Any) -> list[str]:
    return [line for item in items for line in board.note(item)]


async def items_of(swarm: Swarm[Any], event: Event) -> list[Any]:
    async with swarm.open() as live:
        run = await live.submit(event)
        return [item async for item in run.events()]


def test_each_kind_of_event_is_told_once() -> None:
    assert lines(Board(), envelope(), envelope(), envelope("planner")) == ["executor: step_done", "planner: step_done"]


@pytest.mark.parametrize(
    ("item", "told", "count"),
    [
        (lifecycle("delivery_committed"), [], RoleCount(handled=1)),
        (
            lifecycle("delivery_retried", item=3, detail="OSError: no", value="'a'"),
            ["executor.work[3] ('a'): OSError: no; trying again"],
            RoleCount(again=1),
        ),
        (lifecycle("delivery_failed", detail="OSError: no"), ["executor.work: OSError: no"], RoleCount(failed=1)),
        (lifecycle("question_asked"), ["executor.work: waits for a person"], RoleCount(now="waits for a person")),
        (lifecycle("progress", detail="page 3"), ["executor: page 3"], RoleCount(now="page 3")),
        (lifecycle("delivery_started"), [], RoleCount()),
    ],
    ids=lambda value: value.type if isinstance(value, Lifecycle) else "",
)
def test_what_happens_to_a_delivery_is_counted_and_told(item: Lifecycle, told: list[str], count: RoleCount) -> None:
    board = Board()
    assert lines(board, item) == told
    assert board.roles == {"executor": count}


def test_how_the_run_ended_is_left_to_others() -> None:
    board = Board()
    assert lines(board, lifecycle("run_failed", role=None)) == []
    assert board.roles == {}


async def test_what_a_run_tells_adds_up() -> None:
    board = Board()
    lines(board, *await items_of(research.make(), research.QuestionAsked(question="why?")))
    counts = {role: (count.handled, count.failed, count.calls) for role, count in board.roles.items()}
    assert counts == {"planner": (1, 0, 1), "executor": (3, 0, 4), "aggregator": (1, 0, 1)}
    assert all(count.tokens > 0 for count in board.roles.values())


def test_work_beside_the_roles_is_counted_too() -> None:
    board = Board()
    assert list(board.note_work("documents", "a.pdf", None)) == []
    assert board.now("documents") == "a.pdf for 0 s"
    assert list(board.note_work("documents", "a.pdf", "read")) == ["a.pdf: read"]
    assert list(board.note_work("documents", "b.pdf", "encrypted", failed=True)) == ["b.pdf: encrypted"]
    assert str(board.roles["documents"]) == "1 handled, 1 failed"


# --- what is under way -----------------------------------------------------------------------------------------------

CALL = ToolCall("1", "search")
REPLY = {"message": None, "finish": None, "usage": Usage(), "replayed": False, "error": None}


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def board(clock: Clock) -> Board:
    board = Board(clock)
    lines(board, lifecycle("delivery_started"), lifecycle("delivery_started", item=2))
    clock.now += 5
    return board


def test_a_handler_at_work_is_named_with_its_seconds(board: Board, clock: Clock) -> None:
    assert board.under_way() == "executor.work (2) for 5 s"
    assert board.now("executor") == "works for 5 s"


@pytest.mark.parametrize("end", ["committed", "retried", "failed", "cancelled"])
def test_what_has_ended_is_under_way_no_more(end: str, board: Board) -> None:
    lines(board, lifecycle(f"delivery_{end}"))
    assert board.under_way() == "executor.work (1) for 5 s"
    lines(board, lifecycle(f"delivery_{end}", item=2))
    assert (board.under_way(), board.now("executor")) == ("", "")


def test_work_beside_the_roles_is_under_way_too() -> None:
    clock = Clock()
    board = Board(clock)
    for name in ("a.pdf", "b.pdf"):
        list(board.note_work("documents", name, None))
    clock.now += 3
    assert board.under_way() == "documents (2) for 3 s: a.pdf"
    assert board.now("documents") == "a.pdf for 3 s"
    for name in ("a.pdf", "b.pdf"):
        list(board.note_work("documents", name, "read"))
    assert (board.under_way(), board.now("documents")) == ("", "")


def test_who_waits_for_a_person_is_not_at_work(board: Board) -> None:
    lines(board, lifecycle("question_asked"), lifecycle("question_asked", item=2))
    assert (board.under_way(), board.now("executor")) == ("", "waits for a person")


def test_what_a_role_said_last_is_shown_with_its_seconds(board: Board) -> None:
    lines(board, lifecycle("progress", detail="page 3"))
    assert board.now("executor") == "page 3 for 5 s"


def test_a_model_call_and_a_tool_are_named_with_their_seconds(board: Board, clock: Clock) -> None:
    lines(board, loop(MessageStart, model="m"), loop(MessageStart, model="m"))
    clock.now += 1
    lines(board, loop(ToolExecutionStart, call=CALL))
    assert board.under_way() == "executor.work (2) for 6 s, asks m (2) for 1 s, runs search for 0 s"
    assert board.now("executor") == "asks m (2) for 1 s, runs search for 0 s"
    over = loop(ToolExecutionEnd, call=CALL, result=ToolResult.returned(1), seconds=0.0, replayed=False)
    lines(board, loop(MessageEnd, **REPLY), loop(MessageEnd, **REPLY), over)
    assert board.under_way() == "executor.work (2) for 6 s"


def test_a_model_call_that_is_made_again_is_told_at_once_and_counted(board: Board, clock: Clock) -> None:
    lines(board, loop(MessageStart, model="m"))
    again = [loop(MessageUpdate, delta=Restarted("no sign of life", 0.0, tries)) for tries in (2, 3)]
    assert lines(board, *again) == [
        "executor: asks again, try 2: no sign of life",
        "executor: asks again, try 3: no sign of life",
    ]
    assert lines(board, *again) == []  # as another call says at the same time
    clock.now += 15
    assert board.now("executor") == "asks m for 15 s, try 3"
    assert len(lines(board, *again)) == 2


async def test_a_real_run_is_seen_at_work() -> None:
    class Worker(Role):
        @on
        async def work(self, event: WorkGiven, ctx: RoleContext) -> WorkDone:
            return WorkDone(text=await ctx.ask("?"))

    seen, board = list[str](), Board(Clock())

    def reply(_request: Any) -> str:
        return "!"

    async with worker_swarm(Worker(), model=ScriptedModel([reply])).open() as live:
        run = await live.submit(WorkGiven())
        async for item in run.events():
            list(board.note(item))
            seen.append(board.under_way())
    told = list(dict.fromkeys(seen))
    assert told == ["worker.work (1) for 0 s", "worker.work (1) for 0 s, asks scripted for 0 s", ""]
