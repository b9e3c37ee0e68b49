"""Errors come out of task groups as they were raised, where only one happened."""

from __future__ import annotations

import anyio
import anyio.lowlevel
import pytest

from swarmbus.task_groups import background, lone, raised_by, side_by_side, singly

pytestmark = pytest.mark.anyio

OWN = ValueError("own")


@pytest.mark.parametrize(
    ("error", "only"),
    [
        (OWN, OWN),
        (ExceptionGroup("outer", [ExceptionGroup("inner", [OWN])]), OWN),
        (BaseExceptionGroup("outer", [KeyboardInterrupt()]), None),
    ],
    ids=["none", "nested", "interrupt"],
)
def test_the_only_error_is_found_however_deep_it_lies(error: BaseException, only: BaseException | None) -> None:
    assert lone(error) is only or isinstance(lone(error), KeyboardInterrupt)


def test_a_group_of_several_stays_as_it_is() -> None:
    several = ExceptionGroup("outer", [ExceptionGroup("inner", [OWN, OSError()])])
    assert lone(several) is several
    with pytest.raises(ExceptionGroup) as caught, singly():
        raise several
    assert caught.value is several


def test_the_only_error_takes_the_place_of_its_group() -> None:
    with pytest.raises(ValueError, match="own") as caught, singly():
        raise ExceptionGroup("outer", [OWN])
    assert caught.value is OWN


async def test_what_goes_on_side_by_side_has_all_ended_with_the_call() -> None:
    met = anyio.Event()
    ended: list[str] = []

    async def meet(name: str) -> None:
        if name == "last":
            met.set()
        await met.wait()
        ended.append(name)

    await side_by_side(meet, ["first", "last"], most=2)
    assert sorted(ended) == ["first", "last"]


async def test_no_more_go_on_side_by_side_than_may() -> None:
    begun: list[int] = []
    together: list[int] = []

    async def work(number: int) -> None:
        begun.append(number)
        await anyio.lowlevel.checkpoint()
        together.append(len(begun) - len(together))

    await side_by_side(work, range(20), most=3)
    assert (begun, max(together)) == (list(range(20)), 3)


@pytest.mark.parametrize("error", [OWN, SystemExit(3)], ids=repr)
async def test_the_first_error_stops_the_others_and_comes_out_as_it_is(error: BaseException) -> None:
    stopped: list[str] = []

    async def work(name: str) -> None:
        if name == "bad":
            await anyio.wait_all_tasks_blocked()
            raise error
        try:
            await anyio.sleep_forever()
        finally:
            stopped.append(name)

    with pytest.raises(type(error)) as caught:
        await side_by_side(work, ["good", "bad", "better"], most=3)
    assert caught.value is error
    assert sorted(stopped) == ["better", "good"]


async def test_what_is_raised_is_told_and_being_stopped_passes_through() -> None:
    async def fail() -> None:
        raise OWN

    assert await raised_by(fail()) is OWN
    assert await raised_by(anyio.lowlevel.checkpoint()) is None
    with anyio.CancelScope() as scope:
        scope.cancel()
        await raised_by(anyio.sleep_forever())
    assert scope.cancelled_caught


async def test_what_goes_on_in_the_background_ends_with_the_block() -> None:
    ended = False

    async def go_on() -> None:
        nonlocal ended
        try:
            await anyio.sleep_forever()
        finally:
            ended = True

    async with background() as group:
        group.start_soon(go_on)
        await anyio.wait_all_tasks_blocked()
    assert ended


@pytest.mark.parametrize("error", [OWN, ExceptionGroup("its own", [OWN])], ids=["plain", "group"])
async def test_an_error_of_the_block_comes_out_as_it_is(error: Exception) -> None:
    with pytest.raises(type(error)) as caught:
        async with background():
            raise error
    assert caught.value is error


async def test_an_error_of_a_task_ends_the_block_and_comes_out_as_it_is() -> None:
    async def fail() -> None:
        raise OWN

    async def wait_for_it() -> None:
        async with background() as group:
            group.start_soon(fail)
            await anyio.sleep_forever()

    with pytest.raises(ValueError, match="own") as caught:
        await wait_for_it()
    assert caught.value is OWN
