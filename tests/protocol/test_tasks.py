from __future__ import annotations

import hashlib
import json
from typing import Any

import jsonschema
import pytest

from skill_effectiveness.protocol.document import to_json
from skill_effectiveness.protocol.published import published_models
from skill_effectiveness.protocol.tasks import (
    HeldOutTask,
    TaskCode,
    TaskError,
    TaskRecord,
    check_committed,
    parse_task,
    public_reference,
    task_hash,
)
from skill_effectiveness.protocol.words import TaskFamily
from tests.support.frozen_documents import HELD_OUT
from tests.support.private import REPOSITORY

REGRESSION: dict[str, Any] = {
    "task_id": "mend_1",
    "task_family": "implementation",
    "cohort": "known-regression",
    "prompt_ref": "fixture://set/mend_1",
    "expected_owners": ["ccl-skills:mend"],
    "frozen_at_sha": "root",
    "corpus_version": "set-1",
}
NEGATIVE = {"negative_control": True, "should_invoke": False, "expected_owners": []}
MISSING = object()


def schema(name: str) -> jsonschema.Draft202012Validator:
    document = json.loads((REPOSITORY / "schemas" / f"{name}.schema.json").read_bytes())
    return jsonschema.Draft202012Validator(document)


def changed(record: dict[str, Any], **fields: object) -> dict[str, Any]:
    return {name: value for name, value in (record | fields).items() if value is not MISSING}


def refused(value: object) -> TaskError:
    with pytest.raises(TaskError) as caught:
        parse_task(value)
    assert caught.value.code is TaskCode.BAD_RECORD
    return caught.value


BROKEN: list[tuple[str, object]] = [
    *((name, MISSING) for name in HELD_OUT),
    *((name, None) for name in HELD_OUT),
    ("task_id", ""),
    ("task_id", "a/b"),
    ("task_id", ".hidden"),
    ("task_id", 129 * "a"),
    ("task_family", "writing"),
    ("cohort", "unknown"),
    ("prompt_ref", "corpus://"),
    ("prompt_ref", "corpus://a//b"),
    ("prompt_ref", "corpus://a/../b"),
    ("prompt_ref", "corpus:///etc/passwd"),
    ("prompt_ref", "fixture://set/mend_1"),
    ("prompt_ref", "task://" + 64 * "a"),
    ("prompt_ref", "The prompt itself."),
    ("expected_owners", []),
    ("expected_owners", ["ccl-skills:diagnose", "ccl-skills:diagnose"]),
    ("expected_owners", ["diagnose"]),
    ("expected_owners", ["CCL:diagnose"]),
    ("expected_owners", ["a:b:c"]),
    ("expected_owners", ["a: b"]),
    ("expected_owners", "ccl-skills:diagnose"),
    ("frozen_at_sha", "root"),
    ("frozen_at_sha", 39 * "a"),
    ("frozen_at_sha", 65 * "a"),
    ("frozen_at_sha", 40 * "A"),
    ("corpus_version", ""),
    ("corpus_version", "two words"),
    ("skill_content_cutoff", ""),
    ("skill_content_cutoff", 20261001),
    ("curator_independent", False),
    ("curator_independent", 1),
    ("repo_snapshot", 64 * "b"),
    ("repo_snapshot", "sha256:" + 64 * "B"),
    ("should_invoke", "yes"),
    ("should_invoke", 1),
    ("risk_tags", ["a", "a"]),
    ("risk_tags", "a"),
    ("graders", []),
    ("graders", ["g", "g"]),
    ("graders", [""]),
    ("negative_control", 0),
    ("execution_mode", "chat"),
    ("author", "nobody"),
    ("prompt", "The prompt itself."),
]


class TestHeldOut:
    def test_a_record_satisfies_both(self) -> None:
        """T5: one held-out record fits the published schema and the validator."""
        schema("held-out-task").validate(HELD_OUT)
        assert isinstance(parse_task(HELD_OUT), HeldOutTask)

    @pytest.mark.parametrize(("field", "value"), BROKEN)
    def test_a_broken_field_fails_both(self, field: str, value: object) -> None:
        """T5: each field missing, null or wrong fails the schema and the validator."""
        record = changed(HELD_OUT, **{field: value})
        assert not schema("held-out-task").is_valid(record)
        refused(record)

    @pytest.mark.parametrize(
        ("negative", "invoke", "owners", "valid"),
        [
            (True, False, [], True),
            (True, False, ["a:b"], False),
            (True, True, [], False),
            (True, True, ["a:b"], True),
            (False, False, [], False),
            (False, False, ["a:b"], True),
            (False, True, [], False),
            (False, True, ["a:b"], True),
        ],
    )
    def test_owners_are_empty_for_negative_controls_alone(
        self, *, negative: bool, invoke: bool, owners: list[str], valid: bool
    ) -> None:
        """T5: the rule of owners, in schema and validator, for both kinds of record."""
        for record, name in ((HELD_OUT, "held-out-task"), (REGRESSION, "task")):
            found = changed(record, negative_control=negative, should_invoke=invoke, expected_owners=owners)
            assert schema(name).is_valid(found) is valid
            if valid:
                assert parse_task(found)
            else:
                refused(found)

    @pytest.mark.parametrize("sha", [40 * "a", 64 * "0", 50 * "f"])
    def test_commit_ids_of_any_length(self, sha: str) -> None:
        record = changed(HELD_OUT, frozen_at_sha=sha)
        assert schema("held-out-task").is_valid(record)
        assert parse_task(record)

    def test_every_fault_is_told_with_its_pointer(self) -> None:
        error = refused(changed(HELD_OUT, graders=[], execution_mode="chat"))
        assert "/graders:" in error.sentence
        assert "/execution_mode:" in error.sentence


