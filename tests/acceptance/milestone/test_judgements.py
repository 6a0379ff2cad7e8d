"""The smaller judgements: passes, floors, priors, correction, closing, alignment, packets, receipts."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import pytest

from skill_effectiveness.acceptance.milestone.alignment import (
    EQUAL,
    AlignmentFacts,
    NodeLanding,
    judge_alignment,
)
from skill_effectiveness.acceptance.milestone.closing_rule import CloseEvidence, judge_close
from skill_effectiveness.acceptance.milestone.configuration import Floors
from skill_effectiveness.acceptance.milestone.correction import (
    CorrectionPlan,
    escalation_id,
    fix_packet,
    plan_correction,
)
from skill_effectiveness.acceptance.milestone.criteria import Criterion
from skill_effectiveness.acceptance.milestone.errors import (
    LEGACY_REASONS,
    MilestoneCode,
    Reason,
    StopCode,
)
from skill_effectiveness.acceptance.milestone.executor_receipts import (
    NodeEvidence,
    ReusedFrom,
    judge_node_receipt,
    receipts_document,
)
from skill_effectiveness.acceptance.milestone.findings import Finding
from skill_effectiveness.acceptance.milestone.floors import Reading, reading_of, shortfalls
from skill_effectiveness.acceptance.milestone.gate import GateJudgement
from skill_effectiveness.acceptance.milestone.input import Decision
from skill_effectiveness.acceptance.milestone.packets import (
    BLOCKING_RULE,
    PacketFacts,
    ReceiptsFile,
    pass_packet,
)
from skill_effectiveness.acceptance.milestone.passes import (
    PassResult,
    RoundRuling,
    judge_round,
    state_of_ending,
)
from skill_effectiveness.acceptance.milestone.prior import (
    Prior,
    RoundStart,
    is_valid_start,
    previous_crosscheck,
)
from skill_effectiveness.acceptance.milestone.verdict import NodeReceipt, Verdict
from skill_effectiveness.acceptance.milestone.words import GateState, Impact, PassName, PassState, Word
from skill_effectiveness.execution import LimitName
from skill_effectiveness.providers import CallOutcome, Ending, ProviderErrorKind
from skill_effectiveness.providers.events import Message, ToolActivity
from tests.support.milestones import answered, finding

if TYPE_CHECKING:
    from enum import StrEnum

HEAD, BASE = "a" * 40, "b" * 40
V = Verdict(
    word=Word.NEEDS_CHANGES, findings=(), engines={}, round=1, milestone="m1", plan="p", head=HEAD, base=BASE,
    run="r1", author_families=(), authors=(), receipts=(), passes=(), carried=(), follow_ups=(),
    author_warnings=(),
)  # fmt: skip


def made(**members: Any) -> Finding:  # noqa: ANN401 - members of a finding
    return Finding.model_validate_json(json.dumps(finding(**members)))


def v(**members: Any) -> Verdict:  # noqa: ANN401 - members of V
    return V.model_copy(update=members)


class TestEndings:
    @pytest.mark.parametrize(
        ("outcome", "state"),
        [
            (answered({}), "valid"),
            (CallOutcome(Ending.NO_ANSWER), "no_answer"),
            (CallOutcome(Ending.ANSWER_INVALID), "invalid"),
            (CallOutcome(Ending.REFUSED), "no_answer"),
            (CallOutcome(Ending.STREAM_INVALID), "tool_failed"),
            (CallOutcome(Ending.LIMIT, limit=LimitName.LINE_BYTES), "tool_failed"),
            (CallOutcome(Ending.TIMEOUT), "no_answer"),
            (CallOutcome(Ending.MODEL_MISMATCH), "tool_failed"),
            (CallOutcome(Ending.CANCELLED), "tool_failed"),
            (CallOutcome(Ending.TOOL_ACTIVITY), "tool_failed"),
            (CallOutcome(Ending.UNSTARTABLE), "unavailable"),
        ],
    )
    def test_endings(self, outcome: CallOutcome, state: str) -> None:
        """M62: the column of providers.md; a kill at the limit is no answer."""
        assert state_of_ending(outcome) == state

    @pytest.mark.parametrize("kind", list(ProviderErrorKind))
    def test_provider_errors(self, kind: ProviderErrorKind) -> None:
        """M63: quota and rate limits are quota, the server's trouble no answer, the rest a failed tool."""
        expected = {
            "quota_unavailable": "quota",
            "rate_limited": "quota",
            "server_error": "no_answer",
            "connection_lost": "no_answer",
        }
        outcome = CallOutcome(Ending.PROVIDER_ERROR, error_kind=kind)
        assert state_of_ending(outcome) == expected.get(kind, "tool_failed")


