"""What a tool's signature and docstring say: its JSON schema, its argument check, and where the context goes."""

from __future__ import annotations

import inspect
import re
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, NotRequired, get_origin, get_type_hints

import pydantic_core
from pydantic import ConfigDict, TypeAdapter, ValidationError
from pydantic.errors import PydanticUndefinedAnnotation, PydanticUserError
from typing_extensions import TypedDict

from swarmbus.errors import ToolDefinitionError
from swarmbus.text import brief
from swarmbus.thinking.schema import is_recursive, schema_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

_SECTION = re.compile(r"^(Args|Arguments|Parameters|Returns|Raises|Yields|Examples?|Notes?):\s*$")
_PARAMETER = re.compile(r"^\s+\*{0,2}(\w+)(?:\s*\([^)]*\))?:\s*(.*)$")


@dataclass(frozen=True, slots=True)
class Signature:
    """What a model and the loop need to know of a tool's function.

    Attributes:
        description: the docstring down to its first section.
        parameters: the JSON schema of the arguments.
        context_parameter: the parameter that takes the tool context, if one does.
        arguments: checks the arguments' JSON text and returns them by name.
    """

    description: str
    parameters: dict[str, Any]
    context_parameter: str | None
    arguments: TypeAdapter[dict[str, Any]]

    def parse(self, text: str) -> dict[str, Any]:
        """Return checked arguments; an empty text is an empty object.

        Raises:
            ValueError: the text is not JSON, or does not fit; the message is written for the model.
        """
        try:
            return self.arguments.validate_json(text.strip() or "{}")
        except ValidationError as error:
            raise ValueError(complaint(error)) from None

    def check(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Return checked arguments that did not come from the model.

        Raises:
            ValueError: they do not fit.
        """
        try:
            return self.arguments.validate_python(arguments)
        except ValidationError as error:
            raise ValueError(complaint(error)) from None


def read_signature(
    function: Callable[..., Any], context_type: type, local_names: Mapping[str, Any], *, bound: bool
) -> Signature:
    """Read a function.

    Args:
        function: the tool's function.
        context_type: the class whose annotation marks the context parameter.
        local_names: names visible where the function was defined, for annotations kept as text.
        bound: whether the first parameter is `self` and is none of the model's business.

    Raises:
        ToolDefinitionError: a parameter says too little, or can't be given by name, or contains itself.
    """
    name = function.__qualname__
    hints = _hints(function, local_names)
    summary, notes = _docstring(inspect.getdoc(function) or "")
    fields: dict[str, Any] = {}
    defaults: dict[str, Any] = {}
    context_parameter = None
    for parameter in _parameters(function)[bound:]:
        annotation = _annotation(parameter, hints, name)
        if _is_context(annotation, context_type):
            context_parameter = parameter.name
            continue
        optional = parameter.default is not parameter.empty
        fields[parameter.name] = NotRequired[annotation] if optional else annotation
        if optional:
            defaults[parameter.name] = parameter.default
    adapter, schema = _read_types(function.__name__, fields, name)
    if is_recursive(schema):
        raise ToolDefinitionError(f"the arguments of {name} contain themselves; give it a flat form, or JSON text")
    _annotate(schema.get("properties", {}), notes, defaults)
    return Signature(summary, schema, context_parameter, adapter)


def complaint(error: ValidationError) -> str:
    """Return a validation error as one line per fault, without links or class names."""
    lines = []
    for fault in error.errors(include_url=False):
        place = ".".join(str(part) for part in fault["loc"])
        given = "" if fault["type"] in {"missing", "json_invalid"} else f", got {brief(fault['input'])}"
        lines.append(f"{place}: {fault['msg']}{given}" if place else f"{fault['msg']}{given}")
    return "\n".join(lines)


def _hints(function: Callable[..., Any], local_names: Mapping[str, Any]) -> dict[str, Any]:
    module = sys.modules.get(function.__module__)
    try:
        return get_type_hints(function, vars(module) if module else {}, dict(local_names), include_extras=True)
    except NameError as error:
        raise ToolDefinitionError(
            f"an annotation of {function.__qualname__} can't be resolved: {error}; import the name at run time, "
            "not only for type checking"
        ) from error
    except (SyntaxError, TypeError, AttributeError) as error:
        raise ToolDefinitionError(f"an annotation of {function.__qualname__} is no type: {error}") from error


def _parameters(function: Callable[..., Any]) -> list[inspect.Parameter]:
    try:
        return list(inspect.signature(function).parameters.values())
    except ValueError as error:
        raise ToolDefinitionError(
            f"{function.__qualname__} does not say what it takes; wrap it in a function"
        ) from error


def _annotation(parameter: inspect.Parameter, hints: Mapping[str, Any], name: str) -> Any:
    if parameter.kind in {parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD, parameter.POSITIONAL_ONLY}:
        raise ToolDefinitionError(f"{name}: parameter {parameter.name!r} can't be given by name, as a model does")
    if parameter.name not in hints:
        raise ToolDefinitionError(f"{name}: parameter {parameter.name!r} has no annotation; the model needs its type")
    return hints[parameter.name]


def _is_context(annotation: Any, context_type: type) -> bool:
    if get_origin(annotation) is Annotated:
        annotation = annotation.__origin__
    return annotation is context_type or get_origin(annotation) is context_type


def _read_types(
    short_name: str, fields: Mapping[str, Any], name: str
) -> tuple[TypeAdapter[dict[str, Any]], dict[str, Any]]:
    """Return what checks the arguments, and their JSON schema."""
    # A typed dict, because a model would give names such as `copy` or `schema` a meaning of its own.
    make: Any = TypedDict
    arguments = make(short_name, dict(fields))
    arguments.__pydantic_config__ = ConfigDict(extra="forbid")
    try:
        adapter: TypeAdapter[dict[str, Any]] = TypeAdapter(arguments)
        return adapter, schema_of(adapter)
    except (PydanticUserError, PydanticUndefinedAnnotation) as error:
        raise ToolDefinitionError(f"{name} has a parameter that a model can't give: {error.message}") from error


def _annotate(properties: dict[str, Any], notes: Mapping[str, str], defaults: Mapping[str, Any]) -> None:
    for name, value in defaults.items():
        properties[name].setdefault("default", pydantic_core.to_jsonable_python(value, fallback=repr))
    for name, note in notes.items():
        if name in properties:
            properties[name].setdefault("description", note)


def _docstring(text: str) -> tuple[str, dict[str, str]]:
    summary: list[str] = []
    notes: dict[str, str] = {}
    section = last = ""
    for line in text.splitlines():
        if heading := _SECTION.match(line):
            section = heading[1]
        elif not section:
            summary.append(line)
        elif section in {"Args", "Arguments", "Parameters"}:
            if found := _PARAMETER.match(line):
                last = found[1]
                notes[last] = found[2].strip()
            elif last and line.strip():
                notes[last] = f"{notes[last]} {line.strip()}"
    return "\n".join(summary).strip(), notes
