"""The rules of the check about what follows from what: flow (SB2xx), and map and join (SB3xx)."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import combinations
from types import NoneType
from typing import Any, get_args, get_origin

from swarmbus.codes import finding
from swarmbus.events import Event
from swarmbus.fields import bare, describe, members
from swarmbus.reach import Reach
from swarmbus.results import Finding
from swarmbus.table import CLIENT, External, is_event, row_text
from swarmbus.text import did_you_mean
from swarmbus.wiring import HandlerWiring
from swarmbus.wording import placed, publishers_of, unpublished


def one_sided_rows(swarm: Reach) -> Iterator[Finding]:
    """SB201, SB202: a row without handlers or publishers."""
    for entry in swarm.entries:
        name, where = entry.event.__name__, swarm.table.where
        if not swarm.table.rows[entry.index].handlers:
            hint = "name a handler; CLIENT, if the client is to see it"
            yield finding("SB201", f"{row_text(entry)} has nobody handle {name}", hint, event=name, where=where)
        if not swarm.table.rows[entry.index].publishers:
            waiting = placed(step.handler for step in swarm.receivers(entry))
            told = f"{row_text(entry)} has nobody publish {name}" + (f", and {waiting} waits for it" if waiting else "")
            told += f"; {publishers_of(swarm, entry.event)}"
            yield finding("SB202", told, "name a publisher, or drop the row", event=name, where=where)


def roles_out_of_reach(swarm: Reach) -> Iterator[Finding]:
    """SB203: nothing from outside leads to a role."""
    reached = swarm.from_outside()
    for role in swarm.roles.values():
        if role.handlers and not any(handler.qualified in reached for handler in role.handlers):
            waits = dict.fromkeys(event for handler in role.handlers for event in handler.handles)
            missing = unpublished(swarm, waits)
            told = f"{role.name} is never reached from the client: it waits for {', '.join(e.__name__ for e in waits)}"
            told += f"; {missing}" if missing else ""
            hint = "have a role that is reached publish one of them, or take the role out"
            yield finding("SB203", told, hint, role=role.name, where=role.handlers[0].where)


def result_out_of_reach(swarm: Reach) -> Iterator[Finding]:
    """SB204: no path leads to the result."""
    result, where = swarm.table.result, swarm.table.where
    if result is None or not is_event(result):
        return
    rows = [entry for entry in swarm.entries if swarm.is_result(entry)]
    name = result.__name__
    if not rows:
        sent = [entry.event.__name__ for entry in swarm.entries if CLIENT in entry.handlers]
        told = f"the result {name} is never sent to the client: no row has CLIENT handle it{did_you_mean(name, sent)}"
        hint = f"add the row (..., {name}, CLIENT)"
        hint += f", or name as the result what the client is sent: {' or '.join(dict.fromkeys(sent))}" if sent else ""
        yield finding("SB204", told, hint, event=name, where=where)
        return
    reached = swarm.from_outside()
    for entry in rows:
        for publisher in entry.publishers:
            if not isinstance(publisher, str) or publisher not in swarm.roles:
                return
            if any(handler.qualified in reached for handler in swarm.publishers(entry, publisher)):
                return
    publishers = ", ".join(sorted({str(publisher) for entry in rows for publisher in entry.publishers})) or "nobody"
    told = f"the result {name} can never be produced: no event from the client leads to its publisher ({publishers})"
    hint = "follow the table from CLIENT to the result, and add the row that is missing"
    yield finding("SB204", told, hint, event=name, where=where)


def endless_cycles(swarm: Reach) -> Iterator[Finding]:
    """SB205: a cycle that nothing ends."""
    for cycle in swarm.cycles():
        if _ends(swarm, cycle):
            continue
        path = " -> ".join(handler.qualified for handler in (*cycle, cycle[0]))
        to_result = "" if swarm.table.result is None else f", nor is there a path to {_result_name(swarm)}"
        told = f"the cycle {path} has no way out: none of its handlers can publish anything else or nothing{to_result}"
        hint = "let one of them return an event that leads on, or None"
        first = cycle[0]
        events = [step.entry.event.__name__ for step in swarm.steps(first) if step.handler in cycle]
        yield finding("SB205", told, hint, role=first.role, event=next(iter(events), None), where=first.where)


def _ends(swarm: Reach, cycle: list[HandlerWiring]) -> bool:
    if any(swarm.sends_result(handler) for handler in swarm.after(cycle).values()):
        return True
    for handler in cycle:
        onward = {step.entry.event for step in swarm.steps(handler) if step.handler in cycle}
        if handler.silent or any(entry.event not in onward for entry in swarm.published(handler)):
            return True
    return False


def _result_name(swarm: Reach) -> str:
    return getattr(swarm.table.result, "__name__", "the result")


def mapped_fields(swarm: Reach) -> Iterator[Finding]:
    """SB301, SB302: what `each` names."""
    for handler in swarm.handlers:
        if not isinstance(handler.each, str):
            continue
        for event in handler.accepts:
            yield from _mapped_field(handler, event, handler.each)


def _mapped_field(handler: HandlerWiring, event: type[Event], name: str) -> Iterator[Finding]:
    place = {"role": handler.role, "event": event.__name__, "where": handler.where}
    field = event.__pydantic_fields__.get(name)
    if field is None:
        told = f'{handler.qualified} has each="{name}", but {event.__name__} has no such field'
        hint = f"its fields are {', '.join(event.__pydantic_fields__) or 'none'}"
        yield finding("SB301", told + did_you_mean(name, event.__pydantic_fields__), hint, **place)
        return
    annotation = bare(field.annotation)
    if not _is_sequence(annotation):
        told = (
            f'{handler.qualified} has each="{name}", but {event.__name__}.{name} is {describe(annotation)}, no sequence'
        )
        yield finding("SB301", told, f"make the field a tuple, such as {_as_sequence(annotation)}", **place)
        return
    wanted = members(handler.each_type) if handler.each_type is not None else (Any,)
    given = [member for arg in get_args(annotation) if arg is not Ellipsis for member in members(arg)]
    wrong = [member for member in given if not _fits(member, wanted)]
    if wrong:
        told = (
            f"{handler.qualified} takes items of {describe(handler.each_type)}, but {event.__name__}.{name} holds "
            f"{describe(wrong[0])}"
        )
        yield finding("SB302", told, "make the parameter's annotation and the field agree", **place)


def _fits(given: Any, wanted: tuple[Any, ...]) -> bool:
    """Whether a type fits one of others, as far as plain classes tell."""
    if Any in (given, *wanted) or not all(isinstance(each, type) for each in (given, *wanted)):
        return True
    return issubclass(given, wanted) or (given is int and float in wanted)


def joins_out_of_reach(swarm: Reach) -> Iterator[Finding]:
    """SB303, SB308: a contribution that nothing below the opener publishes, or that an outside program may bring."""
    for join in _joins(swarm):
        assert join.opener is not None
        below = swarm.openers_scope(join.opener).values()
        for contribution in join.accepts if swarm.is_given(join) else ():
            inside = any(_contributes(swarm, handler, contribution, join) for handler in below)
            outside = _answering(swarm, join, contribution)
            place = {"role": join.role, "event": contribution.__name__, "where": join.where}
            if not inside:
                told = (
                    f"{join.qualified} joins {contribution.__name__} per {join.opener.__name__}, but nothing that "
                    f"{join.opener.__name__} leads to publishes {contribution.__name__} to {join.role}"
                )
                hint = f"name in per= an event from which {contribution.__name__} follows, or add the missing row"
                if outside is not None:
                    told += f"; it follows from what {outside.name} answers, for which a join does not wait"
                yield finding("SB303", told, hint if outside is None else _WAIT_FOR_OUTSIDE, **place)
            elif outside is not None:
                told = (
                    f"{join.qualified} does not wait for {contribution.__name__} that follows from what {outside.name} "
                    "answers: once nothing within the swarm can publish it any more, it fires"
                )
                yield finding("SB308", told, _WAIT_FOR_OUTSIDE, **place)


_WAIT_FOR_OUTSIDE = (
    "ask with ctx.ask_person, which keeps the delivery open until run.answer, or count the answers in a role's State"
)


def _answering(swarm: Reach, join: HandlerWiring, contribution: type[Event]) -> External | None:
    """Return a program outside that gets an event below a join's opener and whose answer can bring a contribution."""
    assert join.opener is not None
    rows = [entry for entry in swarm.entries if issubclass(entry.event, join.opener)]
    for handler in swarm.openers_scope(join.opener).values():
        rows += swarm.published(handler)
    asked = {party for entry in rows for party in entry.handlers if isinstance(party, External)}
    for entry in swarm.entries:
        program = next((party for party in entry.publishers if party in asked), None)
        if not isinstance(program, External) or issubclass(entry.event, join.opener):
            continue
        taking = [step.handler for step in swarm.receivers(entry) if step.handler.kind == "on" or step.opens]
        direct = join.role in entry.handlers and issubclass(entry.event, contribution)
        if direct or any(_contributes(swarm, each, contribution, join) for each in swarm.below(taking).values()):
            return program
    return None


