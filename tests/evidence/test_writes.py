"""Writing: a name holds the whole old or the whole new content, whatever fails at whichever step."""

from __future__ import annotations

import errno
import hashlib
import os
import threading
from functools import partial
from typing import TYPE_CHECKING

import pytest

from skill_effectiveness.evidence import writes
from skill_effectiveness.evidence.faults import FileCode, FileError
from skill_effectiveness.evidence.fsdoubles import FaultFs, Injection, RecordingFs
from skill_effectiveness.evidence.fsops import RealFs
from skill_effectiveness.evidence.writes import sync_folder
from tests.support.private import content, out_root, temporaries, wrong_modes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from skill_effectiveness.evidence.root import PrivateRoot

    Operation = Callable[[PrivateRoot], object]

OLD, NEW = b"old content", b"new content, longer"
DIGEST_OF_OLD = hashlib.sha256(OLD).hexdigest()

OPERATIONS: dict[str, Operation] = {
    "publish": lambda root: root.publish("fresh.json", NEW),
    "replace": lambda root: root.replace("report.json", NEW),
    "replace-first": lambda root: root.replace("fresh.json", NEW),
    "archive": lambda root: root.archive("report.json", NEW),
    "retire": lambda root: root.archive("report.json", None),
    "remove": lambda root: root.remove("report.json"),
    "replace-all": lambda root: root.replace_all({"report.json": NEW, "fresh.json": NEW}),
    "replace-and-remove": lambda root: root.replace_all({"fresh.json": NEW, "report.json": None}),
}

# What each name may hold after a fault; None: it may be absent.
ALLOWED: dict[str, dict[str, tuple[bytes | None, ...]]] = {
    "publish": {"fresh.json": (None, NEW), "report.json": (OLD,)},
    "replace": {"fresh.json": (None,), "report.json": (OLD, NEW)},
    "replace-first": {"fresh.json": (None, NEW), "report.json": (OLD,)},
    "archive": {"fresh.json": (None,), "report.json": (OLD, NEW)},
    "retire": {"fresh.json": (None,), "report.json": (OLD, None)},
    "remove": {"fresh.json": (None,), "report.json": (OLD, None)},
    "replace-all": {"fresh.json": (None, NEW), "report.json": (OLD, NEW)},
    "replace-and-remove": {"fresh.json": (None, NEW), "report.json": (OLD, None)},
}

ERRNOS = {
    errno.ENOSPC: FileCode.NO_SPACE,
    errno.EDQUOT: FileCode.NO_SPACE,
    errno.EFBIG: FileCode.NO_SPACE,
    errno.EIO: FileCode.IO_ERROR,
    errno.EROFS: FileCode.NOT_WRITABLE,
    errno.EACCES: FileCode.NOT_WRITABLE,
    errno.EPERM: FileCode.NOT_WRITABLE,
}


def steps_of(name: str, folder: Path) -> list[str]:
    """The mutating operations of an undisturbed run, in order."""
    fs = RecordingFs(RealFs())
    with out_root(folder, fs) as root:
        root.publish("report.json", OLD)
        fs.steps.clear()
        OPERATIONS[name](root)
    return [step.operation for step in fs.steps]


@pytest.fixture
def root(tmp_path: Path) -> Iterator[PrivateRoot]:
    with out_root(tmp_path) as opened:
        opened.publish("report.json", OLD)
        yield opened


