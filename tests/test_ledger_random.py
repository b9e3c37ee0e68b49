from __future__ import annotations

import sys
from collections import Counter
from typing import TYPE_CHECKING

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st
from ledger_model.drive import check_one

if TYPE_CHECKING:
    from random import Random

    import pytest

RUNS = 2_000

AT_LEAST = {
    "a person's answer": 200,
    "broken by a failure": 100,
    "broken by silence": 60,
    "children of a class": 200,
    "contribution after the firing": 40,
    "contribution without an opener": 150,
    "deadline": 80,
    "early events": 150,
    "empty map": 100,
    "expected keys": 200,
    "failure of a bystander": 50,
    "failure taken by a join": 200,
    "fired with cancelled": 40,
    "fired with done": 400,
    "fired with failed": 100,
    "fired with missing": 150,
    "fired with nothing": 200,
    "hop limit": 5,
    "join four deep": 40,
    "join in a join": 250,
    "join opened again beside its scope": 100,
    "join reopened in its own scope": 120,
    "late records": 120,
    "map": 500,
    "map in a map": 150,
    "map in a map in a map": 50,
    "mapped again in one scope": 12,
    "maps counted by a function": 100,
    "mended": 50,
    "no result": 200,
    "not mended": 90,
    "outcome cancelled": 8,
    "outcome done": 500,
    "outcome failed": 200,
    "outcome limit": 5,
    "outcome stalled": 250,
    "outcome timed_out": 8,
    "picky handlers": 100,
    "quiet beside a bystander": 200,
    "quorum": 80,
    "quorum missed": 120,
    "rest after the result": 90,
    "result closes a join": 90,
    "retries": 200,
    "sent by the client into a scope": 12,
    "timers": 25,
    "two joins of one opener": 200,
    "waiting": 20,
}
"""In how many of the runs each feature has to come about for the test to mean something."""


def test_the_ledger_does_what_a_model_that_looks_at_everything_does(capsys: pytest.CaptureFixture[str]) -> None:
    features: Counter[str] = Counter()

    @seed(20261130)
    @settings(
        max_examples=RUNS,
        deadline=None,
        database=None,
        phases=(Phase.generate,),
        suppress_health_check=[HealthCheck.too_slow],
    )
    @given(st.randoms(use_true_random=True))
    def run(random: Random) -> None:
        features.update(check_one(random))

    run()
    counts = "".join(f"{count:8} {feature}\n" for feature, count in sorted(features.items()))
    with capsys.disabled():
        sys.stdout.write(f"\n{RUNS} random runs, and how many of them had:\n{counts}")
    rare = {feature: features[feature] for feature, least in AT_LEAST.items() if features[feature] < least}
    assert rare == {}