def _contributes(swarm: Reach, handler: HandlerWiring, contribution: type[Event], join: HandlerWiring) -> bool:
    return bool(_contributed(swarm, handler, contribution, join))


def _contributed(
    swarm: Reach, handler: HandlerWiring, contribution: type[Event], join: HandlerWiring
) -> list[type[Event]]:
    """Return the events that a handler publishes to a join's role as a contribution, or as what derives from it."""
    published = swarm.published(handler)
    return [entry.event for entry in published if join.role in entry.handlers and issubclass(entry.event, contribution)]


def joins_within_themselves(swarm: Reach) -> Iterator[Finding]:
    """SB304: an opener below itself, whose join ends the run."""
    for join in _joins(swarm):
        assert join.opener is not None
        below = swarm.openers_scope(join.opener).values()
        again = [event for handler in below for event in _contributed(swarm, handler, join.opener, join)]
        if again and swarm.sends_result(join):
            opener = join.opener.__name__
            counts = "" if join.opener in again else f"{again[0].__name__}, which counts as its base "
            told = (
                f"{join.qualified} opens again within its own scope, for {opener} leads to {counts}{opener}; "
                f"the first of these joins to fire would end the run with {_result_name(swarm)}"
            )
            hint = "publish another event inside, which opens no join, or let another handler publish the result"
            yield finding("SB304", told, hint, role=join.role, event=join.opener.__name__, where=join.where)


