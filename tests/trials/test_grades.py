"""Grades that cannot contradict themselves, and grading twice (trials.md, section 9)."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skill_effectiveness.evidence.faults import DocumentError, EvidenceError
from skill_effectiveness.trials.grades import CheckKind, deterministic_replay, grade_hash, parse_grade

DIGEST = "sha256:" + "0" * 64


def grade(checks: str = "p", **changes: object) -> dict[str, Any]:
    """A grade with one check for each letter: p passed, f did not."""
    return {
        "schema_version": 1,
        "artifact_contract": "skill-effectiveness-grade-v1",
        "trial_fingerprint": DIGEST,
        "grader_hash": DIGEST,
        "checks": [
            {"check_id": f"check-{n}", "kind": "acceptance", "passed": letter == "p"}
            for n, letter in enumerate(checks)
        ],
        "passed": "f" not in checks,
    } | changes


def data(document: object) -> bytes:
    return json.dumps(document).encode()


class TestConjunction:
    @given(st.text("pf", min_size=1, max_size=6), st.booleans())
    def test_passed_is_the_conjunction(self, checks: str, claimed: bool) -> None:  # noqa: FBT001 - drawn
        """T57: whatever else is claimed is refused."""
        document = data(grade(checks, passed=claimed))
        if claimed is ("f" not in checks):
            assert parse_grade(document).passed is claimed
        else:
            with pytest.raises(DocumentError, match="conjunction"):
                parse_grade(document)

    def test_no_check_is_no_grade(self) -> None:
        """T57: nothing passes by looking at nothing."""
        with pytest.raises(DocumentError):
            parse_grade(data(grade("", passed=True)))

    def test_one_id_twice(self) -> None:
        """T57: a check cannot be answered twice."""
        document = grade("pp")
        document["checks"][1]["check_id"] = "check-0"
        with pytest.raises(DocumentError, match="one id"):
            parse_grade(data(document))

    @pytest.mark.parametrize("claimed", [1, "true", None, 1.0])
    def test_what_only_looks_true(self, claimed: object) -> None:
        """T57: true is the token."""
        with pytest.raises(DocumentError):
            parse_grade(data(grade("p", passed=claimed)))
        document = grade("p")
        document["checks"][0]["passed"] = claimed
        with pytest.raises(DocumentError):
            parse_grade(data(document))

    @pytest.mark.parametrize(
        "changes",
        [
            {"schema_version": True},
            {"artifact_contract": "skill-effectiveness-grade-v2"},
            {"trial_fingerprint": "0" * 64},
            {"reward": 1.5},
            {"reward": -0.1},
            {"reward": True},
            {"other": 1},
            {"secondary": {"": 1}},
        ],
    )
    def test_what_is_no_grade(self, changes: dict[str, object]) -> None:
        """T57: exact fields."""
        with pytest.raises(DocumentError):
            parse_grade(data(grade("p") | changes))

    @pytest.mark.parametrize("kind", ["safety", "permission", "data_loss"])
    def test_failures_that_outrank_preference(self, kind: str) -> None:
        document = grade("pff")
        document["checks"][1]["kind"] = kind
        (failure,) = parse_grade(data(document)).outranking_failures
        assert (failure.check_id, failure.kind) == ("check-1", CheckKind(kind))


class TestReplay:
    def test_the_same_grade_twice(self) -> None:
        """T57: equal as values, however they are laid out."""
        document = grade("pf", reward=0.5, secondary={"lines": 3.0})
        assert deterministic_replay(data(document), json.dumps(document, indent=2).encode()) is True

    def test_another_grade(self) -> None:
        """T57: any difference counts."""
        assert deterministic_replay(data(grade("p")), data(grade("p", reward=1.0))) is False
        assert deterministic_replay(data(grade("p")), data(grade("f"))) is False

    @pytest.mark.parametrize("bad", [b"", b"{}", b"nonsense", data(grade("f", passed=True))])
    def test_a_malformed_one_is_a_failure(self, bad: bytes) -> None:
        """T57: two equal documents that are no grades are no evidence."""
        good = data(grade("p"))
        for pair in ((bad, good), (good, bad), (bad, bad)):
            assert deterministic_replay(*pair) is False

    def test_absent_is_not_known(self) -> None:
        """T57: absence is neither agreement nor failure."""
        good = data(grade("p"))
        for pair in ((None, good), (good, None), (None, None)):
            assert deterministic_replay(*pair) is None

    @given(st.binary(max_size=60))
    def test_anything(self, junk: bytes) -> None:
        with pytest.raises(EvidenceError):
            parse_grade(junk)
        assert deterministic_replay(junk, junk) is False

    def test_hash_is_over_the_value(self) -> None:
        one = parse_grade(data(grade("p")))
        assert grade_hash(one) == grade_hash(parse_grade(json.dumps(grade("p"), indent=1).encode()))
        assert grade_hash(one) != grade_hash(parse_grade(data(grade("f"))))
