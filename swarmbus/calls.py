"""The port behind which recorded calls lie: what a delivery asked of the outside, and what came back.

A model reply, a tool result, a recorded clock reading: each is kept under the delivery that made it, so that
another attempt of the same delivery uses it again instead of paying for it again.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, Protocol

from pydantic_core import to_jsonable_python

if TYPE_CHECKING:
    from collections.abc import Mapping

CallKind = Literal["model", "tool", "value", "once", "once_lost"]


@dataclass(frozen=True, slots=True)
class CallRecord:
    """One successful call to the outside.

    Attributes:
        kind: what was called: a model, a tool, a source of values (clock, random, id), or a `ctx.once` function; with
            `once_lost`, one that took effect, and whose value can't be kept.
        key: what identifies the request within its delivery, such as a hash of it; not unique by itself.
        value: what came back, as JSON-compatible data; with `once_lost`, why it can't be kept.
        usage: counts by name (such as `input_tokens`) that the call cost; empty where it cost nothing.
    """

    kind: CallKind
    key: str
    value: Any
    usage: Mapping[str, float]


class CallLog(Protocol):
    """The recorded calls of one attempt at one delivery."""

    async def recorded(self, kind: CallKind, key: str) -> CallRecord | None:
        """Return the record for the next occurrence of this key, or None where the call has yet to be made.

        The n-th question for a key is answered with the n-th record under it, so equal calls made
        concurrently match in any order.
        """
        ...

    async def record(self, call: CallRecord) -> None:
        """Keep a successful call; it is durable, as far as the journal is, when this returns."""
        ...


class NoCallLog:
    """Remembers nothing: for an agent that works alone."""

    async def recorded(self, kind: CallKind, key: str) -> CallRecord | None:
        """Return None: every call has to be made."""
        return None

    async def record(self, call: CallRecord) -> None:
        """Forget the call."""


def as_recorded(value: Any) -> Any:
    """Return a value as a record brings it back: as plain data that JSON can hold.

    Raises:
        ValueError: JSON can't hold it.
    """
    try:
        text = json.dumps(to_jsonable_python(value), ensure_ascii=False, allow_nan=False)
        return json.loads(text.encode())
    except RecursionError as error:
        raise ValueError("it is nested too deeply") from error