class TestRounds:
    def ruling(self, a: str, b: str, attempts: tuple[int, int] = (1, 1)) -> RoundRuling:
        states = zip(PassName, (a, b), attempts, strict=True)
        return judge_round({name: PassResult(name, PassState(s), n) for name, s, n in states})

    def test_both_valid(self) -> None:
        assert self.ruling("valid", "valid") == RoundRuling()

    @pytest.mark.parametrize("state", ["invalid", "worktree_changed", "tool_failed"])
    def test_what_fails(self, state: str) -> None:
        """M61: and it outranks a hold and a void pass."""
        reason = f"crosscheck_pass_{state}"
        assert self.ruling(state, "valid").failed == reason
        assert self.ruling("quota", state).failed == reason
        assert self.ruling("not_read", state).failed == reason

    def test_what_holds(self) -> None:
        """M62 M63: and it outranks a void pass."""
        assert self.ruling("valid", "quota").held is StopCode.ENGINE_QUOTA
        assert self.ruling("no_answer", "not_read").held is StopCode.ENGINE_NO_ANSWER

    def test_what_is_void(self) -> None:
        """M49 M50 M51: both at once, one of them, the same one again."""
        assert self.ruling("not_read", "not_read").no_verdict
        assert self.ruling("valid", "not_read").again is PassName.B
        assert self.ruling("not_read", "valid").again is PassName.A
        assert self.ruling("valid", "not_read", (1, 2)).no_verdict

    def test_an_engine_that_is_gone(self) -> None:
        """M47: another profile judges."""
        assert self.ruling("unavailable", "valid").unavailable


class TestFloors:
    def test_each_floor_by_itself(self) -> None:
        """M115: one command, 1,000 tokens, 10 seconds."""
        assert shortfalls(Reading(1, 1000, 10), Floors()) == ()
        assert shortfalls(Reading(0, 1000, 10), Floors()) == ("commands",)
        assert shortfalls(Reading(1, 999, 10), Floors()) == ("tokens",)
        assert shortfalls(Reading(1, 1000, 9.9), Floors()) == ("seconds",)

    def test_what_is_not_observed(self) -> None:
        """M115: is not met, unless it is stated as null."""
        assert shortfalls(Reading(None, None, 60), Floors()) == ("commands", "tokens")
        stated = Floors(commands=None, tokens=None)
        assert shortfalls(Reading(None, None, 60), stated) == ()
        assert stated.unobserved == ("commands", "tokens")

    def test_what_an_outcome_shows(self) -> None:
        """M115: an engine whose stream is not read shows neither."""
        outcome = answered({}, tokens=7, seconds=3, commands=2)
        assert reading_of(outcome, "verified-none") == Reading(2, 7, 3.0)
        assert reading_of(outcome, "not-observed") == Reading(None, 7, 3.0)
        assert reading_of(CallOutcome(Ending.SUCCESS, answer="x"), "any") == Reading(None, None, 0.0)

    @pytest.mark.parametrize("ended", [None, False])
    def test_what_began_or_failed_is_no_command(self, ended: bool | None) -> None:  # noqa: FBT001 - three words
        """M115: the floor asks for a command that ended well; any other sign of a tool is none."""
        events = (ToolActivity("command_execution", ended), Message("{}"))
        outcome = CallOutcome(Ending.SUCCESS, answer="{}", events=events)
        assert reading_of(outcome, "any").commands == 0


