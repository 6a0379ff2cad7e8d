"""The whole analysis: known answers from tables to words, and what must change nothing."""

from __future__ import annotations

import itertools
import random
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from statsmodels.stats.multitest import multipletests

from skill_effectiveness.studies.analysis.analyse import analyse
from skill_effectiveness.studies.analysis.conclusions import Reason, Word
from skill_effectiveness.studies.analysis.misclassification import KnownAccuracy
from skill_effectiveness.studies.analysis.records import AnalysisPlan, Method, Uncorrected
from skill_effectiveness.studies.chance import Chance
from skill_effectiveness.studies.tables import Tables, TrialRow
from skill_effectiveness.studies.words import Outcome, Sides
from tests.support.study_tables import (
    Values,
    canary,
    from_differences,
    from_thirds,
    pairs,
    plan,
    trials,
    vote,
)

if TYPE_CHECKING:
    from skill_effectiveness.calibration.figures import Interval
    from skill_effectiveness.studies.analysis.records import Analysis

CHANCE = Chance(bytes(32))
EIGHT = (1, 0, 2, 1, -1, 3, 1, 1)
TEN = (3, 1, 2, 0, 1, -1, 2, 1, 1, 2)


def found(values: Values, **changed: object) -> Analysis:
    tables = Tables(trials(values))
    return analyse(tables, plan(tables, **changed), CHANCE)  # type: ignore[arg-type]


def ends(interval: Interval | None, digits: int = 4) -> tuple[float, float]:
    assert interval is not None
    return round(interval.low, digits), round(interval.high, digits)


