"""Receipts of sibling tools count where their own journal has them, and nowhere else."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from skill_effectiveness.acceptance.outcome.errors import OutcomeError
from skill_effectiveness.acceptance.outcome.recording import NewEdge, add_edge
from skill_effectiveness.acceptance.outcome.sibling_records import Shown
from skill_effectiveness.evidence.canonical import digest_bytes
from skill_effectiveness.evidence.root import PrivateRoot, RootKind
from skill_effectiveness.evidence.single_file import FileJournal
from tests.support.outcomes import CRITERION, ISSUE, OTHER_COMMIT, POLICY_DIGEST, PUBLISHER

if TYPE_CHECKING:
    from pathlib import Path

    from skill_effectiveness.acceptance.outcome.records import CheckResult, Edge
    from tests.support.outcomes import Bench

COMMAND = {
    "recordType": "command",
    "itemId": "check",
    "policyDigest": POLICY_DIGEST,
    "attempt": 1,
    "producer": {"name": "closeout-reference", "version": "1.2.3"},
}
REVIEW = {
    "recordType": "review",
    "itemId": "careful",
    "policyDigest": POLICY_DIGEST,
    "attempt": 2,
    "producer": {"session": "s-1", "model": "m", "provider": "p"},
    "findings": [],
}


@pytest.fixture
def attempted(bench: Bench) -> Bench:
    """A bench with an attempt that ended at the repository's commit."""
    bench.policy()
    bench.attempt(commit=bench.commit())
    return bench


def refused(bench: Bench, **shown: Any) -> str:  # noqa: ANN401 - members of Shown
    edges = len(bench.ledger().edges)
    with pytest.raises(OutcomeError) as caught:
        bench.qualify(**shown)
    assert len(bench.ledger().edges) == edges
    return caught.value.code.value


def check_of(bench: Bench, **shown: Any) -> CheckResult:  # noqa: ANN401 - members of Shown
    check = bench.qualify(**shown).check
    assert check is not None
    return check


def stored(bench: Bench, record: dict[str, Any], kind: str, **members: object) -> Path:
    """The file of a record, and the row of closeout's journal that it needs."""
    file = bench.file(f"{record['itemId']}.json", record | {"head": bench.commit()} | members)
    body = {"itemId": record["itemId"], "recordDigest": digest_bytes(file.read_bytes())}
    bench.closeout_rows((kind, body))
    return file


