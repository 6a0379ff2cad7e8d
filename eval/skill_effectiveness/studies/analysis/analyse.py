"""The whole analysis of a study, from its tables and what its plan fixed (studies.md section 6).

Nothing here knows how a table came to be, and nothing depends on the order of its rows: the verifier of a
bundle calls the same function on tables it rebuilt itself.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Final

from skill_effectiveness.studies.analysis.bootstrap import bca_interval
from skill_effectiveness.studies.analysis.conclusions import Conclusion, Findings, conclude
from skill_effectiveness.studies.analysis.evidence_sequence import Look, anytime_p, looks
from skill_effectiveness.studies.analysis.holm import holm
from skill_effectiveness.studies.analysis.misclassification import Corrected, KnownAccuracy, corrected_net
from skill_effectiveness.studies.analysis.missing import bounds, tipping_point
from skill_effectiveness.studies.analysis.outcomes import (
    Outcome,
    compare_arms,
    compare_preferences,
    pass_means,
    safety_failures,
    shown_shares,
)
from skill_effectiveness.studies.analysis.paired_counts import mcnemar_exact
from skill_effectiveness.studies.analysis.rates import rate
from skill_effectiveness.studies.analysis.sign_flips import EXACT_TASKS, Flips, Sides
from skill_effectiveness.studies.analysis.to_decide import tasks_to_decide

if TYPE_CHECKING:
    from collections.abc import Mapping

    from skill_effectiveness.calibration.figures import Estimate, Interval
    from skill_effectiveness.studies.analysis.comparisons import Comparison
    from skill_effectiveness.studies.chance import Chance
    from skill_effectiveness.studies.tables import Tables

BOOTSTRAP_TASKS: Final = 30
"""From this number of tasks on the interval is the bootstrap's."""

_SECONDARY: Final = (("reference", "off"), ("full", "reference"), ("full", "oracle"))


class Method(StrEnum):
    """Where p and interval of a comparison come from."""

    SIGN_FLIPS = "sign-flips-inverted"
    DRAWN_SIGN_FLIPS = "drawn-sign-flips-inverted"
    SIGN_FLIPS_BCA = "drawn-sign-flips-bca"
    MCNEMAR = "mcnemar-exact-inverted"
    MCNEMAR_BCA = "mcnemar-exact-bca"
    ANYTIME = "anytime-evidence-sequence"


@dataclass(frozen=True, slots=True)
class AnalysisPlan:
    """What the plan fixed of the analysis.

    Attributes:
        arms: names of the arms, `off` and `full` among them.
        outcome: the primary one.
        secondary: further outcomes of full against off.
        minimum_effect: delta.
        alpha: error rate.
        sides: of the primary test; secondary ones look both ways.
        anytime: whether the primary evidence is looked at after every task.
        samples: repeats per task and arm.
        planned_power: at delta.
        task_order: ids in the order of their allocation.
        accuracy: of the licensed reviewers, pooled; None without a reviewer.
    """

    arms: tuple[str, ...]
    outcome: Outcome
    secondary: tuple[Outcome, ...]
    minimum_effect: float
    alpha: float
    sides: Sides
    anytime: bool
    samples: int
    planned_power: float
    task_order: tuple[str, ...]
    accuracy: KnownAccuracy | None = None


@dataclass(frozen=True, slots=True)
class ComparisonResult:
    """What one comparison comes to; figures are None where there is no task.

    Attributes:
        interval: the one its word rests on, of coverage `level`.
        p_holm: adjusted over the secondary comparisons; None for the primary one.
    """

    comparison: str
    outcome: Outcome
    conclusion: Conclusion
    effect: float | None
    interval: Interval | None
    level: float
    method: Method
    p: float | None
    tasks: int
    informative_tasks: int
    to_decide_tasks: int | None
    p_holm: float | None = None


@dataclass(frozen=True, slots=True)
class PreferenceResult:
    """Preference over single showings, as given and corrected for the reviewers' errors.

    Attributes:
        raw: mean over tasks of the share of wins less the share of losses.
        corrected: None where it is not identifiable, or no accuracy is known.
    """

    raw: float
    tasks: int
    corrected: Corrected | None


@dataclass(frozen=True, slots=True)
class MissingResult:
    """What missing values could change of the primary comparison."""

    by_class: Mapping[str, int]
    bounds: Interval | None
    tipping: int | None


@dataclass(frozen=True, slots=True)
class TaskLook:
    """The evidence after one task."""

    task_id: str
    look: Look


