"""The table of closeout.md, section 8, row by row, and what no evidence can do."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skill_effectiveness.acceptance.closeout.evaluation import (
    Candidate,
    Inputs,
    ItemResult,
    StoredRecord,
    evaluate,
    verdict_of,
)
from skill_effectiveness.acceptance.closeout.policy_models import ResolvedCommand, ResolvedReview, Unsupported
from skill_effectiveness.acceptance.closeout.records import read_record
from skill_effectiveness.acceptance.closeout.words import Severity, State, Trust, Verdict
from tests.support.closeout import (
    BASE_ID,
    CANDIDATE,
    DIGEST,
    HEAD_ID,
    VERSION,
    command_record,
    finding,
    review_record,
)

COMMAND = ResolvedCommand("check", "beforePR", ("true",), 60)
REVIEW = ResolvedReview(
    "careful", "beforePR", "s/SKILL.md", different_session=True, different_model=True, fail_on=Severity.P1
)
INPUTS = Inputs(BASE_ID, HEAD_ID, DIGEST, CANDIDATE, VERSION)
MISSING = "no evidence for this candidate and policy"
STALE = "evidence is for a different candidate or policy"


def stored(record: dict[str, Any], **facts: Any) -> StoredRecord:  # noqa: ANN401 - any JSON, or any member
    return StoredRecord(read_record(json.dumps(record).encode()), **facts)


def state(item: Any, *records: dict[str, Any], inputs: Inputs = INPUTS) -> tuple[str, str, int | None]:  # noqa: ANN401 - any JSON, or any member
    (result,) = evaluate([item], inputs, [stored(record) for record in records])
    return result.state.value, result.message, result.attempt


class TestBeforeTheRecord:
    def test_an_unsupported_kind_blocks_whatever_there_is(self) -> None:
        """C15: row 1, before anything else."""
        item = Unsupported("check", "beforePR", "manual")
        assert state(item, command_record()) == ("unsupported", "kind manual is not supported", None)
        assert State.UNSUPPORTED.verdict is Verdict.BLOCKED

    def test_no_record_for_the_id(self) -> None:
        """C18: row 2; records of other ids do not count, not even of the same id without its prefix."""
        assert state(COMMAND) == ("missing", MISSING, None)
        assert state(COMMAND, command_record("q/check"), command_record("check2")) == (
            "missing",
            MISSING,
            None,
        )

    @pytest.mark.parametrize(
        "members",
        [{"base": "c" * 40}, {"head": "c" * 40}, {"policyDigest": "sha256:" + "c" * 64}, {"head": "a" * 64}],
    )
    def test_records_of_which_none_matches(self, members: dict[str, str]) -> None:
        """C19 C37: row 3, for another base, head or digest."""
        assert state(COMMAND, command_record(**members)) == ("stale", STALE, None)

    def test_two_matching_records_of_one_attempt(self) -> None:
        """C20: row 4, also when another attempt is greater, and when they say the same."""
        records = [command_record(), command_record(), command_record(attempt=2)]
        assert state(COMMAND, *records) == ("invalid", "duplicate evidence attempt", None)

    def test_a_stale_record_of_the_same_attempt_is_no_duplicate(self) -> None:
        """C20: only matching ones count."""
        assert state(COMMAND, command_record(), command_record(head="c" * 40))[0] == "passed"


class TestTheDecidingRecord:
    def test_the_greatest_attempt_decides(self) -> None:
        """C35: whatever an earlier one said, in either direction, in any order."""
        good, bad = command_record(attempt=2), command_record(attempt=1, exec={"exitCode": 1})
        assert state(COMMAND, good, bad) == ("passed", "exited 0", 2)
        later = command_record(attempt=10, exec={"exitCode": 7})
        assert state(COMMAND, command_record(attempt=9), later) == (
            "failed", "command exited 7", 10,
        )  # fmt: skip

    def test_failed_attempts_use_up_nothing(self) -> None:
        """C17: there is no state for many of them."""
        records = [command_record(attempt=n, exec={"exitCode": 1}) for n in range(1, 200)]
        assert state(COMMAND, *records, command_record(attempt=200))[0] == "passed"
        assert {"exhausted", "skipped"}.isdisjoint(State)

    @pytest.mark.parametrize(
        ("item", "record"), [(COMMAND, review_record("check")), (REVIEW, command_record("careful"))]
    )
    def test_a_record_of_the_other_type(self, item: Any, record: dict[str, Any]) -> None:  # noqa: ANN401 - any JSON, or any member
        """C21: row 5; it is named by its attempt."""
        assert state(item, record) == ("invalid", "evidence kind does not match the requirement", 1)

    def test_an_artifact_that_is_not_what_it_was(self) -> None:
        """C51: row 6, before who made it."""
        record = stored(command_record(producer={"name": "x"}), broken_artifact="logs/1.log")
        (result,) = evaluate([COMMAND], INPUTS, [record])
        assert (result.state, result.message) == ("invalid", "artifact logs/1.log does not match its hash")


class TestCommands:
    @pytest.mark.parametrize(
        "producer", [{"name": "someone"}, {"version": "0"}, {"name": "Closeout-reference"}]
    )
    def test_a_producer_that_is_not_trusted(self, producer: dict[str, str]) -> None:
        """C22: row 7; it beats a wrong argv and a failure."""
        record = command_record(producer=producer, exec={"argv": ["false"], "exitCode": 1})
        assert state(COMMAND, record) == ("untrusted", "command evidence producer is not trusted", 1)

    def test_the_runner_is_trusted_at_its_own_version_only(self) -> None:
        """C22: a record of an older runner is not."""
        older = replace(INPUTS, version="7.7.8")
        assert state(COMMAND, command_record(), inputs=older)[0] == "untrusted"

    def test_trust_in_the_journal(self) -> None:
        """C52: row 8; counts by default, not with --trust journal, unless the journal has it."""
        strict = replace(INPUTS, trust=Trust.JOURNAL)
        assert state(COMMAND, command_record())[0] == "passed"
        assert state(COMMAND, command_record(), inputs=strict) == (
            "untrusted", "command evidence is not in the runner journal", 1,
        )  # fmt: skip
        (known,) = evaluate([COMMAND], strict, [stored(command_record(), journalled=True)])
        assert known.state is State.PASSED
        assert state(REVIEW, review_record(), inputs=strict)[0] == "passed"

    @pytest.mark.parametrize("argv", [[], ["true", ""], ["True"], ["sh", "-c", "true"], ["true "]])
    def test_another_argv(self, argv: list[str]) -> None:
        """C23: row 9; equal means equal word for word."""
        assert state(COMMAND, command_record(exec={"argv": argv})) == (
            "invalid", "command evidence does not match the policy argv", 1,
        )  # fmt: skip

    @pytest.mark.parametrize(
        ("run", "message"),
        [
            ({"timedOut": True, "exitCode": None, "signal": "SIGKILL"}, "command timed out"),
            ({"timedOut": True, "exitCode": 0}, "command timed out"),
            ({"exitCode": None, "signal": "SIGSEGV"}, "command was killed by SIGSEGV"),
            ({"exitCode": 0, "signal": "SIGKILL"}, "command was killed by SIGKILL"),
            ({"exitCode": None}, "command could not start"),
            ({"exitCode": 1, "headMoved": True}, "command exited 1"),
            ({"exitCode": -1}, "command exited -1"),
            ({"exitCode": 255}, "command exited 255"),
            ({"headMoved": True, "dirty": True}, "command moved HEAD"),
            ({"dirty": True}, "command left the worktree dirty"),
        ],
    )
    def test_failures_in_their_order(self, run: dict[str, Any], message: str) -> None:
        """C24 C25 C26 C27 C28 C53: rows 10 to 15; each failed, and rejected."""
        assert state(COMMAND, command_record(exec=run)) == ("failed", message, 1)
        assert State.FAILED.verdict is Verdict.REJECTED

    def test_exited_0(self) -> None:
        """C29: row 16; cut output changes nothing."""
        assert state(COMMAND, command_record(exec={"truncated": True})) == ("passed", "exited 0", 1)


class TestReviews:
    @pytest.mark.parametrize(
        ("fail_on", "severities", "worst"),
        [
            ("P0", ["P0"], "P0"), ("P1", ["P3", "P1", "P2"], "P1"), ("P1", ["P1", "P0"], "P0"),
            ("P3", ["P3"], "P3"), ("P3", ["P2", "P3"], "P2"), ("P2", ["P2"], "P2"),
        ],
    )  # fmt: skip
    def test_findings_that_meet_fail_on(self, fail_on: str, severities: list[str], worst: str) -> None:
        """C30: row 17, told by the worst."""
        item = replace(REVIEW, fail_on=Severity(fail_on))
        record = review_record(findings=[finding(severity) for severity in severities])
        assert state(item, record) == ("failed", f"finding at {worst} meets failOn {fail_on}", 1)

    @pytest.mark.parametrize(
        ("fail_on", "severities"), [("P0", ["P1", "P3"]), ("P1", ["P2"]), ("P2", ["P3"]), ("P3", [])]
    )
    def test_findings_below_it(self, fail_on: str, severities: list[str]) -> None:
        """C33: row 20."""
        item = replace(REVIEW, fail_on=Severity(fail_on))
        record = review_record(findings=[finding(severity) for severity in severities])
        assert state(item, record) == ("passed", "review findings satisfy the policy", 1)

    def test_a_failing_finding_rejects_even_from_a_dependent_reviewer(self) -> None:
        """C30: before independence."""
        record = review_record(producer={"session": CANDIDATE.session}, findings=[finding("P0")])
        assert state(REVIEW, record)[0] == "failed"

    @pytest.mark.parametrize(
        ("session", "candidate"),
        [
            ("x", "x"), ("", "x"), ("x", ""), ("", ""), (" ", "x"), ("x", "\t"), (" x", "x "), ("x\n", "x"),
            ("\u00a0x", "x"),
        ],
    )  # fmt: skip
    def test_independence_that_is_not_met(self, session: str, candidate: str) -> None:
        """C31 C32 C39 C56: rows 18 and 19; same, empty or blank, and blanks around do not count."""
        record = review_record(producer={"session": session, "model": session})
        who = Candidate(candidate, "another", "p")
        message = "reviewer does not satisfy differentSession"
        assert state(REVIEW, record, inputs=replace(INPUTS, candidate=who)) == ("independence", message, 1)
        record = review_record(producer={"session": "s1", "model": session})
        who = Candidate("s2", candidate, "p")
        message = "reviewer does not satisfy differentModel"
        assert state(REVIEW, record, inputs=replace(INPUTS, candidate=who)) == ("independence", message, 1)

    @pytest.mark.parametrize("who", [Candidate(), Candidate("s", "m", "p"), Candidate(" ", "", "")])
    def test_with_both_flags_false_identity_does_not_matter(self, who: Candidate) -> None:
        """C39: whatever the candidate's is."""
        item = replace(REVIEW, different_session=False, different_model=False)
        record = review_record(producer={"session": "s", "model": "m"})
        assert state(item, record, inputs=replace(INPUTS, candidate=who))[0] == "passed"

    def test_the_provider_is_not_compared(self) -> None:
        """C31: the flags name session and model."""
        assert state(REVIEW, review_record(producer={"provider": CANDIDATE.provider}))[0] == "passed"

    def test_letters_of_another_case_are_other_names(self) -> None:
        """C56: nothing is inferred."""
        assert state(REVIEW, review_record(producer={"model": CANDIDATE.model.upper()}))[0] == "passed"


