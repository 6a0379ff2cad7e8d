"""Claims made of records: statements O30 to O53, and what the store keeps of them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from skill_effectiveness.acceptance.outcome.claims import ClaimKey
from skill_effectiveness.acceptance.outcome.errors import OutcomeCode, OutcomeError
from skill_effectiveness.acceptance.outcome.records import IssueKey
from skill_effectiveness.acceptance.outcome.store import reading
from skill_effectiveness.acceptance.outcome.submission import public_form, read_citations
from tests.support.outcomes import BODY, COMMIT, CRITERION, ISSUE, OTHER_COMMIT, PUBLISHER, REPO, REQUESTER

if TYPE_CHECKING:
    from skill_effectiveness.acceptance.outcome.submission import Judged
    from tests.support.outcomes import Bench

UNEVIDENCED = f"unevidenced_criterion:{CRITERION}"
NOTHING_VERIFIED = ("incomplete", ["missing_verifier", "missing_falsifier", UNEVIDENCED])


def said(judged: Judged) -> tuple[str, list[str]]:
    return judged.grading.state.value, list(judged.grading.reasons)


def refused(bench: Bench, **options: Any) -> str:  # noqa: ANN401 - of submit
    with pytest.raises(OutcomeError) as caught:
        bench.submit(**options)
    assert not caught.value.undecidable
    assert bench.rows("claim_graded") == 0
    return caught.value.code.value


class TestGood:
    def test_it_is_accepted_and_closes(self, bench: Bench) -> None:
        """O30: the row names verifier, falsifier and criteria, and who closed."""
        bench.at_forge = True
        edge = bench.good()
        assert said(bench.submit(edge)) == ("accepted", [])
        assert (bench.forge.state(), bench.forge.closes) == ("OPEN", 0)
        assert bench.close().closed
        row = bench.row()
        assert (row.verifier, row.closed, row.closed_by_actor) == (
            "closeout/beforePR", True, "system:accepted-outcome",
        )  # fmt: skip
        assert row.falsifier == f"deployment_check_results:closeout/beforePR@sha1:{'c' * 40}=failed"
        assert [(each.criterion, each.evidence) for each in row.criteria] == [(CRITERION, edge.receipt)]
        assert row.closed_at == "2026-03-04T05:06:07.000Z"
        assert bench.forge.calls[-2] == [
            "issue", "close", "7", "--repo", REPO, "--reason", "completed",
        ]  # fmt: skip
        assert bench.forge.state() == "CLOSED"

    def test_several_checks(self, bench: Bench) -> None:
        """O30: sorted, each once."""
        bench.good()
        first = bench.check(name="unit")
        second = bench.check(name="lint", artifact_digest="sha256:" + "9" * 64)
        bench.submit(first, second, first)
        row = bench.row()
        assert row.verifier == "lint,unit"
        assert row.falsifier == " ".join([
            f"deployment_check_results:lint@sha256:{'9' * 64}=failed",
            f"deployment_check_results:unit@sha1:{'c' * 40}=failed",
        ])  # fmt: skip

    def test_long_names_are_cut(self, bench: Bench) -> None:
        bench.good()
        edges = [bench.check(name=letter * 120) for letter in "abcdef"]
        bench.submit(*edges)
        row = bench.row()
        assert (len(row.verifier or ""), len(row.falsifier or "")) == (200, 500)

    def test_private(self, bench: Bench) -> None:
        """O49: accepted and closable; the stored criterion shows nothing."""
        edge = bench.good()
        bench.policy(visibility="private")
        assert said(bench.submit(edge)) == ("accepted", [])
        (criterion,) = bench.row().criteria
        assert (criterion.evidence, criterion.visibility) == (None, "private")
        assert bench.close().closed
        lines = (bench.store / "outcome" / "journal" / "000001.jsonl").read_text().splitlines()
        graded = [line for line in lines if '"type":"claim_graded"' in line]
        assert not any(edge.receipt in line for line in graded)

    @pytest.mark.parametrize("word", ["Public", "internal", ""])
    def test_another_visibility_is_private(self, bench: Bench, word: str) -> None:
        """O49: public only by exactly that word."""
        edge = bench.good()
        bench.policy(visibility=word)
        bench.submit(edge)
        assert bench.row().criteria[0].evidence is None

    def test_private_by_now(self, bench: Bench) -> None:
        """O64: what was public when it was graded is not shown any more."""
        edge = bench.good()
        bench.submit(edge)
        found = reading(bench.store, bench.around, None)
        assert public_form(bench.row(), found) == {
            "state": "accepted",
            "criteria": [{"criterion": CRITERION, "evidence": edge.receipt}],
        }
        bench.policy(visibility="private")
        found = reading(bench.store, bench.around, None)
        assert public_form(bench.row(), found) == {
            "state": "accepted",
            "criteria": [{"criterion": CRITERION, "evidence": "private"}],
        }

    def test_again(self, bench: Bench) -> None:
        """O59 O67: still one row, the same state and reasons; each grading is an entry."""
        edge = bench.good()
        first = bench.submit(edge)
        second = bench.submit(edge)
        assert first.grading == second.grading
        key = ClaimKey(REPO, 7, "attempt-1", COMMIT)
        assert len(bench.ledger().gradings(key)) == 2
        assert bench.rows("issue_recorded") == 1

    def test_after_its_own_close(self, bench: Bench) -> None:
        """O60 O67 O68: closed, when and by whom stay, and the closed issue is no reason."""
        edge = bench.good()
        bench.submit(edge)
        bench.close()
        closed = bench.row()
        assert said(bench.submit(edge)) == ("accepted", [])
        assert bench.row() == closed
        assert bench.rows("issue_closed") == 1

    def test_a_worse_grading_after_the_close(self, bench: Bench) -> None:
        """O60 O61: is an entry; the row keeps the close and the verdict it rests on."""
        edge = bench.good()
        bench.submit(edge)
        bench.close()
        closed = bench.row()
        judged = bench.submit(edge, false_greens=("false_green_round_up",))
        assert said(judged) == ("failed", ["false_green:false_green_round_up"])
        assert bench.row() == closed
        states = [each.state.value for _, each in bench.ledger().gradings(closed.key)]
        assert states == ["accepted", "failed"]


class TestPolicy:
    def test_no_row(self, bench: Bench) -> None:
        """O31: nothing is graded, and the issue stays open."""
        edge = bench.good()
        bench.policy_file(b'{"schema_version":1,"repositories":{}}')
        assert said(bench.submit(edge)) == ("not_applicable", ["agents_disabled_repository"])
        assert bench.rows("issue_closed") == 0

    def test_no_file(self, bench: Bench) -> None:
        """O31: the same."""
        bench.attempt()
        edge = bench.check()
        assert said(bench.submit(edge)) == ("not_applicable", ["agents_disabled_repository"])

    def test_a_row_for_another_repository(self, bench: Bench) -> None:
        """O31: names are exact."""
        edge = bench.good()
        policy = {"schema_version": 1, "repositories": {"acme/App": {"agents_enabled": True}}}
        bench.policy_file(json.dumps(policy).encode())
        assert said(bench.submit(edge)) == ("not_applicable", ["agents_disabled_repository"])

    def test_closing_off(self, bench: Bench) -> None:
        """O32: accepted, and withheld."""
        edge = bench.good()
        bench.policy(verified_closing_enabled=False)
        expected = ("accepted", ["closure_withheld:repository_has_not_opted_in"])
        assert said(bench.submit(edge)) == expected
        assert not bench.close().may
        assert bench.rows("issue_closed") == 0

    def test_human(self, bench: Bench) -> None:
        """O33: not graded; the issue stays open."""
        bench.policy()
        bench.attempt(actor="human")
        assert said(bench.submit(bench.check())) == ("not_applicable", ["human_only_work"])
        assert not bench.close().may
        assert bench.rows("issue_closed") == 0


class TestEvidence:
    @pytest.mark.parametrize(
        ("family", "result"),
        [("build", "complete"), ("deployment", "live"), ("deployment", "succeeded"), ("push", None)],
    )
    def test_what_is_no_qualification(self, bench: Bench, family: str, result: str | None) -> None:
        """O34 O35 O36: nothing but a verdict about named bytes verifies."""
        bench.policy()
        bench.attempt()
        edge = bench.edge(family, result)
        assert said(bench.submit(edge)) == NOTHING_VERIFIED
        assert not bench.close().may
        assert bench.rows("issue_closed") == 0

    def test_of_another_issue(self, bench: Bench) -> None:
        """O37: unevidenced."""
        bench.good()
        other = bench.check(issue=IssueKey(REPO, 8))
        assert said(bench.submit(other)) == NOTHING_VERIFIED

    def test_of_another_repository(self, bench: Bench) -> None:
        """O37: the same number elsewhere is another issue."""
        bench.good()
        other = bench.check(issue=IssueKey("acme/other", 7))
        assert said(bench.submit(other)) == NOTHING_VERIFIED

    def test_of_another_revision(self, bench: Bench) -> None:
        """O38: unevidenced."""
        bench.good()
        assert said(bench.submit(bench.check(commit=OTHER_COMMIT))) == NOTHING_VERIFIED

    @pytest.mark.parametrize("status", ["failed", "pending"])
    def test_that_did_not_succeed(self, bench: Bench, status: str) -> None:
        """O39 O40: unevidenced."""
        bench.good()
        assert said(bench.submit(bench.check(status))) == NOTHING_VERIFIED

    def test_none(self, bench: Bench) -> None:
        """O43: unevidenced."""
        bench.good()
        assert said(bench.submit()) == NOTHING_VERIFIED

    def test_unknown(self, bench: Bench) -> None:
        """O43 O69: no error; the refusal is stored."""
        bench.good()
        assert said(bench.submit("edge-" + "0" * 24)) == NOTHING_VERIFIED
        assert bench.row().state.value == "incomplete"
        assert list(bench.row().reasons) == NOTHING_VERIFIED[1]

    def test_for_another_criterion(self, bench: Bench) -> None:
        """O25: exactly its text."""
        edge = bench.good()
        judged = bench.submit(edge, criterion=CRITERION.lower())
        assert said(judged) == ("incomplete", [UNEVIDENCED])


class TestRecords:
    def test_an_issue_with_one_section(self, bench: Bench) -> None:
        """O41: the three others are named."""
        edge = bench.good()
        bench.put(f"## Acceptance criteria\n- {CRITERION}\n")
        assert said(bench.submit(edge)) == (
            "incomplete",
            ["missing_issue_section:problem", "missing_issue_section:scope",
             "missing_issue_section:success_metrics"],
        )  # fmt: skip

    @pytest.mark.parametrize("budget", [None, {}])
    def test_no_budget(self, bench: Bench, budget: object) -> None:
        """O42: absent, or an empty object."""
        bench.policy()
        bench.attempt(budget=budget)
        assert said(bench.submit(bench.check())) == ("incomplete", ["missing_attempt_field:budget"])

    def test_no_principal(self, bench: Bench) -> None:
        bench.policy()
        bench.attempt(principal=None)
        assert said(bench.submit(bench.check())) == ("incomplete", ["missing_attempt_field:authority"])

    def test_another_issue_than_the_attempts(self, bench: Bench) -> None:
        """O8: binding is read, so it cannot be asserted."""
        edge = bench.good()
        other = IssueKey(REPO, 9)
        bench.put(BODY, other)
        judged = bench.submit(edge, place=bench.place_of(other))
        assert judged.grading.state.value == "incomplete"  # the edge is of the attempt's issue
        own = bench.check(issue=other)
        judged = bench.submit(own, place=bench.place_of(other))
        assert said(judged) == ("unauthorized", ["attempt_not_bound_to_issue"])

    @pytest.mark.parametrize("name", ["false_green_mocked_seam", "false_green_mokced_seam"])
    def test_the_caller_names_a_class(self, bench: Bench, name: str) -> None:
        """O44 O53: failed, misspelt or not; the issue stays open."""
        edge = bench.good()
        assert said(bench.submit(edge, false_greens=(name,))) == ("failed", [f"false_green:{name}"])
        assert not bench.close().may
        assert bench.rows("issue_closed") == 0

    @pytest.mark.parametrize("publisher", [REQUESTER, f" {REQUESTER} "])
    def test_the_requester_published_the_check(self, bench: Bench, publisher: str) -> None:
        """O45: compared without blanks around."""
        bench.good()
        bench.policy(admitted_verifiers=[REQUESTER])
        judged = bench.submit(bench.check(publisher=publisher))
        assert said(judged) == ("unauthorized", ["verifier_not_independent"])

    def test_one_of_two_is_the_requesters(self, bench: Bench) -> None:
        """O45: every publisher counts."""
        edge = bench.good()
        bench.policy(admitted_verifiers=[REQUESTER, PUBLISHER])
        judged = bench.submit(edge, bench.check(publisher=REQUESTER))
        assert said(judged) == ("unauthorized", ["verifier_not_independent"])

    def test_a_reviewer_in_the_agents_session(self, bench: Bench) -> None:
        """O45: is not independent either."""
        bench.good()
        bench.policy(admitted_verifiers=["reviewer:p/m"])
        own = bench.check(publisher="reviewer:p/m", session="agent-session")
        assert said(bench.submit(own)) == ("unauthorized", ["verifier_not_independent"])
        other = bench.check(publisher="reviewer:p/m", session="another")
        assert said(bench.submit(other)) == ("accepted", [])

    def test_an_unknown_publisher(self, bench: Bench) -> None:
        """O52: unknown is not independent."""
        bench.good()
        judged = bench.submit(bench.check(publisher=None))
        assert said(judged) == ("unauthorized", ["verifier_not_independent"])

    def test_a_publisher_that_nobody_admitted(self, bench: Bench) -> None:
        """O71: not on the allow-list."""
        bench.good()
        judged = bench.submit(bench.check(publisher="runner:mine@1"))
        assert said(judged) == ("unauthorized", ["verifier_not_admitted"])

    def test_one_of_two_is_not_admitted(self, bench: Bench) -> None:
        """O71: every publisher counts."""
        edge = bench.good()
        judged = bench.submit(edge, bench.check(publisher="runner:mine@1"))
        assert said(judged) == ("unauthorized", ["verifier_not_admitted"])


class TestWithheld:
    def test_a_failed_build(self, bench: Bench) -> None:
        """O46: accepted, and withheld."""
        edge = bench.good()
        bench.edge("build", "failed")
        expected = ("accepted", ["closure_withheld:contradicting_evidence"])
        assert said(bench.submit(edge)) == expected
        assert not bench.close().may
        assert bench.rows("issue_closed") == 0
        assert bench.row().contradicted_at is None

    @pytest.mark.parametrize(
        ("family", "result"),
        [("build", "expired"), ("deployment", "reverted"), ("deployment", "failed"),
         ("deployment", "cancelled"), ("deployment", "superseded")],
    )  # fmt: skip
    def test_every_word_for_failure(self, bench: Bench, family: str, result: str) -> None:
        """O46: of every family."""
        edge = bench.good()
        bench.edge(family, result)
        assert said(bench.submit(edge))[1] == ["closure_withheld:contradicting_evidence"]

    def test_a_failed_check_beside(self, bench: Bench) -> None:
        """O46: a qualification too."""
        edge = bench.good()
        bench.check("failed", name="other")
        assert said(bench.submit(edge))[1] == ["closure_withheld:contradicting_evidence"]

    def test_a_failure_that_was_repaired_under_the_same_receipt(self, bench: Bench) -> None:
        """O46: what failed once at a commit has failed there."""
        edge = bench.good()
        bench.edge("deployment", "failed", receipt="d-1")
        bench.edge("deployment", "live", receipt="d-1")
        assert said(bench.submit(edge))[1] == ["closure_withheld:contradicting_evidence"]

    @pytest.mark.parametrize(
        ("family", "result"),
        [("build", "pending"), ("build", "complete"), ("deployment", "pending"), ("deployment", "live"),
         ("deployment", "succeeded"), ("push", None)],
    )  # fmt: skip
    def test_other_words_hold_nothing_back(self, bench: Bench, family: str, result: str | None) -> None:
        edge = bench.good()
        bench.edge(family, result)
        assert said(bench.submit(edge)) == ("accepted", [])

    def test_closed_already(self, bench: Bench) -> None:
        """O47: somebody was first."""
        edge = bench.good()
        bench.at_forge = True
        bench.forge.put(ISSUE, BODY, "CLOSED", "NOT_PLANNED")
        expected = ("accepted", ["closure_withheld:issue_already_closed"])
        assert said(bench.submit(edge)) == expected
        assert not bench.close().may
        assert bench.rows("issue_closed") == 0

    def test_the_first_reason_alone(self, bench: Bench) -> None:
        """O48: opted out, contradicted and closed."""
        edge = bench.good()
        bench.policy(verified_closing_enabled=False)
        bench.edge("build", "failed")
        bench.reference(closed_by_user_id="bob")
        expected = ["closure_withheld:repository_has_not_opted_in"]
        assert said(bench.submit(edge)) == ("accepted", expected)
        bench.policy()
        assert said(bench.submit(edge))[1] == ["closure_withheld:contradicting_evidence"]


class TestAttempts:
    @pytest.mark.parametrize("state", ["queued", "running"])
    def test_not_over(self, bench: Bench, state: str) -> None:
        """O50: nothing is graded."""
        bench.policy()
        bench.attempt(state=state)
        assert refused(bench) == "claim_attempt_not_terminal"

    def test_without_a_commit(self, bench: Bench) -> None:
        """O51: nothing is graded."""
        bench.policy()
        bench.attempt(commit=None)
        assert refused(bench) == "claim_attempt_has_no_revision"

    def test_unknown(self, bench: Bench) -> None:
        bench.good()
        assert refused(bench, attempt="attempt-2") == "claim_attempt_not_found"

    @pytest.mark.parametrize("state", ["failed", "cancelled"])
    def test_every_end_is_graded(self, bench: Bench, state: str) -> None:
        bench.policy()
        bench.attempt(state=state)
        assert said(bench.submit(bench.check())) == ("accepted", [])


def test_records_hold_no_more_than_they_say(bench: Bench) -> None:
    """O64: neither budget nor principal is in a grading or a claim's row."""
    edge = bench.good()
    bench.submit(edge)
    row = json.dumps(bench.row().model_dump(mode="json"))
    assert REQUESTER not in row
    assert "max_attempts" not in row


