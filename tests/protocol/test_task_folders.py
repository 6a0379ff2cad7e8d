from __future__ import annotations

import hashlib
from typing import Any

import pytest

from skill_effectiveness.protocol.document import to_json
from skill_effectiveness.protocol.task_folders import FolderFacts, corpus_version, task_of_folder
from skill_effectiveness.protocol.tasks import HeldOutTask, TaskCode, TaskError, TaskRecord

TREE = "sha256:" + 64 * "7"
HELD_OUT: dict[str, Any] = {
    "cohort": "held-out-generalization",
    "prompt_ref": "corpus://second/mend",
    "frozen_at_sha": 40 * "c",
    "skill_content_cutoff": "2026-10-01",
    "curator_independent": True,
    "repo_snapshot": "sha256:" + 64 * "d",
    "should_invoke": True,
    "risk_tags": ["data-loss"],
    "graders": ["hidden-tests"],
    "negative_control": False,
    "execution_mode": "workspace",
}
FREE = ("cohort",)


def record(metadata: dict[str, Any] | None = None, **others: Any) -> dict[str, Any]:  # noqa: ANN401 - any argument
    settings: dict[str, Any] = {
        "study": "my-study",
        "skills": ["mend", "review"],
        "corpus_version": "folders-x",
    }
    return to_json(task_of_folder(FolderFacts("fix-git", TREE, metadata or {}), **(settings | others)))


def refused(metadata: dict[str, Any], **others: Any) -> TaskError:  # noqa: ANN401 - any argument
    with pytest.raises(TaskError) as caught:
        record(metadata, **others)
    return caught.value


class TestTable:
    def test_a_folder_that_declares_nothing(self) -> None:
        """T60: the default of every row."""
        assert record() == {
            "task_id": "fix-git",
            "task_family": "implementation",
            "cohort": "known-regression",
            "prompt_ref": "task://" + 64 * "7",
            "expected_owners": ["my-study:mend", "my-study:review"],
            "frozen_at_sha": "root",
            "corpus_version": "folders-x",
            "execution_mode": "workspace",
        }

    def test_a_full_arm_without_skills(self) -> None:
        """T60: the profile is the owner when there are no skills."""
        assert record(skills=[])["expected_owners"] == ["my-study:profile"]

    def test_two_namespaces(self) -> None:
        """T60: owners are in the namespace of the study."""
        assert record(study="ccl-skills")["expected_owners"] == ["ccl-skills:mend", "ccl-skills:review"]
        assert record(study="a-1", skills=["b"])["expected_owners"] == ["a-1:b"]

    @pytest.mark.parametrize(
        ("field", "value"),
        [("task_family", "review"), ("cohort", "known-regression"), ("execution_mode", "answer_only")],
    )
    def test_what_may_be_declared(self, field: str, value: str) -> None:
        """T60: family, cohort and execution mode as declared."""
        assert record({field: value}) == record() | {field: value}

    def test_a_negative_control(self) -> None:
        """T60: no owners, and the skills should not be invoked."""
        for skills in (["mend"], []):
            found = record({"negative_control": True}, skills=skills)
            assert found["expected_owners"] == []
            assert (found["negative_control"], found["should_invoke"]) == (True, False)
        assert record({"negative_control": False}) == record() | {"negative_control": False}

    def test_keys_that_mean_nothing_here_are_left_alone(self) -> None:
        """T60: what Harbor and others write into metadata, and what nobody may declare."""
        others = {"author_name": "x", "difficulty": "hard", "tags": ["git"], "version": 1.0}
        assert record(others) == record()
        assert record({"expected_owners": ["a:b"], "task_id": "other", "corpus_version": "v"}) == record()
        assert record({"prompt_ref": "corpus://a", "frozen_at_sha": 40 * "a"}) == record()

    @pytest.mark.parametrize(
        "metadata",
        [
            {"task_family": "writing"},
            {"cohort": "seen"},
            {"execution_mode": "chat"},
            {"execution_mode": None},
            {"negative_control": "yes"},
            {"task_family": 3},
        ],
    )
    def test_a_wrong_declaration_is_refused(self, metadata: dict[str, Any]) -> None:
        error = refused(metadata)
        assert (error.code, error.where) == (TaskCode.BAD_RECORD, f"/{next(iter(metadata))}")

    @pytest.mark.parametrize("study", ["My Study", "a:b", ""])
    def test_a_study_whose_name_is_no_namespace(self, study: str) -> None:
        assert refused({}, study=study).code is TaskCode.BAD_RECORD

    def test_a_skill_listed_twice(self) -> None:
        assert refused({}, skills=["mend", "mend"]).code is TaskCode.BAD_RECORD


class TestHeldOut:
    def test_every_field_is_taken_as_declared(self) -> None:
        """T60: a held-out folder declares its fields itself."""
        found = record(HELD_OUT)
        assert found == {
            **HELD_OUT,
            "task_id": "fix-git",
            "task_family": "implementation",
            "expected_owners": ["my-study:mend", "my-study:review"],
            "corpus_version": "folders-x",
        }
        task = task_of_folder(
            FolderFacts("fix-git", TREE, HELD_OUT), study="s", skills=[], corpus_version="folders-x"
        )
        assert isinstance(task, HeldOutTask)

    @pytest.mark.parametrize("field", [name for name in HELD_OUT if name not in FREE])
    def test_none_is_left_to_a_default(self, field: str) -> None:
        """T60: each field that a held-out folder leaves out."""
        error = refused({name: value for name, value in HELD_OUT.items() if name != field})
        assert (error.code, error.where) == (TaskCode.HELD_OUT_UNDECLARED, f"/metadata/{field}")

    def test_a_negative_control_declares_both_words(self) -> None:
        found = record(HELD_OUT | {"negative_control": True, "should_invoke": False})
        assert found["expected_owners"] == []
        assert record(HELD_OUT | {"negative_control": True})["expected_owners"] != []

    def test_its_prompt_stays_in_the_corpus(self) -> None:
        assert refused(HELD_OUT | {"prompt_ref": "task://" + 64 * "7"}).where == "/prompt_ref"


class TestCorpusVersion:
    def test_it_is_the_digest_of_names_and_contents(self) -> None:
        """T60: the version of a set of folders, in any order."""
        folders = [FolderFacts("b", TREE), FolderFacts("a", "sha256:" + 64 * "0")]
        text = (
            '[{"digest":"sha256:'
            + 64 * "0"
            + '","task_id":"a"},{"digest":"sha256:'
            + 64 * "7"
            + '","task_id":"b"}]'
        )
        wanted = "folders-" + hashlib.sha256(text.encode()).hexdigest()
        assert corpus_version(folders) == corpus_version(reversed(folders)) == wanted

    def test_it_fits_a_record(self) -> None:
        version = corpus_version([FolderFacts("fix-git", TREE)])
        task = task_of_folder(FolderFacts("fix-git", TREE), study="s", skills=[], corpus_version=version)
        assert isinstance(task, TaskRecord)
        assert task.corpus_version == version

    def test_a_name_twice_is_refused(self) -> None:
        with pytest.raises(TaskError) as caught:
            corpus_version([FolderFacts("a", TREE), FolderFacts("a", TREE)])
        assert caught.value.code is TaskCode.TASK_REPEATED
