"""Every code of the check: what is found, where, and what to do; and that sound swarms have no finding."""

# mypy: disable-error-code="empty-body"
# The handlers are only read, never run.

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

import pytest
from swarms import mended, twelve_faults

import swarmbus
from swarmbus.checks import CODES, check
from swarmbus.events import Event, HandlerFailed
from swarmbus.handlers import Retry, join, on
from swarmbus.results import Finding, Joined
from swarmbus.role import Role
from swarmbus.role_context import RoleContext
from swarmbus.swarm import Swarm
from swarmbus.table import CLIENT, SYSTEM, EventTable, External
from swarmbus.thinking.tools import tool
from swarmbus.wiring import read_role


class Asked(Event):
    text: str


class TaskPlanned(Event):
    goal: str
    steps: tuple[str, ...]


class StepDone(Event):
    step: str


class Summarised(Event):
    text: str


class ReportReady(Event):
    text: str


class Planner(Role):
    @on
    async def plan(self, event: Asked, ctx: RoleContext) -> TaskPlanned: ...


class Executor(Role):
    @on(TaskPlanned, each="steps")
    async def work(self, step: str, ctx: RoleContext) -> StepDone: ...


class Aggregator(Role):
    @join(StepDone, per=TaskPlanned)
    async def write(self, plan: TaskPlanned, steps: Joined[StepDone], ctx: RoleContext) -> ReportReady: ...


ROWS: dict[str, tuple[Any, Any, Any]] = {
    "asked": (CLIENT, Asked, "planner"),
    "planned": ("planner", TaskPlanned, ("executor", "aggregator")),
    "done": ("executor", StepDone, "aggregator"),
    "ready": ("aggregator", ReportReady, CLIENT),
}


def findings(*roles: Role, rows: dict[str, tuple[Any, Any, Any]] | None = None, **changed: Any) -> list[Finding]:
    """Check the standard table with some rows changed (None: left out) against the standard roles or others."""
    result = changed.pop("result", ReportReady)
    kept = {**(ROWS if rows is None else rows), **changed}
    table: EventTable[Any] = EventTable(*(row for row in kept.values() if row is not None), result=result)
    return check([read_role(role) for role in roles or (Planner(), Executor(), Aggregator())], table)


def codes(found: list[Finding]) -> list[str]:
    return [finding.code for finding in found]


def test_a_sound_swarm_has_no_finding() -> None:
    assert findings() == []


def test_every_code_is_documented() -> None:
    assert list(CODES) == sorted(CODES)
    written = "".join(path.read_text(encoding="utf-8") for path in Path(swarmbus.__file__).parent.rglob("*.py"))
    assert set(CODES) == set(re.findall(r'"(SB\d{3})"', written))
    for code in CODES.values():
        assert code.title
        assert code.explanation.endswith(".")
        assert code.severity in ("error", "warning")


def test_a_finding_reads_as_place_code_message_and_remedy() -> None:
    found = Finding("SB102", "error", "told", "planner", "Asked", "a.py:3", "do this")
    assert str(found) == "a.py:3: SB102 error: told\n    do this"
    assert str(Finding("SB110", "warning", "told")) == "SB110 warning: told"


# Table against wiring.


class Listener(Role):
    @on
    async def hear(self, event: Summarised) -> None: ...


class Misnamed(Role):
    name = "executor"

    @on(TaskPlanned, each="steps")
    async def work(self, step: str) -> Summarised: ...


def test_handled_but_not_in_the_table() -> None:
    (found,) = findings(Planner(), Executor(), Aggregator(), Listener())
    assert (found.code, found.role, found.event) == ("SB101", "listener", "Summarised")
    assert found.message.startswith(
        "listener.hear handles Summarised, but no row of the event table gives it to listener"
    )
    assert "no handler publishes Summarised, looking at TaskPlanned (planner.plan at " in found.message
    assert str(found.where).startswith(f"{__file__}:")
    assert found.hint == 'add the row (..., Summarised, "listener"), or drop the handler'


def test_a_handler_of_what_comes_from_beside_the_roles_is_told_who_publishes_it() -> None:
    class Restarter(Role):
        name = "listener"

        @join(StepDone, per=Asked)
        async def write(self, asked: Asked, steps: Joined[StepDone]) -> None: ...

        @on
        async def hear(self, event: HandlerFailed) -> None: ...

        @on
        async def read(self, event: Summarised) -> None: ...

    rows: dict[str, Any] = {
        "done": ("executor", StepDone, ("aggregator", "listener")),
        "mail": (External("mail"), Summarised, CLIENT),
    }
    found = findings(Planner(), Executor(), Aggregator(), Restarter(), **rows)
    assert [(each.code, each.event, each.message.rpartition("; ")[2], each.hint) for each in found] == [
        (
            "SB101",
            event,
            f"it is published by {publisher}",
            f'add the row ({row}, {event}, "listener"), or drop the handler',
        )
        for event, publisher, row in (
            ("Asked", "CLIENT", "..."),
            ("HandlerFailed", "SYSTEM", "SYSTEM"),
            ("Summarised", 'External("mail")', "..."),
        )
    ]


