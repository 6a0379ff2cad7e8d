"""What is passed on of a verdict (trials.md, section 9)."""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skill_effectiveness.evidence.faults import DocumentError, EvidenceError
from skill_effectiveness.protocol.document import to_json
from skill_effectiveness.protocol.gates import EvidenceTierName
from skill_effectiveness.protocol.registries import RegistrySchema
from skill_effectiveness.trials.summary import machine_hash, parse_summary, summarise
from tests.support.summaries import FACTS, MACHINE, OTHER_MACHINE, of_machine

CAUSAL, ADVISORY = EvidenceTierName.CAUSAL, EvidenceTierName.ADVISORY_PAIRED
SKILL, PROFILE = RegistrySchema.SKILL_CONTENT, RegistrySchema.PAIRED_PROFILE
FIELDS = (
    "schema_version artifact_contract verdict_hash bundle_hash status verdict_tier registry_schema "
    "coverage_limitations config_hash arm_registry_hash tasks_hash provider model trial_count machine_hash "
    "synthetic summary_hash"
)


def digest(value: object) -> str:
    """By the standard library; every text here is ASCII."""
    return (
        "sha256:"
        + hashlib.sha256(json.dumps(value, sort_keys=True, separators=(",", ":")).encode("ascii")).hexdigest()
    )


def document() -> dict[str, Any]:
    return to_json(of_machine())


def data(value: object) -> bytes:
    return json.dumps(value).encode()


def hashed_again(value: dict[str, Any]) -> bytes:
    """With a summary hash that is right again."""
    rest = {name: held for name, held in value.items() if name != "summary_hash"}
    return data(rest | {"summary_hash": digest(rest)})


class TestSummarise:
    def test_fields(self) -> None:
        """T61: exactly those of the specification."""
        assert sorted(document()) == sorted(FIELDS.split())

    def test_hashes(self) -> None:
        """T61: over the verdict, the machine and the rest, by the standard library."""
        held = document()
        assert held["verdict_hash"] == digest(FACTS.verdict)
        contract = "skill-effectiveness-terminal-verdict-summary-v1"
        assert held["machine_hash"] == digest({"artifact_contract": contract, "machine_id": MACHINE})
        rest = {name: value for name, value in held.items() if name != "summary_hash"}
        assert held["summary_hash"] == digest(rest)

    def test_limitations_are_verbatim(self) -> None:
        """T25 T61: as the verdict has them."""
        assert document()["coverage_limitations"] == ["access_root_enforcement", "mount_evidence"]

    def test_machine_without_an_id(self) -> None:
        """T61: null, and never a hash of nothing."""
        assert of_machine(None).machine_hash is None
        assert machine_hash(None) is None
        assert machine_hash(MACHINE) != machine_hash(OTHER_MACHINE)

    def test_machine_id_itself_is_nowhere(self) -> None:
        assert MACHINE not in json.dumps(document())

    @pytest.mark.parametrize(
        "changes",
        [
            {"status": "fail", "verdict_tier": None},
            {"status": "fail", "verdict_tier": None, "trial_count": 0},
            {"status": "fail", "verdict_tier": None, "synthetic": True},
            {"verdict_tier": None, "synthetic": True},
            {"verdict_tier": CAUSAL, "registry_schema": SKILL, "coverage_limitations": ()},
            {"coverage_limitations": ()},
        ],
    )
    def test_states_a_verdict_can_have(self, changes: dict[str, object]) -> None:
        """T61: what was written loads as it was."""
        summary = summarise(replace(FACTS, **changes), MACHINE)  # type: ignore[arg-type]
        assert parse_summary(data(to_json(summary))) == summary

    @pytest.mark.parametrize(
        "changes",
        [
            {"verdict_tier": None},
            {"verdict_tier": CAUSAL},
            {"registry_schema": SKILL},
            {"verdict_tier": CAUSAL, "registry_schema": SKILL},
            {"status": "fail"},
            {"synthetic": True},
            {"trial_count": 0},
            {"trial_count": -1},
            {"status": "not_evaluated_synthetic", "verdict_tier": None},
            {"verdict_tier": "replicated-advisory"},
            {"coverage_limitations": ("mount_evidence", "access_root_enforcement")},
            {"coverage_limitations": ("mount_evidence", "mount_evidence")},
            {"coverage_limitations": ("everything",)},
            {"provider": ""},
            {"model": ""},
        ],
    )
    def test_states_no_verdict_has(self, changes: dict[str, object]) -> None:
        """T26 T27 T61: no tier without a pass, of another registry, of a simulation, or a property."""
        with pytest.raises(DocumentError):
            summarise(replace(FACTS, **changes), MACHINE)  # type: ignore[arg-type]


class TestParse:
    def test_as_written(self) -> None:
        assert parse_summary(data(document())) == of_machine()

    def test_without_limitations(self) -> None:
        """T25: does not load, also when its hash is made to fit."""
        held = document()
        del held["coverage_limitations"]
        with pytest.raises(DocumentError):
            parse_summary(hashed_again(held))
        with pytest.raises(DocumentError):
            parse_summary(hashed_again(document() | {"coverage_limitations": None}))

    @pytest.mark.parametrize(
        "limitations", [[], ["mount_evidence"], ["access_root_enforcement", "complete_access_audit"]]
    )
    def test_edited_limitations(self, limitations: list[str]) -> None:
        """T25: an edited list does not load."""
        with pytest.raises(DocumentError, match="edited"):
            parse_summary(data(document() | {"coverage_limitations": limitations}))

    @pytest.mark.parametrize("field", FIELDS.split())
    def test_every_field_is_bound(self, field: str) -> None:
        """T61: no field is missing or different unnoticed."""
        held = document()
        value = held.pop(field)
        with pytest.raises(DocumentError):
            parse_summary(data(held))
        others = {"pass": "fail", False: True, 12: 13, "codex": "other", "model-1": "model-2"}
        changed = others.get(value) if not isinstance(value, list) else []
        if changed is None:
            changed = "sha256:" + "9" * 64 if str(value).startswith("sha256:") else "causal"
        with pytest.raises(DocumentError):
            parse_summary(data(document() | {field: changed}))

    @pytest.mark.parametrize(
        ("field", "value"),
        [("synthetic", 0), ("trial_count", True), ("trial_count", 12.0), ("machine_hash", "")],
    )
    def test_look_alikes(self, field: str, value: object) -> None:
        with pytest.raises(DocumentError):
            parse_summary(hashed_again(document() | {field: value}))

    @given(st.binary(max_size=60))
    def test_anything(self, junk: bytes) -> None:
        with pytest.raises(EvidenceError):
            parse_summary(junk)