@pytest.mark.parametrize(
    ("data", "told"),
    [
        (b"{", "claim_invalid: / syntax"),
        (b"[]", "claim_invalid: / wrong_type"),
        (b"{}", "claim_invalid: /evidence missing_field"),
        (b'{"evidence":[],"actor":"human"}', "claim_invalid: /actor unknown_field"),
        (b'{"evidence":[{"criterion":"a"}]}', "claim_invalid: /evidence/0/evidence_id missing_field"),
        (
            b'{"evidence":[{"criterion":"a","evidence_id":"b","receipt":"c"}]}',
            "claim_invalid: /evidence/0/receipt unknown_field",
        ),
        (b'{"evidence":[],"false_green_classes":"x"}', "claim_invalid: /false_green_classes wrong_type"),
        (b'{"evidence":[],"false_green_classes":[""]}', "claim_invalid: /false_green_classes/0 wrong_value"),
    ],
)
def test_what_a_caller_may_give(data: bytes, told: str) -> None:
    """O44: evidence, and classes against the own result; nothing else can be asserted."""
    with pytest.raises(OutcomeError) as caught:
        read_citations(data)
    assert (caught.value.code, caught.value.message) == (OutcomeCode.CLAIM_INVALID, told)


def test_more_criteria_than_can_be_cited(bench: Bench) -> None:
    """O69: an error of the input, told as what it is; one fewer is graded and stored."""
    edge = bench.good()
    usual = BODY.replace(f"- [ ] {CRITERION}", "{}")
    bench.put(usual.format("\n".join(f"- c{number}" for number in range(1_001))))
    with pytest.raises(OutcomeError) as caught:
        bench.submit(edge)
    assert (caught.value.message, caught.value.undecidable) == ("record_invalid at /issue", False)
    bench.put(usual.format("\n".join(f"- c{number}" for number in range(1_000))))
    assert len(bench.submit(edge).grading.reasons) == 1_000
