"""The decision document, its schema, and the three published schemas."""

from __future__ import annotations

import json
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from skill_effectiveness.acceptance.closeout.decision import Draft, shown, text_form, to_json
from skill_effectiveness.acceptance.closeout.errors import CloseoutCode, CloseoutError, PolicyError
from skill_effectiveness.acceptance.closeout.evaluation import ItemResult
from skill_effectiveness.acceptance.closeout.policy import EffectivePolicy
from skill_effectiveness.acceptance.closeout.published import published_schemas
from skill_effectiveness.acceptance.closeout.site import Request, Site
from skill_effectiveness.acceptance.closeout.words import PolicyFrom, State, Trust
from tests.support.closeout import (
    BASE_ID,
    CANDIDATE,
    DIGEST,
    ENTRY,
    HEAD_ID,
    VERSION,
    command_record,
    review_record,
)
from tests.support.private import REPOSITORY, surroundings

SITE = Site(REPOSITORY, surroundings(), VERSION)
DRAFT = Draft(SITE, Request("b", "h", CANDIDATE)).at(BASE_ID, HEAD_ID).under(EffectivePolicy(ENTRY, DIGEST))
RESULT = ItemResult("check", "command", State.PASSED, "exited 0", 3)


def validator(name: str) -> Draft202012Validator:
    schema = json.loads((REPOSITORY / "schemas" / "closeout" / f"{name}.schema.json").read_bytes())
    Draft202012Validator.check_schema(schema)
    return Draft202012Validator(schema)


class TestDocument:
    def test_an_accepted_decision(self) -> None:
        """C46 C67: exactly these members, and the runner as publisher."""
        document = to_json(DRAFT.decided([RESULT]))
        assert document == {
            "specVersion": "0.1",
            "publisher": "runner:closeout-reference@7.7.7",
            "decision": "accepted",
            "gate": "beforePR",
            "base": BASE_ID,
            "head": HEAD_ID,
            "candidate": {"session": "candidate-session", "model": "candidate-model", "provider": "p"},
            "policy": {"path": ENTRY, "digest": DIGEST, "absent": False},
            "items": [
                {"id": "check", "kind": "command", "state": "passed", "message": "exited 0", "attempt": 3}
            ],
            "warnings": [],
        }
        validator("decision").validate(document)

    def test_an_absent_policy(self) -> None:
        """C1: path and digest null, absent true, and the message."""
        document = to_json(DRAFT.under(EffectivePolicy()).decided([]))
        assert document["policy"] == {"path": None, "digest": None, "absent": True}
        assert (document["decision"], document["message"]) == ("accepted", "no closeout policy")
        validator("decision").validate(document)

    def test_a_policy_that_did_not_load(self) -> None:
        """C2 C46: null, null and not absent; no commits, no items."""
        document = to_json(Draft(SITE, Request("b", "h")).blocked(PolicyError("x: / y")))
        assert document["policy"] == {"path": None, "digest": None, "absent": False}
        assert (document["base"], document["head"], document["items"]) == ("", "", [])
        assert (document["decision"], document["message"]) == ("blocked", "x: / y")
        validator("decision").validate(document)

    def test_options_are_told_where_they_are_not_the_default(self) -> None:
        """C46: both, as soon as one differs."""
        assert "options" not in to_json(DRAFT.decided([]))
        site = Site(REPOSITORY, surroundings(), VERSION, trust=Trust.JOURNAL)
        document = to_json(Draft(site, Request("b", "h")).under(EffectivePolicy()).decided([]))
        assert document["options"] == {"policyFrom": "worktree", "trust": "journal"}
        site = Site(REPOSITORY, surroundings(), VERSION, policy_from=PolicyFrom.BASE)
        document = to_json(Draft(site, Request("b", "h")).under(EffectivePolicy()).decided([]))
        assert document["options"] == {"policyFrom": "base", "trust": "producer"}
        validator("decision").validate(document)

    @pytest.mark.parametrize(
        "change",
        [
            {"publisher": None},
            {"publisher": "someone"},
            {"decision": "passed"},
            {"outcome": "x"},
            {"gate": "beforeMerge"},
            {"head": "main"},
            {"message": ""},
            {"items": [{"id": "a", "kind": "command", "state": "skipped", "message": ""}]},
            {"items": [{"id": "a", "kind": "command", "state": "exhausted", "message": ""}]},
            {"items": [{"id": "a", "kind": "command", "state": "passed", "message": "", "attempt": 0}]},
            {"warnings": [{"code": "other", "message": ""}]},
            {"policy": {"path": None, "digest": None}},
        ],
    )
    def test_what_the_schema_refuses(self, change: dict[str, Any]) -> None:
        """C14 C17 C67: states that do not exist, a decision without its publisher, open members."""
        document = {**to_json(DRAFT.decided([RESULT])), **change}
        document = {name: value for name, value in document.items() if value is not None}
        assert list(validator("decision").iter_errors(document))

    def test_a_document_that_does_not_fit_is_not_printed(self) -> None:
        """C46: our own defect has a code of its own."""
        broken = DRAFT.decided([RESULT]).model_copy(update={"gate": "elsewhere"})
        with pytest.raises(CloseoutError) as caught:
            to_json(broken)
        assert caught.value.code is CloseoutCode.DECISION_MISFIT

    def test_messages_are_harmless_and_bounded(self) -> None:
        """C46: whatever a policy's names hold."""
        assert shown("a\x1b[2Jb\nc") == "a\\x1b[2Jb\\x0ac"
        assert len(shown("x" * 5000)) == 4000

    def test_text_for_people(self) -> None:
        """C45: the layout of section 9."""
        assert list(text_form(DRAFT.decided([RESULT]))) == [
            "accepted beforePR",
            f"base {BASE_ID}",
            f"head {HEAD_ID}",
            f"policy {DIGEST}",
            "",
            "check  passed  exited 0",
        ]
        blocked = Draft(SITE, Request("b", "h")).blocked(PolicyError("x"))
        assert list(text_form(blocked)) == ["blocked beforePR", "base -", "head -", "policy none", "x"]


