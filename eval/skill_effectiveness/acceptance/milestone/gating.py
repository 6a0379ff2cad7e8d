"""Settling the final gate: judged, given the evidence it lacks, judged again.

Source: milestone.md, section 5.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final, TypeAlias

from skill_effectiveness.acceptance.milestone.errors import (
    MilestoneCode,
    MilestoneError,
    StopCode,
    escalated,
)
from skill_effectiveness.acceptance.milestone.gate import (
    GateJudgement,
    GateQuestion,
    StoredReceipt,
    StoredVerification,
    judge_gate,
)
from skill_effectiveness.acceptance.milestone.identity import Identity
from skill_effectiveness.acceptance.milestone.qa_evidence import make_qa_evidence
from skill_effectiveness.acceptance.milestone.verification import VerificationRecord
from skill_effectiveness.acceptance.milestone.verifying import verify
from skill_effectiveness.acceptance.milestone.words import GateState, QaWord, RowType
from skill_effectiveness.evidence.documents import validate

if TYPE_CHECKING:
    from skill_effectiveness.acceptance.milestone.run import Run

ROUNDS: Final = 3
"""How often a head that moves is judged again."""

HeadSource: TypeAlias = Callable[[], str]
"""The integrated head now."""


def target_tip(run: Run) -> str:
    """The tip of the target branch now.

    Raises:
        MilestoneError: `commit_unresolved`: there is no such branch any more.
    """
    tip = run.repository.tip(run.facts.given.target)
    if tip is None:
        raise MilestoneError(MilestoneCode.COMMIT_UNRESOLVED, run.facts.given.target, "The branch is gone.")
    return tip


def judge(run: Run, head: str) -> GateJudgement:
    """Judge what stands on a head, and write the `crw.finalGate` row."""
    facts = run.facts
    judgement = judge_gate(
        GateQuestion(
            milestone=run.milestone,
            pinned=run.repository.identity_at(head),
            head=head,
            base=facts.base,
            required=facts.required,
            records=_records(run, head),
            needs_qa=facts.given.needs_qa,
            receipt=_receipt(run),
        )
    )
    run.note(RowType.FINAL_GATE, call="final-gate", **judgement.plain())
    return judgement


def _records(run: Run, head: str) -> list[StoredVerification]:
    """The newest record of each required command; one of this head before one of another."""
    stored = []
    for argv in run.facts.required:
        rows = [
            row
            for row in run.rows.all(RowType.VERIFY, node=None)
            if row.body.get("record", {}).get("argv") == list(argv)
        ]
        here = [row for row in rows if row.body.get("head") == head] or rows
        if here:
            record = validate(VerificationRecord, here[-1].body["record"])
            stored.append(StoredVerification(here[-1].seq, record))
    return stored


def _receipt(run: Run) -> StoredReceipt | None:
    row = run.rows.newest(RowType.QA_RECEIPT)
    if row is None:
        return None
    made_for, source = (validate(Identity, row.body[name]) for name in ("made_for", "source"))
    return StoredReceipt(row.seq, QaWord(row.body["word"]), made_for, source)


def settle(run: Run, head_now: HeadSource) -> GateJudgement:
    """The passed gate of the integrated head.

    Raises:
        Stopped: `final_gate_test_failed`, `qa_failed`, `qa_inconclusive`, `final_gate_unsettled`; the hold
            `verify_unavailable`, or that of an engine of QA.
        MilestoneError: `git_failed`, `row_not_written`, `commit_unresolved`.
    """
    for _ in range(ROUNDS):
        head = head_now()
        judgement = judge(run, head)
        if judgement.state is GateState.PENDING:
            make_evidence(run, judgement)
            if head_now() != head:
                continue
            judgement = judge(run, head)
        if head_now() != head:
            continue
        return _passed(judgement)
    told = "The target moved while it was judged, three times; let it rest and start a new run."
    raise escalated(StopCode.FINAL_GATE_UNSETTLED, told)


def make_evidence(run: Run, judgement: GateJudgement) -> None:
    """Make what the gate lacks, at its head.

    Raises:
        Stopped: the hold `verify_unavailable`, or that of an engine of QA.
        MilestoneError: `git_failed`, `row_not_written`.
    """
    for argv in judgement.need_tests:
        verify(run, argv, judgement.head)
    if judgement.need_qa:
        make_qa_evidence(run, judgement.head)


def _passed(judgement: GateJudgement) -> GateJudgement:
    if judgement.state is GateState.PASS:
        return judgement
    gate = judgement.plain()
    if judgement.failed_tests:
        told = "A required command did not pass at the head; correct it in a new run."
        raise escalated(StopCode.FINAL_GATE_TEST_FAILED, told, gate=gate)
    if judgement.failed_qa is not None:
        told = "The QA receipt does not pass; see it, and start a new run."
        inconclusive = judgement.failed_qa is QaWord.INCONCLUSIVE
        code = StopCode.QA_INCONCLUSIVE if inconclusive else StopCode.QA_FAILED
        raise escalated(code, told, gate=gate)
    told = (
        "The evidence made at the head does not stand on it: a command leaves files that git does not "
        "ignore, or moves HEAD. Mend that and start a new run."
    )
    raise escalated(StopCode.FINAL_GATE_UNSETTLED, told, gate=gate)


def evidence_round(run: Run, head: str) -> int:
    """Which of the heads that passed the gate this is, counted from 1; the same after a resume."""
    heads: list[str] = []
    for row in run.rows.all(RowType.FINAL_GATE, state=GateState.PASS.value):
        if row.body["head"] not in heads:
            heads.append(row.body["head"])
    return heads.index(head) + 1 if head in heads else len(heads) + 1


def newest_gate(run: Run) -> GateJudgement | None:
    """What the newest `crw.finalGate` row says."""
    row = run.rows.newest(RowType.FINAL_GATE)
    if row is None:
        return None
    return validate(GateJudgement, {name: value for name, value in row.body.items() if name != "call"})
