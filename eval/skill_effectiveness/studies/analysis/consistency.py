"""What tables must agree on before anything is computed from them (studies.md sections 6 and 7).

Each cell was checked when the tables were made; this is about rows that contradict each other or the plan. A
contradiction is an error with its place, because every way of computing on would hide it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from skill_effectiveness.studies.tables import TableError

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Mapping

    from skill_effectiveness.studies.analysis.records import AnalysisPlan
    from skill_effectiveness.studies.tables import JudgementRow, PairRow, Tables, TrialRow

_SEATS: Final = ("A win", "B win")


def check_tables(tables: Tables, plan: AnalysisPlan) -> None:
    """Demand tables that one study of this plan can have.

    Raises:
        TableError: table, row and what is wrong, without a value.
    """
    _once("trials", "slot", (row.slot for row in tables.trials))
    _once("trials", "trial_id", (row.trial_id for row in tables.trials))
    _once("trials", "task, arm and sample", ((row.task_id, row.arm, row.sample) for row in tables.trials))
    _once("pairs", "pair_id", (row.pair_id for row in tables.pairs))
    _once("pairs", "pair of trials", ((row.treatment, row.comparator) for row in tables.pairs))
    _once("judgements", "vote_id", (row.vote_id for row in tables.judgements))
    trials = {row.trial_id: row for row in tables.trials}
    known, tasks = {row.pair_id for row in tables.pairs}, frozenset(plan.task_order)
    for number, trial in enumerate(tables.trials, start=1):
        _told("trials", number, _wrong_trial(trial, plan, tasks))
    for number, pair in enumerate(tables.pairs, start=1):
        _told("pairs", number, _wrong_pair(pair, trials))
    for number, vote in enumerate(tables.judgements, start=1):
        _told("judgements", number, _wrong_vote(vote, known))


def _once(table: str, what: str, keys: Iterable[Hashable]) -> None:
    seen: set[Hashable] = set()
    for number, key in enumerate(keys, start=1):
        if key in seen:
            raise TableError(f"{table} row {number}: the same {what} as an earlier row")
        seen.add(key)


def _told(table: str, number: int, reason: str | None) -> None:
    if reason:
        raise TableError(f"{table} row {number}: {reason}")


def _wrong_trial(row: TrialRow, plan: AnalysisPlan, tasks: frozenset[str]) -> str | None:
    if row.arm not in plan.arms or row.task_id not in tasks:
        return "an arm or a task that the plan does not have"
    if not 1 <= row.sample <= plan.samples:
        return "a sample that the plan does not have"
    if row.counted != "value":
        return None
    if row.reward is None or row.passed is None:
        return "counted as a value, but without reward and passed"
    return None if 0 <= row.reward <= 1 else "a reward beyond 0 to 1"


def _wrong_pair(row: PairRow, trials: Mapping[str, TrialRow]) -> str | None:
    treated, compared = trials.get(row.treatment), trials.get(row.comparator)
    if treated is None or compared is None:
        return "a trial that the table of trials does not have"
    same = {(row.task_id, row.sample), (treated.task_id, treated.sample), (compared.task_id, compared.sample)}
    if len(same) > 1 or treated.arm == compared.arm:
        return "trials that are not two arms of its task and sample"
    return None


def _wrong_vote(row: JudgementRow, known: set[str]) -> str | None:
    if row.position not in (0, 1):
        return "a position that is neither 0 nor 1"
    if row.canary:
        return None if row.for_treatment is None else "a canary that speaks for a treatment"
    if row.pair_id not in known:
        return "a pair that the table of pairs does not have"
    if row.state != "valid":
        return None
    if row.verdict is None or row.for_treatment != for_treatment(row.verdict, row.position):
        return "valid, but verdict, position and for_treatment contradict each other"
    return None


def for_treatment(verdict: str, position: int) -> str:
    """What a verdict means for the treatment, which position 0 showed as A and position 1 as B."""
    if verdict not in _SEATS:
        return "tie"
    return "win" if _SEATS.index(verdict) == position else "loss"