def rival_joins(swarm: Reach) -> Iterator[Finding]:
    """SB305: two joins of a role that a contribution could belong to."""
    for first, second in combinations(_joins(swarm), 2):
        if first.role != second.role or not _overlap(swarm, first, second):
            continue
        for event in second.accepts:
            if any(issubclass(event, other) or issubclass(other, event) for other in first.accepts):
                told = f"{event.__name__} could belong to {first.qualified} ({first.where}) and to {second.qualified}"
                hint = "give each join contributions of its own, or put the joins into two roles"
                yield finding("SB305", told, hint, role=second.role, event=event.__name__, where=second.where)


def _overlap(swarm: Reach, first: HandlerWiring, second: HandlerWiring) -> bool:
    """Whether the scopes of two joins can lie in one another."""
    assert first.opener is not None
    assert second.opener is not None
    if issubclass(first.opener, second.opener) or issubclass(second.opener, first.opener):
        return True
    return any(
        _contributes(swarm, handler, inner.opener, inner)
        for outer, inner in ((first, second), (second, first))
        if outer.opener is not None and inner.opener is not None
        for handler in swarm.openers_scope(outer.opener).values()
    )


def endless_handlers(swarm: Reach) -> Iterator[Finding]:
    """SB306: a handler that may run for ever."""
    for handler in swarm.handlers:
        if handler.timeout is not None and math.isinf(handler.timeout):
            told = f"{handler.qualified} has no time limit"
            hint = "give it a timeout; ctx.progress(...) renews it while the handler gets on"
            yield finding("SB306", told, hint, role=handler.role, where=handler.where)


def named_keys(swarm: Reach) -> Iterator[Finding]:
    """SB307: fields that `key` and `expect` name."""
    for join in _joins(swarm):
        named = [("key", join.key, event) for event in join.accepts]
        named += [("expect", join.expect, join.opener)] if isinstance(join.expect, str) and join.opener else []
        for option, name, event in named:
            if name is None:
                continue
            place = {"role": join.role, "event": event.__name__, "where": join.where}
            field = event.__pydantic_fields__.get(name)
            if field is None:
                near = did_you_mean(name, event.__pydantic_fields__)
                told = f'{join.qualified} has {option}="{name}", but {event.__name__} has no such field{near}'
                hint = f"its fields are {', '.join(event.__pydantic_fields__) or 'none'}"
                yield finding("SB307", told, hint, **place)
            elif option == "expect" and not _is_sequence(field.annotation):
                what = f"{event.__name__}.{name} is {describe(bare(field.annotation))}, no sequence"
                told = f'{join.qualified} has expect="{name}", but {what}'
                yield finding("SB307", told, "make the field a tuple of keys, such as tuple[str, ...]", **place)


def _is_sequence(annotation: Any) -> bool:
    annotation = bare(annotation)
    return (get_origin(annotation) or annotation) is tuple


def _as_sequence(annotation: Any) -> str:
    """Return the sequence to write in place of another type; what is one or None has none when it is empty."""
    parts = [part for part in members(annotation) if part is not NoneType]
    if len(parts) == 1 and _is_sequence(parts[0]):
        return f"{describe(parts[0])}, empty where there is none"
    return f"tuple[{describe(annotation)}, ...]"


def _joins(swarm: Reach) -> list[HandlerWiring]:
    return [handler for handler in swarm.handlers if handler.kind == "join" and handler.opener is not None]


FLOW_RULES = (
    one_sided_rows,
    roles_out_of_reach,
    result_out_of_reach,
    endless_cycles,
    mapped_fields,
    joins_out_of_reach,
    joins_within_themselves,
    rival_joins,
    endless_handlers,
    named_keys,
)