class TestPublishedSchemas:
    def test_they_are_generated_and_carry_the_paths_of_the_specification(self) -> None:
        """C68: three files, whose bytes the models make."""
        assert {name: schema["$id"] for name, schema in published_schemas().items()} == {
            "closeout/policy.schema.json": "schema/policy.schema.json",
            "closeout/evidence.schema.json": "schema/evidence.schema.json",
            "closeout/decision.schema.json": "schema/decision.schema.json",
        }
        for name, schema in published_schemas().items():
            committed = json.loads((REPOSITORY / "schemas" / name).read_bytes())
            assert {key: value for key, value in committed.items() if key != "$schema"} == schema

    @pytest.mark.parametrize(
        ("record", "valid"),
        [
            (command_record(), True),
            (review_record(), True),
            (command_record(exec={"signal": "SIGSEGV"}), True),
            (command_record(exec={"signal": None}), False),
            (command_record(outcome="pass"), False),
            (review_record(findings=[{}]), False),
            (command_record(attempt=0), False),
        ],
    )
    def test_records_by_the_published_schema(self, record: dict[str, Any], *, valid: bool) -> None:
        """C68 C38: it says what the models say."""
        assert validator("evidence").is_valid(record) is valid

    @pytest.mark.parametrize(
        ("document", "valid"),
        [
            ({"specVersion": "0.1"}, True),
            (
                {
                    "specVersion": "0.1",
                    "description": "d",
                    "imports": [{"path": "a", "as": "b"}],
                    "items": [],
                },
                True,
            ),
            ({"specVersion": "0.1", "description": ""}, False),
            ({"specVersion": "0.1", "setup": []}, False),
            ({"specVersion": "0.1", "imports": [{"path": "a", "name": "b"}]}, False),
            ({"specVersion": 0.1}, False),
        ],
    )
    def test_policies_by_the_published_schema(self, document: dict[str, Any], *, valid: bool) -> None:
        """C68 C3: for editors and other evaluators."""
        assert validator("policy").is_valid(document) is valid
