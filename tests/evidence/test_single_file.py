"""The single-file form: the contract's rows alone in the file, the journal's own things in the pin."""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING

import pytest

from skill_effectiveness.evidence.faults import FileCode, FileError
from skill_effectiveness.evidence.fsdoubles import RecordingFs
from skill_effectiveness.evidence.fsops import RealFs
from skill_effectiveness.evidence.journal_faults import JournalError, JournalStatus
from skill_effectiveness.evidence.single_file import FileJournal
from tests.support.journals import FILE, ZEROS, Desk, add, lines, numbers

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path.resolve(), "single")


def pin_of(desk: Desk) -> dict[str, object]:
    pin = json.loads(desk.pin.read_bytes())
    assert isinstance(pin, dict)
    return pin


def test_it_holds_no_row_of_the_kernel(desk: Desk) -> None:
    """E62: with a beginning, several groups, a tear and a repin, every line is a row of the contract."""
    with desk.open() as journal:
        add(journal, 0, 1)
    with desk.rows().open("ab") as file:
        file.write(b"torn")
    with desk.open() as journal:
        add(journal, 2)
    desk.pin.write_bytes(b"")
    desk.repin("for the test")
    desk.fill(1, 3)
    rows = [json.loads(line) for line in lines(desk.rows())]
    assert [sorted(row) for row in rows] == [["n", "note", "prev", "seq"]] * 4
    assert [(row["n"], row["seq"]) for row in rows] == [(0, 0), (1, 1), (2, 2), (3, 3)]
    links = [ZEROS, *("sha256:" + hashlib.sha256(line[:-1]).hexdigest() for line in lines(desk.rows()))]
    assert [row["prev"] for row in rows] == links[:-1]


def test_the_pin_is_there_before_the_first_row(desk: Desk) -> None:
    """E62: with count 0, so that a lost pin is never taken for a beginning."""
    fs = RecordingFs(RealFs())
    with desk.open(fs) as journal:
        assert pin_of(desk) == {
            "artifact_contract": "skill-effectiveness-journal-head-v1",
            "count": 0,
            "group_max": 8,
            "head": ZEROS,
            "journal_id": journal.journal_id,
            "offset": 0,
            "schema_version": 1,
            "tears": [],
        }
        assert (journal.count, journal.head) == (0, ZEROS)
        assert [
            step for step in fs.steps if step.operation == "write" and step.path == str(desk.rows())
        ] == []
    assert desk.verify().status is JournalStatus.INTACT
    assert desk.verify().count == 0


def test_a_pin_of_which_the_file_was_not_made_yet(desk: Desk) -> None:
    """E62: what a crash between the two leaves goes on with the same id."""
    with desk.open() as journal:
        known = journal.journal_id
    desk.rows().unlink()
    assert desk.verify().status is JournalStatus.INTACT
    with desk.open() as journal:
        assert journal.journal_id == known
        add(journal, 1)
        assert numbers(journal) == [1]


def test_losing_the_pin_stops_appends(desk: Desk) -> None:
    """E62: beside any row."""
    desk.fill(1)
    desk.pin.unlink()
    with pytest.raises(JournalError), desk.open():
        pass
    assert not desk.pin.exists()


def test_an_empty_file_without_a_pin_is_a_beginning(desk: Desk) -> None:
    with desk.roots() as (root, _):
        root.publish(FILE, b"")
    with desk.open() as journal:
        add(journal, 1)
        assert numbers(journal) == [1]


def test_a_tear_is_an_entry_of_the_pin(desk: Desk) -> None:
    """E62: number, size and digest; the bytes lie beside the file."""
    desk.fill(2)
    with desk.rows().open("ab") as file:
        file.write(b"torn")
    with desk.open():
        pass
    digest = hashlib.sha256(b"torn").hexdigest()
    assert pin_of(desk)["tears"] == [{"bytes": 4, "digest": f"sha256:{digest}", "seq": 2}]
    assert [path.name for path in (desk.folder / f"{FILE}.torn").iterdir()] == [f"2-{digest}.bin"]
    assert desk.verify().status is JournalStatus.INTACT_WITH_TEARS


def test_the_same_bytes_torn_at_the_same_place_are_one_tear(desk: Desk) -> None:
    """Nothing tells them apart, and nothing is lost."""
    desk.fill(2)
    for _ in range(2):
        with desk.rows().open("ab") as file:
            file.write(b"torn")
        with desk.open():
            pass
    report = desk.verify()
    assert (report.status, report.tears) == (JournalStatus.INTACT_WITH_TEARS, 1)


@pytest.mark.parametrize("name", ["", "a/b", "..", "x\n"])
def test_the_file_has_one_name_in_the_folder(desk: Desk, name: str) -> None:
    with desk.roots() as (root, state), pytest.raises(FileError) as caught:
        FileJournal.open(root, name, state=state)
    assert caught.value.code is FileCode.NAME_FORM


def test_two_of_them_in_one_folder(desk: Desk) -> None:
    with desk.roots() as (root, state):
        with FileJournal.open(root, "a", state=state) as one, FileJournal.open(root, "b", state=state) as two:
            one.append([{"x": 1}])
            two.append([{"y": 1}, {"y": 2}])
            assert [row.value["x"] for row in one.rows()] == [1]
            assert [row.value["y"] for row in two.rows()] == [1, 2]
            assert one.journal_id != two.journal_id
        assert root.names() == (".a.lock", ".b.lock", "a", "a.head.json", "b", "b.head.json")
