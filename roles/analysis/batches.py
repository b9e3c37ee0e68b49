"""Which claims the aggregator is shown together: as many as fit, and those that say nearly the same side by side.

Two claims that contradict each other use nearly the same words. Only a model that sees both can say so.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from typing import TYPE_CHECKING

from roles.analysis.words import stems_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from roles.analysis.events import QuotedClaim

BATCH = 48_000
"""Bytes of claims that the aggregator is shown at once: about 12,000 tokens in Latin letters, 16,000 in others."""

_TELLING = 12
"""Words of a claim that it is known by, the rarest."""
_SHARED = 100
"""Claims that share a word, beyond which it tells none of them apart."""


def claim_batches(claims: Sequence[QuotedClaim], size: Callable[[QuotedClaim], int]) -> list[list[QuotedClaim]]:
    """Divide claims into batches that are as equal as may be, each as large as a prompt may be.

    Args:
        claims: what the steps found.
        size: how many bytes of a prompt a claim takes; one that takes more than all may has a batch to itself.
    """
    ordered = alike_together(claims)
    sizes = [size(claim) for claim in ordered]
    number = max(1, -(-sum(sizes) // BATCH))
    share = min(BATCH, sum(sizes) / number + max(sizes, default=0))
    batches: list[list[QuotedClaim]] = []
    taken = math.inf
    for claim, own in zip(ordered, sizes, strict=True):
        if taken + own > share:
            batches.append([])
            taken = 0
        batches[-1].append(claim)
        taken += own
    return batches


def alike_together(claims: Sequence[QuotedClaim]) -> list[QuotedClaim]:
    """Return the claims so that each is followed by the one that is most like it of those that are left.

    Claims about several documents come first, for they are about what stands between these.
    """
    words = [set(stems_of(claim.text)) for claim in claims]
    shared = Counter(word for own in words for word in own)
    telling = [
        sorted((word for word in own if 1 < shared[word] <= _SHARED), key=lambda word: (shared[word], word))[:_TELLING]
        for own in words
    ]
    sharing: dict[str, set[int]] = defaultdict(set)
    for number, own in enumerate(telling):
        for word in own:
            sharing[word].add(number)
    ordered: dict[int, None] = {}
    for first in sorted(range(len(claims)), key=lambda place: -len({quote.document for quote in claims[place].quotes})):
        place: int | None = None if first in ordered else first
        while place is not None:
            ordered[place] = None
            weights: defaultdict[int, float] = defaultdict(float)
            for word in telling[place]:
                sharing[word].discard(place)
                for other in sharing[word]:
                    weights[other] += 1 / shared[word]
            place = max(weights, key=lambda other: (weights[other], -other), default=None)
    return [claims[place] for place in ordered]
