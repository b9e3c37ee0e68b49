"""The event table as text, Markdown and JSON, and the one that the code alone gives."""

# mypy: disable-error-code="empty-body"
# The handlers are only read, never run.

from __future__ import annotations

import json
from typing import Any

import pytest
from swarms import mended, research, twelve_faults

from swarmbus import CLIENT, SYSTEM, EventTable, External, HandlerFailed
from swarmbus.cli.table_view import derive, to_json, to_markdown, to_text
from swarmbus.events import Event
from swarmbus.handlers import on
from swarmbus.role import Role
from swarmbus.swarm import Swarm


class Shape(Event):
    pass


class Circle(Shape):
    pass


class Square(Shape):
    pass


def test_text_is_the_table_as_it_stands_in_code() -> None:
    text = to_text(research.swarm.table)
    assert text == (
        "EventTable(\n"
        '    (CLIENT,       QuestionAsked, "planner"),\n'
        '    ("planner",    TaskPlanned,   ("executor", "aggregator")),\n'
        '    ("planner",    PlanRefused,   CLIENT),\n'
        '    ("executor",   StepStarted,   External("dashboard")),\n'
        '    ("executor",   StepDone,      "aggregator"),\n'
        '    ("aggregator", ReportReady,   CLIENT),\n'
        '    (SYSTEM,       HandlerFailed, "auditor"),\n'
        "    result=ReportReady,\n"
        ")\n"
    )
    names = {**vars(research), "EventTable": EventTable, "External": External, "CLIENT": CLIENT, "SYSTEM": SYSTEM}
    assert eval(text, names).rows == research.swarm.table.rows


@pytest.mark.parametrize(
    "table",
    [EventTable(), EventTable((("a", "b"), Circle, ())), EventTable(((), Circle, ("a",)))],
    ids=["empty", "no handler", "tuple of one"],
)
def test_text_can_be_pasted_whatever_the_rows(table: EventTable[Any]) -> None:
    pasted = eval(to_text(table), {"EventTable": EventTable, "Circle": Circle})
    assert (pasted.rows, pasted.result) == (table.rows, table.result)


def test_a_broken_table_is_written_as_it_is() -> None:
    table: EventTable[Event] = EventTable(("a", "circle", 7), ('say "hi"', int, None))
    assert (
        to_text(table) == 'EventTable(\n    ("a",          \'circle\', 7),\n    ("say \\"hi\\"", int,      None),\n)\n'
    )
    assert json.loads(to_json(table))["rows"][0] == {
        "publishers": ["a"],
        "event": "'circle'",
        "name": None,
        "version": None,
        "handlers": ["7"],
    }


def test_markdown_is_a_table_whose_cells_stay_apart() -> None:
    table: EventTable[Circle] = EventTable(("a|b_c", Circle, (CLIENT, External("*x*\ny"))), result=Circle)
    assert to_markdown(table) == (
        "| published by | event | handled by |\n"
        "| --- | --- | --- |\n"
        "| a\\|b\\_c | Circle (result) | client, external:\\*x\\* y |\n"
    )


def test_json_names_events_as_code_and_as_envelopes_do() -> None:
    document = json.loads(to_json(research.swarm.table))
    assert document["result"] == "ReportReady"
    assert document["rows"][3] == {
        "publishers": ["executor"],
        "event": "StepStarted",
        "name": "step_started",
        "version": 1,
        "handlers": ["external:dashboard"],
    }


@pytest.mark.parametrize("swarm", [research.swarm, mended.swarm], ids=["research", "mended"])
def test_the_code_of_a_sound_swarm_gives_its_table(swarm: Swarm[Any]) -> None:
    assert to_text(derive(swarm.wiring, swarm.table)) == to_text(swarm.table)


def test_without_a_table_what_nobody_publishes_or_handles_is_the_clients() -> None:
    derived = derive(research.swarm.wiring, EventTable())
    assert derived.rows == (
        (CLIENT, research.QuestionAsked, "planner"),
        ("planner", research.TaskPlanned, ("executor", "aggregator")),
        ("planner", research.PlanRefused, CLIENT),
        ("executor", research.StepDone, "aggregator"),
        ("executor", research.StepStarted, CLIENT),
        ("aggregator", research.ReportReady, CLIENT),
        (SYSTEM, HandlerFailed, "auditor"),
    )
    again = Swarm(*research.swarm.roles, table=derived)
    assert [finding.code for finding in again.check()] == []


def test_the_derived_table_of_a_broken_swarm_mends_what_a_table_can() -> None:
    swarm = twelve_faults.swarm
    derived = Swarm(*swarm.roles, table=derive(swarm.wiring, swarm.table))
    left = {finding.code for finding in derived.check()}
    assert not left & {"SB101", "SB102", "SB103", "SB104", "SB105", "SB106", "SB107"}


class Draughtsman(Role):
    @on
    async def draw(self, event: Circle) -> Square: ...


class Framer(Role):
    @on
    async def frame(self, event: Shape) -> None: ...


def test_a_class_that_only_stands_for_its_children_gets_no_row() -> None:
    table: EventTable[Event] = EventTable(
        (CLIENT, Circle, ("draughtsman", "framer")), ("draughtsman", Square, "framer")
    )
    swarm = Swarm(Draughtsman(), Framer(), table=table)
    assert derive(swarm.wiring, table).rows == table.rows