def test_in_the_table_but_not_handled() -> None:
    (found,) = findings(asked=(CLIENT, Asked, ("planner", "executor")))
    assert (found.code, found.role, found.event) == ("SB102", "executor", "Asked")
    assert "row 1 (client -> Asked -> planner, executor) gives Asked to executor" in found.message
    assert "it handles TaskPlanned (executor.work at " in found.message
    assert str(found.where).startswith(f"{__file__}:")


def test_published_but_not_in_the_table_and_the_other_way_round() -> None:
    found = findings(Planner(), Misnamed(), Aggregator())
    assert codes(found) == ["SB103", "SB104"]
    assert found[0].message.startswith("executor.work publishes Summarised, but no row of the event table has executor")
    assert "has executor publish StepDone, but none of its handlers does" in found[1].message
    assert "it publishes Summarised (executor.work at " in found[1].message
    assert f"aggregator.write ({__file__}:" in found[1].message
    assert found[1].hint == "return it from a handler, or publish it early through RoleContext[StepDone]"


def test_an_event_nobody_publishes_names_its_near_match() -> None:
    class StepsDone(Event):
        pass

    class Waiting(Role):
        name = "aggregator"

        @join(StepsDone, per=TaskPlanned)
        async def write(self, plan: TaskPlanned, steps: Joined[StepsDone]) -> ReportReady: ...

    found = findings(Planner(), Executor(), Waiting())
    assert codes(found) == ["SB101", "SB102"]
    assert "did you mean `StepDone`?" in found[0].message
    assert "did you mean `StepsDone`?" in found[1].message


def test_an_unknown_role_names_its_near_match_and_nothing_that_follows_from_it() -> None:
    (found,) = findings(done=("executer", StepDone, "agregator"), asked=(CLIENT, Asked, "planner"))[:1]
    assert (found.code, found.role) == ("SB105", "executer")
    assert "row 3 of the event table names 'executer', which is no role of the swarm (did you mean `executor`?)" in (
        found.message
    )
    assert codes(findings(done=("executer", StepDone, "agregator"))) == ["SB105", "SB105"]


@pytest.mark.parametrize("party", [Aggregator, Aggregator()], ids=["class", "instance"])
def test_a_role_itself_in_a_row_is_no_party(party: Any) -> None:
    for handlers in (("aggregator", party), party):
        (found,) = findings(done=("executor", StepDone, handlers))
        assert (found.code, found.hint) == ("SB105", 'write the name of the role: "aggregator"')
        assert "ggregator" in found.message


@pytest.mark.parametrize(
    ("row", "written", "meant"),
    [
        (("client", Asked, "planner"), "client", "CLIENT"),
        (("CLIENT", Asked, "planner"), "CLIENT", "CLIENT"),
        (("Client", Asked, "planner"), "Client", "CLIENT"),
    ],
    ids=str,
)
def test_the_client_as_a_text_is_told_from_the_client(row: Any, written: str, meant: str) -> None:
    (found,) = findings(asked=row)
    assert found.message == (
        f"row 1 of the event table names {written!r}, which is no role of the swarm (did you mean `{meant}`?)"
    )
    assert found.hint == f"write {meant} without quotes; `from swarmbus import {meant}`"


def test_the_framework_as_a_text_is_told_from_the_framework() -> None:
    class Mending(Planner):
        name = "planner"

        @on
        async def mend(self, event: HandlerFailed) -> TaskPlanned | None: ...

    (found,) = findings(Mending(), Executor(), Aggregator(), failed=("system", HandlerFailed, "planner"))
    assert (found.code, found.hint) == ("SB105", "write SYSTEM without quotes; `from swarmbus import SYSTEM`")


@pytest.mark.parametrize("party", [{"aggregator"}, None, External], ids=str)
def test_what_can_be_no_party_is_a_finding(party: Any) -> None:
    found = [finding for finding in findings(done=("executor", StepDone, party)) if finding.code == "SB105"]
    assert len(found) == 1
    assert found[0].hint is not None
    assert "several in a tuple; programs outside are External(...)" in found[0].hint


