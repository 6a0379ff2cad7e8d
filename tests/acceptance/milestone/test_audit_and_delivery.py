"""The judgements of audit, reuse and delivery readback."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from skill_effectiveness.acceptance.milestone.audit import (
    AuditResult,
    StoredTurn,
    Transcript,
    archives,
    audit_review,
    audit_unit_check,
)
from skill_effectiveness.acceptance.milestone.delivery import (
    RemoteBranch,
    Tracked,
    judge_issues,
    judge_milestone,
    judge_push,
    worst,
)
from skill_effectiveness.acceptance.milestone.input import MilestoneInput, PlannedNode
from skill_effectiveness.acceptance.milestone.repository import Repository
from skill_effectiveness.acceptance.milestone.reuse import Landing, NotProvenError, Source, judge_reuse
from skill_effectiveness.acceptance.milestone.trackers import FileTracker
from skill_effectiveness.acceptance.milestone.words import AuditWord, DeliveryWord
from skill_effectiveness.cli import door
from skill_effectiveness.evidence.canonical import digest_text
from tests.support.private import surroundings

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.milestones import Case

HEAD, TREE, BASE, BATCH, DIGEST = "a" * 40, "b" * 40, "c" * 40, "d" * 40, "sha256:1"
ACCEPTANCE = {
    "call": "acc_1", "node": "n1", "head": HEAD, "criteria_digest": DIGEST, "basis": "unit_check",
    "unit_check": "unit-check-1", "base": BASE,
}  # fmt: skip
CHECK = {
    "call": "unit-check-1", "role": "unit-check", "state": "ok", "verdict": "verified", "node": "n1",
    "head": HEAD, "criteria_digest": DIGEST,
}  # fmt: skip


class TestUnitChecks:
    def test_a_good_row(self) -> None:
        """M89: ok."""
        assert audit_unit_check(ACCEPTANCE, CHECK, DIGEST) == AuditResult("acc_1", "n1", AuditWord.OK)

    @pytest.mark.parametrize("member", ["role", "state", "verdict", "node", "head", "criteria_digest"])
    def test_a_row_that_differs(self, member: str) -> None:
        """M90: mismatch, each by itself, as a wrong value and as a missing one."""
        wrong: dict[str, Any] = {**CHECK, member: "other"}
        assert audit_unit_check(ACCEPTANCE, wrong, DIGEST).word is AuditWord.MISMATCH
        missing = {name: value for name, value in CHECK.items() if name != member}
        found = audit_unit_check(ACCEPTANCE, missing, DIGEST)
        assert found.word is AuditWord.MISMATCH
        assert member in found.reason

    def test_criteria_that_are_not_those_planned(self) -> None:
        """M90: the release's digest is what counts, on the acceptance as well."""
        assert audit_unit_check(ACCEPTANCE, CHECK, "sha256:2").word is AuditWord.MISMATCH
        assert audit_unit_check(ACCEPTANCE, CHECK, None).word is AuditWord.MISMATCH
        other = ACCEPTANCE | {"criteria_digest": "sha256:2"}
        assert audit_unit_check(other, CHECK, DIGEST).word is AuditWord.MISMATCH

    def test_no_row(self) -> None:
        """M91: mismatch."""
        assert audit_unit_check(ACCEPTANCE, None, DIGEST).word is AuditWord.MISMATCH


