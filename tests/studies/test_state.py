"""Journal rows and what they amount to."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skill_effectiveness.evidence.journal_rows import Row
from skill_effectiveness.studies import rows
from skill_effectiveness.studies.errors import StudyCode, StudyError
from skill_effectiveness.studies.rows import ROWS, StudyRow, entry, read_study_row
from skill_effectiveness.studies.state import Phase, SlotPhase, fold
from skill_effectiveness.studies.words import Arm, EndClass, GradeState
from tests.support.study_rows import (
    DIGEST,
    EVERY,
    LICENCE,
    PAIR,
    SEALED,
    TIME,
    attempt_ended,
    graded,
    journal,
    row,
    slot_ended,
    started,
    vote_ended,
    vote_started,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

TYPES = """
plan_sealed amendment batch_opened assay batch_void slot_started attempt_ended worker_lost leftovers_ended
slot_ended graded drained vote_started vote_ended canary licence_revoked votes_void guess slots_closed
unblinded analysed sealed
"""


class TestRows:
    def test_the_types(self) -> None:
        """S19: these types and no other."""
        assert list(ROWS) == TYPES.split()
        assert {body.type for body in EVERY} | {"plan_sealed"} == set(ROWS)

    @pytest.mark.parametrize("body", [SEALED, *EVERY], ids=lambda body: body.type)
    def test_there_and_back(self, body: StudyRow) -> None:
        """S19: what is appended is read again."""
        assert read_study_row(row(1, body)) == body

    def test_names_of_section_two(self) -> None:
        """S19: the members that the contract names."""
        assert set(entry(attempt_ended()).body) == {"slot", "attempt", "class", "detail", "tree", "usage"}
        assert set(entry(slot_ended()).body) == {"slot", "class", "completion_binding_hash"}
        assert set(entry(started()).body) == {"slot", "attempt", "order_digest"}
        assert set(entry(graded()).body) == {"slot", "grade_hash", "state"}

    @pytest.mark.parametrize("body", [SEALED, *EVERY], ids=lambda body: body.type)
    def test_unknown_members_are_refused(self, body: StudyRow) -> None:
        """S19: a row holds nothing besides."""
        value = row(1, body).value
        value["body"]["arm_secret"] = 1  # type: ignore[index,call-overload]
        with pytest.raises(StudyError) as caught:
            read_study_row(Row(1, DIGEST, value))
        assert caught.value.code is StudyCode.ROW_INVALID

    def test_unknown_type(self) -> None:
        with pytest.raises(StudyError, match="no row of the type surprise"):
            read_study_row(Row(4, DIGEST, {"type": "surprise", "body": {}, "time": TIME}))

    def test_rows_of_the_journal_itself(self) -> None:
        assert read_study_row(Row(0, DIGEST, {"type": "journal_open", "body": {}, "time": TIME})) is None


class TestFold:
    def test_everything(self) -> None:
        """S19: the whole of a study."""
        state = fold(journal(*EVERY))
        assert state.seq == len(EVERY) + 1
        assert state.phase(6) is Phase.SEALED
        first = state.slot(1)
        assert [attempt.ended for attempt in first.attempts] == [EndClass.INTERRUPTED, EndClass.COMPLETED]
        assert (first.ended, first.state, first.grade_hash) == (EndClass.VOID, GradeState.VALID, DIGEST)
        assert state.batches[1].assays == (("open", "off", "passed"),)
        assert state.batches[1].void
        assert (state.workers_lost, state.leftovers_ended, state.drained) == (1, 2, 1)
        assert state.votes["v1"].void
        assert state.revoked == {LICENCE}
        assert [canary.right for canary in state.canaries[LICENCE]] == [False]
        assert state.guesses == {(LICENCE, PAIR, 0): "unsure"}
        assert state.voted(LICENCE)
        assert not state.voted("c" * 32)

    def test_phases_of_a_slot(self) -> None:
        bodies = (started(), attempt_ended(), slot_ended(), graded())
        phases = [fold(journal(*bodies[:n])).slot(1).phase for n in range(5)]
        assert phases == [
            SlotPhase.OPEN,
            SlotPhase.STARTED,
            SlotPhase.OPEN,
            SlotPhase.ENDED,
            SlotPhase.GRADED,
        ]

    def test_phases_of_a_study(self) -> None:
        bodies = (
            started(),
            attempt_ended(),
            slot_ended(),
            rows.Unblinded(reason="x"),
            rows.Analysed(results_digest=DIGEST),
        )
        phases = [fold(journal(*bodies[:n])).phase(1) for n in range(6)]
        assert phases == [
            Phase.PLANNED,
            Phase.RUNNING,
            Phase.RUNNING,
            Phase.COMPLETE,
            Phase.UNBLINDED,
            Phase.ANALYSED,
        ]

    def test_attempts_that_nobody_saw_end(self) -> None:
        state = fold(journal(started(3), started(1), attempt_ended(3)))
        assert [slot.slot for slot in state.started_slots()] == [1]

    @pytest.mark.parametrize(
        "bodies",
        [
            (SEALED,),
            (started(attempt=2),),
            (started(), started()),
            (started(), started(attempt=2)),
            (attempt_ended(),),
            (started(), attempt_ended(attempt=2)),
            (started(), slot_ended()),
            (slot_ended(),),
            (started(), attempt_ended(), slot_ended(), slot_ended()),
            (started(), attempt_ended(), slot_ended(), started(attempt=2)),
            (graded(),),
            (started(), graded()),
            (started(), attempt_ended(), graded(), graded()),
            (rows.SlotsClosed(reason="decided", slots=1), started()),
            (rows.SlotsClosed(reason="decided", slots=1), rows.SlotsClosed(reason="decided", slots=1)),
            (rows.Unblinded(reason="x"), started()),
            (rows.Unblinded(reason="x"), vote_started()),
            (rows.Unblinded(reason="x"), rows.Unblinded(reason="x")),
            (vote_started(), vote_started()),
            (vote_ended(),),
            (vote_started(), vote_ended(), vote_ended()),
            (rows.VotesVoid(licence_id=LICENCE, vote_ids=("v1",)),),
            (rows.Analysed(results_digest=DIGEST),),
            (rows.Unblinded(reason="x"), rows.Sealed()),
            (rows.BatchOpened(batch=2, first=1, last=2),),
            (rows.BatchVoid(batch=1),),
            (rows.Assay(batch=1, phase="open", arm=Arm.OFF, result="passed"),),
        ],
        ids=lambda bodies: "+".join(body.type for body in bodies),
    )
    def test_contradictions(self, bodies: Sequence[StudyRow]) -> None:
        """S19: nothing is guessed; a row that cannot follow those before it is refused by its number."""
        with pytest.raises(StudyError) as caught:
            fold(journal(*bodies))
        assert caught.value.code is StudyCode.ROW_INVALID
        assert caught.value.where == f"journal row {len(bodies) + 1}"

    def test_no_plan_first(self) -> None:
        """S19: the first row seals the plan."""
        with pytest.raises(StudyError, match="a plan is sealed in the first row"):
            fold([row(1, started())])

    def test_a_grade_is_whole(self) -> None:
        broken = rows.Graded(slot=1, state=GradeState.VALID, grade_hash=None)
        with pytest.raises(StudyError, match="a valid grade has a hash"):
            fold(journal(started(), attempt_ended(), broken))

    @given(st.integers(min_value=0, max_value=len(EVERY)))
    def test_every_beginning_is_a_state(self, length: int) -> None:
        """S19: a journal that ends anywhere amounts to something."""
        assert fold(journal(*EVERY[:length])).seq == length + 1