def test_duplicate_rows() -> None:
    (found,) = findings(again=(("executor", External("mail")), StepDone, ("aggregator", CLIENT)))
    assert (found.code, found.event) == ("SB106", "StepDone")
    assert "repeats row 3: StepDone from executor to aggregator" in found.message
    (found,) = findings(done=("executor", StepDone, ("aggregator", "aggregator")))
    assert found.code == "SB106"
    assert "names aggregator twice" in found.message


def test_rows_that_differ_are_no_duplicates() -> None:
    assert findings(more=("executor", StepDone, CLIENT)) == []


def test_a_row_about_no_event() -> None:
    found = findings(more=("executor", dict, CLIENT), last=("executor", "StepDone", CLIENT))
    assert codes(found) == ["SB107", "SB107"]
    assert "row 5 of the event table is about dict, which is not an Event" in found[0].message
    assert "row 6 of the event table is about 'StepDone', which is not an Event" in found[1].message


def test_a_result_that_is_no_event() -> None:
    (found,) = findings(result=str)
    assert (found.code, found.event) == ("SB107", "str")


class Untyped(Role):
    name = "executor"

    @on(TaskPlanned, each="steps")
    async def work(self, step: str): ...  # type: ignore[no-untyped-def]


def test_what_an_annotation_leaves_open_is_said_where_it_is_missing() -> None:
    found = findings(Planner(), Untyped(), Aggregator())
    assert codes(found) == ["SB104", "SB108"]
    assert f"and perhaps more in executor.work ({__file__}:" in found[0].message


def test_an_event_whose_name_can_not_be_found_is_reported_once() -> None:
    class Hiding(Role):
        name = "executor"

        @on(TaskPlanned, each="steps")
        async def work(self, step: str) -> StepDone: ...

    Hiding.work.__annotations__["return"] = "Hidden"
    hidden = type("Hidden", (Event,), {})
    rows: dict[str, Any] = {"done": ("executor", hidden, CLIENT)}
    (found,) = findings(
        Planner(), Hiding(), **rows, planned=("planner", TaskPlanned, "executor"), ready=None, result=None
    )
    assert (found.code, found.event) == ("SB109", "Hidden")


def test_two_roles_with_one_name() -> None:
    class Other(Executor):
        name = "executor"

    (found,) = findings(Planner(), Executor(), Other(), Aggregator())
    assert (found.code, found.role) == ("SB110", "executor")
    assert found.message == "2 roles have the name executor: Executor and Other"
    assert str(found.where).startswith(f"{__file__}:")


def test_each_of_two_roles_with_one_name_is_checked() -> None:
    class Other(Listener):
        name = "executor"

    assert codes(findings(Planner(), Executor(), Other(), Aggregator())) == ["SB101", "SB110"]


def test_two_events_with_one_name() -> None:
    class Twin(Event, name="step_done"):
        pass

    (found,) = findings(more=(CLIENT, Twin, External("mail")))
    assert (found.code, found.event) == ("SB111", "Twin")
    assert "both have the name step_done" in found.message


def test_two_handlers_for_one_event() -> None:
    class Torn(Planner):
        name = "planner"

        @on
        async def again(self, event: Asked) -> TaskPlanned: ...

    (found,) = findings(Torn(), Executor(), Aggregator())
    assert (found.code, found.event) == ("SB112", "Asked")
    assert found.message.startswith(f"planner.again handles Asked, as planner.plan ({__file__}:")


def test_handlers_told_apart_by_when_or_by_class_are_fine() -> None:
    class Urgent(Asked):
        pass

    class Choosing(Planner):
        name = "planner"

        @on(Asked, when=lambda event: event.text == "now")
        async def now(self, event: Asked) -> TaskPlanned: ...

        @on
        async def urgent(self, event: Urgent) -> TaskPlanned: ...

    assert findings(Choosing(), Executor(), Aggregator(), urgent=(CLIENT, Urgent, "planner")) == []


def test_parameters_and_decorators_are_checked_with_the_wiring() -> None:
    class Crowded(Role):
        name = "executor"

        @on(TaskPlanned)
        async def work(self, event: Asked, ctx: RoleContext) -> StepDone: ...

        @on
        async def more(self, event: TaskPlanned, other: str, third: int) -> None: ...

    assert codes(findings(Planner(), Crowded(), Aggregator())) == ["SB113", "SB116"]


def test_a_role_without_handlers() -> None:
    class Idle(Role):
        async def work(self, event: Asked) -> None: ...

    (found,) = findings(Planner(), Executor(), Aggregator(), Idle())
    assert (found.code, found.role, found.hint) == ("SB114", "idle", "decorate its methods with @on or @join")