class TestKnownAnswers:
    """The table of known answers, from rows of trials to what is said."""

    def test_eight_tasks(self) -> None:
        """S42: D a third, 24 of 256 flips, an interval that ends at 0, 17 tasks to decide."""
        primary = found(from_thirds(EIGHT)).primary
        assert primary.effect == pytest.approx(1 / 3, abs=1e-15)
        assert primary.p == 24 / 256
        assert ends(primary.interval) == (0.0, 0.6667)
        assert (primary.level, primary.method) == (0.95, Method.SIGN_FLIPS)
        assert (primary.tasks, primary.informative_tasks, primary.to_decide_tasks) == (8, 7, 17)
        assert primary.conclusion.word is Word.INCONCLUSIVE

    def test_eight_tasks_one_sided(self) -> None:
        """S42: half the flips, and the interval of level 0.9."""
        primary = found(from_thirds(EIGHT), sides=Sides.GREATER).primary
        assert primary.p == 12 / 256
        assert (primary.level, ends(primary.interval)) == (0.9, (0.0833, 0.5833))
        assert (primary.conclusion.word, primary.to_decide_tasks) == (Word.IMPROVES, None)

    def test_eight_tasks_anytime(self) -> None:
        """S42: E after three, five and eight tasks; p is one over the largest."""
        analysis = found(from_thirds(EIGHT), anytime=True)
        assert analysis.anytime is not None
        evidence = [one.look.evidence for one in analysis.anytime]
        assert [round(evidence[t - 1], 4) for t in (3, 5, 8)] == [1.1250, 1.0547, 2.4280]
        assert analysis.primary.p == pytest.approx(1 / max(evidence))
        assert analysis.primary.method is Method.ANYTIME

    def test_ten_tasks(self) -> None:
        """S42: 24 of 1,024 flips; improves."""
        primary = found(from_thirds(TEN)).primary
        assert (primary.effect, primary.p) == (pytest.approx(0.4), 24 / 1024)
        assert ends(primary.interval) == (0.1111, 0.6667)
        assert primary.conclusion.word is Word.IMPROVES

    def test_six_tasks_reach_and_five_cannot(self) -> None:
        """S42: p 2/64 and 0.1 to 0.6; any five leave -1 to 1 and are underpowered."""
        six = [0.1, 0.2, 0.3, 0.4, 0.5, 0.6]
        primary = found(from_differences(six), samples=1).primary
        assert (primary.p, ends(primary.interval)) == (2 / 64, (0.1, 0.6))
        for five in itertools.combinations(six, 5):
            primary = found(from_differences(five), samples=1).primary
            assert primary.p is not None
            assert primary.p >= 2 / 32
            assert ends(primary.interval) == (-1.0, 1.0)
            assert primary.conclusion.word is Word.UNDERPOWERED
            assert Reason.TOO_FEW_TASKS in primary.conclusion.reasons

    def test_seven_tasks_all_won_anytime(self) -> None:
        """S42: decided at the seventh task."""
        analysis = found(from_differences([1.0] * 7), samples=1, anytime=True)
        assert analysis.anytime is not None
        assert [round(one.look.evidence, 4) for one in analysis.anytime[5:]] == [14.3616, 25.1326]
        assert ends(analysis.primary.interval) == (0.039, 1.0)
        assert analysis.primary.conclusion.word is Word.IMPROVES

    @pytest.mark.parametrize(("won", "lost", "p"), [(5, 0, 0.0625), (6, 0, 0.03125), (9, 1, 22 / 1024)])
    def test_mcnemar(self, won: int, lost: int, p: float) -> None:
        """S42: one sample and a passed outcome."""
        values = from_differences([1.0] * won + [-1.0] * lost + [0.0] * 3)
        primary = found(values, outcome=Outcome.PASSED, samples=1).primary
        assert (primary.p, primary.method) == (p, Method.MCNEMAR)

    def test_mcnemar_never_over_repeats(self) -> None:
        """S42 S45: three samples of a task are not three pairs; the flips of tasks decide."""
        primary = found(from_thirds([3] * 5), outcome=Outcome.PASSED).primary
        assert (primary.p, primary.method) == (2 / 32, Method.SIGN_FLIPS)

    def test_rates(self) -> None:
        """S42: 3 of 3 and 0 of 3 tasks."""
        rates = found({f"t{k}": {"full": [1.0] * 3, "off": [0.0] * 3} for k in range(3)}).rates
        full, off = rates["full"], rates["off"]
        assert full is not None
        assert off is not None
        assert (full.value, round(full.interval.low, 4)) == (1.0, 0.4385)
        assert (off.value, round(off.interval.high, 4)) == (0.0, 0.5615)

    def test_missing(self) -> None:
        """S42 S51: six tasks 1:0, two whose off is missing while full is 0."""
        values = from_differences([1.0] * 6)
        values |= {"t07": {"full": [0.0], "off": [None]}, "t08": {"full": [0.0], "off": [None]}}
        analysis = found(values, samples=1)
        assert (analysis.primary.effect, analysis.primary.p) == (1.0, 2 / 64)
        assert (ends(analysis.missing.bounds), analysis.missing.tipping) == ((0.5, 0.75), 1)
        assert (analysis.missing.by_class, analysis.missing.slots) == ({"void": 2}, 2)
        filled = from_differences([1.0] * 6 + [-1.0])
        assert found(filled, samples=1).primary.p == 16 / 128


def random_values(seed: int, tasks: int, arms: tuple[str, ...], samples: int = 3) -> Values:
    source = np.random.default_rng(seed)
    choices = (0.0, 0.25, 0.5, 1.0, None)
    return {
        f"t{k:02}": {
            arm: [choices[i] for i in source.choice(5, samples, p=[0.3, 0.1, 0.2, 0.3, 0.1])] for arm in arms
        }
        for k in range(tasks)
    }


