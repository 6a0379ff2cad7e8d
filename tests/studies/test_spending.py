"""What attempts used, and what is left."""

from __future__ import annotations

import pytest

from skill_effectiveness.protocol.gates import Budgets
from skill_effectiveness.studies.rows import Usage
from skill_effectiveness.studies.spending import Spending, consumed, left_of, over_limit
from skill_effectiveness.studies.state import AttemptState
from skill_effectiveness.studies.words import EndClass

DIGEST = "sha256:" + "0" * 64


def budget(**limits: float) -> Budgets:
    names = ("tokens", "wall_time_seconds", "tool_calls", "cost_units")
    return Budgets(**{name: limits.get(name) for name in names})


def ended(usage: Usage | None) -> AttemptState:
    return AttemptState(1, DIGEST, "t", EndClass.CRASHED, usage=usage)


USED = Usage(input_tokens=70, output_tokens=30, tool_calls=2, cost_units=0.25, wall_seconds=1.5)


def test_use_is_summed_over_attempts() -> None:
    """S26: every dimension; what is not told adds nothing to a trial."""
    found = consumed([ended(USED), ended(Usage()), ended(None)], USED)
    assert found.model_dump() == {
        "tokens": 200,
        "wall_time_seconds": 3.0,
        "tool_calls": 4,
        "cost_units": 0.5,
    }


def test_a_limit_is_passed_when_more_was_used() -> None:
    """Exactly the limit is within it; the first dimension over it is named."""
    used = consumed([ended(USED)])
    assert over_limit(budget(tokens=100, tool_calls=2), used) is None
    assert over_limit(budget(tokens=99), used) == "tokens"
    assert over_limit(budget(cost_units=0.2, wall_time_seconds=1), used) == "wall_time_seconds"


def test_what_is_left() -> None:
    """None as soon as one dimension is used up."""
    used = consumed([ended(USED)])
    assert left_of(budget(), used) == budget()
    assert left_of(budget(tokens=150, tool_calls=5), used) == budget(tokens=50, tool_calls=3)
    assert left_of(budget(tokens=100), used) is None
    assert left_of(budget(tokens=500, cost_units=0.2), used) is None


@pytest.mark.parametrize(
    ("calls", "limit", "exhausted"), [(2, 201, None), (2, 200, "tokens"), (3, 200, "tokens")]
)
def test_a_study_is_spent_at_its_limit(calls: int, limit: float, exhausted: str | None) -> None:
    """S21: the study's budget, over all attempts."""
    spending = Spending(budget())
    for _ in range(calls):
        spending.add(EndClass.COMPLETED, USED)
    assert spending.exhausted(budget(tokens=limit)) == exhausted
    assert spending.exhausted(budget()) is None


def test_silence_after_work_costs_the_trials_budget() -> None:
    """F39 F40: unknown is not nothing where a model has worked, and nothing where it has not."""
    spending = Spending(budget(tokens=1_000, cost_units=2))
    spending.add(EndClass.PROVIDER_ERROR, Usage())
    assert spending.exhausted(budget(tokens=1)) is None
    spending.add(EndClass.TIMEOUT, Usage())
    assert spending.exhausted(budget(tokens=1_000)) == "tokens"
    assert spending.exhausted(budget(cost_units=2)) == "cost_units"
    assert spending.exhausted(budget(tokens=1_001)) is None


@pytest.mark.parametrize("ended", ["completed", "no_answer", "refused", "timeout", "limit", "void"])
def test_silence_without_a_limit_of_the_trial_is_the_end_of_a_limited_study(ended: str) -> None:
    """F39 F40: nobody knows what it cost, so nothing of the limit is known to be left."""
    spending = Spending(budget())
    spending.add(EndClass(ended), USED.model_copy(update={"cost_units": None}))
    assert spending.exhausted(budget()) is None
    assert spending.exhausted(budget(tokens=101, tool_calls=3)) is None
    assert spending.exhausted(budget(cost_units=1_000_000)) == "cost_units"


@pytest.mark.parametrize("ended", ["provider_error", "interrupted", "crashed"])
def test_silence_of_who_may_not_have_worked_costs_nothing(ended: str) -> None:
    """F40: a program that did not come so far is no reason to stop a study."""
    spending = Spending(budget())
    spending.add(EndClass(ended), Usage())
    assert spending.exhausted(budget(cost_units=1)) is None