@pytest.mark.parametrize(
    ("row", "told"),
    [
        ((CLIENT, Asked, ("planner", SYSTEM)), "has SYSTEM handle an event"),
        (((CLIENT, SYSTEM), Asked, "planner"), "has SYSTEM publish Asked"),
    ],
    ids=["handles", "publishes"],
)
def test_the_framework_in_a_place_that_is_not_its_own(row: Any, told: str) -> None:
    (found,) = findings(asked=row)
    assert found.code == "SB115"
    assert told in found.message


def test_the_frameworks_event_from_somebody_else() -> None:
    class Failing(Planner):
        name = "planner"

        @on
        async def fail(self, event: HandlerFailed) -> HandlerFailed: ...

    rows: dict[str, Any] = {"failed": ("planner", HandlerFailed, "planner")}
    found = findings(Failing(), Executor(), Aggregator(), **rows)
    assert "SB115" in codes(found)


def test_a_role_may_handle_failures() -> None:
    class Mending(Planner):
        name = "planner"

        @on
        async def mend(self, event: HandlerFailed) -> TaskPlanned | None: ...

    assert findings(Mending(), Executor(), Aggregator(), failed=(SYSTEM, HandlerFailed, "planner")) == []


# Children and generics.


class Urgent(StepDone):
    pass


class UrgentExecutor(Role):
    name = "executor"

    @on(TaskPlanned, each="steps")
    async def work(self, step: str) -> Urgent: ...


def test_a_child_event_reaches_the_handler_of_its_parent() -> None:
    assert findings(Planner(), UrgentExecutor(), Aggregator(), done=("executor", Urgent, "aggregator")) == []


def test_a_child_event_needs_a_row_of_its_own() -> None:
    found = findings(Planner(), UrgentExecutor(), Aggregator())
    assert codes(found) == ["SB103", "SB104"]
    assert found[0].event == "Urgent"


def test_a_handler_that_returns_the_parent_may_publish_the_child() -> None:
    assert findings(done=("executor", Urgent, "aggregator"), plain=("executor", StepDone, "aggregator")) == []


Kind = TypeVar("Kind")


class Measured(Event, Generic[Kind]):
    value: Kind


def test_each_form_of_a_generic_event_goes_its_own_way_and_the_open_one_takes_all() -> None:
    class Source(Role):
        @on
        async def start(self, event: Asked, ctx: RoleContext[Measured[int]]) -> Measured[str]: ...

    class Numbers(Role):
        @on
        async def hear(self, event: Measured[int]) -> None: ...

    class Everything(Role):
        @on
        async def hear(self, event: Measured[Any] | Measured) -> ReportReady: ...  # type: ignore[type-arg]

    rows: dict[str, Any] = {
        "asked": (CLIENT, Asked, "source"),
        "number": ("source", Measured[int], ("numbers", "everything")),
        "text": ("source", Measured[str], "everything"),
        "ready": ("everything", ReportReady, CLIENT),
    }
    roles = (Source(), Numbers(), Everything())
    assert codes(findings(*roles, rows=rows)) == ["SB101"]  # Measured[Any] is a class of its own
    found = findings(*roles, rows={**rows, "text": ("source", Measured[str], ("numbers", "everything"))})
    assert codes(found) == ["SB101", "SB102"]
    assert found[1].event == "Measured[str]"


# Flow.


def test_a_row_without_handlers_or_publishers() -> None:
    found = findings(
        done=("executor", StepDone, ("aggregator",)), asked=(CLIENT, Asked, "planner"), note=((), Asked, ())
    )
    assert codes(found) == ["SB201", "SB202"]
    assert "row 5 (nobody -> Asked -> nobody) has nobody handle Asked" in found[0].message


class Summarized(Event):
    """Nearly `Summarised`."""


class Summariser(Role):
    @on
    async def sum_up(self, event: Asked) -> Summarized: ...


def test_an_event_nobody_publishes_names_who_waits_for_it_and_who_was_looked_at() -> None:
    roles = (Planner(), Executor(), Aggregator(), Listener(), Summariser())
    asked = (CLIENT, Asked, ("planner", "summariser"))
    summed = ("summariser", Summarized, CLIENT)
    row, role = findings(*roles, asked=asked, summed=summed, heard=((), Summarised, "listener"))
    assert (row.code, role.code) == ("SB202", "SB203")
    assert re.search(rf"nobody publish Summarised, and listener\.hear \({re.escape(__file__)}:\d+\) waits", row.message)
    for found in (row, role):
        assert "; no handler publishes Summarised (did you mean `Summarized`?), looking at TaskPlanned" in found.message
        assert f"Summarized (summariser.sum_up at {__file__}:" in found.message


