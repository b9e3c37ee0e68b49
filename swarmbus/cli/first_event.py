"""The event that starts a run, as it is written on the command line: its name, and its JSON or where that stands."""

from __future__ import annotations

import os
import sys
from codecs import BOM_UTF8
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from pydantic import ValidationError

from swarmbus.events import Event, event_name
from swarmbus.table import CLIENT
from swarmbus.text import did_you_mean

if TYPE_CHECKING:
    from swarmbus.swarm import Swarm

LARGEST = 64 * 2**20
"""Bytes that the JSON of an event may have."""


def read_event(swarm: Swarm[Any], written: str) -> Event:
    """Return the event that `[NAME=]JSON` describes; the name may be left out where only one is accepted.

    Instead of the JSON, `@FILE` names a file that holds it, and `-` is standard input.

    Raises:
        ValueError: it describes none that the table accepts from the client, or the JSON can't be read.
    """
    accepted = [entry.event for entry in swarm.table.entries if CLIENT in entry.publishers]
    names = {event_name(event): event for event in dict.fromkeys(accepted)}
    listed = ", ".join(names) or "none"
    name, equals, content = written.partition("=")
    if not equals or not name.replace(".", "_").replace("-", "_").strip().isidentifier():
        name, content = "", written
    name = name.strip()
    known = {**{event.__name__: event for event in names.values()}, **names}
    if name and name not in known:
        raise ValueError(
            f"the table accepts no {name!r} from the client{did_you_mean(name, known)}; it accepts: {listed}"
        )
    if not name and len(names) != 1:
        raise ValueError(f"say which event this is, as NAME=JSON; the table accepts from the client: {listed}")
    return _parsed(known[name] if name else next(iter(names.values())), content.strip())


def _parsed(cls: type[Event], content: str) -> Event:
    try:
        return cls.model_validate_json(_read(content))
    except ValidationError as error:
        problems = [_problem(cls, problem) for problem in error.errors(include_url=False)]
        file = f"; to read it from the file {content}, write @{content}" if os.path.isfile(content) else ""  # noqa: PTH113  # of any length
        raise ValueError(f"the JSON is no {cls.__name__}: {'; '.join(problems)}{file}") from error


def _read(content: str) -> str | bytes:
    """Return the JSON that was given, or what the file or standard input holds that was named in its place."""
    if content == "-":
        if sys.stdin is None:
            raise ValueError("standard input is closed")
        return _bounded(sys.stdin.buffer, "standard input")
    if not content.startswith("@"):
        return content
    try:
        with Path(content[1:]).open("rb") as file:
            return _bounded(file, content[1:])
    except OSError as error:
        raise ValueError(f"{content[1:] or 'the file'} can't be read: {error.strerror or error}") from error


def _bounded(file: BinaryIO, name: str) -> bytes:
    data = file.read(LARGEST + 1)
    if len(data) > LARGEST:
        raise ValueError(f"{name} holds more than {LARGEST // 2**20} MiB, which is no event; name a file with its JSON")
    return data.removeprefix(BOM_UTF8)


def _problem(cls: type[Event], problem: Any) -> str:
    field = ".".join(str(part) for part in problem["loc"])
    if problem["type"] == "extra_forbidden":
        return f"it has no field {field!r}{did_you_mean(field, cls.model_fields)}"
    return f"{field}: {problem['msg']}" if field else str(problem["msg"])
