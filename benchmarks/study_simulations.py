"""Do intervals cover, and do tests keep their rate? 1,000 simulated analyses for each design.

A study has 12, 30 or 60 tasks with base rates clip(0.5 + 0.15 z), three samples in each arm and an effect of
0.3 or none. The interval must hold the true mean effect (rates cannot pass 1, so it is a little under 0.3) in
at least 930 of 1,000, and without an effect at most 63 may reject: about three standard errors under 950 and
two over 50. Three ways of looking: a fixed number of tasks, the evidence sequence at the end, and the
sequence at the moment at which a study would have stopped.

The draws of the analysis are those of one plan for each design; the data are new in every study.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy.stats import norm

from benchmarks.harness import Figure, report
from skill_effectiveness.studies.analysis.analyse import BOOTSTRAP_TASKS
from skill_effectiveness.studies.analysis.bootstrap import Resamples
from skill_effectiveness.studies.analysis.evidence_sequence import anytime_p, looks, stopped_at
from skill_effectiveness.studies.analysis.sign_flips import Flips
from skill_effectiveness.studies.chance import Chance
from skill_effectiveness.studies.words import Sides

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from skill_effectiveness.calibration.figures import Interval

STUDIES = 1_000
SAMPLES = 3
ALPHA = 0.05
LEAST_EFFECT = 0.05
COVERED = 930
REJECTED = 63


class Said(NamedTuple):
    """What one analysis says; None is an interval that holds nothing."""

    interval: Interval | None
    p: float


Way = Callable[[list[float]], Said]


def main() -> int:
    start = time.perf_counter()
    figures = [figure for tasks in (12, 30, 60) for effect in (0.3, 0.0) for figure in _design(tasks, effect)]
    seconds = time.perf_counter() - start
    return report(*figures, Figure("study_simulations_seconds", seconds, 600))


def _design(tasks: int, effect: float) -> list[Figure]:
    source = np.random.default_rng([tasks, round(100 * effect)])
    studies = [_differences(source, tasks, effect).tolist() for _ in range(STUDIES)]
    truth = _true_effect(effect)
    figures = []
    for name, way in (("fixed", _fixed(tasks)), ("anytime", _anytime), ("stopped", _stopped)):
        said = [way(differences) for differences in studies]
        label = f"{name}_{tasks}_tasks_effect_{effect:g}"
        figures.append(Figure(f"{label}_covering", _covering(said, truth), COVERED, at_most=False))
        if not effect:
            rejecting = sum(one.p <= ALPHA for one in said)
            figures.append(Figure(f"{label}_rejecting", rejecting, REJECTED))
    return figures


def _differences(source: np.random.Generator, tasks: int, effect: float) -> NDArray[np.float64]:
    base = np.clip(0.5 + 0.15 * source.standard_normal(tasks), 0, 1)
    treated = source.binomial(SAMPLES, np.clip(base + effect, 0, 1)) / SAMPLES
    return np.asarray(treated - source.binomial(SAMPLES, base) / SAMPLES, dtype=np.float64)


def _true_effect(effect: float) -> float:
    """Mean over the population of tasks, by its quantiles."""
    z = norm.ppf((np.arange(1_000_000) + 0.5) / 1_000_000)
    base = np.clip(0.5 + 0.15 * z, 0, 1)
    return float((np.clip(base + effect, 0, 1) - base).mean())


def _fixed(tasks: int) -> Way:
    chance = Chance(bytes([tasks]) * 32)
    flips, resamples = Flips(chance, "flip/full-off"), Resamples(chance, "bca/full-off")

    def way(differences: list[float]) -> Said:
        if tasks >= BOOTSTRAP_TASKS:
            interval = resamples.interval(differences, ALPHA)
        else:
            interval = flips.interval_or_range(differences, ALPHA)
        return Said(interval, flips.p_value(differences, Sides.TWO))

    return way


def _anytime(differences: list[float]) -> Said:
    seen = looks(differences, ALPHA)
    return Said(seen[-1].interval, anytime_p([look.evidence for look in seen]))


def _stopped(differences: list[float]) -> Said:
    seen = looks(differences, ALPHA)
    seen = seen[: stopped_at(seen, ALPHA, LEAST_EFFECT)]
    return Said(seen[-1].interval, anytime_p([look.evidence for look in seen]))


def _covering(said: list[Said], truth: float) -> int:
    return sum(
        one.interval is not None and one.interval.low - 1e-9 <= truth <= one.interval.high + 1e-9
        for one in said
    )


if __name__ == "__main__":
    sys.exit(main())