class TestDecisions:
    def test_a_whole_one(self, attempted: Bench) -> None:
        """O82: counts under its publisher, about the tree of its head."""
        decision = attempted.journalled(attempted.decision())
        edge = attempted.qualify(decision=decision)
        check = edge.check
        assert check is not None
        assert (check.name, check.commit, check.status.value, check.publisher, check.session) == (
            "closeout/beforePR", attempted.commit(), "succeeded", PUBLISHER, None,
        )  # fmt: skip
        # The tree without entries, as every git knows it.
        assert check.artifact_digest == "sha1:4b825dc642cb6eb9a060e54bf8d69288fbee4904"
        assert check.evidence_digest == digest_bytes(decision.read_bytes())
        assert edge.receipt == f"closeout/beforePR:{check.evidence_digest}"
        judged = attempted.submit(edge)
        assert (judged.grading.state.value, judged.grading.reasons) == ("accepted", ())

    def test_without_a_row(self, attempted: Bench) -> None:
        """O79: a file alone is no receipt, whatever else the journal has."""
        assert refused(attempted, decision=attempted.decision()) == "evidence_receipt_not_found"
        attempted.journalled(attempted.decision())
        forged = attempted.decision(warnings=[{"code": "x", "message": "y"}])
        assert refused(attempted, decision=forged) == "evidence_receipt_not_found"

    def test_without_a_publisher(self, attempted: Bench) -> None:
        """O82: is no receipt, row or not."""
        document = json.loads(attempted.decision().read_bytes())
        del document["publisher"]
        decision = attempted.journalled(attempted.file("d.json", document))
        assert refused(attempted, decision=decision) == "evidence_receipt_not_found"

    def test_a_blank_publisher_is_unknown(self, attempted: Bench) -> None:
        """O52: and unknown is not independent."""
        decision = attempted.journalled(attempted.decision(publisher="  "))
        judged = attempted.submit(attempted.qualify(decision=decision))
        assert judged.grading.reasons == ("verifier_not_independent",)

    @pytest.mark.parametrize(
        ("word", "status"), [("rejected", "failed"), ("blocked", "pending"), ("maybe", "pending")]
    )
    def test_other_words(self, attempted: Bench, word: str, status: str) -> None:
        """O39 O40: only accepted succeeds."""
        decision = attempted.journalled(attempted.decision(decision=word))
        assert check_of(attempted, decision=decision).status.value == status

    @pytest.mark.parametrize(
        "change",
        [{"items": []}, {"policy": {"path": None, "digest": None, "absent": True}, "items": []}],
    )
    def test_that_required_nothing(self, attempted: Bench, change: dict[str, Any]) -> None:
        """O40: accepted without a check is verified by nothing."""
        decision = attempted.journalled(attempted.decision(**change))
        assert check_of(attempted, decision=decision).status.value == "pending"

    def test_a_later_one_takes_its_place(self, attempted: Bench) -> None:
        """O79: what was accepted before it was rejected is no receipt any more."""
        decision = attempted.journalled(attempted.decision())
        attempted.journalled(attempted.decision(decision="rejected"))
        assert refused(attempted, decision=decision) == "evidence_receipt_not_found"

    def test_about_another_commit_than_named(self, attempted: Bench) -> None:
        decision = attempted.journalled(attempted.decision())
        new = NewEdge(
            ISSUE, OTHER_COMMIT, "qualification", shown=Shown(decision), checkout=attempted.repository
        )
        with attempted.desk() as desk, pytest.raises(OutcomeError, match="evidence_commit_mismatch"):
            add_edge(desk, new, attempted.around)

    def test_said_to_be_otherwise(self, attempted: Bench) -> None:
        decision = attempted.journalled(attempted.decision(decision="rejected"))
        new = NewEdge(
            ISSUE,
            None,
            "qualification",
            result="succeeded",
            shown=Shown(decision),
            checkout=attempted.repository,
        )
        with attempted.desk() as desk, pytest.raises(OutcomeError, match="evidence_result_unknown"):
            add_edge(desk, new, attempted.around)

    def test_of_a_commit_that_the_repository_lacks(self, attempted: Bench) -> None:
        """O38: whose bytes nobody can name."""
        attempted.reference(commit=OTHER_COMMIT)
        decision = attempted.journalled(attempted.decision(head=OTHER_COMMIT))
        assert refused(attempted, decision=decision) == "evidence_repository_not_resolved"

    def test_of_a_commit_that_the_issue_does_not_claim(self, bench: Bench) -> None:
        """O78: a green decision about anything else."""
        bench.attempt()
        decision = bench.journalled(bench.decision())
        assert refused(bench, decision=decision) == "evidence_commit_not_claimed"

    def test_a_failed_one_stamps(self, attempted: Bench) -> None:
        """O54: the gate changes its mind after the close."""
        attempted.submit(attempted.qualify(decision=attempted.journalled(attempted.decision())))
        assert attempted.close().closed
        later = attempted.journalled(attempted.decision(decision="rejected"))
        attempted.qualify(decision=later)
        row = attempted.row(attempted.commit())
        assert (row.closed, row.contradiction_reason) == (True, "qualification:failed")

    @pytest.mark.parametrize("data", [b"", b"[]", b"{}", b'{"publisher":"x"}', b"\xff"])
    def test_what_is_none(self, attempted: Bench, data: bytes) -> None:
        """O79: other bytes."""
        file = attempted.base / "x.json"
        file.write_bytes(data)
        assert refused(attempted, decision=file) == "evidence_receipt_not_found"
        assert refused(attempted, decision=attempted.base / "none") == "evidence_receipt_not_found"
        assert refused(attempted) == "evidence_receipt_not_found"

    def test_a_journal_that_was_changed(self, attempted: Bench) -> None:
        """O79: is trusted in nothing."""
        decision = attempted.journalled(attempted.decision())
        journal = attempted.store / "closeout" / "journal" / "000001.jsonl"
        journal.write_bytes(journal.read_bytes().replace(b"accepted", b"rejected"))
        with pytest.raises(OutcomeError, match="journal_broken"):
            attempted.qualify(decision=decision)

    def test_a_journal_that_was_rolled_back(self, attempted: Bench) -> None:
        """O79: with its pin; the copy of the pin tells."""
        decision = attempted.journalled(attempted.decision())
        folder = attempted.store / "closeout" / "journal"
        old = {path: path.read_bytes() for path in folder.iterdir() if path.is_file()}
        attempted.journalled(attempted.decision(decision="rejected"))
        for path, data in old.items():
            path.write_bytes(data)
        with pytest.raises(OutcomeError, match="journal_broken"):
            attempted.qualify(decision=decision)


