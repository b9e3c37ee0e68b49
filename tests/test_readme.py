"""The README does what it says: its code runs, prints what stands below it, and its first line answers the question."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")


class Block(NamedTuple):
    language: str
    text: str


BLOCKS = [Block(*found) for found in re.findall(r"^```(\w*)\n(.*?)^```$", README, re.DOTALL | re.MULTILINE)]

ANSWERS = {
    "inspection.pptx": "The drive-side bearing of condenser fan 2 seized",
    "maintenance-minutes.md": "Okafor went through the settings",
    "mail-alarm-delay.eml": "since Ida's visit yesterday the alarm delay AL-DLY",
    "press-notice.html": "The temperature in Hall 3 never rose above -12 °C",
    "mail-press-notice.eml": "that stood at -9.4 °C at 06:40",
}
"""What the documents answer: the cause, who knew, and a statement beside what contradicts it."""


def test_the_python_blocks_print_what_stands_below_them(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    module = ModuleType("readme")
    monkeypatch.setitem(sys.modules, "readme", module)  # annotations are looked up in the module of their class
    printed = []
    for code, below in re.findall(
        r"^```python\n(.*?)^```$(?:\n\n```text\n(.*?)^```$)?", README, re.DOTALL | re.MULTILINE
    ):
        exec(compile(code, "README.md", "exec"), vars(module))
        printed.append((capsys.readouterr().out, below))
    assert len(printed) == [block.language for block in BLOCKS].count("python") > 0
    assert [said for said, _ in printed] == [expected for _, expected in printed]


def test_the_first_line_writes_a_report_that_answers_across_documents(tmp_path: Path) -> None:
    _install, analysis = first_line().split(" && .venv/bin/swarmbus ")
    command = [sys.executable, "-c", "from swarmbus.cli import main; raise SystemExit(main())", *shlex.split(analysis)]
    command[command.index("report.md")] = str(tmp_path / "report.md")
    run = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT, timeout=55)
    assert run.returncode == 0, run.stderr
    report = (tmp_path / "report.md").read_text(encoding="utf-8")
    quoted = re.findall(r"^ *> (.+)\n *>\n *> — (\S+),", report, re.MULTILINE)
    for document, words in ANSWERS.items():
        assert [text for text, place in quoted if place.endswith(document) and words in text], f"{document}: {report}"


def test_the_two_lines_set_up_what_they_need() -> None:
    (shell,) = [block.text for block in BLOCKS if block.language == "sh"]
    lines = shell.splitlines()
    assert len(lines) == 2
    assert all(line.startswith("python3 -m venv .venv && .venv/bin/pip install ") for line in lines)
    assert lines[1].endswith(".venv/bin/pytest -q -n auto")


def test_every_block_is_of_a_kind_that_is_tested() -> None:
    assert {block.language for block in BLOCKS} == {"python", "sh", "text"}


def first_line() -> str:
    return next(block.text for block in BLOCKS if block.language == "sh").splitlines()[0]
