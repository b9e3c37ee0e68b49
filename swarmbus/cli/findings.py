"""Findings and their codes as text, and as annotations for GitHub."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from swarmbus.codes import CODES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from swarmbus.results import Finding


def has_errors(findings: Sequence[Finding]) -> bool:
    """Whether one of them keeps the swarm from starting."""
    return any(finding.severity == "error" for finding in findings)


def to_text(findings: Sequence[Finding]) -> str:
    """Write findings for a person, with their number at the end."""
    errors = sum(finding.severity == "error" for finding in findings)
    warnings = len(findings) - errors
    total = ", ".join([*_counted(errors, "error"), *_counted(warnings, "warning")]) or "the wiring is sound"
    return "".join(f"{line}\n" for line in [*map(str, findings), total])


def annotation(finding: Finding) -> str:
    """Write a finding as a workflow command of GitHub Actions, which shows it beside the line of code."""
    file, _, line = (finding.where or "").rpartition(":")
    place = f"file={_property(file)},line={line}," if file else ""
    message = finding.message + (f"\n{finding.hint}" if finding.hint else "")
    title = _property(f"{finding.code} {CODES[finding.code].title}")
    return f"::{finding.severity} {place}title={title}::{_message(message)}\n"


def codes(*, as_json: bool) -> str:
    """Write what each code means."""
    if as_json:
        return json.dumps([{"code": code, **entry._asdict()} for code, entry in CODES.items()], indent=2) + "\n"
    lines = [f"{code}  {entry.severity:7}  {entry.title}: {entry.explanation}" for code, entry in CODES.items()]
    return "\n".join(lines) + "\n"


def _counted(number: int, noun: str) -> list[str]:
    return [f"{number} {noun}{'s' if number > 1 else ''}"] if number else []


def _message(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _message(text).replace(":", "%3A").replace(",", "%2C")
