"""The documents of an active control, each exact and bound by its own hash (controls.md section 3).

An own hash is the object digest of the document without it; a document whose hash is another one does not
load. Nothing here says who wrote a text: hashes bind recorded bytes and declarations.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, Self, TypeVar

from pydantic import Field, model_validator

from skill_effectiveness.controls.errors import ControlCode, ControlError
from skill_effectiveness.evidence.canonical import digest_object, digest_text, dump_line
from skill_effectiveness.evidence.documents import RuleBroken, parse, validate
from skill_effectiveness.evidence.faults import EvidenceError
from skill_effectiveness.evidence.strict import Profile
from skill_effectiveness.protocol.document import Count, DigestText, FrozenModel, No, One, told
from skill_effectiveness.protocol.registries import Scope
from skill_effectiveness.protocol.skill_events import Fixture, MatchedCall
from skill_effectiveness.protocol.words import TaskFamily

if TYPE_CHECKING:
    from collections.abc import Mapping

    from skill_effectiveness.evidence.strict import JsonValue

CLAIM_FILE: Final = "active-control-claim.json"
STATE_FILE: Final = "controller-state.json"
SELECTOR_INPUT_FILE: Final = "selector-input.json"
SELECTION_FILE: Final = "active-control-selection.json"
MEASUREMENT_FILE: Final = "owner-relative-measurement.json"
EVIDENCE_FILES: Final = {scope: f"matched-call-evidence-{scope}.json" for scope in Scope}

OpaqueId = Annotated[str, Field(pattern=r"^slot-[0-9a-f]{16}$")]
Whole = Annotated[int, Field(ge=0)]
LONGEST_TEXT: Final = 1_000_000
"""Code points; a selection holds ten such texts and is still read whole."""

Text = Annotated[str, Field(min_length=1, max_length=LONGEST_TEXT)]


def own_hash(document: FrozenModel, field: str) -> str:
    """The object digest of a document without one of its fields."""
    plain = document.model_dump(mode="json")
    plain.pop(field)
    return digest_object(plain)


class _Hashed(FrozenModel):
    """A document that carries the digest of its other fields; `_OWN` names the field."""

    @model_validator(mode="after")
    def _own_hash_fits(self) -> Self:
        field = _OWN[type(self).__name__]
        if getattr(self, field) != own_hash(self, field):
            raise RuleBroken(f"{field} is not the hash of this document; it was edited after it was written.")
        return self


class ScopeContents(FrozenModel):
    """One text per scope."""

    subagent: Text
    main: Text

    def of(self, scope: Scope) -> str:
        """The text of one scope."""
        return self.main if scope is Scope.MAIN else self.subagent

    def hashes(self) -> ScopeHashes:
        """The digests of both texts."""
        return ScopeHashes(subagent=digest_text(self.subagent), main=digest_text(self.main))


class ScopeHashes(FrozenModel):
    """The digest of one text per scope."""

    subagent: DigestText
    main: DigestText

    def of(self, scope: Scope) -> str:
        """The digest of one scope."""
        return self.main if scope is Scope.MAIN else self.subagent


class Brief(FrozenModel):
    """What both authors were asked to write."""

    schema_version: One
    task_families: Annotated[tuple[TaskFamily, ...], Field(min_length=1)]
    instruction: Text

    @model_validator(mode="after")
    def _families_are_sorted(self) -> Self:
        if list(self.task_families) != sorted(set(self.task_families)):
            raise RuleBroken("Task families must be sorted and named once.")
        return self


class Rubric(FrozenModel):
    """What the selector looks at, and nothing else."""

    schema_version: One
    criteria: tuple[Literal["readability"], Literal["actionability"], Literal["information_density"]]


class Constraints(FrozenModel):
    """How long each text may be, in code points, both ends included."""

    schema_version: One
    scopes: tuple[Literal["subagent"], Literal["main"]]
    minimum_characters_per_scope: Count
    maximum_characters_per_scope: Count

    @model_validator(mode="after")
    def _bounds_hold_something(self) -> Self:
        if self.minimum_characters_per_scope > self.maximum_characters_per_scope:
            raise RuleBroken("The least length must be at most the greatest.")
        return self


class GenerationEvidence(FrozenModel):
    """What an author declared, as digests only."""

    source_kind: Literal["human-author"]
    author_commitment_hash: DigestText
    independence_attestation_hash: DigestText
    input_hash: DigestText
    output_hash: DigestText


class Candidate(_Hashed):
    """One author's texts for both scopes."""

    schema_version: One
    artifact_contract: Literal["skill-effectiveness-active-control-candidate-v1"]
    brief_hash: DigestText
    scope_contents: ScopeContents
    scope_hashes: ScopeHashes
    generation_evidence: GenerationEvidence
    package_hash: DigestText

    @model_validator(mode="after")
    def _hashes_fit(self) -> Self:
        declared = self.generation_evidence
        if self.scope_hashes != self.scope_contents.hashes():
            raise RuleBroken("scope_hashes are not those of scope_contents.")
        if declared.input_hash != self.brief_hash:
            raise RuleBroken("The author's input must be the brief.")
        if declared.output_hash != digest_object(self.scope_contents.model_dump(mode="json")):
            raise RuleBroken("The author's output must be scope_contents.")
        return self


