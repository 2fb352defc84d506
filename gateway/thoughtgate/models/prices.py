"""What tokens cost, and what a reply came to.

Never guesses: where a price or the usage is unknown, so is the cost.
"""

from dataclasses import dataclass
from decimal import ROUND_CEILING, Decimal

from thoughtgate.core.models import Usage


@dataclass(frozen=True, slots=True, kw_only=True)
class Prices:
    """Prices of a million tokens, in any one currency; `cached` None: as dear as `input`."""

    input: float
    output: float
    cached: float | None = None


def cost_micros(usage: Usage, prices: Prices | None) -> int | None:
    """Return the cost in millionths of the currency, rounded up; None when it is unknown.

    A price of a million tokens is as many millionths for one. Tokens of which a server does not
    say that they were cached are charged in full.
    """
    if prices is None or usage.input_tokens is None or usage.output_tokens is None:
        return None
    cached = min(usage.cached_tokens or 0, usage.input_tokens)
    cached_price = prices.input if prices.cached is None else prices.cached
    exact = (
        (usage.input_tokens - cached) * Decimal(str(prices.input))
        + cached * Decimal(str(cached_price))
        + usage.output_tokens * Decimal(str(prices.output))
    )
    return int(exact.to_integral_value(rounding=ROUND_CEILING))
