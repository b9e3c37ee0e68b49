"""Files that commands write: what can't be written is told before the work, and what was there is replaced whole."""

from __future__ import annotations

import errno
import os
import select
import stat
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from io import FileIO


class WriteError(OSError):
    """What can't be written, and why, in words."""

    @classmethod
    def of(cls, place: object, error: OSError) -> WriteError:
        """Say it of an error of the system's."""
        return cls(f"{place} can't be written: {error.strerror or error}")


def named_file(written: str) -> Path:
    """Return the path of a file to write, as it stands on the command line.

    Raises:
        typer.BadParameter: a folder is named, there or not.
    """
    import typer  # noqa: PLC0415  # whoever listens to signals has no time for it before

    if written.endswith(_BEHIND_FOLDERS):
        raise typer.BadParameter(f"{written} is a folder; name a file")
    return Path(written)


def unwritable(path: Path) -> str:
    """Return why a file can't be written, in words; nothing where it can."""
    try:
        if path.is_dir():
            return f"{path} is a folder; name a file"
        if not path.parent.is_dir():
            return f"there is no folder {path.parent}"
        if path.is_symlink():
            with suppress(FileNotFoundError):  # where it leads to, a file can be made
                path.stat()
        if not os.access(path if path.exists() else path.parent, os.W_OK):
            return f"no permission to write {path}"
    except OSError as error:  # a name that is too long, a path that may not be followed
        return str(WriteError.of(path, error))
    return ""


_BEHIND_FOLDERS = ("/", os.sep)

_STAYS = (errno.EBUSY, errno.EPERM, errno.EACCES)
"""The errors where a file can't be replaced that may be written: it is mounted, or another's in a sticky folder."""

PATIENCE = 30.0
"""Seconds for which a pipe that is open may take nothing."""


def write_file(path: Path, text: str, *, patience: float = PATIENCE) -> None:
    """Write text as UTF-8. A file that was there keeps what it held where the text can't be written whole.

    Args:
        path: the file, or a device or pipe.
        text: all that it is to hold.
        patience: seconds for which a pipe may take nothing.

    Raises:
        WriteError: the text can't be written.
    """
    data = text.encode("utf-8", "backslashreplace")
    try:
        if path.exists() and not path.is_file():  # a device or a pipe, which can't be replaced
            _write_into(path, data, patience)
            return
        target = Path(os.path.realpath(path))  # a link stays a link
        if not os.access(target.parent, os.W_OK) or not _replaced(target, data):
            _overwrite(target, data)
    except OSError as error:
        raise WriteError.of(path, error) from error


def _write_into(path: Path, data: bytes, patience: float) -> None:
    """Write to what is not replaced; a pipe that nobody reads is an error, as there may never be anybody."""
    try:
        number = os.open(path, os.O_WRONLY | getattr(os, "O_NONBLOCK", 0))
    except OSError as error:
        raise OSError(error.errno, "nobody reads it") if error.errno == errno.ENXIO else error from error
    try:
        rest = memoryview(data)
        while rest:
            if not _takes_more(number, patience):
                raise OSError(errno.ETIMEDOUT, f"its reader has read nothing for {patience:g} seconds")
            rest = rest[os.write(number, rest) :]
    finally:
        os.close(number)


def _takes_more(number: int, patience: float) -> bool:
    """Wait until a pipe has room; one that is standard output may be read as slowly as that."""
    if not hasattr(select, "poll"):
        return True
    waiting = select.poll()
    waiting.register(number, select.POLLOUT)
    with suppress(OSError):  # it may be closed
        if os.path.samestat(os.fstat(number), os.fstat(1)):
            return bool(waiting.poll())
    return bool(waiting.poll(patience * 1000))


def _replaced(target: Path, data: bytes) -> bool:
    """Put a new file in the place of an old one, unless that has to stay where it is."""
    beside = target.with_name(f".swarmbus-{os.urandom(8).hex()}")
    try:
        with beside.open("xb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        if target.exists():
            _liken(beside, target.stat())
        try:
            beside.replace(target)
        except OSError as error:
            if error.errno not in _STAYS or not target.is_file():
                raise
            beside.unlink()
            return False
    except BaseException:
        beside.unlink(missing_ok=True)
        raise
    return True


def _overwrite(target: Path, data: bytes) -> None:
    """Write into the old file, which gets back what it held where the disk does not take all of the new text."""
    with target.open("r+b", buffering=0) as file:
        before = file.read()
        try:
            _put(file, data)
        except BaseException:
            _put(file, before)  # into the space that it has
            raise


def _put(file: FileIO, data: bytes) -> None:
    file.seek(0)
    rest = memoryview(data)
    while rest:
        rest = rest[file.write(rest) or 0 :]
    file.truncate()
    os.fsync(file.fileno())


def _liken(path: Path, before: os.stat_result) -> None:
    """Give a file the owner, as far as that may be, and the mode of the one whose place it takes."""
    with suppress(PermissionError, AttributeError):  # not every system has owners
        os.chown(path, before.st_uid, before.st_gid)
    path.chmod(stat.S_IMODE(before.st_mode))
