"""How the reviewers of a study judged, against counts by hand and figures of other libraries."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import cohen_kappa_score

from skill_effectiveness.studies.analysis.reviewers import reviewers_result
from skill_effectiveness.studies.chance import Chance
from tests.support.study_tables import canary, vote

CHANCE = Chance(bytes(32))
WORDS = ("A win", "B win", "tie")


def test_one_reviewer_by_hand() -> None:
    """S42: pair 1 agrees over both seats, pair 2 flips with the seat, pair 3 was seen once."""
    votes = [
        vote(1, "pair-1", "A win", chars=(10, 20)),
        vote(2, "pair-1", "B win", position=1, chars=(20, 10)),
        vote(3, "pair-2", "A win", chars=(30, 20)),
        vote(4, "pair-2", "A win", position=1, chars=(20, 30)),
        vote(5, "pair-3", "tie"),
        vote(6, "pair-4", None, state="invalid"),
        canary(7, "A win", "A win"),
        canary(8, "A win", "B win"),
    ]
    result = reviewers_result(votes, CHANCE)
    (sheet,) = result.sheets
    assert sheet.votes == {
        "valid": 5, "no_verdict": 0, "invalid": 1, "refused": 0, "provider_error": 0, "void": 0,
    }  # fmt: skip
    assert (sheet.pairs, sheet.inconsistent.part) == (3, 1)
    assert (sheet.position.flips.part, sheet.position.flips.whole) == (1, 2)
    assert (sheet.position.first_seat.part, sheet.position.first_seat.whole) == (3, 4)
    assert (sheet.longer.part, sheet.longer.whole) == (1, 4)
    assert (sheet.canaries.part, sheet.canaries.whole) == (1, 2)
    assert sheet.confusion == ((1, 0, 0), (1, 0, 0), (0, 0, 0))
    assert (result.agreement, result.alpha) == ((), None)


def test_two_reviewers() -> None:
    """S43: scikit-learn's kappa over the same answers, to 1e-9."""
    random = np.random.default_rng(11)
    answers = random.integers(0, 3, (2, 40))
    answers[1, :25] = answers[0, :25]
    votes = [
        vote(2 * k + r, f"pair-{k:02}", WORDS[answers[r, k]], reviewer=name)
        for r, name in enumerate(("claude", "codex"))
        for k in range(40)
    ]
    result = reviewers_result(votes, CHANCE)
    (two,) = result.agreement
    assert (two.first, two.second, two.pairs) == ("claude", "codex", 40)
    assert two.figures.agreement.value == float((answers[0] == answers[1]).mean())
    assert two.figures.kappa.value == pytest.approx(cohen_kappa_score(*answers), abs=1e-9)
    assert result.alpha is not None
    assert result.alpha.interval.low < result.alpha.value < result.alpha.interval.high


def test_turned_votes_are_compared_by_what_they_say_for_the_treatment() -> None:
    """One saw the treatment as A, the other as B; both preferred it."""
    votes = [
        vote(1, "pair-1", "A win", reviewer="claude"),
        vote(2, "pair-1", "B win", position=1, reviewer="codex"),
    ]
    (two,) = reviewers_result(votes, CHANCE).agreement
    assert two.figures.agreement.value == 1.0


def test_no_pair_in_common() -> None:
    votes = [vote(1, "pair-1", "tie", reviewer="claude"), vote(2, "pair-2", "tie", reviewer="codex")]
    result = reviewers_result(votes, CHANCE)
    assert (result.agreement, result.alpha) == ((), None)