class TestSteps:
    def test_publish_links_a_durable_file_and_makes_the_name_durable(self, tmp_path: Path) -> None:
        assert steps_of("publish", tmp_path) == [
            "create_exclusive",
            "write",
            "fsync",
            "link",
            "unlink",
            "fsync_dir",
        ]

    def test_replace_renames_a_durable_file_and_makes_the_name_durable(self, tmp_path: Path) -> None:
        assert steps_of("replace", tmp_path) == ["create_exclusive", "write", "fsync", "rename", "fsync_dir"]

    def test_replacing_several_makes_their_names_durable_together(self, tmp_path: Path) -> None:
        each = ["create_exclusive", "write", "fsync", "rename"]
        assert steps_of("replace-all", tmp_path) == [*each, *each, "fsync_dir"]
        (tmp_path / "second").mkdir()
        assert steps_of("replace-and-remove", tmp_path / "second") == [*each, "unlink", "fsync_dir"]

    def test_archive_keeps_the_old_before_the_new_takes_its_name(self, tmp_path: Path) -> None:
        make_history = ["mkdir", "fsync_dir"]
        keep = ["create_exclusive", "write", "fsync", "link", "unlink", "fsync_dir"]
        take = ["create_exclusive", "write", "fsync", "rename", "fsync_dir"]
        assert steps_of("archive", tmp_path) == make_history + keep + take

    @pytest.mark.parametrize("name", OPERATIONS)
    def test_no_step_shows_another_mode_or_a_mixture(self, tmp_path: Path, name: str) -> None:
        """E24: at every recorded step every file is 0600, every folder 0700, and every name old or new."""
        fs = RecordingFs(RealFs(), after=lambda _step: look())
        found: list[str] = []

        def look() -> None:
            found.extend(wrong_modes(tmp_path / "root"))
            for held, allowed in ALLOWED[name].items():
                path = tmp_path / "root" / held
                if fs.steps and watching and (path.read_bytes() if path.exists() else None) not in allowed:
                    found.append(f"mixture in {held}")

        watching = False
        with out_root(tmp_path, fs) as root:
            root.publish("report.json", OLD)
            watching = True
            OPERATIONS[name](root)
        assert found == []
        assert len(fs.steps) > 3

    @pytest.mark.parametrize("mask", [0o000, 0o022, 0o077, 0o777])
    def test_the_umask_changes_nothing(self, tmp_path: Path, mask: int) -> None:
        """E16 E24: files are 0600 and folders 0700 under every umask, the temporaries included."""
        found: list[str] = []

        def look(_step: object) -> None:
            # Under umask 0777 a new object has mode 0000 until its next step, which is stricter still.
            found.extend(entry for entry in wrong_modes(tmp_path / "root") if not entry.endswith("0000"))

        former = os.umask(mask)
        try:
            with out_root(tmp_path, RecordingFs(RealFs(), look)) as root:
                root.publish("report.json", OLD)
                root.archive("report.json", NEW)
                with root.child("a", "b", create=True) as child:
                    child.replace("f", NEW)
        finally:
            os.umask(former)
        assert found == []
        assert wrong_modes(tmp_path / "root") == []
        assert (tmp_path / "root").stat().st_mode & 0o7777 == 0o700

    def test_a_setgid_parent_hands_nothing_down(self, tmp_path: Path) -> None:
        tmp_path.chmod(0o2755)
        with out_root(tmp_path) as root, root.child("a", create=True):
            assert (root.path / "a").stat().st_mode & 0o7777 == 0o700


class TestEveryErrorAtEveryStep:
    @pytest.mark.parametrize("number", ERRNOS)
    @pytest.mark.parametrize("name", OPERATIONS)
    def test_old_or_new_no_leftover_and_the_repeat_succeeds(
        self, tmp_path: Path, name: str, number: int
    ) -> None:
        """E22: every errno at every step gives its code, keeps old or new content, and the same call then
        succeeds.
        """
        first = tmp_path / "undisturbed"
        first.mkdir()
        steps = steps_of(name, first)
        undisturbed = content(first)
        for nth in range(1, len(steps) + 1):
            folder = tmp_path / f"{nth}"
            folder.mkdir()
            with out_root(folder) as root:
                root.publish("report.json", OLD)
            fs = FaultFs(RealFs(), injection := Injection("*", number, nth=nth))
            with out_root(folder, fs) as root:
                with pytest.raises(FileError) as caught:
                    OPERATIONS[name](root)
                assert caught.value.code is ERRNOS[number]
                assert injection.hits == 1
                self._demand_old_or_new(folder / "root", name)
                assert temporaries(folder) == []
                OPERATIONS[name](root)
                assert fs.open_paths == [str(root.path)]
            # A repeated archive may also keep the new report, when the first try came that far.
            assert undisturbed.items() <= content(folder).items()

    @staticmethod
    def _demand_old_or_new(folder: Path, name: str) -> None:
        for held, allowed in ALLOWED[name].items():
            path = folder / held
            assert (path.read_bytes() if path.exists() else None) in allowed
        if name in {"archive", "retire"} and not (folder / "report.json").exists():
            assert (folder / "history" / f"report-{DIGEST_OF_OLD}.json").read_bytes() == OLD

    @pytest.mark.parametrize("number", [errno.EIO, errno.ENOSPC])
    def test_a_failed_fsync_of_the_file_is_final(
        self, tmp_path: Path, root: PrivateRoot, number: int
    ) -> None:
        """E22: after a failed fsync the descriptor is given up, the old bytes stay, and no second fsync is
        tried on it.
        """
        fs = FaultFs(RealFs(), first := Injection("fsync", number), every := Injection("fsync", nth=0))
        with out_root(tmp_path, fs) as watched:
            with pytest.raises(FileError):
                watched.replace("report.json", NEW)
            assert (first.hits, every.hits) == (1, 1)
            assert root.read("report.json") == OLD
            assert temporaries(tmp_path) == []

    def test_a_failed_fsync_of_the_folder_is_not_retried_on_its_descriptor(self, tmp_path: Path) -> None:
        fs = FaultFs(RealFs(), Injection("fsync_dir", errno.EIO), opened := Injection("open_dir", nth=0))
        with out_root(tmp_path) as root, out_root(tmp_path, fs) as watched:
            with pytest.raises(FileError):
                watched.publish("f", NEW)
            before = opened.hits
            watched.publish("f", NEW)
            assert opened.hits == before + 1
            assert root.read("f") == NEW

    def test_an_interruption_leaves_no_temporary(self, tmp_path: Path, root: PrivateRoot) -> None:
        def interrupt() -> None:
            raise KeyboardInterrupt

        for nth in range(1, 5):
            fs = FaultFs(RealFs(), Injection("*", nth=nth, before=interrupt))
            with out_root(tmp_path, fs) as watched, pytest.raises(KeyboardInterrupt):
                watched.replace("report.json", NEW)
            assert root.read("report.json") == OLD
            assert temporaries(tmp_path) == []

    def test_a_file_system_without_modes_is_refused(self, tmp_path: Path, root: PrivateRoot) -> None:
        def open_to_all(status: os.stat_result) -> os.stat_result:
            return os.stat_result((0o100777, *status[1:]))

        fs = FaultFs(
            RealFs(), Injection("fstat", nth=0, change=open_to_all, about=lambda path: ".tmp" in path)
        )
        with out_root(tmp_path, fs) as watched, pytest.raises(FileError) as caught:
            watched.publish("f", NEW)
        assert caught.value.code is FileCode.FILE_MODE
        assert root.names() == ("report.json",)


