"""JSON schemas as models like them: without titles, and without references where none are needed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pydantic.json_schema import GenerateJsonSchema

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pydantic import TypeAdapter

_PREFIX = "#/$defs/"
_LITERAL = frozenset({"default", "const", "enum", "examples"})


class _Untitled(GenerateJsonSchema):
    """Leaves out the titles, which repeat the names."""

    def field_title_should_be_set(self, schema: Any) -> bool:
        """Return False: a field's name says it all."""
        return False


def schema_of(adapter: TypeAdapter[Any]) -> dict[str, Any]:
    """Return a type's JSON schema with its definitions put in place, as far as they do not contain themselves."""
    schema = adapter.json_schema(schema_generator=_Untitled, mode="validation")
    definitions = schema.pop("$defs", {})
    inlined: dict[str, Any] = _inline(schema, definitions, ())
    left = _references(inlined)
    if left:
        inlined["$defs"] = definitions
    return inlined


def is_recursive(schema: Mapping[str, Any]) -> bool:
    """Say whether a schema of `schema_of` contains itself."""
    return "$defs" in schema


def _inline(node: Any, definitions: Mapping[str, Any], inside: tuple[str, ...]) -> Any:
    if isinstance(node, list):
        return [_inline(item, definitions, inside) for item in node]
    if not isinstance(node, dict):
        return node
    reference = node.get("$ref")
    if isinstance(reference, str) and reference.startswith(_PREFIX):
        name = reference.removeprefix(_PREFIX)
        if name in inside:
            return node
        beside = {key: value for key, value in node.items() if key != "$ref"}
        return {**_inline(definitions[name], definitions, (*inside, name)), **_inline(beside, definitions, inside)}
    return {
        key: value if key in _LITERAL else _inline(value, definitions, inside)
        for key, value in node.items()
        if not (key == "title" and isinstance(value, str))
    }


def _references(node: Any) -> bool:
    if isinstance(node, dict):
        return "$ref" in node or any(_references(value) for value in node.values())
    return isinstance(node, list) and any(_references(item) for item in node)