class TestPriors:
    def start(self, number: int, prior: Prior | None, head: str = HEAD) -> bool:
        return is_valid_start(RoundStart(number, "m1", "r1", head, prior))

    def test_round_one(self) -> None:
        """M65: without a prior, or with that of a rerun alone."""
        assert self.start(1, None)
        assert self.start(1, Prior(v(run="r0", head="c" * 40), rerun=True))
        assert not self.start(1, Prior(V))
        assert not self.start(1, Prior(v(milestone="m2"), rerun=True))

    @pytest.mark.parametrize(
        "prior",
        [
            None,
            Prior(v(milestone="m2")),
            Prior(v(head="c" * 40)),
            Prior(v(round=2)),
            Prior(v(run="r0")),
            Prior(v(word=Word.VERIFIED)),
            Prior(V, rerun=True),
        ],
    )
    def test_round_two(self, prior: Prior | None) -> None:
        """M65: continues this run's round 1 at the head it judged, and nothing else."""
        assert self.start(2, Prior(V))
        assert not self.start(2, prior)

    def test_no_third_round(self) -> None:
        """M65: there is one correction."""
        assert not self.start(3, Prior(v(round=2)))

    def test_previous_findings(self) -> None:
        """M84: each blocking finding in one of three words."""
        minor = made(name="m", severity="P3", impact=None)
        before = v(findings=(made(name="A-1"), made(name="B-1"), made(name="B-2"), minor))
        now = v(findings=(made(name="A-1"), made(name="B-1", severity="P3", impact=None)))
        told = previous_crosscheck(before, now)
        assert told["verdict"]["findings"] == [each.plain() for each in before.findings]
        assert told["findings"] == [
            {"id": "A-1", "result": "blocking"},
            {"id": "B-1", "result": "follow_up"},
            {"id": "B-2", "result": "not_reported"},
        ]


class TestCorrection:
    def plan(self, *kinds: str) -> CorrectionPlan:
        return plan_correction([made(name=f"B-{n}", kind=kind) for n, kind in enumerate(kinds)])

    def test_who_answers(self) -> None:
        """M73 M74: missing evidence alone is the explorer's; every other set is the executor's."""
        assert self.plan("evidence_missing", "evidence_missing") == "explorer"
        assert self.plan("evidence_missing", "test_gap") == "executor"
        assert self.plan("test_gap") == "executor"
        assert self.plan("defect") == "executor"
        assert self.plan() == "executor"

    def test_a_file_name_in_the_range(self) -> None:
        """M81: whoever pastes the command runs nothing but it, whatever an engine calls a file."""
        packet = fix_packet(v(findings=(made(file="b.py; touch x"),)), [])
        assert packet["range"].endswith(" -- 'b.py; touch x'")

    def test_the_fix_packet(self) -> None:
        """M81: exactly the blocking ids, the range over their files, the criteria, the route."""
        minor = made(name="B-2", severity="P3", impact=None)
        packet = fix_packet(v(findings=(made(file="b.py"), minor)), [Criterion("c2", "Works.")])
        assert list(packet["findings"]) == ["B-1"]
        assert packet["range"] == f"git diff {BASE}..{HEAD} -- b.py"
        assert packet["criteria"] == [{"id": "c2", "text": "Works."}]
        assert "red-to-green" in packet["route"]

    def test_escalation_ids(self) -> None:
        """M80: the same V, the same id; another V, run or call, another."""
        name = escalation_id("r1", "close", V.plain())
        assert name == escalation_id("r1", "close", v().plain())
        others = {
            escalation_id("r1", "close", v(round=2).plain()),
            escalation_id("r2", "close", V.plain()),
            escalation_id("r1", "other", V.plain()),
        }
        assert len(others | {name}) == 4


