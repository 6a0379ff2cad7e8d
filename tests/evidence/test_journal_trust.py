"""Opening trusts nothing that was changed, left over, or open to others."""

from __future__ import annotations

import errno
import json
import os
from pathlib import Path

import pytest

from skill_effectiveness.evidence.faults import FileCode, FileError, RootCode, RootError
from skill_effectiveness.evidence.fsdoubles import FaultFs, Injection
from skill_effectiveness.evidence.fsops import RealFs
from skill_effectiveness.evidence.journal import Journal
from skill_effectiveness.evidence.journal_faults import Finding, JournalCode, JournalError, JournalStatus
from tests.support.journals import (
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
)
from tests.support.private import surroundings


@pytest.fixture(scope="module")
def templates(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Desk]:
    base = tmp_path_factory.mktemp("templates").resolve()
    return {form: template(base, form, 3) for form in FORMS}


@pytest.fixture(params=FORMS)
def desk(request: pytest.FixtureRequest, templates: dict[str, Desk], tmp_path: Path) -> Desk:
    return copied(templates[request.param], tmp_path.resolve())


def open_descriptors() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


class TestPins:
    def test_a_deleted_pin_stops_appends_and_is_not_rewritten(self, desk: Desk) -> None:
        """E35 E62: nothing makes it anew but a person with a reason."""
        desk.pin.unlink()
        assert damage_refused(desk) == [(Finding.PIN_MISSING, None)]
        assert not desk.pin.exists()

    @pytest.mark.parametrize("data", [b"", b"{}\n", b"\0" * 200, b"null\n", b"{" * 100, b"\xff\n"], ids=repr)
    def test_a_pin_that_cannot_be_read_stops_appends(self, desk: Desk, data: bytes) -> None:
        """E35: and is not rewritten."""
        desk.pin.write_bytes(data)
        assert damage_refused(desk) == [(Finding.PIN_DAMAGED, None)]
        assert desk.pin.read_bytes() == data

    @pytest.mark.parametrize(
        "changes",
        [
            {"count": 2},
            {"count": 10**6},
            {"head": "sha256:" + "1" * 64},
            {"offset": 1},
            {"schema_version": 2},
            {"artifact_contract": "other"},
            {"extra": 1},
            {"count": "3"},
        ],
        ids=str,
    )
    def test_an_edited_pin_stops_appends(self, desk: Desk, changes: dict[str, object]) -> None:
        """E35: and is not rewritten."""
        put_lines(desk.pin, [edited(desk.pin.read_bytes(), **changes)])
        (kind,) = {finding for finding, _ in damage_refused(desk)}
        expected = {"count": Finding.TRUNCATED} if changes == {"count": 10**6} else {}
        assert kind is expected.get("count", Finding.PIN_DAMAGED)

    def test_a_spaced_pin_is_a_damaged_one(self, desk: Desk) -> None:
        """E35: only the form that this program writes counts."""
        desk.pin.write_bytes(json.dumps(json.loads(desk.pin.read_bytes()), sort_keys=True).encode() + b"\n")
        assert damage_refused(desk) == [(Finding.PIN_DAMAGED, None)]

    def test_the_pin_of_another_journal_is_a_damaged_one(self, tmp_path: Path) -> None:
        one, two = Desk(tmp_path.resolve() / "1"), Desk(tmp_path.resolve() / "2")
        for desk in (one, two):
            desk.base.mkdir()
            desk.fill(2)
        put_lines(two.pin, [edited(two.pin.read_bytes(), journal_id="0" * 32)])
        assert (Finding.PIN_DAMAGED, None) in damage_refused(two)

    @pytest.mark.parametrize("data", [b"", b"{}\n", b"x" * 99])
    def test_a_copy_that_cannot_be_read_stops_appends(self, desk: Desk, data: bytes) -> None:
        """E34: what cannot be asked does not count as agreement."""
        desk.copy().write_bytes(data)
        assert damage_refused(desk) == [(Finding.PIN_DAMAGED, None)]

    def test_a_copy_for_another_journal_stops_appends(self, desk: Desk) -> None:
        put_lines(desk.copy(), [edited(desk.copy().read_bytes(), journal_id="0" * 32)])
        assert damage_refused(desk) == [(Finding.PIN_DAMAGED, None)]

    def test_a_missing_pin_beside_row_0_alone_is_what_a_crash_leaves(self, tmp_path: Path) -> None:
        desk = Desk(tmp_path.resolve())
        with desk.open():
            pass
        desk.pin.unlink()
        desk.copy().unlink()
        assert desk.verify().status is JournalStatus.RECOVERABLE
        with desk.open() as journal:
            assert journal.count == 1
        assert desk.verify().status is JournalStatus.INTACT

    def test_a_missing_pin_beside_row_0_is_held_against_the_copy(self, tmp_path: Path) -> None:
        """E34: row 0 alone, while more was acknowledged here, is no beginning."""
        desk = Desk(tmp_path.resolve())
        desk.fill(2)
        desk.pin.unlink()
        put_lines(desk.rows(), lines(desk.rows())[:1])
        assert damage_refused(desk) == [(Finding.ROLLED_BACK, 1)]


