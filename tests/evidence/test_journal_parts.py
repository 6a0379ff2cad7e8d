"""Verification of the parts of a journal: segments, folders, torn tails."""

from __future__ import annotations

import hashlib
import json
import os
from typing import TYPE_CHECKING

import pytest

from skill_effectiveness.evidence.journal_faults import (
    Finding,
    JournalStatus,
)
from tests.support.journals import (
    FORMS,
    ZEROS,
    Desk,
    copied,
    damage_verified,
    edited,
    lines,
    put_lines,
    templates_in,
)

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


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
        assert {finding for finding, _ in damage_verified(segmented)} == {Finding.SEGMENT_MISSING}

    def test_one_emptied(self, segmented: Desk) -> None:
        """E33: an empty file in the middle holds what a missing one holds."""
        segmented.rows(2).write_bytes(b"")
        assert damage_verified(segmented) == [(Finding.SEGMENT_MISSING, None)]

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

    @pytest.mark.parametrize("member", ["segment", "count", "offset"])
    def test_a_pin_that_names_what_cannot_be(self, segmented: Desk, member: str) -> None:
        """E37 E35: the largest number that a pin can hold."""
        put_lines(segmented.pin, [edited(segmented.pin.read_bytes(), **{member: 2**53 - 1})])
        expected = {
            "segment": Finding.SEGMENT_MISSING,
            "count": Finding.TRUNCATED,
            "offset": Finding.PIN_DAMAGED,
        }
        assert {finding for finding, _ in damage_verified(segmented)} == {expected[member]}

    def test_a_row_with_the_largest_number(self, segmented: Desk) -> None:
        """E32: what follows is no continuation of it."""
        first, *rest = lines(segmented.last())
        put_lines(segmented.last(), [edited(first, seq=2**53 - 1), *rest])
        assert damage_verified(segmented)[0] == (Finding.SEQ_GAP, json.loads(first)["seq"])

    def test_a_number_without_end(self, segmented: Desk) -> None:
        (segmented.folder / "999999999.jsonl").write_bytes(b"")
        (segmented.folder / "999999998.jsonl").write_bytes(b"x\n")
        assert {finding for finding, _ in damage_verified(segmented)} == {Finding.SEGMENT_MISSING}

    def test_a_segment_that_ends_without_a_line_feed(self, segmented: Desk) -> None:
        """E32: in the middle that is no torn tail."""
        data = segmented.rows(2).read_bytes()
        segmented.rows(2).write_bytes(data[:-1])
        assert damage_verified(segmented)[0][0] is Finding.BAD_ROW

    def test_the_first_row_of_a_segment(self, segmented: Desk) -> None:
        """E32: dropped, edited, or replaced by another one that goes on rightly."""
        first, *rest = lines(segmented.rows(2))
        seq = json.loads(first)["seq"]
        put_lines(segmented.rows(2), rest)
        assert damage_verified(segmented)[0] == (Finding.SEQ_GAP, seq)
        body = json.loads(first)["body"]
        put_lines(segmented.rows(2), [edited(first, body=body | {"closed": ZEROS}), *rest])
        assert damage_verified(segmented)[0] == (Finding.PREV_MISMATCH, seq)
        put_lines(segmented.rows(2), [edited(first, body={}), *rest])
        assert damage_verified(segmented)[0] == (Finding.BAD_ROW, seq)
        put_lines(segmented.rows(2), [edited(first, type="note"), *rest])
        assert damage_verified(segmented)[0] == (Finding.SEGMENT_ORDER, seq)

    def test_the_digest_of_the_file_before(self, segmented: Desk) -> None:
        """E32: it is held against the file, also where everything behind it was forged to fit."""
        last = segmented.last()
        first, *rest = lines(last)
        row = json.loads(first)
        put_lines(last, chained(edited(first, body=row["body"] | {"closed": ZEROS}), rest))
        repinned(segmented)
        assert damage_verified(segmented) == [(Finding.PREV_MISMATCH, row["seq"])]
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
        assert damage_verified(desk)[0] == (Finding.BAD_ROW, 3)


