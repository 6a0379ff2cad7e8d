"""Opening: what a crash left is settled and nothing of it lost; what a crash cannot leave is refused."""

from __future__ import annotations

import errno
import hashlib
import json
import os
from typing import TYPE_CHECKING

import pytest

from skill_effectiveness.evidence.faults import FileError
from skill_effectiveness.evidence.fsdoubles import FaultFs, Injection
from skill_effectiveness.evidence.fsops import RealFs
from skill_effectiveness.evidence.journal_faults import Finding, JournalCode, JournalError, JournalStatus
from tests.support.journals import (
    FILE,
    FORMS,
    Desk,
    add,
    copied,
    damage_refused,
    edited,
    lines,
    numbers,
    put_lines,
    refused,
    tear,
    template,
    torn_contents,
    unpin,
)
from tests.support.private import content, wrong_modes

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(scope="module")
def templates(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Desk]:
    base = tmp_path_factory.mktemp("templates").resolve()
    return {form: template(base, form, 3) for form in FORMS}


@pytest.fixture(params=FORMS)
def desk(request: pytest.FixtureRequest, templates: dict[str, Desk], tmp_path: Path) -> Desk:
    return copied(templates[request.param], tmp_path.resolve())


class TestBeginning:
    def test_a_missing_journal_is_begun_only_when_asked(self, tmp_path: Path) -> None:
        for form in FORMS:
            desk = Desk(tmp_path.resolve() / form, form)
            desk.base.mkdir()
            with desk.roots():
                pass
            assert refused(desk, create=False).code == JournalCode.JOURNAL_MISSING
            assert content(desk.base) == {}
            desk.fill(1)
            with desk.open(create=False) as journal:
                assert numbers(journal) == [0]

    def test_a_folder_that_a_crash_left_empty_is_not_begun_either(self, tmp_path: Path) -> None:
        desk = Desk(tmp_path.resolve())
        with desk.roots() as (root, _), root.child("journal", create=True):
            pass
        assert refused(desk, create=False).code == JournalCode.JOURNAL_MISSING
        desk.rows().touch(mode=0o600)
        with desk.roots() as (root, _):
            pass
        with pytest.raises(JournalError) as caught, desk.open(create=False):
            pass
        assert caught.value.code == JournalCode.JOURNAL_MISSING
        with desk.open() as journal:
            assert journal.count == 1

    @pytest.mark.parametrize("data", [b"", b"\0" * 200, b'{"body":{"group_max":8,"jour', b"anything"])
    def test_a_torn_row_0_is_set_aside_and_the_journal_begun_again(self, tmp_path: Path, data: bytes) -> None:
        """E30: the first row may be torn too."""
        desk = Desk(tmp_path.resolve())
        with desk.roots() as (root, _), root.child("journal", create=True) as folder:
            folder.publish("000001.jsonl", data)
        with desk.open() as journal:
            kinds = [row.type for row in journal.rows()]
            assert kinds == (["journal_open", "tear"] if data else ["journal_open"])
        assert torn_contents(desk) == ([data] if data else [])
        assert desk.verify().status is (JournalStatus.INTACT_WITH_TEARS if data else JournalStatus.INTACT)

    @pytest.mark.parametrize("data", [b"\n", b"{}\n", b"not a row\n", b"x" * 100 + b"\n" + b"y" * 100])
    def test_what_is_no_journal_is_not_taken_for_one(self, tmp_path: Path, data: bytes) -> None:
        for form in FORMS:
            desk = Desk(tmp_path.resolve() / form, form)
            desk.base.mkdir()
            with desk.roots() as (root, _), root.child("journal", create=True) as folder:
                (folder if form == "segmented" else root).publish(desk.rows().name, data)
            assert refused(desk).code == JournalCode.NOT_A_JOURNAL

    @pytest.mark.parametrize("names", [["notes.txt"], ["000002.jsonl"], ["000001.jsonl", "000002.jsonl"]])
    def test_nothing_is_begun_among_other_things(self, tmp_path: Path, names: list[str]) -> None:
        """What a beginning cannot have left is not taken for one."""
        desk = Desk(tmp_path.resolve())
        with desk.roots() as (root, _), root.child("journal", create=True) as folder:
            for name in names:
                folder.publish(name, b"")
        assert refused(desk).code == JournalCode.NOT_A_JOURNAL

    def test_bytes_of_a_single_file_without_a_pin_are_not_ours(self, tmp_path: Path) -> None:
        """E62: its pin is there before the first row, so an unterminated line is not a torn first row."""
        desk = Desk(tmp_path.resolve(), "single")
        with desk.roots() as (root, _):
            root.publish(FILE, b'{"n":1')
        assert refused(desk).code == JournalCode.NOT_A_JOURNAL

    def test_more_than_an_append_writes_is_no_torn_row_0(self, tmp_path: Path) -> None:
        desk = Desk(tmp_path.resolve())
        with desk.roots() as (root, _), root.child("journal", create=True) as folder:
            folder.publish("000001.jsonl", b"")
        os.truncate(desk.rows(), 67_108_865)
        with pytest.raises(JournalError) as caught, desk.open():
            pass
        assert caught.value.code == JournalCode.NOT_A_JOURNAL

    @pytest.mark.parametrize("options", [{"group_max": 0}, {"group_max": 1_025}])
    def test_a_group_has_bounds(self, tmp_path: Path, options: dict[str, int]) -> None:
        for form in FORMS:
            desk = Desk(tmp_path.resolve() / form, form)
            desk.base.mkdir()
            with pytest.raises(JournalError) as caught, desk.open(**options):
                pass
            assert caught.value.code == JournalCode.ROW_REFUSED

    @pytest.mark.parametrize("purpose", ["", "x" * 201, "\ud800"])
    def test_a_purpose_is_a_text(self, tmp_path: Path, purpose: str) -> None:
        with pytest.raises(JournalError) as caught, Desk(tmp_path.resolve()).open(purpose=purpose):
            pass
        assert caught.value.code == JournalCode.ROW_REFUSED

    def test_a_purpose_is_kept_to(self, tmp_path: Path) -> None:
        desk = Desk(tmp_path.resolve())
        desk.fill(1)
        assert refused(desk, purpose="another").code == JournalCode.PURPOSE_DIFFERS

    def test_what_the_journal_was_begun_with_counts(self, desk: Desk) -> None:
        with desk.open(group_max=100) as journal:
            assert journal.group_max == 8

    def test_without_a_state_root_no_copy_is_kept(self, tmp_path: Path) -> None:
        for form in FORMS:
            desk = Desk(tmp_path.resolve() / form, form, state=False)
            desk.base.mkdir()
            desk.fill(2)
            assert not (desk.base / "state").exists()
            assert desk.verify().status is JournalStatus.INTACT