def test_a_row_without_publishers_names_the_handler_that_publishes_its_event() -> None:
    found = next(found for found in findings(done=((), StepDone, "aggregator")) if found.code == "SB202")
    assert f"; it is published by executor.work ({__file__}:" in found.message


def test_a_role_that_nothing_leads_to() -> None:
    class Echo(Role):
        @on
        async def hear(self, event: Summarised) -> Summarised | None: ...

    (found,) = findings(Planner(), Executor(), Aggregator(), Echo(), echo=("echo", Summarised, "echo"))
    assert (found.code, found.role) == ("SB203", "echo")
    assert found.message == "echo is never reached from the client: it waits for Summarised"


def test_an_external_program_reaches_a_role_too() -> None:
    heard = (External("mail"), Summarised, "listener")
    assert findings(Planner(), Executor(), Aggregator(), Listener(), heard=heard) == []


def test_a_result_that_is_never_sent_to_the_client() -> None:
    (found,) = findings(ready=("aggregator", ReportReady, External("mail")))
    assert (found.code, found.event) == ("SB204", "ReportReady")
    assert "no row has CLIENT handle it" in found.message


def test_a_result_that_is_not_sent_to_the_client_names_what_is() -> None:
    class ReportsReady(Event):
        pass

    (found,) = findings(result=ReportsReady)
    assert "(did you mean `ReportReady`?)" in found.message
    assert found.hint == (
        "add the row (..., ReportsReady, CLIENT), or name as the result what the client is sent: ReportReady"
    )
    (found,) = findings(result=StepDone)
    assert "did you mean" not in found.message


def test_a_result_that_nothing_leads_to() -> None:
    class Writer(Role):
        @on
        async def write(self, event: StepDone) -> ReportReady: ...

    rows: dict[str, Any] = {"asked": ROWS["asked"], "planned": ("planner", TaskPlanned, CLIENT)}
    rows["looped"] = ("writer", ReportReady, CLIENT)
    rows["done"] = ((), StepDone, "writer")
    found = findings(Planner(), Writer(), rows=rows)
    assert codes(found) == ["SB202", "SB203", "SB204"]
    assert "no event from the client leads to its publisher (writer)" in found[2].message


def test_a_role_that_only_talks_to_itself() -> None:
    class Echo(Role):
        @on
        async def hear(self, event: Summarised) -> Summarised: ...

    rows = {"asked": (CLIENT, Summarised, "echo"), "echo": ("echo", Summarised, "echo")}
    found = findings(Echo(), rows=rows, result=None)
    assert codes(found) == ["SB205"]
    assert found[0].message.startswith("the cycle echo.hear -> echo.hear has no way out")


def test_two_roles_that_only_talk_to_each_other() -> None:
    class Starter(Role):
        @on
        async def plan(self, event: Asked | StepDone) -> TaskPlanned: ...

    class Worker(Role):
        @on
        async def work(self, event: TaskPlanned) -> StepDone: ...

    rows: dict[str, Any] = {
        "asked": (CLIENT, Asked, "starter"),
        "planned": ("starter", TaskPlanned, "worker"),
        "done": ("worker", StepDone, "starter"),
    }
    found = findings(Starter(), Worker(), rows=rows)
    assert codes(found) == ["SB204", "SB205"]
    assert "starter.plan -> worker.work -> starter.plan has no way out" in found[1].message
    assert "nor is there a path to ReportReady" in found[1].message


@pytest.mark.parametrize("returned", [StepDone | None, StepDone | ReportReady], ids=["nothing", "something else"])
def test_a_cycle_with_a_way_out_is_fine(returned: Any) -> None:
    class Looping(Role):
        @on
        async def work(self, event: Asked | StepDone) -> returned: ...

    rows: dict[str, Any] = {
        "asked": (CLIENT, Asked, "looping"),
        "done": ("looping", StepDone, "looping"),
        "ready": ("looping", ReportReady, CLIENT) if ReportReady in returned.__args__ else None,
    }
    assert findings(Looping(), rows=rows, result=None) == []


# Map and join.


@pytest.mark.parametrize(
    ("field", "told"),
    [
        ("stepps", "TaskPlanned has no such field (did you mean `steps`?)"),
        ("goal", "TaskPlanned.goal is str, no sequence"),
    ],
)
def test_each_names_a_sequence(field: str, told: str) -> None:
    class Mapping(Role):
        name = "executor"

        @on(TaskPlanned, each=field)
        async def work(self, step: str) -> StepDone: ...

    (found,) = findings(Planner(), Mapping(), Aggregator())
    assert (found.code, found.role, found.event) == ("SB301", "executor", "TaskPlanned")
    assert told in found.message