class TestFolders:
    @pytest.mark.parametrize(
        "name", ["notes.txt", "1.jsonl", "000000.jsonl", "0000001.jsonl", "head.json~", ".x.tmp"]
    )
    def test_an_unknown_name(self, segmented: Desk, name: str) -> None:
        (segmented.folder / name).write_bytes(b"")
        assert damage_verified(segmented) == [(Finding.FOREIGN_FILE, None)]

    def test_a_name_that_is_no_text(self, segmented: Desk) -> None:
        os.close(os.open(os.fsencode(segmented.folder) + b"/\xff", os.O_CREAT, 0o600))
        assert damage_verified(segmented) == [(Finding.FOREIGN_FILE, None)]

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
        assert damage_verified(desk) == [(Finding.PIN_DAMAGED, None)]

    @pytest.mark.parametrize(
        "make", [lambda path: path.write_bytes(b""), os.mkfifo, lambda path: path.symlink_to("x")]
    )
    def test_something_else_with_the_name_of_the_torn_tails(
        self, desk: Desk, make: Callable[[Path], object]
    ) -> None:
        make(desk.torn)
        assert damage_verified(desk) == [(Finding.FOREIGN_FILE, None)]

    @pytest.mark.parametrize("token", [b"true", b"1.0", b"2", b'"1"', b"null"])
    def test_a_pin_of_another_version(self, desk: Desk, token: bytes) -> None:
        """E6 E35: `true` and `1.0` equal 1 in Python and are not the integer token 1."""
        before = desk.pin.read_bytes()
        assert before.count(b'"schema_version":1') == 1
        desk.pin.write_bytes(before.replace(b'"schema_version":1', b'"schema_version":' + token))
        assert damage_verified(desk) == [(Finding.PIN_DAMAGED, None)]


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

    def test_more_without_their_bytes_than_are_told(self, segmented: Desk) -> None:
        """E37 E38: reading ends there, so a journal full of them costs no memory."""
        rows = lines(segmented.last())
        last = json.loads(rows[-1])
        for number in range(1, 1_501):
            body = {"bytes": 1, "digest": f"sha256:{number:064x}", "seq": number}
            prev = f"sha256:{hashlib.sha256(rows[-1][:-1]).hexdigest()}"
            rows.append(edited(rows[-1], body=body, prev=prev, seq=last["seq"] + number, type="tear"))
        put_lines(segmented.last(), rows)
        report = segmented.verify()
        assert report.status is JournalStatus.DAMAGED
        assert {found.finding for found in report.findings} == {Finding.TEAR_EVIDENCE_MISSING}
        assert len(report.findings) == report.tears == 1_000
        assert report.count < last["seq"] + 1 + 1_500

    def test_its_bytes_missing_or_changed(self, torn: Desk) -> None:
        """E36: a tear without its evidence."""
        (path,) = torn.torn.iterdir()
        for data in (None, b"", b"torn byteS", b"torn bytes "):
            path.unlink()
            if data is not None:
                path.write_bytes(data)
            kinds = damage_verified(torn)
            assert kinds[0][0] is Finding.TEAR_EVIDENCE_MISSING
            path.write_bytes(b"")
        path.unlink()
        torn.torn.rmdir()
        assert damage_verified(torn)[0][0] is Finding.TEAR_EVIDENCE_MISSING

    @pytest.mark.parametrize("name", ["x", "3-00.bin", "3-" + "0" * 64 + ".bin", "03-" + "0" * 64 + ".bin"])
    def test_a_file_that_is_no_torn_tail(self, torn: Desk, name: str) -> None:
        (torn.torn / name).write_bytes(b"?")
        assert damage_verified(torn) == [(Finding.FOREIGN_FILE, None)]

    def test_a_number_that_no_row_has(self, torn: Desk) -> None:
        """E37: the bytes are right, but the name is beyond every row."""
        name = f"9999999999999999-{hashlib.sha256(b'x').hexdigest()}.bin"
        (torn.torn / name).write_bytes(b"x")
        assert damage_verified(torn) == [(Finding.FOREIGN_FILE, None)]

    def test_an_empty_file(self, torn: Desk) -> None:
        """Nothing was torn off there, whatever its name says."""
        (torn.torn / f"3-{hashlib.sha256(b'').hexdigest()}.bin").write_bytes(b"")
        assert damage_verified(torn) == [(Finding.FOREIGN_FILE, None)]

    def test_something_else_with_its_name(self, torn: Desk) -> None:
        (path,) = torn.torn.iterdir()
        path.unlink()
        os.mkfifo(path)
        assert damage_verified(torn)[0][0] is Finding.TEAR_EVIDENCE_MISSING

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
        assert Finding.TEAR_EVIDENCE_MISSING in {finding for finding, _ in damage_verified(torn)}
