"""What follows from what: preparation, choice, measurement."""

from __future__ import annotations

import itertools
import json
import os
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skill_effectiveness.controls import chain
from skill_effectiveness.controls.candidates import freeze_candidate, freeze_reference
from skill_effectiveness.controls.documents import (
    Claim,
    ControllerState,
    Measurement,
    ScopeContents,
    Selection,
    line_of,
)
from skill_effectiveness.controls.errors import ControlCode, ControlError
from skill_effectiveness.evidence.documents import validate
from tests.support.controls import (
    TEXTS,
    brief,
    candidate,
    contents,
    decision,
    plain,
    plain_hash,
    reference,
    rehashed,
    request,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from skill_effectiveness.controls.documents import Candidate

OTHER = "sha256:" + 64 * "7"


def drawn(*values: bytes) -> Callable[[int], bytes]:
    """A source of entropy that gives these, one after the other."""
    left = iter(values)
    return lambda size: next(left).rjust(size, b"\0")


def prepared() -> chain.Preparation:
    return chain.prepare(request(), drawn(b"\1", b"\2", b"\0"))


def selected(place: int = 0) -> Selection:
    found = prepared()
    return chain.select(found, decision(found.selector_input, place=place))


def refusal(call: Callable[[], object]) -> ControlError:
    with pytest.raises(ControlError) as caught:
        call()
    return caught.value


class TestPreparation:
    def test_the_documents_hold_these_values(self) -> None:
        """A1: ids, order, mapping and request hash, by hand."""
        found = prepared()
        one, two = candidate("one"), candidate("two")
        ids = ("slot-0000000000000001", "slot-0000000000000002")
        assert found.selector_input.opaque_order == ids
        assert [shown.scope_contents for shown in found.selector_input.candidates] == [
            contents("one"),
            contents("two"),
        ]
        assert found.state.opaque_mapping == {ids[0]: one.package_hash, ids[1]: two.package_hash}
        request_hash = plain_hash(
            {
                "selector_input_hash": found.selector_input.selector_input_hash,
                "candidate_package_hashes": sorted([one.package_hash, two.package_hash]),
                "opaque_mapping": found.state.opaque_mapping,
                "owner_reference_hash": reference().reference_hash,
            }
        )
        assert found.claim.request_hash == found.state.request_hash == request_hash
        assert found.claim.owner_reference_hash == reference().reference_hash

    def test_two_equal_draws_are_drawn_again(self) -> None:
        found = chain.prepare(request(), drawn(b"\1", b"\1", b"\1", b"\5", b"\1"))
        assert found.selector_input.opaque_order == ("slot-0000000000000001", "slot-0000000000000005")
        assert found.selector_input.candidates[0].scope_contents == contents("two")

    def test_order_does_not_depend_on_the_arguments(self) -> None:
        """A5: in 200 runs each candidate is shown first about as often, whichever was named first."""
        runs = 200
        first = dict.fromkeys(itertools.product((False, True), ("one", "two")), 0)
        for turned in (False, True):
            pair = (candidate("one"), candidate("two"))
            for _ in range(runs):
                found = chain.prepare(request(*pair[:: -1 if turned else 1]), os.urandom)
                shown = found.selector_input.candidates[0].scope_contents
                first[turned, "one" if shown == contents("one") else "two"] += 1
        # 100 give or take seven standard deviations; a fair draw leaves this once in 10^11 runs.
        assert all(50 <= times <= 150 for times in first.values()), first

    def test_the_same_draw_shows_the_same_whatever_the_ids_are(self) -> None:
        """A5: the order is drawn apart from the ids, so it is not in them."""
        for low, high in ((b"\1", b"\2"), (b"\2", b"\1")):
            found = chain.prepare(request(), drawn(low, high, b"\0"))
            assert found.selector_input.candidates[0].scope_contents == contents("one")

    def test_the_state_lists_packages_in_no_order_of_arguments(self) -> None:
        """A5: sorted by their hashes."""
        for pair in itertools.permutations((candidate("one"), candidate("two"))):
            found = chain.prepare(request(*pair), os.urandom)
            hashes = [package.package_hash for package in found.state.candidate_packages]
            assert hashes == sorted(hashes)

    def test_candidates_that_do_not_fit_are_refused(self) -> None:
        """A2: at the preparation too."""
        assert refusal(lambda: chain.prepare(request(candidate("one")), os.urandom)).code is (
            ControlCode.CANDIDATES_UNFIT
        )


canary = st.text(alphabet="abcdefgh0123456789", min_size=12, max_size=24)


class TestBlindness:
    @given(st.lists(canary, min_size=4, max_size=4, unique=True))
    def test_nothing_of_the_authors_reaches_the_selector(self, words: list[str]) -> None:
        """A4: neither declarations nor any hash of authors, packages, texts as produced, owner or state."""
        declared = [f"/home/{word}/S1 arm {word}".encode() for word in words]
        pair = [
            freeze_candidate(brief(), contents(who), commitment=declared[at], attestation=declared[at + 2])
            for at, who in enumerate(("one", "two"))
        ]
        owner = freeze_reference(
            ScopeContents(subagent=f"Owner {words[0]} text.", main=f"Owner {words[1]} text.")
        )
        found = chain.prepare(request(*pair, owner=owner), os.urandom)
        shown = line_of(found.selector_input).decode()
        for word in words:
            assert word not in shown
        assert not [hidden for hidden in _hidden(pair) if hidden in shown]
        assert owner.reference_hash not in shown
        assert not [scope for scope in plain(owner)["scope_hashes"].values() if scope in shown]
        assert found.state.controller_state_hash not in shown
        assert found.state.request_hash not in shown

    def test_a_shown_candidate_has_three_members(self) -> None:
        """A4: opaque id, texts and their digests."""
        for shown in plain(prepared().selector_input)["candidates"]:
            assert list(shown) == ["opaque_id", "scope_contents", "scope_hashes"]

    def test_which_candidate_is_which_changes_texts_and_ids_alone(self) -> None:
        """A4: authors exchanged under the same texts give the same selector input."""
        pair = (candidate("one"), candidate("two"))
        exchanged = (
            candidate("one", commitment=b"x", attestation=b"y"),
            candidate("two", commitment=b"v", attestation=b"w"),
        )
        one = chain.prepare(request(*pair), drawn(b"\1", b"\2", b"\0")).selector_input
        assert chain.prepare(request(*exchanged), drawn(b"\1", b"\2", b"\0")).selector_input == one


def _hidden(pair: list[Candidate]) -> list[str]:
    found = [package.package_hash for package in pair]
    for package in pair:
        evidence = package.generation_evidence
        # Its input hash is that of the brief, which a selector is given with the brief.
        found += [
            evidence.author_commitment_hash,
            evidence.independence_attestation_hash,
            evidence.output_hash,
        ]
    return found


class TestChoice:
    @pytest.mark.parametrize("place", [0, 1])
    def test_the_selection_is_of_the_chosen_one(self, place: int) -> None:
        """A1: what is sealed."""
        chosen = candidate(("one", "two")[place])
        found = selected(place)
        assert found.selected_package_hash == chosen.package_hash
        assert found.selected_scope_contents == chosen.scope_contents
        assert found.selected_scope_hashes == chosen.scope_hashes
        assert found.independence_status == "human-authorship-attested"
        chain.check_selection(found)

    @pytest.mark.parametrize(
        "changed",
        [
            {"selector_input_hash": OTHER},
            {"rubric_hash": OTHER},
            {"selected_opaque_id": "slot-ffffffffffffffff"},
        ],
    )
    def test_another_decision_is_refused(self, changed: dict[str, Any]) -> None:
        """A7: another selector input, another rubric, an unknown id."""
        found = prepared()
        made = decision(found.selector_input, **changed)
        assert refusal(lambda: chain.select(found, made)).code is ControlCode.DECISION_UNFIT


def resealed(selection: Selection, **changed: Any) -> Selection:  # noqa: ANN401 - any field
    """A selection edited by somebody who makes its own hash fit."""
    return validate(Selection, rehashed(plain(selection) | changed, "artifact_hash"))


class TestEditedSelection:
    def test_no_field_can_be_edited_under_a_fitting_hash(self) -> None:
        """A8: every field that could say something else."""
        whole = selected(0)
        other = plain(selected(1))
        turned = dict(zip(whole.opaque_mapping, reversed(list(whole.opaque_mapping.values())), strict=True))
        edits: dict[str, Any] = {
            "decision": other["decision"],
            "selector_input_hash": OTHER,
            "brief_hash": OTHER,
            "rubric_hash": OTHER,
            "constraint_spec_hash": OTHER,
            "constraint_spec": plain(whole.constraint_spec) | {"minimum_characters_per_scope": 9},
            "candidate_packages": plain(whole)["candidate_packages"][::-1],
            "candidate_package_hashes": list(whole.candidate_package_hashes)[::-1],
            "opaque_mapping": turned,
            "opaque_order": list(whole.opaque_order)[::-1],
            "owner_reference_hash": OTHER,
            "request_hash": OTHER,
            "selected_package_hash": other["selected_package_hash"],
            "selected_scope_contents": other["selected_scope_contents"],
            "selected_scope_hashes": other["selected_scope_hashes"],
        }
        for name, value in edits.items():
            assert plain(whole)[name] != value, name
            edited = resealed(whole, **{name: value})
            assert refusal(lambda edited=edited: chain.check_selection(edited)).code in {  # type: ignore[misc]
                ControlCode.CHAIN_BROKEN,
                ControlCode.DECISION_UNFIT,
            }, name

    def test_a_mapping_of_strangers_is_refused(self) -> None:
        """A8: packages and ids that are not joined one to one."""
        whole = prepared()
        one, two = whole.state.opaque_mapping.items()
        for mapping in (
            dict([one]),
            {one[0]: one[1], two[0]: one[1]},
            {one[0]: one[1], two[0]: OTHER},
            {one[0]: one[1], "slot-ffffffffffffffff": two[1]},
            dict([one, two]) | {"slot-ffffffffffffffff": two[1]},
        ):
            state = validate(
                ControllerState,
                rehashed(plain(whole.state) | {"opaque_mapping": mapping}, "controller_state_hash"),
            )
            broken = chain.Preparation(whole.claim, state, whole.selector_input)
            assert refusal(lambda broken=broken: chain.check_preparation(broken)).code is (  # type: ignore[misc]
                ControlCode.CHAIN_BROKEN
            )

    def test_a_claim_of_another_request_is_refused(self) -> None:
        """A8: the claim has no hash of its own and is compared whole."""
        whole = prepared()
        for name in ("request_hash", "owner_reference_hash"):
            claim = validate(Claim, plain(whole.claim) | {name: OTHER})
            broken = chain.Preparation(claim, whole.state, whole.selector_input)
            assert refusal(lambda broken=broken: chain.check_preparation(broken)).code is (  # type: ignore[misc]
                ControlCode.CHAIN_BROKEN
            )


class TestMeasurement:
    def test_texts_of_one_form_pass(self) -> None:
        """A10: the document, and that it names both contents by digest."""
        found = chain.measure(selected(), reference())
        assert found.status == "pass"
        assert plain(found)["scopes"]["main"]["owner"] == {
            "paragraph_count": 2,
            "instruction_count": 3,
            "token_count": 16,
        }
        assert found.selection_artifact_hash == selected().artifact_hash

    @pytest.mark.parametrize("scope", ["subagent", "main"])
    def test_one_scope_that_fails_fails_the_whole(self, scope: str) -> None:
        """A10: both scopes must pass."""
        owner = freeze_reference(contents("owner").model_copy(update={scope: "Be careful."}))
        found = chain.prepare(request(owner=owner), os.urandom)
        chosen = chain.select(found, decision(found.selector_input))
        measured = chain.measure(chosen, owner)
        assert measured.status == "fail"
        assert {name: part["status"] for name, part in plain(measured)["scopes"].items()} == {
            name: "fail" if name == scope else "pass" for name in ("subagent", "main")
        }

    def test_no_text_of_the_owner_is_in_it(self) -> None:
        """A12: no word of either text, and none of the choice's."""
        shown = line_of(chain.measure(selected(), reference())).decode()
        for text in TEXTS.values():
            assert text not in shown
            assert not [part for part in text.split("\n") if part and json.dumps(part)[1:-1] in shown]
        assert not [word for word in ("Load", "strictly", "proofs", "Inspect") if word in shown]

    def test_only_the_committed_reference_counts(self) -> None:
        """A11: another owner reference."""
        other = freeze_reference(contents("two"))
        assert refusal(lambda: chain.measure(selected(), other)).code is ControlCode.REFERENCE_DIFFERS

    def test_an_edited_measurement_is_found(self) -> None:
        """A8: each field, under a hash that fits."""
        whole = chain.measure(selected(), reference())
        scopes = plain(whole)["scopes"]
        failed = {**scopes["main"], "status": "fail"}
        for edit in (
            {"selection_artifact_hash": OTHER},
            {"selected_package_hash": OTHER},
            {"owner_reference_hash": OTHER},
            {"request_hash": OTHER},
            {"status": "fail"},
            {"scopes": {**scopes, "main": failed}},
        ):
            edited = validate(Measurement, rehashed(plain(whole) | edit, "measurement_hash"))
            assert refusal(
                lambda edited=edited: chain.check_measurement(selected(), reference(), edited)  # type: ignore[misc]
            ).code is (ControlCode.CHAIN_BROKEN)
        chain.check_measurement(selected(), reference(), whole)
