"""What a session costs by stated prices; every figure worked out by hand."""

from __future__ import annotations

import pytest

from skill_effectiveness.evidence.documents import validate
from skill_effectiveness.evidence.faults import DocumentError
from skill_effectiveness.providers.prices import ModelPrice, cost_of, disagree
from skill_effectiveness.providers.usage import UNKNOWN_USAGE, Usage

WHOLE = Usage(
    input_tokens=1_000_000, cached_input_tokens=400_000, output_tokens=200_000, reasoning_output_tokens=50_000
)


def price(**stated: object) -> ModelPrice:
    return validate(ModelPrice, {"input": "1.25", "output": 10, **stated})


class TestCost:
    def test_a_known_answer(self) -> None:
        """F39: 0.6 x 1.25 + 0.4 x 0.125 + 0.15 x 10 + 0.05 x 20."""
        assert cost_of(WHOLE, price(cached_input=0.125, reasoning="20")) == 3.3

    def test_kinds_without_a_price_of_their_own(self) -> None:
        """F39: cached input as other input, reasoning as other output: 1.25 + 0.2 x 10."""
        assert cost_of(WHOLE, price()) == 3.25

    def test_a_cache_may_be_free(self) -> None:
        """F39: 0.6 x 1.25 + 2."""
        assert cost_of(WHOLE, price(cached_input=0)) == 2.75

    @pytest.mark.parametrize(
        ("stated", "usage"),
        [
            ({}, UNKNOWN_USAGE),
            ({}, Usage(input_tokens=1)),
            ({}, Usage(output_tokens=1)),
            ({"cached_input": 1}, Usage(input_tokens=2, output_tokens=1)),
            ({"reasoning": 1}, Usage(input_tokens=2, output_tokens=1)),
            ({"cached_input": 1}, Usage(input_tokens=2, cached_input_tokens=3, output_tokens=1)),
            ({"reasoning": 1}, Usage(input_tokens=2, output_tokens=1, reasoning_output_tokens=2)),
        ],
    )
    def test_unknown_is_not_nothing(self, stated: dict[str, object], usage: Usage) -> None:
        """F40: no usage, half of it, a kind with a price of its own, counters that contradict each other."""
        assert cost_of(usage, price(**stated)) is None

    def test_a_kind_that_costs_the_same_need_not_be_told(self) -> None:
        """F40: nothing depends on it."""
        usage = Usage(input_tokens=1_000_000, output_tokens=100_000)
        assert cost_of(usage, price(cached_input="1.250", reasoning=10)) == 2.25

    def test_decimals_are_exact(self) -> None:
        """Ten tenths are one: 3 x 0.1 is 0.3."""
        usage = Usage(input_tokens=3_000_000, output_tokens=0)
        assert cost_of(usage, price(input="0.1")) == 0.3


class TestPrices:
    @pytest.mark.parametrize(
        "stated", ["1e3", "-1", "+1", "01", "1.", ".5", "NaN", "1,25", " 1", "9999999999", "1.0000000000000"]
    )
    def test_other_texts_are_refused(self, stated: str) -> None:
        """S8 S10: one spelling."""
        with pytest.raises(DocumentError) as refused:
            price(cached_input=stated)
        assert "cost units for a million tokens" in str(refused.value)

    @pytest.mark.parametrize("stated", [True, -0.5, 1e12, [], {}, None, 1e-13, 5e-324])
    def test_other_values_are_refused(self, stated: object) -> None:
        """S8 S10: no truth, nothing negative, nothing absurd."""
        with pytest.raises(DocumentError):
            price(input=stated)

    @pytest.mark.parametrize("member", ["input", "output"])
    @pytest.mark.parametrize("stated", [0, 0.0, "0", "0.00"])
    def test_nothing_is_free(self, member: str, stated: object) -> None:
        """F39: a model without a price would never reach a limit."""
        with pytest.raises(DocumentError) as refused:
            price(**{member: stated})
        assert "never be reached" in str(refused.value)

    def test_unknown_and_missing_kinds(self) -> None:
        """S8: each by name."""
        for stated in ({"input": 1}, {"input": 1, "output": 1, "image": 1}):
            with pytest.raises(DocumentError):
                validate(ModelPrice, stated)

    def test_a_record_of_them(self) -> None:
        """As text, so that an order has the very price that was stated."""
        plain = price(cached_input=0.125).model_dump(mode="json")
        assert plain == {"input": "1.25", "output": "10", "cached_input": "0.125", "reasoning": None}
        assert validate(ModelPrice, plain) == price(cached_input="0.125")


@pytest.mark.parametrize(
    ("told", "priced", "differ"),
    [(1.0, 1.0, False), (1.0, 0.99, False), (1.0, 0.989, True), (0.5, 1.0, True), (0.0, 0.0, False)],
)
def test_whether_two_costs_disagree(told: float, priced: float, differ: bool) -> None:  # noqa: FBT001 - a case
    """F39: by more than a hundredth of the larger one, whichever that is."""
    assert disagree(told, priced) is differ
    assert disagree(priced, told) is differ
