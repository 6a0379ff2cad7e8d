"""Verification: every tamper is found at its row, anything at all gets an answer, and nothing is written."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import shutil
import threading
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from skill_effectiveness.evidence.fsdoubles import MUTATIONS, FaultFs, Injection, RecordingFs
from skill_effectiveness.evidence.fsops import RealFs
from skill_effectiveness.evidence.journal_faults import (
    Finding,
    JournalError,
    JournalReport,
    JournalStatus,
    Unreadable,
)
from skill_effectiveness.evidence.journal_verify import verify_file, verify_segments
from tests.support.journals import (
    FORMS,
    ZEROS,
    Desk,
    add,
    copied,
    edited,
    found,
    lines,
    numbers,
    put_lines,
    template,
)
from tests.support.private import child_output, content

if TYPE_CHECKING:
    from collections.abc import Callable

    from skill_effectiveness.evidence.journal_rows import Row

ROWS = 9
"""Rows of the filled journal, the kernel's row 0 included where there is one."""


@pytest.fixture(scope="module")
def templates(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Desk]:
    """A filled journal of each form, and one of several files."""
    base = tmp_path_factory.mktemp("templates").resolve()
    several = base / "several"
    several.mkdir()
    return {
        "segmented": template(base, "segmented", ROWS - 1, group_max=3),
        "single": template(base, "single", ROWS, group_max=3),
        "several": template(several, "segmented", ROWS, group_max=3, segment_limit=300),
    }


@pytest.fixture(params=FORMS)
def desk(request: pytest.FixtureRequest, templates: dict[str, Desk], tmp_path: Path) -> Desk:
    return copied(templates[request.param], tmp_path.resolve())


@pytest.fixture
def segmented(templates: dict[str, Desk], tmp_path: Path) -> Desk:
    """A journal of several files."""
    several = copied(templates["several"], tmp_path.resolve())
    assert several.rows(4).exists()
    return several


def damage(desk: Desk) -> list[tuple[Finding, int | None]]:
    """The findings of a damaged journal; looking changes nothing."""
    before = content(desk.base)
    report = desk.verify()
    assert content(desk.base) == before
    assert report.status is JournalStatus.DAMAGED
    assert not report.sound
    for finding in report.findings:
        assert finding.sentence.isprintable()
        assert finding.sentence.endswith(".")
        assert str(desk.base) not in finding.sentence
    return found(report)


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
                for nth in range(1, 80):
                    # More rows than one append writes, which no crash would leave.
                    step.before = lambda nth=nth: (add(journal, nth, nth, nth), add(journal, nth))
                    step.nth, step._calls = nth, 0
                    report = verify(fs, path, state=watched)
                    assert report.status in {JournalStatus.INTACT, JournalStatus.RECOVERABLE}, (nth, report)
        assert journal.count > ROWS + 12


def at_first_middle_last() -> pytest.MarkDecorator:
    places = {"first": 0, "middle": 4, "last but one": ROWS - 2, "last": ROWS - 1}
    return pytest.mark.parametrize("at", places.values(), ids=places)


def chained(first: bytes, rows: list[bytes]) -> list[bytes]:
    """A row and those behind it, chained to it anew."""
    result = [first]
    for row in rows:
        digest = hashlib.sha256(result[-1][:-1]).hexdigest()
        result.append(edited(row, prev=f"sha256:{digest}"))
    return result


