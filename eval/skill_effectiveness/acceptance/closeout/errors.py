"""Why closeout blocks or refuses, as closed codes.

Source: closeout.md, sections 4, 5, 11, 12 and 16. `CloseoutError` ends with exit 3, `UsageRefused` with exit
2. The message of an error about policy or evidence is what the decision says too; it names files of the
repository by their relative path and nothing outside it.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final


class CloseoutCode(StrEnum):
    """Why nothing can be accepted, stored or run.

    `policy_invalid`: a policy file, import or skill breaks a rule. `commits_unresolved`: base or head is no
    commit here. `root_not_top`: the policy root is inside a checkout but not its top. `worktree_unavailable`:
    no detached worktree could be made. `command_unobserved`: nobody saw how a command ended.
    `evidence_unreadable`: the evidence directory cannot be listed. `evidence_invalid`: a file in it is no
    record. `evidence_path_invalid`: a record would get an illegal place. `evidence_locked`: another process
    stores evidence. `evidence_not_stored`: writing failed. `store_unsafe`: the private store cannot be used.
    `journal_broken`: its journal is damaged. `findings_invalid`: a finding breaks the schema.
    `decision_misfit`: our own document does not fit its schema. The `review_…` codes: no record was stored.
    """

    POLICY_INVALID = "policy_invalid"
    COMMITS_UNRESOLVED = "commits_unresolved"
    ROOT_NOT_TOP = "root_not_top"
    WORKTREE_UNAVAILABLE = "worktree_unavailable"
    COMMAND_UNOBSERVED = "command_unobserved"
    EVIDENCE_UNREADABLE = "evidence_unreadable"
    EVIDENCE_INVALID = "evidence_invalid"
    EVIDENCE_PATH_INVALID = "evidence_path_invalid"
    EVIDENCE_LOCKED = "evidence_locked"
    EVIDENCE_NOT_STORED = "evidence_not_stored"
    STORE_UNSAFE = "store_unsafe"
    JOURNAL_BROKEN = "journal_broken"
    FINDINGS_INVALID = "findings_invalid"
    DECISION_MISFIT = "decision_misfit"
    REVIEW_PROVIDER_UNAVAILABLE = "review_provider_unavailable"
    REVIEW_TIMED_OUT = "review_timed_out"
    REVIEW_FAILED = "review_failed"
    REVIEW_ANSWER_INVALID = "review_answer_invalid"
    REVIEW_WORKTREE_CHANGED = "review_worktree_changed"
    REVIEW_PROMPT_TOO_LARGE = "review_prompt_too_large"


class CloseoutError(Exception):
    """Something blocks.

    Attributes:
        code: the closed word.
        message: what a decision says about it; free of paths outside the repository.
        advice: one sentence for people that says what to do next; may be empty.
    """

    def __init__(self, code: CloseoutCode, message: str, advice: str = "") -> None:
        self.code: Final = code
        self.message: Final = message
        self.advice: Final = advice
        super().__init__(f"{message}. {advice}" if advice else message)


class PolicyError(CloseoutError):
    """The policy is present and cannot be used; it is never taken for one without requirements."""

    def __init__(self, message: str) -> None:
        super().__init__(
            CloseoutCode.POLICY_INVALID, message, "Correct the policy; until then nothing is accepted."
        )


class UsageRefused(Exception):  # noqa: N818 - a refusal is an answer, not a defect
    """The invocation is invalid; nothing was touched."""
