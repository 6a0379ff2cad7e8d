"""What a planned study would find, by simulation (studies.md section 6).

2,000 studies are drawn: each task has a base rate clip(base_rate + task_sd z, 0, 1), the treated arm passes
with clip(base + effect, 0, 1), every sample is a draw of its own, and the planned test decides. Draws are
shared by all supposed effects, so that power never falls as the effect grows for want of luck.

Words of use `power`: first one per study and task for z, then per study, task and sample one for the
comparator and one for the treatment.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
from scipy.special import ndtri

from skill_effectiveness.studies.analysis.decimals import TOLERANCE, checked_alpha
from skill_effectiveness.studies.analysis.evidence_sequence import capitals
from skill_effectiveness.studies.analysis.sign_flips import DRAWS as FLIP_DRAWS
from skill_effectiveness.studies.analysis.sign_flips import EXACT_TASKS
from skill_effectiveness.studies.words import Sides

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from skill_effectiveness.studies.chance import Chance

STUDIES: Final = 2_000
GRID: Final = 20
"""Supposed effects from 0.05 to 1 in steps of 1/20."""

WANTED: Final = 0.8
_USE: Final = "power"
_ROWS: Final = 10_000


@dataclass(frozen=True, slots=True)
class Design:
    """What the plan fixes of a study before it is run.

    Args:
        tasks: m, at least 1.
        samples: repeats per task and arm, at least 1.
        alpha: error rate in (0, 1).
        sides: of the fixed test.
        anytime: whether evidence is looked at after every task instead.
        base_rate: of the comparator, from 0 to 1.
        task_sd: spread of base rates between tasks, from 0.
    """

    tasks: int
    samples: int
    alpha: float
    sides: Sides
    anytime: bool
    base_rate: float
    task_sd: float


@dataclass(frozen=True, slots=True)
class Power:
    """What the plan can expect.

    Attributes:
        at_minimum_effect: share of studies that reject when the least effect is real.
        detectable: least effect on a grid of 0.05 that is found with power 0.8; None when none is.
        draws: number of studies simulated.
    """

    at_minimum_effect: float
    detectable: float | None
    draws: int


def planned_power(design: Design, minimum_effect: float, chance: Chance) -> Power:
    """Power of a design at its least effect, and the effect it could find.

    Args:
        design: the plan.
        minimum_effect: delta, above 0.
        chance: the draws of the plan.
    """
    simulation = _Simulation(design, chance)
    found = _least_detectable(simulation)
    return Power(simulation.share_rejecting(minimum_effect), found, STUDIES)


def _least_detectable(simulation: _Simulation) -> float | None:
    """By halving, since the shared draws make power rise with the effect but for the last digits."""
    low, high = 1, GRID + 1
    while low < high:
        middle = (low + high) // 2
        if simulation.share_rejecting(middle / GRID) >= WANTED:
            high = middle
        else:
            low = middle + 1
    return low / GRID if low <= GRID else None


class _Simulation:
    def __init__(self, design: Design, chance: Chance) -> None:
        self._design, self._chance = design, chance
        m, n = design.tasks, design.samples
        words = chance.uniforms(_USE, STUDIES * m * (1 + 2 * n))
        normal = np.asarray(ndtri(words[: STUDIES * m]), dtype=np.float64).reshape(STUDIES, m)
        self._samples = words[STUDIES * m :].reshape(STUDIES, m, n, 2)
        self._base = np.clip(design.base_rate + design.task_sd * normal, 0, 1)

    def share_rejecting(self, effect: float) -> float:
        treated = np.clip(self._base + effect, 0, 1)
        passed = (self._samples[..., 1] < treated[..., np.newaxis]).mean(axis=2)
        compared = (self._samples[..., 0] < self._base[..., np.newaxis]).mean(axis=2)
        differences = passed - compared
        rejected = self._anytime(differences) if self._design.anytime else self._fixed(differences)
        return float(np.count_nonzero(rejected)) / STUDIES

    def _anytime(self, differences: NDArray[np.float64]) -> NDArray[np.bool_]:
        reached = np.zeros(STUDIES, dtype=bool)
        limit = 1 / float(checked_alpha(self._design.alpha))
        for capital in capitals(differences, np.zeros(1), self._design.alpha):
            reached |= capital[:, 0] >= limit - TOLERANCE
        return reached

    def _fixed(self, differences: NDArray[np.float64]) -> NDArray[np.bool_]:
        """Studies whose planned test leaves a p of at most alpha."""
        exact = self._design.tasks <= EXACT_TASKS
        p = self._exact_p(differences) if exact else self._drawn_p(differences)
        return np.asarray(p <= self._design.alpha + TOLERANCE)

    def _exact_p(self, differences: NDArray[np.float64]) -> NDArray[np.float64]:
        """The share of all flips by counting sums, which are whole multiples of one sample's weight."""
        steps = np.rint(differences * self._design.samples).astype(np.int64)
        reach = self._design.samples * self._design.tasks
        counts = np.zeros((STUDIES, 2 * reach + 1))
        counts[:, reach] = 1
        for task in range(self._design.tasks):
            counts = _flipped_once_more(counts, np.abs(steps[:, task]))
        sums = np.arange(-reach, reach + 1)
        observed = steps.sum(axis=1)[:, np.newaxis]
        if self._design.sides is Sides.TWO:
            reached = np.abs(sums)[np.newaxis, :] >= np.abs(observed)
        else:
            reached = sums[np.newaxis, :] >= observed
        return np.asarray((counts * reached).sum(axis=1) / 2.0**self._design.tasks, dtype=np.float64)

    def _drawn_p(self, differences: NDArray[np.float64]) -> NDArray[np.float64]:
        """The share of drawn flips; they are the same for all studies."""
        observed = differences.sum(axis=1)
        two = self._design.sides is Sides.TWO
        total = np.abs(observed) if two else observed
        hits = np.zeros(STUDIES, dtype=np.int64)
        signs = self._chance.signs("power-flips", FLIP_DRAWS, self._design.tasks)
        for start in range(0, FLIP_DRAWS, _ROWS):
            sums = signs[start : start + _ROWS].astype(np.float64) @ differences.T
            reached = np.abs(sums) if two else sums
            hits += np.count_nonzero(reached >= total[np.newaxis, :] - TOLERANCE, axis=0)
        return (1 + hits) / (FLIP_DRAWS + 1)


def _flipped_once_more(counts: NDArray[np.float64], steps: NDArray[np.int64]) -> NDArray[np.float64]:
    """How often each sum occurs once a further difference may be added or taken away, a study per row."""
    found = np.empty_like(counts)
    for step in np.unique(steps):
        rows = steps == step
        held = counts[rows]
        if step == 0:
            found[rows] = 2 * held
            continue
        moved = np.zeros_like(held)
        moved[:, step:] += held[:, :-step]
        moved[:, :-step] += held[:, step:]
        found[rows] = moved
    return found
