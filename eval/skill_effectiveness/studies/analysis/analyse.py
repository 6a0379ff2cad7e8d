"""The whole analysis of a study, from its tables and what its plan fixed (studies.md section 6).

Nothing here knows how a table came to be, and nothing depends on the order of its rows: the verifier of a
bundle calls the same function on tables it rebuilt itself.

A study that may stop early judges its secondary comparisons by the anytime evidence too. When it stops
depends on what it saw, and a test for a size fixed beforehand would not keep its error rate then.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

from skill_effectiveness.calibration.figures import Interval
from skill_effectiveness.studies.analysis.blinding_index import blinding_index, judge_blinding
from skill_effectiveness.studies.analysis.bootstrap import Resamples
from skill_effectiveness.studies.analysis.conclusions import Findings, Word, conclude
from skill_effectiveness.studies.analysis.consistency import check_tables
from skill_effectiveness.studies.analysis.decimals import checked_alpha
from skill_effectiveness.studies.analysis.evidence_sequence import anytime_p, looks
from skill_effectiveness.studies.analysis.holm import holm
from skill_effectiveness.studies.analysis.misclassification import corrected_net, corrected_share
from skill_effectiveness.studies.analysis.missing import bounds, tipping_point
from skill_effectiveness.studies.analysis.outcomes import (
    compare_arms,
    compare_preferences,
    guesses_by_side,
    pass_means,
    safety_failures,
    shown_shares,
)
from skill_effectiveness.studies.analysis.paired_counts import mcnemar_exact
from skill_effectiveness.studies.analysis.rates import rate
from skill_effectiveness.studies.analysis.records import (
    Analysis,
    AnalysisPlan,
    BlindingResult,
    ComparisonResult,
    CorrectedPreference,
    Method,
    MissingResult,
    PreferenceResult,
    TaskLook,
    Uncorrected,
)
from skill_effectiveness.studies.analysis.reviewers import reviewers_result
from skill_effectiveness.studies.analysis.sign_flips import EXACT_TASKS, Flips
from skill_effectiveness.studies.analysis.to_decide import tasks_to_decide
from skill_effectiveness.studies.words import Outcome, Sides

if TYPE_CHECKING:
    from collections.abc import Sequence

    from skill_effectiveness.studies.analysis.comparisons import Comparison
    from skill_effectiveness.studies.analysis.misclassification import KnownAccuracy
    from skill_effectiveness.studies.chance import Chance
    from skill_effectiveness.studies.tables import Tables

BOOTSTRAP_TASKS: Final = 30
"""From this number of tasks on the interval is the bootstrap's."""

WHOLE_RANGE: Final = Interval(low=-1.0, high=1.0)
"""What is known of an effect that no number of flips can reject."""

_SECONDARY: Final = (("reference", "off"), ("full", "reference"), ("full", "oracle"))
_OPEN: Final = (Word.UNDERPOWERED, Word.INCONCLUSIVE)


def analyse(tables: Tables, plan: AnalysisPlan, chance: Chance) -> Analysis:
    """Analyse one study.

    Args:
        tables: the three tables. A slot that the stopping rule closed has no row.
        plan: what was fixed before.
        chance: the draws of the plan, once its seed is open.

    Raises:
        TableError: rows that contradict each other or the plan.
    """
    check_tables(tables, plan)
    judge = _Judge(tables, plan, chance)
    held = judge.comparison_of(plan.outcome)
    return Analysis(
        primary=judge.judged(held, plan.outcome, plan.sides),
        secondary=judge.secondary(),
        anytime=judge.sequence(held) if plan.anytime else None,
        rates={arm: rate(pass_means(tables.trials, arm)) for arm in plan.arms},
        preference=judge.preference(),
        reviewers=reviewers_result(tables.judgements, chance),
        blinding=judge.blinding(),
        missing=judge.missing(held),
    )


@dataclass(frozen=True, slots=True)
class _Tested:
    """What a method found; an interval is None where there are too few tasks for one of its level."""

    method: Method
    level: float
    p: float | None
    interval: Interval | None
    narrow: Interval | None
    wide: Interval | None


