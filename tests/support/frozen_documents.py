"""Sound documents of the frozen protocol, for tests to break."""

from __future__ import annotations

import hashlib
import json
from typing import Any

HELD_OUT: dict[str, Any] = {
    "task_id": "find-the-leak",
    "task_family": "diagnosis",
    "cohort": "held-out-generalization",
    "prompt_ref": "corpus://second/find-the-leak.md",
    "expected_owners": ["ccl-skills:diagnose", "ccl-skills:read-logs"],
    "frozen_at_sha": 40 * "a",
    "corpus_version": "corpus-2026.11",
    "skill_content_cutoff": "2026-10-01",
    "curator_independent": True,
    "repo_snapshot": "sha256:" + 64 * "b",
    "should_invoke": True,
    "risk_tags": [],
    "graders": ["hidden-tests"],
    "negative_control": False,
    "execution_mode": "workspace",
}
"""A held-out task."""

EVENTS: dict[str, Any] = {
    "schema_version": 1,
    "event_contract_version": "skill-events-v2",
    "event_contract_status": "stable",
    "skill_events_available": True,
    "task_tool_events_available": True,
    "first_task_tool_event_index": 1,
    "event_index_source": "fixture-modeled-single-monotonic-stream",
    "skills_invoked": [
        {
            "skill": "ccl-skills:mend",
            "event_index": 0,
            "tool_use_id": "u0",
            "matching_tool_result": True,
            "completed": True,
        }
    ],
}
SKILLS: dict[str, Any] = {
    "schema_version": 1,
    "event_contract": "skill-events-v2",
    "driver": "claude-code",
    "unverifiable": None,
    "events": EVENTS,
}
"""A row of skill events, and the events in it."""

SAFE: dict[str, dict[str, Any]] = {
    "mount_boundary": {"outside_read_denied": True, "outside_write_denied": True},
    "access_audit": {"all_accesses_recorded": True, "tamper_check_passed": True},
    "memory_isolation": {"fresh_session": True, "cross_session_recall_detected": False},
}
"""What every capability probe should observe."""


def digest(value: object) -> str:
    """The digest of an object whose numbers and names Python and RFC 8785 spell alike."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"))
    return "sha256:" + hashlib.sha256(text.encode()).hexdigest()


def probe(evidence: dict[str, Any] | None = None, **row: object) -> dict[str, Any]:
    """What a capability probe leaves: its evidence or another, some fields of the row changed."""
    found = evidence or {
        name: {"probe_id": f"{name}-1", "status": "verified", "observations": dict(seen)}
        for name, seen in SAFE.items()
    }
    entry: dict[str, Any] = {
        "runner": "local-runner",
        "provider": "codex",
        "task_family": "review",
        "evidence": found,
        "evidence_hash": digest(found),
    }
    entry |= row
    return {
        "schema_version": 1,
        "artifact_contract": "skill-effectiveness-capability-probe-v1",
        "entry": entry,
        "entry_hash": digest(entry),
    }
