"""Bounds and tipping points of missing values."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skill_effectiveness.studies.analysis.comparisons import Comparison, Measured, TaskValues
from skill_effectiveness.studies.analysis.missing import bounds, tipping_point
from skill_effectiveness.studies.analysis.sign_flips import Flips
from skill_effectiveness.studies.chance import Chance
from skill_effectiveness.studies.words import Sides

FLIPS = Flips(Chance(bytes(32)), "flip/full-off")
Pair = tuple[list[float | None], list[float | None]]


def comparison(*tasks: Pair) -> Comparison:
    slots = itertools.count(1)
    held = [
        TaskValues(
            f"t{number:02}",
            tuple(Measured(next(slots), value) for value in treated),
            tuple(Measured(next(slots), value) for value in compared),
        )
        for number, (treated, compared) in enumerate(tasks, start=1)
    ]
    return Comparison("full-off", tuple(held))


def word(held: Comparison) -> str:
    """A rule simple enough to follow by hand: the test and the sign of the mean."""
    values = held.differences
    if not values or FLIPS.p_value(values, Sides.TWO) > 0.05:
        return "inconclusive"
    return "improves" if sum(values) > 0 else "harms"


KNOWN = comparison(*[([1.0], [0.0])] * 6, ([0.0], [None]), ([0.0], [None]))


def test_known_answer() -> None:
    """S42: six tasks 1 to 0, two whose comparator is missing; one filled in gives p 0.125."""
    found = bounds(KNOWN)
    assert KNOWN.differences == (1.0,) * 6
    assert found is not None
    assert (found.low, found.high) == (0.5, 0.75)
    assert tipping_point(KNOWN, word) == 1


def test_a_task_without_an_arm_is_out_of_the_mean_but_not_of_the_bounds() -> None:
    held = comparison(([1.0, 1.0], [0.0, 0.0]), ([None], [0.5]))
    found = bounds(held)
    assert held.measured == ("t01",)
    assert found is not None
    assert (found.low, found.high) == (0.25, 0.75)


def test_nothing_missing_nothing_open() -> None:
    held = comparison(*[([1.0], [0.0])] * 6)
    found = bounds(held)
    assert found is not None
    assert (found.low, found.high) == (1.0, 1.0)
    assert tipping_point(held, word) is None


def test_no_task_no_bounds() -> None:
    assert bounds(Comparison("full-off", ())) is None


def test_preferences_run_from_minus_one_to_one() -> None:
    held = Comparison(
        "preference", (TaskValues("t1", (Measured(1, 1.0), Measured(2, None)), ()),), paired_values=True
    )
    found = bounds(held)
    assert found is not None
    assert (found.low, found.high) == (0.0, 1.0)


values = st.sampled_from([0.0, 1.0, None])
tasks = st.lists(
    st.tuples(st.lists(values, min_size=1, max_size=2), st.lists(values, min_size=1, max_size=2))
)


@given(tasks.filter(bool).filter(lambda held: sum(v is None for t in held for v in t[0] + t[1]) <= 6))
def test_bounds_contain_every_filling(held: list[Pair]) -> None:
    """S50: all fillings with 0, one half and 1."""
    filled = comparison(*held)
    found = bounds(filled)
    assert found is not None
    slots = [slot.slot for slot in filled.missing]
    for choice in itertools.product((0.0, 0.5, 1.0), repeat=len(slots)):
        chosen = dict(zip(slots, choice, strict=True))
        every = filled.filled(lambda slot, _treated, chosen=chosen: chosen[slot.slot])  # type: ignore[misc]
        mean = sum(every.differences) / len(every.differences)
        assert found.low - 1e-9 <= mean <= found.high + 1e-9


@pytest.mark.parametrize(
    "held",
    [
        [*[([1.0], [0.0])] * 7, ([1.0], [None]), ([None], [0.0]), ([1.0], [None])],
        [*[([1.0], [0.0])] * 9, ([None], [1.0]), ([0.0], [None])],
        [*[([0.0], [1.0])] * 7, ([None], [0.0]), ([None], [1.0]), ([None], [0.0])],
        [*[([1.0], [0.0])] * 5, ([1.0], [None]), ([1.0], [None])],
    ],
)
def test_tipping_point_by_brute_force(held: list[Pair]) -> None:
    """S51: no smaller set of missing slots, filled in with any of 0 and 1, changes the word."""
    filled = comparison(*held)
    slots = [slot.slot for slot in filled.missing]
    changing = [
        count
        for count in range(1, len(slots) + 1)
        if any(changes(filled, dict(zip(some, choice, strict=True)))
               for some in itertools.combinations(slots, count)
               for choice in itertools.product((0.0, 1.0), repeat=count))
    ]  # fmt: skip
    assert tipping_point(filled, word) == min(changing, default=None)


def changes(held: Comparison, chosen: dict[int, float]) -> bool:
    return word(held.filled(lambda slot, _treated: chosen.get(slot.slot))) != word(held)
