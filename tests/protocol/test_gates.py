from __future__ import annotations

import hashlib
import json
import re
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skill_effectiveness.evidence.fsops import RealFs
from skill_effectiveness.protocol import gates as gates_page
from skill_effectiveness.protocol.document import parse_document
from skill_effectiveness.protocol.errors import ProtocolCode, ProtocolError
from skill_effectiveness.protocol.gates import (
    GATES_FILE,
    EvidenceTierName,
    PilotGates,
    WaivableItem,
    gates_hash,
    load_gates,
)
from skill_effectiveness.protocol.resources import frozen_folder
from skill_effectiveness.protocol.words import TaskFamily
from tests.support.frozen import CopiedFs

if TYPE_CHECKING:
    from pathlib import Path

COMMITTED = (frozen_folder() / GATES_FILE).read_bytes()


def gates_with(pointer: str, value: object) -> bytes:
    document = json.loads(COMMITTED)
    *folders, last = pointer.strip("/").split("/")
    inner: Any = document
    for name in folders:
        inner = inner[name]
    inner[last] = value
    return json.dumps(document).encode()


def hash_of(data: bytes) -> str | ProtocolCode:
    try:
        return gates_hash(parse_document(PilotGates, data, GATES_FILE))
    except ProtocolError as error:
        return error.code


class TestCommittedGates:
    """Statement T2 for the gates: the committed file is pinned byte by byte."""

    def test_the_bytes_are_pinned(self) -> None:
        """T2: the gates file is pinned byte by byte."""
        assert (
            hashlib.sha256(COMMITTED).hexdigest()
            == "1579789659ddc1a8b467d97d44e699fc833aad2d801e01de9d3ba667387c23a6"
        )

    def test_the_digest_of_the_object_is_pinned(self) -> None:
        assert (
            gates_hash(load_gates(RealFs()))
            == "sha256:a70d1bc428b42882750afd0171307a597de926a2ef5f147e0c0c789cb512b3f7"
        )

    def test_every_threshold_is_the_published_one(self) -> None:
        assert load_gates(RealFs()).thresholds.model_dump() == {
            "runner_completion_rate_min": 0.95,
            "samples_per_task_arm_min": 3,
            "smoke_tasks_per_arm_min": 2,
            "skill_event_unverifiable_rate_max": 0.05,
            "missing_shape_task_family_stop_count": 2,
            "matched_call_smoke_rate_min": 1,
            "reviewer_family_count_min": 1,
            "reviewer_self_consistency_min": 0.8,
            "reviewer_known_answer_accuracy_min": 0.8,
            "reviewer_pairwise_agreement_min": 0.8,
            "reviewer_pairwise_kappa_min": 0.6,
            "contamination_rate_max": 0.05,
            "arm_contamination_gap_max": 0.05,
        }

    def test_the_advisory_tier_is_declared_with_all_six_waivers(self) -> None:
        tier = load_gates(RealFs()).evidence_tier
        assert tier.requested_tier is EvidenceTierName.ADVISORY_PAIRED
        assert list(tier.waived_items) == [
            "access_root_enforcement",
            "complete_access_audit",
            "live_matched_call_gate",
            "memory_isolation_proof",
            "mount_evidence",
            "provider_side_persistence_proof",
        ]

    def test_nothing_is_limited_and_every_family_has_an_outcome_and_an_effect(self) -> None:
        gates = load_gates(RealFs())
        assert set(gates.budgets.model_dump().values()) == {None}
        assert list(gates.primary_outcomes.model_dump()) == list(TaskFamily)
        assert gates.minimum_effects.model_dump() == {
            "implementation": 0.05,
            "review": 0.05,
            "diagnosis": 0.05,
            "plan": 0.05,
            "shared_gate": 0.02,
            "delegation": 0.05,
        }

    def test_the_active_control_is_pending(self) -> None:
        control = load_gates(RealFs()).active_control
        assert control.status == "pending-independent-candidates"
        assert control.allowed_comparisons == ("owner_bundle_only",)
        assert control.content_effect == "ccl_specific_content_unanswerable"

    def test_every_primary_outcome_is_explained(self) -> None:
        explained = re.findall(r"^\| (\w+) \| `(\w+)` \|", gates_page.__doc__ or "", flags=re.MULTILINE)
        assert dict(explained) == load_gates(RealFs()).primary_outcomes.model_dump()


class TestDigest:
    def test_it_does_not_depend_on_the_layout(self) -> None:
        document = json.loads(COMMITTED)
        for text in (json.dumps(document), json.dumps(document, sort_keys=True, indent=5)):
            assert gates_hash(parse_document(PilotGates, text.encode(), GATES_FILE)) == gates_hash(
                load_gates(RealFs())
            )

    def test_it_is_the_digest_of_the_file_as_an_object(self) -> None:
        """All numbers of the gates are spelled alike by Python and RFC 8785."""
        text = json.dumps(json.loads(COMMITTED), sort_keys=True, separators=(",", ":"))
        assert gates_hash(load_gates(RealFs())) == "sha256:" + hashlib.sha256(text.encode()).hexdigest()

    def test_every_value_enters_it(self) -> None:
        loosened = parse_document(
            PilotGates, gates_with("/thresholds/reviewer_self_consistency_min", 0.7), GATES_FILE
        )
        assert gates_hash(loosened) != gates_hash(load_gates(RealFs()))


