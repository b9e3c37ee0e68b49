"""What mypy says: nothing about the quickstart, and exactly what it should about misuse."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from mypy import api

QUICKSTART = Path(__file__).parents[1] / "examples" / "quickstart.py"
MISUSE = Path(__file__).with_name("typing") / "misuse.txt"
FOUND = re.compile(r"^(?P<file>.+?):(?P<line>\d+): error: .*\[(?P<code>[\w-]+)\]$", re.MULTILINE)


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[int, set[str]]]:
    """Run mypy once over both files and return its error codes by file and line."""
    misuse = tmp_path_factory.mktemp("typing") / "misuse.py"
    misuse.write_text(MISUSE.read_text())
    cache = tmp_path_factory.mktemp("mypy")
    output, trouble, _ = api.run(["--strict", f"--cache-dir={cache}", str(QUICKSTART), str(misuse)])
    assert trouble == ""
    codes: dict[str, dict[int, set[str]]] = {}
    for match in FOUND.finditer(output):
        codes.setdefault(Path(match["file"]).stem, {}).setdefault(int(match["line"]), set()).add(match["code"])
    return codes


@pytest.mark.timeout(300)
def test_the_quickstart_is_fully_typed(told: dict[str, dict[int, set[str]]]) -> None:
    assert "quickstart" not in told


@pytest.mark.timeout(300)
def test_misuse_is_refused_line_by_line(told: dict[str, dict[int, set[str]]]) -> None:
    lines = MISUSE.read_text().splitlines()
    marked = {
        number: set(line.partition("# E: ")[2].split(", "))
        for number, line in enumerate(lines, 1)
        if "# E: " in line and not line.startswith("#")
    }
    assert told["misuse"] == marked
