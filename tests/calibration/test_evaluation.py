from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skill_effectiveness.calibration.evaluation import (
    CalibrationEvaluation,
    FailureCode,
    ReviewerRuns,
    Status,
    evaluate,
)
from skill_effectiveness.evidence.fsops import RealFs
from skill_effectiveness.protocol.gates import load_gates
from tests.support.verdicts import Judged, bank_with, run, verdicts

if TYPE_CHECKING:
    from collections.abc import Sequence

    from skill_effectiveness.protocol.cases import Bank

GATES = load_gates(RealFs()).thresholds
BANK = bank_with("AAAAAAAA BBBBBBBB TTTTTTTT")
RIGHT = "AAAAAAAA BBBBBBBB TTTTTTTT"


def family(name: str, bank: Bank, *runs: str) -> ReviewerRuns:
    return ReviewerRuns(name, [run(bank, verdicts(letters)) for letters in runs])


def codes(evaluation: CalibrationEvaluation) -> list[FailureCode]:
    return [failure.code for failure in evaluation.failures]


def test_the_frozen_gates_are_those_of_section_8() -> None:
    gates = (
        GATES.reviewer_self_consistency_min,
        GATES.reviewer_known_answer_accuracy_min,
        GATES.reviewer_pairwise_agreement_min,
        GATES.reviewer_pairwise_kappa_min,
    )
    assert gates == (0.8, 0.8, 0.8, 0.6)


class TestOneFamily:
    def test_all_right_passes(self) -> None:
        found = evaluate(BANK, [family("x", BANK, RIGHT, RIGHT)], GATES)
        assert found.model_dump(mode="json") == {
            "valid": True,
            "status": "pass",
            "failures": [],
            "reviewer_families": ["x"],
            "reviewer_metrics": {
                "x": {
                    "case_count": 24,
                    "repeat_count": 2,
                    "known_answer_accuracy": 1.0,
                    "self_consistency": 1.0,
                }
            },
            "reviewer_statuses": {"x": "pass"},
            "pairwise_metrics": [],
            "mutual_status": "not_applicable_single_reviewer",
        }

    def test_order_within_a_run_does_not_matter(self) -> None:
        straight = run(BANK, verdicts(RIGHT))
        assert evaluate(BANK, [ReviewerRuns("x", [straight, straight[::-1]])], GATES).status is Status.PASS

    @pytest.mark.parametrize(("right", "status"), [(20, Status.PASS), (19, Status.FAIL)])
    def test_accuracy_at_its_threshold_passes(self, right: int, status: Status) -> None:
        """R24: 20 of 25 is 0.8 exactly and passes, 19 of 25 fails."""
        bank = bank_with("A" * 25)
        letters = "A" * right + "B" * (25 - right)
        found = evaluate(bank, [family("x", bank, letters, letters)], GATES)
        assert found.status is found.reviewer_statuses["x"] is status
        assert found.valid
        assert codes(found) == ([] if right == 20 else [FailureCode.KNOWN_ANSWER_ACCURACY_BELOW_GATE])

    @pytest.mark.parametrize(("equal", "status"), [(20, Status.PASS), (19, Status.FAIL)])
    def test_consistency_at_its_threshold_passes(self, equal: int, status: Status) -> None:
        bank = bank_with("A" * 25)
        found = evaluate(bank, [family("x", bank, "A" * 25, "A" * equal + "B" * (25 - equal))], GATES)
        assert found.status is status
        assert codes(found) == ([] if equal == 20 else [FailureCode.SELF_CONSISTENCY_BELOW_GATE])

    def test_a_modal_tie_is_an_inconsistent_case_and_no_invalid_run(self) -> None:
        """R21: one case of 24 with two verdicts changes self-consistency by 1/24 and nothing else fails."""
        found = evaluate(BANK, [family("x", BANK, RIGHT, "B" + RIGHT[1:])], GATES)
        assert found.status is Status.PASS
        assert found.reviewer_metrics["x"].self_consistency == 23 / 24


