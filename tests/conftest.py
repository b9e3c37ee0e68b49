"""What every test gets: both event loops, a clean environment, no network, and a look at what it left behind."""

from __future__ import annotations

import os
from inspect import iscoroutinefunction
from typing import TYPE_CHECKING

import pytest

from support.network import NetworkGuard
from support.watchdog import TaskWatch, Watchdog, within

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Generator, Iterator

_LAST = 20.0
"""Seconds that a test has to stop once it was told to."""
_PREFIXES = ("SWARMBUS_", "OPENAI_", "ANTHROPIC_", "OLLAMA_", "OTEL_")
_NAMES = {"NO_COLOR", "FORCE_COLOR", "PY_COLORS", "CLICOLOR", "CLICOLOR_FORCE", "COLUMNS", "LINES", "GITHUB_ACTIONS"}


@pytest.fixture(scope="session")
def network_guard() -> NetworkGuard:
    return NetworkGuard()


@pytest.fixture(scope="module", params=["asyncio", "trio"])
def anyio_backend(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(autouse=True)
def clean_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in list(os.environ):
        if name.startswith(_PREFIXES) or name in _NAMES or name.lower().endswith("_proxy"):
            monkeypatch.delenv(name)


@pytest.fixture(autouse=True)
def nothing_left_over(clean_environment: None, network_guard: NetworkGuard) -> Iterator[None]:
    watchdog = Watchdog()
    with network_guard.loopback_only():
        yield
    left = watchdog.left_over()
    assert not left, f"still running after the test: {left}"
    assert not network_guard.refused, f"reached beyond this machine: {network_guard.refused}"


@pytest.fixture
async def no_task_left() -> AsyncIterator[None]:
    watch = TaskWatch()
    yield
    left = await watch.left_over()
    assert not left, f"still running after the test: {left}"


@pytest.hookimpl(tryfirst=True)
def pytest_pycollect_makeitem(collector: pytest.Module | pytest.Class, name: str, obj: object) -> None:
    if collector.istestfunction(obj, name) and iscoroutinefunction(_inner(obj)):
        pytest.mark.usefixtures("no_task_left")(obj)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Have a test that hangs on an event loop end the session at last, for no fixture of its can be torn down."""
    for item in items:
        if isinstance(item, pytest.Function) and iscoroutinefunction(_inner(item.obj)):
            given, option = item.get_closest_marker("timeout"), config.getoption("timeout")
            limit = float(given.args[0] if given else config.getini("timeout") if option is None else option)
            if limit:
                item.add_marker(pytest.mark.timeout(limit + _LAST, method="thread"), append=False)


@pytest.hookimpl(tryfirst=True, wrapper=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> Generator[None, object, object]:
    """Have it told to stop before."""
    function, given = pyfuncitem.obj, pyfuncitem.get_closest_marker("timeout")
    if given is not None and iscoroutinefunction(function):
        pyfuncitem.obj = within(given.args[0] - _LAST, function)
    try:
        return (yield)
    finally:
        pyfuncitem.obj = function


def _inner(obj: object) -> object:
    """Return the test function itself where hypothesis wraps it."""
    return obj.hypothesis.inner_test if hasattr(obj, "hypothesis") else obj
