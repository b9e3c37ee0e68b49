"""Loading documents: every file gets a status, and none costs more than itself."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import anyio
import pytest

from roles.analysis.documents import (
    NOT_READ,
    Document,
    NoDocumentsError,
    find_files,
    load_documents,
    nowhere,
    path_of,
    printable,
)
from roles.analysis.reading_pool import ReadingLimits, ReadingPool
from support import bad_documents

LIMITS = ReadingLimits(seconds=20, processes=2)


async def test_a_folder_named_like_a_document_is_told_and_still_searched(tmp_path: Path) -> None:
    folder = tmp_path / "x.pdf"
    folder.mkdir()
    (folder / "inside.txt").write_text("inside")
    for given in (tmp_path, folder):
        documents = await load_documents([given], LIMITS)
        found = [(Path(document.path).name, document.status, document.reason) for document in documents]
        assert found == [("x.pdf", "failed", "a folder, not a file"), ("inside.txt", "read", "")]


async def test_a_reader_that_never_ends_is_stopped(tmp_path: Path) -> None:
    program = (
        "import sys, time; sys.stdout.buffer.write((5).to_bytes(8, 'big') + b'ready');"
        "sys.stdout.flush(); time.sleep(600)"
    )
    command = (sys.executable, "-c", program)
    (tmp_path / "a.txt").write_text("a")
    async with ReadingPool(ReadingLimits(seconds=0.2, processes=1), command=command) as pool:
        reading = await pool.read(str(tmp_path / "a.txt"))
    assert reading.extract.status == "timed_out"


async def test_a_reader_out_of_memory_fails_one_file(tmp_path: Path) -> None:
    (tmp_path / "big.txt").write_bytes(b"x" * 200_000_000)
    (tmp_path / "small.txt").write_text("small")
    limits = ReadingLimits(seconds=50, memory=400 * 2**20, processes=1)
    documents = await load_documents([tmp_path], limits)
    assert [document.status for document in documents] == ["failed", "read"]


EURO = "naïve café € 5"
GERMAN = "Die Prüfung kostet 5 €, sagte er über das Gerät."
SPANISH = "El niño pidió más café después de la reunión"
JAPANESE = "これは日本語の文書です。会議は午後三時に始まります。"


ENCODED = [
    (EURO.encode("utf-8-sig"), EURO),
    (EURO.encode("utf-16"), EURO),
    (GERMAN.encode("cp1252"), GERMAN),
    (SPANISH.encode("latin-1"), SPANISH),
    (JAPANESE.encode("shift_jis"), JAPANESE),
]


@pytest.mark.parametrize(("data", "text"), ENCODED, ids=["UTF-8 with mark", "UTF-16", "cp1252", "Latin-1", "Shift-JIS"])
async def test_encodings_are_found(data: bytes, text: str, tmp_path: Path) -> None:
    (tmp_path / "text.txt").write_bytes(data)
    (document,) = await load_documents([tmp_path], LIMITS)
    assert (document.status, document.text) == ("read", text)


async def test_invalid_bytes_and_nul_are_replaced_one_for_one_and_said(tmp_path: Path) -> None:
    (tmp_path / "text.txt").write_bytes("Über die Brücke\n".encode() * 20 + b"a\x00b \xff c")
    (document,) = await load_documents([tmp_path], LIMITS)
    assert document.text.endswith("a\ufffdb \ufffd c")
    assert document.warnings


async def test_the_reading_does_not_depend_on_the_locale(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "ü.txt").write_bytes("Grüße".encode())
    monkeypatch.setenv("PYTHONUTF8", "0")
    monkeypatch.setenv("LC_ALL", "C")
    (document,) = await load_documents([tmp_path], LIMITS)
    assert document.text == "Grüße"


async def test_every_encoding_is_read_alike_in_a_process_whose_own_is_ascii(tmp_path: Path) -> None:
    invalid = "Über die Brücke\n".encode() * 20 + b"a\xff c"
    for number, data in enumerate((*(data for data, _ in ENCODED), invalid)):
        (tmp_path / f"{number}-ü.txt").write_bytes(data)
    program = """
        import anyio, json, locale, sys
        from roles.analysis.documents import load_documents
        from roles.analysis.reading_pool import ReadingLimits
        assert "ASCII" in locale.getpreferredencoding() or "ANSI" in locale.getpreferredencoding()
        documents = anyio.run(load_documents, [sys.argv[1]], ReadingLimits(processes=1))
        print(json.dumps([[d.status, d.text, d.warnings] for d in documents]))
    """
    command = [sys.executable, "-c", "\n".join(line[8:] for line in program.splitlines()), str(tmp_path)]
    environment = {**os.environ, "PYTHONUTF8": "0", "LC_ALL": "C", "PYTHONPATH": os.pathsep.join(sys.path)}
    run = await anyio.run_process(command, env=environment)
    here = await load_documents([tmp_path], LIMITS)
    read = [[d.status, d.text, list(d.warnings)] for d in here]
    assert json.loads(run.stdout) == read
    assert [text for _, text, _ in read] == [*(text for _, text in ENCODED), invalid.decode(errors="replace")]
    assert read[-1][2]


async def test_of_equal_contents_the_first_is_kept(tmp_path: Path) -> None:
    for name in ("b.txt", "a.txt", "c.txt"):
        (tmp_path / name).write_text("the same" if name != "c.txt" else "another")
    documents = await load_documents([tmp_path], LIMITS)
    assert [(Path(d.path).name, d.status, d.id) for d in documents] == [
        ("a.txt", "read", "d1"),
        ("b.txt", "duplicate", "d2"),
        ("c.txt", "read", "d3"),
    ]


async def test_progress_names_each_file_when_it_begins_and_ends(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("a text")
    seen: list[tuple[str, object]] = []
    await load_documents([tmp_path], LIMITS, lambda path, status: seen.append((Path(path).name, status)))
    assert seen == [("a.txt", None), ("a.txt", "read")]


def test_nothing_given_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(NoDocumentsError, match="no document was given"):
        find_files([])
    with pytest.raises(NoDocumentsError, match="there is no file in"):
        find_files([tmp_path])


def test_a_link_to_its_own_folder_ends(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("a")
    (tmp_path / "loop").symlink_to(tmp_path)
    assert [Path(path).name for path in find_files([tmp_path])] == ["a.txt"]


def test_a_file_or_folder_without_permission_fails_and_no_other(tmp_path: Path) -> None:
    for name in ("open.txt", "secret.txt", "closed/inside.txt", "listed/inside.txt"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(name)
    (tmp_path / "secret.txt").chmod(0)
    (tmp_path / "closed").chmod(0)
    (tmp_path / "listed").chmod(0o644)
    tmp_path.chmod(0o755)
    program = """
        import os
        from roles.analysis.documents import find_files, nowhere
        from roles.analysis.reading_process import read_file
        if os.geteuid() == 0:  # who may read everything
            os.setuid(65534)
        found = find_files(["."])
        assert find_files(found) == found
        assert nowhere(found) == []
        for path in found:
            read = read_file(path, 100).extract
            print(path, read.status, read.reason or read.text, sep=": ")
    """
    command = [sys.executable, "-c", "\n".join(line[8:] for line in program.splitlines())]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    run = subprocess.run(
        command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False, timeout=50
    )
    for folder in ("closed", "listed"):
        (tmp_path / folder).chmod(0o755)
    assert (run.stderr, run.stdout.splitlines()) == (
        "",
        [
            "closed: failed: no permission to read the file",
            "listed/inside.txt: failed: no permission to read the file",
            "open.txt: read: open.txt",
            "secret.txt: failed: no permission to read the file",
        ],
    )


async def test_a_name_that_no_file_can_have_is_a_document_that_failed() -> None:
    documents = await load_documents(["x" * 300, "a\0b"], LIMITS)
    assert [(document.status, document.reason) for document in documents] == [
        ("failed", "there is no such file"),
        ("failed", "the file can't be read: File name too long"),
    ]


async def test_what_was_not_read_when_a_stop_came_is_said_to_be_unread(tmp_path: Path) -> None:
    for number in range(9):
        (tmp_path / f"{number}.txt").write_text(f"Page {number}.")
    stop = anyio.Event()

    def on_progress(_: str, status: object) -> None:
        if status is not None:
            stop.set()

    documents = await load_documents([tmp_path], ReadingLimits(processes=1), on_progress, stop.wait)
    assert [document.id for document in documents] == [f"d{number}" for number in range(1, 10)]
    ends = [(document.status, document.reason) for document in documents]
    assert ends.count(("read", "")) == len(ends) - ends.count(("failed", NOT_READ))
    assert ("read", "") in ends
    assert ("failed", NOT_READ) in ends


@pytest.mark.parametrize(
    ("path", "says"),
    [
        ("lettre.txt", "there is no file or folder 'lettre.txt' (did you mean 'letter.txt'?)"),
        ("folder/a.txt", "there is no file or folder 'folder/a.txt' (did you mean 'folder/a.text'?)"),
        ("letter.txt/b", "there is no file or folder 'letter.txt/b'"),
        ("", "there is no file or folder ''"),
        ("x" * 300, f"'{'x' * 300}' can't be read: File name too long"),
    ],
    ids=["misspelt", "in a folder", "below a file", "empty", "too long"],
)
def test_a_path_that_leads_nowhere_is_told(
    path: str, says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "letter.txt").touch()
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "a.text").touch()
    (tmp_path / "link").symlink_to("nosuch")
    assert nowhere(["letter.txt", path, "folder", "link"]) == [says]


def test_a_path_that_is_no_text_can_be_written_and_read_back() -> None:
    path = os.fsdecode(b"caf\xe9 \xff.txt")
    assert printable(path) == "caf\\udce9 \\udcff.txt"
    assert path_of(printable(path)) == path


@pytest.mark.parametrize(
    ("name", "text"),
    [
        (os.fsdecode(b"a\x80"), r"a\udc80"),
        (r"a\udc80", r"a\x5cudc80"),
        (r"a\x5cudc80", r"a\x5cx5cudc80"),
        (r"a\udc", r"a\udc"),
        (r"a\b\x5c", r"a\b\x5c"),
    ],
)
def test_no_two_names_are_written_alike(name: str, text: str) -> None:
    assert printable(name) == text
    assert path_of(text) == name


async def test_pages_of_a_pdf_are_places(tmp_path: Path) -> None:
    bad_documents.pdf(tmp_path / "two.pdf", "The first page speaks of pumps.", "The second page speaks of valves.")
    (document,) = await load_documents([tmp_path], LIMITS)
    at = document.text.index("valves")
    assert (len(document.pages), document.places.at(at).label) == (2, "page 2, paragraph 1")


@pytest.mark.parametrize("ending", [".csv", ".TSV", ".log", ".jsonl", ".ndjson", ".xlsx", ".xlsm", ".ods"])
def test_each_line_of_a_table_or_log_is_a_place(ending: str) -> None:
    document = Document("d1", f"run{ending}", "read", text="one\ntwo\n\nthree")
    assert document.places.at(10).label == "line 3"