class TestTornTails:
    def test_an_append_after_a_stripped_line_feed_loses_neither_record(self, desk: Desk) -> None:
        """E30 F42: the stripped record stays a row, the new one follows, and one tear tells of it."""
        whole = lines(desk.rows())
        put_lines(desk.rows(), [*whole[:-1], whole[-1][:-1]])
        assert desk.verify().status is JournalStatus.RECOVERABLE
        with desk.open() as journal:
            add(journal, 3)
            assert numbers(journal) == [0, 1, 2, 3]
        assert lines(desk.rows())[: len(whole)] == whole
        assert torn_contents(desk) == [whole[-1][:-1]]
        report = desk.verify()
        assert (report.status, report.tears) == (JournalStatus.INTACT_WITH_TEARS, 1)
        assert wrong_modes(desk.base) == []

    def test_an_unpinned_row_without_its_line_feed_is_set_aside(self, desk: Desk) -> None:
        """E30: it was never acknowledged, and nothing is appended to its line."""
        unpin(desk, 3)
        whole = lines(desk.rows())
        put_lines(desk.rows(), [*whole[:-1], whole[-1][:-1]])
        with desk.open() as journal:
            add(journal, 4)
            assert numbers(journal) == [0, 1, 2, 4]
        assert torn_contents(desk) == [whole[-1][:-1]]

    @pytest.mark.parametrize(
        "data",
        [
            b"\0" * 300,
            b'{"body":{"n":3}',
            b"\xff\xfe",
            b"x",
            b"{}",
            b'{"half":1\n',
            b'{"a":1}{"b":2}\n',
            b"\0" * 600 + b'rest"}\n',
            b'\0\0\n{"n":1}\n\0\0',
            b"\n",
        ],
        ids=repr,
    )
    def test_what_is_no_row_beyond_the_pin_is_set_aside_whole(self, desk: Desk, data: bytes) -> None:
        """E30 E36 F42: torn bytes are kept, acknowledged by one tear, and verify."""
        tear(desk, data)
        report = desk.verify()
        assert (report.status, report.torn_bytes) == (JournalStatus.RECOVERABLE, len(data))
        with desk.open() as journal:
            add(journal, 3)
            assert numbers(journal) == [0, 1, 2, 3]
        assert torn_contents(desk) == [data]
        report = desk.verify()
        assert (report.status, report.tears) == (JournalStatus.INTACT_WITH_TEARS, 1)

    def test_the_row_of_a_tear(self, tmp_path: Path) -> None:
        """E36: it names number, size and digest, and the file has both in its name."""
        desk = Desk(tmp_path.resolve())
        desk.fill(1)
        tear(desk, b"torn")
        with desk.open() as journal:
            (row,) = [row for row in journal.rows() if row.type == "tear"]
        digest = hashlib.sha256(b"torn").hexdigest()
        assert row.body == {"bytes": 4, "digest": f"sha256:{digest}", "seq": 2}
        assert [path.name for path in desk.torn.iterdir()] == [f"2-{digest}.bin"]

    def test_tears_add_up(self, desk: Desk) -> None:
        """E36: each crash leaves its own."""
        for number, data in enumerate([b"one", b"two", b"two"]):
            tear(desk, data)
            with desk.open() as journal:
                add(journal, 3 + number)
        report = desk.verify()
        assert (report.status, report.tears) == (JournalStatus.INTACT_WITH_TEARS, 3)
        assert sorted(torn_contents(desk)) == [b"one", b"two", b"two"]

    def test_a_tail_that_holds_acknowledged_rows_is_none(self, desk: Desk) -> None:
        """E31 F43: cutting into what the pin names is damage, whatever the rest looks like."""
        whole = desk.rows().read_bytes()
        desk.rows().write_bytes(whole[:-9])
        assert damage_refused(desk) == [(Finding.TRUNCATED, 3 if desk.form == "segmented" else 2)]

    def test_more_lines_than_a_group_are_no_torn_tail(self, desk: Desk) -> None:
        tear(desk, b"x\n" * 9)
        assert damage_refused(desk)[0][0] is Finding.BAD_ROW

    def test_what_a_crash_cannot_make_of_a_row_is_damage(self, desk: Desk) -> None:
        """E32: a row beyond the pin that is readable but wrong was changed, not torn."""
        unpin(desk, 3)
        *rest, last = lines(desk.rows())
        for wrong, finding in [
            (last.replace(b'"n":3', b'"n": 3'), Finding.BAD_ROW),
            (edited(last, seq=9), Finding.SEQ_GAP),
            (edited(last, prev="sha256:" + "1" * 64), Finding.PREV_MISMATCH),
            (last.replace(b'"n":3', b'"n":3,"n":3'), Finding.BAD_ROW),
            (b"{}\n", Finding.BAD_ROW),
        ]:
            put_lines(desk.rows(), [*rest, wrong])
            assert damage_refused(desk)[0][0] is finding


