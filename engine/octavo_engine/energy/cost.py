"""What tokens cost at the user's price of electricity."""

from __future__ import annotations

import math

from octavo_engine.errors import InvalidRequest

_JOULES_PER_KWH = 3.6e6
_MILLION = 1e6


def cost_per_million_tokens(
    price_per_kwh: float,
    *,
    joules_per_token: float | None = None,
    watts: float | None = None,
    tokens_per_second: float | None = None,
) -> float:
    """Cost of a million tokens, in the currency of the price.

    From measured energy (`EngineStats.joules_per_token`), or from the power that the machine is known to take while it
    works, divided by its speed: watts / (tokens/s) = joules a token. A kilowatt-hour is 1,000 W x 3,600 s = 3.6e6 J, so
    cost = joules_per_token x 1e6 / 3.6e6 x price_per_kwh.

    Args:
        price_per_kwh: price of a kilowatt-hour.
        joules_per_token: measured energy.
        watts: power while working; needs `tokens_per_second` (`EngineStats.tokens_per_second`).
        tokens_per_second: speed at that power.

    Raises:
        InvalidRequest: neither or both ways, or a number that is negative, zero speed or not finite.
    """
    numbers = {
        "price_per_kwh": price_per_kwh,
        "joules_per_token": joules_per_token,
        "watts": watts,
        "tokens_per_second": tokens_per_second,
    }
    for name, value in numbers.items():
        if value is not None and not (math.isfinite(value) and value >= 0):
            raise InvalidRequest(f"{name} is {value!r}; it must be a number of at least 0.")
    if (joules_per_token is None) == (watts is None):
        raise InvalidRequest("Give either joules_per_token, or watts with tokens_per_second.")
    if watts is not None:
        if not tokens_per_second:
            raise InvalidRequest("watts need tokens_per_second above 0: let the engine answer something first.")
        joules_per_token = watts / tokens_per_second
    assert joules_per_token is not None
    return joules_per_token * _MILLION / _JOULES_PER_KWH * price_per_kwh
