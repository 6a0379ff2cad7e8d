"""Digests that identify a trial, against values computed by hand."""

from __future__ import annotations

import hashlib
import json

import pytest

from skill_effectiveness.trials.binding import fingerprint, location_hash
from skill_effectiveness.trials.models import TrialBudget, TrialRuntime, read_record
from tests.support.trials import LIMITED, RUNTIME, Json, digest, task

# printf '{"root_id":"root-%032d","trial_path":"task-a/S1/sample-001"}' 0 | sha256sum
LOCATION = "sha256:accd0051bf75f72984f4313bece73c2929755655766535657ab824eaf2263fd8"


def by_hand(value: Json) -> str:
    """The digest by the standard library: sorted, without blanks; no number here has two spellings."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"))
    return "sha256:" + hashlib.sha256(text.encode()).hexdigest()


def test_a_location_names_root_and_place_alone() -> None:
    assert location_hash(f"root-{0:032d}", "task-a/S1/sample-001") == LOCATION


BASE = {
    "task": {
        "task_id": "task-a",
        "task_family": "implementation",
        "cohort": "known-regression",
        "prompt_ref": "fixture://tasks/a",
        "expected_owners": ["demo:refactoring"],
        "frozen_at_sha": "root",
        "corpus_version": "tests-1",
        "execution_mode": "answer_only",
    },
    "manifest_hash": digest("d"),
    "runtime": RUNTIME | {"further": ["key"]},
    "budget": LIMITED,
    "sample_index": 3,
    "trial_location_hash": digest("e"),
}


def of(**changes: Json) -> str:
    fields = BASE | changes
    return fingerprint(
        task=task(**fields["task"]),
        manifest_hash=fields["manifest_hash"],
        runtime=read_record(TrialRuntime, fields["runtime"]),
        budget=read_record(TrialBudget, fields["budget"]),
        sample_index=fields["sample_index"],
        trial_location_hash=fields["trial_location_hash"],
    )


def test_a_fingerprint_is_over_the_full_task_record() -> None:
    assert of() == by_hand(BASE)


@pytest.mark.parametrize(
    "changes",
    [
        {"task": BASE["task"] | {"expected_owners": ["demo:other"]}},  # type: ignore[operator]
        {"manifest_hash": digest("f")},
        {"runtime": RUNTIME},
        {"budget": LIMITED | {"tokens": 1001}},
        {"sample_index": 4},
        {"trial_location_hash": digest("f")},
    ],
    ids=lambda changes: next(iter(changes)),
)
def test_and_changes_with_each_of_its_parts(changes: Json) -> None:
    assert of(**changes) != of()
