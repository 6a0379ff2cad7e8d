"""Counts without arms, and that a snapshot and the rows after it equal all rows."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import pytest

from skill_effectiveness.evidence.canonical import dump
from skill_effectiveness.evidence.journal import Journal
from skill_effectiveness.studies import root as root_module
from skill_effectiveness.studies import rows
from skill_effectiveness.studies.errors import StudyCode, StudyError
from skill_effectiveness.studies.root import PURPOSE, STATUS, StudyRoot
from skill_effectiveness.studies.state import Phase, fold
from skill_effectiveness.studies.status import Counting, first_status, read_status, status_line
from skill_effectiveness.studies.words import EndClass
from tests.support.studies import Bench, bench, example
from tests.support.study_rows import EVERY, attempt_ended, graded, journal, slot_ended, started

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from skill_effectiveness.studies.rows import StudyRow
    from skill_effectiveness.studies.status import StudyStatus


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Bench]:
    with bench(tmp_path) as made:
        made.plan(example(tmp_path))
        yield made


def replayed(study: StudyRoot, place: Bench) -> StudyStatus:
    """The counts after every row of the journal, from the first."""
    counting = Counting(first_status(study.plan))
    with Journal.open(study.root, purpose=PURPOSE, state=place.state) as held:
        for row in held.rows():
            counting.take(row.seq, rows.read_study_row(row), row.time)
    now = study.status()
    return counting.at(now.segment, now.offset)


class TestReplay:
    @pytest.mark.parametrize("every", [1, 3, 1_000])
    def test_a_snapshot_and_the_rows_after_it(
        self, place: Bench, monkeypatch: pytest.MonkeyPatch, every: int
    ) -> None:
        """S29: whenever the snapshot was written, the status is that of all rows."""
        monkeypatch.setattr(root_module, "STATUS_EVERY", every)
        with place.open() as study:
            with study.journal(place.state) as held:
                for body in EVERY:
                    held.append(body)
                    assert study.status() == held.status() == replayed(study, place)
            assert study.status() == replayed(study, place)
            with study.journal(place.state) as held:
                assert held.status() == study.status()

    def test_counts_agree_with_the_state(self, place: Bench) -> None:
        """S29: two readings of one journal."""
        with place.open() as study:
            counting = Counting(first_status(study.plan))
            rows_so_far = journal(*EVERY[:16])
            for row in rows_so_far:
                counting.take(row.seq, rows.read_study_row(row), row.time)
            counted, state = counting.at(1, 0), fold(rows_so_far)
        assert counted.ended == state.ended()
        assert counted.attempts == sum(len(slot.attempts) for slot in state.slots.values())
        assert counted.classes == {EndClass.VOID: 2}
        assert counted.state is state.phase(study.plan.allocation.slots)

    def test_a_lost_or_broken_snapshot_is_made_again(self, tmp_path: Path, place: Bench) -> None:
        """S29: a snapshot is a convenience; the journal decides."""
        with place.open() as study, study.journal(place.state) as held:
            held.append(*EVERY[:12])
        expected = study_status(place)
        path = tmp_path / "R" / STATUS
        for damage in (b"", b"{}\n", path.read_bytes()[:40]):
            path.write_bytes(damage)
            assert study_status(place) == expected
        path.unlink()
        assert study_status(place) == expected

    def test_a_snapshot_ahead_of_the_journal_is_refused(self, tmp_path: Path, place: Bench) -> None:
        with place.open() as study:
            ahead = study.status().model_copy(update={"seq": 40})
        (tmp_path / "R" / STATUS).write_bytes(status_line(ahead))
        with pytest.raises(StudyError) as caught:
            study_status(place)
        assert caught.value.code is StudyCode.ROW_INVALID


def study_status(place: Bench) -> StudyStatus:
    with place.open() as study:
        return study.status()


class TestCounts:
    def counted(self, place: Bench, *bodies: StudyRow) -> StudyStatus:
        with place.open() as study:
            with study.journal(place.state) as held:
                held.append(*bodies)
            return study.status()

    def test_known_and_unknown_usage(self, place: Bench) -> None:
        one = self.counted(place, started(), attempt_ended(), slot_ended(), graded())
        assert (one.known_tokens, one.known_cost, one.ended, one.graded) == (7, 0.5, 1, 1)
        two = self.counted(place, started(2), attempt_ended(2, usage=rows.Usage()), slot_ended(2))
        assert (two.known_tokens, two.known_cost, two.classes) == (None, None, {EndClass.COMPLETED: 2})

    def test_nothing_per_arm(self, place: Bench) -> None:
        """S18: the status names no arm and no slot."""
        status = self.counted(place, started(), attempt_ended(), slot_ended())
        text = status_line(status).decode()
        assert read_status(status_line(status)) == status
        assert not [word for word in ("off", "full", "note-amber") if f'"{word}"' in text]

    def test_eta(self, place: Bench) -> None:
        held: dict[str, Any] = study_status(place).model_dump() | {
            "state": Phase.RUNNING,
            "ended": 3,
            "first_started_at": "2026-03-04T05:06:00.000Z",
            "last_ended_at": "2026-03-04T05:06:30.000Z",
        }
        status = type(study_status(place))(**held)
        assert status.eta_seconds == pytest.approx(10.0 * (status.slots - 3))
        assert study_status(place).eta_seconds is None


class TestAppending:
    def test_a_refused_row_changes_nothing(self, place: Bench) -> None:
        """S19: a contradiction is refused before it is written."""
        with place.open() as study, study.journal(place.state) as held:
            held.append(started())
            before = held.journal.count
            with pytest.raises(StudyError):
                held.append(attempt_ended(), slot_ended(), slot_ended())
            assert held.journal.count == before
            assert [slot.slot for slot in held.state.started_slots()] == [1]
            held.append(attempt_ended(), slot_ended())
            assert held.state.ended() == 1

    def test_a_journal_of_another_plan(self, tmp_path: Path, place: Bench) -> None:
        place.plan(example(tmp_path / "b", edits={"samples: 3": "samples: 4"}), "R2")
        for name in ("000001.jsonl", "head.json"):
            (tmp_path / "R" / "journal" / name).write_bytes((tmp_path / "R2" / "journal" / name).read_bytes())
        with place.open() as study, pytest.raises(StudyError) as caught:
            study.journal(place.state)
        assert (caught.value.code, caught.value.where) == (StudyCode.PLAN_CHANGED, "/plan_digest")


class TestSize:
    def test_a_hundred_thousand_trials(self, tmp_path: Path, place: Bench) -> None:
        """S29: the status of 100,000 trials takes under a second and 200 MB."""
        trials = 100_000
        with place.open() as study:
            counting = Counting(study.status())
            for slot in range(1, trials + 1):
                for body in (started(slot), attempt_ended(slot), slot_ended(slot)):
                    counting.take(2, body, "2026-03-04T05:06:07.000Z")
            now = study.status()
            held = counting.at(now.segment, now.offset).model_copy(update={"seq": now.seq})
            (tmp_path / "R" / STATUS).write_bytes(status_line(held))
            with study.journal(place.state) as appending:
                bodies: Sequence[StudyRow] = [started(n) for n in range(1, 301)]
                appending.append(*bodies)
                (tmp_path / "R" / STATUS).write_bytes(status_line(held))
                began = time.monotonic()
                status = study.status()
                took = time.monotonic() - began
        assert (status.ended, status.attempts) == (trials, trials + 300)
        assert took < 1
        assert len(dump(status.model_dump(mode="json"))) < 4_096
