"""What model calls cost in money, from the optional library `genai-prices`; an unknown price is an error, never 0."""

from __future__ import annotations

from typing import TYPE_CHECKING

from swarmbus.errors import UnknownPrice
from swarmbus.messages import Usage

if TYPE_CHECKING:
    from collections.abc import Callable


_NOTHING = Usage()


def price_of(model: str) -> Callable[[Usage], float]:
    """Return the function from usage to US dollars for a model named `PREFIX:NAME`.

    Raises:
        UnknownPrice: the library is not installed, or does not know the model.
    """
    try:
        import genai_prices  # noqa: PLC0415  # optional, and only where money is limited
    except ImportError as error:
        raise UnknownPrice("a limit in US dollars needs prices: pip install 'swarmbus[prices]'") from error
    provider, _, name = model.partition(":")

    def price(usage: Usage) -> float:
        counts = genai_prices.Usage(
            input_tokens=usage.input_tokens,
            output_tokens=usage.output_tokens,
            cache_read_tokens=usage.cached_tokens,
        )
        return float(genai_prices.calc_price(counts, model_ref=name, provider_id=provider).total_price)

    try:
        price(_NOTHING)
    except LookupError as error:
        raise UnknownPrice(f"the price of {model} is not known, so a limit in US dollars can't be kept") from error
    return price