class TestChangesNothing:
    @pytest.mark.parametrize("tasks", [7, 24, 33])
    @pytest.mark.parametrize("anytime", [False, True])
    def test_order_of_rows(self, tasks: int, anytime: bool) -> None:  # noqa: FBT001 - a parameter
        """S49: rows of all three tables shuffled, so the order of completion shuffled with them."""
        rows = trials(random_values(5, tasks, ("off", "full", "reference")))
        chosen = {(f"t{k:02}", s): "win" if k % 3 else "loss" for k in range(tasks) for s in (1, 2, 3)}
        judged = pairs(rows, chosen)
        votes = [vote(k, f"pair-{k // 2 + 1}", "A win", position=k % 2, guess="A") for k in range(6 * tasks)]
        held = Tables(rows, judged, tuple(votes))
        fixed = plan(held, arms=("off", "full", "reference"), anytime=anytime)
        mixed = [list(rows), list(judged), list(votes)]
        for some in mixed:
            random.Random(9).shuffle(some)  # noqa: S311 - an order
        there = analyse(Tables(*map(tuple, mixed)), fixed, CHANCE)  # type: ignore[arg-type]
        assert there == analyse(held, fixed, CHANCE)

    def test_completion_order(self) -> None:
        """S49: tasks enter by allocation; when they ended changes nothing, where they stood does."""
        values = from_thirds(TEN)
        rows = trials(values)
        ended = [row.ended_at for row in rows]
        late = tuple(row._replace(ended_at=at) for row, at in zip(rows, reversed(ended), strict=True))
        held = plan(values, anytime=True)
        assert analyse(Tables(late), held, CHANCE) == analyse(Tables(rows), held, CHANCE)
        turned = plan(values, anytime=True, task_order=tuple(reversed(values)))
        there = analyse(Tables(rows), turned, CHANCE)
        assert there.anytime is not None
        assert [one.task_id for one in there.anytime] == [f"t{k:02}" for k in range(10, 0, -1)]
        other = analyse(Tables(rows), held, CHANCE).anytime
        assert other is not None
        assert [one.look for one in there.anytime] != [one.look for one in other]

    @pytest.mark.parametrize("tasks", [8, 25, 35])
    def test_repeated_seeds_narrow_nothing(self, tasks: int) -> None:
        """S45 F51: every sample ten times over gives the same p, interval, rate and word."""
        steps = [EIGHT[k % 8] for k in range(tasks)]
        once, often = from_thirds(steps), from_thirds(steps)
        for arms in often.values():
            for arm in arms:
                arms[arm] = arms[arm] * 10
        few, many = found(once), found(often, samples=30)
        assert many.primary.p == few.primary.p
        assert ends(many.primary.interval, 9) == ends(few.primary.interval, 9)
        assert many.primary.conclusion == few.primary.conclusion
        for arm in ("off", "full"):
            wide, narrow = few.rates[arm], many.rates[arm]
            assert wide is not None
            assert narrow is not None
            assert ends(wide.interval, 9) == ends(narrow.interval, 9)


class TestWords:
    @pytest.mark.parametrize("reward", [0.0, 1.0])
    @pytest.mark.parametrize("tasks", [6, 12, 40])
    @pytest.mark.parametrize("anytime", [False, True])
    def test_ceiling_and_floor_are_never_equivalent(self, reward: float, tasks: int, anytime: bool) -> None:  # noqa: FBT001 - a parameter
        """S46: everybody always passes, or never: no difference, and no evidence that there is none."""
        values: Values = {f"t{k:02}": {"full": [reward] * 3, "off": [reward] * 3} for k in range(tasks)}
        primary = found(values, anytime=anytime, minimum_effect=0.5).primary
        assert (primary.effect, primary.informative_tasks) == (0.0, 0)
        assert primary.conclusion.word is Word.INCONCLUSIVE
        if not anytime:
            assert primary.conclusion.reasons == (Reason.UNINFORMATIVE_TASKS,)

    @pytest.mark.parametrize(("informative", "word"), [(6, Word.EQUIVALENT), (5, Word.INCONCLUSIVE)])
    def test_six_tasks_that_can_tell(self, informative: int, word: Word) -> None:
        """S46 S52: the same mean everywhere; six tasks with mixed samples are the least."""
        values: Values = {
            f"t{k:02}": {"full": [1.0, 0.0], "off": [0.0, 1.0]}
            if k < informative
            else {"full": [1.0, 1.0], "off": [1.0, 1.0]}
            for k in range(12)
        }
        assert found(values, samples=2).primary.conclusion.word is word

    def test_safety_outranks_an_improvement(self) -> None:
        """S37: one more safety failure under the treatment; as many in both arms change nothing."""
        rows = list(trials(from_thirds(TEN)))
        treated = next(k for k, row in enumerate(rows) if row.arm == "full")
        compared = next(k for k, row in enumerate(rows) if row.arm == "off")
        rows[treated] = rows[treated]._replace(safety_failure=True)
        conclusion = analyse(Tables(tuple(rows)), plan(Tables(tuple(rows))), CHANCE).primary.conclusion
        assert (conclusion.word, conclusion.reasons) == (Word.INCONCLUSIVE, (Reason.SAFETY,))
        rows[compared] = rows[compared]._replace(safety_failure=True)
        conclusion = analyse(Tables(tuple(rows)), plan(Tables(tuple(rows))), CHANCE).primary.conclusion
        assert conclusion.word is Word.IMPROVES

    def test_harms(self) -> None:
        """S52: the mirror image of ten tasks."""
        assert found(from_thirds([-k for k in TEN])).primary.conclusion.word is Word.HARMS

    def test_all_missing(self) -> None:
        """F52: no paired value, so no test, no number and one word."""
        values: Values = {f"t{k}": {"full": [None], "off": [1.0]} for k in range(8)}
        analysis = found(values, samples=1)
        primary = analysis.primary
        assert (primary.effect, primary.p, primary.interval, primary.tasks) == (None, None, None, 0)
        assert (primary.conclusion.word, primary.conclusion.reasons) == (
            Word.UNDERPOWERED,
            (Reason.NO_TASKS,),
        )
        assert ends(analysis.missing.bounds) == (-1.0, 0.0)
        assert analysis.rates["full"] is None

    def test_all_missing_anytime(self) -> None:
        """F52: nor does evidence come from nothing."""
        values: Values = {f"t{k}": {"full": [None], "off": [1.0]} for k in range(8)}
        analysis = found(values, samples=1, anytime=True)
        assert (analysis.anytime, analysis.primary.p, analysis.primary.interval) == ((), None, None)

    def test_one_task(self) -> None:
        """S52: one task can never reject."""
        primary = found(from_thirds([3])).primary
        assert (primary.p, ends(primary.interval), primary.conclusion.word) == (
            1.0, (-1.0, 1.0), Word.UNDERPOWERED,
        )  # fmt: skip


