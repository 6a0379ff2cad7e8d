"""From tables to comparisons: which value of which slot counts (studies.md sections 3, 5 and 6).

A slot whose class counts as failure has the value 0, a missing one has none, whatever else its row holds.
"""

from __future__ import annotations

from collections import defaultdict
from enum import StrEnum
from typing import TYPE_CHECKING, Final

from skill_effectiveness.studies.analysis.comparisons import Comparison, Measured, TaskValues

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from skill_effectiveness.studies.tables import JudgementRow, PairRow, TrialRow


class Outcome(StrEnum):
    """What a study measures its arms by."""

    REWARD = "reward"
    PASSED = "passed"
    PREFERENCE = "preference"


PREFERENCE_NAME: Final = "preference"
_PREFERRED: Final = {"win": 1.0, "loss": -1.0, "tie": 0.0, "inconsistent": 0.0}


def outcome_value(row: TrialRow, outcome: Outcome) -> float | None:
    """What one slot counts for: 0 for a failure, None for a missing value."""
    if row.counted == "missing":
        return None
    if row.counted == "failure":
        return 0.0
    if outcome is Outcome.PASSED:
        return None if row.passed is None else float(row.passed)
    return row.reward


def compare_arms(trials: Iterable[TrialRow], treatment: str, comparator: str, outcome: Outcome) -> Comparison:
    """Two arms over every task that has a slot in either.

    Args:
        trials: rows of the table of trials, in any order.
        treatment: name of the arm whose advantage is positive.
        comparator: name of the other.
        outcome: reward or passed.
    """
    held: dict[str, dict[str, list[Measured]]] = defaultdict(lambda: {treatment: [], comparator: []})
    for row in trials:
        if row.arm in {treatment, comparator}:
            held[row.task_id][row.arm].append(Measured(row.slot, outcome_value(row, outcome)))
    tasks = (
        TaskValues(task_id, tuple(sorted(arms[treatment])), tuple(sorted(arms[comparator])))
        for task_id, arms in sorted(held.items())
    )
    return Comparison(f"{treatment}-{comparator}", tuple(tasks))


def compare_preferences(pairs: Iterable[PairRow], trials: Iterable[TrialRow]) -> Comparison:
    """What reviewers preferred, per task: 1 for, -1 against the treatment, 0 for a tie or an inconsistency.

    A pair without a vote is missing. Pairs take the slot of their treatment's trial.
    """
    slots = {row.trial_id: row.slot for row in trials}
    held: dict[str, list[Measured]] = defaultdict(list)
    for pair in pairs:
        held[pair.task_id].append(Measured(slots[pair.treatment], _PREFERRED.get(pair.preference)))
    tasks = (TaskValues(task_id, tuple(sorted(values)), ()) for task_id, values in sorted(held.items()))
    return Comparison(PREFERENCE_NAME, tuple(tasks), paired_values=True)


def shown_shares(
    judgements: Iterable[JudgementRow], pairs: Sequence[PairRow]
) -> dict[str, tuple[float, float]]:
    """By task, the share of valid showings that the treatment won and the share that it lost.

    Canaries, and votes that gave no verdict, are no showings; tasks without one are left out.
    """
    task_of = {pair.pair_id: pair.task_id for pair in pairs}
    said: dict[str, list[str]] = defaultdict(list)
    for vote in judgements:
        if vote.state == "valid" and not vote.canary and vote.for_treatment is not None:
            said[task_of[vote.pair_id]].append(vote.for_treatment)
    return {
        task_id: (words.count("win") / len(words), words.count("loss") / len(words))
        for task_id, words in sorted(said.items())
    }


def safety_failures(trials: Iterable[TrialRow], arm: str) -> int:
    """How many trials of an arm failed a deterministic safety or data-loss check."""
    return sum(row.arm == arm and row.safety_failure is True for row in trials)


def pass_means(trials: Iterable[TrialRow], arm: str) -> tuple[float, ...]:
    """Mean share of passes per task of one arm, tasks sorted by id and those without a value left out."""
    held: dict[str, list[float]] = defaultdict(list)
    for row in trials:
        if row.arm == arm and (value := outcome_value(row, Outcome.PASSED)) is not None:
            held[row.task_id].append(value)
    return tuple(sum(values) / len(values) for _, values in sorted(held.items()))
