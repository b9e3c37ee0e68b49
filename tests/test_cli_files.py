"""Files that commands write: what is refused before the work, and what is left of a file that can't be replaced."""

from __future__ import annotations

import os
import resource
import stat
import subprocess
import tempfile
import threading
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from swarms import research

from swarmbus.cli import main
from swarmbus.cli.files import WriteError, unwritable, write_file
from swarmbus.graph import FORMATS, draw

if TYPE_CHECKING:
    from collections.abc import Iterator

RESEARCH = Path(__file__).parent / "swarms" / "research.py"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@contextmanager
def full_disk(largest: int) -> Iterator[None]:
    """Let no file grow beyond some bytes."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (largest, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def graph(*options: str) -> int:
    return main(["graph", str(RESEARCH), *options])


def test_a_file_is_replaced_whole_and_keeps_its_mode(folder: Path) -> None:
    path = folder / "report.md"
    path.write_text("a much longer text than the new one")
    path.chmod(0o640)
    write_file(path, "größer\n")
    assert path.read_bytes() == "größer\n".encode()
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    assert list(folder.iterdir()) == [path]


def test_a_new_file_has_the_mode_that_any_new_file_has(folder: Path) -> None:
    (folder / "other").touch()
    write_file(folder / "report.md", "")
    assert (folder / "report.md").stat().st_mode == (folder / "other").stat().st_mode


def test_a_link_stays_a_link(folder: Path) -> None:
    (folder / "there").mkdir()
    link = folder / "link.md"
    link.symlink_to("there/report.md")
    for text in ("new", "newer"):
        write_file(link, text)
        assert (folder / "there" / "report.md").read_text() == text
    assert link.is_symlink()


def test_a_full_disk_leaves_the_old_file_and_nothing_beside_it(folder: Path) -> None:
    path = folder / "report.md"
    path.write_text("old")
    with full_disk(100), pytest.raises(WriteError, match=r"report\.md can't be written: File too large"):
        write_file(path, "x" * 10_000)
    assert path.read_text() == "old"
    assert list(folder.iterdir()) == [path]


@pytest.fixture
def shared() -> Iterator[Path]:
    """A report of root's that all may write, in a folder that all reach."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "report.md"
        path.write_text("a much longer text than the new one")
        path.chmod(0o666)
        yield path


@contextmanager
def somebody_else() -> Iterator[None]:
    os.setresuid(65534, 65534, 0)
    try:
        yield
    finally:
        os.setresuid(0, 0, 0)


as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can be somebody else")


@as_root
@pytest.mark.parametrize("mode", [0o1777, 0o755], ids=["sticky folder", "folder of another"])
def test_a_file_that_may_not_be_replaced_is_written_into(mode: int, shared: Path) -> None:
    shared.parent.chmod(mode)
    before = shared.stat()
    with somebody_else():
        assert unwritable(shared) == ""
        write_file(shared, "new")
    assert (shared.read_text(), shared.stat().st_ino) == ("new", before.st_ino)
    assert list(shared.parent.iterdir()) == [shared]


@as_root
@pytest.mark.parametrize("mode", [0o1777, 0o755], ids=["sticky folder", "folder of another"])
def test_a_full_disk_leaves_a_file_that_may_not_be_replaced(mode: int, shared: Path) -> None:
    shared.parent.chmod(mode)
    before = shared.read_text()
    with somebody_else(), full_disk(100), pytest.raises(WriteError, match="File too large"):
        write_file(shared, "x" * 10_000)
    assert shared.read_text() == before
    assert list(shared.parent.iterdir()) == [shared]


@as_root
def test_a_file_of_anothers_in_a_sticky_folder_is_refused_before_the_work(shared: Path) -> None:
    shared.parent.chmod(0o1777)
    shared.chmod(0o644)
    with somebody_else():
        assert unwritable(shared) == f"no permission to write {shared}"


@as_root
def test_a_file_that_is_mounted_is_written_into(folder: Path) -> None:
    (folder / "outside").write_text("old")
    (folder / "report.md").touch()
    if subprocess.run(["mount", "--bind", "outside", "report.md"], check=False, capture_output=True).returncode:
        pytest.skip("nothing can be mounted here")
    try:
        write_file(folder / "report.md", "new")
    finally:
        subprocess.run(["umount", "report.md"], check=True)
    assert (folder / "outside").read_text() == "new"


def test_a_pipe_is_written_to_and_stays(folder: Path) -> None:
    pipe = folder / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    write_file(pipe, "text")
    assert os.read(reader, 100) == b"text"
    os.close(reader)
    assert stat.S_ISFIFO(pipe.stat().st_mode)


