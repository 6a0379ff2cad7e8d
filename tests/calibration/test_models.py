from __future__ import annotations

import json
from typing import get_args

import pytest
from pydantic import BaseModel, ValidationError

from skill_effectiveness.calibration import models
from skill_effectiveness.calibration.models import (
    Claim,
    LedgerEntry,
    Observation,
    ProbeResultDocument,
    Record,
    ResultDocument,
    Sample,
    SampleIntent,
    Usage,
    to_json,
    to_line,
)
from skill_effectiveness.calibration.sealing import SealPredicate
from skill_effectiveness.evidence.documents import validate
from skill_effectiveness.evidence.faults import DocumentError
from tests.support.examinations import bindings, receipts

ROOT = "sha256:" + 64 * "9"
FOUND = receipts("s-1", ROOT)

COMMON = {
    "schema_version",
    "sample_id",
    "artifact_root_hash",
    "provider",
    "provider_cli_version",
    "provider_executable_hash",
    "model",
    "reviewer_family",
    "timeout_seconds",
    "max_model_calls",
    "runtime_manifest_hash",
    "known_answer_fixture_hash",
    "case_fixture_hash",
    "runner_hash",
}
RESULT = {
    "schema_version",
    "artifact_contract",
    "execution_status",
    "calibration_status",
    "provider",
    "provider_cli_version",
    "provider_executable_hash",
    "provider_environment_keys",
    "model",
    "reviewer_family",
    "repeat_count",
    "case_count",
    "known_answer_fixture_hash",
    "case_fixture_hash",
    "pilot_gates_hash",
    "runner_contract",
    "runner_hash",
    "requested_session_mode",
    "tool_access",
    "calibration_evidence",
    "calibration_evidence_hash",
    "calibration_evaluation",
    "calibration_evaluation_hash",
    "conclusion_boundary",
    "enforcement",
}


def every_record() -> list[type[BaseModel]]:
    """Every record of the room, and every model that stands in one."""
    waiting: list[type[BaseModel]] = [
        found for found in vars(models).values() if isinstance(found, type) and issubclass(found, Record)
    ]
    seen: dict[type[BaseModel], None] = {}
    while waiting:
        model = waiting.pop()
        if model in seen:
            continue
        seen[model] = None
        for field in model.model_fields.values():
            parts = [field.annotation]
            while parts:
                part = parts.pop()
                if isinstance(part, type) and issubclass(part, BaseModel):
                    waiting.append(part)
                parts += [*get_args(part)]
    return list(seen)


class TestFields:
    def test_a_ledger_entry_has_the_five_of_its_contract(self) -> None:
        assert to_line(FOUND.ledger) == (
            b'{"artifact_contract":"skill-effectiveness-reviewer-calibration-sample-ledger-entry-v2",'
            b'"artifact_root_hash":"' + ROOT.encode() + b'","sample_id":"s-1","schema_version":1,'
            b'"state":"model_call_started"}\n'
        )

    def test_an_intent_has_fourteen_bindings_and_its_state(self) -> None:
        assert len(COMMON) == 14
        assert to_json(FOUND.intent).keys() == COMMON | {"state", "sample_hash"}
        started = SampleIntent(**bindings("s-1", ROOT), state="model_call_started")
        assert to_json(started).keys() == COMMON | {"state"}

    def test_a_sample_has_the_bindings_and_its_own(self) -> None:
        assert to_json(FOUND.sample).keys() == COMMON | {
            "artifact_contract",
            "provider_environment_keys",
            "runner_contract",
            "requested_session_mode",
            "tool_access",
            "judgments",
        }

    def test_an_observation_keeps_order_bits_verdicts_and_usage(self) -> None:
        found = to_json(FOUND.observation)
        assert found["shown"] == [{"case_id": "c-1", "orientation": 1, "verdict": "A win"}]
        assert found["usage"] == {
            "input_tokens": 5,
            "output_tokens": None,
            "cost_units": None,
            "latency_ms": 12,
        }

    def test_a_result_has_the_fields_of_section_6_and_the_manifest(self) -> None:
        optional = {"sample_ids", "synthetic", "simulation", "provider_binding", "provider_binding_hash"}
        assert set(ResultDocument.model_fields) == RESULT | optional | {"runtime_manifest_hash"}
        assert set(ProbeResultDocument.model_fields) == set(ResultDocument.model_fields) | {
            "licence_policy_hash"
        }

    def test_a_seal_predicate_has_the_eight_of_section_7(self) -> None:
        assert set(SealPredicate.model_fields) == {
            "schema_version",
            "calibration_status",
            "provider",
            "model",
            "reviewer_family",
            "provider_executable_hash",
            "runner_hash",
            "synthetic",
        }


