"""The row of a claim, and what later events do to it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from skill_effectiveness.acceptance.outcome.claims import ClaimRow
from skill_effectiveness.evidence.documents import validate
from skill_effectiveness.evidence.faults import DocumentError
from tests.support.outcomes import COMMIT, CRITERION, ISSUE, OTHER_COMMIT, REPO

if TYPE_CHECKING:
    from tests.support.outcomes import Bench

ROW: dict[str, Any] = {
    "repository": REPO,
    "issue_number": 7,
    "attempt_id": "attempt-1",
    "revision": COMMIT,
    "state": "accepted",
    "reasons": [],
    "criteria": [{"criterion": CRITERION, "evidence": "r", "visibility": "public"}],
    "verifier": "ci",
    "falsifier": "ci=failed",
    "closed": True,
    "closed_at": "2026-03-04T05:06:07.000Z",
    "closed_by_actor": "system:accepted-outcome",
    "contradicted_at": None,
    "contradicted_by_evidence_id": None,
    "contradiction_reason": None,
}
FAILED = {
    "state": "failed",
    "criteria": [],
    "verifier": None,
    "falsifier": None,
    "reasons": ["verifier_failed"],
}
OPEN = {"closed": False, "closed_at": None, "closed_by_actor": None}


class TestRow:
    def test_good_ones(self) -> None:
        for change in ({}, OPEN, FAILED | OPEN, {"revision": "f" * 64}):
            assert validate(ClaimRow, ROW | change).model_dump(mode="json").items() >= (ROW | change).items()

    @pytest.mark.parametrize(
        "change",
        [
            FAILED,
            {"closed_at": None},
            {"closed_by_actor": None},
            {"closed": False},
            OPEN | {"closed_at": "2026-03-04T05:06:07.000Z"},
        ],
    )
    def test_closed(self, change: dict[str, Any]) -> None:
        """O61 O62: only accepted claims, and only with a time and a name."""
        with pytest.raises(DocumentError):
            validate(ClaimRow, ROW | change)

    @pytest.mark.parametrize(
        "revision",
        ["", "abc", "A" * 40, "a" * 39, "a" * 41, "a" * 63, "g" * 40, "a" * 40 + "\n", "HEAD", None],
    )
    def test_revision(self, revision: object) -> None:
        """O74: 40 or 64 lower-case hexadecimal digits."""
        with pytest.raises(DocumentError):
            validate(ClaimRow, ROW | {"revision": revision})

    @pytest.mark.parametrize(
        "change",
        [
            FAILED | OPEN | {"verifier": "ci"},
            FAILED | OPEN | {"falsifier": "x"},
            FAILED | OPEN | {"criteria": ROW["criteria"]},
            {"verifier": None},
            {"falsifier": None},
            {"criteria": []},
            {"verifier": "v" * 201},
            {"falsifier": "v" * 501},
            {"criteria": [{"criterion": "a", "evidence": "r", "visibility": "private"}]},
            {"criteria": [{"criterion": "a", "evidence": None, "visibility": "public"}]},
            {"contradicted_at": "2026-03-04T05:06:07.000Z"},
            {"contradiction_reason": "build:failed"},
            {"budget": {}},
        ],
    )
    def test_other_misfits(self, change: dict[str, Any]) -> None:
        with pytest.raises(DocumentError):
            validate(ClaimRow, ROW | change)


def closed(bench: Bench) -> None:
    bench.submit(bench.good())
    assert bench.close().closed


class TestLater:
    @pytest.mark.parametrize(
        ("family", "result", "said"),
        [("build", "failed", "build:failed"), ("deployment", "reverted", "deployment:reverted")],
    )
    def test_a_failure(self, bench: Bench, family: str, result: str, said: str) -> None:
        """O54 O55: the claim is stamped; verdict and issue stay."""
        closed(bench)
        before = bench.row()
        edge = bench.edge(family, result)
        row = bench.row()
        assert (row.contradicted_by_evidence_id, row.contradiction_reason) == (edge.edge_id, said)
        assert row.contradicted_at == "2026-03-04T05:06:07.000Z"
        stamp = {"contradicted_at": None, "contradicted_by_evidence_id": None, "contradiction_reason": None}
        assert row.model_copy(update=stamp) == before
        assert bench.rows("issue_closed") == 1
        assert bench.ledger().closed_here(ISSUE)

    def test_a_failed_check(self, bench: Bench) -> None:
        """O54: a qualification too."""
        closed(bench)
        bench.check("failed")
        assert bench.row().contradiction_reason == "qualification:failed"

    @pytest.mark.parametrize(
        ("family", "result"), [("build", "complete"), ("deployment", "live"), ("push", None)]
    )
    def test_no_failure(self, bench: Bench, family: str, result: str | None) -> None:
        """O56 O58: stamps nothing."""
        closed(bench)
        before = bench.row()
        bench.edge(family, result)
        assert bench.row() == before

    def test_another_revision(self, bench: Bench) -> None:
        """O57: stamps nothing."""
        closed(bench)
        before = bench.row()
        bench.reference(commit=OTHER_COMMIT)
        bench.edge("build", "failed", commit=OTHER_COMMIT)
        assert bench.row() == before

    def test_the_first_stamp_stays(self, bench: Bench) -> None:
        """O54: the second failure changes nothing."""
        closed(bench)
        bench.edge("build", "failed")
        first = bench.row()
        bench.edge("deployment", "reverted")
        assert bench.row() == first

    def test_a_live_deployment_is_reverted(self, bench: Bench) -> None:
        """O55: under the receipt that it had before."""
        closed(bench)
        bench.edge("deployment", "live", receipt="d-1")
        assert bench.row().contradicted_at is None
        bench.edge("deployment", "reverted", receipt="d-1")
        assert bench.row().contradiction_reason == "deployment:reverted"

    def test_a_claim_that_closed_nothing(self, bench: Bench) -> None:
        """O54: is stamped too; one that was not accepted is not."""
        edge = bench.good()
        bench.submit(edge)
        bench.attempt(attempt_id="attempt-2")
        bench.submit(edge, attempt="attempt-2", false_greens=("x",))
        bench.edge("build", "failed")
        assert bench.row().contradiction_reason == "build:failed"
        assert bench.row(attempt="attempt-2").contradicted_at is None

    def test_accepted_only_afterwards(self, bench: Bench) -> None:
        """O46: nothing disagreed later, it had disagreed before."""
        edge = bench.good()
        bench.edge("build", "failed")
        bench.submit(edge)
        assert bench.row().contradicted_at is None

    def test_a_regrade_keeps_the_stamp(self, bench: Bench) -> None:
        """O60: and the close."""
        closed(bench)
        bench.edge("build", "failed")
        stamped = bench.row()
        bench.submit(bench.check())
        assert bench.row() == stamped
