"""What the decorators write down, and what they refuse."""

from __future__ import annotations

import functools
import math
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import pytest

from swarmbus.errors import Retryable
from swarmbus.events import Event
from swarmbus.handlers import HandlerSpec, Retry, join, on, spec_of

untyped_on: Any = on
untyped_join: Any = join


class TaskPlanned(Event):
    steps: tuple[str, ...]


class StepDone(Event):
    step: str


async def awaited(event: object) -> bool:
    return bool(event)


async def awaited_items(event: object) -> AsyncIterator[object]:
    yield event


def yielded(event: object) -> Iterator[bool]:
    yield bool(event)


class Awaited:
    async def __call__(self, event: object) -> bool:
        return bool(event)


def given_spec(decorator: Callable[[Any], Any]) -> HandlerSpec:
    def method(self: object, event: TaskPlanned) -> None: ...

    decorated = decorator(method)
    assert decorated is method
    spec = spec_of(method)
    assert spec is not None
    return spec


def test_bare_on_says_nothing() -> None:
    assert given_spec(on) == HandlerSpec("on")


def test_on_writes_down_its_options() -> None:
    retry = Retry(attempts=2)
    spec = given_spec(on(TaskPlanned, StepDone, each="steps", when=bool, timeout=5, retry=retry))
    assert spec == HandlerSpec("on", (TaskPlanned, StepDone), each="steps", when=bool, timeout=5, retry=retry)


def test_join_writes_down_its_options() -> None:
    spec = given_spec(
        join(
            StepDone,
            per=TaskPlanned,
            key="step",
            expect="steps",
            partial="proceed",
            quorum=2,
            deadline=9,
            timeout=math.inf,
        )
    )
    assert spec == HandlerSpec(
        "join",
        (StepDone,),
        opener=TaskPlanned,
        key="step",
        expect="steps",
        partial="proceed",
        quorum=2,
        deadline=9,
        timeout=math.inf,
    )


def test_a_handler_stays_callable() -> None:
    class Worker:
        @on(TaskPlanned, each="steps")
        def work(self, step: str) -> str:
            return step.upper()

    assert Worker().work("a") == "A"


