"""prepare and checkpoint over the wire."""

from __future__ import annotations

import json
from itertools import count
from typing import TYPE_CHECKING, Any

import pytest

from skill_effectiveness.protocol.document import to_json
from skill_effectiveness.trials.models import TrialKey
from tests.support import trials
from tests.support.bridge import Bridge, Json, Reply, Stream, prepare_payload
from tests.support.private import wrong_modes
from tests.support.trials import CONTENT, LIMITED, PROFILE, RUNTIME, SAFE, cursor, put, put_lines

if TYPE_CHECKING:
    from collections.abc import Mapping

pytestmark = pytest.mark.slow


SAMPLES = count(1)
WAIVED = {
    "complete_access_audit": {"access_audit_complete": False},
    "access_root_enforcement": {"access_roots_enforced": False},
    "memory_isolation_proof": {"isolation_evidence": SAFE | {"fresh_session": None}},
    "provider_side_persistence_proof": {"isolation_evidence": SAFE | {"provider_persistence": "unverified"}},
}


class Case:
    """One sample of its own in a shared root."""

    def __init__(self, stream: Stream, registry: Json = PROFILE, **payload: Json) -> None:
        self.stream = stream
        self.bridge = stream.bridge
        self.sample = next(SAMPLES)
        self.key = TrialKey("task-a", trials.ARM[registry], self.sample)
        self._asked = count(1)
        self.payload = prepare_payload(registry) | {"sample_index": self.sample} | payload

    @property
    def next_id(self) -> str:
        return f"s{self.sample}-{next(self._asked)}"

    def prepare(self, **payload: Json) -> Reply:
        return self.stream.ask(self.bridge.request("prepare", self.payload | payload, self.next_id))

    def checkpoint(self, status: str, **payload: Json) -> Reply:
        return self.stream.ask(self.bridge.checkpoint(self.key, status, self.next_id, **payload))

    def complete(self, **payload: Json) -> Reply:
        return self.stream.ask(self.bridge.completion(self.key, self.next_id, **payload))

    def started(self) -> Case:
        assert self.prepare().word == "ok"
        assert self.checkpoint("running", resume_cursor=cursor()).word == "ok"
        return self

    def filled(self) -> Case:
        self.started()
        self.bridge.place.fill(self.key)
        return self

    @property
    def version(self) -> Json:
        return self.bridge.place.document(self.key)["state_version"]

    def edit(self, **changes: Json) -> None:
        self.bridge.place.edit(self.key, **changes)


def test_a_trial_from_preparation_to_completion(bridge: Bridge) -> None:
    """B18 B19 B32: each request in a process of its own."""
    key = TrialKey("task-a", "profile-full", 1)
    made = bridge.ask(bridge.prepare("p-1"))
    assert made.exit_code == 0
    assert made.result == {
        "trial_path": "task-a/profile-full/sample-001",
        "mode": "created",
        "state_version": 0,
        "remaining_budget": {
            "tokens": None,
            "wall_time_seconds": None,
            "tool_calls": None,
            "cost_units": None,
        },
        "replayed_receipt": False,
    }
    again = bridge.ask(bridge.prepare("p-1"))
    assert again.replayed
    assert again.answered == made.answered
    with bridge.stream() as stream:
        assert stream.ask(bridge.prepare("p-2")).result["mode"] == "resume"
        running = stream.ask(bridge.checkpoint(key, "running", "c-1", resume_cursor=cursor()))
        assert running.result == {
            "state_version": 1,
            "evidence_tier": "advisory-paired",
            "coverage_limitations": None,
            "replayed_receipt": False,
        }
        bridge.place.fill(key)
        done = stream.ask(bridge.completion(key, "c-2"))
    assert done.result["coverage_limitations"] == []
    assert wrong_modes(bridge.root) == []
    assert {path.name for path in bridge.root.iterdir()} == {
        ".root.lock",
        "bridge-receipts",
        "root.json",
        "trials",
    }


# prepare.


def test_the_budget_that_is_left(stream: Stream) -> None:
    """B18: what was used is taken off; nothing left is a budget fault."""
    case = Case(stream, budget=LIMITED)
    assert case.prepare().result["remaining_budget"]["tokens"] == 1000
    assert case.checkpoint("running", resume_cursor=cursor(tokens=400, cost_units=0.5)).word == "ok"
    left = case.prepare().result
    assert left["mode"] == "resume"
    assert left["remaining_budget"] == {
        "tokens": 600,
        "wall_time_seconds": 60.5,
        "tool_calls": None,
        "cost_units": 1.5,
    }
    assert (
        case.checkpoint("interim-budget-stop", resume_cursor=cursor(2, tokens=1000, cost_units=1)).word
        == "ok"
    )
    assert case.prepare().word == "trial_budget_exceeded"


