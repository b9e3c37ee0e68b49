"""Loading documents: every file gets a status, and none costs more than itself."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from roles.analysis.documents import NoDocumentsError, find_files, load_documents
from roles.analysis.reading import ReadingLimits, ReadingPool
from support import bad_documents
from support.bad_documents import KINDS, TEXT

LIMITS = ReadingLimits(seconds=20, processes=2)


@pytest.mark.parametrize("kind", KINDS)
async def test_each_bad_document_has_its_status(kind: str, tmp_path: Path) -> None:
    name, make, status = KINDS[kind]
    make(tmp_path / name)
    (document,) = await load_documents([tmp_path / name], LIMITS)
    assert (document.status, bool(document.reason) or status == "read") == (status, True)
    assert document.readable == (status == "read")
    assert (TEXT.split()[1] in document.text) == (status == "read")


async def test_bad_documents_cost_only_themselves(tmp_path: Path) -> None:
    for name, make, _ in KINDS.values():
        make(tmp_path / name)
    (tmp_path / "folder.pdf").mkdir()
    (tmp_path / "good.txt").write_text("All is well.")
    documents = await load_documents([tmp_path], LIMITS)
    status = {Path(document.path).name: document.status for document in documents}
    expected = {name: expected for name, _, expected in KINDS.values()}
    assert status == {**expected, "folder.pdf": "failed", "good.txt": "read"}


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
    async with ReadingPool(ReadingLimits(seconds=0.2, processes=1), command) as pool:
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


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (EURO.encode("utf-8-sig"), EURO),
        (EURO.encode("utf-16"), EURO),
        (GERMAN.encode("cp1252"), GERMAN),
        (SPANISH.encode("latin-1"), SPANISH),
        (JAPANESE.encode("shift_jis"), JAPANESE),
    ],
    ids=["UTF-8 with mark", "UTF-16", "cp1252", "Latin-1", "Shift-JIS"],
)
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


@pytest.mark.skipif(os.geteuid() == 0, reason="whoever is root may read every file")
async def test_a_file_without_permission_fails(tmp_path: Path) -> None:
    path = tmp_path / "secret.txt"
    path.write_text("secret")
    path.chmod(0)
    (document,) = await load_documents([path], LIMITS)
    assert (document.status, document.reason) == ("failed", "no permission to read the file")


async def test_pages_of_a_pdf_are_places(tmp_path: Path) -> None:
    bad_documents.pdf(tmp_path / "two.pdf", "The first page speaks of pumps.", "The second page speaks of valves.")
    (document,) = await load_documents([tmp_path], LIMITS)
    at = document.text.index("valves")
    assert (len(document.pages), document.places.at(at).label) == (2, "page 2, paragraph 1")
