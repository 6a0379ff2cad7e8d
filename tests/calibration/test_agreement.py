from __future__ import annotations

from collections import Counter
from fractions import Fraction
from itertools import permutations
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy import stats
from sklearn.metrics import cohen_kappa_score
from statsmodels.stats.inter_rater import fleiss_kappa

from skill_effectiveness.calibration.agreement import (
    _ac1_ratio,
    _agreement_ratio,
    _kappa_ratio,
    _kinds,
    _statistic,
    alpha_agreement,
    cohen_kappa,
    gwet_ac1,
    krippendorff_alpha_nominal,
    pair_agreement,
    percent_agreement,
)
from skill_effectiveness.calibration.figures import Interval
from skill_effectiveness.protocol.words import Verdict
from tests.support.verdicts import ANSWERS, VERDICTS, answers, verdicts

if TYPE_CHECKING:
    from collections.abc import Sequence

X = verdicts("AAAAAAAA BBBBBBBB TTTTTTTT")
Y = verdicts("AAAAAAAT BBBBBBAA TTTTTTTB")


pairs_of_answers = st.lists(st.tuples(ANSWERS, ANSWERS), min_size=1, max_size=30)
pairs_of_verdicts = st.lists(st.tuples(VERDICTS, VERDICTS), min_size=1, max_size=30)


def ac1_by_definition(x: Sequence[Verdict], y: Sequence[Verdict]) -> float:
    """Gwet 2008, equations for two raters and three categories, in plain floats."""
    n = len(x)
    p_o = sum(a == b for a, b in zip(x, y, strict=True)) / n
    rates = [(x.count(verdict) + y.count(verdict)) / (2 * n) for verdict in Verdict]
    p_e = sum(rate * (1 - rate) for rate in rates) / 2
    return (p_o - p_e) / (1 - p_e)


def alpha_by_coincidences(reviewers: Sequence[Sequence[Verdict | None]]) -> Fraction | None:
    """Krippendorff 2004, chapter 11: the coincidence matrix written out pair by pair."""
    coincidences: Counter[tuple[Verdict, Verdict]] = Counter()
    weights: dict[tuple[Verdict, Verdict], Fraction] = {}
    for case in zip(*reviewers, strict=True):
        given_values = [value for value in case if value is not None]
        for pair in permutations(given_values, 2):
            coincidences[pair] += 1
            weights[pair] = weights.get(pair, Fraction(0)) + Fraction(1, len(given_values) - 1)
    total = sum(weights.values(), Fraction(0))
    if not total:
        return None
    margin = {v: sum((w for (a, _), w in weights.items() if a == v), Fraction(0)) for v in Verdict}
    observed = sum((w for (a, b), w in weights.items() if a != b), Fraction(0)) / total
    expected = sum(margin[a] * margin[b] for a in Verdict for b in Verdict if a != b) / (total * (total - 1))
    return Fraction(1) if not expected else 1 - observed / expected


class TestKnownAnswers:
    def test_the_pair_of_section_8(self) -> None:
        """R22: agreement, kappa, AC1 and alpha of the worked example, by hand: 20/24, 288/384, 2306/3074."""
        assert percent_agreement(X, Y) == Fraction(20, 24)
        assert cohen_kappa(X, Y) == Fraction(288, 384)
        assert gwet_ac1(X, Y) == Fraction(2306, 3074)
        alpha = krippendorff_alpha_nominal([X, Y])
        assert alpha == pytest.approx(1 - Fraction(4 * 2 * 47, 48 * 47 - 722), abs=1e-15)
        assert [round(float(figure), 4) for figure in (percent_agreement(X, Y), cohen_kappa(X, Y))] == [
            0.8333,
            0.75,
        ]
        assert (round(float(gwet_ac1(X, Y)), 4), round(alpha or 0, 4)) == (0.7502, 0.7549)

    def test_no_consensus_never_agrees(self) -> None:
        """R21: two reviewers without a verdict on a case do not agree on it; shares stay over all cases."""
        assert percent_agreement(answers("AB--"), answers("AB-A")) == Fraction(2, 4)
        # p_o = 2/4, p_e = (1/4)(2/4) + (1/4)(1/4) = 3/16, so (8/16 - 3/16) / (13/16).
        assert cohen_kappa(answers("AB--"), answers("AB-A")) == Fraction(5, 13)

    def test_nobody_has_a_consensus(self) -> None:
        assert percent_agreement(answers("--"), answers("--")) == 0
        assert cohen_kappa(answers("--"), answers("--")) == 0
        assert gwet_ac1(answers("--"), answers("--")) == 0

    def test_chance_explains_everything(self) -> None:
        """R22: p_e = 1 gives 1 where all agree; a single different word makes p_e smaller than 1."""
        assert cohen_kappa(verdicts("TTTT"), verdicts("TTTT")) == 1
        assert cohen_kappa(verdicts("TTTT"), verdicts("TTTA")) == 0

    def test_opposite_words_throughout(self) -> None:
        assert cohen_kappa(verdicts("AABB"), verdicts("BBAA")) == -1
        assert cohen_kappa(verdicts("AAAA"), verdicts("BBBB")) == 0

    def test_alpha_of_one_word_only(self) -> None:
        assert krippendorff_alpha_nominal([verdicts("TT"), verdicts("TT")]) == 1

    def test_alpha_needs_two_verdicts_on_a_case(self) -> None:
        assert krippendorff_alpha_nominal([answers("A-B"), answers("-T-")]) is None
        assert alpha_agreement([answers("A-B"), answers("-T-")], 1) is None

    def test_alpha_takes_no_consensus_for_missing(self) -> None:
        with_gap = krippendorff_alpha_nominal([answers("AABT-"), answers("AABBA")])
        assert with_gap == krippendorff_alpha_nominal([answers("AABT"), answers("AABB")])


