"""Metrics of 1,000,000 judgements: one reviewer, 25 runs over 40,000 cases, in under two seconds.

The figure is the best of three rounds, in seconds, of everything that one family needs: consistency,
accuracy, consensus, confusion, sensitivity, specificity and their intervals. Beside it stands what
scikit-learn takes for the confusion matrix and the accuracy alone, given integer arrays: the price of
counting without an array library.
"""

from __future__ import annotations

import random
import sys
from typing import TYPE_CHECKING

import numpy as np
from sklearn.metrics import accuracy_score, confusion_matrix

from benchmarks.harness import Figure, best_seconds, report
from skill_effectiveness.calibration.metrics import reviewer_metrics
from skill_effectiveness.protocol.words import Verdict

if TYPE_CHECKING:
    from skill_effectiveness.calibration.metrics import ReviewerMetrics

CASES = 40_000
RUNS = 25
SECONDS = 2.0
RIVAL_RATIO = 2.5


def main() -> int:
    source = random.Random(20)  # noqa: S311 - a benchmark's data, the same every time
    words = list(Verdict)
    truth = source.choices(words, k=CASES)
    runs = [[source.choice(words) if source.random() < 0.2 else word for word in truth] for _ in range(RUNS)]
    expected = np.tile([words.index(word) for word in truth], RUNS)
    given = np.array([words.index(word) for run in runs for word in run])

    def ours() -> ReviewerMetrics:
        found = reviewer_metrics(truth, runs)
        for word in words:
            rest = found.confusion.one_against_rest(word)
            assert rest.sensitivity is not None
            assert rest.specificity is not None
        assert found.accuracy_estimate.interval.low > found.self_consistency_estimate.interval.high
        return found

    def rival() -> tuple[object, object]:
        return confusion_matrix(expected, given), accuracy_score(expected, given)

    assert [list(row) for row in ours().confusion.counts] == confusion_matrix(expected, given).tolist()
    own_seconds, rival_seconds = best_seconds(ours, rival, rounds=3)
    return report(
        Figure("metrics_of_1000000_judgements_seconds", own_seconds, SECONDS),
        Figure("metrics_of_1000000_judgements_to_sklearn_counts", own_seconds / rival_seconds, RIVAL_RATIO),
    )


if __name__ == "__main__":
    sys.exit(main())
