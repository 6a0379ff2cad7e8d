"""Writing attempts, references and edges; what is refused leaves no row."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from skill_effectiveness.acceptance.outcome.errors import OutcomeError
from skill_effectiveness.acceptance.outcome.records import CheckResult, Edge, IssueKey, PolicyDocument
from skill_effectiveness.acceptance.outcome.words import FAILURES, RESULTS, Family
from skill_effectiveness.evidence.documents import validate
from skill_effectiveness.evidence.faults import DocumentError
from tests.support.outcomes import COMMIT, ISSUE, OTHER_COMMIT, REPO
from tests.support.private import content

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.support.outcomes import Bench


def refused(bench: Bench, call: Callable[[], object]) -> str:
    """The code of a refusal that left everything as it was."""
    before = content(bench.store)
    with pytest.raises(OutcomeError) as caught:
        call()
    assert content(bench.store) == before
    assert not caught.value.undecidable
    return caught.value.message


class TestAttempts:
    def test_the_same_again(self, bench: Bench) -> None:
        bench.attempt()
        bench.attempt()
        assert bench.rows("attempt_recorded") == 1

    def test_it_comes_to_its_end(self, bench: Bench) -> None:
        bench.attempt(state="running", commit=None)
        bench.attempt(state="failed")
        assert bench.ledger().attempts["attempt-1"].commit == COMMIT

    @pytest.mark.parametrize(
        "change",
        [{"commit": OTHER_COMMIT}, {"state": "running"}, {"budget": {"max_attempts": 99}}, {"session": "x"}],
    )
    def test_an_end_stays(self, bench: Bench, change: dict[str, Any]) -> None:
        """O8: nothing about an attempt that is over can be said anew."""
        bench.attempt()
        assert refused(bench, lambda: bench.attempt(**change)) == "attempt_conflict"

    @pytest.mark.parametrize(
        "change",
        [
            {"issue_number": 8},
            {"repository": "acme/b"},
            {"actor": "human"},
            {"principal": "user:bob"},
            # Without the session a reviewer in it would be independent of it.
            {"session": "another"},
            {"session": None},
            {"budget": None},
        ],
    )
    def test_what_binds_stays(self, bench: Bench, change: dict[str, Any]) -> None:
        """O8: from the first row on."""
        bench.attempt(state="running", commit=None)
        assert refused(bench, lambda: bench.attempt(**change)) == "attempt_conflict"

    def test_what_was_unknown_may_be_told_later(self, bench: Bench) -> None:
        bench.attempt(state="queued", commit=None, session=None, budget=None)
        bench.attempt(state="running", commit=None)
        bench.attempt(budget={"max_attempts": 4})
        found = bench.ledger().attempts["attempt-1"]
        assert (found.session, found.budget) == ("agent-session", {"max_attempts": 4})

    @pytest.mark.parametrize(
        ("change", "where"),
        [
            ({"actor": "robot"}, "/actor"),
            ({"state": "done"}, "/state"),
            ({"commit": "abc"}, "/commit"),
            ({"commit": "A" * 40}, "/commit"),
            ({"principal": "alice"}, "/principal"),
            ({"principal": "user:"}, "/principal"),
            ({"principal": "system:accepted-outcome"}, "/"),
            ({"budget": [1]}, "/budget"),
            ({"repository": "../x"}, "/repository"),
            ({"repository": "-rf/x"}, "/repository"),
            ({"issue_number": 0}, "/issue_number"),
            ({"attempt_id": "a b"}, "/attempt_id"),
            ({"session": ""}, "/session"),
        ],
    )
    def test_misfits(self, bench: Bench, change: dict[str, Any], where: str) -> None:
        """O74: the closer's name is nobody's, and commits are full."""
        bench.attempt(attempt_id="other")
        assert refused(bench, lambda: bench.attempt(**change)) == f"record_invalid at {where}"


class TestReferences:
    def test_the_same_again(self, bench: Bench) -> None:
        bench.reference()
        bench.reference()
        assert bench.rows("reference_recorded") == 1

    def test_the_closer_is_no_person(self, bench: Bench) -> None:
        bench.attempt()
        call = lambda: bench.reference(closed_by_user_id="system:accepted-outcome")  # noqa: E731 - short
        assert refused(bench, call) == "record_invalid at /"


class TestEdges:
    def test_the_same_again(self, bench: Bench) -> None:
        """O34: unique by issue, commit, family and receipt."""
        bench.attempt()
        first = bench.edge("build", "complete", receipt="b-1")
        assert bench.edge("build", "complete", receipt="b-1") == first
        assert bench.rows("edge_recorded") == 1
        assert bench.edge("deployment", "live", receipt="b-1").edge_id != first.edge_id

    def test_a_reference_claims_a_commit_too(self, bench: Bench) -> None:
        """O78: a commit that names the issue."""
        bench.attempt()
        call = lambda: bench.edge("build", "failed", commit=OTHER_COMMIT)  # noqa: E731 - short
        assert refused(bench, call) == "evidence_commit_not_claimed"
        bench.reference(commit=OTHER_COMMIT)
        assert bench.edge("build", "failed", commit=OTHER_COMMIT).contradicts

    def test_a_commit_that_nobody_claims(self, bench: Bench) -> None:
        """O78: not that of another issue, of a running attempt, or of another repository."""
        bench.attempt(state="running")
        call = lambda: bench.edge("build", "failed")  # noqa: E731 - short
        assert refused(bench, call) == "evidence_commit_not_claimed"
        bench.attempt(attempt_id="a-2", issue_number=8)
        bench.attempt(attempt_id="a-3", repository="acme/other")
        assert refused(bench, call) == "evidence_commit_not_claimed"

    @pytest.mark.parametrize(
        ("family", "result", "others", "code"),
        [
            ("builds", "failed", {}, "evidence_family_unknown"),
            ("build", "broken", {}, "evidence_result_unknown"),
            ("build", None, {}, "evidence_result_unknown"),
            ("build", "live", {}, "evidence_result_unknown"),
            ("deployment", "expired", {}, "evidence_result_unknown"),
            ("push", "succeeded", {}, "evidence_result_unknown"),
            ("push", None, {"commit": None}, "evidence_push_needs_commit"),
            ("build", "failed", {"commit": None}, "record_invalid at /commit"),
            ("build", "failed", {"commit": "abc"}, "record_invalid at /commit"),
            ("build", "failed", {"receipt": None}, "evidence_receipt_not_found"),
            ("build", "failed", {"receipt": "r" * 201}, "record_invalid at /receipt"),
            ("build", "failed", {"receipt": "\udcff"}, "record_invalid"),
        ],
    )
    def test_refused(
        self, bench: Bench, family: str, result: str | None, others: dict[str, Any], code: str
    ) -> None:
        """O78: each by its own word."""
        bench.attempt()
        assert refused(bench, lambda: bench.edge(family, result, **others)) == code

    def test_another_environment(self, bench: Bench) -> None:
        bench.attempt()
        bench.edge("deployment", "live", receipt="d-1", environment="blue")
        call = lambda: bench.edge("deployment", "reverted", receipt="d-1", environment="green")  # noqa: E731 - short
        assert refused(bench, call) == "evidence_environment_mismatch"
        bench.edge("deployment", "reverted", receipt="d-1", environment="blue")

    def test_sixty_four_issues(self, bench: Bench) -> None:
        """The sixty-fifth issue of a commit is refused; the others may have more edges."""
        bench.attempt()
        value = {
            "repository": REPO, "commit": COMMIT, "family": "build", "receipt": "b", "result": "complete",
            "environment": None, "check": None,
        }  # fmt: skip
        edges = [
            validate(Edge, value | {"issue_number": number, "edge_id": f"edge-{number:024x}"})
            for number in range(100, 163)
        ]
        with bench.desk() as desk:
            desk.append(*(("edge_recorded", edge) for edge in edges))
        bench.edge("build", "complete")
        bench.attempt(attempt_id="a-2", issue_number=8)
        call = lambda: bench.edge("build", "complete", issue=IssueKey(REPO, 8))  # noqa: E731 - short
        assert refused(bench, call) == "evidence_too_many_issues"
        bench.edge("build", "failed")


def test_words_for_failure() -> None:
    """O46: each family's own, written here by hand."""
    assert {family.value: set(words) for family, words in FAILURES.items()} == {
        "qualification": {"failed"},
        "build": {"failed", "expired"},
        "deployment": {"reverted", "failed", "cancelled", "superseded"},
        "push": set(),
    }
    assert {family.value: set(words) for family, words in RESULTS.items()} == {
        "qualification": {"failed", "pending", "succeeded"},
        "build": {"failed", "expired", "pending", "complete"},
        "deployment": {"reverted", "failed", "cancelled", "superseded", "pending", "live", "succeeded"},
        "push": set(),
    }
    assert set(FAILURES) == set(RESULTS) == set(Family)


