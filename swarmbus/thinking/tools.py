"""Tools: typed functions and methods that a model may call, and the context that they are called in.

A tool knows its own form and options. Running it, with time limits and around cancellation, is the business of
`batch`.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields
from functools import cached_property
from types import FrameType, NoneType
from typing import Any, Concatenate, Generic, Literal, ParamSpec, Self, get_args, overload

from typing_extensions import TypeVar

from swarmbus.arguments import refusal, require, require_plain, require_seconds, shown
from swarmbus.errors import ToolDefinitionError, ToolError
from swarmbus.messages import ToolSpec
from swarmbus.text import did_you_mean
from swarmbus.thinking.context import estimate_tools
from swarmbus.thinking.tool_signature import Signature, read_signature

P = ParamSpec("P")
Q = ParamSpec("Q")
R = TypeVar("R")
Owner = TypeVar("Owner")
Deps = TypeVar("Deps", default=Any)

MAX_RESULT = 20_000
"""Characters of a result that the model is shown, unless the tool says otherwise."""

Effects = Literal["read_only", "idempotent", "at_most_once"]


@dataclass(frozen=True, slots=True)
class ToolContext(Generic[Deps]):
    """What a tool can learn and do about the call it is run for.

    Attributes:
        run_id: the run, or an empty string outside a swarm.
        role: the role, or an empty string outside a swarm.
        call_id: the id that the model's call has.
        idempotency_key: the same for every attempt at this very call, for services that take such a key.
        deps: the dependencies of the agent or run.
    """

    run_id: str
    role: str
    call_id: str
    idempotency_key: str
    deps: Deps
    _report: Callable[[Any], None]
    _whole_results: Mapping[str, str]

    def progress(self, data: Any) -> None:
        """Report a step forward, any JSON-compatible data; it renews the tool's time limit. Works in threads too."""
        self._report(data)

    def whole_result(self, handle: str) -> str:
        """Return the whole text of an earlier result that was cut.

        Raises:
            ToolError: no result of this run has the handle.
        """
        if handle not in self._whole_results:
            known = ", ".join(self._whole_results) or "none"
            raise ToolError(f"no cut result has the handle {handle!r}; known: {known}")
        return self._whole_results[handle]


@dataclass(frozen=True, kw_only=True)
class ToolOptions:
    """How a tool is run; `tool` says what each option means."""

    name: str | None = None
    sequential: bool = False
    timeout: float | None = None
    max_result: int = MAX_RESULT
    project: Callable[[Any], Any] | None = None
    effects: Effects | None = None
    approval: bool = False

    def __post_init__(self) -> None:
        require("@tool(name={})", self.name, (str, NoneType), "a text")
        require_seconds("@tool(timeout={})", self.timeout)
        require("@tool(max_result={})", self.max_result, int, "a number of characters")
        if not (self.project is None or callable(self.project)):
            raise refusal("@tool(project={})", self.project, "a function of what the tool returned")
        require_plain("@tool(project={})", self.project, "a plain function of what the tool returned")
        if self.effects not in (None, *get_args(Effects)):
            raise refusal("@tool(effects={})", self.effects, f"one of {', '.join(get_args(Effects))}")
        for flag in ("sequential", "approval"):
            require(f"@tool({flag}={{}})", getattr(self, flag), bool, "True or False")


