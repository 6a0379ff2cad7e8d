"""What identifies a trial and what a completion binds: digests over records (trials.md, section 2)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from skill_effectiveness.evidence.canonical import digest_object
from skill_effectiveness.protocol.document import to_json

if TYPE_CHECKING:
    from skill_effectiveness.protocol.tasks import Task
    from skill_effectiveness.trials.models import TrialBudget, TrialDocument, TrialRuntime

BINDING_CONTRACT: Final = "skill-effectiveness-completion-binding-v1"

# Every step of a trial asks where it lies.
_REMEMBERED: Final = 1_024
_BOUND: Final = {
    "trial_fingerprint",
    "status",
    "state_version",
    "completion_claim",
    "resume_cursor",
    "completion_isolation",
}
"""Fields of the document that a completion binds."""

EVENTS: Final = "events.jsonl"
AUDIT: Final = "access-audit.jsonl"
OUTCOME: Final = "outcome/result.json"


@dataclass(frozen=True, slots=True)
class EvidenceDigests:
    """Digests of the bytes of a trial's evidence files."""

    events: str
    audit: str
    outcome: str


@lru_cache(maxsize=_REMEMBERED)
def location_hash(root_id: str, trial_path: str) -> str:
    """Where a trial lies, in words that stay true when its store is moved or copied.

    Args:
        root_id: of `root.json`.
        trial_path: `<task>/<arm>/sample-NNN`.
    """
    return digest_object({"root_id": root_id, "trial_path": trial_path})


def fingerprint(
    *,
    task: Task,
    manifest_hash: str,
    runtime: TrialRuntime,
    budget: TrialBudget,
    sample_index: int,
    trial_location_hash: str,
) -> str:
    """The identity of a trial, over the full task record and not only its public reference."""
    return digest_object(
        {
            "task": to_json(task),
            "manifest_hash": manifest_hash,
            "runtime": runtime.model_dump(mode="json"),
            "budget": to_json(budget),
            "sample_index": sample_index,
            "trial_location_hash": trial_location_hash,
        }
    )


def completion_binding(document: TrialDocument, evidence: EvidenceDigests) -> str:
    """What a completion binds: end state, isolation record and the bytes of the evidence files.

    It finds accidental change; it is not a signature.
    """
    return digest_object(
        {
            "artifact_contract": BINDING_CONTRACT,
            **document.model_dump(mode="json", include=_BOUND),
            "evidence_files": {EVENTS: evidence.events, AUDIT: evidence.audit, OUTCOME: evidence.outcome},
        }
    )