class Maybe(Event):
    steps: tuple[str, ...] | None = None


@pytest.mark.parametrize(
    ("event", "field", "hint"),
    [
        (TaskPlanned, "goal", "make the field a tuple, such as tuple[str, ...]"),
        (Maybe, "steps", "make the field a tuple, such as tuple[str, ...], empty where there is none"),
    ],
    ids=["no sequence", "one or none"],
)
def test_what_to_write_instead_of_what_is_no_sequence(event: type[Event], field: str, hint: str) -> None:
    class Mapping(Role):
        name = "executor"

        @on(event, each=field)
        async def work(self, step: str) -> None: ...

    table = EventTable((CLIENT, event, "executor"))
    (found,) = [found for found in Swarm(Mapping(), table=table).check() if found.code == "SB301"]
    assert found.hint == hint


def test_items_fit_the_parameter() -> None:
    class Mapping(Role):
        name = "executor"

        @on(TaskPlanned, each="steps")
        async def work(self, step: int) -> StepDone: ...

    (found,) = findings(Planner(), Mapping(), Aggregator())
    assert found.code == "SB302"
    assert found.message == "executor.work takes items of int, but TaskPlanned.steps holds str"


@pytest.mark.parametrize("item", [str, object, str | int, Any, "str"], ids=str)
def test_items_may_be_taken_more_widely(item: Any) -> None:
    class Mapping(Role):
        name = "executor"

        @on(TaskPlanned, each="steps")
        async def work(self, step: item) -> StepDone: ...

    assert findings(Planner(), Mapping(), Aggregator()) == []


def test_a_join_whose_event_does_not_follow_from_its_opener() -> None:
    class Early(Role):
        name = "aggregator"

        @join(TaskPlanned, per=StepDone)
        async def write(self, step: StepDone, plans: Joined[TaskPlanned]) -> ReportReady: ...

    (found,) = findings(Planner(), Executor(), Early())
    assert (found.code, found.event) == ("SB303", "TaskPlanned")
    assert "nothing that StepDone leads to publishes TaskPlanned to aggregator" in found.message


class Clerk(Role):
    """Asks outside about each step, and may know the answer itself."""

    name = "executor"

    @on(TaskPlanned, each="steps")
    async def work(self, step: str) -> Asked | StepDone: ...

    @on
    async def take(self, event: Summarised) -> StepDone: ...


class Caller(Clerk):
    """Has all its answers from outside."""

    name = "executor"

    @on(TaskPlanned, each="steps")
    async def work(self, step: str) -> Asked: ...


@pytest.mark.parametrize(
    ("executor", "code", "severity", "told"),
    [
        (Caller(), "SB303", "error", "it follows from what desk answers, for which a join does not wait"),
        (
            Clerk(),
            "SB308",
            "warning",
            "aggregator.write does not wait for StepDone that follows from what desk answers",
        ),
    ],
    ids=["all from outside", "some from outside"],
)
def test_a_join_does_not_wait_for_answers_from_outside(executor: Role, code: str, severity: str, told: str) -> None:
    desk = External("desk")
    out, back = ("executor", Asked, desk), (desk, Summarised, "executor")
    (found,) = findings(Planner(), executor, Aggregator(), out=out, back=back)
    assert (found.code, found.severity, found.event) == (code, severity, "StepDone")
    assert told in found.message
    assert "ctx.ask_person" in str(found.hint)


def test_an_outside_program_that_opens_the_join_itself_is_no_answer() -> None:
    desk = External("desk")
    out, back = ("executor", Asked, desk), (desk, TaskPlanned, ("executor", "aggregator"))

    class Worker(Role):
        name = "executor"

        @on(TaskPlanned, each="steps")
        async def work(self, step: str) -> Asked | StepDone: ...

    assert findings(Planner(), Worker(), Aggregator(), out=out, back=back) == []


def test_nothing_follows_from_a_handler_that_a_nearer_one_stands_before() -> None:
    class Shadowed(Role):
        name = "executor"

        @on(TaskPlanned, each="steps")
        async def work(self, step: str) -> Summarised: ...

        @on
        async def rest(self, event: Event) -> StepDone: ...

    (found,) = findings(Planner(), Shadowed(), Aggregator(), summary=("executor", Summarised, CLIENT))
    assert (found.code, found.event) == ("SB303", "StepDone")