def test_a_pipe_that_nobody_reads_holds_nothing_up(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    os.mkfifo(folder / "pipe.dot")
    with pytest.raises(WriteError, match=r"pipe\.dot can't be written: nobody reads it"):
        write_file(folder / "pipe.dot", "text")
    assert graph("-o", "pipe.dot") == 1
    assert "error: pipe.dot can't be written: nobody reads it" in capsys.readouterr().err


def test_a_pipe_whose_reader_does_not_read_is_given_up(folder: Path) -> None:
    pipe = folder / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    with pytest.raises(WriteError, match=r"pipe can't be written: its reader has read nothing for 0\.05 seconds"):
        write_file(pipe, "x" * 10_000_000, patience=0.05)
    os.close(reader)


def test_a_pipe_that_is_read_bit_by_bit_takes_all(folder: Path) -> None:
    pipe = folder / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    os.set_blocking(reader, True)
    writer = threading.Thread(target=write_file, args=(pipe, "x" * 1_000_000))
    held = os.open(pipe, os.O_WRONLY)
    writer.start()
    read = b""
    while len(read) < 1_000_000:
        read += os.read(reader, 5000)
    writer.join()
    os.close(held)
    os.close(reader)
    assert read == b"x" * 1_000_000


def test_a_pipe_with_the_name_of_a_target_is_none(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    os.mkfifo(folder / "app.py")
    assert main(["check", "app.py"]) == 2
    assert "app.py is no regular file, but a device, pipe or socket" in capsys.readouterr().err


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")
def test_a_file_keeps_its_owner(folder: Path) -> None:
    path = folder / "report.md"
    path.touch(0o640)
    os.chown(path, 65534, 65533)
    write_file(path, "new")
    after = path.stat()
    assert (after.st_uid, after.st_gid, stat.S_IMODE(after.st_mode)) == (65534, 65533, 0o640)


def test_a_link_that_leads_nowhere_is_written_through_and_a_circle_is_not(folder: Path) -> None:
    (folder / "link.md").symlink_to("new.md")
    (folder / "circle.md").symlink_to("circle.md")
    assert [unwritable(Path(name)) for name in ("link.md", "circle.md")] == [
        "",
        "circle.md can't be written: Too many levels of symbolic links",
    ]
    write_file(folder / "link.md", "text")
    assert (folder / "new.md").read_text() == "text"


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        (".", ". is a folder; name a file"),
        ("no/such/report.md", "there is no folder no/such"),
        ("x" * 300, f"{'x' * 300} can't be written: File name too long"),
        ("report.md", ""),
    ],
    ids=["folder", "no folder", "too long", "good"],
)
def test_what_cannot_be_written_is_told(path: str, reason: str) -> None:
    assert unwritable(Path(path)) == reason


@pytest.mark.parametrize(
    ("name", "written"),
    [("g.txt", "text"), ("g.mmd", "mermaid"), ("g.dot", "dot"), ("g.GV", "dot"), ("g.json", "json"), ("g", "text")],
)
def test_the_ending_of_the_file_says_the_format(name: str, written: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert graph("-o", name) == 0
    assert Path(name).read_text() == FORMATS[written](draw(research.swarm))
    assert capsys.readouterr() == ("", "")


def test_a_format_that_is_named_wins_over_the_ending_and_that_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    assert graph("-o", "g.dot", "--format", "json") == 0
    assert Path("g.dot").read_text() == FORMATS["json"](draw(research.swarm))
    assert "note: g.dot is written as json, as --format says, though its ending promises dot" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (("-o", "g.svg"), ("no format is known by the ending .svg", ".dot", "--format")),
        (("-o", "no/such/g.dot"), ("there is no folder no/such",)),
        (("-o", "."), (". is a folder",)),
        (("-o", "new/"), ("new/ is a folder; name a file",)),
    ],
    ids=["ending", "no folder", "folder", "folder that is not there"],
)
def test_a_picture_that_cannot_be_written_is_refused(
    options: tuple[str, ...], says: tuple[str, ...], folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert graph(*options) == 2
    err = capsys.readouterr().err
    assert [part for part in says if part not in err] == []
    assert list(folder.iterdir()) == []


def test_a_picture_that_its_file_cannot_take_is_an_error_in_words(capsys: pytest.CaptureFixture[str]) -> None:
    assert graph("-o", "/dev/full") == 1
    assert capsys.readouterr().err.splitlines()[0] == "error: /dev/full can't be written: No space left on device"


def test_a_dash_is_standard_output(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert graph("-o", "-", "--format", "dot") == 0
    assert capsys.readouterr().out == FORMATS["dot"](draw(research.swarm))
    assert list(folder.iterdir()) == []