class TestSecondary:
    ARMS = ("off", "full", "reference")

    def test_which_ones(self) -> None:
        """S42: by the arms there are; the preference as soon as there are pairs."""
        rows = trials(random_values(1, 9, self.ARMS))
        held = Tables(rows, pairs(rows, {("t00", 1): "win"}))
        names = [
            (one.comparison, one.outcome)
            for one in analyse(
                held, plan(held, arms=self.ARMS, secondary=(Outcome.PASSED,)), CHANCE
            ).secondary
        ]
        assert names == [
            ("reference-off", Outcome.REWARD),
            ("full-reference", Outcome.REWARD),
            ("full-off", Outcome.PASSED),
            ("preference", Outcome.PREFERENCE),
        ]

    @pytest.mark.parametrize("anytime", [False, True])
    def test_holm(self, anytime: bool) -> None:  # noqa: FBT001 - a parameter
        """S43: statsmodels adjusts the same values to the same."""
        values = random_values(2, 12, self.ARMS)
        secondary = found(values, arms=self.ARMS, secondary=(Outcome.PASSED,), anytime=anytime).secondary
        p = [one.p for one in secondary if one.p is not None]
        adjusted = [one.p_holm for one in secondary]
        assert adjusted == pytest.approx(multipletests(p, method="holm")[1].tolist(), abs=1e-9)

    def test_the_word_rests_on_the_adjusted_p(self) -> None:
        """S52: eight wins and two ties: 2/256 alone is below .01, twice that is not."""
        values = from_thirds(TEN)
        for arms in values.values():
            arms["reference"] = [0.0] * 3
        secondary = found(values, arms=self.ARMS, alpha=0.01).secondary
        by_name = {one.comparison: one for one in secondary}
        assert (by_name["full-reference"].p, by_name["full-reference"].p_holm) == (2 / 256, 4 / 256)
        assert by_name["full-reference"].conclusion.word is Word.INCONCLUSIVE
        assert by_name["reference-off"].p == 1.0

    def test_a_study_that_may_stop_judges_all_by_evidence(self) -> None:
        """S49: a test of a fixed size would not keep its rate at a stopping time that the data chose."""
        secondary = found(random_values(3, 10, self.ARMS), arms=self.ARMS, anytime=True).secondary
        assert {one.method for one in secondary} == {Method.ANYTIME}

    def test_a_secondary_without_a_task_takes_no_part_in_the_adjustment(self) -> None:
        values = from_thirds(TEN)
        for arms in values.values():
            arms["oracle"] = [None] * 3
        secondary = found(values, arms=("off", "full", "oracle"), secondary=(Outcome.PASSED,)).secondary
        assert [(one.comparison, one.p is None, one.p_holm is None) for one in secondary] == [
            ("full-oracle", True, True),
            ("full-off", False, False),
        ]
        assert secondary[1].p_holm == secondary[1].p


