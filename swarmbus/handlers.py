"""How a method of a role becomes a handler: `@on` for one event, or each item of it, and `@join` for many at once.

The decorators only write down what they were told; what a handler accepts and publishes is read from its
annotations, in `wiring`.
"""

from __future__ import annotations

import inspect
import math
import re
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from types import FrameType
from typing import Any, Concatenate, Literal, Never, ParamSpec, Protocol, TypeAlias, TypeVar, overload

from swarmbus.arguments import require, require_plain, seconds, shown
from swarmbus.errors import Retryable
from swarmbus.events import Event
from swarmbus.text import did_you_mean

E = TypeVar("E", bound=Event)
O = TypeVar("O", bound=Event)  # noqa: E741 - the opener
Item = TypeVar("Item")
H = TypeVar("H", bound=Callable[..., Any])
P = ParamSpec("P")
R = TypeVar("R")
S = TypeVar("S")

Partial: TypeAlias = Literal["fail", "proceed"]

SPEC = "__swarmbus_handler__"
"""The attribute under which a handler carries its `HandlerSpec`."""


class ContextParameter:
    """Marks a class whose instances a handler gets as its context.

    The class is generic, and its first argument says which events the handler publishes early.
    """

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class Retry:
    """When a delivery that failed is attempted again.

    Attributes:
        attempts: how many attempts there are at most, the first included.
        delay: seconds before the second attempt.
        factor: each further pause is this many times longer.
        max_delay: seconds that no pause exceeds.
        jitter: share of each pause that is left to chance, from 0 to 1.
        on: the errors after which another attempt makes sense; all others are final.
        fresh: whether another attempt forgets what models and tools said, and pays for those calls again; effects of
            `ctx.once` and values such as `ctx.now()` stay.
    """

    attempts: int = 3
    delay: float = 1.0
    factor: float = 2.0
    max_delay: float = 60.0
    jitter: float = 0.1
    on: tuple[type[Exception], ...] = (Retryable,)
    fresh: bool = False

    def __post_init__(self) -> None:
        require("Retry(attempts={})", self.attempts, int, "a whole number")
        for option in ("delay", "factor", "max_delay", "jitter"):
            require(f"Retry({option}={{}})", getattr(self, option), (int, float), "a number")
        errors: Any = self.on
        if not isinstance(errors, tuple) or not all(_is_error(error) for error in errors):
            written = f"({shown(errors)},)" if _is_error(errors) else "(ConnectionError, TimeoutError)"
            raise TypeError(f"Retry(on={shown(errors)}) takes a tuple of exception classes, such as {written}")
        pauses = all(0 <= seconds(each) < math.inf for each in (self.delay, self.max_delay))
        if self.attempts < 1 or not pauses or not 1 <= seconds(self.factor) < math.inf or not 0 <= self.jitter <= 1:
            needs = "attempts >= 1, delay and max_delay >= 0, factor >= 1, jitter from 0 to 1, and nothing infinite"
            raise ValueError(f"{self} needs {needs}")

    def pause(self, attempt: int, chance: float) -> float:
        """Return the seconds to wait after a failed attempt (from 1), `chance` being random from 0 to 1."""
        try:
            full = min(self.delay * float(self.factor) ** (attempt - 1), self.max_delay)
        except OverflowError:  # by then longer than any limit, unless there is nothing to grow
            full = self.max_delay if self.delay else 0.0
        return full * (1 - self.jitter * chance)


@dataclass(frozen=True, slots=True)
class HandlerSpec:
    """What a decorator was told. See `on` and `join` for the meaning of each option.

    Attributes:
        names: what the names in the annotations meant where the role was made inside a function.
    """

    kind: Literal["on", "join"]
    events: tuple[type[Event], ...] = ()
    each: str | Callable[[Any], Iterable[Any]] | None = None
    when: Callable[[Any], bool] | None = None
    opener: type[Event] | None = None
    key: str | None = None
    expect: str | Callable[[Any], Iterable[str]] | None = None
    partial: Partial = "fail"
    quorum: int | None = None
    deadline: float | None = None
    timeout: float | None = None
    retry: Retry | None = None
    names: dict[str, Any] = field(default_factory=dict, repr=False, compare=False)


class MappedOn(Protocol[E, Item]):
    """Decorates a method that takes an item, or the event and an item, first."""

    @overload
    def __call__(self, handler: Callable[Concatenate[S, Item, P], R], /) -> Callable[Concatenate[S, Item, P], R]: ...

    @overload
    def __call__(
        self, handler: Callable[Concatenate[S, E, Item, P], R], /
    ) -> Callable[Concatenate[S, E, Item, P], R]: ...


