"""Which criteria the crosscheck judges."""

from __future__ import annotations

import json
from typing import Any

import pytest

from skill_effectiveness.acceptance.milestone.criteria import Criteria, sort_criteria
from skill_effectiveness.acceptance.milestone.input import read_input

PUSH = {"kind": "remote_push"}
CLOSED = {"kind": "milestone_closed", "ref": "acme/app#6"}


def sort(*entries: Any, criteria: tuple[str, ...] = ("Deliver it.", "It works.")) -> Criteria:  # noqa: ANN401 - any JSON
    document = {
        "plan": "p", "id": "m", "repository": "/r", "target": "t", "base": "b",
        "criteria": criteria, "delivery_criteria": entries,
    }  # fmt: skip
    return sort_criteria(read_input(json.dumps(document).encode()).value)


def test_ids_survive() -> None:
    """M1: what is left keeps the id of its position."""
    found = sort({"id": "c1", "checks": [PUSH, {"kind": "issues_closed"}, CLOSED]})
    assert [(each.id, each.text) for each in found.build] == [("c2", "It works.")]
    assert found.deferred_ids == ("c1",)
    assert found.warnings == ()


@pytest.mark.parametrize(
    ("entries", "code", "about"),
    [
        ([{"id": "c3", "checks": [PUSH]}], "unknown_id", "c3"),
        ([{"id": "c1", "checks": [{"kind": "push"}]}], "unknown_check", "c1"),
        ([{"id": "c1", "checks": [{"kind": "milestone_closed", "ref": "six"}]}], "invalid_reference", "c1"),
        ([{"id": "c1", "checks": [{"kind": "milestone_closed"}]}], "invalid_reference", "c1"),
        ([{"id": "c1", "checks": [PUSH]}, {"id": "c1", "checks": [CLOSED]}], "duplicate_id", "c1"),
        ([{"id": "c1", "checks": [PUSH, PUSH]}], "duplicate_check", "c1"),
        ([{"id": "c1", "checks": []}], "no_checks", "c1"),
        ([{"id": "c1"}], "no_checks", "c1"),
    ],
)
def test_a_bad_annotation_warns(entries: list[Any], code: str, about: str) -> None:
    """M2: and its criterion stays in the crosscheck."""
    found = sort(*entries)
    assert [(each.code, each.id) for each in found.warnings] == [(code, about)]
    assert [each.id for each in found.build] == ["c1", "c2"]
    assert found.deferred == ()


def test_a_phrase_removes_nothing() -> None:
    """M3: it is an advisory warning."""
    found = sort(criteria=("It is pushed to origin.", "It works."))
    assert [each.id for each in found.build] == ["c1", "c2"]
    assert [(each.code, each.id) for each in found.warnings] == [("delivery_phrase", "c1")]


def test_all_of_them_may_wait() -> None:
    """M4: then no build criterion is left."""
    found = sort({"id": "c1", "checks": [PUSH]}, {"id": "c2", "checks": [CLOSED]})
    assert (found.build, found.deferred_ids) == ((), ("c1", "c2"))