class TestClosing:
    GATE = GateJudgement(
        milestone="m1", head=HEAD, tree="t", base=BASE, state=GateState.PASS, pieces=(), need_tests=(),
        need_qa=False, warnings=(),
    )  # fmt: skip

    def judged(self, verdict: Verdict | None, tip: str = HEAD, **members: Any) -> str | None:  # noqa: ANN401 - members
        return judge_close(CloseEvidence("m1", **({"gate": self.GATE, "verdict": verdict} | members)), tip)

    def test_a_verified_verdict_closes(self) -> None:
        assert self.judged(v(word=Word.VERIFIED)) is None

    def test_what_does_not_close(self) -> None:
        """M67 M68 M69: another head, another milestone, no V, an unverified one, a gate that did not pass."""
        good = v(word=Word.VERIFIED)
        assert self.judged(good.model_copy(update={"head": BASE})) == "the crosscheck is of another head"
        assert self.judged(good.model_copy(update={"base": HEAD})) == "the crosscheck is of another head"
        assert self.judged(good.model_copy(update={"milestone": "m2"})) == (
            "the crosscheck is of another milestone"
        )
        assert self.judged(None) == "no crosscheck"
        assert self.judged(V) == "the crosscheck is not verified"
        assert self.judged(good, tip=BASE) == "the target is not at the head that the gate judged"
        failed = self.GATE.model_copy(update={"state": GateState.FAILED})
        for gate in (None, failed, self.GATE.model_copy(update={"milestone": "m2"})):
            assert self.judged(good, gate=gate) == "no passed final gate of this milestone"

    def test_a_final_review_of_an_imported_journal(self) -> None:
        """M69: counts where there is no V, and in an imported journal alone."""
        final = {"verdict": "verified", "milestone": "m1", "head": HEAD}
        assert self.judged(None, imported=True, reviewer_final=final) is None
        assert self.judged(None, reviewer_final=final) == "no crosscheck"
        assert self.judged(V, imported=True, reviewer_final=final) == "the crosscheck is not verified"
        for wrong in ({"head": BASE}, {"milestone": "m2"}, {"verdict": "needs_changes"}):
            assert self.judged(None, imported=True, reviewer_final=final | wrong) == "no crosscheck"


class TestAlignment:
    def judged(self, commits: list[str] | None, *nodes: NodeLanding, fix: tuple[str, ...] = ()) -> str:
        return judge_alignment(AlignmentFacts(commits, nodes, fix))

    def test_equal(self) -> None:
        """M117: every node landed, every commit belongs to one; the correction belongs to the close."""
        one, two = (
            NodeLanding("n1", landed=True, commits=["1"]),
            NodeLanding("n2", landed=True, commits=["2", "3"]),
        )
        assert self.judged(["3", "2", "1"], one, two) == EQUAL
        assert self.judged(["4", "3", "2", "1"], one, two, fix=("4",)) == EQUAL

    def test_not_equal(self) -> None:
        """M117: with the difference."""
        one, absent = (
            NodeLanding("n1", landed=True, commits=["1"]),
            NodeLanding("n2", landed=False, commits=()),
        )
        assert self.judged(["1"], one, absent) == "not equal: not landed: n2"
        assert self.judged(["9" * 40, "1"], one) == "not equal: of no planned node: 999999999999"

    def test_not_judged(self) -> None:
        """M117: when the plan names no node, or what belongs to one is unknown."""
        assert self.judged(["1"]) == "not judged"
        assert self.judged(None, NodeLanding("n1", landed=True, commits=["1"])) == "not judged"
        assert self.judged(["1"], NodeLanding("n1", landed=True, commits=None)) == "not judged"


class TestPackets:
    RECEIPT = NodeReceipt(node="n1", state="accepted", sha256="sha256:2", source_run=None)
    FACTS = PacketFacts(
        BASE, HEAD, (Criterion("c2", "It works."),), (Decision(id="d1", text="One store."),),
        ReceiptsFile(Path("/run/receipts.md"), "sha256:1", (RECEIPT,)),
    )  # fmt: skip

    def test_the_rule_is_the_same_in_both(self) -> None:
        """M116: word for word, once each; it names every impact and what they mean."""
        packets = [pass_packet(name, self.FACTS) for name in PassName]
        assert all(packet.count(BLOCKING_RULE) == 1 for packet in packets)
        assert all(impact.value in BLOCKING_RULE for impact in Impact)
        for words in (
            "P0, P1 and P2 block under any impact",
            "minor_separable is the only one that does not",
        ):
            assert words in BLOCKING_RULE
        for words in ("closes on a verified crosscheck and on nothing else", "Verified means", "follow-up"):
            assert words in BLOCKING_RULE

    def test_what_both_hold(self) -> None:
        """M116: range, criteria with their ids, decisions, receipts and the red-first request."""
        for name in PassName:
            packet = pass_packet(name, self.FACTS)
            for words in (f"{BASE}..{HEAD}", "c2: It works.", "d1: One store.", "red-first lines"):
                assert words in packet
            assert "file: /run/receipts.md\nsha256: sha256:1\nnode n1: accepted sha256:2" in packet
            assert f"pass {name} of two" in packet

    def test_the_prior(self) -> None:
        """M82: both passes get each blocking finding that was there before."""
        prior = v(findings=(made(name="A-7", text="Loses it."),))
        for name in PassName:
            assert "A-7 [P1/core_function] a.py:1 Loses it. (defect)" in pass_packet(
                name, replace(self.FACTS, prior=prior)
            )

    def test_without_build_criteria(self) -> None:
        """M4: both packets are there all the same."""
        bare = replace(self.FACTS, criteria=(), decisions=())
        assert bare.refs == ()
        assert all("CRITERIA\nnone\n" in pass_packet(name, bare) for name in PassName)


