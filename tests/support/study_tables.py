"""Tables of made-up studies, from the few values that a test is about."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final

from skill_effectiveness.studies.analysis.consistency import for_treatment
from skill_effectiveness.studies.analysis.records import AnalysisPlan
from skill_effectiveness.studies.tables import JudgementRow, PairRow, Tables, TrialRow
from skill_effectiveness.studies.words import Outcome, Sides

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from skill_effectiveness.studies.analysis.misclassification import KnownAccuracy

START: Final = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)

Values = dict[str, dict[str, list[float | None]]]
"""By task and arm, the reward of each sample; None is missing."""


def trial(slot: int, task_id: str, arm: str, sample: int, reward: float | None = 1.0) -> TrialRow:
    """A slot that completed with a reward, or that is missing."""
    missing = reward is None
    return TrialRow(
        slot=slot,
        trial_id=f"slot-{slot}",
        task_id=task_id,
        family="implementation",
        cohort="known-regression",
        arm=arm,
        sample=sample,
        attempts=1,
        end_class="void" if missing else "completed",
        detail=None,
        counted="missing" if missing else "value",
        reward=reward,
        passed=None if reward is None else reward >= 1,
        value=reward,
        exposed="unverified" if missing else "yes",
        invoked="no" if arm == "off" else "unverified",
        safety_failure=None if missing else False,
        model_requested="model-1",
        model_reported="model-1",
        started_at=START + timedelta(seconds=slot),
        ended_at=START + timedelta(seconds=slot + 90),
        wall_seconds=90.0,
        input_tokens=1000,
        cached_tokens=None,
        output_tokens=200,
        reasoning_tokens=0,
        tool_calls=4,
        cost_units=0.25,
        grade_hash=None if missing else "sha256:" + "a" * 64,
        trial_fingerprint="sha256:" + "b" * 64,
        completion_binding_hash="sha256:" + "c" * 64,
    )


def trials(values: Values) -> tuple[TrialRow, ...]:
    """Slots by task, then sample, then arm in the order given."""
    rows: list[TrialRow] = []
    for task_id, arms in values.items():
        for sample in range(max(map(len, arms.values()))):
            for arm, rewards in arms.items():
                if sample < len(rewards):
                    rows.append(trial(len(rows) + 1, task_id, arm, sample + 1, rewards[sample]))
    return tuple(rows)


def from_thirds(steps: Sequence[int]) -> Values:
    """One task per step with three samples an arm and the difference `step / 3`."""
    return {
        f"t{number:02}": {"full": _passes(max(step, 0)), "off": _passes(max(-step, 0))}
        for number, step in enumerate(steps, start=1)
    }


def _passes(count: int) -> list[float | None]:
    return [1.0] * count + [0.0] * (3 - count)


def from_differences(differences: Sequence[float]) -> Values:
    """One task per difference, one sample an arm."""
    return {
        f"t{number:02}": {"full": [max(value, 0.0)], "off": [max(-value, 0.0)]}
        for number, value in enumerate(differences, start=1)
    }


def pairs(rows: Sequence[TrialRow], preferences: Mapping[tuple[str, int], str]) -> tuple[PairRow, ...]:
    """A pair of full and off for each task and sample named."""
    by_key = {(row.task_id, row.sample, row.arm): row for row in rows}
    made = []
    for number, ((task_id, sample), preference) in enumerate(preferences.items(), start=1):
        treated, compared = by_key[task_id, sample, "full"], by_key[task_id, sample, "off"]
        both = treated.value is not None and compared.value is not None
        made.append(
            PairRow(
                pair_id=f"pair-{number}",
                task_id=task_id,
                sample=sample,
                treatment=treated.trial_id,
                comparator=compared.trial_id,
                treatment_value=treated.value,
                comparator_value=compared.value,
                difference=(treated.value or 0.0) - (compared.value or 0.0) if both else None,
                preference=preference,
                votes=0 if preference == "no_vote" else 2,
                safety=False,
            )
        )
    return tuple(made)


def vote(
    number: int,
    pair_id: str,
    verdict: str | None,
    *,
    position: int = 0,
    reviewer: str = "claude",
    state: str = "valid",
    guess: str | None = None,
    chars: tuple[int, int] = (100, 100),
) -> JudgementRow:
    """One vote on a pair; position 0 showed the treatment as A."""
    return JudgementRow(
        vote_id=f"vote-{number:04}",
        pair_id=pair_id,
        position=position,
        reviewer=reviewer,
        licence_id=f"licence-{reviewer}",
        canary=False,
        truth=None,
        state=state,
        verdict=verdict,
        for_treatment=None if verdict is None else for_treatment(verdict, position),
        guess=guess,
        chars_a=chars[0],
        chars_b=chars[1],
        tokens=500,
        cost_units=0.01,
        latency_ms=900,
        voted_at=START + timedelta(hours=1, seconds=number),
    )


def canary(number: int, verdict: str, truth: str, reviewer: str = "claude") -> JudgementRow:
    """One vote on a case with a known answer."""
    row = vote(number, f"canary-{number}", verdict, reviewer=reviewer)
    return row._replace(canary=True, truth=truth, for_treatment=None)


def plan(
    tables: Tables | Values,
    *,
    arms: tuple[str, ...] = ("off", "full"),
    outcome: Outcome = Outcome.REWARD,
    secondary: tuple[Outcome, ...] = (),
    minimum_effect: float = 0.05,
    alpha: float = 0.05,
    sides: Sides = Sides.TWO,
    anytime: bool = False,
    samples: int = 3,
    planned_power: float = 0.8,
    task_order: tuple[str, ...] | None = None,
    accuracy: KnownAccuracy | None = None,
) -> AnalysisPlan:
    """A plan for these tables, its tasks in the order in which they first occur."""
    ids = [row.task_id for row in tables.trials] if isinstance(tables, Tables) else list(tables)
    return AnalysisPlan(
        arms, outcome, secondary, minimum_effect, alpha, sides, anytime, samples, planned_power,
        tuple(dict.fromkeys(ids)) if task_order is None else task_order, accuracy,
    )  # fmt: skip
