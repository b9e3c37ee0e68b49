"""The person who sits before the command line: is asked what a run wants to know, and answers on standard input."""

from __future__ import annotations

import json
import os
import sys
from typing import TYPE_CHECKING, Any

import anyio
import anyio.lowlevel

from swarmbus.cli.output import notice
from swarmbus.errors import QuestionError, RunEnded
from swarmbus.graph.text import printable

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager

    from swarmbus.run import Run

PAUSED = "  (the time limit is paused while all that is left waits for an answer)"

_KINDS = {"boolean": "yes or no", "integer": "a whole number", "number": "a number"}

NO_ANSWER = "a person is asked, and standard input has no answer"


class Person:
    """Answers the questions of a run, one after the other, a line for each.

    Args:
        quiet: what keeps the screen still while a question stands on it.
        timed: whether the run has a time limit, of which the first question says that it is paused.
    """

    def __init__(self, quiet: Callable[[], AbstractContextManager[None]], *, timed: bool = False) -> None:
        self._quiet = quiet
        self._timed = timed
        self._lock = anyio.Lock()
        self._asked: set[str] = set()
        self._lines = _Lines()

    async def answer(self, run: Run[Any]) -> None:
        """Answer what the run asks now; where there is no more input, cancel it, as it would wait for ever."""
        async with self._lock:
            for question, asked in list(run.questions.items()):
                if question not in self._asked:
                    self._asked.add(question)
                    with self._quiet():
                        await self._answer(run, question, asked)

    async def _answer(self, run: Run[Any], question: str, asked: dict[str, Any]) -> None:
        content, schema = asked["question"], asked["reply"]
        text = content if isinstance(content, str) else json.dumps(content, ensure_ascii=False)
        notice("? " + "\n  ".join(map(printable, [*text.splitlines(), *_wanted(schema)])))
        if self._timed:
            notice(PAUSED)
            self._timed = False
        while question in run.questions:
            line = await self._lines.next()
            if line is None:
                await run.cancel(NO_ANSWER)
                return
            try:
                await run.answer(question, _value(line, schema))
            except QuestionError as error:
                notice(str(error))
            except RunEnded:  # meanwhile; how is told as it is of every run
                return


class _Lines:
    """The lines of standard input, read without holding up anything else."""

    def __init__(self) -> None:
        self._rest = b""

    async def next(self) -> str | None:
        """Return the next line, or None at the end of the input."""
        if sys.stdin is None:
            return None
        number = sys.stdin.fileno()
        while b"\n" not in self._rest:
            try:
                await anyio.wait_readable(number)
            except OSError:  # a file, for whose lines nobody has to wait
                await anyio.lowlevel.checkpoint()
            chunk = os.read(number, 65536)
            if not chunk:
                break
            self._rest += chunk
        if not self._rest:
            return None
        line, _, self._rest = self._rest.partition(b"\n")
        return line.decode(errors="replace").strip()


def _wanted(schema: dict[str, Any]) -> list[str]:
    """Say what may be answered, where it is not any text."""
    if choices := schema.get("enum"):
        return [f"one of: {', '.join(map(str, choices))}"]
    kind = schema.get("type", "")
    return [] if kind == "string" else [_KINDS.get(kind, f"as JSON of this form: {json.dumps(schema)}")]


def _value(line: str, schema: dict[str, Any]) -> Any:
    if schema.get("type") == "string":
        return line
    try:
        return json.loads(line)
    except json.JSONDecodeError:
        return line