class TestAdoption:
    def test_rows_beyond_the_pin_are_adopted(self, desk: Desk) -> None:
        """F42: durable but not acknowledged rows with an intact chain count, and the pin advances."""
        unpin(desk, 3, 4)
        report = desk.verify()
        assert (report.status, report.unpinned) == (JournalStatus.RECOVERABLE, 2)
        with desk.open() as journal:
            assert numbers(journal) == [0, 1, 2, 3, 4]
        assert desk.verify().status is JournalStatus.INTACT
        assert json.loads(desk.pin.read_bytes())["count"] == journal.count
        assert desk.copy().read_bytes() == desk.pin.read_bytes()

    def test_a_full_group_and_not_one_row_more(self, desk: Desk) -> None:
        unpin(desk, *range(3, 11))
        with desk.open() as journal:
            assert numbers(journal) == list(range(11))
            pin, copy = desk.pin.read_bytes(), desk.copy().read_bytes()
            add(journal, *range(11, 19))
            add(journal, 19)
        desk.pin.write_bytes(pin)
        desk.copy().write_bytes(copy)
        assert [finding for finding, _ in damage_refused(desk)] == [Finding.PIN_BEHIND]

    def test_a_copy_that_lags_is_brought_up(self, desk: Desk) -> None:
        old = desk.copy().read_bytes()
        desk.fill(1, 3)
        desk.copy().write_bytes(old)
        with desk.open():
            pass
        assert desk.copy().read_bytes() == desk.pin.read_bytes()

    def test_a_copy_that_was_never_made_is_made(self, desk: Desk) -> None:
        """A journal that comes from another machine has none here."""
        desk.copy().unlink()
        with desk.open():
            pass
        assert desk.copy().read_bytes() == desk.pin.read_bytes()

    def test_an_empty_next_segment_is_begun_again(self, tmp_path: Path) -> None:
        """What a crash left of a rotation is used."""
        desk = Desk(tmp_path.resolve(), segment_limit=10_000)
        desk.fill(2)
        desk.rows(2).touch(mode=0o600)
        assert desk.verify().status is JournalStatus.RECOVERABLE
        with desk.open() as journal:
            assert [row.type for row in journal.rows()][-1] == "segment_open"
            add(journal, 2)
            assert numbers(journal) == [0, 1, 2]
        assert len(lines(desk.rows(2))) == 2
        assert desk.verify().status is JournalStatus.INTACT

    def test_a_torn_beginning_of_a_segment_is_set_aside(self, tmp_path: Path) -> None:
        desk = Desk(tmp_path.resolve())
        desk.fill(2)
        desk.rows(2).touch(mode=0o600)
        desk.rows(2).write_bytes(b'{"body":{"closed":"sha')
        with desk.open() as journal:
            assert [row.type for row in journal.rows()][-2:] == ["segment_open", "tear"]
            assert numbers(journal) == [0, 1]
        assert torn_contents(desk) == [b'{"body":{"closed":"sha']
        assert desk.verify().status is JournalStatus.INTACT_WITH_TEARS

    def test_a_rotation_that_fails_half_way_is_taken_up_again(self, tmp_path: Path) -> None:
        """F2: the next append begins the segment, whatever became of the first try."""
        desk = Desk(tmp_path.resolve(), segment_limit=300)
        desk.fill(1)
        injection = Injection("write", errno.ENOSPC, nth=0, about=lambda path: path.endswith("000002.jsonl"))
        with desk.open(FaultFs(RealFs(), injection)) as journal:
            for _ in range(2):
                with pytest.raises(FileError):
                    add(journal, 1)
            assert desk.verify().status is JournalStatus.RECOVERABLE
            injection.errno = None
            add(journal, 1)
            assert numbers(journal) == [0, 1]
        assert desk.verify().status is JournalStatus.INTACT

    def test_a_torn_file_without_its_row_gets_it(self, desk: Desk) -> None:
        """A crash between the file and its acknowledgement."""
        tear(desk, b"torn")
        with desk.open():
            pass
        put_back = lines(desk.rows())
        pin = json.loads(desk.pin.read_bytes())
        if desk.form == "single":
            put_lines(desk.pin, [edited(desk.pin.read_bytes(), tears=[])])
        else:
            digest = hashlib.sha256(put_back[-2][:-1]).hexdigest()
            kept = put_back[:-1]
            put_lines(desk.rows(), kept)
            size = sum(map(len, kept))
            changes = {"count": pin["count"] - 1, "head": f"sha256:{digest}", "offset": size}
            put_lines(desk.pin, [edited(desk.pin.read_bytes(), **changes)])
            put_lines(desk.copy(), [desk.pin.read_bytes()])
        assert desk.verify().status is JournalStatus.RECOVERABLE
        with desk.open():
            pass
        report = desk.verify()
        assert (report.status, report.tears) == (JournalStatus.INTACT_WITH_TEARS, 1)
