"""What a journal tells beside its trials."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from skill_effectiveness.evidence.journal_rows import Row
from skill_effectiveness.studies import rows
from skill_effectiveness.studies.chronicle import read_chronicle
from skill_effectiveness.studies.errors import StudyError
from skill_effectiveness.studies.words import EndClass

if TYPE_CHECKING:
    from skill_effectiveness.studies.rows import StudyRow

DIGEST = "sha256:" + "1" * 64
LICENCE = "a" * 32


def journal(*bodies: StudyRow) -> list[Row]:
    """Rows a minute apart, the plan first."""
    entries = [rows.entry(body) for body in (rows.PlanSealed(plan_digest=DIGEST), *bodies)]
    return [
        Row(
            number, "", {"type": entry.type, "body": entry.body, "time": f"2026-01-02T10:{number:02}:00.000Z"}
        )
        for number, entry in enumerate(entries)
    ]


def ended(ended_as: EndClass) -> rows.AttemptEnded:
    return rows.AttemptEnded(
        slot=1, attempt=1, **{"class": ended_as}, detail=None, tree=None, usage=rows.Usage()
    )


def test_nothing_but_the_plan() -> None:
    """S60: when it was sealed, and that arms are not known."""
    told = read_chronicle(journal())
    assert (told.planned_at, told.unblinded_at) == ("2026-01-02T10:00:00.000Z", None)
    assert (told.amendments, told.deviations, told.analysed) == ((), (), ())


def test_amendments() -> None:
    """S20 S60: as they were journalled, with their moments, in order."""
    told = read_chronicle(
        journal(
            rows.Amendment(pointer="/budgets/study/tokens", value=5.0, former=None, reason="it is enough"),
            rows.Amendment(pointer="/reviewers/0", value=None, former=LICENCE, reason="gone"),
        )
    )
    assert [(one.pointer, one.value, one.former, one.reason, one.at) for one in told.amendments] == [
        ("/budgets/study/tokens", 5.0, None, "it is enough", "2026-01-02T10:01:00.000Z"),
        ("/reviewers/0", None, LICENCE, "gone", "2026-01-02T10:02:00.000Z"),
    ]


def test_a_clock_that_went_back() -> None:
    """S23 S60: told, because durations and the lives of licences rest on it, until arms are known."""
    told = read_chronicle(clocked("10:05", "10:03", "10:04", "10:01"))
    assert [(one.code, one.at) for one in told.deviations] == [("clock_went_back", None)]
    assert told.deviations[0].sentence.endswith(": 2.")
    assert read_chronicle(clocked("10:01", "10:02", "10:02", "10:04")).deviations == ()
    late = [*clocked("10:01"), *journal(rows.Unblinded(reason="report"))[1:], *clocked("09:00")]
    assert read_chronicle(late).deviations == ()


def clocked(*times: str) -> list[Row]:
    """Rows that change nothing, at these times."""
    entry = rows.entry(rows.Drained())
    return [
        Row(number, "", {"type": entry.type, "body": entry.body, "time": f"2026-01-02T{time}:00.000Z"})
        for number, time in enumerate(times)
    ]


def test_deviations() -> None:
    """S60: each kind with its moment; a drain, a decided study and a plain report are none."""
    told = read_chronicle(
        journal(
            rows.LeftoversEnded(processes=3),
            rows.WorkerLost(worker="one", slots=(4, 5)),
            rows.BatchVoid(batch=2),
            rows.LicenceRevoked(licence_id=LICENCE),
            rows.VotesVoid(licence_id=LICENCE, vote_ids=("v-1", "v-2")),
            ended(EndClass.COMPLETED),
            ended(EndClass.INTERRUPTED),
            ended(EndClass.INTERRUPTED),
            rows.Drained(),
            rows.SlotsClosed(reason="decided", slots=7),
            rows.Unblinded(reason="report"),
            rows.Analysed(results_digest=DIGEST),
        )
    )
    assert [(one.code, one.at and one.at[14:16]) for one in told.deviations] == [
        ("leftovers_ended", "01"), ("worker_lost", "02"), ("batch_void", "03"), ("licence_revoked", "04"),
        ("votes_void", "05"), ("attempts_interrupted", None),
    ]  # fmt: skip
    assert told.deviations[0].sentence == "Processes that a killed run had left behind were ended: 3."
    assert told.deviations[-1].sentence.endswith("and begun again: 2.")
    assert (told.unblinded_at, told.analysed) == ("2026-01-02T10:11:00.000Z", (DIGEST,))


def test_a_study_that_was_given_up() -> None:
    """S60: why, and how many slots; however long the reason is."""
    told = read_chronicle(
        journal(rows.SlotsClosed(reason="abandoned", slots=2), rows.Unblinded(reason="w" * 9_000))
    )
    assert [one.code for one in told.deviations] == ["slots_abandoned", "given_up"]
    assert told.deviations[1].sentence.count("w") >= 4_000


def test_a_foreign_row() -> None:
    """S60: a row that is none of a study is refused."""
    with pytest.raises(StudyError):
        read_chronicle([*journal(), Row(1, "", {"type": "rumour", "body": {}, "time": ""})])
