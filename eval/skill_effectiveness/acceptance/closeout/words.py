"""The closed words of closeout.

Source: closeout.md, sections 4, 7, 8 and 9.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final, Self

SPEC_VERSION: Final = "0.1"
GATE: Final = "beforePR"
"""The one gate of this edition."""

RUNNER: Final = "closeout-reference"
"""The producer name of the command records that this runner writes, and the only one that it trusts."""

ENTRY: Final = ".agents/closeout.yaml"
NO_POLICY: Final = "no closeout policy"
UNRESOLVED: Final = "base or head does not resolve to a commit"
MESSAGE_MOST: Final = 4000
"""Characters of a message in a decision."""


class Severity(StrEnum):
    """From the most severe to the least."""

    P0 = "P0"
    P1 = "P1"
    P2 = "P2"
    P3 = "P3"

    def meets(self, limit: Severity) -> bool:
        """Whether a finding of this severity fails a review that fails on `limit`."""
        return self.value <= limit.value


class Verdict(StrEnum):
    """A decision; also what the state of one item pushes it to, where `accepted` pushes to nothing."""

    ACCEPTED = "accepted"
    REJECTED = "rejected"
    BLOCKED = "blocked"


class State(StrEnum):
    """The state of one item, each with the verdict of its class."""

    verdict: Verdict

    def __new__(cls, word: str, verdict: Verdict) -> Self:
        """A word and its class."""
        member = str.__new__(cls, word)
        member._value_ = word
        member.verdict = verdict
        return member

    PASSED = "passed", Verdict.ACCEPTED
    FAILED = "failed", Verdict.REJECTED
    MISSING = "missing", Verdict.BLOCKED
    STALE = "stale", Verdict.BLOCKED
    UNSUPPORTED = "unsupported", Verdict.BLOCKED
    INDEPENDENCE = "independence", Verdict.BLOCKED
    UNTRUSTED = "untrusted", Verdict.BLOCKED
    INVALID = "invalid", Verdict.BLOCKED


class Trust(StrEnum):
    """What a command record needs besides its producer: nothing, or its digest in the runner's journal."""

    PRODUCER = "producer"
    JOURNAL = "journal"


class PolicyFrom(StrEnum):
    """Where the policy is read: the working tree, or the objects of the base commit."""

    WORKTREE = "worktree"
    BASE = "base"


class WarningCode(StrEnum):
    """What a reader should know and what changes neither decision nor exit code."""

    POLICY_DIFFERS_FROM_BASE = "policy_differs_from_base"
    REVIEWER_IDENTITY_UNOBSERVED = "reviewer_identity_unobserved"
    REVIEWER_MODEL_DIFFERS = "reviewer_model_differs"
