from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import accuracy_score, confusion_matrix, recall_score

from skill_effectiveness.calibration.intervals import wilson
from skill_effectiveness.calibration.metrics import majority, reviewer_metrics
from skill_effectiveness.protocol.words import Verdict
from tests.support.verdicts import VERDICTS, answers, examinations, verdicts

if TYPE_CHECKING:
    from random import Random

Examination = tuple[list[Verdict], list[list[Verdict]]]

TRUTH = verdicts("AAAAAAAA BBBBBBBB TTTTTTTT")


class TestKnownAnswers:
    def test_one_inconsistent_case_of_24(self) -> None:
        """R21 R22: a modal tie in one case costs 1/24 of self-consistency, and that case has no consensus."""
        other = verdicts("AAAAAAAA BBBBTBBB TTTTTTTT")
        found = reviewer_metrics(TRUTH, [TRUTH, other])
        assert found.self_consistency == Fraction(23, 24)
        assert round(found.self_consistency_estimate.value, 4) == 0.9583
        assert found.accuracy == Fraction(47, 48)
        assert found.consensus == answers("AAAAAAAA BBBB-BBB TTTTTTTT")

    def test_every_case_counts_towards_self_consistency(self) -> None:
        """R21: the first inconsistent case does not end the count."""
        found = reviewer_metrics(verdicts("AAAA"), [verdicts("BAAB"), verdicts("AABB")])
        assert found.consistent == 2

    @pytest.mark.parametrize(
        ("right", "low", "high"), [(24, 0.8620, 1.0), (20, 0.6415, 0.9332), (19, 0.5953, 0.9076)]
    )
    def test_accuracy_intervals(self, right: int, low: float, high: float) -> None:
        """R22: the Wilson intervals of section 8, reached through the runs."""
        run = [truth if place < right else truth.turned() for place, truth in enumerate(verdicts(24 * "A"))]
        found = reviewer_metrics(verdicts(24 * "A"), [run, run]).accuracy_estimate
        assert found.value == right / 24
        assert (round(found.interval.low, 4), round(found.interval.high, 4)) == (low, high)

    def test_confusion_sensitivity_and_specificity(self) -> None:
        """Four cases, two runs, counted by hand: A is hit in 3 of 4, and called wrongly once in 4."""
        found = reviewer_metrics(verdicts("AABT"), [verdicts("AABT"), verdicts("ATBA")])
        assert found.confusion.counts == ((3, 0, 1), (0, 2, 0), (1, 0, 1))
        assert found.confusion.of(Verdict.TIE, Verdict.A_WIN) == 1
        a = found.confusion.one_against_rest(Verdict.A_WIN)
        assert (a.hits, a.positives, a.rejections, a.negatives) == (3, 4, 3, 4)
        assert a.sensitivity is not None
        assert a.specificity is not None
        assert (a.sensitivity.value, a.specificity.value) == (0.75, 0.75)
        # Two cases have the truth A, so its interval is that of 1.5 of 2 and not of 3 of 4.
        assert a.sensitivity.interval == wilson(1.5, 2)

    def test_a_verdict_that_is_never_true_has_no_sensitivity(self) -> None:
        only_a = reviewer_metrics(verdicts("AA"), [verdicts("AB")]).confusion
        assert only_a.one_against_rest(Verdict.TIE).sensitivity is None
        assert only_a.one_against_rest(Verdict.A_WIN).specificity is None

    @pytest.mark.parametrize(
        ("given_verdicts", "expected"),
        [("A", "A"), ("AB", "-"), ("AAB", "A"), ("ABT", "-"), ("ABTT", "T"), ("AABBT", "-"), ("", "-")],
    )
    def test_majority(self, given_verdicts: str, expected: str) -> None:
        assert (majority(verdicts(given_verdicts)),) == answers(expected)


