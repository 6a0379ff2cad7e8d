"""Why a command of accepted-outcome stores or decides nothing, as closed codes.

Source: outcome.md, sections 7, 12 and 14. A refusal of a claim is no error: it is a result, and stored.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final


class OutcomeCode(StrEnum):
    """Why nothing was done.

    Input: `claim_invalid`, `record_invalid`, `attempt_conflict` (a known attempt is said to be otherwise),
    `claim_not_graded` (there is nothing to show or close), `run_unreadable`, the three `claim_attempt_…` and
    the nine `evidence_…` codes of edges. Undecidable: the others. `issue_unreadable`: the issue could not be
    read afresh. `close_unconfirmed`: a close was begun, and nobody knows by whom the issue is what it is now.
    `run_unreadable`: the events of a loop are missing or damaged.
    """

    CLAIM_INVALID = "claim_invalid"
    RECORD_INVALID = "record_invalid"
    ATTEMPT_CONFLICT = "attempt_conflict"
    CLAIM_NOT_GRADED = "claim_not_graded"
    CLAIM_ATTEMPT_NOT_FOUND = "claim_attempt_not_found"
    CLAIM_ATTEMPT_NOT_TERMINAL = "claim_attempt_not_terminal"
    CLAIM_ATTEMPT_HAS_NO_REVISION = "claim_attempt_has_no_revision"
    EVIDENCE_FAMILY_UNKNOWN = "evidence_family_unknown"
    EVIDENCE_RESULT_UNKNOWN = "evidence_result_unknown"
    EVIDENCE_COMMIT_NOT_CLAIMED = "evidence_commit_not_claimed"
    EVIDENCE_COMMIT_MISMATCH = "evidence_commit_mismatch"
    EVIDENCE_ENVIRONMENT_MISMATCH = "evidence_environment_mismatch"
    EVIDENCE_PUSH_NEEDS_COMMIT = "evidence_push_needs_commit"
    EVIDENCE_RECEIPT_NOT_FOUND = "evidence_receipt_not_found"
    EVIDENCE_REPOSITORY_NOT_RESOLVED = "evidence_repository_not_resolved"
    EVIDENCE_TOO_MANY_ISSUES = "evidence_too_many_issues"
    RUN_UNREADABLE = "run_unreadable"
    INVALID_CONTRACT = "invalid_contract"
    CONTRACT_DIVERGENCE = "contract_divergence"
    POLICY_UNREADABLE = "policy_unreadable"
    POLICY_UNSAFE = "policy_unsafe"
    STORE_UNSAFE = "store_unsafe"
    STORE_LOCKED = "store_locked"
    JOURNAL_BROKEN = "journal_broken"
    CLAIM_NOT_RECORDED = "claim_not_recorded"
    RECORD_NOT_STORED = "record_not_stored"
    ISSUE_UNREADABLE = "issue_unreadable"
    CLOSE_UNCONFIRMED = "close_unconfirmed"


UNDECIDABLE: Final = frozenset(
    {
        OutcomeCode.INVALID_CONTRACT,
        OutcomeCode.CONTRACT_DIVERGENCE,
        OutcomeCode.POLICY_UNREADABLE,
        OutcomeCode.POLICY_UNSAFE,
        OutcomeCode.STORE_UNSAFE,
        OutcomeCode.STORE_LOCKED,
        OutcomeCode.JOURNAL_BROKEN,
        OutcomeCode.CLAIM_NOT_RECORDED,
        OutcomeCode.RECORD_NOT_STORED,
        OutcomeCode.ISSUE_UNREADABLE,
        OutcomeCode.CLOSE_UNCONFIRMED,
    }
)
"""The codes that end with exit 3; all others are errors of the input and end with exit 2."""


class OutcomeError(Exception):
    """Nothing was graded, stored or closed, apart from what the sentence says.

    Attributes:
        code: the closed word.
        message: the code and what is safe for machines about the case.
        sentence: for people; says what to do next.
    """

    def __init__(self, code: OutcomeCode, sentence: str, about: str = "") -> None:
        self.code: Final = code
        self.message: Final = f"{code.value}{about}"
        self.sentence: Final = sentence
        super().__init__(f"{self.message}: {sentence}")

    @property
    def undecidable(self) -> bool:
        """Whether something that has to be trusted cannot be, so that nobody can say yes or no."""
        return self.code in UNDECIDABLE
