"""The fake clock that tests move by hand."""

from __future__ import annotations

import anyio

from support.clock import START, FakeClock


async def test_sleepers_wake_in_order_as_time_moves() -> None:
    clock, woken = FakeClock(), list[tuple[str, float]]()

    async def sleeper(name: str, *naps: float) -> None:
        for nap in naps:
            await clock.sleep_until(clock.monotonic() + nap)
            woken.append((name, clock.monotonic()))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(sleeper, "late", 3)
        tasks.start_soon(sleeper, "often", 1, 1, 1)
        await clock.advance(2)
        assert woken == [("often", 1), ("often", 2)]
        await clock.advance(10)
    assert woken == [("often", 1), ("often", 2), ("late", 3), ("often", 3)]
    assert clock.time() == START.timestamp() + 12


async def test_a_cancelled_sleeper_is_forgotten() -> None:
    clock, woken = FakeClock(), list[str]()

    async def sleeper(name: str, seconds: float) -> None:
        await clock.sleep_until(seconds)
        woken.append(name)

    async with anyio.create_task_group() as outer:
        outer.start_soon(sleeper, "kept", 2)
        async with anyio.create_task_group() as inner:
            inner.start_soon(sleeper, "cancelled", 1)
            await clock.advance(0.5)
            inner.cancel_scope.cancel()
        await clock.advance(5)
    assert woken == ["kept"]


async def test_time_that_has_passed_is_not_waited_for() -> None:
    clock = FakeClock()
    await clock.advance(1)
    with anyio.fail_after(5):
        await clock.sleep_until(1)
        await clock.sleep_until(0.5)
    assert clock.monotonic() == 1
