"""Work goes on until it is done or somebody asks for a stop, and its errors come out as they were raised."""

from __future__ import annotations

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


async def test_an_error_of_the_work_comes_out_as_it_was_raised() -> None:
    error = ValueError("own")

    async def work() -> None:
        raise error

    with pytest.raises(ValueError, match="own") as caught:
        await unless_stopped(anyio.sleep_forever, work)
    assert caught.value is error
