"""Random swarms under random disturbances; `python -m chaos` plays thousands of them."""

from __future__ import annotations

import sys

import pytest
from chaos.campaign import Campaign

RUNS = 160
"""On each backend."""
AT_LEAST = {
    "a person's answer": 8,
    "abandoned threads": 3,
    "cancelled at some moment": 4,
    "cut after the result": 3,
    "deadline": 5,
    "early events": 15,
    "fired with cancelled": 2,
    "fired with done": 40,
    "fired with failed": 5,
    "fired with missing": 5,
    "further readers": 30,
    "handler timed out": 4,
    "join in a join": 15,
    "left to itself": 8,
    "map in a map": 6,
    "mended": 3,
    "outcome cancelled": 4,
    "outcome done": 50,
    "outcome failed": 10,
    "outcome stalled": 15,
    "outcome stopped": 1,
    "outcome timed_out": 4,
    "quorum": 8,
    "rest after the result": 4,
    "retries": 15,
    "state": 30,
    "threads": 12,
    "timers": 1,
}
"""In how many of the runs each feature has to come about for the test to mean something."""


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
def test_whatever_happens_to_a_run_what_must_come_out_comes_out(
    backend: str, capsys: pytest.CaptureFixture[str]
) -> None:
    campaign = Campaign()
    while campaign.runs < RUNS:
        campaign.play(f"test.{campaign.rounds}", backend)
    counts = "".join(f"{count:8} {feature}\n" for feature, count in sorted(campaign.features.items()))
    with capsys.disabled():
        sys.stdout.write(f"\n{campaign.runs} chaotic runs on {backend}, and how many of them had:\n{counts}")
    assert campaign.faults == {}
    rare = {feature for feature, least in AT_LEAST.items() if campaign.features[feature] < least}
    assert rare == set()
