"""The suite of `test_wiring` once more, its annotations postponed: the wiring must not notice (BC-001)."""

from __future__ import annotations

from pathlib import Path

SUITE = Path(__file__).with_name("test_wiring.py")

exec(compile(SUITE.read_text(), SUITE, "exec", flags=annotations.compiler_flag, dont_inherit=True))
