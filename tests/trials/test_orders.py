"""Orders from plain JSON: every field, every code."""

from __future__ import annotations

import pytest

from skill_effectiveness.protocol.document import to_json
from skill_effectiveness.trials.faults import TrialCode, TrialError
from skill_effectiveness.trials.orders import read_order
from tests.support.trials import (
    CONTENT,
    LIMITED,
    PROFILE,
    RUNTIME,
    SAFE,
    Json,
    manifests,
    order,
    plan,
    task,
)


def fields(**changes: Json) -> dict[str, Json]:
    given = {
        "task": to_json(task()),
        "manifest": to_json(manifests(PROFILE)["profile-full"]),
        "runtime": RUNTIME,
        "budget": LIMITED,
        "sample_index": 1,
    }
    return {name: value for name, value in (given | changes).items() if value is not ...}


EXPECTED = {
    "expected_isolation_evidence": SAFE,
    "expected_read_allow_roots": ["/in"],
    "expected_write_allow_roots": ["/out"],
}


def refused(**changes: Json) -> tuple[str, str]:
    with pytest.raises(TrialError) as caught:
        read_order(fields(**changes))
    return caught.value.code, caught.value.where


def test_is_what_the_fields_say() -> None:
    assert read_order(fields()) == order(budget=LIMITED)
    said = read_order(
        fields(registry_schema="paired-profile", registry_plan=to_json(plan(PROFILE)), **EXPECTED), study=True
    )
    assert (said.registry_schema, said.plan, said.study) == (PROFILE, plan(PROFILE), True)
    assert said.expected is not None
    assert said.expected.evidence is not None
    assert said.expected.evidence.given() == SAFE
    assert (said.expected.read_allow_roots, said.expected.write_allow_roots) == (("/in",), ("/out",))


def test_expected_evidence_may_be_null() -> None:
    said = read_order(fields(**(EXPECTED | {"expected_isolation_evidence": None})))
    assert said.expected is not None
    assert said.expected.evidence is None


@pytest.mark.parametrize("name", ["task", "manifest", "runtime", "budget", "sample_index"])
@pytest.mark.parametrize("value", [..., None, [], "x", True])
def test_every_needed_field(name: str, value: Json) -> None:
    code, where = refused(**{name: value})
    assert code == TrialCode.BAD_RECORD
    assert where.split("/")[1] == name


@pytest.mark.parametrize("index", [0, -1, 1.0, "1", 2**53])
def test_no_other_index(index: Json) -> None:
    assert refused(sample_index=index) == (TrialCode.BAD_RECORD, "/sample_index")


def test_no_other_field() -> None:
    assert refused(arm="S1") == (TrialCode.BAD_RECORD, "/arm")


def test_pointers_lead_into_the_request() -> None:
    assert refused(budget=LIMITED | {"tokens": 0}) == (TrialCode.BAD_RECORD, "/budget/tokens")
    assert refused(runtime=RUNTIME | {"model": ""}) == (TrialCode.BAD_RECORD, "/runtime/model")
    assert refused(task=to_json(task()) | {"task_family": "x"}) == (TrialCode.BAD_RECORD, "/task/task_family")


@pytest.mark.parametrize("name", EXPECTED)
def test_what_is_expected_is_given_whole(name: str) -> None:
    assert refused(**(EXPECTED | {name: ...})) == (TrialCode.BAD_RECORD, f"/{name}")


@pytest.mark.parametrize("registry", ["another", "", None, 1])
def test_registries_are_two(registry: Json) -> None:
    assert refused(registry_schema=registry) == (TrialCode.REGISTRY_MISMATCH, "/registry_schema")


def test_an_edited_manifest_or_plan_is_none() -> None:
    manifest = to_json(manifests(CONTENT)["S2"]) | {"manifest_hash": "sha256:" + "0" * 64}
    assert refused(manifest=manifest) == (TrialCode.BAD_RECORD, "/manifest")
    edited = to_json(plan(PROFILE)) | {"plan_hash": "sha256:" + "0" * 64}
    assert refused(registry_plan=edited) == (TrialCode.BAD_RECORD, "/registry_plan")
