"""A claim as handed in, and what counts as present in it.

Source: outcome.md, section 3. A member that is not known, and an actor that is neither word, are errors of
the input. What is missing or has the wrong type is not refused here: it is graded.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pydantic import BaseModel, ConfigDict, JsonValue

from skill_effectiveness.acceptance.outcome.errors import OutcomeCode, OutcomeError
from skill_effectiveness.acceptance.outcome.words import Actor
from skill_effectiveness.evidence.documents import validate
from skill_effectiveness.evidence.faults import EvidenceError
from skill_effectiveness.evidence.strict import Profile, read_json

if TYPE_CHECKING:
    from collections.abc import Mapping

_CLOSED: Final = ConfigDict(extra="forbid", strict=True, frozen=True)


class ClaimedSections(BaseModel):
    """The four sections; `acceptance_criteria` is one text or a list of texts."""

    model_config = _CLOSED
    problem: JsonValue = None
    scope: JsonValue = None
    acceptance_criteria: JsonValue = None
    success_metrics: JsonValue = None


class ClaimedIssue(BaseModel):
    """Which issue, and what it asks for."""

    model_config = _CLOSED
    number: JsonValue = None
    repository: JsonValue = None
    sections: ClaimedSections = ClaimedSections()


class ClaimedAttempt(BaseModel):
    """What the attempt was bound to."""

    model_config = _CLOSED
    issue_number: JsonValue = None
    repository: JsonValue = None
    authority: JsonValue = None
    budget: JsonValue = None
    revision: JsonValue = None


class ClaimedVerifier(BaseModel):
    """Who verified."""

    model_config = _CLOSED
    id: JsonValue = None
    admitted: JsonValue = None
    independent_of_producer: JsonValue = None


class ClaimedVerification(BaseModel):
    """What verification came to, and what would have shown it wrong."""

    model_config = _CLOSED
    verifier: ClaimedVerifier = ClaimedVerifier()
    separation_required: JsonValue = None
    falsifier: JsonValue = None
    terminal_result: JsonValue = None
    false_green_classes: JsonValue = None


class ClaimedEvidence(BaseModel):
    """Which receipt satisfied which criterion."""

    model_config = _CLOSED
    criterion: JsonValue = None
    receipt: JsonValue = None
    visibility: JsonValue = None


class Claim(BaseModel):
    """One claim: this attempt completed this issue."""

    model_config = _CLOSED
    actor: Actor
    agents_enabled: JsonValue = None
    issue: ClaimedIssue = ClaimedIssue()
    attempt: ClaimedAttempt = ClaimedAttempt()
    verification: ClaimedVerification = ClaimedVerification()
    evidence: tuple[ClaimedEvidence, ...] = ()


def read_claim(data: bytes) -> Claim:
    """The claim in the bytes of a file.

    Raises:
        OutcomeError: `claim_invalid`, with the pointer.
    """
    try:
        value = read_json(data, Profile.WIRE, want_object=True)
        if isinstance(value, dict):
            value = _shaped(value, _OBJECTS) | {"evidence": _objects_of(value.get("evidence"))}
        return validate(Claim, value)
    except EvidenceError as error:
        fault = error.faults[0]
        about = f": {fault.where or '/'} {fault.code.value}"
        raise OutcomeError(
            OutcomeCode.CLAIM_INVALID, f"{fault.sentence} Nothing was graded.", about
        ) from error


_OBJECTS: Final[dict[str, object]] = {
    "issue": {"sections": {}},
    "attempt": {},
    "verification": {"verifier": {}},
}
"""Members that are objects, and those inside them that are."""


def _shaped(value: dict[str, JsonValue], objects: Mapping[str, object]) -> dict[str, JsonValue]:
    """The value with an empty object wherever another type stands in the place of one: nothing is there."""
    shaped = dict(value)
    for name, inner in objects.items():
        found = value.get(name)
        assert isinstance(inner, dict)  # noqa: S101 - of the table above
        shaped[name] = _shaped(found if isinstance(found, dict) else {}, inner)
    return shaped


def _objects_of(value: JsonValue) -> list[JsonValue]:
    """A list of objects, in which an item of another type is an empty one: it evidences nothing."""
    items = value if isinstance(value, list) else []
    return [item if isinstance(item, dict) else {} for item in items]


def is_present(value: JsonValue) -> bool:
    """Whether a member says anything: text not blank, a container not empty, anything else not null."""
    if isinstance(value, str):
        return bool(value.strip())
    if isinstance(value, dict | list):
        return bool(value)
    return value is not None


def criteria_of(claim: Claim) -> tuple[str, ...]:
    """The acceptance criteria in order; none when the section is missing or holds what is no text."""
    said = claim.issue.sections.acceptance_criteria
    entries = said if isinstance(said, list) else [said]
    criteria = tuple(entry for entry in entries if isinstance(entry, str) and entry.strip())
    return criteria if len(criteria) == len(entries) else ()
