"""The words a comparison comes to, each at its boundary."""

from __future__ import annotations

from dataclasses import replace

import pytest

from skill_effectiveness.calibration.figures import Interval
from skill_effectiveness.studies.analysis.conclusions import Findings, Reason, Word, conclude

STRONG = Findings(
    effect=0.3,
    p=0.05,
    interval=Interval(low=0.01, high=0.6),
    narrow_interval=Interval(low=0.05, high=0.5),
    tasks=12,
    informative_tasks=12,
    minimum_effect=0.05,
    alpha=0.05,
    planned_power=0.5,
)


def said(**changed: object) -> Word:
    return conclude(replace(STRONG, **changed)).word  # type: ignore[arg-type]


class TestDirections:
    def test_improves_at_the_limit(self) -> None:
        """S52: p equal to alpha still rejects, p above does not."""
        assert said() is Word.IMPROVES
        assert said(p=0.0500001) is Word.INCONCLUSIVE

    def test_interval_must_lie_beyond_zero(self) -> None:
        """S52: an end at 0 is not beyond it."""
        assert said(interval=Interval(low=0.0, high=0.6)) is Word.INCONCLUSIVE

    def test_harms(self) -> None:
        """S52: the mirror image."""
        assert said(effect=-0.3, interval=Interval(low=-0.6, high=-0.01)) is Word.HARMS
        assert said(effect=-0.3, interval=Interval(low=-0.6, high=0.0)) is Word.INCONCLUSIVE

    def test_mean_and_interval_must_agree(self) -> None:
        assert said(effect=-0.1) is Word.INCONCLUSIVE

    def test_safety_outranks_an_improvement_and_nothing_else(self) -> None:
        """S37: more deterministic safety failures in the treatment arm."""
        found = conclude(replace(STRONG, more_safety_failures=True))
        assert (found.word, found.reasons) == (Word.INCONCLUSIVE, (Reason.SAFETY,))
        harmed = {"effect": -0.3, "interval": Interval(low=-0.6, high=-0.01)}
        assert said(more_safety_failures=True, **harmed) is Word.HARMS


class TestEquivalence:
    INSIDE = Interval(low=-0.049, high=0.049)
    NULL = {"effect": 0.001, "p": 0.9, "interval": Interval(low=-0.06, high=0.06)}  # noqa: RUF012 - never changed

    def test_strictly_inside(self) -> None:
        """S52: an end at the least effect itself is not inside."""
        assert said(**self.NULL, narrow_interval=self.INSIDE) is Word.EQUIVALENT
        assert said(**self.NULL, narrow_interval=Interval(low=-0.05, high=0.049)) is Word.INCONCLUSIVE

    def test_comes_before_improves(self) -> None:
        """S52: the first word that holds."""
        tight = Interval(low=0.001, high=0.02)
        assert said(effect=0.01, interval=tight, narrow_interval=tight) is Word.EQUIVALENT

    @pytest.mark.parametrize(("tasks", "word"), [(6, Word.EQUIVALENT), (5, Word.INCONCLUSIVE)])
    def test_ceiling_and_floor_are_never_equivalent(self, tasks: int, word: Word) -> None:
        """S46 S52: tasks that all pass, or none, cannot tell arms apart; six that can are needed."""
        found = conclude(
            replace(STRONG, **self.NULL, narrow_interval=self.INSIDE, informative_tasks=tasks)  # type: ignore[arg-type]
        )
        assert found.word is word
        assert found.reasons == (() if word is Word.EQUIVALENT else (Reason.UNINFORMATIVE_TASKS,))


class TestPower:
    @pytest.mark.parametrize(("tasks", "word"), [(5, Word.UNDERPOWERED), (6, Word.INCONCLUSIVE)])
    def test_too_few_tasks_to_reject_at_all(self, tasks: int, word: Word) -> None:
        """S52: 2 / 32 is above 0.05, 2 / 64 is not."""
        assert said(p=0.5, tasks=tasks) is word

    def test_even_odds_are_enough(self) -> None:
        """S52: planned power of exactly one half."""
        assert said(p=0.5, planned_power=0.5) is Word.INCONCLUSIVE
        assert said(p=0.5, planned_power=0.4999) is Word.UNDERPOWERED

    def test_no_task_at_all(self) -> None:
        """Unknown is its own word, and no zero."""
        found = conclude(replace(STRONG, effect=None, p=None, interval=None, narrow_interval=None, tasks=0))
        assert (found.word, found.reasons) == (Word.UNDERPOWERED, (Reason.NO_TASKS,))

    def test_no_interval_is_no_direction(self) -> None:
        assert said(interval=None) is Word.INCONCLUSIVE