class Tool(Generic[P, R]):
    """A function that a model may call; calling it yourself runs the function.

    On a class it is a method: its first parameter is then named `self`, and the instance binds it.
    """

    def __init__(
        self,
        function: Callable[P, R],
        options: ToolOptions = ToolOptions(),
        *,
        owner: Any = None,
        local_names: Mapping[str, Any] | None = None,
    ) -> None:
        given: Any = function
        if not callable(given) or isinstance(given, type) or not _is_named(given):
            raise ToolDefinitionError(f"{shown(given)} can't be a tool; give a function or a method")
        self.function = function
        self.options = options
        self.name = options.name or function.__name__
        self.__name__ = function.__name__
        self.__qualname__ = function.__qualname__
        self.__doc__ = function.__doc__
        self.__module__ = function.__module__
        self._owner = owner
        self._local_names = local_names or {}
        self.is_async = inspect.iscoroutinefunction(function)
        self.is_method = _first_parameter(function) == "self"

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Run the function."""
        if self._owner is not None:
            return self.function(self._owner, *args, **kwargs)
        return self.function(*args, **kwargs)

    def __repr__(self) -> str:
        return f"<Tool {self.name}>"

    @overload
    def __get__(self, instance: None, owner: type) -> Self: ...
    @overload
    def __get__(self: Tool[Concatenate[Owner, Q], R], instance: Owner, owner: type) -> Tool[Q, R]: ...
    def __get__(self, instance: Any, owner: type) -> Any:
        return self if instance is None else self.bind(instance)

    def bind(self, instance: Any) -> Tool[..., R]:
        """Return the tool with its `self` given; a tool that has none is returned as it is."""
        if not self.is_method or self._owner is not None:
            return self
        bound: Tool[..., R] = Tool(self.function, self.options, owner=instance, local_names=self._local_names)
        bound.signature = self.signature
        return bound

    @cached_property
    def signature(self) -> Signature:
        """What the function's signature says.

        Raises:
            ToolDefinitionError: it does not say enough.
        """
        return read_signature(self.function, ToolContext, self._local_names, bound=self.is_method)

    @cached_property
    def spec(self) -> ToolSpec:
        """The tool as a model sees it."""
        return ToolSpec(self.name, self.signature.description, self.signature.parameters)

    @cached_property
    def tokens(self) -> int:
        """About how many tokens its description takes."""
        return estimate_tools((self.spec,))

    @property
    def effects(self) -> Effects:
        """What running it twice would do; the worst where its author did not say."""
        return self.options.effects or "at_most_once"

    @property
    def effects_declared(self) -> bool:
        """Whether its author said what running it twice would do."""
        return self.options.effects is not None


@overload
def tool(function: Callable[P, R], /) -> Tool[P, R]: ...
@overload
def tool(
    *,
    name: str | None = None,
    sequential: bool = False,
    timeout: float | None = None,
    max_result: int = MAX_RESULT,
    project: Callable[[Any], Any] | None = None,
    effects: Effects | None = None,
    approval: bool = False,
) -> Callable[[Callable[P, R]], Tool[P, R]]: ...
def tool(function: Callable[..., Any] | None = None, /, **options: Any) -> Any:
    """Make a tool of a typed function or method: `@tool`, or with options `@tool(effects="read_only")`.

    The schema comes from the signature, the description from the docstring, those of the parameters from its
    `Args:` section or from `Annotated[..., Field(description=...)]`. A parameter annotated `ToolContext` is given
    the context and is not shown to the model. A function that is not async runs in a worker thread.

    Args:
        function: what is made a tool.
        options: any of the following.

            name: what the model calls it by; the function's name by default.
            sequential: whether a batch of calls with this one in it runs one call after the other.
            timeout: seconds it may run, instead of the agent's `Limits(tool_timeout=)`.
            max_result: characters of a result that the model is shown; what is longer is cut in the middle.
            project: makes of what the tool returned what the model is to see.
            effects: what running it twice would do, "read_only", "idempotent" or "at_most_once"; where it is not said,
                the tool counts as the last.
            approval: whether a person has to agree to each call, through `approve=`; in a handler that gives none,
                one is asked as by `ctx.ask_person`.

    Raises:
        ToolDefinitionError: the signature says too little.
        TypeError, ValueError: an option there is none of, or a value that can't be one.
    """
    if isinstance(function, str):
        raise ToolDefinitionError(f"@tool({function!r}) takes a function; a name is given as @tool(name={function!r})")
    known = [option.name for option in fields(ToolOptions)]
    for option in options:
        if option not in known:
            raise TypeError(f"@tool has no option {option!r}{did_you_mean(option, known)}; it takes {', '.join(known)}")
    if function is not None:
        return _made(function, options, sys._getframe(1))  # noqa: SLF001  # where the function is written
    return lambda decorated: _made(decorated, options, sys._getframe(1))  # noqa: SLF001  # the same


def _made(function: Callable[..., Any], options: dict[str, Any], around: FrameType) -> Tool[..., Any]:
    """Return a tool; annotations kept as text may name what is local where its function is written."""
    local_names = dict(around.f_locals) if "<locals>" in getattr(function, "__qualname__", "") else None
    return Tool(function, ToolOptions(**options), local_names=local_names)


def _first_parameter(function: Callable[..., Any]) -> str | None:
    try:
        return next(iter(inspect.signature(function).parameters), None)
    except ValueError:  # written in C; reading its signature says so
        return None


def _is_named(function: object) -> bool:
    return hasattr(function, "__qualname__") and hasattr(function, "__module__")


def toolset(tools: Iterable[Tool[..., Any] | Callable[..., Any]]) -> dict[str, Tool[..., Any]]:
    """Return tools by name; plain functions become tools.

    Raises:
        ToolDefinitionError: two tools have one name, a method has no instance, or a signature says too little.
        TypeError: these are no tools.
    """
    given: Any = tools
    if isinstance(given, str) or not isinstance(given, Iterable):
        raise refusal("tools={}", given, "a list of tools, such as [search]")
    found: dict[str, Tool[..., Any]] = {}
    for item in tools:
        made = item if isinstance(item, Tool) else Tool(item)
        if made.is_method and made._owner is None:  # noqa: SLF001  # a method of this module's own class
            raise ToolDefinitionError(f"{made.__qualname__} is a method; give the agent the instance's own")
        if made.name in found:
            raise ToolDefinitionError(f"two tools are named {made.name!r}: rename one with @tool(name=...)")
        found[made.spec.name] = made
    return found


@tool(effects="read_only")
def read_result(handle: str, ctx: ToolContext, start: int = 0, length: int = 10_000) -> str:
    """Read on in an earlier result that was cut because of its length.

    Args:
        handle: the handle that the note in the cut result names.
        ctx: the context of the call.
        start: the first character to read, from 0.
        length: how many characters to read.
    """
    whole = ctx.whole_result(handle)
    return f"characters {start} to {min(start + length, len(whole))} of {len(whole)}:\n{whole[start : start + length]}"
