"""Errors of the user's code, as its author wants to see them: without the frames of those who called it."""

from __future__ import annotations

import traceback
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from types import TracebackType

_OURS = str(Path(__file__).parent.parent)
_BETWEEN = ("<frozen ", "/importlib/__init__.py", "/anyio/", "/concurrent/futures/")


def own_traceback(error: BaseException) -> str:
    """Return an error with the frames from the user's code on; those of the import system are left out throughout."""
    told = traceback.TracebackException(type(error), error, _from_user_code(error.__traceback__))
    told.stack = traceback.StackSummary.from_list([frame for frame in told.stack if not _is_between(frame.filename)])
    return "".join(told.format()).rstrip()


def _from_user_code(at: TracebackType | None) -> TracebackType | None:
    while at is not None:
        filename = at.tb_frame.f_code.co_filename
        if not filename.startswith(_OURS) and not _is_between(filename):
            return at
        at = at.tb_next
    return None


def _is_between(filename: str) -> bool:
    return any(part in filename.replace("\\", "/") for part in _BETWEEN)
