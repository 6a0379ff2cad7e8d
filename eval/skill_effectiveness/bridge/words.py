"""The closed words of the bridge and the one error that carries them (bridge.md, sections 1 and 6)."""

from __future__ import annotations

from enum import StrEnum
from typing import Final

from skill_effectiveness.launch.bridge_manifest import REVISION
from skill_effectiveness.launch.bridge_request import (
    REQUEST_LIMIT,
    REQUEST_SCHEMA,
    RESPONSE_SCHEMA,
)

__all__ = [
    "INTENTS",
    "LOCK_WAIT_SECONDS",
    "RECEIPTS",
    "RECEIPT_CONTRACT",
    "REQUEST_LIMIT",
    "REQUEST_SCHEMA",
    "RESERVED",
    "RESPONSE_LIMIT",
    "RESPONSE_SCHEMA",
    "REVISION",
    "UNVALIDATED_REQUEST",
    "Action",
    "BridgeError",
    "Exit",
    "ReasonCode",
    "Status",
]

UNVALIDATED_REQUEST: Final = "redacted-invalid-request-id"
"""The request id of an answer to a request that did not validate."""
RESPONSE_LIMIT: Final = 1_048_576
"""Bytes of one response at most, its LF included."""
RECEIPT_CONTRACT: Final = "skill-effectiveness-bridge-receipt-v1"
RECEIPTS: Final = "bridge-receipts"
INTENTS: Final = "intents"
LOCK_WAIT_SECONDS: Final = 60.0


class Action(StrEnum):
    """What a controller may ask for."""

    PROBE = "probe"
    PREPARE = "prepare"
    CHECKPOINT = "checkpoint"
    EVALUATE = "evaluate"


class Status(StrEnum):
    """How a request comes out."""

    OK = "ok"
    BLOCKED = "blocked"
    ERROR = "error"


class Exit:
    """The exit codes of the contract."""

    OK: Final = 0
    INVALID: Final = 2
    BLOCKED: Final = 3
    INTERNAL: Final = 4


class ReasonCode(StrEnum):
    """Every reason for which a request is not carried out; the last two are reserved for controllers."""

    PROTOCOL_MISMATCH = "protocol_mismatch"
    UNSUPPORTED_EVALUATOR = "unsupported_evaluator"
    EVIDENCE_INVALID = "evidence_invalid"
    ARTIFACT_MISSING = "artifact_missing"
    ARTIFACT_MISMATCH = "artifact_mismatch"
    STALE_STATE = "stale_state"
    ISOLATION_VIOLATION = "isolation_violation"
    TRIAL_BUDGET_EXCEEDED = "trial_budget_exceeded"
    NO_PROGRESS = "no_progress"
    CAUSAL_CORE_UNAVAILABLE = "causal_core_unavailable"
    CAPABILITY_UNAVAILABLE = "capability_unavailable"
    INVOCATION_UNVERIFIABLE = "invocation_unverifiable"
    REVIEWER_CALIBRATION_FAILED = "reviewer_calibration_failed"
    TIMEOUT = "timeout"
    CANCELLED = "cancelled"
    UNKNOWN_FINALITY = "unknown_finality"
    COST_POLICY_REQUIRED = "cost_policy_required"
    COST_POLICY_EXCEEDED = "cost_policy_exceeded"


RESERVED: Final = frozenset({ReasonCode.COST_POLICY_REQUIRED, ReasonCode.COST_POLICY_EXCEEDED})
"""Never emitted: the bridge makes no calls."""

_SENTENCES: Final = {
    ReasonCode.PROTOCOL_MISMATCH: "The request is not one of this protocol; correct it, nothing was touched.",
    ReasonCode.UNSUPPORTED_EVALUATOR: "The code or a frozen input is not what was bound; probe again.",
    ReasonCode.EVIDENCE_INVALID: "The request or what it names is not valid here; correct what is named.",
    ReasonCode.ARTIFACT_MISSING: "Something that the request names is not there; make it first.",
    ReasonCode.ARTIFACT_MISMATCH: "Stored bytes are not those that were recorded; restore them.",
    ReasonCode.STALE_STATE: "The state has moved on, or the request id was used before; read the state anew.",
    ReasonCode.ISOLATION_VIOLATION: "A breach of isolation was observed; record the trial as contaminated.",
    ReasonCode.TRIAL_BUDGET_EXCEEDED: "The budget of the trial is used up; record how the trial ended.",
    ReasonCode.NO_PROGRESS: "Consumption or run order does not advance; send what was used in all.",
    ReasonCode.CAUSAL_CORE_UNAVAILABLE: "A proof is absent that no waiver covers; give the evidence.",
    ReasonCode.CAPABILITY_UNAVAILABLE: "A task family has no eligible capability row; probe the provider.",
    ReasonCode.INVOCATION_UNVERIFIABLE: "Too many skill events cannot be verified; collect them again.",
    ReasonCode.REVIEWER_CALIBRATION_FAILED: "The reviewers of the bundle do not meet the frozen gates.",
    ReasonCode.TIMEOUT: "The lock of the artifact root was not free in time; nothing changed, repeat it.",
    ReasonCode.CANCELLED: "A signal came before the change; nothing changed.",
    ReasonCode.UNKNOWN_FINALITY: "Something failed on the way; repeat the same request, which settles it.",
}


class BridgeError(Exception):
    """A request is not carried out.

    Args:
        code: the closed word.
        detail: what it is about, in words of this program alone: nothing of a request or a file.
        internal: whether the fault is ours or the machine's, where the code can mean either.
    """

    def __init__(self, code: ReasonCode, detail: str = "", *, internal: bool = False) -> None:
        self.code = code
        self.internal = internal or code is ReasonCode.UNKNOWN_FINALITY
        self.told = f"{code.value}: {_SENTENCES[code]}" + (f" ({detail})" if detail else "")
        super().__init__(self.told)

    @property
    def exit_code(self) -> int:
        """Of the contract."""
        if self.code is ReasonCode.PROTOCOL_MISMATCH:
            return Exit.INVALID
        return Exit.INTERNAL if self.internal else Exit.BLOCKED

    @property
    def status(self) -> Status:
        """Of the response."""
        return Status.BLOCKED if self.exit_code == Exit.BLOCKED else Status.ERROR
