from __future__ import annotations

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
    "broken by silence": 50,
    "children of a class": 200,
    "contribution after the firing": 30,
    "contribution without an opener": 100,
    "deadline": 75,
    "early events": 200,
    "empty map": 100,
    "ended from outside": 20,
    "failure of a bystander": 50,
    "failure taken by a join": 200,
    "fired with cancelled": 30,
    "fired with done": 400,
    "fired with failed": 100,
    "fired with missing": 100,
    "hop limit": 10,
    "join four deep": 40,
    "join in a join": 300,
    "join reopened in its own scope": 100,
    "late records": 100,
    "map": 600,
    "map in a map": 150,
    "map in a map in a map": 50,
    "mended": 50,
    "not mended": 100,
    "outcome done": 500,
    "outcome failed": 200,
    "outcome limit": 10,
    "outcome stalled": 250,
    "picky handlers": 50,
    "quorum": 75,
    "quorum missed": 100,
    "rest after the result": 75,
    "result closes a join": 75,
    "retries": 200,
    "sent by the client into a scope": 15,
    "timers": 30,
    "two joins of one opener": 200,
    "waiting": 15,
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
    with capsys.disabled():
        print(f"\n{RUNS} random runs, in how many of them:")
        for feature, count in sorted(features.items()):
            print(f"{count:6} {feature}")
    assert {feature: features[feature] for feature, least in AT_LEAST.items() if features[feature] < least} == {}