@overload
def on(
    *events: type[E],
    each: Callable[[E], Iterable[Item]],
    when: Callable[[E], bool] | None = None,
    timeout: float | None = None,
    retry: Retry | None = None,
) -> MappedOn[E, Item]: ...


@overload
def on(
    *events: type[E],
    each: str | None = None,
    when: Callable[[E], bool] | None = None,
    timeout: float | None = None,
    retry: Retry | None = None,
) -> Callable[[H], H]: ...


@overload
def on(handler: H, /) -> H: ...


def on(*events: Any, **options: Any) -> Any:
    """Make a method of a role handle an event: `@on`, `@on(E)` or `@on(E1, E2, option=...)`.

    Args:
        events: the classes it handles; without any they are read from the annotation.
        each: a field of the event, or a function of it, that holds a sequence: the method handles each item of
            it, as a delivery of its own. With a function, the item (or the event and the item) comes first. It is a
            plain function that gives the same items each time, in the same order: no set, mapping or text.
        when: whether the method takes this event, a plain function; an event that no handler of the role takes is an
            error.
        timeout: seconds that one attempt may take; `math.inf` for no limit, default that of the role.
        retry: when to attempt again, default that of the role.
        **options: those named above.

    Raises:
        TypeError: an option that does not exist, or one of the wrong type.
    """
    if len(events) == 1 and not options and inspect.isroutine(events[0]):
        return _attached(events[0], HandlerSpec("on"), sys._getframe(1))  # noqa: SLF001  # the body of the class
    _refuse_unknown("on", options, ("each", "when", "timeout", "retry"))
    _check_classes("on", events)
    spec = HandlerSpec("on", events, **options)
    _check_options("on", spec)
    return lambda handler: _attached(handler, spec, sys._getframe(1))  # noqa: SLF001  # the body of the class


def join(
    *events: type[E],
    per: type[O],
    key: str | None = None,
    expect: str | Callable[[O], Iterable[str]] | None = None,
    partial: Partial = "fail",
    quorum: int | None = None,
    deadline: float | None = None,
    timeout: float | None = None,
    retry: Retry | None = None,
    **unknown: Never,
) -> Callable[[H], H]:
    """Make a method of a role handle many events at once, when no more of them can come.

    The method takes the opener and the `Joined` contributions. A join waits for all that goes on below its opener, a
    timer and a question to a person included, but not for what the client or an outside program may yet send: that
    counts for it only while it waits anyway.

    Args:
        events: the contributions.
        per: the opener: each event of this class opens a join of what is published below it.
        key: field of the contribution that names it.
        expect: field of the opener, or plain function of it, with the sequence of keys that it promises; for naming
            only.
        partial: whether a failed item fails the join (`"fail"`), or is handed to the method (`"proceed"`).
        quorum: number of contributions after which the join does not wait for more.
        deadline: seconds after which the join does not wait for more.
        timeout: seconds that one attempt may take; `math.inf` for no limit, default that of the role.
        retry: when to attempt again, default that of the role.
        **unknown: refused, with the near match.

    Raises:
        TypeError: an option that does not exist, or one of the wrong type.
    """
    _refuse_unknown("join", unknown, ("per", "key", "expect", "partial", "quorum", "deadline", "timeout", "retry"))
    if not events:
        raise TypeError("join needs the class of its contributions: @join(StepDone, per=TaskPlanned)")
    _check_classes("join", (*events, per))
    spec = HandlerSpec("join", events, None, None, per, key, expect, partial, quorum, deadline, timeout, retry)
    _check_options("join", spec)
    return lambda handler: _attached(handler, spec, sys._getframe(1))  # noqa: SLF001  # the body of the class


def spec_of(attribute: object) -> HandlerSpec | None:
    """Return what a decorator wrote on an attribute of a role class, if it is a handler."""
    spec = getattr(attribute, SPEC, None) if inspect.isroutine(attribute) or callable(attribute) else None
    return spec if isinstance(spec, HandlerSpec) else None


def _is_error(candidate: object) -> bool:
    return isinstance(candidate, type) and issubclass(candidate, Exception)


