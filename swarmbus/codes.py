"""The codes of the check: one table of what each means, so that messages, `swarmbus check --list` and docs agree."""

from __future__ import annotations

from typing import NamedTuple

from swarmbus.results import Finding, Severity


class Code(NamedTuple):
    """One kind of finding: a short title, whether it keeps a swarm from starting, and a sentence that explains it."""

    title: str
    severity: Severity
    explanation: str


CODES: dict[str, Code] = {
    "SB101": Code("handled, not in the table", "error", "A handler takes an event that no row gives to its role."),
    "SB102": Code("in the table, not handled", "error", "A row gives an event to a role that has no handler for it."),
    "SB103": Code(
        "published, not in the table", "error", "A handler publishes an event that no row lets its role publish."
    ),
    "SB104": Code(
        "in the table, not published", "error", "A row has a role publish an event that no handler of it publishes."
    ),
    "SB105": Code(
        "unknown role", "error", "A row, or the mapping given as model=, names a role that the swarm does not have."
    ),
    "SB106": Code("duplicate row", "error", "The table says the same twice."),
    "SB107": Code("not an event", "error", "A row or an annotation names a class that does not derive from Event."),
    "SB108": Code(
        "annotation says nothing",
        "error",
        "An annotation that should name events is missing, or is Any, dict or the like.",
    ),
    "SB109": Code(
        "annotation can't be resolved",
        "error",
        "An annotation names what does not exist at run time, or a type variable nobody bound.",
    ),
    "SB110": Code(
        "two roles with one name",
        "error",
        "Two roles of the swarm have the same name; give one of them another with named().",
    ),
    "SB111": Code(
        "two events with one name",
        "error",
        "Two event classes have the same name on the wire, so that a receiver can't tell them apart.",
    ),
    "SB112": Code(
        "two handlers for one event",
        "error",
        "Two handlers of a role take the same event, and no `when` decides between them.",
    ),
    "SB113": Code(
        "parameters that can't be filled", "error", "A handler takes other parameters than it is called with."
    ),
    "SB114": Code("role without handlers", "error", "A role has no method with @on or @join."),
    "SB115": Code(
        "framework event misused",
        "error",
        "SYSTEM handles an event, publishes one that is not the framework's, or a role publishes one that is.",
    ),
    "SB116": Code(
        "decorator against annotation", "error", "A handler's decorator names an event that its annotation leaves out."
    ),
    "SB201": Code("event nobody handles", "error", "A row names no handler."),
    "SB202": Code("event nobody publishes", "error", "A row names no publisher."),
    "SB203": Code(
        "role never reached", "error", "No event from the client or from outside leads to any handler of the role."
    ),
    "SB204": Code("result never produced", "error", "No path leads from the client to the event that ends a run."),
    "SB205": Code(
        "cycle with no way out",
        "error",
        "Handlers keep publishing to one another, and none of them can stop or reach the result.",
    ),
    "SB301": Code("each is no sequence", "error", "`each` names a field that does not exist or holds no sequence."),
    "SB302": Code(
        "item of another type", "error", "The items of the field that `each` names do not fit the handler's parameter."
    ),
    "SB303": Code(
        "join out of reach", "error", "Nothing that follows from the event in per= can publish what the join waits for."
    ),
    "SB304": Code(
        "join inside itself ends the run",
        "error",
        "A join opens again within its own scope, and the first to fire would end the run.",
    ),
    "SB305": Code("contribution to two joins", "error", "Two joins of a role could take the same contribution."),
    "SB306": Code("handler without timeout", "warning", "A handler may run for ever."),
    "SB307": Code(
        "key is no field",
        "error",
        "`key` or `expect` of a join names a field that does not exist, or `expect` one that holds no sequence.",
    ),
    "SB308": Code(
        "join does not wait for outside",
        "warning",
        "A contribution can follow from what an outside program answers, and the join fires without waiting for it.",
    ),
    "SB401": Code(
        "tool without declared effects",
        "warning",
        "A tool does not say what repeating it would do, and counts as at_most_once.",
    ),
    "SB402": Code(
        "retry repeats a tool", "error", "Retry(fresh=True) forgets recorded calls of a role with an at_most_once tool."
    ),
    "SB403": Code(
        "tool no model can call",
        "error",
        "A tool's signature says too little or what no model can give, or two tools of a role have one name.",
    ),
    "SB601": Code("unknown model", "error", "A role would ask a model by a name that nothing resolves."),
    "SB602": Code("role without a model", "error", "A role's handler asks a model, and only other roles have one."),
}
"""Every code, in order."""


def finding(
    code: str,
    message: str,
    hint: str,
    *,
    role: str | None = None,
    event: str | None = None,
    where: str | None = None,
) -> Finding:
    """Make a finding with the severity that its code has."""
    return Finding(code, CODES[code].severity, message, role, event, where, hint)
