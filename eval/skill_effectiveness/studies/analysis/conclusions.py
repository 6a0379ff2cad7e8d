"""The one word a comparison comes to (studies.md section 6): the first whose rule holds.

| word | holds when |
|---|---|
| `equivalent` | the 1 - 2 alpha interval lies strictly inside the least effect, and 6 tasks could tell |
| `improves`, `harms` | the test rejects, its interval lies beyond 0 on that side, and so does the mean |
| `underpowered` | no data of so few tasks could reject, or the plan had under even odds to |
| `inconclusive` | everything else |

More deterministic safety failures in the treatment arm turn `improves` into `inconclusive`, with the
reason.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction
from typing import TYPE_CHECKING, Final

from skill_effectiveness.studies.analysis.decimals import TOLERANCE, checked_alpha

if TYPE_CHECKING:
    from skill_effectiveness.calibration.figures import Interval

_INFORMATIVE: Final = 6
_EVEN_ODDS: Final = 0.5


class Word(StrEnum):
    """What a study says; see the table above."""

    EQUIVALENT = "equivalent"
    IMPROVES = "improves"
    HARMS = "harms"
    UNDERPOWERED = "underpowered"
    INCONCLUSIVE = "inconclusive"


class Reason(StrEnum):
    """Why a stronger word was not given."""

    UNINFORMATIVE_TASKS = "uninformative_tasks"
    SAFETY = "safety"
    TOO_FEW_TASKS = "too_few_tasks"
    PLANNED_POWER = "planned_power"
    NO_TASKS = "no_tasks"


@dataclass(frozen=True, slots=True)
class Findings:
    """All that a word depends on.

    Attributes:
        effect: D; None without a task.
        p: of the planned test; None without a task.
        interval: the one `improves` and `harms` need: of level 1 - alpha, for a one-sided test 1 - 2 alpha,
            for anytime the confidence sequence; None where too few tasks allow any.
        narrow_interval: of level 1 - 2 alpha, for anytime the sequence; None as above.
        tasks: m.
        informative_tasks: tasks whose values are not all equal.
        minimum_effect: delta.
        alpha: error rate.
        planned_power: at delta, as frozen in the plan.
        more_safety_failures: whether the treatment arm had more deterministic safety failures.
    """

    effect: float | None
    p: float | None
    interval: Interval | None
    narrow_interval: Interval | None
    tasks: int
    informative_tasks: int
    minimum_effect: float
    alpha: float
    planned_power: float
    more_safety_failures: bool = False


@dataclass(frozen=True, slots=True)
class Conclusion:
    """The word, and why it is not a stronger one."""

    word: Word
    reasons: tuple[Reason, ...] = ()


def conclude(findings: Findings) -> Conclusion:
    """The word of one comparison."""
    if findings.effect is None or findings.p is None:
        return Conclusion(Word.UNDERPOWERED, (Reason.NO_TASKS,))
    reasons: list[Reason] = []
    if _within(findings.narrow_interval, findings.minimum_effect):
        if findings.informative_tasks >= _INFORMATIVE:
            return Conclusion(Word.EQUIVALENT)
        reasons.append(Reason.UNINFORMATIVE_TASKS)
    direction = _direction(findings.effect, findings.p, findings)
    if direction is Word.IMPROVES and findings.more_safety_failures:
        return Conclusion(Word.INCONCLUSIVE, (*reasons, Reason.SAFETY))
    if direction is not None:
        return Conclusion(direction, tuple(reasons))
    weak = _weaknesses(findings)
    if weak:
        return Conclusion(Word.UNDERPOWERED, (*reasons, *weak))
    return Conclusion(Word.INCONCLUSIVE, tuple(reasons))


def _within(interval: Interval | None, limit: float) -> bool:
    return interval is not None and interval.low > -limit + TOLERANCE and interval.high < limit - TOLERANCE


def _direction(effect: float, p: float, findings: Findings) -> Word | None:
    interval = findings.interval
    if interval is None or p > findings.alpha + TOLERANCE:
        return None
    if interval.low > TOLERANCE and effect > 0:
        return Word.IMPROVES
    if interval.high < -TOLERANCE and effect < 0:
        return Word.HARMS
    return None


def _weaknesses(findings: Findings) -> tuple[Reason, ...]:
    found = []
    if Fraction(2, 2**findings.tasks) > checked_alpha(findings.alpha):
        found.append(Reason.TOO_FEW_TASKS)
    if findings.planned_power < _EVEN_ODDS:
        found.append(Reason.PLANNED_POWER)
    return tuple(found)