class TestAbsence:
    @pytest.mark.parametrize("model", every_record(), ids=lambda model: model.__name__)
    def test_only_a_field_that_may_be_absent_has_a_default(self, model: type[BaseModel]) -> None:
        """Leaving defaults out of the bytes then leaves out nothing else."""
        defaults = [field.default for field in model.model_fields.values() if not field.is_required()]
        assert all(default is None for default in defaults)

    def test_an_absent_field_is_not_written_as_null(self) -> None:
        assert b"null" not in to_line(FOUND.intent)
        assert "synthetic" not in to_json(FOUND.sample)

    @pytest.mark.parametrize("field", ["synthetic", "sample_hash"])
    def test_null_is_refused_where_a_field_is_absent(self, field: str) -> None:
        with pytest.raises(DocumentError):
            validate(SampleIntent, {**to_json(FOUND.intent), field: None})

    @pytest.mark.parametrize("value", [False, 1, 1.0, "true"])
    def test_synthetic_is_true_or_absent(self, value: object) -> None:
        with pytest.raises(DocumentError):
            validate(Sample, {**to_json(FOUND.sample), "synthetic": value})

    def test_unknown_usage_stays_null(self) -> None:
        unknown = Usage(input_tokens=None, output_tokens=None, cost_units=None, latency_ms=None)
        assert json.loads(to_line(unknown)) == dict.fromkeys(Usage.model_fields)


class TestForms:
    @pytest.mark.parametrize("record", [FOUND.ledger, FOUND.intent, FOUND.sample, FOUND.observation])
    def test_what_was_written_reads_back(self, record: Record) -> None:
        assert validate(type(record), to_json(record)) == record

    @pytest.mark.parametrize("value", [True, 1.0, "1", 2, 0])
    def test_one_call_is_the_integer_token_1(self, value: object) -> None:
        """R7: neither a boolean nor a fraction nor a text is a call limit."""
        with pytest.raises(DocumentError):
            validate(Sample, {**to_json(FOUND.sample), "max_model_calls": value})

    @pytest.mark.parametrize("value", [True, 1.0, "1", 2, -1])
    def test_an_orientation_is_a_bit(self, value: object) -> None:
        shown = [{"case_id": "c-1", "orientation": value, "verdict": "A win"}]
        with pytest.raises(DocumentError):
            validate(Observation, {**to_json(FOUND.observation), "shown": shown})

    @pytest.mark.parametrize(
        ("field", "value"),
        [
            ("sample_id", "-x"),
            ("sample_id", "x" * 65),
            ("sample_id", "a/b"),
            ("sample_id", "a\n"),
            ("model", "a b"),
            ("model", ""),
            ("provider", "Codex"),
            ("provider_cli_version", "two\nlines"),
            ("timeout_seconds", 601),
            ("timeout_seconds", 0),
            ("runner_hash", "sha256:" + 64 * "G"),
            ("runner_hash", "sha1:" + 64 * "0"),
        ],
    )
    def test_a_binding_of_another_form_is_refused(self, field: str, value: object) -> None:
        with pytest.raises(DocumentError):
            validate(Sample, {**to_json(FOUND.sample), field: value})

    def test_a_hash_belongs_to_a_completed_intent_and_to_no_other(self) -> None:
        with pytest.raises(ValidationError):
            SampleIntent(**bindings("s-1", ROOT), state="completed")
        with pytest.raises(ValidationError):
            SampleIntent(**bindings("s-1", ROOT), state="model_call_started", sample_hash=ROOT)

    @pytest.mark.parametrize("token", ["", "A" * 64, "a" * 63, "a" * 65])
    def test_a_claim_token_is_32_bytes_in_hex(self, token: str) -> None:
        with pytest.raises(ValidationError):
            Claim(claim_token=token)

    def test_an_entry_has_one_of_two_states(self) -> None:
        with pytest.raises(DocumentError):
            validate(LedgerEntry, {**to_json(FOUND.ledger), "state": "completed"})

    def test_a_record_cannot_be_changed(self) -> None:
        with pytest.raises(ValidationError):
            FOUND.ledger.sample_id = "s-2"  # type: ignore[misc]
