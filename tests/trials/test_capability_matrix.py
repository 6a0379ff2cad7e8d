from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from skill_effectiveness.evidence.canonical import digest_object
from skill_effectiveness.protocol.capability import MatrixStatus
from skill_effectiveness.protocol.errors import ProtocolError
from skill_effectiveness.protocol.words import TaskFamily
from skill_effectiveness.trials.capability_matrix import matrix, matrix_json, read_probe_file
from tests.support.pilots import probe_file

if TYPE_CHECKING:
    from tests.support.pilots import Anything

BOTH = [TaskFamily.REVIEW, TaskFamily.PLAN]
REVIEW = read_probe_file(probe_file("review", "codex"))
PLAN = read_probe_file(probe_file("plan", "codex"))


def test_a_row_for_each_family_makes_it_ready() -> None:
    """T46: and only then."""
    assert matrix(BOTH, "codex", [REVIEW, PLAN]).is_ready
    found = matrix(BOTH, "codex", [REVIEW])
    assert found.status is MatrixStatus.CAUSAL_CORE_UNAVAILABLE
    assert (found.covered, found.lacking) == ((TaskFamily.REVIEW,), (TaskFamily.PLAN,))


def test_rows_in_memory_never_make_it_ready() -> None:
    """T40: equal to those of files, and nothing stands behind them."""
    found = matrix(BOTH, "codex", [], [REVIEW.row, PLAN.row])
    assert not found.is_ready
    assert len(found.rows) == 2
    assert not matrix(BOTH, "codex", [REVIEW], [PLAN.row]).is_ready


def test_rows_of_another_provider_say_nothing() -> None:
    """T46: a proof is of the provider it was made with."""
    assert not matrix(BOTH, "claude", [REVIEW, PLAN]).is_ready


def test_no_family_is_no_capability() -> None:
    assert not matrix([], "codex", [REVIEW]).is_ready


def test_a_family_twice_needs_one_row() -> None:
    assert matrix([TaskFamily.REVIEW, TaskFamily.REVIEW], "codex", [REVIEW]).is_ready


@pytest.mark.parametrize(
    ("part", "field", "value"),
    [
        ("mount_boundary", "outside_read_denied", False),
        ("mount_boundary", "outside_write_denied", None),
        ("access_audit", "all_accesses_recorded", False),
        ("access_audit", "tamper_check_passed", None),
        ("memory_isolation", "fresh_session", False),
        ("memory_isolation", "cross_session_recall_detected", True),
        ("memory_isolation", "cross_session_recall_detected", None),
    ],
)
def test_every_observation_counts(part: str, field: str, value: Anything) -> None:
    """T46: one that is not safe, or was not made."""
    probe = json.loads(probe_file("review", "codex"))
    entry = probe["entry"]
    entry["evidence"][part]["observations"][field] = value
    entry["evidence_hash"] = digest_object(entry["evidence"])
    probe["entry_hash"] = digest_object(entry)
    assert not matrix([TaskFamily.REVIEW], "codex", [read_probe_file(json.dumps(probe).encode())]).is_ready


@pytest.mark.parametrize("edit", [{"entry_hash": "sha256:" + 64 * "0"}, {"more": 1}, {"entry": {}}])
def test_a_probe_file_that_was_changed(edit: dict[str, Anything]) -> None:
    """T40: both hashes are computed again."""
    with pytest.raises(ProtocolError):
        read_probe_file(json.dumps(json.loads(probe_file("review", "codex")) | edit).encode())


def test_as_json() -> None:
    plain = matrix_json(matrix(BOTH, "codex", [REVIEW]))
    assert (plain["status"], plain["covered"], plain["lacking"]) == (
        "causal_core_unavailable",
        ["review"],
        ["plan"],
    )