def _attached(handler: H, spec: HandlerSpec, body: FrameType) -> H:
    """Write a spec on a method; the frame is that of the body of the role class."""
    method: Any = handler
    if not inspect.isfunction(method):
        raise TypeError(f"@{spec.kind} decorates an ordinary method of a role, not {method!r}")
    if hasattr(method, SPEC):
        raise TypeError(f"{method.__qualname__} is decorated twice; name all its events in one decorator: @on(E1, E2)")
    inner = inspect.unwrap(method)
    if inspect.isgeneratorfunction(inner) or inspect.isasyncgenfunction(inner):
        hint = "return a tuple of events, or publish each with ctx.publish"
        raise TypeError(
            f"@{spec.kind} takes a method that returns its events, and {method.__qualname__} yields; {hint}"
        )
    setattr(handler, SPEC, replace(spec, names=_names_around(inner, body.f_back)))
    return handler


def _names_around(function: Callable[..., Any], frame: FrameType | None) -> dict[str, Any]:
    """Return what a postponed annotation may use of the function in which a role class is written, if it is in one."""
    if frame is None or frame.f_locals is frame.f_globals:
        return {}
    used = {word for text in _annotation_texts(function) for word in re.findall(r"[^\W\d]\w*", text)}
    return {name: value for name, value in frame.f_locals.items() if name in used}


def _annotation_texts(function: Callable[..., Any]) -> list[str]:
    return [text for text in getattr(function, "__annotations__", {}).values() if isinstance(text, str)]


def _refuse_unknown(decorator: str, options: Mapping[str, Any], known: tuple[str, ...]) -> None:
    for option in options:
        if option not in known:
            raise TypeError(
                f"@{decorator} has no option {option!r}{did_you_mean(option, known)}; it takes {', '.join(known)}"
            )


def _check_classes(decorator: str, classes: tuple[Any, ...]) -> None:
    for candidate in classes:
        if not isinstance(candidate, type):
            raise TypeError(f"@{decorator} takes event classes, not {candidate!r}")


_FUNCTIONS = {
    "each": "a plain function from the event to a sequence",
    "when": "a plain function from the event to True or False",
    "expect": "a plain function from the opening event to a sequence of keys",
}
"""The options that may be a function, and of what."""


def _check_options(decorator: str, spec: Any) -> None:
    _check_seconds(decorator, spec)
    _check_functions(decorator, spec)
    if spec.retry is not None and not isinstance(spec.retry, Retry):
        raise TypeError(f"@{decorator}(retry={spec.retry!r}) takes a Retry, such as Retry(attempts=3)")
    if spec.partial not in ("fail", "proceed"):
        raise TypeError(f'@{decorator}(partial={spec.partial!r}) takes "fail" or "proceed"')
    if spec.quorum is not None and (not isinstance(spec.quorum, int) or spec.quorum < 1):
        raise TypeError(f"@{decorator}(quorum={spec.quorum!r}) takes a number of contributions, at least 1")


def _check_seconds(decorator: str, spec: Any) -> None:
    limits: dict[str, Any] = {"timeout": spec.timeout, "deadline": spec.deadline}
    for option, value in limits.items():
        if value is not None and not (isinstance(value, (int, float)) and seconds(value) > 0):
            raise TypeError(f"@{decorator}({option}={shown(value)}) takes a positive number of seconds")
    if spec.deadline is not None and math.isinf(spec.deadline):
        raise TypeError(f"@{decorator}(deadline={spec.deadline!r}) never comes; leave it out")


def _check_functions(decorator: str, spec: Any) -> None:
    for option, value in {"key": spec.key, "expect": spec.expect}.items():
        if value is not None and not (isinstance(value, str) or (option == "expect" and callable(value))):
            wanted = "the name of a field" + (", or a function of the opening event" if option == "expect" else "")
            raise TypeError(f"@{decorator}({option}={value!r}) takes {wanted}")
    if spec.each is not None and not (isinstance(spec.each, str) or callable(spec.each)):
        raise TypeError(f"@{decorator}(each={spec.each!r}) takes the name of a field, or a function of the event")
    if spec.when is not None and not callable(spec.when):
        raise TypeError(f"@{decorator}(when={spec.when!r}) takes a function of the event")
    for option, wanted in _FUNCTIONS.items():
        require_plain(f"@{decorator}({option}={{}})", getattr(spec, option), wanted)
    if inspect.isgeneratorfunction(spec.when):
        raise TypeError(f"@{decorator}(when={shown(spec.when)}) takes {_FUNCTIONS['when']}, and this one yields")