class OwnerReference(_Hashed):
    """The owner's texts, which the choice is measured against and no selector sees."""

    schema_version: One
    artifact_contract: Literal["skill-effectiveness-active-control-owner-reference-v1"]
    scope_contents: ScopeContents
    scope_hashes: ScopeHashes
    reference_hash: DigestText

    @model_validator(mode="after")
    def _hashes_fit(self) -> Self:
        if self.scope_hashes != self.scope_contents.hashes():
            raise RuleBroken("scope_hashes are not those of scope_contents.")
        return self


class Decision(FrozenModel):
    """What the selector decided."""

    schema_version: One
    artifact_contract: Literal["skill-effectiveness-active-control-decision-v1"]
    selector_input_hash: DigestText
    rubric_hash: DigestText
    selected_opaque_id: OpaqueId


class Claim(FrozenModel):
    """One folder belongs to one request."""

    schema_version: One
    artifact_contract: Literal["skill-effectiveness-active-control-claim-v1"]
    request_hash: DigestText
    owner_reference_hash: DigestText


class ShownCandidate(FrozenModel):
    """A candidate as the selector sees it."""

    opaque_id: OpaqueId
    scope_contents: ScopeContents
    scope_hashes: ScopeHashes


class SelectorInput(_Hashed):
    """Everything that a selector is given."""

    schema_version: One
    artifact_contract: Literal["skill-effectiveness-active-control-selector-input-v1"]
    brief: Brief
    brief_hash: DigestText
    rubric: Rubric
    rubric_hash: DigestText
    constraint_spec: Constraints
    constraint_spec_hash: DigestText
    opaque_order: tuple[OpaqueId, OpaqueId]
    candidates: tuple[ShownCandidate, ShownCandidate]
    selector_input_hash: DigestText

    @model_validator(mode="after")
    def _parts_fit(self) -> Self:
        for field in ("brief", "rubric", "constraint_spec"):
            part: FrozenModel = getattr(self, field)
            if getattr(self, f"{field}_hash") != digest_object(part.model_dump(mode="json")):
                raise RuleBroken(f"{field}_hash is not the hash of {field}.")
        if tuple(shown.opaque_id for shown in self.candidates) != self.opaque_order:
            raise RuleBroken("opaque_order must be the order of the candidates.")
        if self.opaque_order[0] == self.opaque_order[1]:
            raise RuleBroken("The two candidates need two ids.")
        if any(shown.scope_hashes != shown.scope_contents.hashes() for shown in self.candidates):
            raise RuleBroken("scope_hashes are not those of scope_contents.")
        return self


class ControllerState(_Hashed):
    """What only the controller knows: whose candidate stands behind which id."""

    schema_version: One
    artifact_contract: Literal["skill-effectiveness-active-control-state-v1"]
    selector_input_hash: DigestText
    candidate_packages: tuple[Candidate, Candidate]
    opaque_mapping: dict[OpaqueId, DigestText]
    owner_reference_hash: DigestText
    request_hash: DigestText
    controller_state_hash: DigestText


class Selection(_Hashed):
    """The sealed choice with everything that it rests on."""

    schema_version: One
    artifact_contract: Literal["skill-effectiveness-active-control-selection-v1"]
    decision: Decision
    selector_input: SelectorInput
    selector_input_hash: DigestText
    brief_hash: DigestText
    rubric: Rubric
    rubric_hash: DigestText
    constraint_spec: Constraints
    constraint_spec_hash: DigestText
    candidate_packages: tuple[Candidate, Candidate]
    candidate_package_hashes: tuple[DigestText, DigestText]
    opaque_mapping: dict[OpaqueId, DigestText]
    opaque_order: tuple[OpaqueId, OpaqueId]
    owner_reference_hash: DigestText
    request_hash: DigestText
    selected_package_hash: DigestText
    selected_scope_contents: ScopeContents
    selected_scope_hashes: ScopeHashes
    independence_status: Literal["human-authorship-attested"]
    independence_boundary: Literal["commitments-and-attestations-do-not-prove-real-world-independence"]
    temporal_boundary: Literal["controller-ordering-only-not-external-timestamp-proof"]
    artifact_hash: DigestText


class Counts(FrozenModel):
    """The three structural counts of one text."""

    paragraph_count: Whole
    instruction_count: Whole
    token_count: Whole


class Checks(FrozenModel):
    """Which counts lie within the tolerance."""

    paragraph_count: bool
    instruction_count: bool
    token_count: bool

    @property
    def passed(self) -> bool:
        """Whether all three do."""
        return self.paragraph_count and self.instruction_count and self.token_count