def test_a_wrapper_is_looked_through() -> None:
    def logged(method: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(method)
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            return method(*args, **kwargs)

        return wrapper

    @logged
    @on
    def handler(self: object, event: TaskPlanned) -> None: ...

    assert spec_of(handler) == HandlerSpec("on")


@pytest.mark.parametrize(
    ("decorate", "told"),
    [
        (lambda: untyped_on(TaskPlanned, eahc="steps"), "no option 'eahc'.*did you mean `each`"),
        (
            lambda: untyped_on(TaskPlanned, concurrency=3),
            "no option 'concurrency'.*it takes each, when, timeout, retry",
        ),
        (lambda: untyped_join(StepDone, per=TaskPlanned, deadlin=3), "did you mean `deadline`"),
        (lambda: untyped_join(StepDone, per=TaskPlanned, each="steps"), "no option 'each'"),
        (lambda: untyped_join(StepDone), "per"),
        (lambda: untyped_join(per=TaskPlanned), "class of its contributions"),
        (lambda: untyped_on("TaskPlanned"), "takes event classes"),
        (lambda: untyped_on(TaskPlanned, each=3), "name of a field, or a function"),
        (lambda: untyped_on(TaskPlanned, when="yes"), "takes a function"),
        (
            lambda: untyped_on(TaskPlanned, when=awaited),
            "awaited.* takes a plain function .* True or False, not an async",
        ),
        (lambda: untyped_on(TaskPlanned, when=Awaited()), "takes a plain function .*, not an async one"),
        (
            lambda: untyped_on(TaskPlanned, when=functools.partial(awaited)),
            "takes a plain function .*, not an async one",
        ),
        (lambda: untyped_on(TaskPlanned, when=yielded), "takes a plain function .*, and this one yields"),
        (lambda: untyped_on(TaskPlanned, each=awaited), "takes a plain function .* to a sequence, not an async one"),
        (lambda: untyped_on(TaskPlanned, each=awaited_items), "takes a plain function .* a sequence, not an async one"),
        (lambda: untyped_join(StepDone, per=TaskPlanned, expect=awaited), "sequence of keys, not an async one"),
        (lambda: untyped_on(TaskPlanned, timeout=0), "positive number of seconds"),
        (lambda: untyped_on(TaskPlanned, timeout="5"), "positive number of seconds"),
        (lambda: untyped_on(TaskPlanned, retry=3), r"Retry\(attempts=3\)"),
        (lambda: untyped_join(StepDone, per=TaskPlanned, partial="maybe"), '"fail" or "proceed"'),
        (lambda: untyped_join(StepDone, per=TaskPlanned, quorum=0), "at least 1"),
        (lambda: untyped_join(StepDone, per=TaskPlanned, deadline=math.nan), "positive number of seconds"),
        (lambda: untyped_join(StepDone, per=TaskPlanned, deadline=10**400), "positive number of seconds"),
        (lambda: untyped_join(StepDone, per=TaskPlanned, deadline=math.inf), "=inf.* never comes; leave it out"),
        (lambda: untyped_on(TaskPlanned, timeout=10**5000), "positive number of seconds"),
        (lambda: untyped_on(TaskPlanned)(3), "ordinary method"),
        (lambda: untyped_on(TaskPlanned)(staticmethod(print)), "ordinary method"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_can_not_be_is_a_type_error(decorate: Callable[[], object], told: str) -> None:
    with pytest.raises(TypeError, match=told):
        decorate()


def test_what_is_no_handler_has_no_spec() -> None:
    assert spec_of(3) is None
    assert spec_of(print) is None


def test_pauses_grow_up_to_their_limit() -> None:
    retry = Retry(attempts=9, delay=2, factor=3, max_delay=50, jitter=0)
    assert [retry.pause(attempt, 0.5) for attempt in (1, 2, 3, 4)] == [2, 6, 18, 50]


@pytest.mark.parametrize(("delay", "pause"), [(1.0, 60.0), (0, 0.0)])
def test_a_pause_keeps_to_its_limit_however_many_attempts_there_were(delay: float, pause: float) -> None:
    assert Retry(attempts=5_000, delay=delay, factor=3, jitter=0).pause(4_000, 0.5) == pause


def test_chance_shortens_a_pause() -> None:
    retry = Retry(delay=10, jitter=0.2)
    assert (retry.pause(1, 0), retry.pause(1, 0.5), retry.pause(1, 1)) == (10, 9, 8)


def test_by_default_only_retryable_errors_are_tried_again() -> None:
    assert Retry().on == (Retryable,)


@pytest.mark.parametrize(
    "options",
    [
        {"attempts": 0},
        {"delay": -1},
        {"delay": math.nan},
        {"delay": 10**400},
        {"factor": 0.5},
        {"factor": math.inf},
        {"max_delay": -1},
        {"max_delay": math.inf},
        {"jitter": 2},
    ],
    ids=str,
)
def test_a_retry_that_can_not_be_is_refused(options: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="needs attempts >= 1"):
        Retry(**options)


def test_each_form_of_a_decorator_knows_what_is_local_around_the_class() -> None:
    class Local(Event):
        pass

    class Unused(Event):
        pass

    class Listener:
        @on
        async def bare(self, event: Local) -> None: ...

        @on(timeout=3)
        async def with_options(self, event: Local) -> None: ...

        @join(StepDone, per=TaskPlanned)
        async def joined(self, plan: TaskPlanned, steps: Local) -> None: ...

    for handler in (Listener.bare, Listener.with_options, Listener.joined):
        spec = spec_of(handler)
        assert spec is not None
        assert spec.names == {"Local": Local}
