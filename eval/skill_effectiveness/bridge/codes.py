"""Every typed error of the rooms below by its code here (bridge.md, section 6).

The sentences of those errors may name what a request held, so none of them goes on: people are told the
fixed sentence of the code, the closed word of the error, and which member of a payload or file of a trial it
is about.
"""

from __future__ import annotations

from typing import Final

from skill_effectiveness.bridge.payloads import MEMBERS
from skill_effectiveness.bridge.words import BridgeError, ReasonCode
from skill_effectiveness.evidence.faults import EvidenceError, FileCode, LockCode
from skill_effectiveness.protocol.arm_errors import ArmError
from skill_effectiveness.protocol.errors import ProtocolCode, ProtocolError
from skill_effectiveness.trials.binding import AUDIT, EVENTS, OUTCOME
from skill_effectiveness.trials.faults import TrialCode, TrialError
from skill_effectiveness.trials.pilot_errors import PilotCode, PilotError
from skill_effectiveness.trials.store import TRIAL as TRIAL_FILE

TRIAL: Final = {
    TrialCode.BAD_RECORD: ReasonCode.EVIDENCE_INVALID,
    TrialCode.REGISTRY_MISMATCH: ReasonCode.EVIDENCE_INVALID,
    TrialCode.PLAN_MISMATCH: ReasonCode.EVIDENCE_INVALID,
    TrialCode.IDENTITY_MISMATCH: ReasonCode.EVIDENCE_INVALID,
    TrialCode.TERMINAL: ReasonCode.EVIDENCE_INVALID,
    TrialCode.CURSOR_INVALID: ReasonCode.EVIDENCE_INVALID,
    TrialCode.EVIDENCE_MISSING: ReasonCode.EVIDENCE_INVALID,
    TrialCode.EVIDENCE_INVALID: ReasonCode.EVIDENCE_INVALID,
    TrialCode.TRIAL_MISSING: ReasonCode.ARTIFACT_MISSING,
    TrialCode.PLAN_MISSING: ReasonCode.ARTIFACT_MISSING,
    TrialCode.VERSION_CONFLICT: ReasonCode.STALE_STATE,
    TrialCode.BUDGET_EXCEEDED: ReasonCode.TRIAL_BUDGET_EXCEEDED,
    TrialCode.NO_PROGRESS: ReasonCode.NO_PROGRESS,
    TrialCode.ISOLATION_BREACH: ReasonCode.ISOLATION_VIOLATION,
    TrialCode.PROOF_MISSING: ReasonCode.CAUSAL_CORE_UNAVAILABLE,
    TrialCode.BINDING_MISMATCH: ReasonCode.ARTIFACT_MISMATCH,
}
PILOT: Final = {
    PilotCode.BUNDLE_MISSING: ReasonCode.ARTIFACT_MISSING,
    PilotCode.BUNDLE_INVALID: ReasonCode.EVIDENCE_INVALID,
    PilotCode.BUNDLE_MISMATCH: ReasonCode.ARTIFACT_MISMATCH,
    PilotCode.BUNDLE_OCCUPIED: ReasonCode.EVIDENCE_INVALID,
    PilotCode.PLAN_INVALID: ReasonCode.EVIDENCE_INVALID,
    PilotCode.PLAN_MISMATCH: ReasonCode.ARTIFACT_MISMATCH,
    PilotCode.TIER_MISMATCH: ReasonCode.EVIDENCE_INVALID,
}
LOCK: Final = {
    LockCode.LOCK_BUSY: ReasonCode.TIMEOUT,
    LockCode.LOCK_UNAVAILABLE: ReasonCode.UNKNOWN_FINALITY,
    LockCode.LOCK_UNSUPPORTED: ReasonCode.EVIDENCE_INVALID,
    LockCode.LOCK_UNSAFE: ReasonCode.EVIDENCE_INVALID,
}
FILES: Final = (EVENTS, AUDIT, OUTCOME, TRIAL_FILE)
STORAGE: Final = frozenset({FileCode.NO_SPACE, FileCode.IO_ERROR, FileCode.NOT_WRITABLE})
"""What the machine refuses, whoever is at fault: the same request again settles it."""


def refusal_of(error: Exception) -> BridgeError | None:
    """The answer to an error of a lower room; None for one that nobody foresaw."""
    if isinstance(error, BridgeError):
        return error
    if not isinstance(error, TrialError | PilotError | ProtocolError | ArmError | EvidenceError):
        return None
    return BridgeError(_code_of(error), f"{error.code.value}{_about(error)}")


def _about(error: TrialError | PilotError | ProtocolError | ArmError | EvidenceError) -> str:
    """The member or file that an error is about; no other name, which could be one of a request's own."""
    if not isinstance(error, TrialError):
        return ""
    member = error.where.removeprefix("/").partition("/")[0]
    if member in MEMBERS:
        return f": {member}"
    return next((f": {name}" for name in FILES if error.where.startswith(name)), "")


def _code_of(error: TrialError | PilotError | ProtocolError | ArmError | EvidenceError) -> ReasonCode:
    match error.code:
        case TrialCode() as code:
            return TRIAL[code]
        case PilotCode() as code:
            return PILOT[code]
        case LockCode() as code:
            return LOCK[code]
        case ProtocolCode() as code:
            changed = code is ProtocolCode.GATES_CHANGED
            return ReasonCode.EVIDENCE_INVALID if changed else ReasonCode.UNSUPPORTED_EVALUATOR
        case code:
            return ReasonCode.UNKNOWN_FINALITY if code in STORAGE else ReasonCode.EVIDENCE_INVALID
