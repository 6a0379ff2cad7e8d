"""The published contract document, held against the code.

Source: outcome.md, section 2. Nothing is graded under a contract that says something else than the evaluator
does; the order of a list is part of what it says.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal

from pydantic import BaseModel, ConfigDict

from skill_effectiveness.acceptance.outcome.errors import OutcomeCode, OutcomeError
from skill_effectiveness.acceptance.outcome.words import (
    ATTEMPT_FIELDS,
    EXCLUDED,
    EXEMPTIONS,
    NON_ACCEPTED,
    REQUIRED_RECORDS,
    SECTIONS,
    TERMINAL_RESULTS,
    FalseGreen,
)
from skill_effectiveness.evidence.documents import One, parse
from skill_effectiveness.evidence.faults import EvidenceError
from skill_effectiveness.evidence.fsops import read_public
from skill_effectiveness.evidence.strict import Profile

if TYPE_CHECKING:
    from collections.abc import Iterator

    from skill_effectiveness.evidence.fsops import FileSystem

FILE: Final = "accepted-outcome-v1.json"
_BYTES: Final = 1_048_576
_CLOSED: Final = ConfigDict(extra="forbid", strict=True, frozen=True)


class IssueTemplate(BaseModel):
    """What an issue has to say."""

    model_config = _CLOSED
    required_sections: tuple[str, ...]


class AttemptBinding(BaseModel):
    """What binds an attempt."""

    model_config = _CLOSED
    required_fields: tuple[str, ...]


class Verification(BaseModel):
    """What verification has to leave."""

    model_config = _CLOSED
    required_records: tuple[str, ...]
    terminal_results: tuple[str, ...]
    verifier_admission: str
    producer_verifier_separation: str


class ResultStates(BaseModel):
    """The results of an evaluation."""

    model_config = _CLOSED
    accepted: str
    non_accepted: tuple[str, ...]
    not_applicable: tuple[str, ...]


class Visibility(BaseModel):
    """What a public projection never holds."""

    model_config = _CLOSED
    public_projection_excludes: tuple[str, ...]


class ContractDocument(BaseModel):
    """The document as published."""

    model_config = _CLOSED
    contract: Literal["accepted-outcome.v1"]
    version: One
    published_at: str
    summary: str
    issue_template: IssueTemplate
    attempt_binding: AttemptBinding
    verification: Verification
    false_green_classes: tuple[str, ...]
    result_states: ResultStates
    visibility: Visibility


def read_contract(data: bytes) -> ContractDocument:
    """Parse a contract document and hold every list of it against the code's.

    Raises:
        OutcomeError: `invalid_contract`, `contract_divergence`.
    """
    try:
        document = parse(ContractDocument, data, Profile.WIRE)
    except EvidenceError as error:
        fault = error.faults[0]
        sentence = f"{fault.sentence} Nothing is graded; put the published contract back."
        raise OutcomeError(OutcomeCode.INVALID_CONTRACT, sentence, f" at {fault.where or '/'}") from error
    for where, said, meant in _lists(document):
        if said != tuple(meant):
            sentence = "The contract says something else than this evaluator does. Nothing is graded."
            raise OutcomeError(OutcomeCode.CONTRACT_DIVERGENCE, sentence, f" at {where}")
    return document


def _lists(document: ContractDocument) -> Iterator[tuple[str, tuple[str, ...], tuple[str, ...]]]:
    """Each list with its place and what the code has there."""
    verification, states = document.verification, document.result_states
    yield "/issue_template/required_sections", document.issue_template.required_sections, SECTIONS
    yield "/attempt_binding/required_fields", document.attempt_binding.required_fields, ATTEMPT_FIELDS
    yield "/verification/required_records", verification.required_records, REQUIRED_RECORDS
    yield "/verification/terminal_results", verification.terminal_results, TERMINAL_RESULTS
    yield "/false_green_classes", document.false_green_classes, tuple(FalseGreen)
    yield "/result_states/non_accepted", states.non_accepted, NON_ACCEPTED
    yield "/result_states/not_applicable", states.not_applicable, EXEMPTIONS
    yield "/visibility/public_projection_excludes", document.visibility.public_projection_excludes, EXCLUDED


def load_contract(fs: FileSystem, path: Path | None = None) -> ContractDocument:
    """Read the contract that this package publishes, or another file that is to be held against the code.

    Raises:
        OutcomeError: `invalid_contract` (also a file that cannot be read), `contract_divergence`.
    """
    place = Path(__file__).with_name(FILE) if path is None else path
    try:
        data = read_public(fs, place, _BYTES)
    except EvidenceError as error:
        sentence = f"The contract cannot be read ({error.code}). Nothing is graded."
        raise OutcomeError(OutcomeCode.INVALID_CONTRACT, sentence) from error
    return read_contract(data)
