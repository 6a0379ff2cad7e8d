"""From an analysis to `results.json` (studies.md section 7)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from skill_effectiveness.evidence.canonical import digest_bytes
from skill_effectiveness.evidence.documents import validate
from skill_effectiveness.studies.accounts import flow_of, share_of, tasks_run, usage_of
from skill_effectiveness.studies.analysis.analyse import analyse
from skill_effectiveness.studies.analysis.outcomes import compare_arms, compare_preferences
from skill_effectiveness.studies.analysis.records import AnalysisPlan, CorrectedPreference
from skill_effectiveness.studies.results import RESULTS_CONTRACT, TABLE_FILES, Results, results_digest
from skill_effectiveness.studies.words import Outcome, Stopping

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pydantic import JsonValue

    from skill_effectiveness.calibration.figures import Interval
    from skill_effectiveness.studies.accounts import Usage
    from skill_effectiveness.studies.analysis.blinding_index import BlindingIndex
    from skill_effectiveness.studies.analysis.comparisons import Comparison
    from skill_effectiveness.studies.analysis.misclassification import Corrected, KnownAccuracy
    from skill_effectiveness.studies.analysis.records import (
        Analysis,
        BlindingResult,
        ComparisonResult,
        PreferenceResult,
    )
    from skill_effectiveness.studies.analysis.reviewers import ReviewersResult
    from skill_effectiveness.studies.chance import Chance
    from skill_effectiveness.studies.plan import StudyPlan
    from skill_effectiveness.studies.results import AmendmentRecord, DeviationRecord, StudyVerdict
    from skill_effectiveness.studies.tables import Tables

    Json = dict[str, JsonValue]


@dataclass(frozen=True, slots=True)
class Circumstances:
    """What results say beside what follows from the tables.

    Attributes:
        verdict: of the pilot gate.
        amendments: in the order of the journal.
        deviations: in the order in which they happened.
        unblinded_at: RFC 3339, UTC.
    """

    verdict: StudyVerdict
    amendments: tuple[AmendmentRecord, ...]
    deviations: tuple[DeviationRecord, ...]
    unblinded_at: str


def analysis_plan(
    plan: StudyPlan, task_order: Sequence[str], accuracy: KnownAccuracy | None = None
) -> AnalysisPlan:
    """What a plan fixed of its analysis.

    Args:
        plan: as sealed.
        task_order: all its tasks in the order in which the opened allocation names them first.
        accuracy: of the licensed reviewers, pooled.

    Raises:
        ValueError: an order that does not name exactly the tasks of the plan.
    """
    if sorted(task_order) != [task.task_id for task in plan.tasks]:
        raise ValueError("the order of allocation names exactly the tasks of the plan")
    return AnalysisPlan(
        arms=plan.arm_names,
        outcome=plan.outcome.primary,
        secondary=plan.outcome.secondary,
        minimum_effect=plan.outcome.minimum_effect,
        alpha=plan.analysis.alpha,
        sides=plan.analysis.sides,
        anytime=plan.analysis.stopping is Stopping.ANYTIME,
        samples=plan.samples,
        planned_power=plan.power.at_minimum_effect,
        task_order=tuple(task_order),
        accuracy=accuracy,
    )


def build_results(
    tables: Tables, plan: StudyPlan, fixed: AnalysisPlan, chance: Chance, circumstances: Circumstances
) -> Results:
    """Analyse the tables of a study and write down all that follows.

    Args:
        tables: the three tables.
        plan: as sealed.
        fixed: of `analysis_plan`.
        chance: the draws of the plan, its seed opened.
        circumstances: verdict, amendments, deviations, time of unblinding.

    Raises:
        TableError: tables that contradict themselves or the plan.
        DocumentError: circumstances that no study of this plan can have, such as a tier it has not.
    """
    analysis = analyse(tables, fixed, chance)
    usage = usage_of(tables, fixed.arms)
    sizes = _Sizes(usage, tasks_run(tables.trials), len(fixed.arms) * fixed.samples)
    planned = len(plan.tasks) * plan.samples
    flow = flow_of(tables, fixed.arms, planned, _primary_of(tables, fixed))
    whole: Json = {
        "schema_version": 1,
        "artifact_contract": RESULTS_CONTRACT,
        "plan_digest": plan.plan_digest,
        "registry": str(plan.registry),
        "synthetic": plan.synthetic,
        "verdict": circumstances.verdict.model_dump(mode="json"),
        "primary": _comparison(analysis.primary, sizes),
        "secondary": [_comparison(one, sizes) | {"p_holm": one.p_holm} for one in analysis.secondary],
        "anytime": _sequence(analysis),
        "rates": {
            arm: None if found is None else found.model_dump(mode="json")
            for arm, found in analysis.rates.items()
        },
        "preference": None if analysis.preference is None else _preference(analysis.preference),
        "reviewers": _reviewers(analysis.reviewers),
        "blinding": _blinding(analysis.blinding),
        "missing": {
            "by_class": dict(analysis.missing.by_class),
            "bounds": _interval(analysis.missing.bounds),
            "tipping": "none" if analysis.missing.tipping is None else analysis.missing.tipping,
        },
        "flow": {arm: counts.model_dump(mode="json") for arm, counts in flow.items()},
        "usage": usage.model_dump(mode="json"),
        "amendments": [one.model_dump(mode="json") for one in circumstances.amendments],
        "deviations": [one.model_dump(mode="json") for one in circumstances.deviations],
        "unblinded_at": circumstances.unblinded_at,
        "seed": chance.seed.hex(),
        "tables": {name: digest_bytes(data) for name, data in table_files(tables).items()},
    }
    return validate(Results, whole | {"results_digest": results_digest(whole)})


def table_files(tables: Tables) -> dict[str, bytes]:
    """Every table in both forms, by file name."""
    named = (name.split(".") for name in TABLE_FILES)
    return {f"{name}.{form}": getattr(tables, form)(name) for name, form in named}


@dataclass(frozen=True, slots=True)
class _Sizes:
    """What a number of tasks comes to in trials and cost."""

    usage: Usage
    tasks: int
    trials_of_a_task: int

    def of(self, wanted: int) -> Json:
        tokens, cost = share_of(self.usage.total, self.tasks, wanted)
        return {
            "tasks": wanted,
            "trials": wanted * self.trials_of_a_task,
            "tokens": tokens,
            "cost_units": cost,
        }


def _primary_of(tables: Tables, fixed: AnalysisPlan) -> Comparison:
    if fixed.outcome is Outcome.PREFERENCE:
        return compare_preferences(tables.pairs, tables.trials)
    return compare_arms(tables.trials, "full", "off", fixed.outcome)


def _comparison(found: ComparisonResult, sizes: _Sizes) -> Json:
    wanted = found.to_decide_tasks
    return {
        "comparison": found.comparison,
        "outcome": str(found.outcome),
        "conclusion": str(found.conclusion.word),
        "reasons": [str(reason) for reason in found.conclusion.reasons],
        "effect": found.effect,
        "interval": _interval(found.interval),
        "level": found.level,
        "method": str(found.method),
        "p": found.p,
        "tasks": found.tasks,
        "informative_tasks": found.informative_tasks,
        "to_decide": None if wanted is None or not sizes.tasks else sizes.of(wanted),
    }


def _sequence(analysis: Analysis) -> list[JsonValue] | None:
    if analysis.anytime is None:
        return None
    rows: list[JsonValue] = []
    for one in analysis.anytime:
        held = one.look.interval
        low, high = (None, None) if held is None else (held.low, held.high)
        rows.append({"task_id": one.task_id, "e": one.look.evidence, "low": low, "high": high})
    return rows


def _interval(found: Interval | None) -> Json | None:
    return None if found is None else {"low": found.low, "high": found.high}


def _figure(found: Corrected) -> Json:
    return {
        "value": found.value,
        "standard_error": found.standard_error,
        "interval": _interval(found.interval),
    }


def _preference(found: PreferenceResult) -> Json:
    corrected = found.corrected
    known = isinstance(corrected, CorrectedPreference)
    return {
        "raw": {"win": found.win, "loss": found.loss, "net": found.net, "tasks": found.tasks},
        "corrected": {
            "win": _figure(corrected.win),
            "loss": _figure(corrected.loss),
            "net": _figure(corrected.net),
        }
        if isinstance(corrected, CorrectedPreference)
        else None,
        "reason": None if known else str(corrected),
    }


def _reviewers(found: ReviewersResult) -> Json:
    return {
        "sheets": [
            {
                "reviewer": sheet.reviewer,
                "votes": dict(sheet.votes),
                "pairs": sheet.pairs,
                "inconsistent": sheet.inconsistent.model_dump(mode="json"),
                "position": sheet.position.model_dump(mode="json"),
                "longer": sheet.longer.model_dump(mode="json"),
                "canaries": sheet.canaries.model_dump(mode="json"),
                "confusion": [list(row) for row in sheet.confusion],
            }
            for sheet in found.sheets
        ],
        "agreement": [
            {
                "first": two.first,
                "second": two.second,
                "pairs": two.pairs,
                "figures": two.figures.model_dump(mode="json"),
            }
            for two in found.agreement
        ],
        "alpha": None if found.alpha is None else found.alpha.model_dump(mode="json"),
        "bootstrap_seed": found.bootstrap_seed,
    }


def _blinding(found: BlindingResult) -> Json:
    return {
        "word": str(found.word),
        "treated_first": _index(found.treated_first),
        "treated_second": _index(found.treated_second),
    }


def _index(found: BlindingIndex | None) -> Json | None:
    if found is None:
        return None
    return {"value": found.value, "interval": _interval(found.interval), "tasks": found.tasks}
