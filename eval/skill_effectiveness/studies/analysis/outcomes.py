"""From tables to comparisons: which value of which slot counts (studies.md sections 3, 5 and 6).

A slot whose class counts as failure has the value 0, a missing one has none, whatever else its row holds.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import TYPE_CHECKING, Final

from skill_effectiveness.studies.analysis.blinding_index import Guess
from skill_effectiveness.studies.analysis.comparisons import Comparison, Measured, TaskValues
from skill_effectiveness.studies.words import Outcome

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from skill_effectiveness.studies.tables import JudgementRow, PairRow, TrialRow


PREFERENCE_NAME: Final = "preference"
_PREFERRED: Final = {"win": 1.0, "loss": -1.0, "tie": 0.0, "inconsistent": 0.0}
_GUESSED_POSITION: Final = {"A": 0, "B": 1}


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


def compare_preferences(pairs: Iterable[PairRow], trials: Sequence[TrialRow]) -> Comparison:
    """What reviewers preferred, per task: 1 for, -1 against the treatment, 0 for a tie or an inconsistency.

    A deterministic safety failure of the treatment outranks every vote and makes its pair a loss. A pair
    without a vote is missing, and so is one that was never made although both slots were planned. Pairs take
    the slot of their treatment's trial; pairs of other arms than full and off are none of this comparison.
    """
    by_id = {row.trial_id: row for row in trials}
    given = {pair.treatment: pair for pair in pairs if _is_primary(pair, by_id)}
    planned_off = {(row.task_id, row.sample) for row in trials if row.arm == "off"}
    held: dict[str, list[Measured]] = defaultdict(list)
    for row in trials:
        if row.arm == "full" and (row.task_id, row.sample) in planned_off:
            held[row.task_id].append(Measured(row.slot, _preferred(given.get(row.trial_id), row)))
    tasks = (TaskValues(task_id, tuple(sorted(values)), ()) for task_id, values in sorted(held.items()))
    return Comparison(PREFERENCE_NAME, tuple(tasks), paired_values=True)


def _is_primary(pair: PairRow, trials: Mapping[str, TrialRow]) -> bool:
    return (trials[pair.treatment].arm, trials[pair.comparator].arm) == ("full", "off")


def _preferred(pair: PairRow | None, treated: TrialRow) -> float | None:
    if pair is None:
        return None
    if treated.safety_failure is True:
        return _PREFERRED["loss"]
    return _PREFERRED.get(pair.preference)


def shown_shares(
    judgements: Iterable[JudgementRow], pairs: Iterable[PairRow], trials: Iterable[TrialRow]
) -> dict[str, tuple[float, float]]:
    """By task, the share of valid showings of full against off that the treatment won, and that it lost.

    Canaries, and votes that gave no verdict, are no showings; tasks without one are left out.
    """
    task_of = _primary_tasks(pairs, trials)
    said = Counter(
        (vote.pair_id, vote.for_treatment)
        for vote in judgements
        if vote.state == "valid" and not vote.canary and vote.pair_id in task_of
    )
    counts: dict[str, list[int]] = defaultdict(lambda: [0, 0, 0])
    for (pair_id, word), times in said.items():
        held = counts[task_of[pair_id]]
        held[0] += times
        held[1] += times * (word == "win")
        held[2] += times * (word == "loss")
    return {task_id: (won / shown, lost / shown) for task_id, (shown, won, lost) in sorted(counts.items())}


def guesses_by_side(
    judgements: Iterable[JudgementRow], pairs: Iterable[PairRow], trials: Iterable[TrialRow]
) -> tuple[dict[str, list[Guess]], dict[str, list[Guess]]]:
    """By task, what reviewers guessed where the treatment was shown first, and where second.

    Votes that were made void by a revoked licence do not count, canaries have no treated side.
    """
    task_of = _primary_tasks(pairs, trials)
    sides: tuple[dict[str, list[Guess]], dict[str, list[Guess]]] = ({}, {})
    for vote in sorted(judgements, key=lambda vote: vote.vote_id):
        if vote.guess is None or vote.canary or vote.state == "void" or vote.pair_id not in task_of:
            continue
        said = sides[vote.position].setdefault(task_of[vote.pair_id], [])
        said.append(_judged_guess(vote.guess, vote.position))
    return sides


def _judged_guess(guess: str, position: int) -> Guess:
    if guess not in _GUESSED_POSITION:
        return Guess.UNSURE
    return Guess.RIGHT if _GUESSED_POSITION[guess] == position else Guess.WRONG


def _primary_tasks(pairs: Iterable[PairRow], trials: Iterable[TrialRow]) -> dict[str, str]:
    by_id = {row.trial_id: row for row in trials}
    return {pair.pair_id: pair.task_id for pair in pairs if _is_primary(pair, by_id)}


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