def repinned(desk: Desk) -> None:
    """Have pin and copy name the last row, as somebody does who may write both."""
    last = lines(desk.last())[-1]
    changes = {
        "head": f"sha256:{hashlib.sha256(last[:-1]).hexdigest()}",
        "offset": desk.last().stat().st_size,
    }
    for path in (desk.pin, desk.copy()):
        put_lines(path, [edited(path.read_bytes(), **changes)])


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
        assert damage(desk) == [(Finding.PREV_MISMATCH, at)]

    @at_first_middle_last()
    def test_an_edited_row_of_the_same_length(self, desk: Desk, at: int) -> None:
        """E32: one character for another."""
        whole = lines(desk.rows())
        if at == 0 and desk.form == "segmented":
            whole[0] = whole[0].replace(b'"purpose":"test"', b'"purpose":"Test"')
        else:
            whole[at] = whole[at].replace(b'"note"', b'"nota"')
        put_lines(desk.rows(), whole)
        assert damage(desk) == [(Finding.PREV_MISMATCH, at)]

    @at_first_middle_last()
    def test_a_row_with_another_link(self, desk: Desk, at: int) -> None:
        """E32: the row is blamed, not the one before it."""
        whole = lines(desk.rows())
        whole[at] = edited(whole[at], prev="sha256:" + "1" * 64)
        put_lines(desk.rows(), whole)
        assert damage(desk) == [(Finding.PREV_MISMATCH, at)]

    @at_first_middle_last()
    def test_a_row_with_another_number(self, desk: Desk, at: int) -> None:
        """E32: by its number."""
        whole = lines(desk.rows())
        whole[at] = edited(whole[at], seq=(at + 5) % 10)
        put_lines(desk.rows(), whole)
        kinds = damage(desk)
        assert kinds[0] in {(Finding.SEQ_GAP, min(at, (at + 5) % 10)), (Finding.BAD_ROW, at)}

    @at_first_middle_last()
    @pytest.mark.parametrize(
        "line", [b"{}\n", b"\n", b"not json\n", b'{"a":1}{"a":1}\n', b"\xff\n", b"\0\0\0\n"]
    )
    def test_a_row_that_is_none(self, desk: Desk, at: int, line: bytes) -> None:
        """E32: forged, fused or blank."""
        whole = lines(desk.rows())
        put_lines(desk.rows(), [*whole[:at], line, *whole[at + 1 :]])
        kinds = damage(desk)
        assert (Finding.BAD_ROW, at) in kinds or (kinds[0] == (Finding.TRUNCATED, at) and at == ROWS - 1)

    @at_first_middle_last()
    def test_a_row_that_is_spaced(self, desk: Desk, at: int) -> None:
        """E32: the same value in another form is another row."""
        whole = lines(desk.rows())
        row = json.dumps(json.loads(whole[at]), sort_keys=True).encode() + b"\n"
        put_lines(desk.rows(), [*whole[:at], row, *whole[at + 1 :]])
        assert damage(desk)[0] == (Finding.BAD_ROW, at)

    @at_first_middle_last()
    def test_an_inserted_copy(self, desk: Desk, at: int) -> None:
        """E32: a row twice."""
        whole = lines(desk.rows())
        put_lines(desk.rows(), [*whole[: at + 1], whole[at], *whole[at + 1 :]])
        kinds = damage(desk)
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
        assert damage(desk)[0] == (Finding.SEQ_GAP, at + 1)

    @at_first_middle_last()
    def test_a_dropped_row(self, desk: Desk, at: int) -> None:
        """E32 E31: by the number that is missing; at the end it is a truncation."""
        whole = lines(desk.rows())
        put_lines(desk.rows(), [*whole[:at], *whole[at + 1 :]])
        expected = Finding.TRUNCATED if at == ROWS - 1 else Finding.SEQ_GAP
        assert damage(desk)[0] == (expected, at)

    @pytest.mark.parametrize("at", [0, 4, ROWS - 2], ids=["first", "middle", "last"])
    def test_two_rows_swapped(self, desk: Desk, at: int) -> None:
        """E32: by the first that is out of order."""
        whole = lines(desk.rows())
        whole[at], whole[at + 1] = whole[at + 1], whole[at]
        put_lines(desk.rows(), whole)
        assert damage(desk)[0] == (Finding.SEQ_GAP, at)

    @pytest.mark.parametrize("at", [0, 4, ROWS - 2], ids=["first", "middle", "last"])
    def test_two_rows_fused(self, desk: Desk, at: int) -> None:
        """E32 F42 F44: the line feed between two rows taken away, or turned into another separator."""
        whole = lines(desk.rows())
        for between in (b"", b"\x0b", b"\x85", "\u2028".encode(), b"\r"):
            put_lines(desk.rows(), [*whole[:at], whole[at][:-1] + between + whole[at + 1], *whole[at + 2 :]])
            assert damage(desk)[0] == (Finding.BAD_ROW, at)

    def test_a_flipped_line_feed_at_the_end(self, desk: Desk) -> None:
        """E5 F44: it is no end of a row any more."""
        data = desk.rows().read_bytes()
        for wrong in (b"\x0b", b"\r", b" "):
            desk.rows().write_bytes(data[:-1] + wrong)
            assert damage(desk) == [(Finding.TRUNCATED, ROWS - 1)]

    def test_carriage_returns(self, desk: Desk) -> None:
        """F44: a file that was converted has other rows."""
        desk.rows().write_bytes(desk.rows().read_bytes().replace(b"\n", b"\r\n"))
        assert damage(desk)[0] == (Finding.BAD_ROW, 0)

    def test_findings_name_file_and_offset(self, desk: Desk) -> None:
        whole = lines(desk.rows())
        put_lines(desk.rows(), [*whole[:4], b"{}\n", *whole[5:]])
        (finding,) = desk.verify().findings
        assert (finding.segment, finding.seq, finding.offset) == (1, 4, sum(map(len, whole[:4])))

    def test_several_damages_are_told_apart(self, desk: Desk) -> None:
        whole = lines(desk.rows())
        put_lines(desk.rows(), [*whole[:2], b"{}\n", *whole[3:5], *whole[6:]])
        assert damage(desk) == [(Finding.BAD_ROW, 2), (Finding.SEQ_GAP, 5)]

    def test_behind_a_damage_nothing_is_taken_for_a_torn_tail(self, desk: Desk) -> None:
        whole = lines(desk.rows())
        put_lines(desk.rows(), [*whole[:2], b"{}\n", *whole[3:], b"junk\n", b"junk\n"])
        assert damage(desk) == [(Finding.BAD_ROW, 2), (Finding.BAD_ROW, ROWS), (Finding.BAD_ROW, ROWS + 1)]

    def test_looking_ends_at_a_thousand_findings(self, desk: Desk) -> None:
        whole = lines(desk.rows())
        put_lines(desk.rows(), [*whole, *[b"{}\n"] * 5_000])
        assert len(damage(desk)) == 1_000

    def test_rows_of_the_kernel_out_of_place(self, tmp_path: Path) -> None:
        """E32: its own types are no cover for a forgery."""
        desk = Desk(tmp_path.resolve())
        desk.fill(3)
        whole = lines(desk.rows())
        for kind in ("journal_open", "segment_open", "tear", "repin"):
            put_lines(desk.rows(), [*whole[:2], edited(whole[2], type=kind), *whole[3:]])
            assert damage(desk)[0] == (Finding.BAD_ROW, 2)
        put_lines(desk.rows(), [edited(whole[0], type="note"), *whole[1:]])
        assert damage(desk)[0] == (Finding.BAD_ROW, 0)

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
        assert damage(desk) == [(Finding.TRUNCATED, kept)]

    def test_truncation_to_nothing(self, desk: Desk) -> None:
        """E31: an emptied file."""
        desk.rows().write_bytes(b"")
        assert damage(desk) == [(Finding.TRUNCATED, 0)]

    def test_a_truncation_is_not_laundered_by_going_on(self, desk: Desk) -> None:
        """F43: it cannot be appended to, so no later pin covers it."""
        put_lines(desk.rows(), lines(desk.rows())[:-2])
        with pytest.raises(JournalError), desk.open():
            pass
        assert damage(desk) == [(Finding.TRUNCATED, ROWS - 2)]

    def test_yesterdays_copy_of_journal_and_pin(self, desk: Desk) -> None:
        """E34: both agree with each other, but the copy in the state root leads."""
        yesterday = {path: path.read_bytes() for path in (desk.rows(), desk.pin)}
        with desk.open() as journal:
            add(journal, 50)
            add(journal, 51)
        for path, data in yesterday.items():
            path.write_bytes(data)
        assert damage(desk) == [(Finding.ROLLED_BACK, ROWS)]
        assert desk.verify(state=False).status is JournalStatus.INTACT

    def test_yesterdays_journal_beside_todays_pin(self, desk: Desk) -> None:
        """E31: then it is the pin itself that tells."""
        yesterday = desk.rows().read_bytes()
        desk.fill(1, 50)
        desk.rows().write_bytes(yesterday)
        assert damage(desk) == [(Finding.TRUNCATED, ROWS)]

    def test_another_history_of_the_same_length(self, desk: Desk) -> None:
        """E34: rows rewritten with their pin are not those acknowledged on this machine."""
        yesterday = {path: path.read_bytes() for path in (desk.rows(), desk.pin, desk.copy())}
        desk.fill(2, 50)
        honest = desk.copy().read_bytes()
        for path, data in yesterday.items():
            path.write_bytes(data)
        desk.fill(3, 60)
        desk.copy().write_bytes(honest)
        assert damage(desk) == [(Finding.ROLLED_BACK, ROWS + 1)]

    def test_a_copy_that_allows_other_groups(self, desk: Desk) -> None:
        """E34 E62: a single file's own pin is the only other place that tells how many rows may lag."""
        if desk.form == "single":
            put_lines(desk.copy(), [edited(desk.copy().read_bytes(), group_max=99)])
            assert damage(desk) == [(Finding.PIN_DAMAGED, None)]

    def test_a_pin_that_lags_too_far(self, desk: Desk) -> None:
        """More rows beyond it than one append writes."""
        pin, copy = desk.pin.read_bytes(), desk.copy().read_bytes()
        with desk.open() as journal:
            for number in range(50, 54):
                add(journal, number)
        desk.pin.write_bytes(pin)
        desk.copy().write_bytes(copy)
        assert damage(desk) == [(Finding.PIN_BEHIND, ROWS)]

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
        assert damage(segmented)[0][0] is Finding.SEGMENT_ORDER
        segmented.rows(last + 1).unlink()
        pin = segmented.pin.read_bytes()
        shutil.copy(fresh.pin, segmented.pin)
        assert Finding.PIN_DAMAGED in {finding for finding, _ in damage(segmented)}
        segmented.pin.write_bytes(pin)
        assert segmented.verify().status is JournalStatus.INTACT