class TestReviews:
    ACCEPTANCE = ACCEPTANCE | {
        "basis": "review", "thread": "t1", "turn": "turn-2", "result_digest": digest_text("ACCEPTED"),
    }  # fmt: skip
    PACKET = f"REVIEW\nHEAD: {HEAD}\nCRITERIA DIGEST: {DIGEST}\n"
    TURNS = (
        StoredTurn(id="turn-1", completed=True, packet=PACKET, last_message="…"),
        StoredTurn(id="turn-2", completed=True, packet=None, last_message="ACCEPTED"),
    )
    TRANSCRIPT = Transcript("t1", TURNS, frozenset({"exec-1"}))

    def word(
        self,
        transcript: Transcript | None,
        writers: tuple[str, ...] = ("exec-1",),
        **members: Any,  # noqa: ANN401 - members of the acceptance
    ) -> str:
        return audit_review(self.ACCEPTANCE | members, transcript, writers).word.value

    def test_a_good_review(self) -> None:
        """M89: recorded, completed, of that digest, over that head, its executor's pair read back."""
        assert self.word(self.TRANSCRIPT) == "ok"

    @pytest.mark.parametrize("member", ["thread", "turn", "result_digest"])
    def test_a_record_that_is_incomplete(self, member: str) -> None:
        """M90: mismatch."""
        assert self.word(self.TRANSCRIPT, ("exec-1",), **{member: None}) == "mismatch"

    def test_what_differs(self) -> None:
        """M90: another thread, an unfinished turn, another result, another packet."""
        assert self.word(replace(self.TRANSCRIPT, thread="t2")) == "mismatch"
        unfinished = (self.TURNS[0], replace(self.TURNS[1], completed=False))
        assert self.word(replace(self.TRANSCRIPT, turns=unfinished)) == "mismatch"
        other = (self.TURNS[0], replace(self.TURNS[1], last_message="REJECTED"))
        assert self.word(replace(self.TRANSCRIPT, turns=other)) == "mismatch"
        packet = (replace(self.TURNS[0], packet=f"HEAD: {BASE}\nCRITERIA DIGEST: {DIGEST}"), self.TURNS[1])
        assert self.word(replace(self.TRANSCRIPT, turns=packet)) == "mismatch"

    def test_what_cannot_be_observed(self) -> None:
        """M92: no transcript, no such turn, no message, no packet, a pair that was not read back."""
        assert self.word(None) == "unobserved"
        assert self.word(replace(self.TRANSCRIPT, turns=None)) == "unobserved"
        assert self.word(replace(self.TRANSCRIPT, turns=self.TURNS[:1])) == "unobserved"
        silent = (self.TURNS[0], replace(self.TURNS[1], last_message=None))
        assert self.word(replace(self.TRANSCRIPT, turns=silent)) == "unobserved"
        unpacked = (replace(self.TURNS[0], packet=None), self.TURNS[1])
        assert self.word(replace(self.TRANSCRIPT, turns=unpacked)) == "unobserved"
        assert self.word(replace(self.TRANSCRIPT, pairs=frozenset())) == "unobserved"

    def test_archiving(self) -> None:
        """M89: after an ok of the newest audit, once."""
        ok, bad = (AuditResult("acc_1", "n1", word) for word in (AuditWord.OK, AuditWord.MISMATCH))
        assert archives([bad, ok], "acc_1", ())
        assert not archives([ok, bad], "acc_1", ())
        assert not archives([ok], "acc_1", ("acc_1",))
        assert not archives([], "acc_1", ())


class TestDelivery:
    @pytest.mark.parametrize(
        ("remote", "word"),
        [
            (RemoteBranch(readable=True, tip=HEAD), "passed"),
            (RemoteBranch(readable=True, tip=BASE, contains_head=True), "passed"),
            (RemoteBranch(readable=True, tip=BASE, contains_head=False), "pending"),
            (RemoteBranch(readable=True, tip=None), "pending"),
            (RemoteBranch(readable=True, tip=BASE, contains_head=None), "unobserved"),
            (RemoteBranch(readable=False), "unobserved"),
        ],
    )
    def test_pushes(self, remote: RemoteBranch, word: str) -> None:
        """M98 M99 M100 M101: the tip is the head, contains it, lacks it, is unknown here."""
        assert judge_push(HEAD, remote)[0] == word

    @pytest.mark.parametrize(
        ("tracked", "word"),
        [
            (Tracked("closed", "completed"), "passed"),
            (Tracked("closed", "not_planned"), "pending"),
            (Tracked("closed", None), "unobserved"),
            (Tracked("open"), "pending"),
            (Tracked(None), "unobserved"),
        ],
    )
    def test_issues(self, tracked: Tracked, word: str) -> None:
        """M102 M103 M104: only a completed one passes."""
        assert judge_issues([("a/b#1", Tracked("closed", "completed")), ("a/b#2", tracked)])[0] == word

    def test_no_issue(self) -> None:
        """M104: nobody named one, so nothing was observed."""
        assert judge_issues([])[0] is DeliveryWord.UNOBSERVED

    def test_tracking_milestones(self) -> None:
        """M105: open is pending."""
        words = [judge_milestone(Tracked(state))[0] for state in ("closed", "open", None)]
        assert words == ["passed", "pending", "unobserved"]

    def test_all_must_pass(self) -> None:
        """M105: mixed trouble is unobserved, and nothing at all is no pass."""
        passed, pending, unseen = DeliveryWord.PASSED, DeliveryWord.PENDING, DeliveryWord.UNOBSERVED
        assert worst([passed, passed]) is passed
        assert worst([passed, pending]) is pending
        assert worst([pending, unseen]) is unseen
        assert worst([]) is unseen


