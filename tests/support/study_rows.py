"""Rows of a study's journal for tests, and one journal that holds every type of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from skill_effectiveness.evidence.journal_rows import Row
from skill_effectiveness.studies import rows
from skill_effectiveness.studies.rows import Usage, entry
from skill_effectiveness.studies.words import Arm, EndClass, GradeState

if TYPE_CHECKING:
    from collections.abc import Sequence

    from skill_effectiveness.studies.rows import StudyRow

DIGEST = "sha256:" + "1" * 64
LICENCE = "a" * 32
PAIR = "pair-" + "b" * 64
TIME = "2026-03-04T05:06:07.000Z"
SEALED = rows.PlanSealed(plan_digest=DIGEST)


def row(seq: int, body: StudyRow) -> Row:
    made = entry(body)
    return Row(seq, DIGEST, {"type": made.type, "body": made.body, "time": TIME})


def journal(*bodies: StudyRow) -> list[Row]:
    return [row(seq, body) for seq, body in enumerate((SEALED, *bodies), start=1)]


def started(slot: int = 1, attempt: int = 1) -> StudyRow:
    return rows.SlotStarted(slot=slot, attempt=attempt, order_digest=DIGEST)


def attempt_ended(
    slot: int = 1, attempt: int = 1, ended: EndClass = EndClass.COMPLETED, usage: Usage | None = None
) -> StudyRow:
    fields: dict[str, Any] = {"class": ended}
    used = usage or Usage(input_tokens=3, output_tokens=4, cost_units=0.5)
    return rows.AttemptEnded(slot=slot, attempt=attempt, detail=None, tree=DIGEST, usage=used, **fields)


def slot_ended(slot: int = 1, ended: EndClass = EndClass.COMPLETED) -> StudyRow:
    fields: dict[str, Any] = {"class": ended}
    return rows.SlotEnded(slot=slot, completion_binding_hash=DIGEST, **fields)


def graded(slot: int = 1, state: GradeState = GradeState.VALID) -> StudyRow:
    return rows.Graded(slot=slot, state=state, grade_hash=DIGEST if state is GradeState.VALID else None)


def vote_started(vote: str = "v1") -> StudyRow:
    return rows.VoteStarted(vote_id=vote, licence_id=LICENCE, pair_id=PAIR, position=0)


def vote_ended(vote: str = "v1") -> StudyRow:
    return rows.VoteEnded(vote_id=vote, state="valid", vote_hash=DIGEST, usage=Usage())


EVERY: Sequence[StudyRow] = (
    rows.Amendment(pointer="/budgets/study/tokens", value=5.0, former=None, reason="why"),
    rows.BatchOpened(batch=1, first=1, last=2),
    rows.Assay(batch=1, phase="open", arm=Arm.OFF, result="passed"),
    started(),
    attempt_ended(ended=EndClass.INTERRUPTED),
    rows.WorkerLost(worker="host-1", slots=(1,)),
    rows.LeftoversEnded(processes=2),
    started(attempt=2),
    attempt_ended(attempt=2),
    slot_ended(),
    graded(state=GradeState.GRADER_FAILED),
    graded(),
    started(2),
    attempt_ended(2),
    slot_ended(2),
    rows.BatchVoid(batch=1),
    rows.Drained(),
    rows.SlotsClosed(reason="decided", slots=4),
    vote_started(),
    vote_ended(),
    rows.Canary(licence_id=LICENCE, right=False, e=2.5),
    rows.LicenceRevoked(licence_id=LICENCE),
    rows.VotesVoid(licence_id=LICENCE, vote_ids=("v1",)),
    rows.Guess(licence_id=LICENCE, pair_id=PAIR, position=0, guess="unsure"),
    rows.Unblinded(reason="done"),
    rows.Analysed(results_digest=DIGEST),
    rows.Sealed(),
)
