"""The commands `check`, `table`, `graph` and `run`: from arguments to what is printed, and the exit code.

What the user's code prints while it is loaded or runs goes to standard error: standard output is for results alone.
"""

from __future__ import annotations

import json
from dataclasses import asdict
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from swarmbus.cli import findings, table_view
from swarmbus.cli.files import named_file, unwritable
from swarmbus.cli.foreign import user_code
from swarmbus.cli.output import ExitCode, notice, write_data, write_text
from swarmbus.cli.targets import TargetError, load_swarm

if TYPE_CHECKING:
    from swarmbus.swarm import Swarm


class CheckFormat(StrEnum):
    """How findings are written."""

    TEXT = "text"
    JSON = "json"
    GITHUB = "github"


class TableFormat(StrEnum):
    """How a table is written."""

    TEXT = "text"
    MARKDOWN = "markdown"
    JSON = "json"


class GraphFormat(StrEnum):
    """How a picture is written."""

    TEXT = "text"
    MERMAID = "mermaid"
    DOT = "dot"
    JSON = "json"


ENDINGS = {
    ".txt": GraphFormat.TEXT,
    ".mmd": GraphFormat.MERMAID,
    ".mermaid": GraphFormat.MERMAID,
    ".dot": GraphFormat.DOT,
    ".gv": GraphFormat.DOT,
    ".json": GraphFormat.JSON,
}
"""The formats that the endings of files promise."""


class GraphView(StrEnum):
    """What a picture shows."""

    EVENTS = "events"
    ROLES = "roles"


TARGET = "MODULE:NAME, FILE.py:NAME (`:swarm` may be left out), or the name of a registered swarm."

Target = Annotated[str, typer.Argument(metavar="TARGET", help=TARGET, show_default=False)]


def check(
    target: Annotated[str | None, typer.Argument(metavar="TARGET", help=TARGET, show_default=False)] = None,
    format: Annotated[CheckFormat, typer.Option(help="How to print the findings.")] = CheckFormat.TEXT,  # noqa: A002
    list_codes: Annotated[bool, typer.Option("--list", help="Print what each code means, and check nothing.")] = False,
) -> None:
    """Compare a swarm's event table with its code. Exits with 3 where that finds an error."""
    if list_codes:
        write_data(findings.codes(as_json=format == CheckFormat.JSON))
        return
    if target is None:
        raise typer.BadParameter(f"say what to check: {TARGET}", param_hint="TARGET")
    found = swarm_of(target).check()
    if format == CheckFormat.JSON:
        write_data(json.dumps([asdict(finding) for finding in found], indent=2, ensure_ascii=False) + "\n")
    elif format == CheckFormat.GITHUB:
        write_data("".join(findings.annotation(finding) for finding in found))
    else:
        write_text(findings.to_text(found))
    if findings.has_errors(found):
        raise typer.Exit(ExitCode.FINDINGS)


def table(
    target: Target,
    format: Annotated[TableFormat, typer.Option(help="How to print the table.")] = TableFormat.TEXT,  # noqa: A002
    derive: Annotated[bool, typer.Option("--derive", help="Print the table that the code alone would give.")] = False,
) -> None:
    """Print a swarm's event table."""
    swarm = swarm_of(target)
    shown = table_view.derive(swarm.wiring, swarm.table) if derive else swarm.table
    text = table_view.FORMATS[format](shown)
    if format == TableFormat.JSON:
        write_data(text)
    else:
        write_text(text)


def graph(
    target: Target,
    view: Annotated[GraphView, typer.Option(help="Only the roles, or the events between them too.")] = GraphView.ROLES,
    format: Annotated[  # noqa: A002
        GraphFormat | None,
        typer.Option(help="How to write the picture.", show_default="by the ending of --output, else text"),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            metavar="PATH",
            parser=named_file,
            help="A file to write it to.",
            show_default="standard output",
        ),
    ] = None,
) -> None:
    """Draw a swarm: who publishes what, and who handles it; also where the check finds faults."""
    from swarmbus.graph import FORMATS, draw, mermaid  # noqa: PLC0415  # only this command draws

    output = None if str(output) == "-" else output
    if output is not None and (reason := unwritable(output)):
        raise typer.BadParameter(reason, param_hint="--output")
    chosen = _graph_format(format, output)
    picture = draw(swarm_of(target), view.value)
    text = FORMATS[chosen](picture)
    if chosen == GraphFormat.MERMAID and len(picture.edges) > mermaid.MOST_EDGES:
        notice(f"note: {len(picture.edges)} edges; without further settings Mermaid draws {mermaid.MOST_EDGES} at most")
    if chosen == GraphFormat.TEXT and output is None:
        write_text(text)
    else:
        write_data(text, output)
    if findings.has_errors(picture.findings):
        notice("the wiring has errors; they are marked in the picture, and `swarmbus check` explains them")


def _graph_format(given: GraphFormat | None, output: Path | None) -> GraphFormat:
    """Return the format that was asked for, by its name or by the ending of the file."""
    ending = output.suffix.lower() if output is not None else ""
    if given is None and ending and ending not in ENDINGS:
        known = ", ".join(ENDINGS)
        raise typer.BadParameter(
            f"no format is known by the ending {ending}; use one of {known}, or name the format with --format",
            param_hint="--output",
        )
    promised = ENDINGS.get(ending)
    if given is not None and promised is not None and given != promised:
        notice(f"note: {output} is written as {given}, as --format says, though its ending promises {promised}")
    return given or promised or GraphFormat.TEXT


def run(
    target: Target,
    event: Annotated[
        str,
        typer.Option(
            metavar="[NAME=]JSON",
            help="The event to start with; @FILE or - (standard input) may stand for the JSON.",
            show_default=False,
        ),
    ],
    model: Annotated[str | None, typer.Option(help="The model of all roles, such as openai:gpt-5-mini.")] = None,
    timeout: Annotated[
        float | None,
        typer.Option(
            help="Seconds until the run is given up; while all that is left waits for a person, they don't count.",
            min=0.001,
        ),
    ] = None,
) -> None:
    """Run a swarm on one event, and print what it brought as JSON."""
    from swarmbus.cli.run_command import run_and_report  # noqa: PLC0415  # what runs loads more than what checks

    swarm = swarm_of(target)
    raise typer.Exit(run_and_report(swarm, event, model=model, timeout=timeout))


def swarm_of(target: str) -> Swarm[Any]:
    """Return the swarm of a target, or end the program saying why there is none."""
    try:
        with user_code():
            return load_swarm(target)
    except TargetError as error:
        if error.usage:
            raise typer.BadParameter(str(error), param_hint="TARGET") from error
        notice(str(error))
        raise typer.Exit(ExitCode.USAGE) from error