class TestLeftovers:
    def test_own_temporaries_are_removed_and_no_others(self, desk: Desk) -> None:
        mine = desk.folder / f".{desk.pin.name}.0123456789abcdef.tmp"
        copy = desk.copy().parent / f".{desk.copy().name}.0123456789abcdef.tmp"
        others = [desk.copy().parent / f".{'0' * 32}.json.0123456789abcdef.tmp"]
        if desk.form == "single":
            others.append(desk.folder / ".report.json.0123456789abcdef.tmp")
        for path in (mine, copy, *others):
            path.write_bytes(b"half")
        assert desk.verify().status is JournalStatus.INTACT
        with desk.open() as journal:
            assert numbers(journal) == [0, 1, 2]
        assert not mine.exists()
        assert not copy.exists()
        assert all(path.exists() for path in others)

    def test_other_things_beside_a_single_file_are_none_of_its_business(self, tmp_path: Path) -> None:
        """E62: a contract keeps what it likes in the same folder."""
        desk = Desk(tmp_path.resolve(), "single")
        desk.fill(1)
        (desk.folder / "run-summary.json").write_bytes(b"{}")
        os.mkfifo(desk.folder / "pipe")
        assert desk.verify().status is JournalStatus.INTACT
        with desk.open() as journal:
            assert numbers(journal) == [0]

    def test_what_has_the_name_of_a_temporary_but_is_no_file_stays(self, desk: Desk) -> None:
        link = desk.folder / f".{desk.pin.name}.0123456789abcdef.tmp"
        link.symlink_to("nowhere")
        with desk.open():
            pass
        assert link.is_symlink()

    def test_a_foreign_file_in_the_folder_of_a_journal_stops_appends(self, tmp_path: Path) -> None:
        desk = Desk(tmp_path.resolve())
        desk.fill(1)
        (desk.folder / "notes.txt").write_bytes(b"")
        assert damage_refused(desk) == [(Finding.FOREIGN_FILE, None)]


class TestPrivacy:
    @pytest.mark.parametrize("part", ["rows", "pin"])
    def test_parts_are_private_files_or_nothing_is_done(self, desk: Desk, part: str) -> None:
        """E17: a wrong mode is told by its own code and stays as it is."""
        path = desk.rows() if part == "rows" else desk.pin
        path.chmod(0o644)
        with pytest.raises(FileError) as caught, desk.open():
            pass
        assert caught.value.code is FileCode.FILE_MODE
        assert path.stat().st_mode & 0o7777 == 0o644
        path.chmod(0o600)
        other = path.with_name("other")
        path.rename(other)
        path.symlink_to("other")
        with pytest.raises(FileError) as caught, desk.open():
            pass
        assert caught.value.code is FileCode.FILE_SYMLINK
        path.unlink()
        os.mkfifo(path, 0o600)
        with pytest.raises(FileError) as caught, desk.open():
            pass
        assert caught.value.code is FileCode.NOT_REGULAR
        path.unlink()
        other.rename(path)
        os.link(path, desk.base / "second")
        with pytest.raises(FileError) as caught, desk.open():
            pass
        assert caught.value.code is FileCode.FILE_LINKS

    def test_the_folders_are_private_or_nothing_is_done(self, tmp_path: Path) -> None:
        desk = Desk(tmp_path.resolve())
        desk.fill(1)
        tear(desk, b"torn")
        with desk.open():
            pass
        for folder in (desk.folder, desk.torn, desk.copy().parent):
            folder.chmod(0o755)
            before = open_descriptors()
            with pytest.raises(RootError) as caught, desk.open():
                pass
            assert caught.value.code is RootCode.ROOT_MODE
            assert open_descriptors() == before
            folder.chmod(0o700)

    def test_an_error_while_opening_closes_everything(self, desk: Desk) -> None:
        desk.pin.write_bytes(b"")
        before = open_descriptors()
        for _ in range(5):
            refused(desk)
        assert open_descriptors() == before

    @pytest.mark.parametrize("number", [errno.EIO, errno.EACCES])
    def test_what_cannot_be_read_is_not_opened(self, desk: Desk, number: int) -> None:
        rows = str(desk.rows())
        fs = FaultFs(RealFs(), Injection("open_read", number, about=lambda path: path == rows))
        with pytest.raises(JournalError) as caught, desk.open(fs):
            pass
        assert caught.value.code == JournalCode.NOT_A_JOURNAL

    def test_the_state_root_stays_the_callers(self, desk: Desk) -> None:
        with desk.roots() as (root, state):
            with desk.open_in(root, state):
                pass
            assert state is not None
            assert state.exists("pins")
            assert root.exists("journal") or desk.form == "single"


def test_two_journals_in_one_root(tmp_path: Path) -> None:
    """Each has its own lock, pin and copy."""
    desk = Desk(tmp_path.resolve())
    with desk.roots() as (root, state):
        one = Journal.open(root, purpose="one", state=state, name="one")
        two = Journal.open(root, purpose="two", state=state, name="two")
        add(one, 1)
        add(two, 2)
        assert (numbers(one), numbers(two)) == ([1], [2])
        assert one.journal_id != two.journal_id
        one.close()
        two.close()
    assert len(list((desk.base / "state" / "pins").iterdir())) == 2


def test_time_comes_from_the_surroundings(tmp_path: Path) -> None:
    assert surroundings().now().isoformat() == "2026-03-04T05:06:07+00:00"
    desk = Desk(tmp_path.resolve())
    with desk.open() as journal:
        add(journal, 1)
        assert [row.time for row in journal.rows()] == ["2026-03-04T05:06:07.000Z"] * 2
