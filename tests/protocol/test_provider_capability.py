"""What a live probe may say: the table of its two outcomes, and that no document says anything else."""

from __future__ import annotations

import copy
import json
from typing import TYPE_CHECKING, Any

import pytest

from skill_effectiveness.evidence.canonical import digest_object, digest_text
from skill_effectiveness.evidence.documents import validate
from skill_effectiveness.evidence.faults import EvidenceError
from skill_effectiveness.protocol.capability import CapabilityStatus, eligible, probe_of
from skill_effectiveness.protocol.document import to_json
from skill_effectiveness.protocol.provider_capability import (
    OUTCOMES,
    IsolationOutcome,
    ProviderCapabilityResult,
    artifact_name,
    capability_row,
    outcome_of,
)
from skill_effectiveness.protocol.words import TaskFamily
from skill_effectiveness.trials.capability_matrix import matrix, matrix_json, read_probe_file
from tests.support.provider_results import result_fields

if TYPE_CHECKING:
    from collections.abc import Callable

BOTH = pytest.mark.parametrize("recalled", [True, False])


class TestMapping:
    def test_is_this_table(self) -> None:
        """T37: a leak is contaminated, no leak is unresolved, and neither is ever ready or isolated."""
        table = {recalled: (str(word), str(status)) for recalled, (word, status) in OUTCOMES.items()}
        assert table == {
            True: ("contaminated", "causal_core_unavailable"),
            False: ("unresolved_isolation_threat", "causal_core_unavailable"),
        }
        assert {str(word) for word in IsolationOutcome} == {"contaminated", "unresolved_isolation_threat"}
        for recalled, (word, status) in OUTCOMES.items():
            row = capability_row("codex", TaskFamily.REVIEW, recalled=recalled)
            assert outcome_of(row)[0] is word
            assert outcome_of(row)[1].status is status
            assert not eligible(row)

    @BOTH
    def test_the_matrix_is_the_one_that_trials_make_of_the_file(self, recalled: bool) -> None:  # noqa: FBT001
        """T37 T40: the probe's own matrix is what comes of its artifact once that is read back."""
        row = capability_row("codex", TaskFamily.PLAN, recalled=recalled)
        held = read_probe_file(digestible(row))
        assert to_json(outcome_of(row)[1]) == matrix_json(matrix([TaskFamily.PLAN], "codex", [held]))

    def test_an_observed_breach_and_a_missing_proof_have_two_names(self) -> None:
        """T37: where nobody looked nothing is observed."""
        leak = capability_row("codex", TaskFamily.PLAN, recalled=True).evidence
        none = capability_row("codex", TaskFamily.PLAN, recalled=False).evidence
        assert leak.memory_isolation.status is CapabilityStatus.VIOLATED
        assert leak.memory_isolation.observations.fresh_session is False
        assert none.memory_isolation.status is CapabilityStatus.UNVERIFIED
        assert none.memory_isolation.observations.fresh_session is None
        assert none.memory_isolation.observations.cross_session_recall_detected is False
        for evidence in (leak, none):
            assert evidence.mount_boundary.observations.outside_read_denied is None
            assert evidence.access_audit.observations.all_accesses_recorded is None


def digestible(row: Any) -> bytes:  # noqa: ANN401 - a row
    return json.dumps(to_json(probe_of(row))).encode()


def edited(change: Callable[[dict[str, Any]], object], *, recalled: bool = False) -> dict[str, Any]:
    fields = copy.deepcopy(result_fields(recalled=recalled))
    change(fields)
    return fields


EDITS: dict[str, Callable[[dict[str, Any]], object]] = {
    "isolated": lambda it: it.update(isolation_outcome="isolated"),
    "the other outcome": lambda it: it.update(isolation_outcome="contaminated"),
    "ready": lambda it: it["capability_matrix"].update(status="ready"),
    "covered": lambda it: it["capability_matrix"].update(covered=["review"], lacking=[]),
    "no row": lambda it: it["capability_matrix"].update(rows=[]),
    "a recall without a value": lambda it: it["cross_trial_canary"].update(
        cross_session_recall_detected=True
    ),
    "a value without a recall": lambda it: it["cross_trial_canary"].update(
        recalled_value_hash=digest_text("x")
    ),
    "not acknowledged": lambda it: it["cross_trial_canary"].update(seed_acknowledged=False),
    "not completed": lambda it: it["cross_trial_canary"].update(recall_probe_completed=False),
    "persistence verified": lambda it: it.update(provider_persistence_declaration="verified"),
    "reviewed": lambda it: it.update(security_review_status="passed"),
    "another family": lambda it: it.update(task_family="plan"),
    "another provider": lambda it: it.update(provider="claude"),
    "another artifact": lambda it: it.update(capability_artifact="capability-probe-plan.json"),
    "another artifact's hash": lambda it: it.update(capability_artifact_hash=digest_object({})),
    "another field": lambda it: it.update(isolation_passed=True),
    "a field less": lambda it: it.pop("conclusion_boundary"),
}


class TestResult:
    @BOTH
    def test_reads_as_itself(self, recalled: bool) -> None:  # noqa: FBT001
        """T37: both outcomes have a document."""
        fields = result_fields(recalled=recalled)
        assert to_json(validate(ProviderCapabilityResult, fields)) == fields

    @pytest.mark.parametrize("change", EDITS.values(), ids=EDITS)
    def test_says_nothing_but_what_was_seen(self, change: Callable[[dict[str, Any]], object]) -> None:
        """T37: an edited result does not load."""
        with pytest.raises(EvidenceError):
            validate(ProviderCapabilityResult, edited(change))

    def test_a_leak_cannot_be_called_unresolved(self) -> None:
        """T37: nor the reverse."""
        worse = edited(lambda it: it.update(isolation_outcome="unresolved_isolation_threat"), recalled=True)
        with pytest.raises(EvidenceError):
            validate(ProviderCapabilityResult, worse)

    def test_files_are_named_after_the_family(self) -> None:
        assert artifact_name(TaskFamily.SHARED_GATE) == "capability-probe-shared_gate.json"