class TestItems:
    def test_a_command(self, attempted: Bench) -> None:
        """O30: its producer is its publisher."""
        decision = attempted.journalled(attempted.decision())
        record = stored(attempted, COMMAND, "command_recorded")
        check = check_of(attempted, decision=decision, item="check", record=record)
        assert (check.name, check.status.value, check.publisher) == ("check", "succeeded", PUBLISHER)
        assert check.evidence_digest == digest_bytes(record.read_bytes())

    @pytest.mark.parametrize("kind", ["review_recorded", "evidence_added"])
    def test_a_review(self, attempted: Bench, kind: str) -> None:
        """O45: its reviewer is its publisher, with the session beside it."""
        decision = attempted.journalled(attempted.decision())
        record = stored(attempted, REVIEW, kind)
        check = check_of(attempted, decision=decision, item="careful", record=record)
        assert (check.publisher, check.session) == ("reviewer:p/m", "s-1")

    @pytest.mark.parametrize("blank", ["session", "model", "provider"])
    def test_a_review_by_somebody_unknown(self, attempted: Bench, blank: str) -> None:
        """O52: any blank part is unknown."""
        decision = attempted.journalled(attempted.decision())
        producer = {"session": "s-1", "model": "m", "provider": "p"} | {blank: " "}
        record = stored(attempted, REVIEW, "review_recorded", producer=producer)
        assert check_of(attempted, decision=decision, item="careful", record=record).publisher is None

    @pytest.mark.parametrize("blank", ["name", "version"])
    def test_a_command_by_something_unknown(self, attempted: Bench, blank: str) -> None:
        """O52: the same."""
        decision = attempted.journalled(attempted.decision())
        producer = {"name": "n", "version": "v"} | {blank: ""}
        record = stored(attempted, COMMAND, "command_recorded", producer=producer)
        assert check_of(attempted, decision=decision, item="check", record=record).publisher is None

    @pytest.mark.parametrize(("state", "status"), [("failed", "failed"), ("stale", "pending")])
    def test_states(self, attempted: Bench, state: str, status: str) -> None:
        """O39 O40: of the decision, not of the record."""
        items = [{"id": "check", "kind": "command", "state": state, "message": "m", "attempt": 1}]
        decision = attempted.journalled(attempted.decision(items=items, decision="rejected"))
        record = stored(attempted, COMMAND, "command_recorded")
        assert check_of(attempted, decision=decision, item="check", record=record).status.value == status

    def test_without_a_row(self, attempted: Bench) -> None:
        """O79: a record that the runner did not make."""
        decision = attempted.journalled(attempted.decision())
        record = attempted.file("r.json", COMMAND | {"head": attempted.commit()})
        shown = {"decision": decision, "item": "check", "record": record}
        assert refused(attempted, **shown) == "evidence_receipt_not_found"

    def test_a_row_of_the_other_kind(self, attempted: Bench) -> None:
        """O79: somebody handed a command in as a review."""
        decision = attempted.journalled(attempted.decision())
        record = stored(attempted, COMMAND, "evidence_added")
        shown = {"decision": decision, "item": "check", "record": record}
        assert refused(attempted, **shown) == "evidence_receipt_not_found"

    @pytest.mark.parametrize(
        "change",
        [
            {"itemId": "careful"},
            {"head": OTHER_COMMIT},
            {"policyDigest": "sha256:" + "0" * 64},
            {"attempt": 2},
        ],
    )
    def test_another_record_than_the_deciding_one(self, attempted: Bench, change: dict[str, Any]) -> None:
        """O79: of another item, candidate, policy or attempt."""
        decision = attempted.journalled(attempted.decision())
        record = stored(attempted, COMMAND, "command_recorded", **change)
        shown = {"decision": decision, "item": "check", "record": record}
        assert refused(attempted, **shown) == "evidence_receipt_not_found"

    def test_parts_that_are_missing(self, attempted: Bench) -> None:
        decision = attempted.journalled(attempted.decision())
        record = stored(attempted, COMMAND, "command_recorded")
        assert refused(attempted, decision=decision, item="check") == "evidence_receipt_not_found"
        shown = {"decision": decision, "item": "none", "record": record}
        assert refused(attempted, **shown) == "evidence_receipt_not_found"

    def test_parts_that_would_go_unread(self, attempted: Bench) -> None:
        """O79: every part that is named is part of one receipt."""
        decision = attempted.journalled(attempted.decision())
        record = stored(attempted, COMMAND, "command_recorded")
        for shown in (
            {"decision": decision, "record": record},
            {"item": "check", "record": record},
            {"milestone": "r-1", "decision": decision},
            {"milestone": "r-1", "item": "check"},
            {},
        ):
            assert refused(attempted, **shown) == "evidence_receipt_not_found"

    @pytest.mark.parametrize("member", [{"receipt": "r"}, {"environment": "prod"}])
    def test_what_is_of_another_family(self, attempted: Bench, member: dict[str, str]) -> None:
        decision = attempted.journalled(attempted.decision())
        new = NewEdge(
            issue=ISSUE,
            commit=None,
            family="qualification",
            shown=Shown(decision=decision),
            checkout=attempted.repository,
            **member,
        )
        with attempted.desk() as desk, pytest.raises(OutcomeError, match="evidence_receipt_not_found"):
            add_edge(desk, new, attempted.around)