def test_a_join_is_reached_through_an_inner_join_but_not_through_its_own() -> None:
    class Middle(Role):
        @on(StepDone, each=lambda event: event.step)
        async def part(self, item: str) -> Asked: ...

        @join(Asked, per=StepDone)
        async def gather(self, step: StepDone, parts: Joined[Asked]) -> Summarised: ...

    class Outer(Role):
        name = "aggregator"

        @join(Summarised, per=TaskPlanned)
        async def write(self, plan: TaskPlanned, steps: Joined[Summarised]) -> ReportReady: ...

    changes: dict[str, Any] = {
        "done": ("executor", StepDone, "middle"),
        "part": ("middle", Asked, "middle"),
        "summary": ("middle", Summarised, "aggregator"),
    }
    assert findings(Planner(), Executor(), Middle(), Outer(), **changes) == []


def test_a_join_that_opens_within_itself_and_ends_the_run() -> None:
    class Replanning(Role):
        name = "executor"

        @on(TaskPlanned, each="steps")
        async def work(self, step: str) -> StepDone | TaskPlanned: ...

    more = (("planner", "executor"), TaskPlanned, ("executor", "aggregator"))
    (found,) = findings(Planner(), Replanning(), Aggregator(), planned=more)
    assert (found.code, found.role, found.event) == ("SB304", "aggregator", "TaskPlanned")


def test_a_join_that_opens_within_itself_by_an_event_that_counts_as_its_base() -> None:
    class PlanRevised(TaskPlanned):
        pass

    class Replanning(Role):
        name = "executor"

        @on(TaskPlanned, each="steps")
        async def work(self, step: str) -> StepDone | PlanRevised: ...

    revised = ("executor", PlanRevised, ("executor", "aggregator"))
    (found,) = findings(Planner(), Replanning(), Aggregator(), revised=revised)
    assert found.code == "SB304"
    assert "TaskPlanned leads to PlanRevised, which counts as its base TaskPlanned; the first" in found.message


def test_two_joins_that_could_take_the_same_contribution() -> None:
    class Double(Aggregator):
        name = "aggregator"

        @join(StepDone, per=TaskPlanned, partial="proceed")
        async def again(self, plan: TaskPlanned, steps: Joined[StepDone]) -> ReportReady: ...

    (found,) = findings(Planner(), Executor(), Double())
    assert (found.code, found.event) == ("SB305", "StepDone")
    assert "aggregator.write" in found.message
    assert "aggregator.again" in found.message


def test_joins_with_contributions_of_their_own_are_fine() -> None:
    class Heard(Event):
        pass

    class Wide(Role):
        name = "executor"

        @on(TaskPlanned, each="steps")
        async def work(self, step: str, ctx: RoleContext[Heard]) -> StepDone: ...

    class Both(Aggregator):
        name = "aggregator"

        @join(Heard, per=TaskPlanned)
        async def listen(self, plan: TaskPlanned, heard: Joined[Heard]) -> None: ...

    assert findings(Planner(), Wide(), Both(), heard=("executor", Heard, "aggregator")) == []


def test_a_handler_without_time_limit_is_a_warning() -> None:
    (found,) = findings(Planner(), Executor().named("executor", timeout=math.inf), Aggregator())
    assert (found.code, found.severity, found.role) == ("SB306", "warning", "executor")


def test_what_the_swarm_says_for_all_its_handlers_is_checked_too() -> None:
    @tool(effects="at_most_once")
    def send(to: str) -> None:
        """Send a letter."""

    risky = Executor().named("executor", tools=(send,))
    limited = Planner().named("planner", timeout=10, retry=Retry())
    table: EventTable[Any] = EventTable(*ROWS.values(), result=ReportReady)
    swarm = Swarm(limited, risky, Aggregator(), table=table, timeout=math.inf, retry=Retry(fresh=True))
    found = [(each.code, each.role) for each in swarm.check() if each.code != "SB601"]
    assert found == [("SB402", "executor"), ("SB306", "executor"), ("SB306", "aggregator")]


def test_keys_are_fields() -> None:
    class Keyed(Role):
        name = "aggregator"

        @join(StepDone, per=TaskPlanned, key="stp", expect="stepps")
        async def write(self, plan: TaskPlanned, steps: Joined[StepDone]) -> ReportReady: ...

    found = findings(Planner(), Executor(), Keyed())
    assert codes(found) == ["SB307", "SB307"]
    assert "did you mean `step`?" in found[0].message
    assert "did you mean `steps`?" in found[1].message


