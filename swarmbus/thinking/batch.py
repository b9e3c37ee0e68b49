"""Runs the tool calls of one reply: one result per call, with the same id, whatever happens.

Whatever a tool raises becomes a result that the model reads.
"""

from __future__ import annotations

import inspect
import logging
import math
import threading
import time
from functools import partial
from typing import TYPE_CHECKING, Any

import anyio
from anyio import CancelScope, from_thread

from swarmbus.cancellation import being_cancelled
from swarmbus.errors import ToolError
from swarmbus.messages import ToolCall
from swarmbus.task_groups import side_by_side
from swarmbus.text import clean_text, error_text, text_of, traceback_text
from swarmbus.thinking.hooks import Allow, Block, Change, HookFailed, ask_hook
from swarmbus.thinking.loop_events import ToolExecutionEnd, ToolExecutionStart, ToolExecutionUpdate
from swarmbus.thinking.tool_result import ToolResult, readable
from swarmbus.thinking.tools import Tool, ToolContext
from swarmbus.threads import call_in_thread

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from swarmbus.thinking.loop_state import LoopSetup, LoopState

_log = logging.getLogger(__name__)

AT_A_TIME = 100
"""Calls of one reply that go on side by side; further ones begin as these end."""

NOT_STARTED = "the run was cancelled before this call started"
NOBODY_TO_ASK = "the call needs a person's approval, and nobody can be asked"
CUT_SHORT = "the run was cancelled while this call was under way; it may have taken effect"


