"""The clock that tests move by hand: the one that ships for users' tests."""

from __future__ import annotations

from swarmbus.testing import START, FakeClock

__all__ = ["START", "FakeClock"]
