"""A new run of the same plan: what it takes over, and what it must look at again."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.milestones import finding, needs, node, verified
from tests.support.private import content

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.milestones import Case, Hall

pytestmark = pytest.mark.slow


def pending(case: Case, hall: Hall, *findings: dict[str, Any]) -> Case:
    """A run that ended crosscheck_pending."""
    hall.script["B"] = [needs(*(findings or (finding(),)))]
    assert case.started().close().document["code"] == "crosscheck_pending"
    hall.script.clear()
    hall.asked.clear()
    return case


def integrated(case: Case, **members: Any) -> Case:  # noqa: ANN401 - members of the node
    """A run that accepted and integrated a node and was not closed."""
    case.document["nodes"] = [node(**members)]
    case.started()
    said = case.accept("n1", "--batch", "main", receipt="red: failed before\n")
    assert said.code == 0, said
    return case


class TestPrior:
    def test_it_is_judged_again(self, case: Case, hall: Hall) -> None:
        """M82 M84: round 1 of the new run starts with the pending V; what it says now is told."""
        pending(case, hall, finding("B-1"), finding("B-2"))
        before = case.verdict()
        said = case.start("r2")
        assert said.document["prior"]["run"] == "r1"
        assert said.document["prior"]["verdict"] == before
        minor = finding("B-1", severity="P3", impact=None)
        hall.script["A"] = [verified(minor)]
        assert case.close("r2").code == 0
        for name in "AB":
            assert "B-2 [P1/core_function]" in hall.of(name)[0].prompt
        told = case("report", run="r2").document["crosscheck"]["previous_crosscheck"]
        assert told["verdict"] == before
        assert told["findings"] == [
            {"id": "B-1", "result": "follow_up"},
            {"id": "B-2", "result": "not_reported"},
        ]

    def test_one_that_still_blocks(self, case: Case, hall: Hall) -> None:
        """M84: prevents verified; repeating the close passes nothing."""
        pending(case, hall)
        case.started("r2")
        hall.script["A"] = [needs(finding("B-1"))]
        assert case.close("r2").document["code"] == "crosscheck_pending"
        told = case("report", run="r2").document["crosscheck"]["previous_crosscheck"]
        assert told["findings"] == [{"id": "B-1", "result": "blocking"}]

    def test_another_plan_or_milestone(self, case: Case, hall: Hall) -> None:
        """M82: has no prior."""
        pending(case, hall)
        assert case.start("r2", plan="other").document["prior"] is None
        assert case.start("r3", id="m2").document["prior"] is None

    def test_a_run_that_judged_nothing(self, case: Case, hall: Hall) -> None:
        """M82: passes on what it was started with."""
        pending(case, hall)
        case.started("r2")
        assert case.start("r3").document["prior"]["run"] == "r1"

    def test_a_run_that_closed(self, case: Case, hall: Hall) -> None:
        """M82: leaves nothing."""
        pending(case, hall)
        assert case.started("r2").close("r2").code == 0
        assert case.start("r3").document["prior"] is None

    def spoiled(self, case: Case, spoil: Any) -> None:  # noqa: ANN401 - a function of bytes
        journal = case.folder() / "journal.jsonl"
        journal.write_bytes(spoil(journal.read_bytes()))
        said = case.start("r2")
        assert (said.code, said.document["code"], said.document["detail"]) == (
            2,
            "prior_evidence_unreadable",
            "r1",
        )
        assert not case.folder("r2").exists()

    def test_evidence_that_cannot_be_read(self, case: Case, hall: Hall) -> None:
        """M83: refused, and no run is created."""
        pending(case, hall)
        self.spoiled(case, lambda data: data.replace(b"crosscheck_pending", b"crosscheck_wending"))

    def test_a_run_of_another_plan(self, case: Case, hall: Hall) -> None:
        """M83: that cannot be read is nothing to this one, unless nobody can say whose it is."""
        pending(case, hall)
        journal = case.folder() / "journal.jsonl"
        journal.write_bytes(journal.read_bytes().replace(b"crosscheck_pending", b"crosscheck_wending"))
        assert case.start("r2", plan="other").code == 0
        (case.folder() / "milestone.json").unlink()
        assert case.start("r3", plan="third").document["code"] == "prior_evidence_unreadable"

    def test_evidence_that_is_cut_off(self, case: Case, hall: Hall) -> None:
        """M83: so is a journal that lost its last row."""
        pending(case, hall)
        self.spoiled(case, lambda data: data[: data.rstrip(b"\n").rindex(b"\n") + 1])


class TestReuse:
    def test_a_proven_node(self, case: Case) -> None:
        """M87 M88: taken over with its base and receipt; the source journal stays as it is."""
        integrated(case)
        before = self.journal(case)
        later = case.repository.commit(more="1")
        nodes = [node(base=later), node("n2", base=later)]
        said = case.start("r2", base=later, nodes=nodes)
        assert (said.code, said.document["reused"]) == (0, ["n1"])
        reuse = case.rows("crw.reuseIntegrated", "r2")[0]
        assert (reuse["source_run"], reuse["base"]) == ("r1", case.first)
        assert reuse["carried"]["inherited_approval"]["run"] == "r1"
        assert said.document["range_base"] == case.first
        assert case.close("r2").code == 0
        found = case.verdict("r2")
        assert (found["base"], found["receipts"][0]["source_run"]) == (case.first, "r1")
        document = (case.folder("r2") / "crosscheck" / "m1-r1-receipts.md").read_text()
        acceptance = case.rows("acceptance")[0]["call"]
        assert f"source run: r1\nunit check: unit-check-1\nacceptance: {acceptance}\n" in document
        assert "red: failed before" in document
        audited = case.rows("crw.audit", "r2")[0]["results"]
        assert [(each["acceptance"], each["result"]) for each in audited] == [(acceptance, "ok")]
        assert self.journal(case) == before

    def journal(self, case: Case) -> dict[str, bytes]:
        return {name: data for name, data in content(case.folder()).items() if "lock" not in name}

    def test_reused_twice(self, case: Case) -> None:
        """M88: a third run takes it from the run that integrated it."""
        integrated(case)
        case.started("r2")
        case.started("r3")
        assert case.rows("crw.reuseIntegrated", "r3")[0]["source_run"] == "r1"

    @pytest.mark.parametrize("members", [{"slice": "other"}, {"criteria": ["other"]}, {"design": "other"}])
    def test_what_changed(self, case: Case, members: dict[str, Any]) -> None:
        """M86: refused, naming the node; no run is created."""
        integrated(case)
        said = case.start("r2", nodes=[node(**members)])
        assert (said.code, said.document["code"], said.document["detail"]) == (2, "reuse_refused", "n1")
        assert not case.folder("r2").exists()

    def test_a_target_that_lost_it(self, case: Case) -> None:
        """M85: integrated once, and not contained any more."""
        case.repository.commit(more="1")
        integrated(case)
        case.git("reset", "-q", "--hard", "HEAD~1")
        assert case.start("r2").document["code"] == "reuse_refused"

    def test_an_accepted_node_that_was_not_integrated(self, case: Case) -> None:
        """M85: is pending, and takes its ordinary lane."""
        case.document["nodes"] = [node()]
        case.started()
        assert case.accept("n1").code == 0
        assert case.start("r2").document["reused"] == []

    @pytest.mark.parametrize("gone", ["receipts/unit-check-1.receipt", "journal.jsonl"])
    def test_a_source_that_is_gone(self, case: Case, hall: Hall, gone: str) -> None:
        """M40: a hold, and nobody is asked."""
        integrated(case)
        case.started("r2")
        (case.folder() / gone).unlink()
        said = case.close("r2")
        assert (said.code, said.document["code"]) == (3, "crosscheck_receipt_missing")
        assert hall.asked == []

    def test_a_land_node(self, case: Case) -> None:
        """M88: keeps its release's base; its design may be another one now."""
        head, tree = case.head, case.git("rev-parse", "main^{tree}")
        release = {
            "head": head, "tree": tree, "base": case.first, "slice": "slice n1", "criteria": ["n1 works"],
        }  # fmt: skip
        integrated(case, land=release)
        said = case.start("r2", nodes=[node(land=release, design="anew")])
        assert said.document["reused"] == ["n1"]
        assert case.rows("crw.reuseIntegrated", "r2")[0]["base"] == case.first
        refused = case.start("r3", nodes=[node(land=release | {"tree": head})])
        assert refused.document["code"] == "reuse_refused"


def test_runs_are_numbered(case: Case, tmp_path: Path) -> None:
    """M82: in the order of their start, whatever their names."""
    del tmp_path
    case.started("z")
    case.started("a")
    numbers = [each["number"] for each in case("status", run=None).document["runs"]]
    assert numbers == [1, 2]
    assert case.start("a").document["code"] == "run_exists"
    assert json.loads((case.folder("a") / "milestone.json").read_text()) == case.document
