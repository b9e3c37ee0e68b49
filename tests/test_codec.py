"""Records as bytes: every kind comes back as it was, and what can't be read says what it is."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from pydantic import BaseModel

from swarmbus import CLIENT, Event, EventTable, FrozenDict, Role, RoleContext, Swarm, on
from swarmbus.calls import CallRecord
from swarmbus.delivery.codec import Codec
from swarmbus.delivery.topology import Topology
from swarmbus.errors import RecordError, SwarmbusError
from swarmbus.records import (
    Answered,
    Asked,
    Called,
    Change,
    Committed,
    Ended,
    ErrorInfo,
    Failed,
    Fired,
    Published,
    Started,
    Submitted,
)

if TYPE_CHECKING:
    from swarmbus.records import Record


class Place(BaseModel, frozen=True):
    x: int
    name: str = ""


class ShipSighted(Event):
    at: Place
    crew: tuple[str, ...] = ()
    cargo: FrozenDict[str, int] = FrozenDict()


class ShipLogged(Event):
    number: int


class Harbour(Role):
    class State(BaseModel, frozen=True):
        berths: FrozenDict[int, Place] = FrozenDict()
        last: Place | None = None

    @on(ShipSighted, each="crew")
    async def log(self, event: ShipSighted, name: str, state: State, ctx: RoleContext[ShipLogged]) -> ShipLogged:
        return ShipLogged(number=len(name))


def codec_of(*roles: Role) -> Codec:
    table = EventTable((CLIENT, ShipSighted, "harbour"), ("harbour", ShipLogged, CLIENT), result=ShipLogged)
    swarm = Swarm(*roles, table=table)
    assert swarm.check() == []
    return Codec(Topology(swarm.wiring, swarm.table))


CODEC = codec_of(Harbour())
SIGHTED = ShipSighted(at=Place(x=1, name="Nord «ü» 船"), crew=("a", "b"), cargo=FrozenDict({"tea": 3}))
ITEM, WHOLE = (0, 0, 1), (0, 0, -1)
CALL = CallRecord("model", "abc", {"text": "yes", "none": None}, {"input_tokens": 3})

RECORDS: list[Record] = [
    Submitted(1.5, SIGHTED, "client"),
    Submitted(1.5, SIGHTED, "external:port", 7, ((0, 2),), 12, 30.5),
    Started(2.0, ITEM, 3),
    Called(2.0, ITEM, CALL),
    Published(2.25, WHOLE, 1, ShipLogged(number=1)),
    Published(2.25, ITEM, 1, ShipLogged(number=1), ((0, -1),), 9.5, "k"),
    Committed(3.0, ITEM, 1),
    Committed(3.0, ITEM, 2, (ShipLogged(number=1), SIGHTED), (None, ((0, 2),))),
    Committed(3.0, ITEM, 1, changes=(Change("last", Place(x=2)), Change("last", None))),
    Committed(3.0, ITEM, 1, changes=(Change("berths", Place(x=2), "put", 4), Change("berths", None, "remove", 4))),
    Committed(3.0, ITEM, 1, changes=(Change("berths", FrozenDict({1: Place(x=1)})),)),
    Failed(4.0, ITEM, 1, ErrorInfo("ValueError", "no\nsense", "Traceback …")),
    Failed(4.0, ITEM, 1, ErrorInfo("Retryable", ""), 5.0),
    Fired(5.0, 3),
    Asked(6.0, WHOLE, "q?0", {"question": "sure?", "reply": {"type": "integer"}}),
    Answered(7.0, "q?0", [1, None, "x"]),
    Ended(8.0, "stopped", "drained"),
]


@pytest.mark.parametrize("record", RECORDS, ids=lambda record: type(record).__name__)
def test_a_record_comes_back_as_it_was(record: Record) -> None:
    data = CODEC.encode(record)
    assert b"\n" not in data
    assert CODEC.decode(data) == record


def test_every_kind_of_record_is_among_those() -> None:
    kinds = {Submitted, Published, Started, Called, Committed, Failed, Fired, Asked, Answered, Ended}
    assert {type(record) for record in RECORDS} == kinds


def test_handlers_stand_in_it_by_name_so_that_their_order_does_not_matter() -> None:
    class Attic(Role):
        @on
        async def log(self, event: ShipLogged) -> None: ...

    table = EventTable((CLIENT, ShipSighted, "harbour"), ("harbour", ShipLogged, ("attic", CLIENT)), result=ShipLogged)
    other = Swarm(Attic(), Harbour(), table=table)
    moved = Codec(Topology(other.wiring, other.table)).decode(CODEC.encode(Started(1.0, (0, 0, 1), 1)))
    assert moved == Started(1.0, (0, 1, 1), 1)


@pytest.mark.parametrize(
    ("data", "told"),
    [
        (b"", "not a record of this swarm: b''"),
        (b'{"record":"started","at":1', "not a record of this swarm"),
        (b"[]", "not a record of this swarm"),
        (b'{"record":"sung","at":1}', "sung"),
        (b'{"record":"started","at":1,"delivery":[0,"harbour.sing",-1],"attempt":1}', "no handler harbour.sing"),
        (b'{"record":"started","at":1,"delivery":[0,"harbour.log",-1]}', "attempt"),
    ],
    ids=["empty", "cut", "no object", "unknown kind", "unknown handler", "field lost"],
)
def test_what_is_no_record_is_refused_with_a_reason(data: bytes, told: str) -> None:
    with pytest.raises(RecordError, match=told):
        CODEC.decode(data)


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"format": 99}, "written in format 99, this version reads 1"),
        ({"event": ["ship_lost", {}]}, "no event ship_lost in this swarm"),
        ({"event": ["ship_sighted", {"at": {"x": "far"}}]}, "ship_sighted"),
    ],
    ids=["newer format", "unknown event", "other fields"],
)
def test_a_record_of_another_swarm_or_version_is_refused(change: dict[str, Any], told: str) -> None:
    data = json.dumps(json.loads(CODEC.encode(RECORDS[0])) | change).encode()
    with pytest.raises(RecordError, match=told):
        CODEC.decode(data)


@pytest.mark.parametrize("value", [float("nan"), object(), {1: {2}}], ids=["nan", "object", "set"])
def test_what_json_can_not_hold_is_refused_when_written(value: Any) -> None:
    with pytest.raises(SwarmbusError, match="called"):
        CODEC.encode(Called(1.0, ITEM, CallRecord("once", "k", value, {})))


class Risen(Event):
    kind: str
    by: int


class Fallen(Event):
    kind: str
    by: int


def test_events_that_look_alike_come_back_as_the_class_they_were() -> None:
    class Gauge(Role):
        @on
        async def read(self, event: Risen | Fallen) -> None: ...

    table: EventTable[Event] = EventTable((CLIENT, Risen, "gauge"), (CLIENT, Fallen, "gauge"))
    swarm = Swarm(Gauge(), table=table)
    assert swarm.check() == []
    codec = Codec(Topology(swarm.wiring, swarm.table))
    for event in (Risen(kind="x", by=1), Fallen(kind="x", by=1)):
        back = codec.decode(codec.encode(Submitted(1.0, event, "client")))
        assert isinstance(back, Submitted)
        assert type(back.event) is type(event)
        assert back.event == event