CHECK = {
    "repository": REPO,
    "name": "n",
    "commit": COMMIT,
    "artifact_digest": "sha1:" + "c" * 40,
    "status": "succeeded",
    "publisher": None,
    "session": None,
    "evidence_digest": None,
}


@pytest.mark.parametrize(
    "change",
    [
        {"name": ""},
        {"name": "n" * 121},
        {"commit": "abc"},
        {"artifact_digest": "c" * 40},
        {"artifact_digest": "sha1:" + "c" * 31},
        {"artifact_digest": "sha1:" + "c" * 90},
        {"status": "passed"},
        {"publisher": ""},
    ],
)
def test_identity_of_a_check(change: dict[str, Any]) -> None:
    """O38: named bytes, and a known word."""
    validate(CheckResult, CHECK)
    with pytest.raises(DocumentError):
        validate(CheckResult, CHECK | change)


@pytest.mark.parametrize(
    "change",
    [
        {"check": None},
        {"check": CHECK | {"commit": OTHER_COMMIT}},
        {"check": CHECK | {"status": "failed"}},
        {"family": "build", "result": "complete"},
        {"family": "push", "result": "succeeded", "check": None},
    ],
)
def test_an_edge_agrees_with_its_check(change: dict[str, Any]) -> None:
    """O38: commit and word are those of the check; nothing but a qualification has one."""
    edge = {
        "repository": REPO,
        "issue_number": 7,
        "edge_id": "edge-" + "0" * 24,
        "commit": COMMIT,
        "family": "qualification",
        "receipt": "r",
        "result": "succeeded",
        "environment": None,
        "check": CHECK,
    }
    assert validate(Edge, edge).qualifies(ISSUE, COMMIT)
    with pytest.raises(DocumentError):
        validate(Edge, edge | change)


def test_what_a_policy_leaves_out_is_off() -> None:
    """O31: both flags, the visibility, the list."""
    policy = validate(PolicyDocument, {"schema_version": 1, "repositories": {REPO: {}}})
    row = policy.of(REPO)
    assert (row.agents_enabled, row.verified_closing_enabled, row.public, row.admitted_verifiers) == (
        False, False, False, (),
    )  # fmt: skip
    assert policy.of("acme/other") == row
