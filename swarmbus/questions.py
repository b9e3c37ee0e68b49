"""Questions to a person: how one is shown and recorded, and how the answer is read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, TypeAdapter
from pydantic_core import to_jsonable_python

from swarmbus.errors import QuestionError
from swarmbus.events import Event, event_name

if TYPE_CHECKING:
    from pydantic import ValidationError


def describe_question(question: BaseModel | str, reply: Any) -> dict[str, Any]:
    """Return a question as it is shown and recorded: its content, and the JSON schema of the answer."""
    if isinstance(question, BaseModel):
        content: Any = question.model_dump(mode="json")
        kind = event_name(type(question)) if isinstance(question, Event) else type(question).__name__
    else:
        content, kind = question, "text"
    return {"question": content, "kind": kind, "reply": TypeAdapter(reply).json_schema()}


def recorded_answer(answer: Any) -> Any:
    """Return an answer as it is recorded: as JSON-compatible data.

    Raises:
        QuestionError: JSON can't hold it.
    """
    try:
        return to_jsonable_python(answer)
    except ValueError as error:
        raise QuestionError(f"the answer {answer!r} can't be recorded: {error}") from error


def misfit(answer: Any, error: ValidationError) -> QuestionError:
    """Return the error for an answer of the wrong type."""
    problems = "; ".join(fault["msg"] for fault in error.errors(include_url=False))
    return QuestionError(f"the answer {answer!r} is not of the type that was asked for: {problems}")