@dataclass(frozen=True, slots=True)
class Analysis:
    """Everything that follows from the tables."""

    primary: ComparisonResult
    secondary: tuple[ComparisonResult, ...]
    anytime: tuple[TaskLook, ...] | None
    rates: Mapping[str, Estimate | None]
    preference: PreferenceResult | None
    missing: MissingResult


def analyse(tables: Tables, plan: AnalysisPlan, chance: Chance) -> Analysis:
    """Analyse one study.

    Args:
        tables: the three tables.
        plan: what was fixed before.
        chance: the draws of the plan, once its seed is open.
    """
    judge = _Judge(tables, plan, chance)
    held = judge.comparison_of(plan.outcome)
    return Analysis(
        primary=judge.primary(held),
        secondary=judge.secondary(),
        anytime=judge.sequence(held) if plan.anytime else None,
        rates={arm: rate(pass_means(tables.trials, arm)) for arm in plan.arms},
        preference=judge.preference(),
        missing=judge.missing(held),
    )


@dataclass(frozen=True, slots=True)
class _Tested:
    method: Method
    level: float
    p: float
    interval: Interval | None
    narrow: Interval | None


@dataclass(frozen=True, slots=True)
class _Judge:
    tables: Tables
    plan: AnalysisPlan
    chance: Chance
    _words: dict[tuple[float, ...], str] = field(default_factory=dict)

    def comparison_of(self, outcome: Outcome) -> Comparison:
        if outcome is Outcome.PREFERENCE:
            return compare_preferences(self.tables.pairs, self.tables.trials)
        return compare_arms(self.tables.trials, "full", "off", outcome)

    def primary(self, held: Comparison) -> ComparisonResult:
        if self.plan.anytime:
            return self._by_sequence(held)
        return self._by_test(held, self.plan.outcome, self.plan.sides)

    def secondary(self) -> tuple[ComparisonResult, ...]:
        """Every secondary comparison, with p-values adjusted over all that have one."""
        trials, outcome = self.tables.trials, self.plan.outcome
        measured = Outcome.REWARD if outcome is Outcome.PREFERENCE else outcome
        held: list[tuple[Comparison, Outcome]] = [
            (compare_arms(trials, treatment, comparator, measured), measured)
            for treatment, comparator in _SECONDARY
            if {treatment, comparator} <= set(self.plan.arms)
        ]
        others = [kind for kind in self.plan.secondary if kind is not outcome]
        if self.tables.pairs and Outcome.PREFERENCE not in {outcome, *others}:
            others.append(Outcome.PREFERENCE)
        held += [(self.comparison_of(kind), kind) for kind in others]
        results = [self._by_test(comparison, kind, Sides.TWO) for comparison, kind in held]
        adjusted = iter(holm([result.p for result in results if result.p is not None]))
        return tuple(
            self._adjusted(result, comparison, next(adjusted)) if result.p is not None else result
            for result, (comparison, _) in zip(results, held, strict=True)
        )

    def sequence(self, held: Comparison) -> tuple[TaskLook, ...]:
        """Evidence after each task that has a difference, in the order of allocation."""
        found = dict(zip(held.measured, held.differences, strict=True))
        order = [task_id for task_id in self.plan.task_order if task_id in found]
        seen = looks([found[task_id] for task_id in order], self.plan.alpha)
        return tuple(TaskLook(task_id, look) for task_id, look in zip(order, seen, strict=True))

    def preference(self) -> PreferenceResult | None:
        shares = shown_shares(self.tables.judgements, self.tables.pairs)
        nets = [won - lost for won, lost in shares.values()]
        if not nets:
            return None
        m, mean = len(nets), sum(nets) / len(nets)
        known = self.plan.accuracy
        if known is None or m < 2:  # noqa: PLR2004 - a deviation needs two
            return PreferenceResult(mean, m, None)
        variance = sum((net - mean) ** 2 for net in nets) / (m - 1) / m
        return PreferenceResult(mean, m, corrected_net(mean, variance, known))

    def missing(self, held: Comparison) -> MissingResult:
        lost = Counter(row.end_class for row in self.tables.trials if row.counted == "missing")
        tipping = tipping_point(held, self._word) if held.missing else None
        return MissingResult(dict(sorted(lost.items())), bounds(held), tipping)

    def _word(self, held: Comparison) -> str:
        """The primary word; equal differences of equal tasks are judged once."""
        key = (*held.differences, float(held.informative_tasks))
        if key not in self._words:
            self._words[key] = self.primary(held).conclusion.word.value
        return self._words[key]

    def _by_test(self, held: Comparison, outcome: Outcome, sides: Sides) -> ComparisonResult:
        plan, values = self.plan, held.differences
        one_sided = sides is Sides.GREATER
        level = 1 - 2 * plan.alpha if one_sided else 1 - plan.alpha
        method = self._method(held, outcome, sides)
        if not values:
            return self._nothing(held, outcome, level, method)
        narrow = self._interval(held, 2 * plan.alpha)
        interval = narrow if one_sided else self._interval(held, plan.alpha)
        p = self._p(held, sides, method)
        return self._result(held, outcome, _Tested(method, level, p, interval, narrow))

    def _by_sequence(self, held: Comparison) -> ComparisonResult:
        plan = self.plan
        seen = self.sequence(held)
        if not seen:
            return self._nothing(held, plan.outcome, 1 - plan.alpha, Method.ANYTIME)
        p = anytime_p([one.look.evidence for one in seen])
        interval = seen[-1].look.interval
        tested = _Tested(Method.ANYTIME, 1 - plan.alpha, p, interval, interval)
        return self._result(held, plan.outcome, tested)

    def _method(self, held: Comparison, outcome: Outcome, sides: Sides) -> Method:
        binary = outcome is Outcome.PASSED and self.plan.samples == 1 and sides is Sides.TWO
        many = len(held.differences) >= BOOTSTRAP_TASKS
        if binary:
            return Method.MCNEMAR_BCA if many else Method.MCNEMAR
        if many:
            return Method.SIGN_FLIPS_BCA
        drawn = len(held.differences) > EXACT_TASKS
        return Method.DRAWN_SIGN_FLIPS if drawn else Method.SIGN_FLIPS

    def _p(self, held: Comparison, sides: Sides, method: Method) -> float:
        if method in {Method.MCNEMAR, Method.MCNEMAR_BCA}:
            won = sum(value > 0 for value in held.differences)
            return mcnemar_exact(won, sum(value < 0 for value in held.differences))
        return self._flips(held).p_value(held.differences, sides)

    def _interval(self, held: Comparison, alpha: float) -> Interval | None:
        if len(held.differences) >= BOOTSTRAP_TASKS:
            return bca_interval(self.chance, f"bca/{held.name}", held.differences, alpha)
        return self._flips(held).interval(held.differences, alpha)

    def _flips(self, held: Comparison) -> Flips:
        return Flips(self.chance, f"flip/{held.name}")

    def _result(self, held: Comparison, outcome: Outcome, tested: _Tested) -> ComparisonResult:
        plan, values = self.plan, held.differences
        findings = self._findings(held, tested.p, tested.interval, tested.narrow)
        return ComparisonResult(
            comparison=held.name,
            outcome=outcome,
            conclusion=conclude(findings),
            effect=findings.effect,
            interval=tested.interval,
            level=tested.level,
            method=tested.method,
            p=tested.p,
            tasks=len(values),
            informative_tasks=held.informative_tasks,
            to_decide_tasks=tasks_to_decide(values, tested.interval, plan.alpha, plan.minimum_effect),
        )

    def _findings(
        self, held: Comparison, p: float | None, interval: Interval | None, narrow: Interval | None
    ) -> Findings:
        plan, values = self.plan, held.differences
        treatment, comparator = ("full", "off") if held.paired_values else held.name.split("-", 1)
        trials = self.tables.trials
        return Findings(
            effect=sum(values) / len(values) if values else None,
            p=p,
            interval=interval,
            narrow_interval=narrow,
            tasks=len(values),
            informative_tasks=held.informative_tasks,
            minimum_effect=plan.minimum_effect,
            alpha=plan.alpha,
            planned_power=plan.planned_power,
            more_safety_failures=safety_failures(trials, treatment) > safety_failures(trials, comparator),
        )

    def _nothing(self, held: Comparison, outcome: Outcome, level: float, method: Method) -> ComparisonResult:
        conclusion = conclude(self._findings(held, None, None, None))
        return ComparisonResult(held.name, outcome, conclusion, None, None, level, method, None, 0, 0, None)

    def _adjusted(self, result: ComparisonResult, held: Comparison, p_holm: float) -> ComparisonResult:
        """A secondary word rests on the adjusted p."""
        narrow = self._interval(held, 2 * self.plan.alpha)
        findings = self._findings(held, p_holm, result.interval, narrow)
        return replace(result, p_holm=p_holm, conclusion=conclude(findings))