class MeasuredScope(FrozenModel):
    """One scope of the choice against the owner's, without any text."""

    selected_scope_content_hash: DigestText
    owner_scope_content_hash: DigestText
    selected: Counts
    owner: Counts
    checks: Checks
    status: Literal["pass", "fail"]


class MeasuredScopes(FrozenModel):
    """Both scopes."""

    subagent: MeasuredScope
    main: MeasuredScope


class MeasurementContracts(FrozenModel):
    """How each count is made, by name and version."""

    paragraph_count: Literal["normalized-newline-ascii-blank-line-v1"]
    instruction_count: Literal["markdown-list-item-line-v1"]
    token_count: Literal["ascii-word-run-or-single-unicode-nonwhitespace-codepoint-v1"]
    tolerance: Literal["inclusive-integer-cross-multiplication-9-to-11-over-10-v1"]


class Measurement(_Hashed):
    """How the choice compares with the owner's texts in size and form."""

    schema_version: One
    artifact_contract: Literal["skill-effectiveness-active-control-owner-relative-measurement-v1"]
    selection_artifact_hash: DigestText
    selected_package_hash: DigestText
    owner_reference_hash: DigestText
    request_hash: DigestText
    measurement_contracts: MeasurementContracts
    scopes: MeasuredScopes
    status: Literal["pass", "fail"]
    boundary: Literal["structural-counts-do-not-prove-semantic-equivalence"]
    measurement_hash: DigestText


class Target(FrozenModel):
    """What the gate contract asks for: one bundle with one content."""

    bundle_id: str
    content_hash: DigestText


class Targets(FrozenModel):
    """Both targets; they differ in id and content only."""

    active_control: Target
    oracle: Target


class FixtureResults(FrozenModel):
    """The evaluator's answers to the seven histories, per target."""

    active_control: dict[Fixture, MatchedCall]
    oracle: dict[Fixture, MatchedCall]


class MatchedCallEvidence(_Hashed):
    """A declared deterministic contract; it observes nothing and satisfies no gate."""

    schema_version: One
    artifact_contract: Literal["skill-effectiveness-active-control-matched-call-evidence-v1"]
    selection_artifact_hash: DigestText
    owner_relative_measurement_hash: DigestText
    owner_reference_hash: DigestText
    scope: Scope
    gate_contract: dict[str, Any]
    gate_contract_hash: DigestText
    allowed_target_differences: tuple[Literal["bundle_id"], Literal["content_hash"]]
    targets: Targets
    fixture_results: FixtureResults
    observation_status: Literal["none-fixtures-only"]
    matched_call_gate_satisfied: No
    status: Literal["matched-call-contract-declared-no-observation"]
    boundary: Literal["deterministic-fixtures-no-observed-call-history-or-live-host-enforcement"]
    artifact_hash: DigestText


_OWN: Final = {
    "Candidate": "package_hash",
    "OwnerReference": "reference_hash",
    "SelectorInput": "selector_input_hash",
    "ControllerState": "controller_state_hash",
    "Selection": "artifact_hash",
    "Measurement": "measurement_hash",
    "MatchedCallEvidence": "artifact_hash",
}

DocumentT = TypeVar("DocumentT", bound=FrozenModel)


def read_control_document(
    model: type[DocumentT], data: bytes, name: str, *, published: bool = False
) -> DocumentT:
    """Bytes as one of the documents above.

    Args:
        model: which.
        data: its bytes.
        name: how errors call it.
        published: a step of ours wrote it, so that every byte is known, also those that no hash of an object
            sees; what people hand in may have any layout.

    Raises:
        ControlError: `document_invalid`, with every fault's pointer.
    """
    try:
        found = parse(model, data, Profile.DOCUMENT)
    except EvidenceError as error:
        first = error.faults[0].where
        where = f"{name}#{first}" if first.startswith("/") else name
        raise ControlError(
            ControlCode.DOCUMENT_INVALID, where, f"not as it must be. {told(error)}"
        ) from error
    if published and data != line_of(found):
        raise ControlError(
            ControlCode.DOCUMENT_INVALID,
            name,
            "its bytes are not those that were published, though it says the same; restore the file.",
        )
    return found


def sealed(model: type[DocumentT], fields: Mapping[str, object]) -> DocumentT:
    """A document of ours with its own hash put in."""
    field = _OWN[model.__name__]
    plain: dict[str, JsonValue] = {
        name: value.model_dump(mode="json") if isinstance(value, FrozenModel) else _plain(value)
        for name, value in fields.items()
    }
    return validate(model, plain | {field: digest_object(plain)})


def _plain(value: object) -> JsonValue:
    if isinstance(value, tuple | list):
        return [
            item.model_dump(mode="json") if isinstance(item, FrozenModel) else _plain(item) for item in value
        ]
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, FrozenModel):
        return value.model_dump(mode="json")
    return value  # type: ignore[return-value]


def line_of(document: FrozenModel) -> bytes:
    """A document as it is published: canonical bytes and LF."""
    return dump_line(document.model_dump(mode="json"))
