"""A folder of bad documents: each has its status, none costs more than it may, none stops the others or is made up."""

from __future__ import annotations

import json
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
import pytest

from roles.analysis import analyze
from roles.analysis.documents import Document, load_documents, printable
from roles.analysis.reading_pool import ReadingLimits
from support.bad_archives import TEXT
from support.bad_documents import KINDS, SLOW
from swarmbus.models import ScriptedModel

if TYPE_CHECKING:
    from swarmbus.models import ModelRequest

LIMITS = ReadingLimits(seconds=8, memory=480 * 2**20, processes=1)

pytestmark = pytest.mark.timeout(180)


@pytest.fixture(scope="module", params=["asyncio"])
def anyio_backend(request: pytest.FixtureRequest) -> str:
    return str(request.param)


class Read:
    """What came of a folder of them all, and the seconds that each took."""

    def __init__(self, folder: Path) -> None:
        self.seconds: dict[str, float] = {}
        self._began: dict[str, float] = {}
        found = anyio.run(load_documents, [folder], LIMITS, self._note)
        self.documents: dict[str, Document] = {document.path: document for document in found}

    def _note(self, path: str, status: str | None) -> None:
        if status is None:
            self._began[path] = time.monotonic()
        else:
            self.seconds[path] = time.monotonic() - self._began[path]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("bad")
    for name, make, _ in KINDS.values():
        make(made / name)
    return made


@pytest.fixture(scope="module")
def read(folder: Path) -> Read:
    return Read(folder)


@pytest.mark.parametrize("kind", KINDS)
def test_each_bad_document_has_its_status(kind: str, folder: Path, read: Read) -> None:
    name, _, expected = KINDS[kind]
    document = read.documents[printable(folder / name)]
    assert document.status in expected.split(" or ")
    assert document.reason or document.status == "read"
    assert document.readable == (document.status == "read")
    assert (TEXT.split()[1] in document.text) == document.readable
    assert read.seconds[str(folder / name)] < LIMITS.seconds + 1


def test_none_is_left_out_and_none_stops_the_others(folder: Path, read: Read) -> None:
    assert len(KINDS) >= 60
    assert set(read.documents) == {printable(folder / name) for name, _, _ in KINDS.values()}


async def test_no_bad_document_reaches_a_model_but_as_what_it_says(tmp_path: Path) -> None:
    for kind, (name, make, _) in KINDS.items():
        if kind not in SLOW:
            make(tmp_path / name)
    asked: list[str] = []

    def answer(request: ModelRequest) -> Any:
        asked.append(str(request.messages[-1].content))
        form = request.output.name if request.output is not None else ""
        if form == "CrossSteps":
            return {"steps": []}
        return {"claims": []}

    report = await analyze(tmp_path, "Why was the pump replaced?", model=ScriptedModel([answer] * 200), limits=LIMITS)
    read = [entry.id for entry in report.documents if entry.status == "read"]
    assert report.status == "partial"
    assert len(asked) == 1 + len(read) == report.usage["calls"]
    assert sorted(text.split("Documents: ")[1].split(" ", 1)[0] for text in asked[1:]) == sorted(read)
    json.loads(report.to_json().encode())


async def test_a_document_that_changes_while_it_is_read_is_not_read_in_part(tmp_path: Path) -> None:
    path = tmp_path / "growing.log"
    with path.open("wb") as file:
        file.truncate(150 * 2**20)  # so much that something is written while it is read, however busy the machine
    over = threading.Event()

    def write() -> None:
        with path.open("a") as file:
            while not over.is_set():
                file.write("another line\n")
                file.flush()

    writer = threading.Thread(target=write)
    writer.start()
    try:
        (document,) = await load_documents([path], LIMITS)
    finally:
        over.set()
        writer.join()
    assert (document.status, document.reason) == ("failed", "the file was changed while it was read")