class TestSegments:
    def test_the_middle_one_missing(self, segmented: Desk) -> None:
        """E33: by its number."""
        segmented.rows(2).unlink()
        report = segmented.verify()
        assert [(finding.finding, finding.segment) for finding in report.findings] == [
            (Finding.SEGMENT_MISSING, 2)
        ]

    def test_the_first_or_the_last_missing(self, segmented: Desk) -> None:
        """E33: the pin knows how many there were."""
        last = len(list(segmented.folder.glob("0*.jsonl")))
        for number in (1, last):
            data = segmented.rows(number).read_bytes()
            segmented.rows(number).unlink()
            report = segmented.verify()
            assert [(finding.finding, finding.segment) for finding in report.findings] == [
                (Finding.SEGMENT_MISSING, number)
            ]
            segmented.rows(number).write_bytes(data)

    def test_all_missing(self, segmented: Desk) -> None:
        for path in segmented.folder.glob("0*.jsonl"):
            path.unlink()
        assert {finding for finding, _ in damage(segmented)} == {Finding.SEGMENT_MISSING}

    def test_one_emptied(self, segmented: Desk) -> None:
        """E33: an empty file in the middle holds what a missing one holds."""
        segmented.rows(2).write_bytes(b"")
        assert damage(segmented) == [(Finding.SEGMENT_MISSING, None)]

    def test_two_renamed(self, segmented: Desk) -> None:
        """Each says which one it is."""
        one, two = segmented.rows(2).read_bytes(), segmented.rows(3).read_bytes()
        segmented.rows(2).write_bytes(two)
        segmented.rows(3).write_bytes(one)
        report = segmented.verify()
        order = [finding.segment for finding in report.findings if finding.finding is Finding.SEGMENT_ORDER]
        assert order == [2, 3]

    def test_the_last_renamed(self, segmented: Desk) -> None:
        last = len(list(segmented.folder.glob("0*.jsonl")))
        segmented.rows(last).rename(segmented.rows(last + 1))
        kinds = [(finding.finding, finding.segment) for finding in segmented.verify().findings]
        assert kinds == [(Finding.SEGMENT_MISSING, last), (Finding.SEGMENT_ORDER, last + 1)]

    def test_a_number_without_end(self, segmented: Desk) -> None:
        (segmented.folder / "999999999.jsonl").write_bytes(b"")
        (segmented.folder / "999999998.jsonl").write_bytes(b"x\n")
        assert {finding for finding, _ in damage(segmented)} == {Finding.SEGMENT_MISSING}

    def test_a_segment_that_ends_without_a_line_feed(self, segmented: Desk) -> None:
        """E32: in the middle that is no torn tail."""
        data = segmented.rows(2).read_bytes()
        segmented.rows(2).write_bytes(data[:-1])
        assert damage(segmented)[0][0] is Finding.BAD_ROW

    def test_the_first_row_of_a_segment(self, segmented: Desk) -> None:
        """E32: dropped, edited, or replaced by another one that goes on rightly."""
        first, *rest = lines(segmented.rows(2))
        seq = json.loads(first)["seq"]
        put_lines(segmented.rows(2), rest)
        assert damage(segmented)[0] == (Finding.SEQ_GAP, seq)
        body = json.loads(first)["body"]
        put_lines(segmented.rows(2), [edited(first, body=body | {"closed": ZEROS}), *rest])
        assert damage(segmented)[0] == (Finding.PREV_MISMATCH, seq)
        put_lines(segmented.rows(2), [edited(first, body={}), *rest])
        assert damage(segmented)[0] == (Finding.BAD_ROW, seq)
        put_lines(segmented.rows(2), [edited(first, type="note"), *rest])
        assert damage(segmented)[0] == (Finding.SEGMENT_ORDER, seq)

    def test_the_digest_of_the_file_before(self, segmented: Desk) -> None:
        """E32: it is held against the file, also where everything behind it was forged to fit."""
        last = segmented.last()
        first, *rest = lines(last)
        row = json.loads(first)
        put_lines(last, chained(edited(first, body=row["body"] | {"closed": ZEROS}), rest))
        repinned(segmented)
        assert damage(segmented) == [(Finding.PREV_MISMATCH, row["seq"])]
        put_lines(last, chained(first, rest))
        repinned(segmented)
        assert segmented.verify().status is JournalStatus.INTACT

    def test_no_torn_tail_but_in_the_last(self, tmp_path: Path) -> None:
        """E32: bytes beyond the pin in a file that another one follows are damage."""
        desk = Desk(tmp_path.resolve(), segment_limit=10_000)
        desk.fill(2)
        pins = {path: path.read_bytes() for path in (desk.pin, desk.copy())}
        desk.segment_limit = 10
        desk.fill(1, 2)
        for path, data in pins.items():
            path.write_bytes(data)
        assert desk.verify().status is JournalStatus.RECOVERABLE
        with desk.rows(1).open("ab") as file:
            file.write(b"junk\n")
        assert damage(desk)[0] == (Finding.BAD_ROW, 3)


