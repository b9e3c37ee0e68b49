"""Every example runs offline, as a person would run it, and prints what it says it does."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[1] / "examples"

PRINTED = {
    "quickstart": [
        "Which mountain is the highest?",
        "How high is Säntis?: 2502 m",
        "How high is Rigi?: 1798 m",
        "How high is Pilatus?: 2128 m",
    ],
    "own_roles": ["3 sales: tea 7.00, cake 4.80"],
    "nested_maps": [
        "How many pages for Noon? 3",
        "Dawn p.1, Dawn p.2",
        "Noon p.1, Noon p.2, Noon p.3",
        "Dusk p.1",
    ],
    "analyse_documents": [
        (
            "maintenance-minutes.md, paragraph 14: When Okafor went through the settings this morning she found that"
            " the parameter AL-DLY (delay between a fault and the alarm call) stands at **165 minutes**."
        ),
        "done: 12 claims from 12 documents",
    ],
}


def test_every_example_is_run() -> None:
    assert {path.stem for path in EXAMPLES.glob("*.py")} == PRINTED.keys()


@pytest.mark.parametrize("name", PRINTED)
def test_an_example_prints_what_it_should(name: str) -> None:
    environment = {**os.environ, "SWARMBUS_NO_MODELS": "1", "PYTHONUTF8": "1"}
    command = [sys.executable, str(EXAMPLES / f"{name}.py")]
    run = subprocess.run(
        command, capture_output=True, text=True, check=False, env=environment, timeout=50, encoding="utf-8"
    )
    assert run.returncode == 0, run.stderr
    expected = PRINTED[name]
    assert run.stdout.splitlines()[-len(expected) :] == expected