def test_promised_keys_are_a_sequence() -> None:
    class Keyed(Role):
        name = "aggregator"

        @join(StepDone, per=TaskPlanned, expect="goal")
        async def write(self, plan: TaskPlanned, steps: Joined[StepDone]) -> ReportReady: ...

    (found,) = findings(Planner(), Executor(), Keyed())
    assert (found.code, found.role, found.event) == ("SB307", "aggregator", "TaskPlanned")
    assert found.message == 'aggregator.write has expect="goal", but TaskPlanned.goal is str, no sequence'


# Permission.


@dataclass(frozen=True)
class FakeTool:
    name: str
    effects: str = "at_most_once"
    effects_declared: bool = True


def test_a_tool_without_declared_effects_is_a_warning() -> None:
    tools = (FakeTool("search", "read_only"), FakeTool("send", effects_declared=False), len)
    found = findings(Planner(), Executor().named("executor", tools=tools), Aggregator())
    assert [(each.code, each.severity, each.role) for each in found] == [("SB401", "warning", "executor")] * 2
    assert "the tool send, whose effects are not declared" in found[0].message
    assert "the tool len, whose effects are not declared" in found[1].message


def test_a_fresh_retry_would_repeat_what_must_not_be_repeated() -> None:
    retry = Retry(fresh=True)
    risky = Executor().named("executor", tools=(FakeTool("send"), FakeTool("read", "read_only")), retry=retry)
    (found,) = findings(Planner(), risky, Aggregator())
    assert (found.code, found.role) == ("SB402", "executor")
    assert "would repeat send, marked at_most_once" in found.message
    safe = Executor().named("executor", tools=(FakeTool("read", "read_only"),), retry=retry)
    assert findings(Planner(), safe, Aggregator()) == []


# All at once.


def test_errors_come_first_and_the_order_is_the_same_every_time() -> None:
    lax = Executor().named("executor", tools=(FakeTool("send", effects_declared=False),))
    roles = (Planner(), lax, Aggregator(), Listener())
    found = findings(*roles, again=("executor", StepDone, "aggregator"))
    assert codes(found) == ["SB101", "SB106", "SB401"]
    assert found == findings(*roles, again=("executor", StepDone, "aggregator"))


def test_a_table_can_be_checked_without_any_role() -> None:
    table = EventTable(*ROWS.values(), result=ReportReady)
    assert set(codes(check([], table))) == {"SB105"}


def test_roles_can_be_checked_without_any_table() -> None:
    found = check([read_role(role) for role in (Planner(), Executor())], EventTable())
    assert codes(found) == ["SB101", "SB101", "SB103", "SB103"]


def test_two_hundred_roles_are_checked() -> None:
    stages = [type(f"Stage{n}", (Event,), {}) for n in range(201)]
    roles: list[Role] = []
    for number in range(200):

        class Worker(Role):
            @on(stages[number])
            async def work(self, event: Event) -> stages[number + 1]: ...  # type: ignore[valid-type]

        roles.append(Worker().named(f"worker{number}"))
    rows = [(f"worker{n}", stages[n + 1], f"worker{n + 1}" if n < 199 else CLIENT) for n in range(200)]
    table = EventTable((CLIENT, stages[0], "worker0"), *rows, result=stages[200])
    assert check([read_role(role) for role in roles], table) == []


# The swarms in tests/swarms.

TWELVE = [
    ("SB101", "archivist.strike handles PaperRetracted"),
    ("SB102", "gives PaperWithdrawn to editor"),
    ("SB103", "editor.plan publishes NoteTaken"),
    ("SB104", "has editor publish DeadlineSet"),
    ("SB105", "'archivst', which is no role of the swarm (did you mean `archivist`?)"),
    ("SB106", "repeats row 7: VerdictReached from chair to client"),
    ("SB107", "Remark, which is not an Event"),
    ("SB108", "typist.type says nothing about its events"),
    ("SB109", "translator.translate uses the name Manuscript"),
    ("SB203", "proofreader is never reached"),
    ("SB301", "ReviewPlanned.editor is str, no sequence"),
    ("SB303", "archivist.file joins AspectReviewed per VerdictReached"),
]


def test_twelve_faults_are_twelve_findings_each_with_place_and_remedy() -> None:
    found = twelve_faults.swarm.check()
    assert codes(found) == [code for code, _ in TWELVE]
    for finding, (_, told) in zip(found, TWELVE, strict=True):
        assert told in finding.message
        assert finding.severity == "error"
        assert str(finding.where).startswith(f"{twelve_faults.__file__}:")
        assert finding.hint


def test_the_mended_swarm_has_no_finding() -> None:
    assert mended.swarm.check() == []
