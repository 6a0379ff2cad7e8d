from __future__ import annotations

import json
from typing import Any

import pytest

from skill_effectiveness.calibration.documents import PAIR_NAMES, evidence_document, result_document
from skill_effectiveness.calibration.models import to_json
from skill_effectiveness.evidence.canonical import digest_object
from skill_effectiveness.evidence.pair import pending_name
from skill_effectiveness.protocol.policy import policy_hash
from skill_effectiveness.protocol.words import BankName
from tests.support.examinations import INPUTS, PROBES
from tests.support.published import REAL, SIMULATED, VARIANTS, all_tie, truthful


class TestEvidence:
    def test_holds_the_known_answers_and_every_run(self) -> None:
        """The form of section 6, by hand."""
        found: Any = to_json(evidence_document(INPUTS, "family-1", [truthful(INPUTS), all_tie(INPUTS)]))
        assert found.keys() == {"status", "known_answers", "known_answer_fixture_hash", "reviewers"}
        assert found["status"] == "evaluated"
        assert found["known_answer_fixture_hash"] == digest_object(found["known_answers"])
        (reviewer,) = found["reviewers"]
        assert reviewer.keys() == {"family", "runs"}
        assert [len(run) for run in reviewer["runs"]] == [24, 24]


class TestResult:
    def test_a_reviewer_who_decides_nothing_fails(self) -> None:
        """8 of 24 answers are ties: accuracy one third, below 0.8; consistent all the same."""
        evidence = evidence_document(INPUTS, "family-1", 2 * [all_tie(INPUTS)])
        result: Any = to_json(result_document(REAL, evidence, INPUTS))
        evaluation = result["calibration_evaluation"]
        assert result["calibration_status"] == "fail"
        assert evaluation["reviewer_metrics"]["family-1"] == {
            "case_count": 24,
            "repeat_count": 2,
            "known_answer_accuracy": 8 / 24,
            "self_consistency": 1.0,
        }
        assert [failure["code"] for failure in evaluation["failures"]] == ["known_answer_accuracy_below_gate"]

    def test_probes_are_scored_by_the_licence_table(self) -> None:
        """No status, no gate; the policy is named by its digest."""
        result = json.loads(VARIANTS["probes"].result)
        assert result["artifact_contract"] == "skill-effectiveness-reviewer-bias-probe-result-v1"
        assert result["calibration_status"] == "not_applicable"
        assert result["licence_policy_hash"] == policy_hash(PROBES.policy)
        assert result["calibration_evaluation"]["passed"] is True

    def test_a_simulated_reviewer_is_marked_and_no_other(self) -> None:
        """R43: by the derivation itself."""
        evidence = evidence_document(INPUTS, "simulated", 2 * [truthful(INPUTS)])
        assert to_json(result_document(SIMULATED, evidence, INPUTS))["synthetic"] is True
        assert "synthetic" not in to_json(result_document(REAL, evidence, INPUTS))

    @pytest.mark.parametrize("count", [1, 6])
    def test_other_than_two_to_five_runs_are_no_pair(self, count: int) -> None:
        evidence = evidence_document(INPUTS, "family-1", count * [truthful(INPUTS)])
        with pytest.raises(ValueError, match="repeat_count"):
            result_document(REAL, evidence, INPUTS)


class TestNames:
    @pytest.mark.parametrize(
        ("bank", "names"),
        [
            (
                BankName.JUDGED,
                {
                    "reviewer-calibration.json",
                    ".reviewer-calibration.pending.json",
                    "reviewer-calibration-result.json",
                    ".reviewer-calibration-result.pending.json",
                },
            ),
            (
                BankName.BIAS_PROBE,
                {
                    "bias-probe.json",
                    ".bias-probe.pending.json",
                    "bias-probe-result.json",
                    ".bias-probe-result.pending.json",
                },
            ),
        ],
    )
    def test_of_a_publication(self, bank: BankName, names: set[str]) -> None:
        """The file names of sections 4 and 7."""
        found = PAIR_NAMES[bank]
        assert {
            name for each in (found.evidence, found.result) for name in (each, pending_name(each))
        } == names
