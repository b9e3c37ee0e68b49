"""The files that a report goes to: not one file for two of them, none of the documents, and none that held more."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from roles.analysis.documents import NoDocumentsError, find_files
from roles.analysis.report import earlier_report

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from roles.analysis.report import Report

STANDARD_OUTPUT = Path("-")


class DestinationError(ValueError):
    """A report can't go where it is to go.

    Attributes:
        option: the option that says so.
    """

    def __init__(self, option: str, message: str) -> None:
        super().__init__(message)
        self.option = option


def refuse_one_for_two(destinations: Mapping[str, Path]) -> None:
    """Raise `DestinationError` where two options name the same file."""
    named: dict[object, str] = {}
    for option, path in destinations.items():
        other = named.setdefault(_identity(path), option)
        if other != option and not _takes_both(path):
            raise DestinationError(option, f"{path} is where {other} goes too; name another file for one of them")


def documents_beside(given: Sequence[str], destinations: Mapping[str, Path]) -> tuple[list[str], list[str]]:
    """Return the files that are documents, and those that are none because the new report takes an earlier one's place.

    Raises:
        NoDocumentsError: there is no document.
        DestinationError: the report would take the place of a document.
    """
    found = find_files(given)
    taken = {_identity(path): (option, path) for option, path in destinations.items() if path.is_file()}
    named = {_identity(Path(path)) for path in given}
    reports = []
    for file in found if taken else ():
        identity = _identity(Path(file))
        if identity not in taken:
            continue
        option, path = taken[identity]
        if identity in named or (_earlier(path) is None and path.stat().st_size):
            raise DestinationError(option, f"{path} is one of the documents ({file}); name another file for the report")
        reports.append(file)
    documents = [file for file in found if file not in reports]
    if not documents:
        raise NoDocumentsError(f"there is no file in {', '.join(given)} beside the report")
    return documents, reports


def keeps_more(path: Path, report: Report) -> bool:
    """Whether a file holds something that a report without any answer must not take the place of."""
    return not report.answers and path.is_file() and path.stat().st_size > 0 and _earlier(path) is not False


def _earlier(path: Path) -> bool | None:
    try:
        return earlier_report(path.read_text(encoding="utf-8", errors="replace"))
    except OSError:
        return None


def _identity(path: Path) -> object:
    """Return what two paths share that lead to one file, through links of any kind."""
    try:
        status = path.stat()
    except OSError:
        return os.path.realpath(path)
    return status.st_dev, status.st_ino


def _takes_both(path: Path) -> bool:
    """Whether it is a device or a pipe, where nothing is replaced; standard output takes one."""
    return path != STANDARD_OUTPUT and path.exists() and not path.is_file()
