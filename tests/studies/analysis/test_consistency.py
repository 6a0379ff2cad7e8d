"""Rows that contradict each other or the plan."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from skill_effectiveness.studies.analysis.analyse import analyse
from skill_effectiveness.studies.analysis.consistency import check_tables, for_treatment
from skill_effectiveness.studies.chance import Chance
from skill_effectiveness.studies.tables import JudgementRow, PairRow, TableError, Tables, TrialRow
from tests.support.study_tables import canary, pairs, plan, trials, vote

if TYPE_CHECKING:
    from collections.abc import Callable

ROWS = trials({"t1": {"full": [1.0, 0.0], "off": [0.0, None]}, "t2": {"full": [1.0], "off": [0.0]}})
PAIRS = pairs(ROWS, {("t1", 1): "win", ("t2", 1): "tie"})
VOTES = (vote(1, "pair-1", "A win"), vote(2, "pair-2", "B win", position=1), canary(3, "tie", "tie"))
PLAN = plan(Tables(ROWS), samples=2)


def test_what_belongs_together_passes() -> None:
    check_tables(Tables(ROWS, PAIRS, VOTES), PLAN)
    check_tables(Tables(()), PLAN)


@pytest.mark.parametrize(
    "change",
    [
        lambda row: row._replace(slot=ROWS[1].slot),
        lambda row: row._replace(trial_id=ROWS[1].trial_id),
        lambda row: row._replace(arm=ROWS[1].arm),
        lambda row: row._replace(arm="placebo"),
        lambda row: row._replace(task_id="t3"),
        lambda row: row._replace(sample=0),
        lambda row: row._replace(sample=3),
        lambda row: row._replace(reward=None),
        lambda row: row._replace(passed=None),
        lambda row: row._replace(reward=1.5),
        lambda row: row._replace(reward=-0.1),
    ],
)
def test_trials(change: Callable[[TrialRow], TrialRow]) -> None:
    """F52 S65: named by table and row, never computed around."""
    with pytest.raises(TableError, match=r"^trials row \d+: "):
        analyse(Tables((change(ROWS[0]), *ROWS[1:]), ()), PLAN, Chance(bytes(32)))


@pytest.mark.parametrize(
    "change",
    [
        lambda row: row._replace(pair_id="pair-2"),
        lambda row: row._replace(treatment="slot-99"),
        lambda row: row._replace(comparator=row.treatment),
        lambda row: row._replace(comparator=ROWS[-1].trial_id),
        lambda row: row._replace(task_id="t2"),
        lambda row: row._replace(sample=2),
        lambda row: PAIRS[1]._replace(pair_id=row.pair_id),
    ],
)
def test_pairs(change: Callable[[PairRow], PairRow]) -> None:
    """F52: two arms of one task and sample, each pair once."""
    with pytest.raises(TableError, match=r"^pairs row \d+: "):
        analyse(Tables(ROWS, (change(PAIRS[0]), PAIRS[1]), ()), PLAN, Chance(bytes(32)))


@pytest.mark.parametrize(
    "change",
    [
        lambda row: row._replace(vote_id=VOTES[1].vote_id),
        lambda row: row._replace(pair_id="pair-9"),
        lambda row: row._replace(position=2),
        lambda row: row._replace(for_treatment="loss"),
        lambda row: row._replace(for_treatment=None),
        lambda row: row._replace(verdict=None),
        lambda row: row._replace(position=1),
        lambda row: row._replace(canary=True),
    ],
)
def test_votes(change: Callable[[JudgementRow], JudgementRow]) -> None:
    """S39: what a vote says for the treatment follows from verdict and position alone."""
    with pytest.raises(TableError, match=r"^judgements row \d+: "):
        analyse(Tables(ROWS, PAIRS, (change(VOTES[0]), *VOTES[1:])), PLAN, Chance(bytes(32)))


@pytest.mark.parametrize(
    ("verdict", "position", "word"),
    [
        ("A win", 0, "win"), ("A win", 1, "loss"), ("B win", 0, "loss"), ("B win", 1, "win"),
        ("tie", 0, "tie"), ("tie", 1, "tie"),
    ],
)  # fmt: skip
def test_for_treatment(verdict: str, position: int, word: str) -> None:
    """Position 0 shows the treatment as A."""
    assert for_treatment(verdict, position) == word
