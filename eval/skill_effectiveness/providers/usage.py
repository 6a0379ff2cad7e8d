"""What a call cost, as far as it was told.

Source: providers.md P8; field-failures.md F15, F40.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

MOST_TOKENS: Final = 1_000_000_000
"""Of one kind in one session; who tells more has not counted. Below it a study's sums are exact."""

MOST_COST: Final = 1_000_000_000.0
"""Cost units of one session, likewise."""


@dataclass(frozen=True, slots=True)
class Usage:
    """Counters of one session; `None` is "not told" and never means zero.

    Attributes:
        input_tokens: tokens the model was sent, cached ones included.
        cached_input_tokens: the part of them that came from a cache.
        output_tokens: tokens the model produced, reasoning included.
        reasoning_output_tokens: the part of them that was reasoning.
        cost_units: the price, in the provider's own unit.
    """

    input_tokens: int | None = None
    cached_input_tokens: int | None = None
    output_tokens: int | None = None
    reasoning_output_tokens: int | None = None
    cost_units: float | None = None


UNKNOWN_USAGE = Usage()


def counter(value: object) -> int | None:
    """A number of tokens as a program told it; `None` for anything that is none, and beyond `MOST_TOKENS`."""
    if isinstance(value, bool) or not isinstance(value, int):
        return None
    return value if 0 <= value <= MOST_TOKENS else None


def price(value: object) -> float | None:
    """A cost as a program told it; `None` for anything that is none, and beyond `MOST_COST`.

    No session costs nothing: zero is what programs say of a model that they have no price for
    (field-failures.md F39).
    """
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if 0 < value <= MOST_COST else None