class TestSeveralFamilies:
    def evaluate_pair(self, bank: Bank, x: str, y: str) -> CalibrationEvaluation:
        return evaluate(bank, [family("x", bank, x, x), family("y", bank, y, y)], GATES)

    def test_kappa_of_three_fifths_passes(self) -> None:
        """R24: agreement 16/20 and chance 1/2 give kappa 0.6 exactly, at both gates."""
        bank = bank_with("A" * 10 + "B" * 10)
        found = self.evaluate_pair(bank, "B" + "A" * 9 + "A" + "B" * 9, "AB" + "A" * 8 + "BA" + "B" * 8)
        (pair,) = found.pairwise_metrics
        assert (pair.agreement, pair.kappa, pair.status) == (0.8, 0.6, Status.PASS)
        assert (found.status, found.mutual_status) == (Status.PASS, Status.PASS)

    def test_kappa_of_59_hundredths_fails(self) -> None:
        """R24: the same agreement with 23 and 17 of 40 has chance 818/1600, so kappa is 462/782 = 0.5908."""
        bank = bank_with("A" * 23 + "B" * 17)
        x = "BB" + "A" * 21 + "AA" + "B" * 15
        y = "AABB" + "A" * 19 + "BBAA" + "B" * 13
        found = self.evaluate_pair(bank, x, y)
        (pair,) = found.pairwise_metrics
        assert pair.agreement == 0.8
        assert pair.kappa == pytest.approx(462 / 782)
        assert round(pair.kappa, 2) == 0.59
        assert codes(found) == [FailureCode.KAPPA_BELOW_GATE]
        assert found.failures[0].families == ("x", "y")
        assert (found.status, found.mutual_status) == (Status.FAIL, Status.FAIL)
        assert set(found.reviewer_statuses.values()) == {Status.PASS}

    def test_kappa_that_only_rounds_to_the_gate_fails(self) -> None:
        """R24: 0.596 would print as 0.60; with 11 and 9 of 20 it is 118/198."""
        bank = bank_with("A" * 11 + "B" * 9)
        found = self.evaluate_pair(bank, "B" + "A" * 10 + "A" + "B" * 8, "AB" + "A" * 9 + "BA" + "B" * 7)
        (pair,) = found.pairwise_metrics
        assert pair.kappa == pytest.approx(118 / 198)
        assert found.mutual_status is Status.FAIL

    def test_agreement_below_its_gate_fails(self) -> None:
        """R24: both families pass alone and disagree on 5 of 24."""
        x = "BBBAAAAA BBBBBBBB TTTTTTTT"
        y = "AAAAAABB BBBBBBBB TTTTTTTT"
        found = self.evaluate_pair(BANK, x, y)
        assert codes(found) == [FailureCode.AGREEMENT_BELOW_GATE]
        assert found.pairwise_metrics[0].agreement == 19 / 24

    def test_every_pair_is_gated(self) -> None:
        bank = BANK
        bad = "B" + RIGHT[1:]
        found = evaluate(bank, [family(name, bank, RIGHT, bad) for name in "xyz"], GATES)
        assert [pair.families for pair in found.pairwise_metrics] == [("x", "y"), ("x", "z"), ("y", "z")]
        # A case without consensus agrees with nothing, and the three share it.
        assert {pair.agreement for pair in found.pairwise_metrics} == {23 / 24}

    def test_a_failing_family_fails_the_whole(self) -> None:
        """Two families that agree on being wrong pass between each other and not alone."""
        wrong = "TTTTTTTT BBBBBBBB TTTTTTTT"
        found = self.evaluate_pair(BANK, wrong, wrong)
        assert (found.mutual_status, found.status) == (Status.PASS, Status.FAIL)
        assert codes(found) == [FailureCode.KNOWN_ANSWER_ACCURACY_BELOW_GATE] * 2