def test_a_plan_by_its_path(stream: Stream) -> None:
    """B18: the plan's hash is recorded; an absent one is missing, another one is no plan of the arm."""
    folder = stream.bridge.root / "plans"
    folder.mkdir(mode=0o700, exist_ok=True)
    put(folder / "profile.json", json.dumps(to_json(trials.plan(PROFILE))).encode())
    put(folder / "content.json", json.dumps(to_json(trials.plan(CONTENT))).encode())
    case = Case(stream, registry_plan_path="plans/profile.json")
    assert case.prepare().word == "ok"
    assert case.bridge.place.document(case.key)["registry_plan_hash"] == trials.plan(PROFILE).plan_hash
    for path, word in {
        "plans/none.json": "artifact_missing",
        "none/none.json": "artifact_missing",
        "plans/content.json": "evidence_invalid",
        "../plan.json": "evidence_invalid",
        "/plan.json": "evidence_invalid",
        "plans//profile.json": "evidence_invalid",
        "": "evidence_invalid",
    }.items():
        assert Case(stream, registry_plan_path=path).prepare().word == word, path


@pytest.mark.parametrize(
    "payload",
    [
        {"registry_schema": "skill-content"},
        {"registry_schema": "no-such-registry"},
        {"sample_index": 0},
        {"budget": {"tokens": -1, "wall_time_seconds": None, "tool_calls": None, "cost_units": None}},
        {"budget": {}},
        {"runtime": RUNTIME | {"runner_hash": "sha256:short"}},
        {"runtime": {}},
        {"task": {}},
        {"manifest": {}},
        {"expected_read_allow_roots": ["/a"]},
    ],
)
def test_a_preparation_that_means_nothing(stream: Stream, payload: dict[str, Json]) -> None:
    """B18: mixed and unknown registries, and semantic faults, are evidence."""
    assert Case(stream, **payload).prepare().word == "evidence_invalid"


def test_a_manifest_that_names_no_registry_is_of_skill_content(stream: Stream) -> None:
    """B18: and it may say so all the same."""
    assert Case(stream, CONTENT).prepare().word == "ok"
    declared = prepare_payload(CONTENT)["manifest"] | {"registry_schema": "skill-content"}
    assert Case(stream, CONTENT, manifest=declared).prepare().word == "ok"


def test_a_sample_is_prepared_for_one_thing(stream: Stream) -> None:
    """B22: other fixed fields, and a trial that has ended, are evidence and never stale."""
    case = Case(stream)
    assert case.prepare().word == "ok"
    assert case.prepare(runtime=RUNTIME | {"session_id": "other"}).word == "evidence_invalid"
    assert case.checkpoint("failed", stop_reason="crashed").word == "ok"
    assert case.prepare().word == "evidence_invalid"
    assert case.checkpoint("failed").word == "evidence_invalid"
    assert case.checkpoint("failed", expected_state_version=0).word == "stale_state"


def test_a_completed_sample_is_handed_out_against_its_isolation(stream: Stream) -> None:
    """B18: mode complete, and nothing else."""
    case = Case(stream).filled()
    assert case.complete().word == "ok"
    roots = {f"expected_{name}": value for name, value in case.bridge.place.roots(case.key).items()}
    expected = {"expected_isolation_evidence": SAFE, **roots}
    assert case.prepare(**expected).result["mode"] == "complete"
    assert case.prepare().word == "artifact_mismatch"
    assert case.prepare(**expected | {"expected_isolation_evidence": None}).word == "artifact_mismatch"
    put_lines(case.bridge.place.trial(case.key) / "events.jsonl", [{"event_contract": "other"}])
    assert case.prepare(**expected).word == "artifact_mismatch"


# checkpoint.


@pytest.mark.parametrize("registry", [PROFILE, CONTENT])
def test_the_tier_follows_from_what_is_stored(stream: Stream, registry: Any) -> None:  # noqa: ANN401 - an enum
    """B19: advisory-paired or causal, whatever a request says."""
    case = Case(stream, registry).started()
    tier = {"paired-profile": "advisory-paired", "skill-content": "causal"}[registry.value]
    stop = case.checkpoint("interim-budget-stop", resume_cursor=cursor(2, tokens=1))
    assert stop.result["evidence_tier"] == tier
    assert stop.result["state_version"] == 2
    case.bridge.place.fill(case.key)
    done = case.complete()
    assert done.result["evidence_tier"] == tier
    assert done.result["coverage_limitations"] == []


