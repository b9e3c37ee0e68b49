"""Typed answers: how a type is described to a model, and how its answer is read, whatever surrounds it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Any, Generic, TypeVar

import pydantic_core
from pydantic import PydanticUserError, TypeAdapter, ValidationError

from swarmbus.arguments import shown
from swarmbus.messages import OutputSpec, ToolSpec
from swarmbus.text import clean_text
from swarmbus.thinking.models.base import ANSWER_TOOL, RESULT_FIELD, OutputMode
from swarmbus.thinking.schema import schema_of
from swarmbus.thinking.tool_signature import complaint

T = TypeVar("T")

REPAIRS = 2
"""How often an answer that does not validate goes back to the model."""

_FENCE = re.compile(r"```[\w-]*[ \t]*\n?(.*?)(?:```|\Z)", re.DOTALL)
_STARTS = 20


class InvalidAnswer(ValueError):  # noqa: N818  # a signal to the loop, which has the model mend it
    """An answer is not of the type asked for; the message is written for the model."""


class Output(Generic[T]):
    """A type as the form of an answer.

    A type whose schema is not an object is wrapped into one with a single field, because servers and tools take
    nothing else; the wrapping is accepted with and without.
    """

    def __init__(self, form: Any) -> None:
        self._adapter: TypeAdapter[T] = TypeAdapter(form)
        schema = schema_of(self._adapter)
        self.wrapped = schema.get("type") != "object"
        if self.wrapped:
            definitions = {"$defs": schema.pop("$defs")} if "$defs" in schema else {}
            schema = {
                "type": "object",
                "properties": {RESULT_FIELD: schema},
                "required": [RESULT_FIELD],
                "additionalProperties": False,
                **definitions,
            }
        name = re.sub(r"\W+", "_", getattr(form, "__name__", "answer")).strip("_") or "answer"
        self.spec = OutputSpec(name[:60], schema)
        self.tool = ToolSpec(ANSWER_TOOL, "Give the final answer. Call it once, when the work is done.", schema)
        self.instruction = instruction(self.spec)

    def parse(self, text: str) -> T:
        """Return the answer that a text holds: as JSON, in a code fence, between prose, or as plain words.

        Raises:
            InvalidAnswer: nothing in the text is of the type.
        """
        first_error = None
        for candidate in _candidates(text):
            try:
                return self._validate(candidate)
            except ValidationError as error:
                first_error = first_error or error
        try:
            return self._adapter.validate_python(text.strip())
        except ValidationError as error:
            raise InvalidAnswer(complaint(first_error or error)) from None

    def _validate(self, value: Any) -> T:
        if self.wrapped and isinstance(value, dict) and set(value) == {RESULT_FIELD}:
            value = value[RESULT_FIELD]
        return self._adapter.validate_json(pydantic_core.to_json(value))


def instruction(spec: OutputSpec) -> str:
    """Return what a model is told about the form of its answer, where nothing else makes it keep to that."""
    schema = json.dumps(spec.schema, ensure_ascii=False)
    return f"Give the final answer as JSON alone, without any other text, matching this JSON schema:\n{schema}"


def output_for(form: Any, call: str = "output={}") -> Output[Any] | None:
    """Return the form of an answer of a type, made once per type; None for plain text.

    Args:
        form: the type.
        call: how it was given, with `{}` in its place, for messages.

    Raises:
        TypeError: it is no type that JSON can hold.
    """
    if form is str:
        return None
    if form is None or isinstance(form, str):
        hint = f": {call.replace('{}', form)}" if form else "; leave it out where the answer is a text"
        raise TypeError(f"{call.replace('{}', repr(form))} takes a type itself{hint}")
    try:
        return _made(form)
    except PydanticUserError as error:
        told = error.message.partition(". ")[0]
        wanted = "a type that JSON can hold, such as int, list[str] or a pydantic model"
        raise TypeError(f"{call.replace('{}', shown(form))} takes {wanted}: {told}") from error


def _made(form: Any) -> Output[Any]:
    try:
        return _cached_output(form)
    except TypeError:  # the form can't be hashed, such as an annotation with a list in it
        return Output(form)


@lru_cache(maxsize=256)
def _cached_output(form: Any) -> Output[Any]:
    return Output(form)


def correction(error: str, mode: OutputMode) -> str:
    """Return what the model is told about an answer that does not validate."""
    how = f"Call {ANSWER_TOOL} again" if mode == "tool" else "Answer again with the corrected JSON alone"
    return f"The answer is not of the form asked for:\n{error}\n{how}."


def _candidates(text: str) -> Iterator[Any]:
    """Yield the JSON values that a text may mean, likeliest first."""
    blocks = [text, *(match[1] for match in _FENCE.finditer(text))]
    decoder = json.JSONDecoder()
    for block in blocks:
        try:
            yield _clean(decoder.decode(block.strip()))
        except (ValueError, RecursionError):  # the latter where values lie too deep within each other
            continue
    for block in reversed(blocks):
        position = -1
        for _ in range(_STARTS):
            found = [place for mark in "{[" if (place := block.find(mark, position + 1)) >= 0]
            if not found:
                break
            position = min(found)
            try:
                value, position = decoder.raw_decode(block, position)
                value = _clean(value)
            except (ValueError, RecursionError):
                continue
            yield value
            position -= 1


def _clean(value: Any) -> Any:
    """Return a JSON value with clean text: what no text can hold passes any earlier cleaning where it is escaped."""
    match value:
        case str():
            return clean_text(value)[0]
        case list():
            return [_clean(item) for item in value]
        case dict():
            return {_clean(key): _clean(item) for key, item in value.items()}
        case _:
            return value
