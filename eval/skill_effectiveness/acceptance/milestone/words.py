"""The closed words of the milestone close.

Source: milestone.md, sections 2 to 11.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final

from pydantic import ConfigDict

CLOSED: Final = ConfigDict(extra="forbid", strict=True, frozen=True)
"""Configuration of every document of this room: no unknown field, no conversion, no change."""


PRODUCER: Final = "milestone"
"""The producer name of the closes that this tool records."""


class Severity(StrEnum):
    """From the most severe to the least."""

    P0 = "P0"
    P1 = "P1"
    P2 = "P2"
    P3 = "P3"


class Impact(StrEnum):
    """What a finding touches; `minor_separable` alone does not block."""

    CORE_FUNCTION = "core_function"
    SAFETY_OR_DATA = "safety_or_data"
    PERMISSION_BOUNDARY = "permission_boundary"
    CRITERION_UNMET = "criterion_unmet"
    REGRESSION_INTRODUCED = "regression_introduced"
    MINOR_SEPARABLE = "minor_separable"


class FindingKind(StrEnum):
    """What a finding is about."""

    DEFECT = "defect"
    TEST_GAP = "test_gap"
    EVIDENCE_MISSING = "evidence_missing"


class Word(StrEnum):
    """What a pass answers, and what V says."""

    VERIFIED = "verified"
    NEEDS_CHANGES = "needs_changes"


class PassName(StrEnum):
    """The two passes of a round: A judges coverage, B hunts bugs. The same names serve the passes of QA."""

    A = "A"
    B = "B"


class PassState(StrEnum):
    """What became of one attempt of a pass."""

    VALID = "valid"
    INVALID = "invalid"
    NOT_READ = "not_read"
    WORKTREE_CHANGED = "worktree_changed"
    TOOL_FAILED = "tool_failed"
    QUOTA = "quota"
    NO_ANSWER = "no_answer"
    UNAVAILABLE = "unavailable"


class PieceState(StrEnum):
    """How a piece of evidence stands to the pinned head."""

    FRESH = "fresh"
    MISSING = "missing"
    STALE = "stale"


class GateState(StrEnum):
    """What the final gate says."""

    PASS = "pass"  # noqa: S105 - a word, no password
    FAILED = "failed"
    PENDING = "pending"


class QaWord(StrEnum):
    """A verdict about QA, from the best to the worst."""

    PASS = "PASS"  # noqa: S105 - a word, no password
    REVISE = "REVISE"
    FAIL = "FAIL"
    INCONCLUSIVE = "INCONCLUSIVE"


class Role(StrEnum):
    """What an engine is asked to be; the role stands in both rows of its call.

    `explorer` reads a checkout, `executor` works in one of its own, `reviewer` is a pass of a crosscheck or
    what probes it. `unit-check` is no engine: it is a node's commands.
    """

    EXPLORER = "explorer"
    EXECUTOR = "executor"
    REVIEWER = "reviewer"
    UNIT_CHECK = "unit-check"


class Purpose(StrEnum):
    """What a call is for."""

    CROSSCHECK = "crosscheck"
    PROBE = "probe"
    EVIDENCE = "evidence"
    RESEARCH = "research"
    CLOSE_FIX = "close_fix"
    QA_CAPTURE = "qa_capture"
    QA_PASS = "qa_pass"  # noqa: S105 - a word, no password
    QA_RECEIPT = "qa_receipt"


class RowType(StrEnum):
    """The types of journal rows."""

    STARTED = "started"
    PAUSED = "run/paused"
    FINISHED = "finished"
    PREPARED = "prepared"
    COMPLETED = "completed"
    UNIT_CHECK = "crw.unitCheck"
    ACCEPTANCE = "acceptance"
    INTEGRATION = "integration"
    REUSE = "crw.reuseIntegrated"
    VERIFY = "crw.verify"
    FINAL_GATE = "crw.finalGate"
    QA_CAPTURE = "crw.qaCapture"
    QA_RECEIPT = "crw.qaReceipt"
    SPAWN = "flow_spawn_decisions"
    PROBE = "crw.engineProbe"
    CROSSCHECK = "crw.crosscheck"
    CORRECTION = "crw.correction"
    HOLD = "crw.hold"
    ESCALATION = "escalation"
    CLOSE = "crw.milestoneClose"
    REPORT_UP = "crw.reportUp"
    AUDIT = "crw.audit"
    ARCHIVE = "crw.archive"
    DELIVERY = "delivery_checked"
    REVIEWER_FINAL = "crw.reviewerFinal"


class Outcome(StrEnum):
    """How a close ends; after `refused` there is no close, or no acceptance, and the run goes on."""

    CLOSED = "closed"
    ESCALATED = "escalated"
    HELD = "held"
    REFUSED = "refused"


class AuditWord(StrEnum):
    """What an audit says about one acceptance; `unobserved` is not a pass."""

    OK = "ok"
    MISMATCH = "mismatch"
    UNOBSERVED = "unobserved"


class DeliveryWord(StrEnum):
    """What a readback says about one check, and about all of them."""

    PASSED = "passed"
    PENDING = "pending"
    UNOBSERVED = "unobserved"


class DeliveryKind(StrEnum):
    """What a delivery criterion can ask for."""

    REMOTE_PUSH = "remote_push"
    ISSUES_CLOSED = "issues_closed"
    MILESTONE_CLOSED = "milestone_closed"


QA_SURFACES: Final = frozenset({"web", "tui", "desktop"})
"""Surfaces of a criterion that make QA necessary."""

UNKNOWN_GRADE: Final = "C3"
"""How a grade that nobody gave is read."""

SHORT_GRADE: Final = "C2"
"""The one grade whose QA receipt needs no passes of its own."""

NOT_OBSERVED: Final = "not observed"
"""Written where a record would hold what an engine did not tell."""

NO_NUL: Final = r"^[^\u0000]*$"
"""Texts that become part of a prompt: some engines take it as an argument, which holds no NUL."""

NOT_JUDGED: Final = "not judged"