class TestOracles:
    @given(pairs_of_verdicts)
    def test_kappa_equals_sklearn(self, pairs: list[tuple[Verdict, Verdict]]) -> None:
        x, y = ([*side] for side in zip(*pairs, strict=True))
        assume(len({*x, *y}) > 1)
        assert float(cohen_kappa(x, y)) == pytest.approx(cohen_kappa_score(x, y), abs=1e-12)

    @given(pairs_of_verdicts)
    def test_ac1_equals_its_definition(self, pairs: list[tuple[Verdict, Verdict]]) -> None:
        x, y = ([*side] for side in zip(*pairs, strict=True))
        assert float(gwet_ac1(x, y)) == pytest.approx(ac1_by_definition(x, y), abs=1e-12)

    @given(st.lists(st.lists(ANSWERS, min_size=4, max_size=4), min_size=1, max_size=20))
    def test_alpha_equals_its_coincidence_matrix(self, cases: list[list[Verdict | None]]) -> None:
        reviewers = [*zip(*cases, strict=True)]
        expected, alpha = alpha_by_coincidences(reviewers), krippendorff_alpha_nominal(reviewers)
        if expected is None:
            assert alpha is None
        else:
            assert alpha == pytest.approx(float(expected), abs=1e-12)

    @given(st.lists(st.lists(VERDICTS, min_size=3, max_size=3), min_size=2, max_size=20))
    def test_complete_alpha_equals_fleiss_kappa_of_statsmodels(self, cases: list[list[Verdict]]) -> None:
        """Without gaps alpha is Fleiss' kappa with a correction for the finite number of verdicts."""
        counts = np.array([[case.count(verdict) for verdict in Verdict] for case in cases])
        assume(np.count_nonzero(counts.sum(axis=0)) > 1)
        n = counts.sum()
        expected = 1 - (1 - fleiss_kappa(counts)) * (n - 1) / n
        assert krippendorff_alpha_nominal([*zip(*cases, strict=True)]) == pytest.approx(expected, abs=1e-12)

    def test_intervals_are_near_those_of_scipy(self) -> None:
        """R22: kappa of the known pair, bootstrapped over cases by scipy with other draws."""
        codes = [np.array([list(Verdict).index(verdict) for verdict in side]) for side in (X, Y)]
        expected = stats.bootstrap(
            codes, cohen_kappa_score, paired=True, vectorized=False, n_resamples=2000, method="BCa", rng=1
        ).confidence_interval
        interval = pair_agreement(X, Y, seed=1).kappa.interval
        assert interval.low == pytest.approx(expected.low, abs=0.03)
        assert interval.high == pytest.approx(expected.high, abs=0.03)


