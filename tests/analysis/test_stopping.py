"""Work goes on until it is done or somebody asks for a stop, and its errors come out as they were raised."""

from __future__ import annotations

from typing import Any

import anyio
import pytest

from roles.analysis.stopping import unless_stopped

pytestmark = pytest.mark.anyio


async def answer() -> int:
    await anyio.lowlevel.checkpoint()
    return 42


@pytest.mark.parametrize("stop", [None, anyio.sleep_forever], ids=["nobody", "not yet"])
async def test_work_that_nobody_stops_is_done(stop: object) -> None:
    assert await unless_stopped(stop, answer) == 42  # type: ignore[arg-type]


async def test_work_is_cancelled_when_a_stop_is_asked_for() -> None:
    stop = anyio.Event()

    async def work() -> int:
        stop.set()
        await anyio.sleep_forever()
        return 42

    assert await unless_stopped(stop.wait, work) is None


ERROR = ValueError("own")


async def fail() -> None:
    raise ERROR


async def fail_below() -> None:
    async with anyio.create_task_group() as group:
        group.start_soon(fail)


@pytest.mark.parametrize(
    ("stop", "work"),
    [(None, fail_below), (anyio.sleep_forever, fail), (anyio.sleep_forever, fail_below), (fail, anyio.sleep_forever)],
    ids=["of a task", "of the work", "of a task of the work", "of whoever stops"],
)
async def test_an_error_comes_out_as_it_was_raised(stop: Any, work: Any) -> None:
    with pytest.raises(ValueError, match="own") as caught:
        await unless_stopped(stop, work)
    assert caught.value is ERROR
