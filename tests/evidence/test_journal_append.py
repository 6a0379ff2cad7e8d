"""Appending: acknowledged means durable and pinned; what fails is not there, and can be repeated."""

from __future__ import annotations

import errno
import json
import threading
from typing import TYPE_CHECKING, Any, TypeVar, cast

import pytest

from skill_effectiveness.evidence.appender import Appender
from skill_effectiveness.evidence.faults import FileCode, FileError, LockError
from skill_effectiveness.evidence.fsdoubles import FaultFs, Injection, RecordingFs
from skill_effectiveness.evidence.fsops import RealFs
from skill_effectiveness.evidence.journal import Entry, Journal
from skill_effectiveness.evidence.journal_faults import JournalCode, JournalError, JournalStatus
from skill_effectiveness.evidence.journal_store import Store
from skill_effectiveness.evidence.lock import Lock, LockLevel
from tests.support.crash_images import fast_folder
from tests.support.journals import FORMS, ZEROS, Desk, add, edited, lines, numbers, put_lines
from tests.support.private import content, temporaries, wrong_modes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from skill_effectiveness.evidence.root import PrivateRoot


_T = TypeVar("_T")
ERRNOS = {
    errno.ENOSPC: FileCode.NO_SPACE,
    errno.EDQUOT: FileCode.NO_SPACE,
    errno.EIO: FileCode.IO_ERROR,
    errno.EROFS: FileCode.NOT_WRITABLE,
}


@pytest.fixture(params=FORMS)
def desk(request: pytest.FixtureRequest) -> Iterator[Desk]:
    with fast_folder() as base:
        yield Desk(base, request.param)


def code_of(call: Callable[..., object], *arguments: object) -> JournalCode:
    """The code with which a call is refused."""
    with pytest.raises(JournalError) as caught:
        call(*arguments)
    fault = caught.value.faults[0]
    assert fault.sentence.isprintable()
    assert not fault.where.startswith("/")
    return JournalCode(fault.code)


class Failing:
    """File operations of which one fails when it is told to.

    Args:
        operation: the name of the operation.
        path: the only path that counts, else every one but those of lock holders.
    """

    def __init__(self, operation: str, path: Path | None = None) -> None:
        def about(name: str) -> bool:
            return name == str(path) if path else "holder" not in name

        self._injection = Injection(operation, nth=1_000, about=about)
        self.fs = FaultFs(RealFs(), self._injection)

    def next(self, number: int, nth: int = 1) -> None:
        """Let the nth call from now on fail."""
        self._injection.errno, self._injection.nth, self._injection._calls = number, nth, 0


