"""The program `swarmbus`: its commands and those that installed packages add, and what happens to errors."""

from __future__ import annotations

from importlib.metadata import entry_points, version
from typing import TYPE_CHECKING, Annotated, Any

import typer

from swarmbus.cli import commands
from swarmbus.cli.output import EXIT_CODE_HELP, ExitCode, notice, write_text
from swarmbus.cli.targets import TargetError, import_module
from swarmbus.errors import SwarmbusError
from swarmbus.text import error_text

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from importlib.metadata import EntryPoint

GROUP = "swarmbus.commands"

COMMANDS: tuple[Callable[..., None], ...] = (commands.check, commands.table, commands.graph, commands.run)

_ANY_ARGUMENTS = {"allow_extra_args": True, "ignore_unknown_options": True}


def run_program(arguments: Sequence[str]) -> int:
    """Carry out the command that the arguments name, and return the exit code."""
    try:
        typer.main.get_command(_program(arguments))(arguments, prog_name="swarmbus")
    except SystemExit as ended:
        return ended.code if isinstance(ended.code, int) else ExitCode.DONE
    except SwarmbusError as error:
        notice(error_text(error))
    except OSError as error:
        notice(f"error: {error if error.filename or not error.strerror else error.strerror}")
    return ExitCode.FAILED


def _program(arguments: Sequence[str]) -> typer.Typer:
    program = typer.Typer(
        help="Multi-agent work on a typed event bus whose wiring is checked before the run.",
        add_completion=False,
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,
    )
    program.callback(epilog=EXIT_CODE_HELP)(_options)
    for command in COMMANDS:
        program.command(epilog=EXIT_CODE_HELP)(command)
    for entry in _added(arguments):
        _add(program, entry)
    return program


def _print_version(given: bool) -> None:
    if given:
        write_text(f"swarmbus {version('swarmbus')}\n")
        raise typer.Exit


def _options(
    show_version: Annotated[bool, typer.Option("--version", is_eager=True, callback=_print_version)] = False,
) -> None:
    """Multi-agent work on a typed event bus whose wiring is checked before the run."""


def _added(arguments: Sequence[str]) -> list[EntryPoint]:
    """Return the commands of packages that may be needed: the one that is called, or all where help could list them."""
    called = next((argument for argument in arguments if not argument.startswith("-")), None)
    if called in {command.__name__ for command in COMMANDS}:
        return []
    added = sorted(entry_points(group=GROUP), key=lambda entry: entry.name)
    return [entry for entry in added if entry.name == called] or added


def _add(program: typer.Typer, entry: EntryPoint) -> None:
    """Add a package's command; one that can't be loaded says so when it is called."""
    try:
        function: Any = getattr(import_module(entry.module), entry.attr)
    except (TargetError, AttributeError) as error:
        reason = str(error)

        def broken() -> None:
            notice(reason)
            raise typer.Exit(ExitCode.FAILED)

        told = f"(can't be loaded: {reason.splitlines()[-1]})"
        program.command(entry.name, help=told, context_settings=_ANY_ARGUMENTS)(broken)
        return
    program.command(entry.name, epilog=EXIT_CODE_HELP)(function)
