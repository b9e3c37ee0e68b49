"""The features of programs and runs that are counted, so that it shows what the random runs have seen."""

from __future__ import annotations

from collections.abc import Iterator

from ledger_model.program import Program
from ledger_model.tree import Contents, Join, Map


def of_program(program: Program) -> Iterator[str]:
    """What the wiring has."""
    if program.result is None:
        yield "no result"
    handlers = program.handlers
    for feature, present in (
        ("picky handlers", any(one.picky for one in handlers)),
        ("keyed joins", any(one.keyed for one in handlers)),
        ("expected keys", any(one.expects for one in handlers)),
        ("maps counted by a function", any(one.counted for one in handlers)),
    ):
        if present:
            yield feature


def of_contents(contents: Contents) -> Iterator[str]:
    """What a join fires with."""
    parts = [part for part in ("done", "failed", "missing", "cancelled") if getattr(contents, part)]
    for part in parts or ("nothing",):
        yield f"fired with {part}"


def of_join(join: Join, earlier: list[Join]) -> Iterator[str]:
    """How a new join lies to others; `earlier` are all of the same handler."""
    above = [other for place in join.node.up() for other in place.joins]
    if above:
        yield "join in a join"
    if len({id(other.scope) for other in above}) > 2:
        yield "join four deep"
    if any(other.handler == join.handler for other in above):
        yield "join reopened in its own scope"
    if any(other.node is join.node for other in earlier):
        yield "join opened again beside its scope"
    if len(join.scope.joins) > 1:
        yield "two joins of one opener"


def of_map(cursor: Map, earlier: list[Map]) -> Iterator[str]:
    """How a new map lies to others; `earlier` are all of the same handler."""
    depth = sum(1 for place in cursor.node.up() if place.map is not None)
    yield ("map", "map in a map", "map in a map in a map")[min(depth, 2)]
    if any(other.node is cursor.node for other in earlier):
        yield "mapped again in one scope"
