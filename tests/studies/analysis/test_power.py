"""What a planned study would find."""

from __future__ import annotations

from math import comb

import pytest

from skill_effectiveness.studies.analysis.power import STUDIES, Design, planned_power
from skill_effectiveness.studies.chance import Chance
from skill_effectiveness.studies.words import Sides

CHANCE = Chance(bytes(32))


def certain(tasks: int, *, sides: Sides = Sides.TWO, anytime: bool = False) -> Design:
    """A comparator that never passes, so that a task is won with the effect's own probability."""
    return Design(tasks, 1, 0.05, sides, anytime, base_rate=0.0, task_sd=0.0)


def at_least(wins: int, tasks: int, share: float) -> float:
    return sum(comb(tasks, k) * share**k * (1 - share) ** (tasks - k) for k in range(wins, tasks + 1))


@pytest.mark.parametrize(("tasks", "wins", "known"), [(6, 6, 0.5314), (8, 6, 0.9619)])
def test_known_answers(tasks: int, wins: int, known: float) -> None:
    """S42: six tasks need six wins, eight need six; the simulation lies within four Monte Carlo errors."""
    exact = at_least(wins, tasks, 0.9)
    assert round(exact, 4) == known
    found = planned_power(certain(tasks), 0.9, CHANCE)
    assert abs(found.at_minimum_effect - exact) < 4 * (exact * (1 - exact) / STUDIES) ** 0.5
    assert found.draws == STUDIES


def test_detectable_is_the_least_effect_of_the_grid() -> None:
    """Eight tasks, six wins: 0.8 gives 0.797 and 0.85 gives 0.895 by the binomial distribution."""
    assert at_least(6, 8, 0.8) < 0.8 < at_least(6, 8, 0.85)
    assert planned_power(certain(8), 0.5, CHANCE).detectable in {0.8, 0.85}


def test_five_tasks_detect_nothing() -> None:
    """No data of five tasks can reject at 0.05."""
    found = planned_power(certain(5), 0.9, CHANCE)
    assert (found.at_minimum_effect, found.detectable) == (0.0, None)


def test_one_sided_needs_one_task_less() -> None:
    """1 / 32 is under 0.05."""
    assert planned_power(certain(5, sides=Sides.GREATER), 1.0, CHANCE).at_minimum_effect == 1.0


def test_anytime_pays_for_looking() -> None:
    """Seven certain wins are the first to reach 20 (14.36 after six)."""
    assert planned_power(certain(6, anytime=True), 1.0, CHANCE).at_minimum_effect == 0.0
    assert planned_power(certain(7, anytime=True), 1.0, CHANCE).at_minimum_effect == 1.0


@pytest.mark.slow
def test_drawn_flips_agree_with_counted_ones() -> None:
    """20 tasks are counted, 21 drawn: the power of neighbours differs little."""
    power = [
        planned_power(
            Design(m, 3, 0.05, Sides.TWO, anytime=False, base_rate=0.5, task_sd=0.15), 0.2, CHANCE
        ).at_minimum_effect
        for m in (20, 21)
    ]
    assert abs(power[0] - power[1]) < 0.06
