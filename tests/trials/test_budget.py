"""What is left, and that consumption only grows."""

from __future__ import annotations

import pytest

from skill_effectiveness.trials.budget import (
    check_left,
    check_progress,
    check_within,
    has_limit,
    remaining,
)
from skill_effectiveness.trials.faults import TrialCode, TrialError
from skill_effectiveness.trials.models import ConsumedBudget, ResumeCursor, TrialBudget, read_record
from tests.support.trials import LIMITED, NOTHING, UNLIMITED, Json, cursor


def budget(**changes: float | None) -> TrialBudget:
    return read_record(TrialBudget, LIMITED | changes)


def used(**changes: float) -> ConsumedBudget:
    return read_record(ConsumedBudget, NOTHING | changes)


def at(run_order: int, **changes: float) -> ResumeCursor:
    return read_record(ResumeCursor, cursor(run_order, **changes))


def refused(code: TrialCode, call: Json, *arguments: Json, **named: Json) -> str | None:
    with pytest.raises(TrialError) as caught:
        call(*arguments, **named)
    assert caught.value.code is code
    return caught.value.field


def test_unlimited_dimensions_stay_null() -> None:
    """T15: a null limit returns null, whatever was used."""
    left = remaining(budget(), used(tokens=400, wall_time_seconds=0.5, tool_calls=99, cost_units=2))
    assert left.model_dump() == {
        "tokens": 600,
        "wall_time_seconds": 60.0,
        "tool_calls": None,
        "cost_units": 0,
    }
    assert remaining(read_record(TrialBudget, UNLIMITED), used(tokens=7)).model_dump() == UNLIMITED
    assert remaining(budget(), None).model_dump() == LIMITED


def test_what_is_left_never_falls_below_nothing() -> None:
    assert remaining(budget(), used(tokens=5000)).tokens == 0


def test_nothing_left_of_one_limit_is_the_end() -> None:
    check_left(remaining(budget(), used(tokens=999, tool_calls=10_000)))
    assert refused(TrialCode.BUDGET_EXCEEDED, check_left, remaining(budget(), used(tokens=1000))) == "tokens"


def test_a_limit_may_be_reached_and_not_passed() -> None:
    check_within(budget(), used(tokens=1000, wall_time_seconds=60.5, cost_units=2, tool_calls=1e9))
    assert refused(TrialCode.BUDGET_EXCEEDED, check_within, budget(), used(cost_units=2.001)) == "cost_units"


def test_neither_order_nor_consumption_falls() -> None:
    """T15: both are monotone, each dimension by itself."""
    before = at(3, tokens=10, tool_calls=2)
    check_progress(before, before)
    check_progress(before, at(4, tokens=10, tool_calls=2, cost_units=1))
    assert refused(TrialCode.NO_PROGRESS, check_progress, before, at(2, tokens=10, tool_calls=2))
    lower = at(9, tokens=99, tool_calls=1)
    assert refused(TrialCode.NO_PROGRESS, check_progress, before, lower) == "tool_calls"


def test_an_interim_stop_has_used_something() -> None:
    before = at(3, tokens=10)
    refused(TrialCode.NO_PROGRESS, check_progress, before, at(4, tokens=10), must_advance=True)
    check_progress(before, at(3, tokens=10, cost_units=0.25), must_advance=True)
    refused(TrialCode.NO_PROGRESS, check_progress, None, at(1), must_advance=True)
    check_progress(None, at(1, tokens=1), must_advance=True)


def test_one_limit_is_a_limit() -> None:
    assert has_limit(budget())
    assert not has_limit(read_record(TrialBudget, UNLIMITED))