class TestFolders:
    @pytest.mark.parametrize(
        "name", ["notes.txt", "1.jsonl", "000000.jsonl", "0000001.jsonl", "head.json~", ".x.tmp"]
    )
    def test_an_unknown_name(self, segmented: Desk, name: str) -> None:
        (segmented.folder / name).write_bytes(b"")
        assert damage(segmented) == [(Finding.FOREIGN_FILE, None)]

    def test_a_name_that_is_no_text(self, segmented: Desk) -> None:
        os.close(os.open(os.fsencode(segmented.folder) + b"/\xff", os.O_CREAT, 0o600))
        assert damage(segmented) == [(Finding.FOREIGN_FILE, None)]

    @pytest.mark.parametrize(
        "make", [lambda path: path.mkdir(), os.mkfifo, lambda path: path.symlink_to("head.json")]
    )
    def test_something_else_with_the_name_of_a_segment(
        self, segmented: Desk, make: Callable[[Path], object]
    ) -> None:
        segmented.rows(2).unlink()
        make(segmented.rows(2))
        kinds = [(finding.finding, finding.segment) for finding in segmented.verify().findings]
        assert kinds == [(Finding.FOREIGN_FILE, None), (Finding.SEGMENT_MISSING, 2)]

    @pytest.mark.parametrize(
        "make", [lambda path: path.mkdir(), os.mkfifo, lambda path: path.symlink_to("x")]
    )
    def test_something_else_with_the_name_of_the_pin(
        self, desk: Desk, make: Callable[[Path], object]
    ) -> None:
        """E35: it cannot be read, which is not the same as missing."""
        desk.pin.unlink()
        make(desk.pin)
        assert damage(desk) == [(Finding.PIN_DAMAGED, None)]

    @pytest.mark.parametrize(
        "make", [lambda path: path.write_bytes(b""), os.mkfifo, lambda path: path.symlink_to("x")]
    )
    def test_something_else_with_the_name_of_the_torn_tails(
        self, desk: Desk, make: Callable[[Path], object]
    ) -> None:
        make(desk.torn)
        assert damage(desk) == [(Finding.FOREIGN_FILE, None)]