@pytest.mark.parametrize("status", ["contaminated", "failed"])
def test_the_other_ends(stream: Stream, status: str) -> None:
    """B19: with no proof at all."""
    case = Case(stream).started()
    assert case.checkpoint(status, stop_reason="why").result["coverage_limitations"] is None


def test_a_stored_registry_that_is_absent_or_unknown(stream: Stream) -> None:
    """B19: without one there is no tier and no completion; an unknown one is refused always."""
    case = Case(stream).filled()
    case.edit(registry_schema=...)
    assert case.checkpoint("running").result["evidence_tier"] is None
    assert case.complete().word == "evidence_invalid"
    case.edit(registry_schema="no-such-registry")
    assert case.checkpoint("running").word == "evidence_invalid"
    assert case.checkpoint("failed").word == "evidence_invalid"


@pytest.mark.parametrize("name", ["access_audit_complete", "access_roots_enforced"])
def test_the_two_declarations(stream: Stream, name: str) -> None:
    """B19: absent is protocol, no boolean is evidence, false is missing proof."""
    case = Case(stream).filled()
    assert case.complete(**{name: ...}).word == "protocol_mismatch"
    for value in ("yes", 1, None, []):
        assert case.complete(**{name: value}).word == "evidence_invalid"
        assert case.checkpoint("running", **{name: value}).word == "evidence_invalid"
    assert case.version == 1


def test_versions(stream: Stream) -> None:
    """B19 B22: 0 is a version; another one is stale, and below 0 there is none."""
    case = Case(stream)
    case.prepare()
    moved = case.checkpoint("running", resume_cursor=cursor(), expected_state_version=0)
    assert moved.result["state_version"] == 1
    assert case.checkpoint("running", expected_state_version=0).word == "stale_state"
    assert case.checkpoint("running", expected_state_version=-1).word == "protocol_mismatch"
    assert case.checkpoint("running", expected_state_version=None).word == "ok"


@pytest.mark.parametrize("item", WAIVED)
def test_what_is_waived_is_said(stream: Stream, item: str) -> None:
    """B20: verbatim among the limitations, and as unverified in the trial."""
    case = Case(stream).filled()
    assert case.complete(**WAIVED[item]).result["coverage_limitations"] == [item]
    isolation = case.bridge.place.document(case.key)["completion_isolation"]
    assert isolation["coverage_limitations"] == [item]
    assert "unverified" in (isolation["file_access_status"], isolation["memory_isolation_status"])


@pytest.mark.parametrize("item", WAIVED)
def test_the_causal_tier_waives_nothing(stream: Stream, item: str) -> None:
    """B20 B23: the same proofs are missing there."""
    case = Case(stream, CONTENT).filled()
    assert case.complete(**WAIVED[item]).word == "causal_core_unavailable"


BREACHES = {
    **{name: not value for name, value in SAFE.items() if isinstance(value, bool)},
    "provider_persistence": "enabled",
}


@pytest.mark.parametrize("registry", [PROFILE, CONTENT])
@pytest.mark.parametrize("name", BREACHES)
def test_an_observed_breach(stream: Stream, registry: Any, name: str) -> None:  # noqa: ANN401 - an enum
    """B21: for both registries, whatever is waived; the trial is marked for good."""
    case = Case(stream, registry).filled()
    spoilt = case.complete(isolation_evidence=SAFE | {name: BREACHES[name]}, access_audit_complete=False)
    assert spoilt.word == "isolation_violation"
    assert (case.bridge.place.trial(case.key) / "breach.json").exists()
    assert case.complete().word == "isolation_violation"
    assert case.checkpoint("contaminated").word == "ok"


def test_a_path_outside_the_roots(stream: Stream) -> None:
    """B21: read from the audit."""
    case = Case(stream).filled()
    rows = [
        *case.bridge.place.rows(case.key),
        {"actor": "tested-agent", "operation": "read", "path": "/etc/hosts"},
    ]
    put_lines(case.bridge.place.trial(case.key) / "access-audit.jsonl", rows)
    assert (
        case.complete(access_audit_complete=False, access_roots_enforced=False).word == "isolation_violation"
    )


