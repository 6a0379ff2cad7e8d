"""The closed codes of a trial and the one error that carries them (trials.md, section 4).

A sentence is written for people; machine output prints the code alone. No error of this room carries a path
of the machine, a prompt, model output or a credential.
"""

from __future__ import annotations

from enum import StrEnum


class TrialCode(StrEnum):
    """Every reason for which a trial is not prepared, not advanced or not believed."""

    BAD_RECORD = "bad_record"
    """A document that a caller handed over fails its model."""
    TRIAL_MISSING = "trial_missing"
    """There is no such trial."""
    REGISTRY_MISMATCH = "registry_mismatch"
    """Registry, plan and tier disagree, or two registries are mixed."""
    PLAN_MISSING = "plan_missing"
    """A study prepares without a frozen plan, or the plan's file is absent."""
    PLAN_MISMATCH = "plan_mismatch"
    """The manifest lies outside the plan."""
    IDENTITY_MISMATCH = "identity_mismatch"
    """A sample is reused with other fixed fields."""
    TERMINAL = "terminal"
    """The trial has ended."""
    VERSION_CONFLICT = "version_conflict"
    """The stored version is another than the caller saw."""
    BUDGET_EXCEEDED = "budget_exceeded"
    """Consumption is over a limit, or nothing is left."""
    NO_PROGRESS = "no_progress"
    """Consumption or run order falls, or an interim stop does not advance."""
    CURSOR_INVALID = "cursor_invalid"
    """A cursor is missing or malformed."""
    EVIDENCE_MISSING = "evidence_missing"
    """Completion without events, audit or outcome."""
    EVIDENCE_INVALID = "evidence_invalid"
    """Rows or files are malformed, or the registry is not known."""
    ISOLATION_BREACH = "isolation_breach"
    """A breach of isolation was observed."""
    PROOF_MISSING = "proof_missing"
    """A proof is absent that the tier does not waive."""
    BINDING_MISMATCH = "binding_mismatch"
    """A completed trial is not what its completion bound."""


class TrialError(Exception):
    """A trial refuses.

    Attributes:
        code: the closed word for machines.
        where: a JSON pointer, a row or a root-relative name; empty for the whole request.
        sentence: one sentence for people that says what to do next.
        field: the field it is about, where one is named.
    """

    def __init__(self, code: TrialCode, where: str, sentence: str, *, field: str | None = None) -> None:
        self.code = code
        self.where = where
        self.sentence = sentence
        self.field = field
        super().__init__(sentence)
