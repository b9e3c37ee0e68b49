"""Copies of the delivery package under another name, in which one passage is changed."""

from __future__ import annotations

import importlib
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import swarmbus.delivery
from ledger_model.pair import Engine

_HERE = Path(swarmbus.delivery.__file__).parent
_COPY = "delivery_with_a_bug"


@dataclass(frozen=True, slots=True)
class Bug:
    """One passage of one module, and what stands there instead."""

    module: str
    passage: str
    instead: str


@contextmanager
def planted(bug: Bug | None, folder: Path) -> Iterator[Engine]:
    """Copy the package into a folder, plant the bug, and hand out the ledger of the copy."""
    copy = folder / _COPY
    shutil.copytree(_HERE, copy, ignore=shutil.ignore_patterns("__pycache__"))
    if bug is not None:
        _change(copy / f"{bug.module}.py", bug.passage, bug.instead)
    for path in copy.rglob("*.py"):
        path.write_text(path.read_text().replace("swarmbus.delivery", _COPY))
    sys.path.insert(0, str(folder))
    try:
        ledger = importlib.import_module(f"{_COPY}.ledger")
        topology = importlib.import_module(f"{_COPY}.topology")
        yield Engine(ledger.Ledger, topology.Topology)
    finally:
        sys.path.remove(str(folder))
        for name in [name for name in sys.modules if name.partition(".")[0] == _COPY]:
            del sys.modules[name]


def _change(path: Path, passage: str, instead: str) -> None:
    text = path.read_text()
    assert text.count(passage) == 1, f"{path.name} holds {passage!r} {text.count(passage)} times; write the bug anew"
    path.write_text(text.replace(passage, instead))
