"""Activation records: what they repeat, and what is no record."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest

from skill_effectiveness.evidence.canonical import digest_object, dump_line
from skill_effectiveness.studies.activation import (
    activation_line,
    claimed_results,
    differing_field,
    read_activation,
    record_activation,
    verdict_hash,
)
from skill_effectiveness.studies.errors import StudyCode, StudyError
from skill_effectiveness.studies.results import results_json, results_line
from tests.support.study_results import SYNTHETIC, UNEVALUATED, full_study, results_of, study, study_plan
from tests.support.study_tables import from_thirds

RESULTS = full_study().results
ROOT = "sha256:" + "7" * 64
AT = datetime(2026, 3, 4, 5, 6, 7, tzinfo=UTC)
RECORD = record_activation(RESULTS, ROOT, "switched on for the team", AT)


def test_what_it_says() -> None:
    """S64: the verdict, its limitations as they stood, the bundle, the time, the reason, and no more."""
    said = json.loads(activation_line(RECORD))
    assert {key: said[key] for key in said if not key.endswith(("_hash", "_digest"))} == {
        "schema_version": 1,
        "artifact_contract": "skill-effectiveness-activation-record-v1",
        "boundary": "states-use-authorises-nothing",
        "verdict_tier": "advisory-paired",
        "coverage_limitations": ["complete_access_audit", "mount_evidence"],
        "merkle_root": ROOT,
        "recorded_at": "2026-03-04T05:06:07Z",
        "reason": "switched on for the team",
    }
    assert said["verdict_hash"] == digest_object(results_json(RESULTS)["verdict"])
    assert read_activation(activation_line(RECORD)) == RECORD


@pytest.mark.parametrize("verdict", [SYNTHETIC, UNEVALUATED])
def test_nothing_that_did_not_pass(verdict: object) -> None:
    """S64 S40: no verdict, no record."""
    values = from_thirds((1, 0, 2))
    held = study(values, synthetic=verdict is SYNTHETIC)
    assert held.results.verdict == verdict
    with pytest.raises(ValueError, match="passed"):
        record_activation(held.results, ROOT, "none", AT)


@pytest.mark.parametrize("items", [[], ["complete_access_audit"], None, ["mount_evidence", "all_is_well"]])
def test_limitations_that_were_edited(items: list[str] | None) -> None:
    """S64: left out, shortened or others: neither record nor results load."""
    said = json.loads(activation_line(RECORD))
    results = results_json(RESULTS)
    if items is None:
        del said["coverage_limitations"], results["verdict"]["coverage_limitations"]  # type: ignore[index, call-overload, union-attr]
    else:
        said["coverage_limitations"] = results["verdict"]["coverage_limitations"] = items  # type: ignore[index, call-overload]
    for read, document in ((read_activation, said), (claimed_results, results)):
        with pytest.raises(StudyError) as refused:
            read(dump_line(document))
        assert refused.value.code is StudyCode.ACTIVATION_INVALID


@pytest.mark.parametrize("data", [b"", b"{}", b"\xff", b"[]\n", activation_line(RECORD)[:-1]])
def test_garbage(data: bytes) -> None:
    """S64 S65: refused with a code."""
    for read in (read_activation, claimed_results):
        with pytest.raises(StudyError) as refused:
            read(data)
        assert refused.value.code is StudyCode.ACTIVATION_INVALID


def test_against_a_bundle() -> None:
    """S64: the first field that is not the bundle's."""
    assert differing_field(RECORD, claimed_results(results_line(RESULTS)), ROOT) is None
    assert differing_field(RECORD, RESULTS, "sha256:" + "8" * 64) == "merkle_root"
    other = results_of(study_plan(from_thirds((1, 0, 2))), study(from_thirds((1, 0, 2))).tables)
    assert differing_field(RECORD, other, ROOT) == "plan_digest"
    assert verdict_hash(RESULTS.verdict) == RECORD.verdict_hash
