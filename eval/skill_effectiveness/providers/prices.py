"""What a session costs by prices that a person states, where its program does not say.

Source: studies.md section 1 (budgets); providers.md P8; field-failures.md F38 to F40. Exact in decimals until
the last step, so that ten tenths are one.
"""

from __future__ import annotations

import re
from decimal import Decimal
from typing import TYPE_CHECKING, Annotated, Final

from pydantic import BeforeValidator, PlainSerializer

from skill_effectiveness.evidence.documents import RuleBroken
from skill_effectiveness.protocol.document import FrozenModel

if TYPE_CHECKING:
    from skill_effectiveness.providers.usage import Usage

_TEXT: Final = re.compile(r"(?:0|[1-9][0-9]{0,8})(?:\.[0-9]{1,12})?")
_LEAST: Final = 1e-12
"""Less has no text form, and would be as good as nothing."""
_MOST: Final = 999_999_999
_MILLION: Final = Decimal(1_000_000)
_SAME: Final = Decimal("0.01")
"""Two costs that differ by less than this share of the larger one are the same."""

_FORM: Final = 'A price is a number of cost units for a million tokens, such as 1.25 or "1.25".'
_NOT_FREE: Final = "A price of 0 is none: a limit would never be reached; state the real one."


def _price(value: object) -> object:
    if isinstance(value, str) and _TEXT.fullmatch(value):
        return Decimal(value)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise RuleBroken(_FORM)
    if value == 0 or _LEAST <= value <= _MOST:
        return Decimal(repr(value))
    raise RuleBroken(_FORM)


def _not_free(value: object) -> object:
    price = _price(value)
    if price == 0:
        raise RuleBroken(_NOT_FREE)
    return price


_AsText = PlainSerializer(lambda price: format(price, "f"), return_type=str)
Price = Annotated[Decimal, BeforeValidator(_price), _AsText]
RealPrice = Annotated[Decimal, BeforeValidator(_not_free), _AsText]


class ModelPrice(FrozenModel):
    """Cost units for a million tokens of one model, decimal text or a number.

    Attributes:
        input: tokens that the model is sent; above 0.
        output: tokens that it produces; above 0.
        cached_input: those of the input that came from a cache; None: as other input.
        reasoning: those of the output that were reasoning; None: as other output.
    """

    input: RealPrice
    output: RealPrice
    cached_input: Price | None = None
    reasoning: Price | None = None


def cost_of(usage: Usage, price: ModelPrice) -> float | None:
    """What a session cost; `None` where a kind of tokens that has a price of its own was not told.

    Counters that contradict each other tell nothing either.
    """
    sent = _part(usage.input_tokens, usage.cached_input_tokens, price.input, price.cached_input)
    said = _part(usage.output_tokens, usage.reasoning_output_tokens, price.output, price.reasoning)
    return None if sent is None or said is None else float((sent + said) / _MILLION)


def _part(whole: int | None, some: int | None, price: Decimal, own: Decimal | None) -> Decimal | None:
    if whole is None:
        return None
    if own is None or own == price:
        return whole * price
    if some is None or some > whole:
        return None
    return (whole - some) * price + some * own


def disagree(told: float, priced: float) -> bool:
    """Whether a told cost and one by stated prices are not the same, within a hundredth."""
    one, other = Decimal(repr(told)), Decimal(repr(priced))
    return abs(one - other) > _SAME * max(one, other)
