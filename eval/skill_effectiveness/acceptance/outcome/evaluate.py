"""The evaluator: a claim in, a result with typed reasons out.

Source: outcome.md, section 4. Stages in order; the first that has anything to say decides alone, with all its
reasons. A pure function of the claim.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from skill_effectiveness.acceptance.outcome.claim import criteria_of, is_present
from skill_effectiveness.acceptance.outcome.words import (
    ATTEMPT_FIELDS,
    CRITERIA,
    SECTIONS,
    TERMINAL_RESULTS,
    Actor,
    ReasonKey,
    Result,
)
from skill_effectiveness.evidence.canonical import dump

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pydantic import JsonValue

    from skill_effectiveness.acceptance.outcome.claim import Claim, ClaimedEvidence


@dataclass(frozen=True, slots=True)
class Reason:
    """One typed reason.

    Attributes:
        key: the closed word.
        detail: which section, field, criterion or class; empty where the key says all.
    """

    key: ReasonKey
    detail: str = ""

    @property
    def text(self) -> str:
        """`key`, or `key:detail`."""
        return f"{self.key.value}:{self.detail}" if self.detail else self.key.value


@dataclass(frozen=True, slots=True)
class Satisfied:
    """A criterion and the receipt that satisfied it, as the claim has them."""

    criterion: str
    receipt: JsonValue
    visibility: JsonValue


@dataclass(frozen=True, slots=True)
class AcceptedOutcome:
    """What an accepted claim connects."""

    issue_number: JsonValue
    repository: JsonValue
    revision: JsonValue
    verifier: JsonValue
    falsifier: JsonValue
    criteria: tuple[Satisfied, ...]

    def to_json(self) -> dict[str, JsonValue]:
        """As plain values."""
        criteria: list[JsonValue] = [
            {"criterion": each.criterion, "receipt": each.receipt, "visibility": each.visibility}
            for each in self.criteria
        ]
        return {
            "issue_number": self.issue_number,
            "repository": self.repository,
            "revision": self.revision,
            "verifier": self.verifier,
            "falsifier": self.falsifier,
            "criteria": criteria,
        }


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of one evaluation; `accepted` is there exactly when the result is."""

    result: Result
    reasons: tuple[Reason, ...] = ()
    accepted: AcceptedOutcome | None = None


def evaluate(claim: Claim) -> Outcome:
    """Grade a claim."""
    for result, stage in _STAGES:
        reasons = tuple(stage(claim))
        if reasons:
            return Outcome(result, reasons)
    return Outcome(Result.ACCEPTED, accepted=_accepted(claim))


def _applicability(claim: Claim) -> Iterator[Reason]:
    if claim.actor is Actor.HUMAN:
        yield Reason(ReasonKey.HUMAN_ONLY_WORK)
    elif claim.agents_enabled is not True:
        yield Reason(ReasonKey.AGENTS_DISABLED_REPOSITORY)


def _structure(claim: Claim) -> Iterator[Reason]:
    sections, verification = claim.issue.sections, claim.verification
    criteria = criteria_of(claim)
    for name in SECTIONS:
        there = bool(criteria) if name == CRITERIA else is_present(getattr(sections, name))
        if not there:
            yield Reason(ReasonKey.MISSING_ISSUE_SECTION, name)
    for name in ATTEMPT_FIELDS:
        if not is_present(getattr(claim.attempt, name)):
            yield Reason(ReasonKey.MISSING_ATTEMPT_FIELD, name)
    # Flags without a name are no verifier that anybody could check.
    if not is_present(verification.verifier.id):
        yield Reason(ReasonKey.MISSING_VERIFIER)
    if not is_present(verification.falsifier):
        yield Reason(ReasonKey.MISSING_FALSIFIER)
    if verification.terminal_result not in TERMINAL_RESULTS:
        yield Reason(ReasonKey.MISSING_TERMINAL_RESULT)
    for criterion in criteria:
        if _evidence_of(claim, criterion) is None:
            yield Reason(ReasonKey.UNEVIDENCED_CRITERION, criterion)


def _authority(claim: Claim) -> Iterator[Reason]:
    issue, attempt, verification = claim.issue, claim.attempt, claim.verification
    bound = _same(issue.number, attempt.issue_number) and _same(issue.repository, attempt.repository)
    if not bound:
        yield Reason(ReasonKey.ATTEMPT_NOT_BOUND_TO_ISSUE)
    if verification.verifier.admitted is not True:
        yield Reason(ReasonKey.VERIFIER_NOT_ADMITTED)
    # Only a plain false waives separation: what is missing or of another type does not.
    required = verification.separation_required is not False
    if required and verification.verifier.independent_of_producer is not True:
        yield Reason(ReasonKey.VERIFIER_NOT_INDEPENDENT)


def _terminal(claim: Claim) -> Iterator[Reason]:
    if claim.verification.terminal_result != "passed":
        yield Reason(ReasonKey.VERIFIER_FAILED)
    named = _false_greens(claim.verification.false_green_classes)
    if named:
        yield Reason(ReasonKey.FALSE_GREEN, ",".join(named))


_STAGES: Final[tuple[tuple[Result, Callable[[Claim], Iterator[Reason]]], ...]] = (
    (Result.NOT_APPLICABLE, _applicability),
    (Result.INCOMPLETE, _structure),
    (Result.UNAUTHORIZED, _authority),
    (Result.FAILED, _terminal),
)


def _false_greens(said: JsonValue) -> tuple[str, ...]:
    """The classes that are named, in order; what is no text is named by its JSON, so that nothing is lost."""
    entries = said if isinstance(said, list) else [said]
    return tuple(
        entry.strip() if isinstance(entry, str) else dump(entry).decode()
        for entry in entries
        if is_present(entry)
    )


def _same(one: JsonValue, other: JsonValue) -> bool:
    """Whether two JSON values are equal; in Python 1 and true would be."""
    return dump(one) == dump(other)


def _evidence_of(claim: Claim, criterion: str) -> ClaimedEvidence | None:
    """The first item with exactly this criterion and a receipt."""
    found = (each for each in claim.evidence if each.criterion == criterion and is_present(each.receipt))
    return next(found, None)


def _accepted(claim: Claim) -> AcceptedOutcome:
    found = [(criterion, _evidence_of(claim, criterion)) for criterion in criteria_of(claim)]
    return AcceptedOutcome(
        issue_number=claim.attempt.issue_number,
        repository=claim.attempt.repository,
        revision=claim.attempt.revision,
        verifier=claim.verification.verifier.id,
        falsifier=claim.verification.falsifier,
        criteria=tuple(
            Satisfied(criterion, item.receipt, item.visibility)
            for criterion, item in found
            if item is not None
        ),
    )
