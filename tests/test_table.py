"""The event table as plain data."""

from __future__ import annotations

from typing import Any

import pytest

from swarmbus.events import Event, HandlerFailed
from swarmbus.table import CLIENT, SYSTEM, Entry, EventTable, External, Row, address, row_text


class Asked(Event):
    text: str


class Answered(Event):
    text: str


def test_entries_are_the_rows_with_tuples() -> None:
    table = EventTable(
        (CLIENT, Asked, "planner"),
        Row(("planner", External("mail")), Answered, ("writer", CLIENT)),
        result=Answered,
    )
    assert table.rows[0] == Row(CLIENT, Asked, "planner")
    assert table.entries == (
        Entry((CLIENT,), Asked, ("planner",), 0),
        Entry(("planner", External("mail")), Answered, ("writer", CLIENT), 1),
    )
    assert table.result is Answered


def test_rows_kept_in_a_list_make_the_same_table() -> None:
    rows = [Row(CLIENT, Asked, "planner"), Row("planner", Answered, CLIENT)]
    assert EventTable(*rows).entries == EventTable((CLIENT, Asked, "planner"), ("planner", Answered, CLIENT)).entries


@pytest.mark.parametrize(
    ("party", "told"),
    [("planner", "planner"), (CLIENT, "client"), (SYSTEM, "system"), (External("mail"), "external:mail")],
    ids=str,
)
def test_every_party_has_an_address(party: Any, told: str) -> None:
    assert address(party) == told


def test_rows_without_sense_are_kept_for_the_check() -> None:
    table = EventTable((CLIENT, dict, "planner"), ((), Asked, ()), (3, Answered, ("planner", None)))
    assert len(table.rows) == 3
    assert table.entries == (Entry((), Asked, (), 1), Entry((), Answered, ("planner",), 2))


@pytest.mark.parametrize("row", [(CLIENT, Asked), "planner", [CLIENT, Asked, "planner"], None], ids=str)
def test_a_row_that_is_no_tuple_of_three_is_refused(row: Any) -> None:
    with pytest.raises(ValueError, match=r"row 2 of the event table .* write \(publishers, Event, handlers\)"):
        EventTable((CLIENT, Asked, "planner"), row)


def test_a_table_knows_where_it_was_made() -> None:
    assert str(EventTable().where).startswith(f"{__file__}:")


def test_rows_and_tables_can_be_read() -> None:
    table = EventTable((SYSTEM, HandlerFailed, ("planner", CLIENT)), ((), Asked, ()))
    assert [row_text(entry) for entry in table.entries] == [
        "row 1 (system -> HandlerFailed -> planner, client)",
        "row 2 (nobody -> Asked -> nobody)",
    ]
    assert repr(table) == "<EventTable of 2 rows, result None>"