class TestReplaced:
    """A receipt was the latest when its edge was recorded; whether it is, the same journal says later."""

    def state(self, bench: Bench, edge: Edge) -> tuple[str, ...]:
        revision = bench.commit()
        before = bench.close(execute=False)
        bench.submit(edge)
        assert bench.row(revision).reasons == before.reasons
        assert (bench.close().closed, before.may) in {(True, True), (False, False)}
        return before.reasons

    def test_a_decision(self, attempted: Bench) -> None:
        """O39 O79: the gate changed its mind, and nobody recorded an edge of that."""
        edge = attempted.qualify(decision=attempted.journalled(attempted.decision()))
        assert attempted.submit(edge).grading.state.value == "accepted"
        attempted.journalled(attempted.decision(decision="rejected"))
        assert self.state(attempted, edge) == (
            "missing_verifier",
            "missing_falsifier",
            f"unevidenced_criterion:{CRITERION}",
        )

    def test_back_again(self, attempted: Bench) -> None:
        """O67: the same decision is the latest once more."""
        decision = attempted.journalled(attempted.decision())
        edge = attempted.qualify(decision=decision)
        attempted.submit(edge)
        attempted.journalled(attempted.decision(decision="rejected"))
        attempted.journalled(decision)
        assert self.state(attempted, edge) == ()

    @pytest.mark.parametrize(
        "other",
        [
            {"gate": "beforeMerge"},
            {"head": OTHER_COMMIT},
            {"policy": {"digest": "sha256:" + "0" * 64, "absent": False}},
        ],
    )
    def test_a_decision_about_something_else(self, attempted: Bench, other: dict[str, Any]) -> None:
        """O79: takes the place of none."""
        edge = attempted.qualify(decision=attempted.journalled(attempted.decision()))
        attempted.submit(edge)
        attempted.journalled(attempted.decision(decision="rejected", **other))
        assert self.state(attempted, edge) == ()

    def test_a_record(self, attempted: Bench) -> None:
        """O39 O79: the item was run again; what came of it is not the receipt's to say."""
        decision = attempted.journalled(attempted.decision())
        record = stored(attempted, COMMAND, "command_recorded")
        edge = attempted.qualify(decision=decision, item="check", record=record)
        attempted.submit(edge)
        stored(attempted, COMMAND, "command_recorded", attempt=2)
        assert f"unevidenced_criterion:{CRITERION}" in self.state(attempted, edge)

    def test_a_record_of_another_item(self, attempted: Bench) -> None:
        """O79: takes the place of none."""
        decision = attempted.journalled(attempted.decision())
        edge = attempted.qualify(
            decision=decision, item="check", record=stored(attempted, COMMAND, "command_recorded")
        )
        attempted.submit(edge)
        stored(attempted, REVIEW, "evidence_added")
        assert self.state(attempted, edge) == ()

    def test_a_journal_that_was_changed_since(self, attempted: Bench) -> None:
        """O79: decides nothing, whatever it said while it was whole; to show a claim it is not needed."""
        edge = attempted.qualify(decision=attempted.journalled(attempted.decision()))
        attempted.submit(edge)
        journal = attempted.store / "closeout" / "journal" / "000001.jsonl"
        journal.write_bytes(journal.read_bytes().replace(b"accepted", b"rejected"))
        before = attempted.rows("claim_graded")
        for act in (
            lambda: attempted.close(execute=False),
            attempted.close,
            lambda: attempted.submit(edge),
        ):
            with pytest.raises(OutcomeError) as caught:
                act()
            assert (caught.value.message, caught.value.undecidable) == ("journal_broken", True)
        assert attempted.rows("claim_graded") == before
        assert attempted.row(attempted.commit()).state.value == "accepted"


