"""Prices of hosted models, by `genai-prices`. An unknown price is `None`, never 0."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tropa.model.usage import Price

if TYPE_CHECKING:
    from genai_prices import Usage


def price_of(model: str, *, provider: str | None = None, url: str | None = None) -> Price | None:
    """The price of `model` at `provider` (such as `openai`), or at the provider whose API stands at `url`.

    Where a price rises with the length of the prompt this is that of a short one. `None` where it is not known.
    """
    from genai_prices import Usage, calc_price  # noqa: PLC0415  # a third of a second that few runs need

    def per_million(usage: Usage) -> float:
        if url is not None:
            return float(calc_price(usage, model, provider_api_url=url).total_price) * 1000
        return float(calc_price(usage, model, provider_id=provider).total_price) * 1000

    try:
        return Price(
            input=per_million(Usage(input_tokens=1000)),
            output=per_million(Usage(output_tokens=1000)),
            cached=per_million(Usage(input_tokens=1000, cache_read_tokens=1000)),
        )
    except LookupError:
        return None