class TestIntervals:
    def test_values_are_the_exact_figures(self) -> None:
        found = pair_agreement(X, Y, seed=1)
        assert (found.agreement.value, found.kappa.value) == (20 / 24, 0.75)
        assert found.ac1.value == 2306 / 3074

    def test_same_seed_same_intervals_whatever_the_order_of_cases(self) -> None:
        turned = pair_agreement(X[::-1], Y[::-1], seed=1)
        assert turned == pair_agreement(X, Y, seed=1)
        assert turned != pair_agreement(X, Y, seed=2)
        assert alpha_agreement([X, Y], 1) == alpha_agreement([X[::-1], Y[::-1]], 1)

    @given(pairs_of_answers)
    def test_resamples_are_measured_as_the_figures_are(
        self, pairs: list[tuple[Verdict | None, Verdict | None]]
    ) -> None:
        """What the bootstrap computes for the cases as they are equals the exact figure."""
        x, y = ([*side] for side in zip(*pairs, strict=True))
        kinds, values = _kinds(pairs)
        tallies = np.bincount(values)[np.newaxis, :]
        figures = {_agreement_ratio: percent_agreement, _kappa_ratio: cohen_kappa, _ac1_ratio: gwet_ac1}
        for ratio, figure in figures.items():
            assert _statistic(ratio, kinds)(tallies)[0] == pytest.approx(float(figure(x, y)), abs=1e-15)

    def test_cases_without_consensus_count_in_the_intervals_too(self) -> None:
        """R21: two reviewers that never have a consensus never agree, in no resample."""
        found = pair_agreement(answers("----"), answers("----"), seed=1)
        assert found.agreement.interval == Interval(low=0, high=0)

    def test_perfect_agreement_has_no_spread(self) -> None:
        """Every resample agrees fully; of one verdict alone kappa and alpha are 1 by rule."""
        found = pair_agreement(X, X, seed=1)
        one = Interval(low=1, high=1)
        assert (found.agreement.interval, found.kappa.interval, found.ac1.interval) == (one, one, one)
        alpha = alpha_agreement([X, X], 1)
        assert alpha is not None
        assert alpha.interval == one

    @given(pairs_of_answers, st.integers(0, 2**32))
    def test_every_pair_has_finite_ordered_intervals(
        self, pairs: list[tuple[Verdict | None, Verdict | None]], seed: int
    ) -> None:
        x, y = ([*side] for side in zip(*pairs, strict=True))
        found = pair_agreement(x, y, seed, draws=20)
        estimates = [found.agreement, found.kappa, found.ac1, alpha_agreement([x, y], seed, draws=20)]
        for estimate in estimates:
            if estimate is not None:
                assert -1 - 1e-12 <= estimate.interval.low <= estimate.interval.high <= 1


class TestProperties:
    @given(pairs_of_answers, st.permutations(list(Verdict)))
    def test_renaming_the_verdicts_changes_nothing(
        self, pairs: list[tuple[Verdict | None, Verdict | None]], renamed: list[Verdict]
    ) -> None:
        name: dict[Verdict | None, Verdict | None] = {None: None, **dict(zip(Verdict, renamed, strict=True))}
        x, y = ([*side] for side in zip(*pairs, strict=True))
        new_x, new_y = [name[a] for a in x], [name[a] for a in y]
        assert percent_agreement(x, y) == percent_agreement(new_x, new_y)
        assert cohen_kappa(x, y) == cohen_kappa(new_x, new_y)
        assert gwet_ac1(x, y) == gwet_ac1(new_x, new_y)
        assert krippendorff_alpha_nominal([x, y]) == krippendorff_alpha_nominal([new_x, new_y])

    @given(pairs_of_answers)
    def test_order_of_cases_and_reviewers_changes_nothing(
        self, pairs: list[tuple[Verdict | None, Verdict | None]]
    ) -> None:
        x, y = ([*side] for side in zip(*pairs, strict=True))
        pairs_again = pairs[::-1]
        new_y, new_x = ([*side] for side in zip(*pairs_again, strict=True))
        assert percent_agreement(x, y) == percent_agreement(new_x, new_y)
        assert cohen_kappa(x, y) == cohen_kappa(new_x, new_y)
        assert gwet_ac1(x, y) == gwet_ac1(new_x, new_y)


class TestRefusals:
    @pytest.mark.parametrize("figure", [percent_agreement, cohen_kappa, gwet_ac1])
    @pytest.mark.parametrize(("x", "y"), [("", ""), ("A", "AB")])
    def test_pairs_need_the_same_cases(self, figure: object, x: str, y: str) -> None:
        assert callable(figure)
        with pytest.raises(ValueError, match="same cases"):
            figure(verdicts(x), verdicts(y))

    @pytest.mark.parametrize("reviewers", [[], ["AB"], ["", ""]])
    def test_alpha_needs_two_reviewers_and_a_case(self, reviewers: list[str]) -> None:
        with pytest.raises(ValueError, match="alpha"):
            krippendorff_alpha_nominal([verdicts(letters) for letters in reviewers])

    def test_alpha_needs_the_same_cases(self) -> None:
        with pytest.raises(ValueError, match="zip"):
            krippendorff_alpha_nominal([verdicts("AB"), verdicts("A")])
