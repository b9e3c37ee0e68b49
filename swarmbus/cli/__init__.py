"""The command line: `swarmbus check`, `table`, `graph`, `run`, and the commands that packages add to it.

A command of another package is a function for typer, named in the entry point group `swarmbus.commands`; what it
needs of the command line beside typer is here.
"""

from swarmbus.cli.files import WriteError, named_file, unwritable
from swarmbus.cli.foreign import user_code
from swarmbus.cli.interrupts import GRACE, Stop, stopping
from swarmbus.cli.leaving import Leaving
from swarmbus.cli.output import ExitCode, notice, write_data, write_text
from swarmbus.cli.start import main
from swarmbus.cli.streams import STREAMS

__all__ = [
    "GRACE",
    "STREAMS",
    "ExitCode",
    "Leaving",
    "Stop",
    "WriteError",
    "main",
    "named_file",
    "notice",
    "stopping",
    "unwritable",
    "user_code",
    "write_data",
    "write_text",
]
