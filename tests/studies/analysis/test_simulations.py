"""Few of the simulated analyses that `benchmarks.study_simulations` makes by the thousand."""

from __future__ import annotations

import numpy as np
import pytest

from skill_effectiveness.studies.analysis.evidence_sequence import anytime_p, looks, stopped_at
from skill_effectiveness.studies.analysis.sign_flips import Flips
from skill_effectiveness.studies.chance import Chance
from skill_effectiveness.studies.words import Sides

STUDIES = 200
FLIPS = Flips(Chance(bytes(32)), "flip/full-off")


def differences(effect: float, seed: int) -> list[list[float]]:
    """Twelve tasks, three samples an arm, base rates around one half; no rate is cut off at 1."""
    source = np.random.default_rng(seed)
    base = np.clip(0.4 + 0.1 * source.standard_normal((STUDIES, 12)), 0.05, 0.65)
    treated, compared = source.binomial(3, base + effect), source.binomial(3, base)
    return ((treated - compared) / 3).tolist()  # type: ignore[no-any-return]


@pytest.mark.parametrize("effect", [0.0, 0.3])
def test_intervals_cover(effect: float) -> None:
    """S53: 95 % less four standard errors of 200 studies: at least 178."""
    held = differences(effect, seed=6)
    fixed = [FLIPS.interval_or_range(d, 0.05) for d in held]
    assert sum(one.low <= effect <= one.high for one in fixed) >= 178
    ends = [looks(d, 0.05)[-1].interval for d in held]
    assert sum(one is not None and one.low <= effect <= one.high for one in ends) >= 178


def test_rates_are_kept_without_an_effect() -> None:
    """S53: 5 % and four standard errors: at most 22, however long one looks and whenever one stops."""
    held = differences(0.0, seed=7)
    assert sum(FLIPS.p_value(d, Sides.TWO) <= 0.05 for d in held) <= 22
    seen = [looks(d, 0.05) for d in held]
    assert sum(anytime_p([look.evidence for look in one]) <= 0.05 for one in seen) <= 22
    assert sum(stopped_at(one, 0.05, 0.05) is not None for one in seen) <= 22
