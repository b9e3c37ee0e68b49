from __future__ import annotations

import enum
from collections.abc import Callable
from dataclasses import fields
from typing import Annotated, Any, Literal, assert_type, get_args

import pytest
from pydantic import BaseModel, Field

from swarmbus.errors import ToolDefinitionError, ToolError
from swarmbus.thinking.tool_result import FailureReason, ToolResult
from swarmbus.thinking.tools import Effects, Tool, ToolContext, ToolOptions, read_result, tool, toolset


class Shape(enum.Enum):
    ROUND = "round"
    FLAT = "flat"


class Query(BaseModel):
    text: str
    limit: int | None = None
    shape: Shape = Shape.ROUND


class Tree(BaseModel):
    children: tuple[Tree, ...] = ()


@tool
async def search(
    query: Query,
    words: Annotated[list[str], Field(description="other words for it")],
    order: Literal["new", "old"] = "new",
    copy: int = 1,
) -> str:
    """Search the documents.

    Use it before answering.

    Args:
        query: what to look for,
            in detail
        order (str): which come first
    """
    return f"{query.text} {words} {order} {copy}"


def test_the_schema_says_what_the_signature_and_the_docstring_say() -> None:
    assert search.spec.name == "search"
    assert search.spec.description == "Search the documents.\n\nUse it before answering."
    assert search.spec.parameters == {
        "type": "object",
        "additionalProperties": False,
        "properties": {
            "query": {
                "type": "object",
                "description": "what to look for, in detail",
                "properties": {
                    "text": {"type": "string"},
                    "limit": {"anyOf": [{"type": "integer"}, {"type": "null"}], "default": None},
                    "shape": {"enum": ["round", "flat"], "type": "string", "default": "round"},
                },
                "required": ["text"],
            },
            "words": {"type": "array", "items": {"type": "string"}, "description": "other words for it"},
            "order": {
                "type": "string",
                "enum": ["new", "old"],
                "default": "new",
                "description": "which come first",
            },
            "copy": {"type": "integer", "default": 1},
        },
        "required": ["query", "words"],
    }


def test_arguments_are_checked_and_converted() -> None:
    parsed = search.signature.parse('{"query": {"text": "x", "shape": "flat"}, "words": ["y"]}')
    assert parsed == {"query": Query(text="x", shape=Shape.FLAT), "words": ["y"]}


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        pytest.param('{"query": ', "Invalid JSON", id="cut"),
        pytest.param("[]", "should be an object", id="a-list"),
        pytest.param('{"words": []}', "query: Field required", id="missing"),
        pytest.param('{"query": {"text": 1}, "words": []}', "query.text: Input should be a valid string", id="type"),
        pytest.param('{"query": {"text": ""}, "words": [], "x": 1}', "x: Extra inputs", id="unknown"),
        pytest.param("", "query: Field required", id="empty-is-an-empty-object"),
    ],
)
def test_arguments_that_do_not_fit_are_refused_in_words(arguments: str, complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint) as caught:
        search.signature.parse(arguments)
    assert "pydantic.dev" not in str(caught.value)


async def test_a_tool_stays_callable_with_its_type() -> None:
    answer = await search(Query(text="x"), ["y"])
    assert_type(answer, str)
    assert answer == "x ['y'] new 1"


def test_the_context_is_not_shown_to_the_model() -> None:
    @tool(name="touch", sequential=True, timeout=3, max_result=10, effects="idempotent", approval=True)
    def touch_file(path: str, ctx: ToolContext[dict[str, int]]) -> None:
        """Touch."""

    assert list(touch_file.spec.parameters["properties"]) == ["path"]
    assert touch_file.signature.context_parameter == "ctx"
    assert (touch_file.name, touch_file.effects, touch_file.effects_declared) == ("touch", "idempotent", True)
    assert touch_file.options.sequential
    assert touch_file.options.approval


def test_a_tool_that_does_not_tell_its_effects_counts_as_the_worst() -> None:
    assert (search.effects, search.effects_declared) == ("at_most_once", False)


def test_annotations_may_name_what_is_local_to_the_function_around() -> None:
    class Local(BaseModel):
        n: int

    @tool
    def take(local: Local) -> int:
        """Take it."""
        return local.n

    assert take.signature.parse('{"local": {"n": 3}}') == {"local": Local(n=3)}


