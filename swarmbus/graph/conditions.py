"""How a function that routes or maps an event is written on an edge: its name, or the text of a lambda."""

from __future__ import annotations

import ast
import functools
import linecache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import CodeType
    from typing import Any

LENGTH = 60
"""Characters after which a condition is cut."""


def condition(function: Callable[..., Any]) -> str:
    """Return a function's name, or of a lambda what it returns, as far as its source is there."""
    code = getattr(function, "__code__", None)
    if code is None:
        inner = function.func if isinstance(function, functools.partial) else function
        return getattr(inner, "__name__", type(inner).__name__)
    if code.co_name != "<lambda>":
        return str(code.co_name)
    text = _lambda_text(code) or "lambda"
    return text if len(text) <= LENGTH else f"{text[: LENGTH - 1]}…"


def _lambda_text(code: CodeType) -> str | None:
    """Return the body of the lambda that a code object was compiled from, found by where its instructions stand."""
    try:
        tree = _parsed(code.co_filename)
    except SyntaxError:
        return None
    line = code.co_firstlineno
    bodies = [node.body for node in ast.walk(tree) if isinstance(node, ast.Lambda) and node.lineno == line]
    spans = _spans(code)
    holding = [body for body in bodies if all(_holds(body, span) for span in spans)]
    if not holding or (not spans and len(holding) > 1):  # a constant may stand nowhere, and could be any of them
        return None
    return ast.unparse(max(holding, key=lambda body: (body.lineno, body.col_offset)))  # the innermost


@functools.lru_cache(maxsize=16)
def _parsed(filename: str) -> ast.Module:
    return ast.parse("".join(linecache.getlines(filename)))


def _spans(code: CodeType) -> list[tuple[tuple[int, int], tuple[int, int]]]:
    """Return where the instructions of a code object begin and end; those that only set it up stand nowhere."""
    return [
        ((line, column), (end_line, end_column))
        for line, end_line, column, end_column in code.co_positions()
        if line is not None and end_line is not None and column is not None and end_column
    ]


def _holds(body: ast.expr, span: tuple[tuple[int, int], tuple[int, int]]) -> bool:
    start, end = span
    return (body.lineno, body.col_offset) <= start and end <= (body.end_lineno or 0, body.end_col_offset or 0)
