"""Verification of rows: every tamper is found at its row, and what a crash leaves is not called a tamper."""

from __future__ import annotations

import hashlib
import json
import shutil
import threading
from typing import TYPE_CHECKING

import pytest

from skill_effectiveness.evidence.fsdoubles import FaultFs, Injection
from skill_effectiveness.evidence.fsops import RealFs
from skill_effectiveness.evidence.journal_faults import (
    Finding,
    JournalError,
    JournalStatus,
)
from skill_effectiveness.evidence.journal_verify import verify_file, verify_segments
from tests.support.journals import (
    FORMS,
    Desk,
    add,
    copied,
    damage_verified,
    edited,
    lines,
    put_lines,
    templates_in,
)

if TYPE_CHECKING:
    from pathlib import Path

    from skill_effectiveness.evidence.journal_rows import Row

ROWS = 9
"""Rows of the filled journal, the kernel's row 0 included where there is one."""


@pytest.fixture(scope="module")
def templates(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Desk]:
    return templates_in(tmp_path_factory.mktemp("templates").resolve(), ROWS)


@pytest.fixture(params=FORMS)
def desk(request: pytest.FixtureRequest, templates: dict[str, Desk], tmp_path: Path) -> Desk:
    return copied(templates[request.param], tmp_path.resolve())


@pytest.fixture
def segmented(templates: dict[str, Desk], tmp_path: Path) -> Desk:
    """A journal of several files."""
    several = copied(templates["several"], tmp_path.resolve())
    assert several.rows(4).exists()
    return several


class TestIntact:
    def test_an_untouched_journal(self, desk: Desk) -> None:
        report = desk.verify()
        assert report.status is JournalStatus.INTACT
        assert report.sound
        assert (report.count, report.segments, report.tears, report.unpinned) == (ROWS, 1, 0, 0)
        assert report.head == json.loads(desk.pin.read_bytes())["head"]
        assert report.journal_id == json.loads(desk.pin.read_bytes())["journal_id"]
        assert (report.findings, report.warnings, report.why) == ((), (), None)

    def test_several_segments(self, segmented: Desk) -> None:
        report = segmented.verify()
        assert report.status is JournalStatus.INTACT
        assert report.segments == len(list(segmented.folder.glob("0*.jsonl")))

    def test_rows_are_handed_out_in_order(self, desk: Desk) -> None:
        seen: list[Row] = []
        verify = verify_segments if desk.form == "segmented" else verify_file
        path = desk.folder if desk.form == "segmented" else desk.rows()
        verify(RealFs(), path, on_row=seen.append)
        assert [row.seq for row in seen] == list(range(ROWS))
        with desk.open() as journal:
            assert seen == list(journal.rows())

    def test_rows_are_handed_out_up_to_the_first_wrong_one(self, desk: Desk) -> None:
        whole = lines(desk.rows())
        put_lines(desk.rows(), [*whole[:4], b"{}\n", *whole[5:]])
        seen: list[Row] = []
        verify = verify_segments if desk.form == "segmented" else verify_file
        verify(RealFs(), desk.folder if desk.form == "segmented" else desk.rows(), on_row=seen.append)
        assert [row.seq for row in seen] == [0, 1, 2, 3]

    def test_a_copy_elsewhere_needs_no_private_modes(self, desk: Desk) -> None:
        """A bundle is unpacked with whatever modes its reader has."""
        for path in desk.folder.rglob("*"):
            path.chmod(0o755 if path.is_dir() else 0o644)
        assert desk.verify(state=False).status is JournalStatus.INTACT

    def test_an_open_journal_verifies_itself(self, desk: Desk) -> None:
        with desk.open() as journal:
            assert journal.verify() == desk.verify()

    def test_a_living_writer_is_no_damage(self, desk: Desk) -> None:
        """Pin and rows are of one moment, however many rows are added meanwhile."""
        stop = threading.Event()

        def write() -> None:
            with desk.open() as journal:
                number = ROWS
                while not stop.is_set():
                    add(journal, number)
                    number += 1

        thread = threading.Thread(target=write)
        thread.start()
        try:
            found_statuses = {desk.verify().status for _ in range(60)}
        finally:
            stop.set()
            thread.join()
        assert found_statuses <= {JournalStatus.INTACT, JournalStatus.RECOVERABLE}

    @pytest.mark.parametrize("kind", ["append", "rotation"])
    def test_an_append_at_any_step_of_a_verification_is_no_damage(self, desk: Desk, kind: str) -> None:
        """Whatever is looked at before and after it, neither pin nor copy leads."""
        verify = verify_segments if desk.form == "segmented" else verify_file
        path = desk.folder if desk.form == "segmented" else desk.rows()
        desk.segment_limit = 300 if kind == "rotation" else 1 << 20
        with desk.roots() as (root, state), desk.open_in(root, state) as journal:
            step = Injection("any", nth=1_000)
            fs = FaultFs(RealFs(), step)
            with desk.roots(fs) as (_, watched):
                for nth in range(1, 45):
                    # More rows than one append writes, which no crash would leave.
                    step.before = lambda nth=nth: (add(journal, nth, nth, nth), add(journal, nth))
                    step.nth, step._calls = nth, 0
                    report = verify(fs, path, state=watched)
                    assert report.status in {JournalStatus.INTACT, JournalStatus.RECOVERABLE}, (nth, report)
        assert journal.count > ROWS + 12