class TestMalformedGates:
    @pytest.mark.parametrize(
        ("pointer", "value"),
        [
            ("/schema_version", 2),
            ("/schema_version", True),
            ("/frozen_before_outcomes", False),
            ("/frozen_before_outcomes", 1),
            ("/enforcement", "mandatory"),
            ("/meaning", "skill_effectiveness"),
            ("/reviewer_calibration_fixture_hash", "sha256:" + 64 * "G"),
            ("/reviewer_calibration_case_fixture_hash", None),
            ("/thresholds/reviewer_self_consistency_min", -0.1),
            ("/thresholds/reviewer_known_answer_accuracy_min", 1.2),
            ("/thresholds/reviewer_pairwise_kappa_min", "0.6"),
            ("/thresholds/samples_per_task_arm_min", 0),
            ("/thresholds/samples_per_task_arm_min", 2.5),
            ("/thresholds/seventh", 1),
            ("/budgets/tokens", 0),
            ("/budgets/cost_units", -1),
            ("/budgets/tool_calls", "many"),
            ("/budgets/seconds", None),
            ("/primary_outcomes/plan", ""),
            ("/primary_outcomes/planning", "steps"),
            ("/minimum_effects/review", 2),
            ("/active_control/status", "owner-relative-verified"),
            ("/active_control/required_independent_candidates", 1),
            ("/active_control/selection_blinded_before_outcomes", False),
            ("/active_control/allowed_comparisons", ["owner_bundle_only", "content"]),
            ("/active_control/content_effect", "answered"),
            ("/evidence_tier/requested_tier", "replicated-advisory"),
            ("/evidence_tier/requested_tier", "synthetic"),
            ("/evidence_tier/waived_items", None),
            ("/author", "nobody"),
        ],
    )
    def test_a_wrong_value_is_refused_where_it_stands(self, pointer: str, value: object) -> None:
        with pytest.raises(ProtocolError) as caught:
            parse_document(PilotGates, gates_with(pointer, value), GATES_FILE)
        assert caught.value.code is ProtocolCode.FIXTURE_INVALID
        assert caught.value.where.startswith(f"{GATES_FILE}#{pointer}")

    @pytest.mark.parametrize(
        "items",
        [
            ["mount_evidence", "access_root_enforcement"],
            ["mount_evidence", "mount_evidence"],
            [*sorted(WaivableItem), "blinding"],
            ["blinding"],
        ],
    )
    def test_waivers_are_sorted_single_and_known(self, items: list[str]) -> None:
        with pytest.raises(ProtocolError) as caught:
            parse_document(PilotGates, gates_with("/evidence_tier/waived_items", items), GATES_FILE)
        assert caught.value.where.startswith(f"{GATES_FILE}#/evidence_tier")

    def test_the_causal_tier_waives_nothing(self) -> None:
        with pytest.raises(ProtocolError):
            parse_document(PilotGates, gates_with("/evidence_tier/requested_tier", "causal"), GATES_FILE)
        document = json.loads(gates_with("/evidence_tier/requested_tier", "causal"))
        document["evidence_tier"]["waived_items"] = []
        gates = parse_document(PilotGates, json.dumps(document).encode(), GATES_FILE)
        assert gates.evidence_tier.requested_tier is EvidenceTierName.CAUSAL

    @pytest.mark.parametrize("member", sorted(json.loads(COMMITTED)))
    def test_no_member_may_be_left_out(self, member: str) -> None:
        document = json.loads(COMMITTED)
        del document[member]
        with pytest.raises(ProtocolError, match="missing_field"):
            parse_document(PilotGates, json.dumps(document).encode(), GATES_FILE)

    def test_a_number_in_another_spelling_is_refused(self) -> None:
        data = COMMITTED.replace(b'"matched_call_smoke_rate_min": 1,', b'"matched_call_smoke_rate_min": 1.0,')
        with pytest.raises(ProtocolError, match="number_form"):
            parse_document(PilotGates, data, GATES_FILE)

    def test_loading_names_the_file(self, tmp_path: Path) -> None:
        fs = CopiedFs(tmp_path)
        fs.path(GATES_FILE).write_bytes(COMMITTED[:-3])
        with pytest.raises(ProtocolError) as caught:
            load_gates(fs)
        assert caught.value.where == GATES_FILE

    @given(st.integers(min_value=0, max_value=len(COMMITTED) - 1), st.integers(min_value=0, max_value=255))
    def test_a_damaged_byte_gives_gates_or_the_typed_error(self, place: int, byte: int) -> None:
        data = bytearray(COMMITTED)
        data[place] = byte
        found = hash_of(bytes(data))
        if found is not ProtocolCode.FIXTURE_INVALID:
            same = json.loads(data) == json.loads(COMMITTED)
            assert (found == gates_hash(load_gates(RealFs()))) is same
