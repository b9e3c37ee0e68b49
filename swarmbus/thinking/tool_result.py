"""What came of a tool call: returned, failed or not run, told apart, with the text that the model reads."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import pydantic_core

FailureReason = Literal[
    "unknown_tool",
    "invalid_arguments",
    "blocked",
    "truncated",
    "skipped",
    "raised",
    "timed_out",
    "cancelled",
]
Outcome = Literal["returned", "failed", "not_run"]

_RAN = frozenset({"raised", "timed_out", "cancelled"})


@dataclass(frozen=True, slots=True)
class ToolResult:
    """What came of one tool call.

    Attributes:
        ok: whether the tool ran and succeeded.
        data: what the tool returned, where it succeeded.
        error: what went wrong, in words for the model, where it did not.
        reason: the kind of failure, where there is one.
        text: what the model reads, before it is cut to size.
    """

    ok: bool
    text: str
    data: Any = None
    error: str | None = None
    reason: FailureReason | None = None

    @classmethod
    def returned(cls, data: Any, text: str | None = None) -> ToolResult:
        """Return the result of a tool that succeeded; `text` replaces the data's own form.

        Raises:
            pydantic_core.PydanticSerializationError: the data has no JSON form, and no text was given.
        """
        return cls(ok=True, text=readable(data) if text is None else text, data=data)

    @classmethod
    def failed(cls, reason: FailureReason, error: str) -> ToolResult:
        """Return the result of a call that was not run or did not succeed."""
        text = pydantic_core.to_json({"ok": False, "error": reason, "message": error}).decode()
        return cls(ok=False, text=text, error=error, reason=reason)

    @property
    def outcome(self) -> Outcome:
        """Whether the tool returned, ran and failed, or never ran."""
        if self.ok:
            return "returned"
        return "failed" if self.reason in _RAN else "not_run"

    def to_data(self) -> dict[str, Any]:
        """Return a successful result as JSON-compatible data, as a call record keeps it."""
        return {"text": self.text, "data": pydantic_core.to_jsonable_python(self.data, fallback=str)}

    @classmethod
    def from_data(cls, data: Mapping[str, Any]) -> ToolResult:
        """Return the result that `to_data` wrote; its data is what JSON made of it."""
        return cls(ok=True, text=data["text"], data=data["data"])


def readable(data: Any) -> str:
    """Return data as text for a model: text as it is, all else as JSON; never an empty string."""
    if isinstance(data, str) and data:
        return data
    return pydantic_core.to_json(data).decode()