class TestVerdict:
    def test_blocked_beats_rejected_beats_accepted(self) -> None:
        """C34: of any number of items, in any order."""
        passed, failed, missing = (
            ItemResult("i", "command", word, "") for word in (State.PASSED, State.FAILED, State.MISSING)
        )
        assert verdict_of([]) is Verdict.ACCEPTED
        assert verdict_of([passed]) is Verdict.ACCEPTED
        assert verdict_of([passed, failed]) is Verdict.REJECTED
        assert verdict_of([failed, missing]) is Verdict.BLOCKED
        assert verdict_of([missing, failed, passed]) is Verdict.BLOCKED

    @pytest.mark.parametrize(
        "word", ["missing", "stale", "unsupported", "independence", "untrusted", "invalid"]
    )
    def test_every_other_state_blocks(self, word: str) -> None:
        """C34: the classes of section 8."""
        assert State(word).verdict is Verdict.BLOCKED


# What no evidence can do.

ITEMS = [COMMAND, REVIEW, ResolvedCommand("q/lint", "beforePR", ("sh", "-c", "x"), 5)]
IDS = st.sampled_from([item.id for item in ITEMS] + ["elsewhere"])
ATTEMPTS = st.integers(1, 4)


@st.composite
def records(draw: st.DrawFn) -> dict[str, Any]:
    item = draw(IDS)
    fresh = {
        "base": draw(st.sampled_from([BASE_ID, "0" * 40])),
        "head": draw(st.sampled_from([HEAD_ID, "1" * 40])),
        "policyDigest": draw(st.sampled_from([DIGEST, "sha256:" + "2" * 64])),
    }
    if draw(st.booleans()):
        run = {
            "argv": draw(st.sampled_from([["true"], ["sh", "-c", "x"], []])),
            "exitCode": draw(st.sampled_from([0, 1, None])),
            "dirty": draw(st.booleans()),
        }
        producer = {"name": draw(st.sampled_from(["closeout-reference", "other"]))}
        return command_record(item, draw(ATTEMPTS), exec=run, producer=producer, **fresh)
    producer = {
        "session": draw(st.sampled_from(["", "r", CANDIDATE.session])),
        "model": draw(st.sampled_from(["", "r", CANDIDATE.model])),
    }
    findings = [
        finding(severity) for severity in draw(st.lists(st.sampled_from(["P0", "P1", "P3"]), max_size=2))
    ]
    return review_record(item, draw(ATTEMPTS), producer=producer, findings=findings, **fresh)