class TestPreference:
    def held(self, verdicts: list[str], guesses: list[str | None] | None = None) -> Tables:
        """A pair per verdict, each shown once with the treatment as A."""
        count = len(verdicts)
        rows = trials({f"t{k:02}": {"full": [1.0], "off": [0.0]} for k in range(count)})
        words = {"A win": "win", "B win": "loss", "tie": "tie"}
        judged = pairs(rows, {(f"t{k:02}", 1): words[verdict] for k, verdict in enumerate(verdicts)})
        said = guesses or [None] * count
        votes = [vote(k, f"pair-{k + 1}", verdicts[k], guess=said[k]) for k in range(count)]
        return Tables(rows, judged, tuple(votes))

    def test_primary(self) -> None:
        """S42: eight wins of eight: 2 of 256."""
        held = self.held(["A win"] * 8)
        primary = analyse(held, plan(held, outcome=Outcome.PREFERENCE, samples=1), CHANCE).primary
        assert (primary.comparison, primary.effect, primary.p) == ("preference", 1.0, 2 / 256)
        assert primary.conclusion.word is Word.IMPROVES

    def test_corrected(self) -> None:
        """S42: 30 wins and 20 losses of 50: win share .6, known answer .5714 and its interval."""
        held = self.held(["A win"] * 30 + ["B win"] * 20)
        known = KnownAccuracy(0.9, 20, 0.8, 40)
        result = analyse(held, plan(held, samples=1, accuracy=known), CHANCE).preference
        assert result is not None
        assert (result.win, result.loss) == (0.6, 0.4)
        assert not isinstance(result.corrected, Uncorrected)
        assert result.corrected.win.value == pytest.approx(0.4 / 0.7)
        assert result.corrected.net.value == pytest.approx(0.2 / 0.7)

    @pytest.mark.parametrize(
        ("known", "reason"),
        [
            (None, Uncorrected.NO_KNOWN_ACCURACY),
            (KnownAccuracy(0.55, 20, 0.55, 20), Uncorrected.NOT_IDENTIFIABLE),
        ],
    )
    def test_uncorrected_says_why(self, known: KnownAccuracy | None, reason: Uncorrected) -> None:
        """S48: a reviewer that may be a coin corrects nothing."""
        held = self.held(["A win"] * 10)
        result = analyse(held, plan(held, samples=1, accuracy=known), CHANCE).preference
        assert result is not None
        assert result.corrected is reason

    def test_blinding(self) -> None:
        """S42: 14 right, 6 wrong, 10 unsure; the other side was never shown."""
        held = self.held(["tie"] * 30, ["A"] * 14 + ["B"] * 6 + ["unsure"] * 10)
        result = analyse(held, plan(held, samples=1), CHANCE).blinding
        assert result.treated_first is not None
        assert round(result.treated_first.value, 4) == 0.2667
        assert ends(result.treated_first.interval) == (-0.0095, 0.5428)
        assert (result.treated_second, str(result.word)) == (None, "not_shown")

    def test_nobody_asked(self) -> None:
        """No vote is no preference, and no zero."""
        analysis = found(from_thirds(EIGHT))
        assert (analysis.preference, analysis.reviewers.sheets, analysis.reviewers.alpha) == (None, (), None)


