"""Reading processes keep what they need to themselves, and nothing is left of it."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

from roles.analysis.reading_pool import ReadingLimits, ReadingPool
from support import bad_documents
from support.processes import is_alive

LIMITS = ReadingLimits(seconds=20, processes=1)


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder for everybody's temporary files, in which somebody waits with code of their own."""
    folder = tmp_path / "temporary"
    trap = folder / "kreuzberg-pdfium"
    trap.mkdir(parents=True)
    for name in ("libpdfium.so", "libpdfium.dylib", "pdfium.dll"):
        (trap / name).write_bytes(b"no library at all")
    monkeypatch.setenv("TMPDIR", str(folder))
    monkeypatch.setattr(tempfile, "tempdir", None)
    return folder


async def test_no_code_is_loaded_from_a_folder_that_others_can_write_to(temporary: Path, tmp_path: Path) -> None:
    before = below(temporary)
    path = bad_documents.pdf(tmp_path / "a.pdf")
    async with ReadingPool(LIMITS) as pool:
        assert (await pool.read(str(path))).extract.status == "read"
        made = below(temporary) - before
        assert [stat.S_IMODE(path.stat().st_mode) for path in made if path.parent == temporary] == [0o700]
    assert below(temporary) == before


def below(folder: Path) -> set[Path]:
    return set(folder.rglob("*"))


async def test_without_a_place_for_temporary_files_a_document_fails_and_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "nosuch"))
    async with ReadingPool(LIMITS) as pool:
        reading = await pool.read(str(bad_documents.pdf(tmp_path / "a.pdf")))
    assert reading.extract.status == "failed"
    assert reading.extract.reason.startswith("no reading process could be started: ")
    assert "No such file or directory" in reading.extract.reason
    assert not (tmp_path / "nosuch").exists()


@pytest.mark.skipif(sys.platform == "win32", reason="the library looks elsewhere there")
def test_a_full_disk_is_no_damage_of_the_document(tmp_path: Path) -> None:
    full = tmp_path / "full"
    full.mkdir()
    program = (
        "import sys, os, resource; os.environ['TMPDIR'] = sys.argv[2]; from roles.analysis.extract import extract;"
        "import tempfile; tempfile.tempdir = '/elsewhere';"  # as Python itself chooses where the folder has no room
        "resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096)); import signal;"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN);"
        "print(extract(open(sys.argv[1], 'rb').read(), '.pdf').reason)"
    )
    path = bad_documents.pdf(tmp_path / "a.pdf")
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-c", program, str(path), str(full)]
    run = subprocess.run(command, env=environment, capture_output=True, text=True, check=True, timeout=50)
    assert run.stdout.startswith(f"what reads PDF can't be set up in the folder {full}: ")
    assert "File too large" in run.stdout


@pytest.mark.parametrize("busy", [False, True], ids=["idle", "busy"])
def test_readers_end_with_a_parent_that_was_killed(busy: bool, temporary: Path, tmp_path: Path) -> None:
    program = """
        import anyio, os, sys
        from roles.analysis.reading_pool import ReadingPool

        async def main():
            async with ReadingPool() as pool:
                await pool.read(sys.argv[1])
                (reader,) = pool._idle
                print(reader._process.pid, flush=True)
                async with anyio.create_task_group() as group:
                    if sys.argv[2]:
                        group.start_soon(pool.read, sys.argv[2])
                    await anyio.sleep_forever()

        anyio.run(main)
    """
    before = below(temporary)
    (tmp_path / "a.txt").write_text("a")
    slow = tmp_path / "slow.html"
    slow.write_text("<a" * 3_000_000)
    command = [sys.executable, "-c", "\n".join(line[8:] for line in program.splitlines()), str(tmp_path / "a.txt")]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    parent = subprocess.Popen([*command, str(slow) if busy else ""], env=environment, stdout=subprocess.PIPE)
    assert parent.stdout is not None
    reader = int(parent.stdout.readline())
    assert below(temporary) > before
    parent.kill()
    parent.wait()
    parent.stdout.close()
    deadline = time.monotonic() + 20
    while is_alive(reader) or below(temporary) != before:
        assert time.monotonic() < deadline
        time.sleep(0.05)


async def test_a_file_that_is_read_again_in_a_fresh_process_has_only_the_time_that_is_left(tmp_path: Path) -> None:
    program = """
        import json, sys, time

        def answer(content):
            sys.stdout.buffer.write(len(content).to_bytes(8, "big") + content)
            sys.stdout.flush()

        answer(b"ready")
        for number, line in enumerate(sys.stdin):
            if "good" not in line:
                time.sleep(1.8 if number else 600)
                sys.exit(1)
            extract = {"status": "read", "reason": "", "text": "a", "pages": [], "unit": "page", "warnings": []}
            answer(json.dumps({"extract": extract, "sha256": "", "exhausted": False}).encode())
    """
    command = (sys.executable, "-c", "\n".join(line[8:] for line in program.splitlines()))
    async with ReadingPool(ReadingLimits(seconds=2, processes=1), command=command) as pool:
        await pool.read("good.txt")
        began = time.monotonic()
        reading = await pool.read("bad.txt")
        took = time.monotonic() - began
    assert (reading.extract.status, reading.extract.reason) == ("timed_out", "not read within 2 seconds")
    assert took < 3
