"""Records as bytes and back: one JSON object each, its kind first.

Handlers stand in it by `role.method` and events by their wire names, so that neither the order nor the modules of the
code matter.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from pydantic import TypeAdapter

from swarmbus.calls import CallRecord
from swarmbus.errors import EventError, RecordError
from swarmbus.events import event_name, from_json, to_json
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
    from collections.abc import Callable

    from swarmbus.delivery.topology import Topology
    from swarmbus.events import Event
    from swarmbus.records import DeliveryKey, Record, Routes

FORMAT = 1


class Codec:
    """Writes and reads the records of one swarm's runs."""

    def __init__(self, topology: Topology) -> None:
        self._topology = topology
        self._fields: dict[tuple[str, str, str], TypeAdapter[Any]] = {}
        self._encoders: dict[type[Any], Callable[[Any], dict[str, Any]]] = {
            Submitted: self._submitted,
            Published: self._published,
            Started: lambda r: {"attempt": r.attempt},
            Called: lambda r: {
                "kind": r.call.kind,
                "key": r.call.key,
                "value": r.call.value,
                "usage": dict(r.call.usage),
            },
            Committed: self._committed,
            Failed: lambda r: {
                "attempt": r.attempt,
                "error": [r.error.type, r.error.message, r.error.traceback],
                "retry_at": r.retry_at,
            },
            Fired: lambda r: {"timer": r.timer},
            Asked: lambda r: {"question": r.question, "content": dict(r.content)},
            Answered: lambda r: {"question": r.question, "value": r.value},
            Ended: lambda r: {"status": r.status, "reason": r.reason},
        }
        self._decoders: dict[str, Callable[[dict[str, Any]], Record]] = {
            "submitted": self._read_submitted,
            "published": self._read_published,
            "started": lambda d: Started(d["at"], self._key(d["delivery"]), d["attempt"]),
            "called": self._read_called,
            "committed": self._read_committed,
            "failed": lambda d: Failed(
                d["at"], self._key(d["delivery"]), d["attempt"], ErrorInfo(*d["error"]), d["retry_at"]
            ),
            "fired": lambda d: Fired(d["at"], d["timer"]),
            "asked": lambda d: Asked(d["at"], self._key(d["delivery"]), d["question"], d["content"]),
            "answered": lambda d: Answered(d["at"], d["question"], d["value"]),
            "ended": lambda d: Ended(d["at"], d["status"], d["reason"]),
        }

    def encode(self, record: Record) -> bytes:
        """Return a record as bytes.

        Raises:
            EventEncodingError: an event in it can't be written.
            RecordError: another value in it can't.
        """
        data: dict[str, Any] = {"record": type(record).__name__.lower(), "at": record.at}
        delivery = getattr(record, "delivery", None)
        if delivery is not None:
            data["delivery"] = self._name(delivery)
        data |= self._encoders[type(record)](record)
        try:
            return json.dumps(data, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()
        except (TypeError, ValueError) as error:
            raise RecordError(f"a {data['record']} record holds a value that JSON can't: {error}") from error

    def decode(self, data: bytes) -> Record:
        """Return the record that bytes stand for.

        Raises:
            RecordError: they stand for none, or for one of another swarm.
        """
        try:
            fields = json.loads(data)
            return self._decoders[fields["record"]](fields)
        except (KeyError, TypeError, ValueError, IndexError, EventError) as error:
            raise RecordError(f"not a record of this swarm: {data[:200]!r}: {error!r}") from error

    def _name(self, key: DeliveryKey) -> list[Any]:
        return [key[0], self._topology.handlers[key[1]].qualified, key[2]]

    def _key(self, name: list[Any]) -> DeliveryKey:
        handler = self._topology.by_name.get(name[1])
        if handler is None:
            raise RecordError(f"no handler {name[1]} in this swarm")
        return (name[0], handler.number, name[2])

    def _event(self, event: Event) -> list[Any]:
        return [event_name(event), json.loads(to_json(event))]

    def _read_event(self, data: list[Any]) -> Event:
        cls = self._topology.by_event_name.get(data[0])
        if cls is None:
            raise RecordError(f"no event {data[0]} in this swarm")
        return from_json(cls, json.dumps(data[1]).encode())

    def _routes(self, routes: Routes | None) -> list[list[Any]] | None:
        if routes is None:
            return None
        return [[self._topology.handlers[number].qualified, count] for number, count in routes]

    def _read_routes(self, data: list[list[Any]] | None) -> Routes | None:
        if data is None:
            return None
        return tuple((self._topology.by_name[name].number, count) for name, count in data)

    def _submitted(self, record: Submitted) -> dict[str, Any]:
        return {
            "format": FORMAT,
            "event": self._event(record.event),
            "source": record.source,
            "cause": record.cause,
            "routes": self._routes(record.routes),
            "max_hops": record.max_hops,
            "timeout": record.timeout,
        }

    def _read_submitted(self, data: dict[str, Any]) -> Submitted:
        if data["format"] != FORMAT:
            raise RecordError(f"written in format {data['format']}, this version reads {FORMAT}")
        event, routes = self._read_event(data["event"]), self._read_routes(data["routes"])
        limits = data["max_hops"], data["timeout"]
        return Submitted(data["at"], event, data["source"], data["cause"], routes, *limits)

    def _published(self, record: Published) -> dict[str, Any]:
        return {
            "attempt": record.attempt,
            "event": self._event(record.event),
            "routes": self._routes(record.routes),
            "due": record.due,
            "key": record.key,
        }

    def _read_published(self, data: dict[str, Any]) -> Published:
        return Published(
            data["at"],
            self._key(data["delivery"]),
            data["attempt"],
            self._read_event(data["event"]),
            self._read_routes(data["routes"]),
            data["due"],
            data["key"],
        )

    def _read_called(self, data: dict[str, Any]) -> Called:
        call = CallRecord(data["kind"], data["key"], data["value"], data["usage"])
        return Called(data["at"], self._key(data["delivery"]), call)

    def _committed(self, record: Committed) -> dict[str, Any]:
        role = self._topology.handlers[record.delivery[1]].role
        return {
            "attempt": record.attempt,
            "outputs": [self._event(event) for event in record.outputs],
            "routes": None if record.routes is None else [self._routes(routes) for routes in record.routes],
            "changes": [self._change(role, change) for change in record.changes],
        }

    def _read_committed(self, data: dict[str, Any]) -> Committed:
        key = self._key(data["delivery"])
        role = self._topology.handlers[key[1]].role
        routes = data["routes"]
        return Committed(
            data["at"],
            key,
            data["attempt"],
            tuple(self._read_event(event) for event in data["outputs"]),
            None if routes is None else tuple(self._read_routes(each) for each in routes),
            tuple(self._read_change(role, change) for change in data["changes"]),
        )

    def _change(self, role: str, change: Change) -> list[Any]:
        written = [change.kind, change.field]
        if change.kind != "set":
            written += self._adapter(role, change.field, "key").dump_python({change.key: None}, mode="json")
        if change.kind != "remove":
            part = "field" if change.kind == "set" else "entry"
            written.append(self._adapter(role, change.field, part).dump_python(change.value, mode="json"))
        return written

    def _read_change(self, role: str, data: list[Any]) -> Change:
        kind, field, *rest = data
        key = None
        if kind != "set":
            (key,) = self._adapter(role, field, "key").validate_json(json.dumps({rest[0]: None}))
        if kind == "remove":
            return Change(field, None, kind, key)
        part = "field" if kind == "set" else "entry"
        value = self._adapter(role, field, part).validate_json(json.dumps(rest[-1]))
        return Change(field, value, kind, key)

    def _adapter(self, role: str, field: str, part: str) -> TypeAdapter[Any]:
        """Return what reads and writes a field of a role's state, or the keys or entries of a mapping in it."""
        place = (role, field, part)
        adapter = self._fields.get(place)
        if adapter is None:
            annotation = self._topology.states[role].model_fields[field].annotation
            if part != "field":
                arguments = getattr(annotation, "__args__", (Any, Any))
                annotation = dict[arguments[0], None] if part == "key" else arguments[1]  # type: ignore[valid-type]
            adapter = self._fields[place] = TypeAdapter(annotation)
        return adapter