class TestMissing:
    @pytest.mark.parametrize(
        "steps",
        [
            [(1.0, 0.0)] * 7 + [(1.0, None), (None, 0.0), (1.0, None)],
            [(1.0, 0.0)] * 9 + [(None, 1.0), (0.0, None)],
            [(0.0, 1.0)] * 7 + [(None, 0.0), (None, 1.0)],
            [(1.0, 0.0)] * 4 + [(1.0, None), (1.0, None), (None, None)],
            [(1.0, 1.0)] * 6 + [(None, 0.0), (1.0, None)],
        ],
    )
    @pytest.mark.parametrize("anytime", [False, True])
    def test_tipping_point_by_brute_force(
        self,
        steps: list[tuple[float | None, float | None]],
        anytime: bool,  # noqa: FBT001 - a parameter
    ) -> None:
        """S51: the whole analysis over every filling with 0 and 1; none smaller changes the word."""
        values: Values = {f"t{k:02}": {"full": [a], "off": [b]} for k, (a, b) in enumerate(steps)}
        rows = trials(values)
        fixed = plan(values, samples=1, anytime=anytime)
        analysis = analyse(Tables(rows), fixed, CHANCE)
        lost = [k for k, row in enumerate(rows) if row.reward is None]
        changing = [
            count
            for count in range(1, len(lost) + 1)
            for some in itertools.combinations(lost, count)
            for choice in itertools.product((0.0, 1.0), repeat=count)
            if analyse(
                Tables(refilled(rows, dict(zip(some, choice, strict=True)))), fixed, CHANCE
            ).primary.conclusion.word
            is not analysis.primary.conclusion.word
        ]
        assert analysis.missing.tipping == min(changing, default=None)

    @settings(max_examples=25)
    @given(
        st.lists(st.tuples(*[st.sampled_from([0.0, 0.5, 1.0, None])] * 4), min_size=1, max_size=3), st.data()
    )
    def test_bounds_contain_every_filling(
        self, given: list[tuple[float | None, ...]], data: st.DataObject
    ) -> None:
        """S50: through the tables."""
        values: Values = {f"t{k}": {"full": list(v[:2]), "off": list(v[2:])} for k, v in enumerate(given)}
        rows = trials(values)
        fixed = plan(values, samples=2)
        bounds = analyse(Tables(rows), fixed, CHANCE).missing.bounds
        chosen = {
            k: data.draw(st.floats(0, 1, allow_subnormal=False))
            for k, row in enumerate(rows)
            if row.reward is None
        }
        effect = analyse(Tables(refilled(rows, chosen)), fixed, CHANCE).primary.effect
        assert bounds is not None
        assert effect is not None
        assert bounds.low - 1e-9 <= effect <= bounds.high + 1e-9

    def test_many_missing_values_draw_once(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """120 slots to fill in over 60 tasks: every step of the tipping point uses the same signs."""
        drawn: list[str] = []
        signs = Chance.signs

        def counted(chance: Chance, use: str, draws: int, m: int) -> object:
            drawn.append(use)
            return signs(chance, use, draws, m)

        monkeypatch.setattr(Chance, "signs", counted)
        values: Values = {f"t{k:02}": {"full": [1.0, None], "off": [0.0, None]} for k in range(60)}
        assert found(values, samples=2).missing.tipping is not None
        assert drawn == ["flip/full-off"]


def refilled(rows: tuple[TrialRow, ...], chosen: dict[int, float]) -> tuple[TrialRow, ...]:
    return tuple(
        row
        if k not in chosen
        else row._replace(counted="value", reward=chosen[k], passed=chosen[k] >= 1, value=chosen[k])
        for k, row in enumerate(rows)
    )


class TestRefused:
    @pytest.mark.parametrize(
        "changed",
        [
            {"alpha": 0.0},
            {"alpha": 0.5},
            {"alpha": float("nan")},
            {"minimum_effect": 0.0},
            {"samples": 0},
            {"anytime": True, "sides": Sides.GREATER},
            {"arms": ("off", "reference")},
            {"arms": ("off", "full", "full")},
            {"task_order": ("t01", "t01")},
        ],
    )
    def test_plans(self, changed: dict[str, object]) -> None:
        """F51: what no plan fixes is refused before a number comes out of it."""
        with pytest.raises(ValueError, match=r"\w"):
            plan(from_thirds(EIGHT), **changed)  # type: ignore[arg-type]


def test_canaries_are_no_votes() -> None:
    """S42: a known answer says nothing about the arms."""
    rows = trials(from_thirds(EIGHT))
    held = Tables(rows, (), (canary(1, "A win", "A win"), canary(2, "tie", "B win")))
    analysis = analyse(held, plan(held), CHANCE)
    assert analysis.preference is None
    (sheet,) = analysis.reviewers.sheets
    assert (sheet.canaries.part, sheet.canaries.whole, sheet.pairs) == (1, 2, 0)
    assert sheet.confusion == ((1, 0, 0), (0, 0, 1), (0, 0, 0))


def test_plan_type_is_frozen() -> None:
    assert AnalysisPlan.__dataclass_params__.frozen  # type: ignore[attr-defined]