class Batch:
    """The calls of one reply under way.

    Attributes:
        results: the result of each call, by position; complete once `run` is over, in every case.
    """

    def __init__(self, setup: LoopSetup, state: LoopState, calls: Sequence[ToolCall]) -> None:
        self._setup = setup
        self._state = state
        self._calls = calls
        self._started: dict[int, float] = {}
        self._open_ids: set[str] = set()
        self._decided: dict[int, dict[str, Any] | ToolResult] = {}
        self.results: dict[int, ToolResult] = {}

    async def run(self, given: Mapping[int, ToolResult]) -> None:
        """Give each call its result.

        What needs a person's approval is decided before anything runs: where the answer is not there yet, the delivery
        is given up until it comes. The calls run one after the other where there is one or a tool asks for it, side by
        side otherwise; none begins after the time that the loop has.

        Args:
            given: the results of calls that must not run, by position.

        Raises:
            BaseException: what is no `Exception` passes through, with the results completed.
        """
        tools = self._setup.tools
        waiting = [position for position in range(len(self._calls)) if position not in given]
        one_by_one = len(waiting) == 1 or any(
            call.name in tools and tools[call.name].options.sequential for call in self._calls
        )
        try:
            for position, result in given.items():
                self._start(position)
                self._end(position, result)
            for position in waiting:
                await self._seek_approval(position)
            if one_by_one:
                for position in waiting:
                    self._start(position)
                    await self._answer(position)
            elif waiting:
                for position in waiting:
                    self._start(position)
                await side_by_side(self._answer, waiting, most=AT_A_TIME)
        finally:
            self._complete()

    def _start(self, position: int) -> None:
        self._started[position] = time.monotonic()
        self._open_ids.add(self._calls[position].id)
        self._state.reporter.emit(ToolExecutionStart, call=self._calls[position])

    def _end(self, position: int, result: ToolResult, *, replayed: bool = False) -> None:
        self.results[position] = result
        self._open_ids.discard(self._calls[position].id)
        seconds = time.monotonic() - self._started[position]
        self._state.reporter.emit(
            ToolExecutionEnd, call=self._calls[position], result=result, seconds=seconds, replayed=replayed
        )

    def _complete(self) -> None:
        for position in range(len(self._calls)):
            if position in self.results:
                continue
            if position in self._started:
                self._end(position, ToolResult.failed("cancelled", CUT_SHORT))
            else:
                self._start(position)
                self._end(position, ToolResult.failed("skipped", NOT_STARTED))

    async def _answer(self, position: int) -> None:
        call = self._calls[position]
        recorded = await self._setup.recorder.recorded_result(call)
        result = recorded if recorded is not None else await self._run_call(position)
        self._end(position, await self._after(call, result), replayed=recorded is not None)

    async def _seek_approval(self, position: int) -> None:
        """Decide on a call whose tool needs a person's approval.

        One whose result is recorded is decided on too, so that the n-th question is the same in every attempt.
        """
        call = self._calls[position]
        tool = self._setup.tools.get(call.name)
        if tool is None or not tool.options.approval:
            return
        decided, approve = await self._checked(tool, call), self._setup.approve
        if isinstance(decided, dict):
            if approve is None:
                decided = ToolResult.failed("blocked", f"not run: {NOBODY_TO_ASK}")
            elif not await approve(call, decided):
                decided = ToolResult.failed("blocked", "not run: a person refused this call")
        self._decided[position] = decided

    async def _run_call(self, position: int) -> ToolResult:
        call = self._calls[position]
        if anyio.current_time() >= self._state.deadline:
            return ToolResult.failed("skipped", f"not run: a limit is met ({self._setup.limits.seconds} seconds)")
        tool = self._setup.tools.get(call.name)
        if tool is None:
            available = ", ".join(self._setup.tools) or "none"
            return ToolResult.failed("unknown_tool", f"{call.name!r} does not exist; available: {available}")
        decided = self._decided.get(position)
        arguments = await self._checked(tool, call) if decided is None else decided
        if isinstance(arguments, ToolResult):
            return arguments
        result = await self._execute(tool, call, arguments)
        if result.ok:
            await self._setup.recorder.keep_result(call, result)
        return result

    async def _checked(self, tool: Tool[..., Any], call: ToolCall) -> dict[str, Any] | ToolResult:
        """Return the arguments to run with; where they do not fit or a hook says no, what the model reads instead."""
        try:
            return await self._hooked(tool, call, tool.signature.parse(call.arguments))
        except ValueError as error:
            _log.warning("%s has arguments that do not fit: %s", self._named(call), "; ".join(str(error).splitlines()))
            return ToolResult.failed("invalid_arguments", str(error))
        except HookFailed as error:
            self._tell(call, error.__cause__ or error, "a hook around ")
            return ToolResult.failed("blocked", str(error))
        except _Blocked as error:
            return ToolResult.failed("blocked", str(error))

    async def _hooked(self, tool: Tool[..., Any], call: ToolCall, arguments: dict[str, Any]) -> dict[str, Any]:
        """Return the arguments to run with.

        Raises:
            _Blocked: a hook says no.
            ValueError: a hook changed the arguments to some that do not fit.
        """
        if self._setup.hooks.before_tool_call is None:
            return arguments
        match await ask_hook(self._setup.hooks.before_tool_call, call, arguments):
            case None | Allow():
                return arguments
            case Change(arguments=changed):
                return tool.signature.check(changed)
            case Block(reason=reason):
                raise _Blocked(f"not run: {reason}")
            case other:
                raise _Blocked(f"not run: the hook before tool calls answered {other!r}, which decides nothing")

    async def _execute(self, tool: Tool[..., Any], call: ToolCall, arguments: dict[str, Any]) -> ToolResult:
        limit = self._setup.time_limit(tool)
        deadline = math.inf if limit is None else anyio.current_time() + limit
        with CancelScope(deadline=deadline) as scope:
            try:
                value = await self._call_function(tool, call, arguments, scope, limit)
                return _result(tool, value)
            except anyio.get_cancelled_exc_class() as error:
                if scope.cancel_called or being_cancelled():
                    raise
                self._tell(call, error)
                return ToolResult.failed("raised", "the tool was cancelled from within")
            except ToolError as error:
                return ToolResult.failed("raised", text_of(error))
            except Exception as error:  # noqa: BLE001  # whatever a tool raises, the model reads it
                self._tell(call, error)
                return ToolResult.failed("raised", error_text(error))
        told = f"no result within {limit:g} seconds"
        self._tell(call, TimeoutError(f"{told}; give it longer with @tool(timeout=) or Limits(tool_timeout=)"))
        return ToolResult.failed("timed_out", f"{told}; the call may have taken effect")

    async def _call_function(
        self, tool: Tool[..., Any], call: ToolCall, arguments: dict[str, Any], scope: CancelScope, limit: float | None
    ) -> Any:
        if tool.signature.context_parameter is not None:
            arguments = {**arguments, tool.signature.context_parameter: self._context(tool, call, scope, limit)}
        if tool.is_async:
            return await tool(**arguments)
        returned = await call_in_thread(partial(tool, **arguments), abandon=True)
        return await returned if inspect.isawaitable(returned) else returned

    def _context(
        self, tool: Tool[..., Any], call: ToolCall, scope: CancelScope, limit: float | None
    ) -> ToolContext[Any]:
        def report(data: Any) -> None:
            if call.id not in self._open_ids:  # a thread that was given up goes on talking
                return
            if limit is not None:
                scope.deadline = anyio.current_time() + limit
            self._state.reporter.emit(ToolExecutionUpdate, call=call, data=data)

        reporter, home = self._state.reporter, threading.get_ident()

        def progress(data: Any) -> None:
            if threading.get_ident() == home:
                report(data)
            else:
                from_thread.run_sync(report, data)

        return ToolContext(
            run_id=reporter.run_id,
            role=reporter.role,
            call_id=call.id,
            idempotency_key=self._setup.recorder.idempotency_key(reporter.delivery, call),
            deps=self._setup.deps,
            _report=progress,
            _whole_results=self._state.whole_results,
        )

    async def _after(self, call: ToolCall, result: ToolResult) -> ToolResult:
        hook = self._setup.hooks.after_tool_call
        if hook is None:
            return result
        try:
            changed: ToolResult = await ask_hook(hook, call, result, returns=ToolResult)
        except HookFailed as error:
            self._tell(call, error.__cause__ or error, "a hook around ")
            return ToolResult.failed("raised", str(error))
        return changed

    def _tell(self, call: ToolCall, error: BaseException, by: str = "") -> None:
        """Tell those who watch over the loop of an exception that nobody meant for the model."""
        told = traceback_text(error)  # not as exc_info, whose text may be such that nothing can write it
        _log.warning("%s%s raised %s\n%s", by, self._named(call), error_text(error), told)
        if self._setup.on_fault is not None:
            self._setup.on_fault(f"{by}the tool {call.name}", error)

    def _named(self, call: ToolCall) -> str:
        place = self._state.reporter.delivery
        return f"call {call.id} of tool {call.name}{' in ' if place else ''}{place}"


class _Blocked(Exception):  # noqa: N818  # a decision, not an error
    """A call may not run."""


def _result(tool: Tool[..., Any], value: Any) -> ToolResult:
    if isinstance(value, ToolResult):
        return value
    shown = tool.options.project(value) if tool.options.project is not None else value
    return ToolResult.returned(value, clean_text(readable(shown))[0])