class TestRepeats:
    @given(examinations(), st.integers(2, 4))
    def test_equal_repeats_never_narrow_an_interval(self, examination: Examination, times: int) -> None:
        """R23: repeating every run gives the same shares and the same intervals."""
        truth, runs = examination
        once, more = reviewer_metrics(truth, runs), reviewer_metrics(truth, runs * times)
        assert once.accuracy_estimate == more.accuracy_estimate
        assert once.self_consistency_estimate == more.self_consistency_estimate
        for verdict in Verdict:
            few, many = (found.confusion.one_against_rest(verdict) for found in (once, more))
            assert (few.sensitivity, few.specificity) == (many.sensitivity, many.specificity)

    def test_three_equal_answers_give_the_intervals_of_two(self) -> None:
        """R23: 20 of 24 right, asked twice or three times."""
        run = [*TRUTH[:20], *(Verdict.A_WIN,) * 4]
        two, three = reviewer_metrics(TRUTH, [run] * 2), reviewer_metrics(TRUTH, [run] * 3)
        assert two.accuracy_estimate == three.accuracy_estimate
        assert two.accuracy_estimate.interval == wilson(20, 24)


class TestOracles:
    @given(examinations())
    def test_counts_equal_sklearn(self, examination: Examination) -> None:
        truth, runs = examination
        found = reviewer_metrics(truth, runs)
        expected = [str(verdict) for verdict in truth] * len(runs)
        given_words = [str(verdict) for run in runs for verdict in run]
        labels = [verdict.value for verdict in Verdict]
        matrix = confusion_matrix(expected, given_words, labels=labels)
        assert [list(row) for row in found.confusion.counts] == matrix.tolist()
        assert float(found.accuracy) == pytest.approx(accuracy_score(expected, given_words))
        recalls = recall_score(expected, given_words, labels=labels, average=None, zero_division=0)
        for verdict, recall in zip(Verdict, recalls, strict=True):
            sensitivity = found.confusion.one_against_rest(verdict).sensitivity
            assert (sensitivity.value if sensitivity else 0) == pytest.approx(recall)

    @given(examinations())
    def test_consistency_equals_the_plain_definition(self, examination: Examination) -> None:
        truth, runs = examination
        same = [len({run[place] for run in runs}) == 1 for place in range(len(truth))]
        assert reviewer_metrics(truth, runs).consistent == sum(same)


class TestProperties:
    @given(examinations(), st.randoms(use_true_random=False))
    def test_order_of_cases_and_runs_changes_nothing(self, examination: Examination, random: Random) -> None:
        truth, runs = examination
        places = list(range(len(truth)))
        random.shuffle(places)
        moved = reviewer_metrics([truth[p] for p in places], [[run[p] for p in places] for run in runs[::-1]])
        found = reviewer_metrics(truth, runs)
        assert (moved.consistent, moved.correct, moved.confusion) == (
            found.consistent,
            found.correct,
            found.confusion,
        )
        assert moved.consensus == tuple(found.consensus[p] for p in places)

    @given(examinations())
    def test_turning_all_seats_mirrors_the_confusion(self, examination: Examination) -> None:
        truth, runs = examination
        turned = reviewer_metrics([t.turned() for t in truth], [[v.turned() for v in run] for run in runs])
        found = reviewer_metrics(truth, runs)
        for row in Verdict:
            for column in Verdict:
                assert turned.confusion.of(row.turned(), column.turned()) == found.confusion.of(row, column)
        assert (turned.accuracy, turned.self_consistency) == (found.accuracy, found.self_consistency)

    @given(examinations())
    def test_intervals_hold_their_shares(self, examination: Examination) -> None:
        found = reviewer_metrics(*examination)
        for estimate in (found.accuracy_estimate, found.self_consistency_estimate):
            assert estimate.interval.low - 1e-12 <= estimate.value <= estimate.interval.high + 1e-12

    @given(st.lists(VERDICTS, min_size=1, max_size=9))
    def test_a_majority_is_more_frequent_than_any_other(self, given_verdicts: list[Verdict]) -> None:
        winner = majority(given_verdicts)
        counts = sorted((given_verdicts.count(verdict) for verdict in Verdict), reverse=True)
        if winner is None:
            assert counts[0] == counts[1]
        else:
            assert given_verdicts.count(winner) == counts[0] > counts[1]


@pytest.mark.parametrize(("truth", "runs"), [("", [""]), ("A", []), ("AB", ["AB", "A"])])
def test_incomplete_runs_are_refused(truth: str, runs: list[str]) -> None:
    with pytest.raises(ValueError, match="one verdict per case"):
        reviewer_metrics(verdicts(truth), [verdicts(letters) for letters in runs])
