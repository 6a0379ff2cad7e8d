"""A result of the live probe as plain JSON, written out by hand but for its hashes."""

from __future__ import annotations

from typing import Any

from skill_effectiveness.evidence.canonical import digest_object, digest_text

FIXED = "sha256:" + 64 * "a"


def result_fields(*, recalled: bool) -> dict[str, Any]:
    """What is written for the family review of codex, with a leak or without one."""
    evidence = {
        "mount_boundary": {
            "probe_id": "cross-session-canary-v1",
            "status": "unverified",
            "observations": {"outside_read_denied": None, "outside_write_denied": None},
        },
        "access_audit": {
            "probe_id": "cross-session-canary-v1",
            "status": "unverified",
            "observations": {"all_accesses_recorded": None, "tamper_check_passed": None},
        },
        "memory_isolation": {
            "probe_id": "cross-session-canary-v1",
            "status": "violated" if recalled else "unverified",
            "observations": {
                "fresh_session": False if recalled else None,
                "cross_session_recall_detected": recalled,
            },
        },
    }
    row = {
        "runner": "provider-probe",
        "provider": "codex",
        "task_family": "review",
        "evidence": evidence,
        "evidence_hash": digest_object(evidence),
    }
    artifact = {
        "schema_version": 1,
        "artifact_contract": "skill-effectiveness-capability-probe-v1",
        "entry": row,
        "entry_hash": digest_object(row),
    }
    return {
        "schema_version": 1,
        "artifact_contract": "skill-effectiveness-provider-capability-result-v1",
        "execution_status": "completed",
        "provider": "codex",
        "provider_cli_version": "codex-cli 1",
        "provider_executable_hash": FIXED,
        "provider_environment_keys": ["HOME", "PATH"],
        "model": "model-1",
        "task_family": "review",
        "timeout_seconds": 220,
        "requested_session_mode": "ephemeral",
        "tool_access": "read-only-observed-none",
        "isolation_outcome": "contaminated" if recalled else "unresolved_isolation_threat",
        "cross_trial_canary": {
            "canary_hash": digest_text(64 * "a"),
            "seed_acknowledged": True,
            "recall_probe_completed": True,
            "cross_session_recall_detected": recalled,
            "recalled_value_hash": digest_text(64 * "a") if recalled else None,
        },
        "capability_artifact": "capability-probe-review.json",
        "capability_artifact_hash": digest_object(artifact),
        "capability_matrix": {
            "status": "causal_core_unavailable",
            "covered": [],
            "lacking": ["review"],
            "rows": [row],
        },
        "provider_persistence_declaration": "unverified",
        "conclusion_boundary": "no_recall_in_one_session_is_no_proof_of_isolation",
        "security_review_status": "not_reviewed",
    }
