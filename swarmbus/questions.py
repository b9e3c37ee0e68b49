"""Questions to a person: how one is shown and recorded, and how the answer is read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, TypeAdapter
from pydantic_core import to_jsonable_python

from swarmbus.calls import as_recorded
from swarmbus.errors import QuestionError
from swarmbus.events import Event, event_name
from swarmbus.text import brief, clean_plain, text_of

if TYPE_CHECKING:
    from pydantic import ValidationError


def describe_question(question: BaseModel | str, reply: Any) -> dict[str, Any]:
    """Return a question as it is shown and recorded: its content with clean text, and the JSON schema of the answer.

    Raises:
        ValueError: JSON can't hold the question.
    """
    kind = "text"
    if isinstance(question, BaseModel):
        kind = event_name(type(question)) if isinstance(question, Event) else type(question).__name__
    try:
        content = _plain(question)
    except ValueError as error:
        raise ValueError(f"ctx.ask_person({brief(question)}, ...) can't be recorded: {text_of(error)}") from error
    return {"question": content, "kind": kind, "reply": TypeAdapter(reply).json_schema()}


def recorded_answer(answer: Any) -> Any:
    """Return an answer as it is recorded: as JSON-compatible data with clean text.

    Raises:
        QuestionError: JSON can't hold it.
    """
    try:
        return _plain(answer)
    except ValueError as error:
        raise QuestionError(f"the answer {brief(answer)} can't be recorded: {text_of(error)}") from error


def misfit(answer: Any, error: ValidationError) -> QuestionError:
    """Return the error for an answer of the wrong type."""
    problems = "; ".join(fault["msg"] for fault in error.errors(include_url=False))
    return QuestionError(f"the answer {brief(answer)} is not of the type that was asked for: {problems}")


def _plain(value: Any) -> Any:
    return as_recorded(clean_plain(to_jsonable_python(value)))