class TestFoldersWithoutFsync:
    @pytest.mark.parametrize("number", [errno.EINVAL, errno.ENOTSUP])
    def test_are_written_all_the_same(self, tmp_path: Path, number: int) -> None:
        fs = FaultFs(RealFs(), Injection("fsync_dir", number, nth=0))
        with out_root(tmp_path, fs) as root:
            root.publish("f", NEW)
            assert root.read("f") == NEW
            assert sync_folder(fs, root.folder.fd) is False

    def test_say_so_only_with_these_two_numbers(self, tmp_path: Path) -> None:
        fs = FaultFs(RealFs(), Injection("fsync_dir", errno.EIO, nth=0))
        (tmp_path / "root").mkdir(mode=0o700)
        with out_root(tmp_path, fs) as root, pytest.raises(OSError, match="Input/output"):
            sync_folder(fs, root.folder.fd)


class TestPublish:
    def test_the_same_bytes_again_are_a_no_op(self, root: PrivateRoot) -> None:
        """E20: publishing twice with the same bytes changes nothing."""
        before = (root.path / "report.json").stat()
        root.publish("report.json", OLD)
        after = (root.path / "report.json").stat()
        assert (before.st_ino, before.st_mtime_ns) == (after.st_ino, after.st_mtime_ns)

    def test_other_bytes_are_refused_and_both_digests_named(self, root: PrivateRoot) -> None:
        """E20: publishing other bytes is `exists_different`, and the first stay."""
        with pytest.raises(FileError) as caught:
            root.publish("report.json", NEW)
        assert caught.value.code is FileCode.EXISTS_DIFFERENT
        assert DIGEST_OF_OLD in str(caught.value)
        assert hashlib.sha256(NEW).hexdigest() in str(caught.value)
        assert root.read("report.json") == OLD
        assert root.names() == ("report.json",)

    @pytest.mark.usefixtures("root")
    def test_the_name_is_made_durable_for_a_publisher_that_died(self, tmp_path: Path) -> None:
        fs = RecordingFs(RealFs())
        with out_root(tmp_path, fs) as watched:
            watched.publish("report.json", OLD)
        assert [step.operation for step in fs.steps] == ["fsync_dir"]

    def test_a_publisher_that_is_faster_wins(self, tmp_path: Path, root: PrivateRoot) -> None:
        for name, theirs, refused in (("same", NEW, False), ("other", OLD, True)):
            fs = FaultFs(
                RealFs(),
                Injection("link", before=partial(root.publish, name, theirs)),
            )
            with out_root(tmp_path, fs) as watched:
                if refused:
                    with pytest.raises(FileError) as caught:
                        watched.publish(name, NEW)
                    assert caught.value.code is FileCode.EXISTS_DIFFERENT
                else:
                    watched.publish(name, NEW)
            assert root.read(name) == theirs
        assert temporaries(tmp_path) == []

    def test_sixteen_publishers_at_once(self, tmp_path: Path) -> None:
        """E21: concurrent publishers end with one content and no temporary."""
        outcomes: list[str] = []
        start = threading.Barrier(16)

        def publish(number: int) -> None:
            with out_root(tmp_path) as root:
                start.wait()
                try:
                    root.publish("f", b"%d" % (number % 4))
                    outcomes.append(f"{number % 4}")
                except FileError as error:
                    outcomes.append(error.code)

        threads = [threading.Thread(target=publish, args=(number,)) for number in range(16)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        with out_root(tmp_path) as root:
            held = root.read("f").decode()
            assert root.names() == ("f",)
        assert sorted(outcomes) == sorted([held] * 4 + ["exists_different"] * 12)

    def test_names_that_collide_or_have_no_form_are_refused(self, root: PrivateRoot) -> None:
        for name, code in (
            ("Report.JSON", FileCode.NAME_COLLISION),
            ("a/b", FileCode.NAME_FORM),
            (".x.0123456789abcdef.tmp", FileCode.NAME_FORM),
        ):
            for write in (root.publish, root.replace):
                with pytest.raises(FileError) as caught:
                    write(name, NEW)
                assert caught.value.code is code
        assert root.names() == ("report.json",)

    def test_a_temporary_that_exists_is_not_touched(self, root: PrivateRoot) -> None:
        leftover = root.path / ".f.0000000000000000.tmp"
        leftover.write_bytes(b"left by a crash")
        folder = root.folder
        blind = type(folder)(folder.fs, folder.fd, "", bytes)
        with pytest.raises(FileError) as caught:
            writes.publish(blind, "f", NEW)
        assert caught.value.code is FileCode.IO_ERROR
        assert leftover.read_bytes() == b"left by a crash"


class TestReplaceAndRemove:
    def test_never_touch_what_they_would_not_have_left_there(self, tmp_path: Path, root: PrivateRoot) -> None:
        outside = tmp_path / "outside"
        outside.write_bytes(b"theirs")
        (root.path / "link").symlink_to(outside)
        (root.path / "dir").mkdir(mode=0o700)
        (root.path / "open").write_bytes(b"theirs")
        (root.path / "open").chmod(0o644)
        os.link(root.path / "report.json", root.path / "second")
        for name, code in (
            ("link", FileCode.FILE_SYMLINK),
            ("dir", FileCode.NOT_REGULAR),
            ("open", FileCode.FILE_MODE),
            ("report.json", FileCode.FILE_LINKS),
        ):
            for attempt in (
                partial(root.replace, name, NEW),
                partial(root.remove, name),
                partial(root.replace_all, {name: NEW}),
                partial(root.replace_all, {name: None}),
            ):
                with pytest.raises(FileError) as caught:
                    attempt()
                assert caught.value.code is code
        assert outside.read_bytes() == b"theirs"
        assert root.names() == ("dir", "link", "open", "report.json", "second")
        assert temporaries(tmp_path) == []

    def test_replace_with_a_leftover_of_a_publish(self, root: PrivateRoot) -> None:
        os.link(root.path / "report.json", root.path / ".report.json.0123456789abcdef.tmp")
        root.replace("report.json", NEW)
        assert root.read("report.json") == NEW

    def test_names_of_several_that_cannot_be_are_refused_before_any_is_touched(
        self, root: PrivateRoot
    ) -> None:
        for name, code in (("..", FileCode.NAME_FORM), ("Report.json", FileCode.NAME_COLLISION)):
            with pytest.raises(FileError) as caught:
                root.replace_all({name: NEW, "report.json": NEW})
            assert caught.value.code is code
            assert caught.value.faults[0].where in {"'..'", name}
            assert content(root.path) == {"report.json": OLD}

    def test_removing_what_is_absent_is_quiet(self, root: PrivateRoot) -> None:
        root.remove("report.json")
        root.remove("report.json")
        assert root.names() == ()


class TestArchive:
    def test_names_the_old_report_by_its_content(self, root: PrivateRoot) -> None:
        """E23: the name in history holds the SHA-256 of the bytes."""
        root.archive("report.json", NEW)
        assert content(root.path) == {"report.json": NEW, f"history/report-{DIGEST_OF_OLD}.json": OLD}

    def test_two_equal_reports_make_one_history_file(self, root: PrivateRoot) -> None:
        """E23: archiving equal bytes twice keeps them once."""
        root.archive("report.json", OLD)
        root.archive("report.json", OLD)
        with root.child("history") as history:
            assert history.names() == (f"report-{DIGEST_OF_OLD}.json",)

    def test_a_first_report_has_no_history(self, root: PrivateRoot) -> None:
        root.archive("other.json", NEW)
        assert root.names() == ("other.json", "report.json")

    def test_a_rerun_may_begin_by_retiring_the_old_one(self, root: PrivateRoot) -> None:
        root.archive("report.json", None)
        assert content(root.path) == {f"history/report-{DIGEST_OF_OLD}.json": OLD}

    def test_a_name_without_extension(self, root: PrivateRoot) -> None:
        root.publish("plain", OLD)
        root.archive("plain", NEW)
        with root.child("history") as history:
            assert history.names() == (f"plain-{DIGEST_OF_OLD}",)


class TestSweep:
    def test_takes_own_temporaries_only(self, root: PrivateRoot) -> None:
        mine = [".a.0123456789abcdef.tmp", ".b.json.ffffffffffffffff.tmp"]
        for name in (*mine, "foreign", ".a.0123.tmp", "a.tmp"):
            (root.path / name).write_bytes(b"")
        (root.path / mine[0]).chmod(0)
        (root.path / ".c.0123456789abcdef.tmp").symlink_to("foreign")
        (root.path / ".d.0123456789abcdef.tmp").mkdir()
        assert root.sweep() == tuple(mine)
        assert root.sweep() == ()
        assert set(root.names()) == {
            ".a.0123.tmp",
            ".c.0123456789abcdef.tmp",
            ".d.0123456789abcdef.tmp",
            "a.tmp",
            "foreign",
            "report.json",
        }

    def test_leaves_those_of_another_user(self, tmp_path: Path, root: PrivateRoot) -> None:
        (root.path / ".a.0123456789abcdef.tmp").write_bytes(b"")

        def foreign(status: os.stat_result) -> os.stat_result:
            return os.stat_result((*status[:4], root.folder.fs.user() + 1, *status[5:]))

        fs = FaultFs(RealFs(), Injection("lstat", about=lambda path: path.endswith(".tmp"), change=foreign))
        with out_root(tmp_path, fs) as watched:
            assert watched.sweep() == ()


class TestNotes:
    """What nothing depends on: few steps, and still never another mode or somebody else's file."""

    def test_are_private_and_whole(self, root: PrivateRoot) -> None:
        writes.note(root.folder, "holder", NEW)
        assert root.read("holder") == NEW
        assert temporaries(root.path) == wrong_modes(root.path) == []

    @pytest.mark.parametrize("mask", [0o000, 0o077, 0o777])
    def test_the_umask_changes_nothing(self, root: PrivateRoot, mask: int) -> None:
        """E16: 0600 under any umask."""
        former = os.umask(mask)
        try:
            writes.note(root.folder, "holder", NEW)
        finally:
            os.umask(former)
        assert wrong_modes(root.path) == []

    @pytest.mark.parametrize("left", [b"", b"half", NEW * 9])
    def test_what_a_killed_holder_left_goes(self, root: PrivateRoot, left: bytes) -> None:
        root.publish("holder", left)
        writes.note(root.folder, "holder", NEW)
        assert root.read("holder") == NEW

    def test_what_is_not_ours_stays(self, root: PrivateRoot, tmp_path: Path) -> None:
        outside = tmp_path / "outside"
        outside.write_bytes(OLD)
        outside.chmod(0o600)
        taken = root.path / "holder"
        cases: dict[FileCode, Callable[[], object]] = {
            FileCode.FILE_SYMLINK: lambda: taken.symlink_to(outside),
            FileCode.FILE_LINKS: lambda: taken.hardlink_to(outside),
            FileCode.NOT_REGULAR: lambda: os.mkfifo(taken, 0o600),
        }
        for code, make in cases.items():
            make()
            before = taken.lstat()
            with pytest.raises(FileError) as caught:
                writes.note(root.folder, "holder", NEW)
            assert caught.value.code is code
            assert taken.lstat().st_ino == before.st_ino
            assert outside.read_bytes() == OLD
            taken.unlink()

    @pytest.mark.parametrize("number", ERRNOS)
    def test_a_failed_write_leaves_nothing(self, tmp_path: Path, number: int) -> None:
        out_root(tmp_path.resolve()).close()
        with out_root(tmp_path.resolve(), FaultFs(RealFs(), Injection("write", number))) as root:
            with pytest.raises(FileError) as caught:
                writes.note(root.folder, "holder", NEW)
            assert caught.value.code is ERRNOS[number]
            assert root.names() == ()