class TestRegression:
    def test_required_fields_alone(self) -> None:
        """T1: a known task without anything optional."""
        schema("task").validate(REGRESSION)
        task = parse_task(REGRESSION)
        assert isinstance(task, TaskRecord)
        assert to_json(task) == REGRESSION

    @pytest.mark.parametrize("name", REGRESSION)
    def test_each_is_required(self, name: str) -> None:
        """T1: each required field of a task."""
        record = changed(REGRESSION, **{name: MISSING})
        assert not schema("task").is_valid(record)
        refused(record)

    @pytest.mark.parametrize("family", TaskFamily)
    def test_every_family(self, family: TaskFamily) -> None:
        """T1: the six families."""
        assert parse_task(changed(REGRESSION, task_family=family.value)).task_family is family

    @pytest.mark.parametrize(
        "reference",
        ["task://" + 64 * "0", "corpus://a", "fixture://a/b.md", "prompts-v2://x/y_z"],
    )
    def test_forms_of_a_reference(self, reference: str) -> None:
        record = changed(REGRESSION, prompt_ref=reference)
        assert schema("task").is_valid(record)
        assert parse_task(record)

    @pytest.mark.parametrize(
        ("field", "value"),
        [
            ("prompt_ref", "task://folder"),
            ("prompt_ref", "task://" + 63 * "0"),
            ("prompt_ref", "task://" + 64 * "0" + "/x"),
            ("prompt_ref", "prompts/a.md"),
            ("prompt_ref", "x://../a"),
            ("prompt_ref", "x://" + 600 * "a"),
            ("execution_mode", None),
            ("should_invoke", None),
            ("negative_control", "no"),
            ("frozen_at_sha", "HEAD"),
            ("graders", ["hidden-tests"]),
            ("curator_independent", True),
        ],
    )
    def test_a_wrong_field_fails_both(self, field: str, value: object) -> None:
        """T1: other forms of reference, null, and fields of held-out tasks alone."""
        record = changed(REGRESSION, **{field: value})
        assert not schema("task").is_valid(record)
        refused(record)

    def test_a_negative_control(self) -> None:
        assert parse_task(REGRESSION | NEGATIVE)
        refused(changed(REGRESSION | NEGATIVE, should_invoke=MISSING))

    @pytest.mark.parametrize("value", [None, [], "task", 3, {}])
    def test_something_else_is_refused(self, value: object) -> None:
        refused(value)


class TestCommitted:
    def test_a_committed_task_says_how_it_is_executed(self) -> None:
        """T1: execution_mode of committed tasks, and of committed regression tasks."""
        check_committed(parse_task(REGRESSION | {"execution_mode": "answer_only"}))
        check_committed(parse_task(HELD_OUT))
        for record in (REGRESSION, REGRESSION | {"execution_mode": "workspace"}):
            with pytest.raises(TaskError) as caught:
                check_committed(parse_task(record))
            assert (caught.value.code, caught.value.where) == (TaskCode.NOT_COMMITTED_FORM, "/execution_mode")


class TestReference:
    def test_it_holds_the_hash_of_the_whole_record(self) -> None:
        """T6: exactly these fields, for both kinds of record."""
        text = json.dumps(HELD_OUT, sort_keys=True, separators=(",", ":"))
        assert to_json(public_reference(parse_task(HELD_OUT))) == {
            "task_id": "find-the-leak",
            "task_family": "diagnosis",
            "cohort": "held-out-generalization",
            "prompt_ref": "corpus://second/find-the-leak.md",
            "frozen_at_sha": 40 * "a",
            "corpus_version": "corpus-2026.11",
            "execution_mode": "workspace",
            "task_hash": "sha256:" + hashlib.sha256(text.encode()).hexdigest(),
        }

    def test_it_holds_no_owner_and_no_truth(self) -> None:
        """T6: nothing of owners, graders or expectations is in the text of a reference."""
        for record in (HELD_OUT, REGRESSION, REGRESSION | NEGATIVE):
            reference = public_reference(parse_task(record))
            text = json.dumps(to_json(reference))
            for word in ("ccl-skills", "owner", "invoke", "negative", "grader", "hidden", "risk"):
                assert word not in text
            schema("task-reference").validate(to_json(reference))

    def test_no_schema_of_a_reference_knows_an_owner(self) -> None:
        """T6: a reference that carries an owner is none."""
        reference = to_json(public_reference(parse_task(REGRESSION)))
        assert "execution_mode" not in reference
        assert not schema("task-reference").is_valid(reference | {"expected_owners": ["a:b"]})
        assert "expected_owners" not in published_models()["task-reference.schema.json"].model_fields  # type: ignore[attr-defined]

    def test_owners_change_the_hash(self) -> None:
        other = parse_task(changed(REGRESSION, expected_owners=["ccl-skills:other"]))
        assert task_hash(other) != task_hash(parse_task(REGRESSION))