def matching(record: dict[str, Any]) -> bool:
    return (record["base"], record["head"], record["policyDigest"]) == (BASE_ID, HEAD_ID, DIGEST)


def verdict(evidence: list[dict[str, Any]]) -> Verdict:
    return verdict_of(evaluate(ITEMS, INPUTS, [stored(record) for record in evidence]))


class TestProperties:
    @given(st.lists(records(), max_size=8), st.randoms(use_true_random=False))
    def test_reading_order_changes_nothing(self, evidence: list[dict[str, Any]], random: Any) -> None:  # noqa: ANN401 - any JSON, or any member
        """C48: the results are equal, not just the verdict."""
        shuffled = list(evidence)
        random.shuffle(shuffled)
        first, second = (
            evaluate(ITEMS, INPUTS, [stored(record) for record in each]) for each in (evidence, shuffled)
        )
        assert first == second

    @given(st.lists(records(), max_size=8), records())
    def test_stale_and_foreign_records_change_no_verdict(
        self, evidence: list[dict[str, Any]], extra: dict[str, Any]
    ) -> None:
        """C37 C48: a record of another candidate, policy or item makes nothing better."""
        if matching(extra) and extra["itemId"] != "elsewhere":
            extra = {**extra, "head": "3" * 40}
        assert verdict([*evidence, extra]) == verdict(evidence)

    @given(st.lists(records(), max_size=8), st.data())
    def test_a_duplicate_never_turns_anything_into_accepted(
        self, evidence: list[dict[str, Any]], data: st.DataObject
    ) -> None:
        """C20: a second record of an attempt that is there can only block."""
        if not evidence:
            return
        double = data.draw(st.sampled_from(evidence))
        before, after = verdict(evidence), verdict([*evidence, data.draw(records()) | {
            name: double[name] for name in ("itemId", "base", "head", "policyDigest", "attempt")
        }])  # fmt: skip
        assert after is not Verdict.ACCEPTED or before is Verdict.ACCEPTED

    @given(st.lists(records(), max_size=10))
    def test_accepted_means_that_every_item_has_a_deciding_record_that_passes(
        self, evidence: list[dict[str, Any]]
    ) -> None:
        """C29 C33: said again by hand for each item."""
        if verdict(evidence) is not Verdict.ACCEPTED:
            return
        for item in ITEMS:
            own = [record for record in evidence if record["itemId"] == item.id and matching(record)]
            last = max(own, key=lambda record: record["attempt"])
            assert sum(record["attempt"] == last["attempt"] for record in own) == 1
            if isinstance(item, ResolvedCommand):
                assert last["producer"] == {"name": "closeout-reference", "version": VERSION}
                assert last["exec"]["argv"] == list(item.exec)
                assert last["exec"]["exitCode"] == 0
                assert not last["exec"]["dirty"]
            else:
                assert {each["severity"] for each in last["findings"]} <= {"P2", "P3"}
                assert last["producer"]["session"] == last["producer"]["model"] == "r"

    @given(st.lists(records(), max_size=10))
    def test_there_are_eight_states_and_no_others(self, evidence: list[dict[str, Any]]) -> None:
        """C14 C17: no input yields skipped or exhausted."""
        words = {
            "passed",
            "failed",
            "missing",
            "stale",
            "unsupported",
            "independence",
            "untrusted",
            "invalid",
        }
        found = evaluate(ITEMS, INPUTS, [stored(record) for record in evidence])
        assert {result.state.value for result in found} <= words == set(State)