class FullFs(FaultFs):
    """A disk that takes half of the next write to a path and then nothing more of it."""

    def __init__(self, path: Path) -> None:
        super().__init__(RealFs())
        self._path = str(path)
        self.full = False
        self._halved = False

    def _through(self, operation: str, path: str, call: Callable[[], _T], *details: object) -> _T:
        if operation != "write" or path != self._path or not self.full:
            return super()._through(operation, path, call, *details)
        if self._halved:
            raise OSError(errno.ENOSPC, "full")
        self._halved = True
        fd, data = details
        assert isinstance(fd, int)
        assert isinstance(data, bytes)
        self._inner.write(fd, data[: len(data) // 2])
        return cast("_T", len(data) // 2)


class TestOrder:
    def test_rows_are_durable_before_the_pin_names_them(self, desk: Desk) -> None:
        """E39: one write, its fsync, the pin by rename, its copy, each durable before the next."""
        desk.fill(1)
        fs = RecordingFs(RealFs())
        with desk.open(fs) as journal:
            fs.steps.clear()
            add(journal, 1, 2, 3)
        steps = [
            (step.operation, step.path.removeprefix(f"{desk.base}/"))
            for step in fs.steps
            if ".holder" not in step.path
        ]
        pin, copy = desk.pin.relative_to(desk.base), desk.copy().relative_to(desk.base)

        def exchanged(name: Path) -> list[tuple[str, str]]:
            (beside,) = {path for _, path in steps if path.startswith(f"{name.parent}/.{name.name}.")}
            written = [("create_exclusive", beside), ("write", beside), ("fsync", beside), ("rename", beside)]
            return [*written, ("fsync_dir", str(name.parent))]

        rows = str(desk.rows().relative_to(desk.base))
        assert steps == [("write", rows), ("fsync", rows), *exchanged(pin), *exchanged(copy)]

    @pytest.mark.parametrize("operation", ["fsync", "rename", "fsync_dir"])
    def test_nothing_is_acknowledged_when_a_step_fails(self, desk: Desk, operation: str) -> None:
        """E39: an append that did not come to its end says so."""
        desk.fill(1)
        failing = Failing(operation)
        with desk.open(failing.fs) as journal:
            failing.next(errno.EIO)
            with pytest.raises(FileError):
                add(journal, 1)
        with desk.open() as journal:
            assert numbers(journal) in ([0], [0, 1])

    def test_an_acknowledgement_names_the_rows(self, desk: Desk) -> None:
        with desk.open() as journal:
            first = journal.count
            done = add(journal, 1, 2)
            assert (done.first, done.last) == (first, first + 1)
            assert (journal.count, journal.head) == (first + 2, done.head)
            rows = list(journal.rows(since=first))
            assert [row.seq for row in rows] == [first, first + 1]
            assert rows[-1].digest == done.head
            assert rows[-1].value["prev"] == rows[-2].digest


class TestRows:
    def test_row_0_opens_a_segmented_journal(self, tmp_path: Path) -> None:
        desk = Desk(tmp_path.resolve(), group_max=5)
        with desk.open() as journal:
            assert journal.group_max == 5
            assert isinstance(journal, Journal)
            assert journal.purpose == "test"
        row = json.loads(lines(desk.rows())[0])
        assert row == {
            "body": {"group_max": 5, "journal_id": journal.journal_id, "purpose": "test"},
            "prev": ZEROS,
            "seq": 0,
            "time": "2026-03-04T05:06:07.000Z",
            "type": "journal_open",
        }

    def test_the_pin_and_its_copy(self, tmp_path: Path) -> None:
        desk = Desk(tmp_path.resolve())
        desk.fill(1)
        with desk.open() as journal:
            expected = {
                "artifact_contract": "skill-effectiveness-journal-head-v1",
                "count": 2,
                "head": journal.head,
                "journal_id": journal.journal_id,
                "offset": desk.rows().stat().st_size,
                "schema_version": 1,
                "segment": 1,
            }
        assert json.loads(desk.pin.read_bytes()) == expected
        assert desk.copy().name == f"{expected['journal_id']}.json"
        assert desk.copy().read_bytes() == desk.pin.read_bytes()

    def test_the_modes(self, desk: Desk) -> None:
        """E24: everything is private."""
        desk.fill(3)
        assert wrong_modes(desk.base) == []
        assert temporaries(desk.base) == []

    def test_exotic_separators_in_texts_are_data(self, desk: Desk) -> None:
        """F44 E5: U+2028, VT and U+0085 inside a text do not end a row."""
        note = "a\u2028b\x0bc\x85d\x0ce\u2029"
        with desk.open() as journal:
            add(journal, 1, note=note)
            add(journal, 2)
            assert numbers(journal) == [1, 2]
            assert (
                sum(
                    note in (row.value.get("note"), row.value.get("body", {}).get("note"))
                    for row in journal.rows()
                )
                == 1
            )
        assert desk.verify().status is JournalStatus.INTACT

    @pytest.mark.parametrize(
        "value",
        [
            object(),
            "\ud800",
            2**53,
            float("nan"),
            "\uffff",
            {1: 2},
            (1,),
            b"x",
            "x" * 1_048_576,
            json.loads("[" * 33 + "]" * 33),
        ],
        ids=lambda value: str(value)[:20],
    )
    def test_what_could_not_be_read_again_is_not_written(self, desk: Desk, value: object) -> None:
        with desk.open() as journal:
            before = content(desk.base)
            rows: Any = [{"n": value}] if desk.form == "single" else [Entry("note", {"n": value})]
            assert code_of(journal.append, rows) is JournalCode.ROW_REFUSED
            assert content(desk.base) == before
            add(journal, 1)
            assert numbers(journal) == [1]

    @pytest.mark.parametrize("kind", ["journal_open", "segment_open", "tear", "repin", "", "a b", "a" * 65])
    def test_the_types_of_the_kernel_are_its_own(self, tmp_path: Path, kind: str) -> None:
        with Desk(tmp_path.resolve()).open() as journal:
            assert code_of(journal.append, [Entry(kind, {})]) is JournalCode.ROW_REFUSED

    @pytest.mark.parametrize("member", ["seq", "prev"])
    def test_number_and_link_are_not_given(self, tmp_path: Path, member: str) -> None:
        """E62: in the single-file form the journal adds both."""
        with Desk(tmp_path.resolve(), "single").open() as journal:
            rows: Any = [{member: 0}]
            assert code_of(journal.append, rows) is JournalCode.ROW_REFUSED

    def test_a_body_is_an_object(self, tmp_path: Path) -> None:
        with Desk(tmp_path.resolve()).open() as journal:
            rows: Any = [Entry("note", [])]  # type: ignore[arg-type]
            assert code_of(journal.append, rows) is JournalCode.ROW_REFUSED

    @pytest.mark.parametrize("count", [0, 4])
    def test_a_group_has_one_row_to_group_max(self, desk: Desk, count: int) -> None:
        desk.group_max = 3
        with desk.open() as journal:
            assert code_of(add, journal, *range(count)) is JournalCode.GROUP_SIZE
            add(journal, 1, 2, 3)
            assert numbers(journal) == [1, 2, 3]

    def test_a_group_has_a_size_that_a_torn_tail_may_have(self, desk: Desk) -> None:
        desk.group_max = 100
        with desk.open() as journal:
            with pytest.raises(JournalError) as caught:
                add(journal, *range(80), note="x" * 1_000_000)
            assert caught.value.code == JournalCode.GROUP_SIZE
            assert numbers(journal) == []


class TestWhatFails:
    @pytest.mark.parametrize("number", ERRNOS)
    @pytest.mark.parametrize(
        ("operation", "nth"),
        [("write", 1), ("fsync", 1), ("create_exclusive", 1), ("write", 2), ("fsync", 2), ("rename", 1)],
    )
    def test_before_the_pin_is_exchanged_leaves_nothing(
        self, desk: Desk, number: int, operation: str, nth: int
    ) -> None:
        """E22 F2: rows and pin are as before, and the same call succeeds once the cause is gone."""
        desk.fill(2)
        failing = Failing(operation)
        with desk.open(failing.fs) as journal:
            before = content(desk.base)
            failing.next(number, nth)
            with pytest.raises(FileError) as caught:
                add(journal, 2, 3)
            assert caught.value.code == ERRNOS[number]
            assert content(desk.base) == before
            assert desk.verify().status is JournalStatus.INTACT
            add(journal, 2, 3)
            assert numbers(journal) == [0, 1, 2, 3]
        assert desk.verify().status is JournalStatus.INTACT

    def test_a_short_write_is_cut_off_again(self, desk: Desk) -> None:
        """F2: half a group on a full disk is taken back."""
        desk.fill(2)
        fs = FullFs(desk.rows())
        with desk.open(fs) as journal:
            before = content(desk.base)
            fs.full = True
            with pytest.raises(FileError) as caught:
                add(journal, 2, 3, 4)
            assert caught.value.code is FileCode.NO_SPACE
            assert content(desk.base) == before
            fs.full = False
            add(journal, 2, 3, 4)
            assert numbers(journal) == [0, 1, 2, 3, 4]
        assert desk.verify().status is JournalStatus.INTACT

    @pytest.mark.parametrize(
        ("operation", "nth"), [("fsync_dir", 1), ("create_exclusive", 2), ("rename", 2), ("fsync_dir", 2)]
    )
    def test_after_the_pin_is_exchanged_the_object_is_dead(
        self, desk: Desk, operation: str, nth: int
    ) -> None:
        """E39: rows that a pin on the disk may name stay; the next open says what holds."""
        desk.fill(2)
        failing = Failing(operation)
        with desk.open(failing.fs) as journal:
            failing.next(errno.EIO, nth)
            with pytest.raises(FileError):
                add(journal, 2)
            assert code_of(add, journal, 3) is JournalCode.JOURNAL_DEAD
        with desk.open() as journal:
            assert numbers(journal) == [0, 1, 2]
            add(journal, 3)
        assert desk.verify().status is JournalStatus.INTACT

    @pytest.mark.parametrize(("part", "step"), [(Appender, "append"), (Store, "put_pin"), (Store, "commit")])
    def test_after_a_signal_between_two_steps_the_object_is_dead(
        self, desk: Desk, monkeypatch: pytest.MonkeyPatch, part: type, step: str
    ) -> None:
        """E39: a handler that raises leaves rows the object does not know of; none is ever put on top."""
        desk.fill(2)
        done = getattr(part, step)

        def interrupted(*arguments: object) -> None:
            done(*arguments)
            raise KeyboardInterrupt

        with desk.open() as journal:
            with monkeypatch.context() as patch:
                patch.setattr(part, step, interrupted)
                with pytest.raises(KeyboardInterrupt):
                    add(journal, 2)
            assert code_of(add, journal, 3) is JournalCode.JOURNAL_DEAD
        with desk.open() as journal:
            assert numbers(journal) == [0, 1, 2]
            add(journal, 3)
        assert desk.verify().status is JournalStatus.INTACT

    @pytest.mark.parametrize("operation", ["truncate", "fsync", "open_update"])
    def test_when_taking_back_fails_too_the_object_is_dead(self, desk: Desk, operation: str) -> None:
        """F2: a partial write that cannot be cut off is settled by the next open."""
        desk.fill(2)
        row_file = Failing("fsync", desk.rows())
        undo = Failing(operation, desk.rows())
        fs = FaultFs(RealFs(), *row_file.fs.injections, *undo.fs.injections)
        with desk.open(fs) as journal:
            row_file.next(errno.EIO)
            undo.next(errno.EIO, 2 if operation == "fsync" else 1)
            with pytest.raises(FileError):
                add(journal, 2)
            assert code_of(add, journal, 3) is JournalCode.JOURNAL_DEAD
        with desk.open() as journal:
            # What was written and not acknowledged may be there; nothing else may.
            assert numbers(journal) in ([0, 1], [0, 1, 2])
            add(journal, 9)
        assert desk.verify().status is JournalStatus.INTACT

    def test_a_closed_journal_takes_nothing(self, desk: Desk) -> None:
        with desk.roots() as (root, state):
            journal = desk.open_in(root, state)
            journal.close()
            journal.close()
            assert code_of(add, journal, 1) is JournalCode.JOURNAL_DEAD

    def test_a_held_lock_is_waited_for_and_named(self, desk: Desk) -> None:
        name = ".journal.lock" if desk.form == "segmented" else ".events.ndjson.lock"
        inside, leave = threading.Event(), threading.Event()

        def hold(root: PrivateRoot) -> None:
            with Lock(root, name, LockLevel.JOURNAL).hold(5, "stand in the way"):
                inside.set()
                leave.wait(10)

        with desk.roots() as (root, state), desk.open_in(root, state) as journal:
            thread = threading.Thread(target=hold, args=[root])
            thread.start()
            try:
                assert inside.wait(10)
                row: Any = {"n": 1} if desk.form == "single" else Entry("note", {"n": 1})
                with pytest.raises(LockError, match="stand in the way"):
                    journal.append([row], wait=0.05)
            finally:
                leave.set()
                thread.join()
            add(journal, 1)


class TestOthers:
    def test_two_openers_notice_each_other(self, desk: Desk) -> None:
        """A row means what it means after the rows before it, so who is behind must look again."""
        with desk.roots() as (root, state), desk.open_in(root, state) as one:
            with desk.open_in(root, state) as two:
                add(one, 1)
                assert code_of(add, two, 2) is JournalCode.JOURNAL_CHANGED
            with desk.open_in(root, state) as two:
                add(two, 2)
            assert code_of(add, one, 3) is JournalCode.JOURNAL_CHANGED
        with desk.open() as journal:
            assert numbers(journal) == [1, 2]

    def test_a_rotation_by_somebody_else_is_noticed(self, tmp_path: Path) -> None:
        desk = Desk(tmp_path.resolve(), segment_limit=300)
        desk.fill(1)
        with desk.roots() as (root, state), desk.open_in(root, state) as one:
            with desk.open_in(root, state) as two:
                add(two, 1)
            assert code_of(add, one, 2) is JournalCode.JOURNAL_CHANGED

    def test_what_an_editor_does_in_the_meantime_is_noticed(self, desk: Desk) -> None:
        """E35: nothing is added to a changed journal, and no pin is written over a changed one."""
        desk.fill(2)

        def append(data: bytes) -> Callable[[Path], object]:
            return lambda path: path.write_bytes(path.read_bytes() + data)

        def renewed(path: Path) -> None:
            data = path.read_bytes()
            path.unlink()
            path.write_bytes(data)
            path.chmod(0o600)

        acts: list[tuple[Path, Callable[[Path], object]]] = [
            (desk.rows(), append(b"x")),
            (desk.rows(), lambda path: path.write_bytes(path.read_bytes()[:-1] + b"\x0b")),
            (desk.rows(), lambda path: path.write_bytes(path.read_bytes()[:-1])),
            (desk.rows(), renewed),
            (desk.rows(), lambda path: path.unlink()),
            (desk.pin, lambda path: put_lines(path, [edited(lines(path)[0], count=9)])),
            (desk.pin, append(b"\n")),
            (desk.pin, append(b" " * 300_000)),
            (desk.pin, lambda path: path.unlink()),
        ]
        for path, act in acts:
            data = path.read_bytes()
            with desk.open() as journal:
                act(path)
                before = content(desk.base)
                assert code_of(add, journal, 5) is JournalCode.JOURNAL_CHANGED
                assert content(desk.base) == before
            path.write_bytes(data)
            path.chmod(0o600)
        with desk.open() as journal:
            assert numbers(journal) == [0, 1]

    @pytest.mark.parametrize("part", ["rows", "pin"])
    def test_what_others_may_write_to_in_the_meantime_is_refused(self, desk: Desk, part: str) -> None:
        """E24: a second name or another mode, given to the file while it is open, and nothing is added."""
        path = desk.rows() if part == "rows" else desk.pin
        other = desk.base / "other"
        with desk.open() as journal:
            add(journal, 0)
            acts: dict[FileCode, tuple[Callable[[], object], Callable[[], object]]] = {
                FileCode.FILE_LINKS: (lambda: other.hardlink_to(path), other.unlink),
                FileCode.FILE_MODE: (lambda: path.chmod(0o644), lambda: path.chmod(0o600)),
            }
            for code, (act, undo) in acts.items():
                act()
                before = content(desk.base)
                with pytest.raises(FileError) as caught:
                    add(journal, 1)
                assert caught.value.code is code
                assert content(desk.base) == before
                undo()
            add(journal, 1)
            assert numbers(journal) == [0, 1]


class TestReading:
    def test_rows_are_held_against_what_was_acknowledged(self, desk: Desk) -> None:
        """E32: a journal that was changed under an open one is not read as if it were not."""
        desk.fill(3)
        whole = lines(desk.rows())
        at = 2 if desk.form == "segmented" else 1
        changes = [
            [*whole[:at], edited(whole[at], seq=77), *whole[at + 1 :]],
            [*whole[:at], edited(whole[at], seq=9), *whole[at + 1 :]],
            [*whole[:at], whole[at].replace(b'"note":""', b'"nota":""'), *whole[at + 1 :]],
            [*whole[:at], edited(whole[at], more=1), *whole[at + 1 :]],
            [*whole[:at], b"{\n", *whole[at + 1 :]],
            whole[:-1],
            [*whole[:at], *whole[at + 1 :]],
        ]
        for change in changes:
            with desk.open() as journal:
                put_lines(desk.rows(), change)
                assert code_of(list, journal.rows()) is JournalCode.JOURNAL_DAMAGED
            put_lines(desk.rows(), whole)

    def test_rows_beyond_the_opening_are_not_given(self, desk: Desk) -> None:
        with desk.roots() as (root, state), desk.open_in(root, state) as one:
            add(one, 1)
            reading = one.rows()
            add(one, 2)
            assert numbers(one) == [1, 2]
            del reading
            with desk.open_in(root, state) as two:
                add(two, 3)
            assert numbers(one) == [1, 2]

    def test_every_segment_is_read(self, tmp_path: Path) -> None:
        desk = Desk(tmp_path.resolve(), segment_limit=400)
        desk.fill(9)
        assert desk.rows(3).exists()
        with desk.open() as journal:
            assert numbers(journal) == list(range(9))
            kinds = [row.type for row in journal.rows()]
            assert kinds.count("segment_open") == len(list(desk.folder.glob("0*.jsonl"))) - 1