@dataclass(frozen=True, slots=True)
class _Judge:
    tables: Tables
    plan: AnalysisPlan
    chance: Chance
    _flips: dict[str, Flips] = field(default_factory=dict)
    _resamples: dict[str, Resamples] = field(default_factory=dict)
    _words: dict[tuple[object, ...], str] = field(default_factory=dict)

    def comparison_of(self, outcome: Outcome) -> Comparison:
        if outcome is Outcome.PREFERENCE:
            return compare_preferences(self.tables.pairs, self.tables.trials)
        return compare_arms(self.tables.trials, "full", "off", outcome)

    def judged(self, held: Comparison, outcome: Outcome, sides: Sides) -> ComparisonResult:
        return self._result(held, outcome, self._tested(held, outcome, sides))

    def secondary(self) -> tuple[ComparisonResult, ...]:
        """Every secondary comparison, with p-values adjusted over all that have one."""
        held = self._secondary_comparisons()
        tested = [self._tested(comparison, kind, Sides.TWO) for comparison, kind in held]
        adjusted = iter(holm([found.p for found in tested if found.p is not None]))
        return tuple(
            self._adjusted(comparison, kind, found, None if found.p is None else next(adjusted))
            for (comparison, kind), found in zip(held, tested, strict=True)
        )

    def sequence(self, held: Comparison) -> tuple[TaskLook, ...]:
        """Evidence after each task that has a difference, in the order of allocation."""
        found = dict(zip(held.measured, held.differences, strict=True))
        order = [task_id for task_id in self.plan.task_order if task_id in found]
        seen = looks([found[task_id] for task_id in order], self.plan.alpha)
        return tuple(TaskLook(task_id, look) for task_id, look in zip(order, seen, strict=True))

    def preference(self) -> PreferenceResult | None:
        shares = shown_shares(self.tables.judgements, self.tables.pairs, self.tables.trials)
        if not shares:
            return None
        wins, losses = [won for won, _ in shares.values()], [lost for _, lost in shares.values()]
        win, loss = _mean(wins), _mean(losses)
        corrected = _corrected(wins, losses, self.plan.accuracy)
        return PreferenceResult(win, loss, win - loss, len(shares), corrected)

    def blinding(self) -> BlindingResult:
        tables = self.tables
        first, second = map(blinding_index, guesses_by_side(tables.judgements, tables.pairs, tables.trials))
        return BlindingResult(judge_blinding(first, second), first, second)

    def missing(self, held: Comparison) -> MissingResult:
        lost = Counter(row.end_class for row in self.tables.trials if row.counted == "missing")
        tipping = tipping_point(held, self._word) if held.missing else None
        return MissingResult(dict(sorted(lost.items())), len(held.missing), bounds(held), tipping)

    def _secondary_comparisons(self) -> list[tuple[Comparison, Outcome]]:
        trials, plan = self.tables.trials, self.plan
        measured = Outcome.REWARD if plan.outcome is Outcome.PREFERENCE else plan.outcome
        held: list[tuple[Comparison, Outcome]] = [
            (compare_arms(trials, treatment, comparator, measured), measured)
            for treatment, comparator in _SECONDARY
            if {treatment, comparator} <= set(plan.arms)
        ]
        others = [kind for kind in dict.fromkeys(plan.secondary) if kind is not plan.outcome]
        if self.tables.pairs and Outcome.PREFERENCE not in {plan.outcome, *others}:
            others.append(Outcome.PREFERENCE)
        return held + [(self.comparison_of(kind), kind) for kind in others]

    def _word(self, held: Comparison) -> str:
        """The primary word; comparisons that no rule tells apart are judged once."""
        key = (held.measured, held.differences, held.informative_tasks)
        if key not in self._words:
            result = self.judged(held, self.plan.outcome, self.plan.sides)
            self._words[key] = result.conclusion.word.value
        return self._words[key]

    def _tested(self, held: Comparison, outcome: Outcome, sides: Sides) -> _Tested:
        """Test and intervals; without a task neither p nor interval."""
        if self.plan.anytime:
            return self._by_sequence(held)
        one_sided = sides is Sides.GREATER
        alpha = checked_alpha(self.plan.alpha)
        level = float(1 - 2 * alpha if one_sided else 1 - alpha)
        method = self._method(held, outcome, sides)
        if not held.differences:
            return _Tested(method, level, None, None, None, None)
        narrow, wide = self._interval(held, float(2 * alpha)), self._interval(held, float(alpha))
        p = self._p(held, sides, method)
        return _Tested(method, level, p, narrow if one_sided else wide, narrow, wide)

    def _by_sequence(self, held: Comparison) -> _Tested:
        level = float(1 - checked_alpha(self.plan.alpha))
        seen = self.sequence(held)
        if not seen:
            return _Tested(Method.ANYTIME, level, None, None, None, None)
        p = anytime_p([one.look.evidence for one in seen])
        interval = seen[-1].look.interval
        return _Tested(Method.ANYTIME, level, p, interval, interval, interval)

    def _method(self, held: Comparison, outcome: Outcome, sides: Sides) -> Method:
        binary = outcome is Outcome.PASSED and self.plan.samples == 1 and sides is Sides.TWO
        tasks = len(held.differences)
        if tasks >= BOOTSTRAP_TASKS:
            return Method.MCNEMAR_BCA if binary else Method.SIGN_FLIPS_BCA
        if tasks > EXACT_TASKS:
            return Method.MCNEMAR_DRAWN if binary else Method.DRAWN_SIGN_FLIPS
        return Method.MCNEMAR if binary else Method.SIGN_FLIPS

    def _p(self, held: Comparison, sides: Sides, method: Method) -> float:
        if method in {Method.MCNEMAR, Method.MCNEMAR_DRAWN, Method.MCNEMAR_BCA}:
            won = sum(value > 0 for value in held.differences)
            return mcnemar_exact(won, sum(value < 0 for value in held.differences))
        return self._flips_of(held).p_value(held.differences, sides)

    def _interval(self, held: Comparison, alpha: float) -> Interval | None:
        if len(held.differences) >= BOOTSTRAP_TASKS:
            use = f"bca/{held.name}"
            return self._resamples.setdefault(use, Resamples(self.chance, use)).interval(
                held.differences, alpha
            )
        return self._flips_of(held).interval(held.differences, alpha)

    def _flips_of(self, held: Comparison) -> Flips:
        use = f"flip/{held.name}"
        return self._flips.setdefault(use, Flips(self.chance, use))

    def _adjusted(
        self, held: Comparison, outcome: Outcome, tested: _Tested, p_holm: float | None
    ) -> ComparisonResult:
        """A secondary word rests on the adjusted p; the single p is told beside it."""
        result = self._result(held, outcome, replace(tested, p=p_holm))
        return replace(result, p=tested.p, p_holm=p_holm)

    def _result(self, held: Comparison, outcome: Outcome, tested: _Tested) -> ComparisonResult:
        plan, values = self.plan, held.differences
        effect = _mean(values) if values else None
        conclusion = conclude(self._findings(held, effect, tested))
        interval = tested.interval
        if interval is None and values and tested.method is not Method.ANYTIME:
            interval = WHOLE_RANGE
        undecided = bool(values) and conclusion.word in _OPEN
        return ComparisonResult(
            comparison=held.name,
            outcome=outcome,
            conclusion=conclusion,
            effect=effect,
            interval=interval,
            level=tested.level,
            method=tested.method,
            p=tested.p,
            tasks=len(values),
            informative_tasks=held.informative_tasks,
            to_decide_tasks=tasks_to_decide(values, tested.wide, plan.alpha, plan.minimum_effect)
            if undecided
            else None,
        )

    def _findings(self, held: Comparison, effect: float | None, tested: _Tested) -> Findings:
        plan, trials = self.plan, self.tables.trials
        treatment, comparator = ("full", "off") if held.paired_values else held.name.split("-", 1)
        return Findings(
            effect=effect,
            p=tested.p,
            interval=tested.interval,
            narrow_interval=tested.narrow,
            tasks=len(held.differences),
            informative_tasks=held.informative_tasks,
            minimum_effect=plan.minimum_effect,
            alpha=plan.alpha,
            planned_power=plan.planned_power,
            more_safety_failures=safety_failures(trials, treatment) > safety_failures(trials, comparator),
        )


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


def _variance_of_mean(values: Sequence[float]) -> float:
    mean = _mean(values)
    return sum((value - mean) ** 2 for value in values) / (len(values) - 1) / len(values)


def _corrected(
    wins: Sequence[float], losses: Sequence[float], known: KnownAccuracy | None
) -> CorrectedPreference | Uncorrected:
    if known is None:
        return Uncorrected.NO_KNOWN_ACCURACY
    if len(wins) <= 1:
        return Uncorrected.TOO_FEW_TASKS
    nets = [won - lost for won, lost in zip(wins, losses, strict=True)]
    win = corrected_share(_mean(wins), _variance_of_mean(wins), known)
    loss = corrected_share(_mean(losses), _variance_of_mean(losses), known)
    net = corrected_net(_mean(nets), _variance_of_mean(nets), known)
    if win is None or loss is None or net is None:
        return Uncorrected.NOT_IDENTIFIABLE
    return CorrectedPreference(win, loss, net)