class TestReuse:
    def given(self, **members: Any) -> MilestoneInput:  # noqa: ANN401 - members of the node
        node = {
            "id": "n1", "slice": "s", "criteria": ["works"], "design": "D", "decisions": ["d1"], "base": BASE,
        }  # fmt: skip
        decisions = members.pop("texts", [{"id": "d1", "text": "One store."}])
        document = {
            "plan": "p", "id": "m", "repository": "/r", "target": "t", "base": "b", "criteria": ["x"],
            "decisions": decisions, "nodes": [node | members],
        }  # fmt: skip
        return MilestoneInput.model_validate_json(json.dumps(document))

    def node(self, **members: Any) -> PlannedNode:  # noqa: ANN401 - members of the node
        return self.given(**members).nodes[0]

    def source(self, **members: Any) -> Source:  # noqa: ANN401 - members of the source
        digest = self.node().criteria_digest
        usual = Source(
            "r0", self.given(), "sha256:old", ACCEPTANCE | {"criteria_digest": digest},
            {"head": HEAD, "batch": BATCH, "acceptance": "acc_1"}, AuditWord.OK,
            Landing(TREE, head_in_batch=True, batch_in_target=True),
        )  # fmt: skip
        return replace(usual, **members)

    def refused(self, source: Source, **members: Any) -> str:  # noqa: ANN401 - members of the node
        given = self.given(**members)
        with pytest.raises(NotProvenError) as caught:
            judge_reuse(given.nodes[0], given, "sha256:new", source)
        return str(caught.value)

    def test_a_proven_node(self) -> None:
        """M88: it keeps the base it was judged under, and its design is carried with the old approval."""
        given = self.given(base="later")
        found = judge_reuse(given.nodes[0], given, "sha256:new", self.source())
        assert (found.source_run, found.head, found.batch, found.base) == ("r0", HEAD, BATCH, BASE)
        assert found.carried is not None
        assert found.carried["inherited_approval"] == {"run": "r0", "input_digest": "sha256:old"}
        same = judge_reuse(given.nodes[0], given, "sha256:old", self.source())
        assert same.carried is None

    def test_no_proof(self) -> None:
        """M85: no acceptance, other heads, a bad audit, a target that lacks it."""
        assert "no acceptance" in self.refused(self.source(acceptance=None))
        assert "different heads" in self.refused(self.source(integration={"head": BASE, "batch": BATCH}))
        assert "audited as mismatch" in self.refused(self.source(audit=AuditWord.MISMATCH))
        for landing in (
            Landing(TREE, head_in_batch=False, batch_in_target=True),
            Landing(TREE, head_in_batch=True, batch_in_target=False),
        ):
            assert "does not contain it" in self.refused(self.source(landing=landing))

    def test_what_changed(self) -> None:
        """M86: slice, criteria, design, the content of a decision."""
        assert "slice or criteria" in self.refused(self.source(), slice="other")
        assert "criteria changed" in self.refused(self.source(), criteria=["other"])
        assert "design or a decision" in self.refused(self.source(), design="other")
        assert "design or a decision" in self.refused(self.source(), texts=[{"id": "d1", "text": "Two."}])

    def test_a_land_node(self) -> None:
        """M85 M86 M88: its release fixes head, tree, base, slice and criteria; no design is copied."""
        release = {"head": HEAD, "tree": TREE, "base": "e" * 40, "slice": "s", "criteria": ["works"]}
        given = self.given(land=release, design="another")
        found = judge_reuse(given.nodes[0], given, "sha256:new", self.source())
        assert (found.base, found.carried) == ("e" * 40, None)
        assert "another head or tree" in self.refused(self.source(), land=release | {"head": BASE})
        assert "another head or tree" in self.refused(self.source(), land=release | {"tree": BASE})
        assert "those of its release" in self.refused(self.source(), land=release | {"slice": "x"})


@pytest.mark.parametrize("state", [[], {}, ["closed"], 1, None, True, "CLOSED"])
def test_a_tracker_that_answers_nonsense(tmp_path: Path, state: object) -> None:
    """M104: a state that is none is unobserved, whatever JSON value stands there."""
    place = tmp_path / "tracker.json"
    place.write_text(json.dumps({"issues": {"a/b#1": {"state": state, "reason": "completed"}}}))
    tracker = FileTracker(place, surroundings())
    assert tracker.issue("a/b#1").state is None


def test_a_folder_in_the_place_of_the_remote(case: Case) -> None:
    """M101: a folder named origin is not the remote origin; nothing was published by it."""
    case.git("init", "-q", "--bare", "origin")
    case.git("push", "-q", "./origin", "main")
    seen = Repository(case.repository.root, door.surroundings()).remote_branch("main", case.head)
    assert (seen.readable, seen.tip) == (False, None)
