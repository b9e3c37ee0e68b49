"""The tools that watch every test, each shown on something that misbehaves."""

from __future__ import annotations

import shutil
import socket
import subprocess
import sys
import textwrap
import threading
from pathlib import Path
from typing import TYPE_CHECKING

import anyio
import anyio.to_thread
import pytest

from support.network import NetworkRefused
from support.watchdog import TaskWatch, Watchdog, within

if TYPE_CHECKING:
    from support.network import NetworkGuard

TESTS = Path(__file__).parent


def test_a_running_thread_is_reported_until_it_ends() -> None:
    watchdog, release = Watchdog(grace=0.05), threading.Event()
    thread = threading.Thread(target=lambda: release.wait(30), name="straggler")
    thread.start()
    assert watchdog.left_over() == ["thread straggler"]
    release.set()
    thread.join()
    assert watchdog.left_over() == []


async def test_a_pool_thread_that_waits_for_work_is_not_reported() -> None:
    watchdog = Watchdog(grace=2)
    await anyio.to_thread.run_sync(lambda: None)
    assert watchdog.left_over() == []


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="children are read from /proc")
def test_a_child_process_is_reported_until_it_ends() -> None:
    watchdog = Watchdog(grace=0.05)
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as child:
        (line,) = watchdog.left_over()
        child.communicate(b"\n")
    assert line.startswith(f"process {child.pid} ")
    assert watchdog.left_over() == []


async def test_a_test_that_hangs_is_told_to_stop_and_says_where_it_waited() -> None:
    async def hang(seconds: float) -> None:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(anyio.sleep_forever)
            await anyio.sleep(seconds)

    with pytest.raises(TimeoutError, match=r"longer than 0\.01 s; it waited in\n(.*\n)*.* in hang\n"):
        await within(0.01, hang)(seconds=1000)


async def test_a_running_task_is_reported_until_it_ends() -> None:
    watch = TaskWatch()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(anyio.sleep_forever, name="straggler")
        assert await watch.left_over() == ["task straggler"]
        tasks.cancel_scope.cancel()
    assert await watch.left_over() == []


@pytest.mark.parametrize("host", ["192.0.2.1", "2001:db8::1", "example.org"])
def test_a_host_beyond_loopback_is_refused_and_kept(host: str, network_guard: NetworkGuard) -> None:
    with pytest.raises(NetworkRefused, match="tests stay on loopback"):
        socket.create_connection((host, 80), timeout=1)
    assert [line.split()[-1] for line in network_guard.refused] == [host]
    network_guard.refused.clear()


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1"])
def test_loopback_is_allowed(host: str, network_guard: NetworkGuard) -> None:
    with (
        socket.create_server(("127.0.0.1", 0)) as server,
        socket.create_connection((host, server.getsockname()[1])) as client,
    ):
        accepted, address = server.accept()
        accepted.close()
        assert address == client.getsockname()
    assert network_guard.refused == []


def test_every_misbehaving_test_fails(tmp_path: Path) -> None:
    shutil.copy(TESTS / "conftest.py", tmp_path)
    shutil.copytree(TESTS / "support", tmp_path / "support")
    (tmp_path / "test_inner.py").write_text(textwrap.dedent(MISBEHAVING))
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-c",
        str(TESTS.parent / "pyproject.toml"),
        "--rootdir",
        str(tmp_path),
    ]
    run = subprocess.run(
        [*command, str(tmp_path)], capture_output=True, text=True, timeout=50, check=False, cwd=tmp_path
    )
    assert "3 failed, 4 passed, 3 errors" in run.stdout, run.stdout
    for complaint in (
        "still running after the test: ['task",
        "reached beyond this machine",
        "was never awaited",
        "in test_hangs",
    ):
        assert complaint in run.stdout


MISBEHAVING = """
    import contextlib, socket
    import anyio.lowlevel, pytest

    kept = []

    async def test_leaves_a_task(anyio_backend):
        if anyio_backend == "trio":
            import trio
            trio.lowlevel.spawn_system_task(trio.sleep_forever)
        else:
            import asyncio
            kept.append(asyncio.create_task(asyncio.sleep(60)))

    def test_reaches_out():
        with contextlib.suppress(Exception):
            socket.create_connection(("192.0.2.1", 80), timeout=0.1)

    def test_forgets_to_await():
        async def forgotten(): ...
        forgotten()

    @pytest.mark.timeout(0.5)
    async def test_hangs():
        await anyio.sleep_forever()

    def test_finds_a_clean_environment():
        import os
        assert not [name for name in os.environ if name.startswith("SWARMBUS_")]
"""