@pytest.mark.parametrize(
    ("status", "payload", "word"),
    [
        ("running", {"resume_cursor": cursor(tokens=2000)}, "trial_budget_exceeded"),
        ("running", {"resume_cursor": cursor(tokens=1)}, "no_progress"),
        ("interim-budget-stop", {"resume_cursor": cursor(tokens=5)}, "no_progress"),
        ("interim-budget-stop", {}, "evidence_invalid"),
        ("running", {"resume_cursor": {"next_run_order": 0, "consumed_budget": {}}}, "evidence_invalid"),
        ("prepared", {}, "protocol_mismatch"),
        ("done", {}, "protocol_mismatch"),
        ("running", {"stop_reason": ""}, "evidence_invalid"),
        ("running", {"read_allow_roots": []}, "evidence_invalid"),
    ],
)
def test_budget_progress_and_cursor(
    stream: Stream, status: str, payload: Mapping[str, Json], word: str
) -> None:
    """B23: over a limit, falling, not advancing, no cursor."""
    case = Case(stream, budget=LIMITED)
    case.prepare()
    case.checkpoint("running", resume_cursor=cursor(tokens=5))
    assert case.checkpoint(status, **payload).word == word
    assert case.version == 1


@pytest.mark.parametrize("path", ["../x/sample-001", "/a/b/sample-001", "a/b", "a/b/c", "a//sample-001", ""])
def test_the_path_of_a_trial(stream: Stream, path: str) -> None:
    """B23: it stays below the root."""
    request = stream.bridge.request("checkpoint", {"trial_path": path, "status": "failed"}, "path")
    assert stream.ask(request).word == "evidence_invalid"


def test_a_trial_that_is_not_there(stream: Stream) -> None:
    """B23: no folder is missing, a folder without its document is none."""
    case = Case(stream)
    assert case.checkpoint("failed").word == "artifact_missing"
    assert case.prepare().word == "ok"
    (case.bridge.place.trial(case.key) / "trial.json").unlink()
    assert case.checkpoint("failed").word == "evidence_invalid"


@pytest.mark.parametrize("name", ["events.jsonl", "access-audit.jsonl", "outcome/result.json"])
def test_evidence_that_is_absent_or_malformed(stream: Stream, name: str) -> None:
    """B23: a completion without valid files."""
    case = Case(stream).filled()
    file = case.bridge.place.trial(case.key) / name
    kept = file.read_bytes()
    file.write_bytes(b"{")
    assert case.complete().word == "evidence_invalid"
    file.unlink()
    assert case.complete().word == "evidence_invalid"
    put(file, kept)
    assert case.complete().word == "ok"


# Precedence.


def test_the_earlier_fault_answers(stream: Stream) -> None:
    """B25: envelope, root, receipt, meaning, version, state, breach, files, proofs, budget."""
    case = Case(stream, CONTENT, budget=LIMITED).filled()
    breach = {"isolation_evidence": SAFE | {"fresh_session": False}}
    unproven = {"isolation_evidence": SAFE | {"fresh_session": None}}
    over = {"resume_cursor": cursor(tokens=5000)}
    bad_cursor = {"resume_cursor": {"next_run_order": 0, "consumed_budget": {}}}
    stale = {"expected_state_version": 9}
    nowhere = case.bridge.completion(case.key, "other", access_audit_complete=...) | {"artifact_root": None}
    assert stream.ask(nowhere).word == "protocol_mismatch"
    assert stream.ask(nowhere | case.bridge.completion(case.key, "other") | {"artifact_root": None}).word == (
        "evidence_invalid"
    )
    used = case.bridge.checkpoint(case.key, "running", "used")
    assert stream.ask(used).word == "ok"
    assert (
        stream.ask(case.bridge.completion(case.key, "used", access_audit_complete="yes")).word
        == "stale_state"
    )
    assert case.complete(**stale, access_audit_complete="yes").word == "evidence_invalid"
    assert case.complete(**stale, **bad_cursor).word == "evidence_invalid"
    assert case.complete(**stale, **breach).word == "stale_state"
    outcome = case.bridge.place.trial(case.key) / "outcome" / "result.json"
    kept = outcome.read_bytes()
    outcome.unlink()
    assert case.complete(**unproven, **over).word == "evidence_invalid"
    put(outcome, kept)
    assert case.complete(**unproven, **over).word == "causal_core_unavailable"
    assert case.complete(**over).word == "trial_budget_exceeded"
    outcome.unlink()
    assert case.complete(**breach, **over).word == "isolation_violation"
    assert case.checkpoint("failed").word == "ok"
    assert case.complete(**breach).word == "evidence_invalid"
    assert case.complete(**breach, **stale).word == "stale_state"
