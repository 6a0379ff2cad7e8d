"""Counters that were not told are unknown, never zero."""

from __future__ import annotations

import dataclasses

import pytest

from skill_effectiveness.providers import UNKNOWN_USAGE, Usage
from skill_effectiveness.providers.usage import counter, price


def test_nothing_told_is_nothing_known() -> None:
    """P8 F40: every counter by itself."""
    assert dataclasses.asdict(UNKNOWN_USAGE) == {
        "input_tokens": None,
        "cached_input_tokens": None,
        "output_tokens": None,
        "reasoning_output_tokens": None,
        "cost_units": None,
    }
    assert Usage() == UNKNOWN_USAGE


def test_zero_is_told() -> None:
    """P8: a zero that a provider states is another thing than silence."""
    assert Usage(cached_input_tokens=0) != UNKNOWN_USAGE


def test_what_was_told_stays() -> None:
    """P8: no later code can add to it."""
    usage = Usage(input_tokens=3, cost_units=0.5)
    with pytest.raises(dataclasses.FrozenInstanceError):
        usage.input_tokens = 4  # type: ignore[misc]
    assert (usage.input_tokens, usage.output_tokens, usage.cost_units) == (3, None, 0.5)


@pytest.mark.parametrize(
    ("value", "tokens", "cost"),
    [
        (0, 0, None), (7, 7, 7.0), (-1, None, None), (0.5, None, 0.5), (0.0, None, None), (-0.5, None, None),
        (10**9, 10**9, 1e9), (10**9 + 1, None, None), (2**53, None, None), (1e308, None, None),
        (float("inf"), None, None), (float("nan"), None, None),
        (True, None, None), ("7", None, None), (None, None, None), ([7], None, None),
    ],
)  # fmt: skip
def test_what_a_program_told(value: object, tokens: int | None, cost: float | None) -> None:
    """P8 F39 F40: a zero of tokens is told, a cost of zero is that of a model without a price.

    What is beyond all reason is not told: sums stay exact, and the unknown counts as a whole budget.
    """
    assert counter(value) == tokens
    assert price(value) == cost
