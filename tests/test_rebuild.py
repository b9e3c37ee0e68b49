"""A run whose process dies right after any of its records goes on in another one as if nothing had happened."""

from __future__ import annotations

from collections import Counter
from itertools import count
from typing import TYPE_CHECKING

import pytest
from rebuild.workshop import Telling, Workshop, opened

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture(scope="module")
def workshop(anyio_backend: str) -> Iterator[Workshop]:
    with opened(anyio_backend) as workshop:
        yield workshop


@pytest.mark.timeout(300)  # it makes some four hundred processes
@pytest.mark.parametrize("story", ["census", "papers"])
def test_a_run_goes_on_after_any_record(workshop: Workshop, story: str, tmp_path: Path) -> None:
    whole = Telling(workshop, story, tmp_path / "whole")
    whole.go()
    done = whole.effects()
    assert len(set(done)) == len(done)
    for last in count(1):
        telling = Telling(workshop, story, tmp_path / str(last))
        if telling.go(last=last):
            break
        before, paid = telling.effects(), telling.calls
        telling.go(resumed=True)
        after = telling.effects()
        assert telling.output == whole.output, last
        assert set(before) | set(after) == set(done), last
        assert kinds(after) == kinds(done) - paid, last
        assert telling.calls == whole.calls, last
    assert last == len(whole.records) + 1


@pytest.mark.timeout(300)
@pytest.mark.parametrize("story", ["census", "papers"])
def test_a_run_goes_on_after_a_second_death_as_well(workshop: Workshop, story: str, tmp_path: Path) -> None:
    whole = Telling(workshop, story, tmp_path / "whole")
    whole.go()
    done = set(whole.effects())
    for first in range(1, len(whole.records) - 5, 6):
        telling = Telling(workshop, story, tmp_path / str(first))
        assert not telling.go(last=first)
        telling.go(last=first + 5, resumed=True)
        telling.go(resumed=True)
        assert telling.output == whole.output, first
        assert set(telling.effects()) == done, first
        assert telling.calls == whole.calls, first


def kinds(effects: list[str]) -> Counter[str]:
    """Count effects by their kind, which stands first."""
    return Counter(effect.split(" ", 1)[0] for effect in effects)