class TestTears:
    @pytest.fixture
    def torn(self, desk: Desk) -> Desk:
        """A journal with one acknowledged tear."""
        with desk.last().open("ab") as file:
            file.write(b"torn bytes")
        with desk.open():
            pass
        return desk

    def test_an_acknowledged_tear(self, torn: Desk) -> None:
        """E36: verifies as what it is."""
        report = torn.verify()
        assert report.status is JournalStatus.INTACT_WITH_TEARS
        assert report.sound
        assert report.tears == 1

    def test_its_bytes_missing_or_changed(self, torn: Desk) -> None:
        """E36: a tear without its evidence."""
        (path,) = torn.torn.iterdir()
        for data in (None, b"", b"torn byteS", b"torn bytes "):
            path.unlink()
            if data is not None:
                path.write_bytes(data)
            kinds = damage(torn)
            assert kinds[0][0] is Finding.TEAR_EVIDENCE_MISSING
            path.write_bytes(b"")
        path.unlink()
        torn.torn.rmdir()
        assert damage(torn)[0][0] is Finding.TEAR_EVIDENCE_MISSING

    @pytest.mark.parametrize("name", ["x", "3-00.bin", "3-" + "0" * 64 + ".bin", "03-" + "0" * 64 + ".bin"])
    def test_a_file_that_is_no_torn_tail(self, torn: Desk, name: str) -> None:
        (torn.torn / name).write_bytes(b"?")
        assert damage(torn) == [(Finding.FOREIGN_FILE, None)]

    def test_an_empty_file(self, torn: Desk) -> None:
        """Nothing was torn off there, whatever its name says."""
        (torn.torn / f"3-{hashlib.sha256(b'').hexdigest()}.bin").write_bytes(b"")
        assert damage(torn) == [(Finding.FOREIGN_FILE, None)]

    def test_something_else_with_its_name(self, torn: Desk) -> None:
        (path,) = torn.torn.iterdir()
        path.unlink()
        os.mkfifo(path)
        assert damage(torn)[0][0] is Finding.TEAR_EVIDENCE_MISSING

    def test_a_temporary_among_them(self, torn: Desk) -> None:
        """A crash while setting aside; the next open sweeps it."""
        (torn.torn / f".3-{'0' * 64}.bin.0123456789abcdef.tmp").write_bytes(b"half")
        assert torn.verify().status is JournalStatus.INTACT_WITH_TEARS
        with torn.open():
            pass
        assert len(list(torn.torn.iterdir())) == 1

    def test_an_edited_entry(self, torn: Desk) -> None:
        """E62 E36: the pin's list of tears is held against the files."""
        if torn.form == "segmented":
            whole = lines(torn.rows())
            row = json.loads(whole[-1])
            put_lines(torn.rows(), [*whole[:-1], edited(whole[-1], body=row["body"] | {"bytes": 9})])
        else:
            pin = json.loads(torn.pin.read_bytes())
            (tear,) = pin["tears"]
            put_lines(torn.pin, [edited(torn.pin.read_bytes(), tears=[tear | {"bytes": 9}])])
        assert Finding.TEAR_EVIDENCE_MISSING in {finding for finding, _ in damage(torn)}


