"""Every document: its exact fields, and the hash it carries of itself."""

from __future__ import annotations

import copy
import json
import os
from typing import TYPE_CHECKING, Any

import pytest

from skill_effectiveness.controls import chain
from skill_effectiveness.controls.documents import (
    Brief,
    Candidate,
    Claim,
    Constraints,
    ControllerState,
    Decision,
    MatchedCallEvidence,
    Measurement,
    OwnerReference,
    Rubric,
    Selection,
    SelectorInput,
    line_of,
    read_control_document,
)
from skill_effectiveness.controls.errors import ControlCode, ControlError
from skill_effectiveness.controls.matched_call import declare
from skill_effectiveness.protocol.registries import Scope
from tests.support.controls import (
    BRIEF,
    CONSTRAINTS,
    RUBRIC,
    candidate,
    decision,
    plain,
    reference,
    rehashed,
    request,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from skill_effectiveness.protocol.document import FrozenModel

PREPARED = chain.prepare(request(), os.urandom)
DECISION = decision(PREPARED.selector_input)
SELECTION = chain.select(PREPARED, DECISION)
MEASUREMENT = chain.measure(SELECTION, reference())
EVIDENCE = declare(SELECTION, MEASUREMENT, reference(), Scope.MAIN)

# The fields of controls.md section 3, by hand.
FIELDS: dict[type[FrozenModel], tuple[dict[str, Any], str]] = {
    Claim: (
        plain(PREPARED.claim),
        "schema_version artifact_contract request_hash owner_reference_hash",
    ),
    ControllerState: (
        plain(PREPARED.state),
        (
            "schema_version artifact_contract selector_input_hash candidate_packages opaque_mapping "
            "owner_reference_hash request_hash controller_state_hash"
        ),
    ),
    SelectorInput: (
        plain(PREPARED.selector_input),
        (
            "schema_version artifact_contract brief brief_hash rubric rubric_hash constraint_spec "
            "constraint_spec_hash opaque_order candidates selector_input_hash"
        ),
    ),
    Selection: (
        plain(SELECTION),
        (
            "schema_version artifact_contract decision selector_input selector_input_hash brief_hash rubric "
            "rubric_hash constraint_spec constraint_spec_hash candidate_packages candidate_package_hashes "
            "opaque_mapping opaque_order owner_reference_hash request_hash selected_package_hash "
            "selected_scope_contents selected_scope_hashes independence_status independence_boundary "
            "temporal_boundary artifact_hash"
        ),
    ),
    Measurement: (
        plain(MEASUREMENT),
        (
            "schema_version artifact_contract selection_artifact_hash selected_package_hash "
            "owner_reference_hash request_hash measurement_contracts scopes status boundary measurement_hash"
        ),
    ),
    MatchedCallEvidence: (
        plain(EVIDENCE),
        (
            "schema_version artifact_contract selection_artifact_hash owner_relative_measurement_hash "
            "owner_reference_hash scope gate_contract gate_contract_hash allowed_target_differences targets "
            "fixture_results observation_status matched_call_gate_satisfied status boundary artifact_hash"
        ),
    ),
    Candidate: (
        plain(candidate("one")),
        (
            "schema_version artifact_contract brief_hash scope_contents scope_hashes generation_evidence "
            "package_hash"
        ),
    ),
    OwnerReference: (
        plain(reference()),
        "schema_version artifact_contract scope_contents scope_hashes reference_hash",
    ),
    Decision: (
        plain(DECISION),
        "schema_version artifact_contract selector_input_hash rubric_hash selected_opaque_id",
    ),
    Brief: (BRIEF, "schema_version task_families instruction"),
    Rubric: (RUBRIC, "schema_version criteria"),
    Constraints: (
        CONSTRAINTS,
        "schema_version scopes minimum_characters_per_scope maximum_characters_per_scope",
    ),
}
OWN = {
    Candidate: "package_hash",
    OwnerReference: "reference_hash",
    SelectorInput: "selector_input_hash",
    ControllerState: "controller_state_hash",
    Selection: "artifact_hash",
    Measurement: "measurement_hash",
    MatchedCallEvidence: "artifact_hash",
}
# Keyed by values, not by names of a contract; the chain judges them.
FREE = {"gate_contract", "opaque_mapping", "active_control", "oracle", "fixture_expected_outcomes"}

every_model = pytest.mark.parametrize("model", FIELDS, ids=lambda model: model.__name__)


def refused(model: type[FrozenModel], document: object) -> ControlError:
    with pytest.raises(ControlError) as caught:
        read_control_document(model, json.dumps(document).encode(), "it")
    assert caught.value.code is ControlCode.DOCUMENT_INVALID
    return caught.value


def objects(value: object, path: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    """Every object within a document whose keys a contract names."""
    if isinstance(value, dict):
        if path.rsplit("/", 1)[-1] not in FREE:
            yield path, value
        for name, member in value.items():
            if name != "gate_contract":
                yield from objects(member, f"{path}/{name}")
    if isinstance(value, list):
        for index, member in enumerate(value):
            yield from objects(member, f"{path}/{index}")


@every_model
class TestFields:
    def test_they_are_the_ones_of_the_contract(self, model: type[FrozenModel]) -> None:
        """A1: the field set of each document, in its order."""
        document, names = FIELDS[model]
        assert list(document) == names.split()
        assert plain(read_control_document(model, json.dumps(document).encode(), "it")) == document

    def test_none_may_be_missing(self, model: type[FrozenModel]) -> None:
        """A1: each field alone."""
        document, _ = FIELDS[model]
        for name in document:
            refused(model, {key: value for key, value in document.items() if key != name})

    def test_none_is_added_at_any_depth(self, model: type[FrozenModel]) -> None:
        """A1 A3: a key `provenance` is refused with its pointer, wherever it stands."""
        document, _ = FIELDS[model]
        places = [path for path, _ in objects(document)]
        assert places[0] == ""
        for place in places:
            edited = copy.deepcopy(document)
            dict(objects(edited))[place]["provenance"] = "me"
            assert f"{place}/provenance" in str(refused(model, edited))

    def test_other_versions_are_refused(self, model: type[FrozenModel]) -> None:
        """A1: version and contract are fixed."""
        document, _ = FIELDS[model]
        refused(model, document | {"schema_version": 2})
        refused(model, document | {"schema_version": 1.0})
        if "artifact_contract" in document:
            other = document["artifact_contract"].replace("-v1", "-v2")
            refused(model, document | {"artifact_contract": other})

    def test_no_other_value_is_a_document(self, model: type[FrozenModel]) -> None:
        value: object
        for value in (None, [], "x", 1, {}):
            refused(model, value)


@pytest.mark.parametrize("model", OWN, ids=lambda model: model.__name__)
class TestOwnHash:
    def test_it_is_of_the_rest(self, model: type[FrozenModel]) -> None:
        """A1: the object digest of the document without it, computed here without the product."""
        document, _ = FIELDS[model]
        assert rehashed(document, OWN[model]) == document

    def test_an_edit_is_told_by_the_name_of_the_hash(self, model: type[FrozenModel]) -> None:
        """A8: another hash, or another content under it."""
        document, _ = FIELDS[model]
        assert OWN[model] in str(refused(model, document | {OWN[model]: "sha256:" + 64 * "0"}))


class TestPublished:
    def test_every_byte_counts(self) -> None:
        """A8: bytes that say the same are still not those that were published."""
        data = line_of(SELECTION)
        assert read_control_document(Selection, data, "it", published=True) == SELECTION
        for other in (data[:-1], data[:-1] + b" ", data.replace(b":1,", b": 1,", 1)):
            with pytest.raises(ControlError) as caught:
                read_control_document(Selection, other, "it", published=True)
            assert caught.value.code is ControlCode.DOCUMENT_INVALID

    def test_what_people_hand_in_may_have_any_layout(self) -> None:
        data = json.dumps(plain(DECISION), indent=3).encode()
        assert read_control_document(Decision, data, "it") == DECISION


class TestParts:
    @pytest.mark.parametrize(
        "families", [[], ["review", "implementation"], ["review", "review"], ["other"], "review"]
    )
    def test_families_are_sorted_and_unique(self, families: object) -> None:
        """A1: the brief."""
        refused(Brief, BRIEF | {"task_families": families})

    @pytest.mark.parametrize(
        "criteria",
        [
            [],
            ["readability", "actionability"],
            ["readability", "actionability", "information_density", "brevity"],
            ["readability", "actionability", "actionability"],
        ],
    )
    def test_the_rubric_is_exactly_three_criteria(self, criteria: list[str]) -> None:
        """A1: the rubric."""
        refused(Rubric, RUBRIC | {"criteria": criteria})

    @pytest.mark.parametrize(
        "changed",
        [
            {"scopes": ["main", "subagent"]},
            {"scopes": ["subagent"]},
            {"minimum_characters_per_scope": 0},
            {"minimum_characters_per_scope": 2001},
        ],
    )
    def test_constraints_are_about_both_scopes(self, changed: dict[str, Any]) -> None:
        """A1: the constraints."""
        refused(Constraints, CONSTRAINTS | changed)

    def test_candidates_are_of_people_and_bind_their_own_parts(self) -> None:
        """A1 A2: own hashes are correct, also under a package hash that fits."""
        document = plain(candidate("one"))
        other = "sha256:" + 64 * "7"
        for path, value in (
            (("generation_evidence", "source_kind"), "model"),
            (("generation_evidence", "input_hash"), other),
            (("generation_evidence", "output_hash"), other),
            (("scope_hashes", "main"), other),
            (("scope_contents", "main"), "Another text altogether."),
        ):
            edited = copy.deepcopy(document)
            edited[path[0]][path[1]] = value
            refused(Candidate, rehashed(edited, "package_hash"))
        edited = rehashed(document | {"brief_hash": other}, "package_hash")
        refused(Candidate, edited)

    def test_a_selector_input_binds_its_own_parts(self) -> None:
        """A1 A8: under an own hash that fits."""
        document = plain(PREPARED.selector_input)
        other = "sha256:" + 64 * "7"
        edits: list[dict[str, Any]] = [
            {"brief_hash": other},
            {"rubric_hash": other},
            {"constraint_spec_hash": other},
            {"opaque_order": document["opaque_order"][::-1]},
            {
                "opaque_order": [document["opaque_order"][0]] * 2,
                "candidates": [document["candidates"][0]] * 2,
            },
            {
                "candidates": [
                    document["candidates"][0] | {"scope_hashes": {"subagent": other, "main": other}}
                ]
            },
        ]
        for edit in edits:
            refused(SelectorInput, rehashed(document | edit, "selector_input_hash"))

    @pytest.mark.parametrize("name", ["slot-0123456789ABCDEF", "slot-0123", "slot-0123456789abcdef0", "x"])
    def test_opaque_ids_have_one_form(self, name: str) -> None:
        """A1: `slot-` and sixteen hex digits."""
        refused(Decision, plain(DECISION) | {"selected_opaque_id": name})

    def test_a_reference_binds_its_texts(self) -> None:
        document = plain(reference())
        document["scope_contents"]["main"] = "Another text altogether."
        refused(OwnerReference, rehashed(document, "reference_hash"))