class TestMilestones:
    def run(self, bench: Bench, *rows: dict[str, Any]) -> None:
        """A run of the milestone tool, with these rows."""
        with (
            PrivateRoot.create(bench.store, RootKind.STATE, around=bench.plain, checkout=None) as root,
            root.child("milestone", "runs", "r-1", create=True) as folder,
            FileJournal.open(folder, "journal.jsonl", state=root) as journal,
        ):
            journal.append(list(rows))

    def row(self, kind: str, **body: object) -> dict[str, Any]:
        return {"type": kind, "time": "2026-03-04T05:06:07.000Z", "body": body}

    def test_a_closed_one(self, attempted: Bench) -> None:
        """O30: the tool that closed it is its publisher."""
        producer = {"name": "milestone", "version": "1"}
        close = self.row("crw.milestoneClose", milestone="m-1", head=attempted.commit(), producer=producer)
        self.run(attempted, self.row("started"), close)
        edge = attempted.qualify(milestone="r-1")
        check = edge.check
        assert check is not None
        assert (check.name, check.status.value, check.publisher) == (
            "milestone/m-1", "succeeded", "runner:milestone@1",
        )  # fmt: skip
        attempted.policy(admitted_verifiers=["runner:milestone@1"])
        assert attempted.submit(edge, criterion=CRITERION).grading.reasons == ()

    def test_by_something_unknown(self, attempted: Bench) -> None:
        """O52: a close row that does not say who closed."""
        self.run(attempted, self.row("crw.milestoneClose", milestone="m-1", head=attempted.commit()))
        assert check_of(attempted, milestone="r-1").publisher is None

    @pytest.mark.parametrize("body", [{}, {"milestone": "m-1"}, {"milestone": "m-1", "head": "abc"}])
    def test_a_close_without_a_head(self, attempted: Bench, body: dict[str, Any]) -> None:
        """O79: names nothing that could be verified."""
        self.run(attempted, self.row("crw.milestoneClose", **body))
        assert refused(attempted, milestone="r-1") == "evidence_receipt_not_found"

    def test_one_that_is_not_closed(self, attempted: Bench) -> None:
        """O79: or that there is none of."""
        self.run(attempted, self.row("crw.crosscheck", milestone="m-1", head=attempted.commit()))
        assert refused(attempted, milestone="r-1") == "evidence_receipt_not_found"
        assert refused(attempted, milestone="r-2") == "evidence_receipt_not_found"
        assert refused(attempted, milestone="..") == "evidence_receipt_not_found"

    def test_a_journal_that_was_changed(self, attempted: Bench) -> None:
        """O79: is trusted in nothing."""
        self.run(attempted, self.row("crw.milestoneClose", milestone="m-1", head=attempted.commit()))
        journal = attempted.store / "milestone" / "runs" / "r-1" / "journal.jsonl"
        journal.write_bytes(journal.read_bytes().replace(b"m-1", b"m-2"))
        with pytest.raises(OutcomeError, match="journal_broken"):
            attempted.qualify(milestone="r-1")
