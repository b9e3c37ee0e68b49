"""Whether other processes are still there."""

from __future__ import annotations

from pathlib import Path


def is_alive(number: int) -> bool:
    """Whether a process runs; one that has ended and waits to be asked how does not."""
    try:
        return Path(f"/proc/{number}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False
