from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skill_effectiveness.calibration.intervals import wilson
from skill_effectiveness.calibration.metrics import reviewer_metrics
from skill_effectiveness.calibration.orientation import arrange, draw
from skill_effectiveness.calibration.position import position_sheet
from skill_effectiveness.protocol.words import Verdict
from tests.support.verdicts import VERDICTS, Seen, bank_with, seen, verdicts

BANK = bank_with("AAAAAAAA BBBBBBBB TTTTTTTT")
ALWAYS_A = (Verdict.A_WIN,) * 24
KEY = bytes(range(32))


class TestAlwaysTheFirst:
    def test_both_orientations_of_every_case_score_as_chance(self) -> None:
        """R5: `A win` throughout is right in a third of both samples, flips everywhere, first seat 1."""
        plain = arrange(BANK, [(case_id, False) for case_id in BANK.case_ids])
        swapped = arrange(BANK, [(case_id, True) for case_id in BANK.case_ids])
        found = reviewer_metrics(BANK.truth, [plain.turn_back(ALWAYS_A), swapped.turn_back(ALWAYS_A)])
        assert found.accuracy == Fraction(1, 3)
        assert found.self_consistency == 0
        sheet = position_sheet([seen(BANK, [0] * 24, ALWAYS_A), seen(BANK, [1] * 24, ALWAYS_A)])
        assert (sheet.first_seat.value, sheet.flip_rate, sheet.cases_covered) == (1.0, Fraction(1), 24)

    def test_drawn_samples_score_as_chance(self) -> None:
        """R5: over 200 drawn samples a third is right within four standard errors; the first seat is 1."""
        drawn = [draw(BANK, f"s{number}", KEY) for number in range(200)]
        found = reviewer_metrics(BANK.truth, [presentation.turn_back(ALWAYS_A) for presentation in drawn])
        # 16 decided cases of 24 are right with probability one half, the ties never.
        assert abs(float(found.accuracy) - 1 / 3) < 4 * (16 * 0.25 / 24**2 / 200) ** 0.5
        sheet = position_sheet(
            [
                [Seen(case.case_id, int(case.swapped), Verdict.A_WIN) for case in presentation.shown]
                for presentation in drawn
            ]
        )
        assert sheet.first_seat.value == 1
        assert sheet.cases_covered == 24


class TestFlips:
    def test_counted_by_hand(self) -> None:
        """Four cases: same both ways, flipped, tie against a win, and one seen in one orientation only."""
        bank = bank_with("ABTA")
        first = seen(bank, [0, 0, 0, 0], verdicts("AATB"))
        second = seen(bank, [1, 1, 1, 0], verdicts("BAAB"))
        sheet = position_sheet([first, second])
        assert (sheet.flips.part, sheet.cases_covered) == (2, 3)
        assert sheet.flip_rate == Fraction(2, 3)
        assert sheet.flips_interval == wilson(2, 3)
        # Decided: A A B and B A A B; for the first seat: A A and A A.
        assert (sheet.first_seat.part, sheet.first_seat.whole) == (4, 7)

    def test_a_majority_is_taken_per_orientation(self) -> None:
        bank = bank_with("A")
        samples = [seen(bank, [0], verdicts(letter)) for letter in "AAB"]
        samples += [seen(bank, [1], verdicts(letter)) for letter in "BBA"]
        assert position_sheet(samples).flips.part == 0

    @pytest.mark.parametrize(
        ("plain", "swapped", "flips"),
        [("AB", "AB", 0), ("AB", "BB", 1), ("AT", "T", 1)],
        ids=["two modal ties", "modal tie and majority", "modal tie and tie"],
    )
    def test_modal_ties(self, plain: str, swapped: str, flips: int) -> None:
        bank = bank_with("A")
        samples = [seen(bank, [0], verdicts(letter)) for letter in plain]
        samples += [seen(bank, [1], verdicts(letter)) for letter in swapped]
        assert position_sheet(samples).flips.part == flips

    def test_nothing_covered_is_unknown(self) -> None:
        bank = bank_with("AT")
        sheet = position_sheet([seen(bank, [0, 1], verdicts("TT"))])
        assert (sheet.flip_rate, sheet.flips.value, sheet.flips_interval) == (None, None, None)
        assert sheet.first_seat.value is None

    def test_no_samples(self) -> None:
        assert position_sheet([]).cases_covered == 0


class TestProperties:
    @given(st.lists(st.lists(st.tuples(st.integers(0, 1), VERDICTS), min_size=5, max_size=5), max_size=5))
    def test_who_judges_the_text_never_flips(self, samples: list[list[tuple[int, Verdict]]]) -> None:
        bank = bank_with("ABTAB")
        told = [
            [
                Seen(case_id, orientation, truth.turned() if orientation else truth)
                for case_id, truth, (orientation, _) in zip(bank.case_ids, bank.truth, sample, strict=True)
            ]
            for sample in samples
        ]
        assert position_sheet(told).flips.part == 0

    @given(st.lists(st.lists(st.tuples(st.integers(0, 1), VERDICTS), min_size=5, max_size=5), max_size=5))
    def test_order_of_samples_changes_nothing(self, samples: list[list[tuple[int, Verdict]]]) -> None:
        bank = bank_with("ABTAB")
        told = [[Seen(i, *row) for i, row in zip(bank.case_ids, sample, strict=True)] for sample in samples]
        assert position_sheet(told) == position_sheet([sample[::-1] for sample in told[::-1]])


class TestRefusals:
    def test_a_case_twice_in_one_sample(self) -> None:
        with pytest.raises(ValueError, match="once"):
            position_sheet([[Seen("plan-01", 0, Verdict.TIE), Seen("plan-01", 1, Verdict.TIE)]])

    @pytest.mark.parametrize("orientation", [-1, 2])
    def test_an_orientation_that_is_none(self, orientation: int) -> None:
        with pytest.raises(ValueError, match="orientation"):
            position_sheet([[Seen("plan-01", orientation, Verdict.TIE)]])
