"""From tables to comparisons: which value of which slot counts."""

from __future__ import annotations

import pytest

from skill_effectiveness.studies.analysis.blinding_index import Guess
from skill_effectiveness.studies.analysis.outcomes import (
    Outcome,
    compare_arms,
    compare_preferences,
    guesses_by_side,
    outcome_value,
    pass_means,
    safety_failures,
    shown_shares,
)
from tests.support.study_tables import canary, pairs, trial, trials, vote

ROWS = trials(
    {
        "t2": {"full": [1.0, 0.5, None], "off": [0.0, 0.0, 1.0]},
        "t1": {"full": [1.0], "off": [None], "reference": [1.0]},
    }
)


class TestValue:
    @pytest.mark.parametrize("outcome", [Outcome.REWARD, Outcome.PASSED])
    def test_a_failure_is_zero_and_missing_is_no_number(self, outcome: Outcome) -> None:
        """Whatever else the row holds."""
        assert outcome_value(trial(1, "t", "off", 1)._replace(counted="failure"), outcome) == 0.0
        assert outcome_value(trial(1, "t", "off", 1)._replace(counted="missing"), outcome) is None

    @pytest.mark.parametrize(
        ("reward", "value", "passed"), [(1.0, 1.0, 1.0), (0.5, 0.5, 0.0), (0.0, 0.0, 0.0)]
    )
    def test_reward_and_passed(self, reward: float, value: float, passed: float) -> None:
        row = trial(1, "t", "off", 1, reward)
        assert (outcome_value(row, Outcome.REWARD), outcome_value(row, Outcome.PASSED)) == (value, passed)


class TestArms:
    def test_means_without_the_missing(self) -> None:
        """t2: .75 less 1/3; t1 has no value under off, so no difference."""
        held = compare_arms(ROWS, "full", "off", Outcome.REWARD)
        assert (held.name, [task.task_id for task in held.tasks]) == ("full-off", ["t1", "t2"])
        assert held.measured == ("t2",)
        assert held.differences == (pytest.approx(0.75 - 1 / 3),)
        assert [one.value for one in held.missing] == [None, None]

    def test_other_arms_stay_out(self) -> None:
        held = compare_arms(ROWS, "full", "reference", Outcome.REWARD)
        assert held.differences == (0.0,)

    def test_pass_means(self) -> None:
        """Tasks by id; .5 is no pass."""
        assert pass_means(ROWS, "full") == (1.0, 0.5)
        assert pass_means(ROWS, "off") == (pytest.approx(1 / 3),)

    def test_safety_failures_are_those_seen(self) -> None:
        """Unknown is none seen."""
        rows = [
            trial(k, "t", "off", k)._replace(safety_failure=seen)
            for k, seen in enumerate((True, None, False))
        ]
        assert (safety_failures(rows, "off"), safety_failures(rows, "full")) == (1, 0)


class TestPreferences:
    THREE = trials(
        {"t1": {"full": [1.0, 1.0], "off": [1.0, 1.0]}, "t2": {"full": [1.0, 1.0], "off": [1.0, 0.0]}}
    )

    def test_by_task(self) -> None:
        """F29: inconsistent is 0 and counted, no vote is missing; a pair never made is missing too."""
        made = pairs(self.THREE, {("t1", 1): "win", ("t1", 2): "inconsistent", ("t2", 1): "no_vote"})
        held = compare_preferences(made, self.THREE)
        assert held.paired_values
        assert [[one.value for one in task.treatment] for task in held.tasks] == [[1.0, 0.0], [None, None]]
        assert held.differences == (0.5,)

    @pytest.mark.parametrize(("word", "value"), [("win", 1.0), ("tie", 0.0), ("loss", -1.0)])
    def test_words(self, word: str, value: float) -> None:
        held = compare_preferences(pairs(self.THREE, {("t1", 1): word}), self.THREE)
        assert held.differences == (value,)

    def test_safety_makes_a_loss_of_a_win(self) -> None:
        """S37: no vote outranks a deterministic failure of the treatment."""
        rows = [row._replace(safety_failure=row.arm == "full") for row in self.THREE]
        held = compare_preferences(pairs(self.THREE, {("t1", 1): "win"}), rows)
        assert held.differences == (-1.0,)

    def test_pairs_of_other_arms_are_another_question(self) -> None:
        rows = trials({"t1": {"full": [1.0], "off": [1.0], "reference": [1.0]}})
        (made,) = pairs(rows, {("t1", 1): "win"})
        other = made._replace(comparator=rows[2].trial_id)
        assert compare_preferences([other], rows).differences == ()
        assert shown_shares([vote(1, "pair-1", "A win")], [other], rows) == {}

    def test_one_decided_pair_is_informative_and_ties_are_not(self) -> None:
        """S46: ties alone say as little as tasks that all pass."""
        made = pairs(self.THREE, {("t1", 1): "win", ("t1", 2): "win", ("t2", 1): "tie", ("t2", 2): "tie"})
        assert compare_preferences(made, self.THREE).informative_tasks == 1


class TestShowings:
    ROWS = trials({"t1": {"full": [1.0, 1.0], "off": [1.0, 1.0]}})
    PAIRS = pairs(ROWS, {("t1", 1): "win", ("t1", 2): "tie"})

    def test_shares(self) -> None:
        """Of four valid showings two are won, one is lost; void, failed and known answers stay out."""
        votes = [
            vote(1, "pair-1", "A win"),
            vote(2, "pair-1", "B win", position=1),
            vote(3, "pair-2", "tie"),
            vote(4, "pair-2", "A win", position=1),
            vote(5, "pair-1", "A win", state="void"),
            vote(6, "pair-1", None, state="no_verdict"),
            canary(7, "A win", "A win"),
        ]
        assert shown_shares(votes, self.PAIRS, self.ROWS) == {"t1": (0.5, 0.25)}

    def test_guesses(self) -> None:
        """Right is the side that the treatment was shown on; void votes and canaries say nothing."""
        votes = [
            vote(1, "pair-1", "tie", guess="A"),
            vote(2, "pair-1", "tie", guess="B", position=1),
            vote(3, "pair-2", "tie", guess="B"),
            vote(4, "pair-2", "tie", guess="unsure", position=1),
            vote(5, "pair-2", "tie", guess="A", state="void"),
            vote(6, "pair-2", None, guess="A", state="no_verdict"),
            vote(7, "pair-2", "tie"),
            canary(8, "A win", "A win")._replace(guess="A"),
        ]
        first, second = guesses_by_side(votes, self.PAIRS, self.ROWS)
        assert first == {"t1": [Guess.RIGHT, Guess.WRONG, Guess.RIGHT]}
        assert second == {"t1": [Guess.RIGHT, Guess.UNSURE]}