def answer(path: Path) -> tuple[JournalReport, JournalReport]:
    """What both verifiers say."""
    return verify_segments(RealFs(), path), verify_file(RealFs(), path)


class TestAnything:
    def test_random_bytes(self, tmp_path: Path) -> None:
        """E37 F45: in the place of a segment, of a single file, and of the folder."""
        folder = tmp_path / "journal"
        folder.mkdir()
        (folder / "000001.jsonl").write_bytes(os.urandom(2_000_000))
        assert verify_segments(RealFs(), folder).why is Unreadable.NO_FIRST_ROW
        assert verify_file(RealFs(), folder / "000001.jsonl").why is Unreadable.NO_FIRST_ROW
        assert verify_segments(RealFs(), folder / "000001.jsonl").why is Unreadable.WRONG_KIND

    def test_the_device_of_random_bytes(self, tmp_path: Path) -> None:
        """E37 F45: it has no end, and is not opened."""
        (tmp_path / "000001.jsonl").symlink_to("/dev/urandom")
        segments, file = verify_segments(RealFs(), tmp_path), verify_file(RealFs(), tmp_path / "000001.jsonl")
        assert (segments.why, file.why) == (Unreadable.NOT_BEGUN, Unreadable.WRONG_KIND)
        assert [report.why for report in answer(Path("/dev/urandom"))] == [Unreadable.WRONG_KIND] * 2

    def test_random_bytes_beside_a_pin(self, desk: Desk) -> None:
        """E37 F45: a journal whose rows are gone is damaged."""
        desk.rows().write_bytes(os.urandom(100_000))
        assert damage(desk)[0] == (Finding.BAD_ROW, 0)

    def test_an_empty_file(self, tmp_path: Path) -> None:
        """E37 F45: nothing was begun."""
        (tmp_path / "000001.jsonl").write_bytes(b"")
        assert verify_segments(RealFs(), tmp_path).why is Unreadable.NOT_BEGUN
        assert verify_file(RealFs(), tmp_path / "000001.jsonl").why is Unreadable.NOT_BEGUN

    def test_a_folder(self, tmp_path: Path) -> None:
        """E37 F45: an empty one, and one with other things."""
        assert [report.why for report in answer(tmp_path)] == [Unreadable.NOT_BEGUN, Unreadable.WRONG_KIND]
        (tmp_path / "x").write_bytes(b"x")
        assert verify_segments(RealFs(), tmp_path).why is Unreadable.NOT_BEGUN

    def test_a_fifo(self, tmp_path: Path) -> None:
        """E37 F45: nobody waits for its other end."""
        for name in ("000001.jsonl", "head.json", "torn", "single"):
            os.mkfifo(tmp_path / name)
        assert verify_segments(RealFs(), tmp_path).status is JournalStatus.UNREADABLE
        assert [report.why for report in answer(tmp_path / "single")] == [Unreadable.WRONG_KIND] * 2

    def test_nothing(self, tmp_path: Path) -> None:
        """E37: a missing path, also below one that is missing, and a name that cannot be."""
        for path in (tmp_path / "x", tmp_path / "x" / "y", tmp_path / "a\0b"):
            assert [report.why for report in answer(path)] == [Unreadable.MISSING] * 2
        for report in answer(tmp_path / ("n" * 300)):
            assert report.status is JournalStatus.UNREADABLE

    def test_a_link_to_a_journal(self, desk: Desk) -> None:
        """E37: the last step is not followed."""
        link = desk.base / "link"
        link.symlink_to(desk.folder if desk.form == "segmented" else desk.rows())
        report = answer(link)[FORMS.index(desk.form)]
        assert report.why is Unreadable.WRONG_KIND

    @pytest.mark.parametrize("number", [errno.EIO, errno.EACCES, errno.ESTALE])
    @pytest.mark.parametrize("operation", ["open_dir", "open_read", "read", "lstat", "fstat", "listdir"])
    def test_errors_of_the_kernel(self, desk: Desk, operation: str, number: int) -> None:
        """E37: on any part, each gives an answer, and never a good one."""
        verify = verify_segments if desk.form == "segmented" else verify_file
        path = desk.folder if desk.form == "segmented" else desk.rows()
        for part in (desk.folder, desk.rows(), desk.pin):
            injection = Injection(operation, number, nth=0, about=lambda name, part=part: name == str(part))
            fs = FaultFs(RealFs(), injection)
            report = verify(fs, path)
            assert (report.status is JournalStatus.INTACT) is (injection.hits == 0)
            assert report.sound is (injection.hits == 0)
            assert fs.open_paths == []
            # An error that does not come again may go unnoticed; it must not become anything else.
            passing = FaultFs(RealFs(), Injection(operation, number))
            assert verify(passing, path).status is not JournalStatus.RECOVERABLE
            assert passing.open_paths == []

    def test_a_hostile_pin(self, desk: Desk) -> None:
        """E37 E38: a pin that is as large and as full of values as one is read at all."""
        data = b'{"a":[' + b"[]," * 87_000 + b"1]}\n"
        assert 261_000 < len(data) < 262_144
        desk.pin.write_bytes(data)
        assert damage(desk) == [(Finding.PIN_DAMAGED, None)]
        assert peak_megabytes(desk) < 200
        desk.pin.write_bytes(data + b" " * 10_000_000)
        assert damage(desk) == [(Finding.PIN_DAMAGED, None)]

    def test_a_sparse_file(self, tmp_path: Path) -> None:
        """E37 F45: 2 GiB of zeros in the place of the rows; answered without reading them all."""
        (tmp_path / "000001.jsonl").write_bytes(b"")
        os.truncate(tmp_path / "000001.jsonl", 2 << 30)
        assert verify_segments(RealFs(), tmp_path).why is Unreadable.NO_FIRST_ROW
        assert verify_file(RealFs(), tmp_path / "000001.jsonl").why is Unreadable.NO_FIRST_ROW

    def test_a_sparse_end_and_a_long_line(self, desk: Desk) -> None:
        """E37 E38 F45: 2 GiB of zeros behind the rows, or a row of 300 MB, need less than 200 MB."""
        os.truncate(desk.rows(), 2 << 30)
        assert [finding.finding for finding in desk.verify().findings] == [Finding.BAD_ROW]
        assert peak_megabytes(desk) < 200
        with desk.rows().open("wb") as file:
            for _ in range(30):
                file.write(b"x" * 10_000_000)
            file.write(b"\n")
        assert desk.verify().findings[0].finding is Finding.BAD_ROW
        assert peak_megabytes(desk) < 200