class TestInvalidRuns:
    def invalid(self, *runs: Sequence[Judged]) -> CalibrationEvaluation:
        found = evaluate(BANK, [ReviewerRuns("x", [*runs])], GATES)
        assert not found.valid
        assert found.status is found.mutual_status is found.reviewer_statuses["x"] is Status.INVALID
        assert found.reviewer_metrics == {}
        return found

    def test_a_missing_case_is_never_a_tie(self) -> None:
        """F24: the last case, whose answer is a tie, is left out of one run."""
        whole = run(BANK, verdicts(RIGHT))
        found = self.invalid(whole, whole[:-1])
        assert [(failure.code, failure.run) for failure in found.failures] == [(FailureCode.CASE_MISSING, 2)]

    def test_a_case_twice(self) -> None:
        whole = run(BANK, verdicts(RIGHT))
        assert codes(self.invalid([*whole, whole[0]], whole)) == [FailureCode.CASE_REPEATED]

    def test_a_foreign_case(self) -> None:
        whole = run(BANK, verdicts(RIGHT))
        assert codes(self.invalid(whole, [*whole, Judged("plan-99", "tie")])) == [FailureCode.CASE_UNKNOWN]

    @pytest.mark.parametrize("word", ["", "Tie", "A wins", "none", "C win"])
    def test_another_word_is_never_a_tie(self, word: str) -> None:
        """F27: an unknown word makes the run invalid."""
        whole = run(BANK, verdicts(RIGHT))
        found = self.invalid(whole, [Judged(BANK.case_ids[0], word), *whole[1:]])
        assert codes(found) == [FailureCode.VERDICT_UNKNOWN]

    def test_all_faults_are_named_together(self) -> None:
        whole = run(BANK, verdicts(RIGHT))
        broken = [Judged("plan-99", "tie"), Judged(BANK.case_ids[1], "?"), *whole[1:]]
        assert codes(self.invalid(broken)) == [
            FailureCode.TOO_FEW_RUNS,
            FailureCode.CASE_UNKNOWN,
            FailureCode.CASE_REPEATED,
            FailureCode.CASE_MISSING,
            FailureCode.VERDICT_UNKNOWN,
        ]

    @pytest.mark.parametrize("count", [0, 1])
    def test_fewer_than_two_runs(self, count: int) -> None:
        assert codes(self.invalid(*[run(BANK, verdicts(RIGHT))] * count)) == [FailureCode.TOO_FEW_RUNS]

    def test_no_family_at_all(self) -> None:
        found = evaluate(BANK, [], GATES)
        assert codes(found) == [FailureCode.NO_REVIEWER]
        assert (found.valid, found.status, found.mutual_status) == (False, Status.INVALID, Status.INVALID)

    def test_a_family_twice(self) -> None:
        found = evaluate(BANK, [family("x", BANK, RIGHT, RIGHT)] * 2, GATES)
        assert codes(found) == [FailureCode.FAMILY_REPEATED]
        assert (found.status, found.mutual_status) == (Status.INVALID, Status.INVALID)
        assert (found.reviewer_families, found.reviewer_metrics) == (("x",), {})

    def test_one_invalid_family_makes_the_whole_invalid(self) -> None:
        found = evaluate(BANK, [family("x", BANK, RIGHT, RIGHT), family("y", BANK, RIGHT)], GATES)
        assert (found.status, found.mutual_status) == (Status.INVALID, Status.INVALID)
        assert found.reviewer_statuses == {"x": Status.PASS, "y": Status.INVALID}
        assert found.pairwise_metrics == ()


class TestProperties:
    @given(st.lists(st.lists(st.text("ABT", min_size=6, max_size=6), max_size=4), max_size=3))
    def test_status_and_failures_always_agree(self, families: list[list[str]]) -> None:
        bank = bank_with("AABBTT")
        found = evaluate(bank, [family(f"f{n}", bank, *runs) for n, runs in enumerate(families)], GATES)
        assert (found.status is Status.PASS) == (not found.failures)
        assert found.valid == (found.status is not Status.INVALID)
        gates = {code for code in FailureCode if code.value.endswith("below_gate")}
        assert found.valid == (set(codes(found)) <= gates)

    @given(st.lists(st.text("ABT", min_size=6, max_size=6), min_size=2, max_size=4))
    def test_written_and_read_back_it_is_the_same(self, runs: list[str]) -> None:
        bank = bank_with("AABBTT")
        found = evaluate(bank, [family("x", bank, *runs), family("y", bank, *runs[::-1])], GATES)
        assert CalibrationEvaluation.model_validate_json(found.model_dump_json()) == found


def test_every_failure_code_is_reached() -> None:
    whole = run(BANK, verdicts(RIGHT))
    broken = [Judged("plan-99", "tie"), Judged(BANK.case_ids[1], "?"), *whole[1:]]
    bank = bank_with("AB" * 10)
    found = [
        *codes(evaluate(BANK, [], GATES)),
        *codes(evaluate(BANK, [ReviewerRuns("x", [broken])] * 2, GATES)),
        *codes(
            evaluate(
                bank,
                [family("x", bank, "AB" * 10, "BA" * 10), family("y", bank, "AB" * 10, "AB" * 10)],
                GATES,
            )
        ),
    ]
    assert set(found) == set(FailureCode)
