"""The preference of 1,000,000 judgements with its interval, against scipy's bootstrap of the same statistic.

2,000 tasks with 500 showings each. The statistic is the mean over tasks of the share of showings won less the
share lost; resamples draw tasks, because the tasks are the sample. Ours reads the rows of the table, and then
the interval. The rival is handed the showings as one array of numbers, ready made, and resamples its rows.
Both make 10,000 resamples and a BCa interval, which needs the statistic 10,000 times and once without each
task. For the rival's time, 500 resamples and the jackknife are timed and scaled to that number. Best of three
rounds.
"""

from __future__ import annotations

import sys
import time
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import numpy as np
import scipy.stats

from benchmarks.harness import Figure, report
from skill_effectiveness.calibration.figures import Interval
from skill_effectiveness.studies.analysis.bootstrap import DRAWS, Resamples
from skill_effectiveness.studies.analysis.outcomes import shown_shares
from skill_effectiveness.studies.chance import Chance
from tests.support.study_tables import pairs, trials, vote

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from skill_effectiveness.studies.tables import JudgementRow, PairRow, TrialRow

TASKS = 2_000
SHOWINGS = 500
SECONDS = 5.0
TIMES_FASTER = 10.0
RIVAL_DRAWS = 500
ROUNDS = 3


def main() -> int:
    source = np.random.default_rng(17)
    won = source.beta(3, 2, TASKS)[:, np.newaxis]
    others = source.integers(-1, 1, (TASKS, SHOWINGS))
    scores = np.where(source.random((TASKS, SHOWINGS)) < won, 1, others).astype(np.float64)
    rows, made, votes = _tables(scores)

    own_seconds, own = _best(lambda: _ours(rows, made, votes))
    few_seconds, rival = _best(lambda: _rival(scores))
    rival_seconds = few_seconds * (DRAWS + TASKS) / (RIVAL_DRAWS + TASKS)
    assert abs(own.low - rival.low) < 0.01
    assert abs(own.high - rival.high) < 0.01
    return report(
        Figure("preference_of_1000000_judgements_seconds", own_seconds, SECONDS),
        Figure(
            "scipy_bootstrap_to_preference_of_1000000_judgements",
            rival_seconds / own_seconds,
            TIMES_FASTER,
            at_most=False,
        ),
    )


def _tables(
    scores: NDArray[np.float64],
) -> tuple[tuple[TrialRow, ...], tuple[PairRow, ...], list[JudgementRow]]:
    names = [f"t{number:04}" for number in range(TASKS)]
    rows = trials({name: {"full": [1.0], "off": [0.0]} for name in names})
    made = pairs(rows, {(name, 1): "win" for name in names})
    words = {1.0: "A win", 0.0: "tie", -1.0: "B win"}
    forms = {score: vote(0, "pair-1", verdict) for score, verdict in words.items()}
    at = datetime(2026, 1, 2, tzinfo=UTC)
    votes = [
        forms[score]._replace(vote_id=f"{pair}-{number}", pair_id=made[pair].pair_id, voted_at=at)
        for pair, given in enumerate(scores.tolist())
        for number, score in enumerate(given)
    ]
    return rows, made, votes


def _ours(rows: tuple[TrialRow, ...], made: tuple[PairRow, ...], votes: list[JudgementRow]) -> Interval:
    shares = shown_shares(votes, made, rows)
    nets = [won - lost for won, lost in shares.values()]
    return Resamples(Chance(bytes(32)), "bca/preference").interval(nets, 0.05)


def _rival(scores: NDArray[np.float64]) -> Interval:
    def net(tasks: NDArray[np.int64]) -> float:
        return float(scores[tasks].mean(axis=1).mean())

    found = scipy.stats.bootstrap(
        (np.arange(TASKS),), net, n_resamples=RIVAL_DRAWS, vectorized=False, rng=np.random.default_rng(1)
    ).confidence_interval
    return Interval(low=float(found.low), high=float(found.high))


def _best(run: Callable[[], Interval]) -> tuple[float, Interval]:
    """The shortest of some rounds in seconds, and the answer."""
    best, found = float("inf"), Interval(low=0.0, high=0.0)
    for _ in range(ROUNDS):
        start = time.perf_counter()
        found = run()
        best = min(best, time.perf_counter() - start)
    return best, found


if __name__ == "__main__":
    sys.exit(main())