def peak_megabytes(desk: Desk) -> float:
    """The most memory a child needed that verifies and nothing else."""
    code = """
import sys
from pathlib import Path
from skill_effectiveness.evidence.fsops import RealFs
from skill_effectiveness.evidence.journal_verify import verify_file, verify_segments
path = Path(sys.argv[1])
(verify_segments if path.is_dir() else verify_file)(RealFs(), path)
# Not ru_maxrss, which begins with what the parent had when it forked.
lines = Path("/proc/self/status").read_text().splitlines()
(peak,) = [line.split()[1] for line in lines if line.startswith("VmHWM")]
print(peak)
"""
    path = desk.folder if desk.form == "segmented" else desk.rows()
    return int(child_output(code, path)) * 1024 / 1_000_000


def test_a_hundred_thousand_rows_in_one_pass(tmp_path: Path) -> None:
    """E38: every byte is read once, and memory stays under 200 MB."""
    desk = Desk(tmp_path.resolve(), group_max=1_000, segment_limit=8_000_000)
    with desk.open() as journal:
        for start in range(0, 100_000, 1_000):
            add(journal, *range(start, start + 1_000))
    size = sum(path.stat().st_size for path in desk.folder.glob("0*.jsonl"))

    class CountingFs(RealFs):
        taken = 0

        def read(self, fd: int, size: int) -> bytes:
            data = super().read(fd, size)
            self.taken += len(data)
            return data

    fs = CountingFs()
    report = verify_segments(fs, desk.folder)
    assert report.status is JournalStatus.INTACT
    assert report.count == 100_000 + report.segments
    assert size <= fs.taken < size + 10_000
    assert peak_megabytes(desk) < 200


def test_verifying_writes_nothing(desk: Desk) -> None:
    """E37: no mutating operation at all, with a torn tail and without."""
    for tail in (b"", b"torn"):
        with desk.rows().open("ab") as file:
            file.write(tail)
        fs = RecordingFs(RealFs())
        verify = verify_segments if desk.form == "segmented" else verify_file
        verify(fs, desk.folder if desk.form == "segmented" else desk.rows())
        assert [step for step in fs.steps if step.operation in MUTATIONS] == []
        assert fs.open_paths == []
    with desk.open() as journal:
        assert numbers(journal)
