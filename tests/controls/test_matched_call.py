"""The declared contract: seven histories, two targets, no gate."""

from __future__ import annotations

import ast
import inspect
import json
import os
import re
from typing import TYPE_CHECKING, Any

import pytest

from skill_effectiveness.controls import chain, matched_call
from skill_effectiveness.controls.candidates import freeze_reference
from skill_effectiveness.controls.documents import MatchedCallEvidence, line_of
from skill_effectiveness.controls.errors import ControlCode, ControlError
from skill_effectiveness.controls.matched_call import check_bundle_ids, check_evidence, declare, history
from skill_effectiveness.evidence.documents import validate
from skill_effectiveness.protocol.registries import Scope
from skill_effectiveness.protocol.skill_events import Fixture
from tests.support.controls import (
    contents,
    decision,
    plain,
    reference,
    rehashed,
    request,
    text_hash,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from skill_effectiveness.controls.documents import OwnerReference

PREPARED = chain.prepare(request(), os.urandom)
SELECTION = chain.select(PREPARED, decision(PREPARED.selector_input))
MEASUREMENT = chain.measure(SELECTION, reference())
SLOT = SELECTION.decision.selected_opaque_id
EXPECTED = {
    "missing": ("deny", "matched_call_required"),
    "wrong_target": ("deny", "matched_call_required"),
    "incomplete": ("deny", "matched_call_required"),
    "degraded": ("deny", "event_contract_unverifiable"),
    "missing_task_tool_index": ("deny", "event_contract_unverifiable"),
    "completed": ("fixture-pass", "fixture_matched_call_satisfied"),
    "late_after_task_tool": ("deny", "matched_call_late"),
}


def evidence(scope: Scope = Scope.MAIN) -> MatchedCallEvidence:
    return declare(SELECTION, MEASUREMENT, reference(), scope)


def refusal(call: Callable[[], object]) -> ControlError:
    with pytest.raises(ControlError) as caught:
        call()
    return caught.value


@pytest.mark.parametrize("scope", Scope)
class TestDeclaration:
    def test_both_targets_and_their_contents(self, scope: Scope) -> None:
        """A18: ids are derived, contents are those of the scope."""
        own, owner = plain(SELECTION.selected_scope_contents), plain(contents("owner"))
        assert plain(evidence(scope))["targets"] == {
            "active_control": {
                "bundle_id": f"{SLOT}-{scope.value}",
                "content_hash": text_hash(own[scope.value]),
            },
            "oracle": {
                "bundle_id": f"oracle-owner-{scope.value}",
                "content_hash": text_hash(owner[scope.value]),
            },
        }

    def test_seven_histories_for_each_target(self, scope: Scope) -> None:
        """A18 A20: the table of outcomes, with the rendered message at every denial."""
        document = plain(evidence(scope))
        for side, target in document["targets"].items():
            bundle = target["bundle_id"]
            assert document["fixture_results"][side] == {
                name: {
                    "decision": word,
                    "reason_code": reason,
                    "deny_message": None
                    if word == "fixture-pass"
                    else f"complete-required-bundle-before-trial-unlock:{bundle}",
                    "observation_status": "none-fixtures-only",
                    "live_gate_eligible": False,
                }
                for name, (word, reason) in EXPECTED.items()
            }

    def test_the_targets_differ_in_ids_alone(self, scope: Scope) -> None:
        """A18: the same results but for the id."""
        results = plain(evidence(scope))["fixture_results"]
        one = json.dumps(results["active_control"]).replace(f"{SLOT}-", "oracle-owner-")
        assert one == json.dumps(results["oracle"])

    def test_it_satisfies_nothing(self, scope: Scope) -> None:
        """A17 A21: the frozen contract by its hash, and no word that lets anything happen."""
        document = plain(evidence(scope))
        assert document["gate_contract_hash"] == (
            "sha256:e422e311ecf9a88eb4f63329a5a27c2ec3242f14b9059bb99bcb64c8402ddaff"
        )
        assert document["matched_call_gate_satisfied"] is False
        assert document["status"] == "matched-call-contract-declared-no-observation"
        shown = line_of(evidence(scope)).decode()
        assert '"allow' not in shown.replace('"allowed_target_differences"', "")
        assert '"live_gate_eligible":true' not in shown

    def test_ids_are_not_free(self, scope: Scope) -> None:
        """A22: labels, the other candidate's slot and the other scope."""
        other = Scope.MAIN if scope is Scope.SUBAGENT else Scope.SUBAGENT
        right = (f"{SLOT}-{scope.value}", f"oracle-owner-{scope.value}")
        check_bundle_ids(SELECTION, scope, active=right[0], oracle=right[1])
        rejected = SELECTION.opaque_order[1]
        for active, oracle in (
            ("my-control", right[1]),
            (f"{rejected}-{scope.value}", right[1]),
            (f"{SLOT}-{other.value}", right[1]),
            (right[0], "oracle"),
            (right[0], f"oracle-owner-{other.value}"),
            right[::-1],
        ):
            error = refusal(
                lambda active=active, oracle=oracle: check_bundle_ids(  # type: ignore[misc]
                    SELECTION, scope, active=active, oracle=oracle
                )
            )
            assert error.code is ControlCode.BUNDLE_ID_FREE

    def test_the_file_has_the_name_of_its_scope(self, scope: Scope) -> None:
        """A23: the other scope's name, and any other."""
        made = evidence(scope)
        other = "main" if scope is Scope.SUBAGENT else "subagent"
        name = f"matched-call-evidence-{scope.value}.json"
        check_evidence(SELECTION, MEASUREMENT, reference(), made, name)
        for wrong in (f"matched-call-evidence-{other}.json", "evidence.json", f"x{name}", name.upper()):
            error = refusal(
                lambda wrong=wrong: check_evidence(  # type: ignore[misc]
                    SELECTION, MEASUREMENT, reference(), made, wrong
                )
            )
            assert error.code is ControlCode.SCOPE_MISMATCH

    def test_an_edit_under_a_fitting_hash_is_found(self, scope: Scope) -> None:
        """A8 A21: contract, targets, results, links."""
        document = plain(evidence(scope))
        other = "sha256:" + 64 * "7"
        results = json.loads(json.dumps(document["fixture_results"]))
        results["oracle"]["missing"] = results["oracle"]["completed"]
        fewer = json.loads(json.dumps(document["fixture_results"]))
        del fewer["oracle"]["missing"]
        edits: list[dict[str, Any]] = [
            {"selection_artifact_hash": other},
            {"owner_relative_measurement_hash": other},
            {"owner_reference_hash": other},
            {"gate_contract": document["gate_contract"] | {"matched_call_gate_satisfied": True}},
            {"gate_contract": document["gate_contract"] | {"more": 1}},
            {"gate_contract_hash": other},
            {"targets": document["targets"] | {"oracle": document["targets"]["active_control"]}},
            {"fixture_results": results},
            {"fixture_results": fewer},
        ]
        for edit in edits:
            edited = validate(MatchedCallEvidence, rehashed(document | edit, "artifact_hash"))
            error = refusal(
                lambda edited=edited: check_evidence(  # type: ignore[misc]
                    SELECTION,
                    MEASUREMENT,
                    reference(),
                    edited,
                    f"matched-call-evidence-{scope.value}.json",
                )
            )
            assert error.code is ControlCode.CHAIN_BROKEN
            assert edited.artifact_hash in error.sentence

    def test_no_other_word_is_a_document(self, scope: Scope) -> None:
        """A21: neither a satisfied gate nor a live one can be written."""
        document = plain(evidence(scope))
        for edit in (
            {"matched_call_gate_satisfied": True},
            {"observation_status": "observed"},
            {"status": "matched-call-observed"},
            {"boundary": "live"},
        ):
            with pytest.raises(ValueError, match="validation error"):
                MatchedCallEvidence.model_validate_json(json.dumps(document | edit))


class TestWhatItRestsOn:
    def measured(self, owner: OwnerReference) -> Callable[[], object]:
        prepared = chain.prepare(request(owner=owner), os.urandom)
        selection = chain.select(prepared, decision(prepared.selector_input))
        measurement = chain.measure(selection, owner)
        return lambda: declare(selection, measurement, owner, Scope.MAIN)

    def test_the_measurement_must_pass(self) -> None:
        """A11: also when only the other scope failed."""
        texts = contents("owner").model_copy(update={"subagent": "Be careful."})
        error = refusal(self.measured(freeze_reference(texts)))
        assert error.code is ControlCode.MEASUREMENT_FAILED

    @pytest.mark.parametrize("end", ["\n", "\r\n"])
    def test_the_contents_must_differ(self, end: str) -> None:
        """A18: a control that is the owner's text, if with other line ends."""
        prepared = chain.prepare(request(), os.urandom)
        texts = prepared.selector_input.candidates[0].scope_contents
        owner = freeze_reference(texts.model_copy(update={"main": texts.main.replace("\n", end)}))
        prepared = chain.prepare(request(owner=owner), os.urandom)
        place = [shown.scope_contents for shown in prepared.selector_input.candidates].index(texts)
        selection = chain.select(prepared, decision(prepared.selector_input, place=place))
        measurement = chain.measure(selection, owner)
        assert measurement.status == "pass"
        error = refusal(lambda: declare(selection, measurement, owner, Scope.MAIN))
        assert error.code is ControlCode.CONTENTS_EQUAL

    def test_the_reference_must_be_the_committed_one(self) -> None:
        other = freeze_reference(contents("two"))
        error = refusal(lambda: declare(SELECTION, MEASUREMENT, other, Scope.MAIN))
        assert error.code is ControlCode.REFERENCE_DIFFERS


def test_histories_are_seven_by_name() -> None:
    """A18: shapes of the histories, by hand."""
    shapes = {
        fixture.value: (
            found["event_contract_status"],
            found["first_task_tool_event_index"],
            [(call["skill"], call["event_index"], call["completed"]) for call in found["skills_invoked"]],
        )
        for fixture in Fixture
        for found in [history(fixture, "b")]
    }
    assert shapes == {
        "missing": ("stable", 0, []),
        "wrong_target": ("stable", 1, [("another-bundle", 0, True)]),
        "incomplete": ("stable", 1, [("b", 0, False)]),
        "degraded": ("degraded", 1, [("b", 0, True)]),
        "missing_task_tool_index": ("stable", None, [("b", 0, True)]),
        "completed": ("stable", 1, [("b", 0, True)]),
        "late_after_task_tool": ("stable", 0, [("b", 1, True)]),
    }


def test_the_page_has_no_word_for_a_gate_that_opens() -> None:
    """A21: by its source."""
    literals = {
        node.value
        for node in ast.walk(ast.parse(inspect.getsource(matched_call)))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    }
    assert not [word for word in literals if re.search(r"\ballow(?!ed_target)", word)]
    assert "evaluate_matched_call" in inspect.getsource(matched_call)