class Counter:
    def __init__(self, start: int) -> None:
        self.start = start

    @tool
    def add(self, number: int) -> int:
        """Add to the start."""
        return self.start + number


def test_a_method_sees_its_instance() -> None:
    bound = Counter(40).add
    assert isinstance(bound, Tool)
    assert bound(2) == 42
    assert list(bound.spec.parameters["properties"]) == ["number"]
    assert list(toolset([bound])) == ["add"]


def test_a_method_without_its_instance_is_refused() -> None:
    with pytest.raises(ToolDefinitionError, match="is a method"):
        toolset([Counter.add])


def _no_annotation(x) -> None:  # type: ignore[no-untyped-def]
    """."""


def _star(*x: int) -> None:
    """."""


def _positional(x: int, /) -> None:
    """."""


def _unknown(x: Nowhere) -> None:  # type: ignore[name-defined]  # noqa: F821
    """."""


def _recursive(x: Tree) -> None:
    """."""


def _impossible(x: ToolError) -> None:
    """."""


def _function(x: Callable[[], int]) -> None:
    """."""


def _no_type(x: "list[") -> None:  # type: ignore[valid-type]  # noqa: F722
    """."""


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (_no_annotation, "has no annotation"),
        (_star, "can't be given by name"),
        (_positional, "can't be given by name"),
        (_unknown, "can't be resolved"),
        (_recursive, "contain themselves"),
        (_impossible, "a model can't give"),
        (_function, "a model can't give"),
        (_no_type, "is no type"),
        (max, "does not say what it takes"),
        (dict.get, "can't be a tool"),
    ],
)
def test_a_signature_that_says_too_little_is_refused(function: Any, message: str) -> None:
    with pytest.raises(ToolDefinitionError, match=message):
        toolset([function])


def test_the_decorator_explains_each_of_its_options() -> None:
    explained = str(tool.__doc__)
    assert [option.name for option in fields(ToolOptions) if f" {option.name}: " not in explained] == []
    assert [effects for effects in get_args(Effects) if f'"{effects}"' not in explained] == []


def test_two_tools_with_one_name_are_refused() -> None:
    with pytest.raises(ToolDefinitionError, match="two tools are named 'search'"):
        toolset([search, search])


@pytest.mark.parametrize(
    ("data", "text"),
    [
        ("plain", "plain"),
        ("", '""'),
        (None, "null"),
        ({"é": (1, 2)}, '{"é":[1,2]}'),
        (Query(text="x"), '{"text":"x","limit":null,"shape":"round"}'),
    ],
    ids=["text", "empty", "none", "mapping", "model"],
)
def test_a_result_is_always_text(data: object, text: str) -> None:
    assert ToolResult.returned(data).text == text


def test_the_text_of_a_failure_says_so_and_stays_readable() -> None:
    text = '{"ok":false,"error":"raised","message":"Zoë is not here"}'
    assert ToolResult.failed("raised", "Zoë is not here").text == text


@pytest.mark.parametrize("reason", get_args(FailureReason))
def test_what_failed_and_what_never_ran_are_told_apart(reason: FailureReason) -> None:
    outcome = "failed" if reason in {"raised", "timed_out", "cancelled"} else "not_run"
    assert ToolResult.failed(reason, "x").outcome == outcome
    assert ToolResult.returned("").outcome == "returned"


def test_a_cut_result_can_be_read_on() -> None:
    context: ToolContext[None] = ToolContext("", "", "", "", None, print, {"h": "0123456789"})
    assert read_result("h", context, start=3, length=4) == "characters 3 to 7 of 10:\n3456"
    with pytest.raises(ToolError, match="no cut result has the handle 'x'"):
        read_result("x", context)


def test_each_form_of_the_decorator_knows_what_is_local_around_the_function() -> None:
    class Local(BaseModel):
        size: int

    @tool
    def bare(given: Local) -> int:
        """Take it."""
        return given.size

    @tool(effects="read_only")
    def with_options(given: Local) -> int:
        """Take it."""
        return given.size

    for made in (bare, with_options):
        assert made.signature.parse('{"given": {"size": 3}}') == {"given": Local(size=3)}