class TestReceipts:
    CHECK: ClassVar[dict[str, Any]] = {
        "call": "unit-check-1", "role": "unit-check", "state": "ok", "verdict": "verified",
        "receipt": {"state": "accepted", "copy": "x.receipt", "sha256": "sha256:1"},
    }  # fmt: skip

    def judged(self, check: dict[str, Any] | None, **members: Any) -> tuple[str, str | None]:  # noqa: ANN401 - members
        usual = {"copy": b"red: no\n", "copy_digest": "sha256:1"}
        found = judge_node_receipt(NodeEvidence("n1", check, **(usual | members)))
        return found.receipt.state, found.hold

    def test_an_accepted_copy(self) -> None:
        assert self.judged(self.CHECK) == ("accepted", None)

    def test_what_holds(self) -> None:
        """M40 M41 M42 M43: the copy is gone, nothing is verified, no copy is named, the bytes differ."""
        assert self.judged(self.CHECK, copy=None) == ("missing", "crosscheck_receipt_missing")
        for wrong in ({"state": "failed"}, {"verdict": "needs_changes"}, {"role": "x"}, {"receipt": None}):
            assert self.judged(self.CHECK | wrong) == ("unverified", "crosscheck_receipt_unverified")
        bare = self.CHECK | {"receipt": {"state": "accepted", "copy": None, "sha256": "sha256:1"}}
        assert self.judged(bare) == ("not_copied", "crosscheck_receipt_not_copied")
        assert self.judged(self.CHECK, copy_digest="sha256:2") == ("mismatch", "crosscheck_receipt_mismatch")

    def test_a_reused_node_without_its_check(self) -> None:
        """M40: also where the source journal cannot be read."""
        source = ReusedFrom("r0", HEAD, "acc_1")
        assert self.judged(None, reused=source) == ("missing", "crosscheck_receipt_missing")
        assert self.judged(None, reused=source, readable=False)[1] == "crosscheck_receipt_missing"

    def test_what_does_not_hold(self) -> None:
        """M44: nobody was assigned, or nothing was checked in this run."""
        assigned = self.CHECK | {"receipt": {"state": "not_assigned", "copy": None, "sha256": None}}
        assert self.judged(assigned) == ("not_assigned", None)
        assert self.judged(None) == ("no_executor", None)

    def test_the_document(self) -> None:
        """M45: bytes as they are; a reused node's block names where it comes from."""
        source = ReusedFrom("r0", HEAD, "acc_1")
        evidence = NodeEvidence("n1", self.CHECK, source, copy=b"red \xff\n", copy_digest="sha256:1")
        document = receipts_document(
            [judge_node_receipt(evidence), judge_node_receipt(NodeEvidence("n2", None))]
        )
        assert document == (
            b"# Executor receipts\n\n## node n1\nstate: accepted\nsha256: sha256:1\nsource run: r0\n"
            b"unit check: unit-check-1\nacceptance: acc_1\n\nred \xff\n\n## node n2\nstate: no_executor\n\n"
        )


def test_every_code_is_raised_somewhere() -> None:
    """M46: no word without a place that says it; those of older journals are only read."""
    folder = Path(__file__).parents[3] / "eval" / "skill_effectiveness" / "acceptance" / "milestone"
    source = "\n".join(path.read_text() for path in folder.glob("*.py") if path.name != "errors.py")
    codes: list[tuple[str, type[StrEnum]]] = [
        ("MilestoneCode", MilestoneCode),
        ("StopCode", StopCode),
        ("Reason", Reason),
    ]
    unused = {each.value for name, enum in codes for each in enum if f"{name}.{each.name}" not in source}
    assert unused == {each.value for each in LEGACY_REASONS}
    assert unused == {"crosscheck_author_undecided", "crosscheck_no_independent_engine"}
