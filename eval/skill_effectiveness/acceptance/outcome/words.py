"""The closed words of the accepted-outcome contract.

Source: outcome.md, sections 2, 4, 6 to 9 and 11. The published document holds the same lists, and `contract`
refuses one that differs.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final

CONTRACT: Final = "accepted-outcome.v1"
CLOSER: Final = "system:accepted-outcome"
"""Who closes an issue here; no person and no principal may have this name."""

SECTIONS: Final = ("problem", "scope", "acceptance_criteria", "success_metrics")
CRITERIA: Final = "acceptance_criteria"
ATTEMPT_FIELDS: Final = ("issue_number", "repository", "authority", "budget", "revision")
REQUIRED_RECORDS: Final = ("verifier", "falsifier", "terminal_result")
TERMINAL_RESULTS: Final = ("passed", "failed")
EXCLUDED: Final = ("prompts", "logs", "private_repositories", "private_receipts")
PUBLIC: Final = "public"
PRIVATE: Final = "private"
COMPLETED: Final = "completed"
"""The reason that a close gives."""

COMMIT: Final = r"^(?:[0-9a-f]{40}|[0-9a-f]{64})$"
REPOSITORY: Final = r"^[A-Za-z0-9][A-Za-z0-9._-]*(?:/[A-Za-z0-9][A-Za-z0-9._-]*){0,4}$"


class Actor(StrEnum):
    """Who did the work."""

    AGENT = "agent"
    HUMAN = "human"


class Result(StrEnum):
    """What a claim evaluates to."""

    ACCEPTED = "accepted"
    INCOMPLETE = "incomplete"
    UNAUTHORIZED = "unauthorized"
    FAILED = "failed"
    NOT_APPLICABLE = "not_applicable"


NON_ACCEPTED: Final = (Result.INCOMPLETE, Result.UNAUTHORIZED, Result.FAILED)


class FalseGreen(StrEnum):
    """Ways in which a green result proves nothing; a claim that names another word fails under that word."""

    FIXTURE_ASSERT = "false_green_fixture_assert"
    API_MIRROR = "false_green_api_mirror"
    MOCKED_SEAM = "false_green_mocked_seam"
    COVERAGE_THEATER = "false_green_coverage_theater"
    ROUND_UP = "false_green_round_up"


class ReasonKey(StrEnum):
    """Why a claim is not accepted, not graded, or accepted without closing its issue."""

    HUMAN_ONLY_WORK = "human_only_work"
    AGENTS_DISABLED_REPOSITORY = "agents_disabled_repository"
    MISSING_ISSUE_SECTION = "missing_issue_section"
    MISSING_ATTEMPT_FIELD = "missing_attempt_field"
    MISSING_VERIFIER = "missing_verifier"
    MISSING_FALSIFIER = "missing_falsifier"
    MISSING_TERMINAL_RESULT = "missing_terminal_result"
    UNEVIDENCED_CRITERION = "unevidenced_criterion"
    ATTEMPT_NOT_BOUND_TO_ISSUE = "attempt_not_bound_to_issue"
    VERIFIER_NOT_ADMITTED = "verifier_not_admitted"
    VERIFIER_NOT_INDEPENDENT = "verifier_not_independent"
    VERIFIER_FAILED = "verifier_failed"
    FALSE_GREEN = "false_green"
    CLOSURE_WITHHELD = "closure_withheld"


EXEMPTIONS: Final = (ReasonKey.HUMAN_ONLY_WORK, ReasonKey.AGENTS_DISABLED_REPOSITORY)


class Withheld(StrEnum):
    """Why an accepted claim leaves its issue as it is; the first that applies."""

    NOT_OPTED_IN = "repository_has_not_opted_in"
    CONTRADICTED = "contradicting_evidence"
    ALREADY_CLOSED = "issue_already_closed"


class Family(StrEnum):
    """What kind of receipt an edge leads to. Only `qualification` can close an issue."""

    QUALIFICATION = "qualification"
    BUILD = "build"
    DEPLOYMENT = "deployment"
    PUSH = "push"


class CheckStatus(StrEnum):
    """What a check says about named bytes."""

    PENDING = "pending"
    SUCCEEDED = "succeeded"
    FAILED = "failed"


FAILURES: Final[dict[Family, frozenset[str]]] = {
    Family.QUALIFICATION: frozenset({"failed"}),
    Family.BUILD: frozenset({"failed", "expired"}),
    Family.DEPLOYMENT: frozenset({"reverted", "failed", "cancelled", "superseded"}),
    Family.PUSH: frozenset(),
}
"""The words by which a receipt of a family contradicts a claim."""

RESULTS: Final[dict[Family, frozenset[str]]] = {
    Family.QUALIFICATION: FAILURES[Family.QUALIFICATION] | {"pending", "succeeded"},
    Family.BUILD: FAILURES[Family.BUILD] | {"pending", "complete"},
    Family.DEPLOYMENT: FAILURES[Family.DEPLOYMENT] | {"pending", "live", "succeeded"},
    Family.PUSH: frozenset(),
}
"""Every word that a receipt of a family may carry; that bytes were pushed is no result at all."""


class AttemptState(StrEnum):
    """How far an attempt has come."""

    QUEUED = "queued"
    RUNNING = "running"
    FINISHED = "finished"
    FAILED = "failed"
    CANCELLED = "cancelled"

    @property
    def terminal(self) -> bool:
        """Whether nothing more comes of it."""
        return self in {AttemptState.FINISHED, AttemptState.FAILED, AttemptState.CANCELLED}


class IssueState(StrEnum):
    """Whether an issue is open, as observed."""

    OPEN = "open"
    CLOSED = "closed"