def at_first_middle_last() -> pytest.MarkDecorator:
    places = {"first": 0, "middle": 4, "last but one": ROWS - 2, "last": ROWS - 1}
    return pytest.mark.parametrize("at", places.values(), ids=places)


class TestRows:
    @at_first_middle_last()
    def test_an_edited_row(self, desk: Desk, at: int) -> None:
        """E32: canonical again, but not the row that was chained."""
        whole = lines(desk.rows())
        if at == 0 and desk.form == "segmented":
            whole[0] = whole[0].replace(b'"purpose":"test"', b'"purpose":"Test"')
        else:
            whole[at] = whole[at].replace(b'"note":""', b'"note":"x"')
        put_lines(desk.rows(), whole)
        assert damage_verified(desk) == [(Finding.PREV_MISMATCH, at)]

    @at_first_middle_last()
    def test_an_edited_row_of_the_same_length(self, desk: Desk, at: int) -> None:
        """E32: one character for another."""
        whole = lines(desk.rows())
        if at == 0 and desk.form == "segmented":
            whole[0] = whole[0].replace(b'"purpose":"test"', b'"purpose":"Test"')
        else:
            whole[at] = whole[at].replace(b'"note"', b'"nota"')
        put_lines(desk.rows(), whole)
        assert damage_verified(desk) == [(Finding.PREV_MISMATCH, at)]

    @at_first_middle_last()
    def test_a_row_with_another_link(self, desk: Desk, at: int) -> None:
        """E32: the row is blamed, not the one before it."""
        whole = lines(desk.rows())
        whole[at] = edited(whole[at], prev="sha256:" + "1" * 64)
        put_lines(desk.rows(), whole)
        assert damage_verified(desk) == [(Finding.PREV_MISMATCH, at)]

    @at_first_middle_last()
    def test_a_row_with_another_number(self, desk: Desk, at: int) -> None:
        """E32: by its number."""
        whole = lines(desk.rows())
        whole[at] = edited(whole[at], seq=(at + 5) % 10)
        put_lines(desk.rows(), whole)
        kinds = damage_verified(desk)
        assert kinds[0] in {(Finding.SEQ_GAP, min(at, (at + 5) % 10)), (Finding.BAD_ROW, at)}

    @at_first_middle_last()
    @pytest.mark.parametrize(
        "line", [b"{}\n", b"\n", b"not json\n", b'{"a":1}{"a":1}\n', b"\xff\n", b"\0\0\0\n"]
    )
    def test_a_row_that_is_none(self, desk: Desk, at: int, line: bytes) -> None:
        """E32: forged, fused or blank."""
        whole = lines(desk.rows())
        put_lines(desk.rows(), [*whole[:at], line, *whole[at + 1 :]])
        kinds = damage_verified(desk)
        assert (Finding.BAD_ROW, at) in kinds or (kinds[0] == (Finding.TRUNCATED, at) and at == ROWS - 1)

    @at_first_middle_last()
    def test_a_row_that_is_spaced(self, desk: Desk, at: int) -> None:
        """E32: the same value in another form is another row."""
        whole = lines(desk.rows())
        row = json.dumps(json.loads(whole[at]), sort_keys=True).encode() + b"\n"
        put_lines(desk.rows(), [*whole[:at], row, *whole[at + 1 :]])
        assert damage_verified(desk)[0] == (Finding.BAD_ROW, at)

    @at_first_middle_last()
    def test_an_inserted_copy(self, desk: Desk, at: int) -> None:
        """E32: a row twice."""
        whole = lines(desk.rows())
        put_lines(desk.rows(), [*whole[: at + 1], whole[at], *whole[at + 1 :]])
        kinds = damage_verified(desk)
        assert kinds[0] == (
            (Finding.BAD_ROW, 1) if (at, desk.form) == (0, "segmented") else (Finding.SEQ_GAP, at)
        )

    @at_first_middle_last()
    def test_an_inserted_forgery(self, desk: Desk, at: int) -> None:
        """E32: a row that itself goes on rightly, so that the next one does not."""
        whole = lines(desk.rows())
        if at == ROWS - 1:
            # Behind the end it would be a row that was not pinned; put it before the last one.
            at -= 1
        row = json.loads(whole[at + 1])
        forged = edited(whole[4], prev=row["prev"], seq=at + 1)
        put_lines(desk.rows(), [*whole[: at + 1], forged, *whole[at + 1 :]])
        assert damage_verified(desk)[0] == (Finding.SEQ_GAP, at + 1)

    @at_first_middle_last()
    def test_a_dropped_row(self, desk: Desk, at: int) -> None:
        """E32 E31: by the number that is missing; at the end it is a truncation."""
        whole = lines(desk.rows())
        put_lines(desk.rows(), [*whole[:at], *whole[at + 1 :]])
        expected = Finding.TRUNCATED if at == ROWS - 1 else Finding.SEQ_GAP
        assert damage_verified(desk)[0] == (expected, at)

    @pytest.mark.parametrize("at", [0, 4, ROWS - 2], ids=["first", "middle", "last"])
    def test_two_rows_swapped(self, desk: Desk, at: int) -> None:
        """E32: by the first that is out of order."""
        whole = lines(desk.rows())
        whole[at], whole[at + 1] = whole[at + 1], whole[at]
        put_lines(desk.rows(), whole)
        assert damage_verified(desk)[0] == (Finding.SEQ_GAP, at)

    @pytest.mark.parametrize("at", [0, 4, ROWS - 2], ids=["first", "middle", "last"])
    def test_two_rows_fused(self, desk: Desk, at: int) -> None:
        """E32 F42 F44: the line feed between two rows taken away, or turned into another separator."""
        whole = lines(desk.rows())
        for between in (b"", b"\x0b", b"\x85", "\u2028".encode(), b"\r"):
            put_lines(desk.rows(), [*whole[:at], whole[at][:-1] + between + whole[at + 1], *whole[at + 2 :]])
            assert damage_verified(desk)[0] == (Finding.BAD_ROW, at)

    def test_a_flipped_line_feed_at_the_end(self, desk: Desk) -> None:
        """E5 F44: it is no end of a row any more."""
        data = desk.rows().read_bytes()
        for wrong in (b"\x0b", b"\r", b" "):
            desk.rows().write_bytes(data[:-1] + wrong)
            assert damage_verified(desk) == [(Finding.TRUNCATED, ROWS - 1)]

    def test_carriage_returns(self, desk: Desk) -> None:
        """F44: a file that was converted has other rows."""
        desk.rows().write_bytes(desk.rows().read_bytes().replace(b"\n", b"\r\n"))
        assert damage_verified(desk)[0] == (Finding.BAD_ROW, 0)

    def test_findings_name_file_and_offset(self, desk: Desk) -> None:
        whole = lines(desk.rows())
        put_lines(desk.rows(), [*whole[:4], b"{}\n", *whole[5:]])
        (finding,) = desk.verify().findings
        assert (finding.segment, finding.seq, finding.offset) == (1, 4, sum(map(len, whole[:4])))

    def test_several_damages_are_told_apart(self, desk: Desk) -> None:
        whole = lines(desk.rows())
        put_lines(desk.rows(), [*whole[:2], b"{}\n", *whole[3:5], *whole[6:]])
        assert damage_verified(desk) == [(Finding.BAD_ROW, 2), (Finding.SEQ_GAP, 5)]

    def test_behind_a_damage_nothing_is_taken_for_a_torn_tail(self, desk: Desk) -> None:
        whole = lines(desk.rows())
        put_lines(desk.rows(), [*whole[:2], b"{}\n", *whole[3:], b"junk\n", b"junk\n"])
        assert damage_verified(desk) == [
            (Finding.BAD_ROW, 2),
            (Finding.BAD_ROW, ROWS),
            (Finding.BAD_ROW, ROWS + 1),
        ]

    def test_looking_ends_at_a_thousand_findings(self, desk: Desk) -> None:
        whole = lines(desk.rows())
        put_lines(desk.rows(), [*whole, *[b"{}\n"] * 5_000])
        assert len(damage_verified(desk)) == 1_000

    def test_rows_of_the_kernel_out_of_place(self, tmp_path: Path) -> None:
        """E32: its own types are no cover for a forgery."""
        desk = Desk(tmp_path.resolve())
        desk.fill(3)
        whole = lines(desk.rows())
        for kind in ("journal_open", "segment_open", "tear", "repin"):
            put_lines(desk.rows(), [*whole[:2], edited(whole[2], type=kind), *whole[3:]])
            assert damage_verified(desk)[0] == (Finding.BAD_ROW, 2)
        put_lines(desk.rows(), [edited(whole[0], type="note"), *whole[1:]])
        assert damage_verified(desk)[0] == (Finding.BAD_ROW, 0)

    def test_a_clock_that_went_back_is_a_warning(self, tmp_path: Path) -> None:
        """`time_backwards` changes no status."""
        desk = Desk(tmp_path.resolve())
        desk.fill(2)
        *rest, last = lines(desk.rows())
        early = edited(last, time="2026-03-04T05:06:06.999Z")
        put_lines(desk.rows(), [*rest, early])
        pin = json.loads(desk.pin.read_bytes())
        head = "sha256:" + hashlib.sha256(early[:-1]).hexdigest()
        for path in (desk.pin, desk.copy()):
            put_lines(path, [edited(path.read_bytes(), head=head)])
        report = desk.verify()
        assert report.status is JournalStatus.INTACT
        ((warning),) = report.warnings
        assert (warning.finding, warning.seq, warning.segment) == (Finding.TIME_BACKWARDS, 2, 1)
        assert pin["count"] == 3


