"""How the documents of one selection follow from each other (controls.md sections 3 to 5).

Each document binds its own bytes by its own hash; here they are bound to one another. Pure: every function
builds what must stand there from what came before, or compares it with what does.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from skill_effectiveness.controls.candidates import check_candidates
from skill_effectiveness.controls.documents import (
    Brief,
    Candidate,
    Claim,
    Constraints,
    ControllerState,
    Decision,
    Measurement,
    MeasurementContracts,
    OwnerReference,
    Rubric,
    Selection,
    SelectorInput,
    ShownCandidate,
    sealed,
)
from skill_effectiveness.controls.errors import ControlCode, ControlError
from skill_effectiveness.controls.structure import measure_scope
from skill_effectiveness.evidence.canonical import digest_object
from skill_effectiveness.protocol.document import DigestText, FrozenModel, One
from skill_effectiveness.protocol.registries import Scope

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

SCHEMA: Final = 1
OPAQUE_BYTES: Final = 8
CONTRACTS: Final = MeasurementContracts(
    paragraph_count="normalized-newline-ascii-blank-line-v1",
    instruction_count="markdown-list-item-line-v1",
    token_count="ascii-word-run-or-single-unicode-nonwhitespace-codepoint-v1",  # noqa: S106 - no password
    tolerance="inclusive-integer-cross-multiplication-9-to-11-over-10-v1",
)


@dataclass(frozen=True, slots=True)
class Request:
    """What a preparation is asked for."""

    brief: Brief
    rubric: Rubric
    constraints: Constraints
    reference: OwnerReference
    candidates: tuple[Candidate, ...]


@dataclass(frozen=True, slots=True)
class Preparation:
    """The three documents of a preparation."""

    claim: Claim
    state: ControllerState
    selector_input: SelectorInput


def prepare(request: Request, entropy: Callable[[int], bytes]) -> Preparation:
    """The documents of a new preparation.

    Ids and the order of presentation are drawn, so that neither tells which candidate was named first.

    Raises:
        ControlError: see `check_candidates`.
    """
    check_candidates(request.brief, request.constraints, request.candidates)
    ids = _distinct_ids(entropy)
    # One bit decides who gets the id that is shown first; ids themselves are drawn, so no order is in them.
    swapped = bool(entropy(1)[0] & 1)
    first, second = request.candidates[::-1] if swapped else request.candidates
    mapping = {ids[0]: first.package_hash, ids[1]: second.package_hash}
    shown = [_shown(ids[0], first), _shown(ids[1], second)]
    selector_input = _selector_input(request, shown)
    request_hash = request_hash_of(
        selector_input.selector_input_hash,
        _hashes(request.candidates),
        mapping,
        request.reference.reference_hash,
    )
    state = sealed(
        ControllerState,
        {
            "schema_version": SCHEMA,
            "artifact_contract": "skill-effectiveness-active-control-state-v1",
            "selector_input_hash": selector_input.selector_input_hash,
            "candidate_packages": tuple(sorted(request.candidates, key=_package)),
            "opaque_mapping": mapping,
            "owner_reference_hash": request.reference.reference_hash,
            "request_hash": request_hash,
        },
    )
    return Preparation(_claim(state), state, selector_input)


def request_hash_of(
    selector_input_hash: str, package_hashes: Sequence[str], mapping: Mapping[str, str], reference_hash: str
) -> str:
    """What a claim is about."""
    return digest_object(
        {
            "selector_input_hash": selector_input_hash,
            "candidate_package_hashes": sorted(package_hashes),
            "opaque_mapping": dict(mapping),
            "owner_reference_hash": reference_hash,
        }
    )


def check_preparation(preparation: Preparation) -> None:
    """Demand that the three documents belong together.

    Raises:
        ControlError: `chain_broken`, or a rule of `check_candidates` that the candidates break.
    """
    state, shown = preparation.state, preparation.selector_input
    check_candidates(shown.brief, shown.constraint_spec, state.candidate_packages)
    by_hash = {candidate.package_hash: candidate for candidate in state.candidate_packages}
    _demand(list(by_hash) == sorted(_hashes(state.candidate_packages)), "the packages are not in order")
    _demand(preparation.claim == _claim(state), "the claim is not about this controller state")
    _demand(state.selector_input_hash == shown.selector_input_hash, "the state is about another input")
    _demand(
        sorted(state.opaque_mapping) == sorted(shown.opaque_order)
        and sorted(state.opaque_mapping.values()) == sorted(by_hash),
        "the mapping does not join the two ids and the two candidates",
    )
    for candidate in shown.candidates:
        behind = by_hash[state.opaque_mapping[candidate.opaque_id]]
        _demand(
            candidate.scope_contents == behind.scope_contents, "a shown text is not that of its candidate"
        )
    expected = request_hash_of(
        shown.selector_input_hash, tuple(by_hash), state.opaque_mapping, state.owner_reference_hash
    )
    _demand(state.request_hash == expected, "the request hash is not that of its parts")


def select(preparation: Preparation, decision: Decision) -> Selection:
    """The sealed selection of a decision.

    Raises:
        ControlError: `chain_broken` for the preparation, `decision_unfit` for the decision.
    """
    check_preparation(preparation)
    state, shown = preparation.state, preparation.selector_input
    if decision.selector_input_hash != shown.selector_input_hash:
        raise _unfit("the decision was made on another selector input.")
    if decision.rubric_hash != shown.rubric_hash:
        raise _unfit("the decision was made by another rubric.")
    if decision.selected_opaque_id not in state.opaque_mapping:
        raise _unfit("the decision names no candidate of this selector input.")
    package_hash = state.opaque_mapping[decision.selected_opaque_id]
    chosen = next(held for held in state.candidate_packages if held.package_hash == package_hash)
    return sealed(
        Selection,
        {
            "schema_version": SCHEMA,
            "artifact_contract": "skill-effectiveness-active-control-selection-v1",
            "decision": decision,
            "selector_input": shown,
            "selector_input_hash": shown.selector_input_hash,
            "brief_hash": shown.brief_hash,
            "rubric": shown.rubric,
            "rubric_hash": shown.rubric_hash,
            "constraint_spec": shown.constraint_spec,
            "constraint_spec_hash": shown.constraint_spec_hash,
            "candidate_packages": state.candidate_packages,
            "candidate_package_hashes": tuple(sorted(_hashes(state.candidate_packages))),
            "opaque_mapping": state.opaque_mapping,
            "opaque_order": shown.opaque_order,
            "owner_reference_hash": state.owner_reference_hash,
            "request_hash": state.request_hash,
            "selected_package_hash": package_hash,
            "selected_scope_contents": chosen.scope_contents,
            "selected_scope_hashes": chosen.scope_hashes,
            "independence_status": "human-authorship-attested",
            "independence_boundary": "commitments-and-attestations-do-not-prove-real-world-independence",
            "temporal_boundary": "controller-ordering-only-not-external-timestamp-proof",
        },
    )


def check_selection(selection: Selection) -> None:
    """Demand that a selection follows from its own parts: it is built again and compared.

    Raises:
        ControlError: `chain_broken`, `decision_unfit`, or a rule of `check_candidates`.
    """
    fields = {
        "schema_version": SCHEMA,
        "artifact_contract": "skill-effectiveness-active-control-state-v1",
        "selector_input_hash": selection.selector_input_hash,
        "candidate_packages": selection.candidate_packages,
        "opaque_mapping": selection.opaque_mapping,
        "owner_reference_hash": selection.owner_reference_hash,
        "request_hash": selection.request_hash,
    }
    state = sealed(ControllerState, fields)
    again = select(Preparation(_claim(state), state, selection.selector_input), selection.decision)
    _demand(
        again == selection,
        f"the artifact_hash {selection.artifact_hash} is not that of the selection's own parts",
    )


def measure(selection: Selection, reference: OwnerReference) -> Measurement:
    """The choice against the owner's texts.

    Raises:
        ControlError: `chain_broken`, or `reference_differs`.
    """
    check_selection(selection)
    if reference.reference_hash != selection.owner_reference_hash:
        raise ControlError(
            ControlCode.REFERENCE_DIFFERS,
            "owner reference",
            "it is not the one committed to at the preparation; give that one.",
        )
    scopes = {
        scope.value: measure_scope(selection.selected_scope_contents, reference.scope_contents, scope)
        for scope in Scope
    }
    passed = all(measured.status == "pass" for measured in scopes.values())
    return sealed(
        Measurement,
        {
            "schema_version": SCHEMA,
            "artifact_contract": "skill-effectiveness-active-control-owner-relative-measurement-v1",
            "selection_artifact_hash": selection.artifact_hash,
            "selected_package_hash": selection.selected_package_hash,
            "owner_reference_hash": reference.reference_hash,
            "request_hash": selection.request_hash,
            "measurement_contracts": CONTRACTS,
            "scopes": scopes,
            "status": "pass" if passed else "fail",
            "boundary": "structural-counts-do-not-prove-semantic-equivalence",
        },
    )


def check_measurement(selection: Selection, reference: OwnerReference, measurement: Measurement) -> None:
    """Demand that a measurement is the one these documents give.

    Raises:
        ControlError: as `measure`, or `chain_broken`.
    """
    _demand(
        measure(selection, reference) == measurement,
        f"the measurement_hash {measurement.measurement_hash} is not that of these documents",
    )


def _demand(holds: bool, told: str) -> None:  # noqa: FBT001 - a condition is what it is about
    if not holds:
        raise ControlError(
            ControlCode.CHAIN_BROKEN, "chain", f"{told}; keep the folder as evidence and start in a new one."
        )


def _unfit(sentence: str) -> ControlError:
    return ControlError(ControlCode.DECISION_UNFIT, "decision", sentence)


def _claim(state: ControllerState) -> Claim:
    return Claim(
        schema_version=SCHEMA,
        artifact_contract="skill-effectiveness-active-control-claim-v1",
        request_hash=state.request_hash,
        owner_reference_hash=state.owner_reference_hash,
    )


def _selector_input(request: Request, shown: list[ShownCandidate]) -> SelectorInput:
    return sealed(
        SelectorInput,
        {
            "schema_version": SCHEMA,
            "artifact_contract": "skill-effectiveness-active-control-selector-input-v1",
            "brief": request.brief,
            "brief_hash": digest_object(request.brief.model_dump(mode="json")),
            "rubric": request.rubric,
            "rubric_hash": digest_object(request.rubric.model_dump(mode="json")),
            "constraint_spec": request.constraints,
            "constraint_spec_hash": digest_object(request.constraints.model_dump(mode="json")),
            "opaque_order": tuple(candidate.opaque_id for candidate in shown),
            "candidates": tuple(shown),
        },
    )


def _shown(opaque_id: str, candidate: Candidate) -> ShownCandidate:
    return ShownCandidate(
        opaque_id=opaque_id, scope_contents=candidate.scope_contents, scope_hashes=candidate.scope_hashes
    )


def _distinct_ids(entropy: Callable[[int], bytes]) -> tuple[str, str]:
    one = other = f"slot-{entropy(OPAQUE_BYTES).hex()}"
    while other == one:
        other = f"slot-{entropy(OPAQUE_BYTES).hex()}"
    return one, other


def _hashes(candidates: Sequence[Candidate]) -> tuple[str, ...]:
    return tuple(candidate.package_hash for candidate in candidates)


def _package(candidate: Candidate) -> str:
    return candidate.package_hash


class MeasuredMark(FrozenModel):
    """Which measurement was attempted."""

    schema_version: One
    measurement_hash: DigestText


def measured_mark(measurement: Measurement) -> MeasuredMark:
    """The mark that stays when a measurement is taken away."""
    return MeasuredMark(schema_version=1, measurement_hash=measurement.measurement_hash)


class SelectedMark(FrozenModel):
    """Which selection was sealed."""

    schema_version: One
    artifact_hash: DigestText


def selected_mark(selection: Selection) -> SelectedMark:
    """The mark that stays when a selection is taken away: the same may come back, and no other."""
    return SelectedMark(schema_version=1, artifact_hash=selection.artifact_hash)
