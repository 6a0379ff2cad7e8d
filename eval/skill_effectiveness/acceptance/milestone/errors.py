"""Why a verb refuses and why a close stops, as closed codes.

Source: milestone.md, sections 4, 7 to 9, 12 and 14. A `MilestoneError` is a refusal: nothing ran. A `Stop` is
an ending of a verb that ran: a hold, which `resume` continues, or an escalation, after which a new run is
needed.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final, Self

from skill_effectiveness.acceptance.milestone.words import Outcome

if TYPE_CHECKING:
    from collections.abc import Mapping

USAGE: Final = 2
INTEGRITY: Final = 4


class MilestoneCode(StrEnum):
    """Why a verb refuses, each with its exit code.

    `input_invalid`, `configuration_invalid`: a document breaks a rule. `store_unsafe`: the store is relative,
    inside a checkout or not private. `run_unknown`, `run_exists`, `run_locked`, `run_ended`: about the run
    that was named. `row_required`: the verb comes before the row it needs. `reuse_refused`,
    `prior_evidence_unreadable`: an earlier run does not prove what this one would take over. `node_unknown`,
    `criteria_digest_differs`, `receipt_unreadable`, `commit_unresolved`, `not_integrated`: about `accept`.
    `journal_broken`, `row_not_written`, `pinned_input_changed`, `worktree_foreign`, `git_failed`: integrity.
    """

    exit: int

    def __new__(cls, word: str, code: int) -> Self:
        """A word and its exit code."""
        member = str.__new__(cls, word)
        member._value_ = word
        member.exit = code
        return member

    INPUT_INVALID = "input_invalid", USAGE
    CONFIGURATION_INVALID = "configuration_invalid", USAGE
    STORE_UNSAFE = "store_unsafe", USAGE
    RUN_UNKNOWN = "run_unknown", USAGE
    RUN_EXISTS = "run_exists", USAGE
    RUN_LOCKED = "run_locked", USAGE
    RUN_ENDED = "run_ended", USAGE
    ROW_REQUIRED = "row_required", USAGE
    REUSE_REFUSED = "reuse_refused", USAGE
    PRIOR_UNREADABLE = "prior_evidence_unreadable", USAGE
    NODE_UNKNOWN = "node_unknown", USAGE
    CRITERIA_DIFFER = "criteria_digest_differs", USAGE
    RECEIPT_UNREADABLE = "receipt_unreadable", USAGE
    COMMIT_UNRESOLVED = "commit_unresolved", USAGE
    NOT_INTEGRATED = "not_integrated", USAGE
    ACCEPTANCE_UNKNOWN = "acceptance_unknown", USAGE
    JOURNAL_BROKEN = "journal_broken", INTEGRITY
    ROW_NOT_WRITTEN = "row_not_written", INTEGRITY
    PINNED_INPUT_CHANGED = "pinned_input_changed", INTEGRITY
    WORKTREE_FOREIGN = "worktree_foreign", INTEGRITY
    GIT_FAILED = "git_failed", INTEGRITY


class MilestoneError(Exception):
    """A refusal.

    Attributes:
        code: the closed word, with its exit code.
        detail: what of the input or journal it is about, such as a pointer or a row; may be empty.
        sentence: what to do, for people.
    """

    def __init__(self, code: MilestoneCode, detail: str = "", sentence: str = "") -> None:
        self.code = code
        self.detail = detail
        self.sentence = sentence
        parted = ": " if code is not MilestoneCode.JOURNAL_BROKEN else " "
        told = f"{code.value}{parted}{detail}" if detail else code.value
        super().__init__(f"{told}. {sentence}" if sentence else told)


class StopCode(StrEnum):
    """How a close stops; the table of milestone.md, section 9, and the stops of the gate and the audit.

    The `crosscheck_receipt_…`, `verify_unavailable`, `engine_…`, `explorer_unavailable` and
    `executor_unavailable` ones are holds.
    """

    FINAL_GATE_TEST_FAILED = "final_gate_test_failed"
    QA_FAILED = "qa_failed"
    QA_INCONCLUSIVE = "qa_inconclusive"
    FINAL_GATE_UNSETTLED = "final_gate_unsettled"
    CROSSCHECK_PENDING = "crosscheck_pending"
    CROSSCHECK_REFUSED = "crosscheck_refused"
    CROSSCHECK_FAILED = "crosscheck_failed"
    CROSSCHECK_NO_VERDICT = "crosscheck_no_verdict"
    BLOCKED_SCOPE = "blocked_scope"
    CLOSE_FIX_FAILED = "close_fix_failed"
    CLOSE_UNVERIFIED = "close_unverified"
    AUDIT_MISMATCH = "audit_mismatch"
    UNIT_CHECK_FAILED = "unit_check_failed"
    VERIFY_UNAVAILABLE = "verify_unavailable"
    RECEIPT_MISSING = "crosscheck_receipt_missing"
    RECEIPT_UNVERIFIED = "crosscheck_receipt_unverified"
    RECEIPT_NOT_COPIED = "crosscheck_receipt_not_copied"
    RECEIPT_MISMATCH = "crosscheck_receipt_mismatch"
    ENGINE_QUOTA = "engine_quota"
    ENGINE_NO_ANSWER = "engine_no_answer"
    EXPLORER_UNAVAILABLE = "explorer_unavailable"
    EXECUTOR_UNAVAILABLE = "executor_unavailable"


class Reason(StrEnum):
    """Why a crosscheck was refused or failed; the last two are read in journals of other makers only."""

    NO_ENGINE = "crosscheck_no_engine"
    PRIOR_INVALID = "crosscheck_prior_invalid"
    NO_RUN_DIR = "crosscheck_no_run_dir"
    WORKTREE_MOVED = "crosscheck_worktree_moved"
    WORKTREE_DIRTY = "crosscheck_worktree_dirty"
    PROMPT_TOO_LARGE = "crosscheck_prompt_too_large"
    PASS_INVALID = "crosscheck_pass_invalid"  # noqa: S105 - a word, no password
    PASS_WORKTREE_CHANGED = "crosscheck_pass_worktree_changed"  # noqa: S105 - likewise
    PASS_TOOL_FAILED = "crosscheck_pass_tool_failed"  # noqa: S105 - likewise
    AUTHOR_UNDECIDED = "crosscheck_author_undecided"
    NO_INDEPENDENT_ENGINE = "crosscheck_no_independent_engine"


LEGACY_REASONS: Final = frozenset({Reason.AUTHOR_UNDECIDED, Reason.NO_INDEPENDENT_ENGINE})
"""Reasons of older journals, which stay readable and are given by nothing here."""

_ASKS: Final = {
    StopCode.CROSSCHECK_PENDING: "crosscheck_pending",
    StopCode.CROSSCHECK_REFUSED: "configuration",
    StopCode.CROSSCHECK_FAILED: "crosscheck_failed",
    StopCode.CROSSCHECK_NO_VERDICT: "crosscheck_no_verdict",
}


@dataclass(frozen=True, slots=True)
class Stop:
    """How a verb that ran ends without a close.

    Attributes:
        outcome: `held` or `escalated`.
        code: the closed word.
        sentence: what happened and what to do, for people.
        reason: why, where a code has several reasons; may be empty.
        carries: what else the row of the stop holds; plain JSON values.
    """

    outcome: Outcome
    code: StopCode
    sentence: str
    reason: str = ""
    carries: Mapping[str, Any] = field(default_factory=dict)

    @property
    def ask(self) -> str:
        """What is asked of whoever gets the escalation."""
        return _ASKS.get(self.code, self.code.value)


class Stopped(Exception):  # noqa: N818 - an ending, not a defect
    """A step of a close stops it."""

    def __init__(self, stop: Stop) -> None:
        self.stop = stop
        told = f"{stop.code.value} ({stop.reason})" if stop.reason else stop.code.value
        super().__init__(f"{told}: {stop.sentence}")


def held(code: StopCode, sentence: str, **carries: Any) -> Stopped:  # noqa: ANN401 - plain JSON values
    """A hold."""
    return Stopped(Stop(Outcome.HELD, code, sentence, carries=carries))


def escalated(code: StopCode, sentence: str, reason: str = "", **carries: Any) -> Stopped:  # noqa: ANN401 - likewise
    """An escalation."""
    return Stopped(Stop(Outcome.ESCALATED, code, sentence, reason, carries))
