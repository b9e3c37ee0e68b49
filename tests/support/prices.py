"""A price list of our own, in the place of the library that looks prices up."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pytest


@dataclass(frozen=True)
class _Counts:
    input_tokens: int
    output_tokens: int
    cache_read_tokens: int


@dataclass(frozen=True)
class _Price:
    total_price: float


def know_prices(monkeypatch: pytest.MonkeyPatch, **prices: float) -> None:
    """Have each model of the provider `shop` cost so many US dollars a token."""

    def calc_price(usage: _Counts, *, model_ref: str, provider_id: str) -> _Price:
        if provider_id != "shop" or model_ref not in prices:
            raise LookupError(model_ref)
        return _Price((usage.input_tokens + usage.output_tokens) * prices[model_ref])

    library = ModuleType("genai_prices")
    library.__dict__.update(Usage=_Counts, calc_price=calc_price)
    monkeypatch.setitem(sys.modules, "genai_prices", library)