class TestEnds:
    @pytest.mark.parametrize("kept", [1, 4, ROWS - 1])
    def test_truncation_at_a_row_boundary(self, desk: Desk, kept: int) -> None:
        """E31 F43: whole rows cut off are missed by the pin."""
        put_lines(desk.rows(), lines(desk.rows())[:kept])
        assert damage_verified(desk) == [(Finding.TRUNCATED, kept)]

    def test_truncation_to_nothing(self, desk: Desk) -> None:
        """E31: an emptied file."""
        desk.rows().write_bytes(b"")
        assert damage_verified(desk) == [(Finding.TRUNCATED, 0)]

    def test_a_truncation_is_not_laundered_by_going_on(self, desk: Desk) -> None:
        """F43: it cannot be appended to, so no later pin covers it."""
        put_lines(desk.rows(), lines(desk.rows())[:-2])
        with pytest.raises(JournalError), desk.open():
            pass
        assert damage_verified(desk) == [(Finding.TRUNCATED, ROWS - 2)]

    def test_yesterdays_copy_of_journal_and_pin(self, desk: Desk) -> None:
        """E34: both agree with each other, but the copy in the state root leads."""
        yesterday = {path: path.read_bytes() for path in (desk.rows(), desk.pin)}
        with desk.open() as journal:
            add(journal, 50)
            add(journal, 51)
        for path, data in yesterday.items():
            path.write_bytes(data)
        assert damage_verified(desk) == [(Finding.ROLLED_BACK, ROWS)]
        assert desk.verify(state=False).status is JournalStatus.INTACT

    def test_yesterdays_journal_beside_todays_pin(self, desk: Desk) -> None:
        """E31: then it is the pin itself that tells."""
        yesterday = desk.rows().read_bytes()
        desk.fill(1, 50)
        desk.rows().write_bytes(yesterday)
        assert damage_verified(desk) == [(Finding.TRUNCATED, ROWS)]

    def test_another_history_of_the_same_length(self, desk: Desk) -> None:
        """E34: rows rewritten with their pin are not those acknowledged on this machine."""
        yesterday = {path: path.read_bytes() for path in (desk.rows(), desk.pin, desk.copy())}
        desk.fill(2, 50)
        honest = desk.copy().read_bytes()
        for path, data in yesterday.items():
            path.write_bytes(data)
        desk.fill(3, 60)
        desk.copy().write_bytes(honest)
        assert damage_verified(desk) == [(Finding.ROLLED_BACK, ROWS + 1)]

    def test_a_copy_that_allows_other_groups(self, desk: Desk) -> None:
        """E34 E62: a single file's own pin is the only other place that tells how many rows may lag."""
        if desk.form == "single":
            put_lines(desk.copy(), [edited(desk.copy().read_bytes(), group_max=99)])
            assert damage_verified(desk) == [(Finding.PIN_DAMAGED, None)]

    def test_a_pin_that_lags_too_far(self, desk: Desk) -> None:
        """More rows beyond it than one append writes."""
        pin, copy = desk.pin.read_bytes(), desk.copy().read_bytes()
        with desk.open() as journal:
            for number in range(50, 54):
                add(journal, number)
        desk.pin.write_bytes(pin)
        desk.copy().write_bytes(copy)
        assert damage_verified(desk) == [(Finding.PIN_BEHIND, ROWS)]

    def test_the_pin_alone_replaced_by_an_older_one(self, desk: Desk) -> None:
        """A lag of one group is what a crash leaves, and nothing is lost."""
        pin = desk.pin.read_bytes()
        with desk.open() as journal:
            add(journal, 50, 51, 52)
        desk.pin.write_bytes(pin)
        assert desk.verify().status is JournalStatus.RECOVERABLE

    def test_a_newer_emptier_journal_does_not_win(self, segmented: Desk) -> None:
        """F1: a fresh log beside, or in the place of, a complete one is refused."""
        fresh = Desk(segmented.base / "fresh", tokens=iter(range(1 << 30, 1 << 31)))
        fresh.base.mkdir()
        with fresh.open():
            pass
        last = len(list(segmented.folder.glob("0*.jsonl")))
        shutil.copy(fresh.rows(), segmented.rows(last + 1))
        segmented.rows(last + 1).chmod(0o600)
        assert damage_verified(segmented)[0][0] is Finding.SEGMENT_ORDER
        segmented.rows(last + 1).unlink()
        pin = segmented.pin.read_bytes()
        shutil.copy(fresh.pin, segmented.pin)
        assert Finding.PIN_DAMAGED in {finding for finding, _ in damage_verified(segmented)}
        segmented.pin.write_bytes(pin)
        assert segmented.verify().status is JournalStatus.INTACT
