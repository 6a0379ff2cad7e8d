"""Private folders of one session."""

from __future__ import annotations

import errno
import os
import stat
import threading
from dataclasses import replace
from pathlib import Path

import pytest

from skill_effectiveness.evidence.faults import FileCode, FileError, RootError
from skill_effectiveness.evidence.fsdoubles import FaultFs, Injection
from skill_effectiveness.evidence.surroundings import Surroundings
from skill_effectiveness.execution import Limits, SessionFolders
from tests.support.processes import call

REAL = Surroundings.real()
NAMES = ("home", "config", "data", "tmp", "work")


def around(base: Path) -> Surroundings:
    return replace(REAL, environ={"TMPDIR": str(base)})


def five(session: SessionFolders) -> dict[str, Path]:
    return {name: getattr(session, name) for name in NAMES}


class TestTheFolders:
    @pytest.mark.parametrize("umask", [0o000, 0o022, 0o077, 0o777])
    def test_are_private_whatever_the_umask(self, tmp_path: Path, umask: int) -> None:
        """P3: 0700 and ours."""
        before = os.umask(umask)
        try:
            with SessionFolders(around(tmp_path)) as session:
                for path in (session.parent, *five(session).values()):
                    status = path.lstat()
                    assert stat.S_ISDIR(status.st_mode)
                    assert (stat.S_IMODE(status.st_mode), status.st_uid) == (0o700, os.geteuid())
        finally:
            os.umask(before)

    def test_lie_beside_each_other(self, tmp_path: Path) -> None:
        """P3: the temporary folder is no ancestor of a configuration folder, or of any other."""
        with SessionFolders(around(tmp_path)) as session:
            assert {path.parent for path in five(session).values()} == {session.parent}
            assert session.parent.parent == tmp_path.resolve()
            assert all(session.tmp not in path.parents for path in five(session).values())
            assert sorted(path.name for path in session.parent.iterdir()) == sorted(
                (*NAMES, "session-owner.json")
            )

    def test_are_new_for_every_session(self, tmp_path: Path) -> None:
        """P3: every session has its own."""
        with SessionFolders(around(tmp_path)) as one, SessionFolders(around(tmp_path)) as other:
            assert one.parent != other.parent

    def test_lie_where_they_are_asked_for(self, tmp_path: Path) -> None:
        (tmp_path / "base").mkdir(mode=0o700)
        with SessionFolders(around(tmp_path), tmp_path / "base") as session:
            assert session.parent.parent == (tmp_path / "base").resolve()

    def test_lie_in_the_system_folder_by_default(self) -> None:
        for environ in ({}, {"TMPDIR": ""}):
            with SessionFolders(replace(REAL, environ=environ)) as session:
                assert session.parent.parent == Path("/tmp").resolve()  # noqa: S108 - the default
            assert not session.parent.exists()

    def test_are_reached_through_links_once(self, tmp_path: Path) -> None:
        (tmp_path / "real").mkdir(mode=0o700)
        (tmp_path / "link").symlink_to("real")
        with SessionFolders(around(tmp_path / "link")) as session:
            assert session.parent.parent == (tmp_path / "real").resolve()

    def test_exist_inside_the_block_only(self, tmp_path: Path) -> None:
        session = SessionFolders(around(tmp_path))
        with pytest.raises(ValueError, match="inside"):
            _ = session.home


class TestTheEnd:
    def test_everything_is_gone(self, tmp_path: Path) -> None:
        """P3: removed afterwards."""
        with SessionFolders(around(tmp_path)) as session:
            for path in five(session).values():
                (path / "deep").mkdir()
                (path / "deep" / "file").write_bytes(b"x")
        assert list(tmp_path.iterdir()) == []

    def test_also_after_an_exception(self, tmp_path: Path) -> None:
        """P3: whatever happened between."""
        with pytest.raises(KeyboardInterrupt), SessionFolders(around(tmp_path)):
            raise KeyboardInterrupt
        assert list(tmp_path.iterdir()) == []

    def test_also_what_a_program_made_hard_to_remove(self, tmp_path: Path) -> None:
        outside = tmp_path / "outside"
        outside.mkdir()
        (outside / "kept").write_bytes(b"kept")
        base = tmp_path / "base"
        base.mkdir(mode=0o700)
        with SessionFolders(around(base)) as session:
            script = (
                "mkdir -p closed/inner && touch closed/inner/file && chmod 0 closed/inner closed; "
                f"ln -s {outside} link; ln -s {outside}/kept file; mkfifo fifo"
            )
            assert call(["/bin/sh", "-c", script], cwd=session.work, limits=Limits(5)).exit_code == 0
        assert list(base.iterdir()) == []
        assert (outside / "kept").read_bytes() == b"kept"

    def test_a_folder_that_is_gone_already(self, tmp_path: Path) -> None:
        with SessionFolders(around(tmp_path)) as session:
            for path in five(session).values():
                path.rmdir()
            (session.parent / "session-owner.json").unlink()
            session.parent.rmdir()
        assert list(tmp_path.iterdir()) == []

    def test_what_cannot_be_removed_is_said(self, tmp_path: Path) -> None:
        broken = replace(around(tmp_path), fs=FaultFs(REAL.fs, Injection("rmdir", errno.EIO, nth=0)))
        with pytest.raises(FileError) as caught, SessionFolders(broken):
            pass
        assert caught.value.code is FileCode.IO_ERROR

    def test_but_does_not_hide_an_earlier_fault(self, tmp_path: Path) -> None:
        broken = replace(around(tmp_path), fs=FaultFs(REAL.fs, Injection("rmdir", errno.EIO, nth=0)))
        with pytest.raises(LookupError) as caught, SessionFolders(broken):
            raise LookupError
        assert any("could not be removed" in note for note in caught.value.__notes__)


class TestNoFolders:
    def test_where_the_base_is_missing(self, tmp_path: Path) -> None:
        with pytest.raises(FileError) as caught, SessionFolders(around(tmp_path / "none")):
            pass
        assert caught.value.code is FileCode.MISSING

    def test_where_others_may_change_them(self, tmp_path: Path) -> None:
        """P3: not below a folder in which others can replace ours."""
        (tmp_path / "open").mkdir()
        (tmp_path / "open").chmod(0o777)
        with pytest.raises(RootError), SessionFolders(around(tmp_path / "open")):
            pass
        assert list((tmp_path / "open").iterdir()) == []

    @pytest.mark.parametrize("nth", [1, 2, 4, 6])
    def test_a_fault_on_the_way_leaves_nothing(self, tmp_path: Path, nth: int) -> None:
        broken = replace(around(tmp_path), fs=FaultFs(REAL.fs, Injection("mkdir", errno.ENOSPC, nth=nth)))
        with pytest.raises(FileError), SessionFolders(broken):
            pass
        assert list(tmp_path.iterdir()) == []


class TestALogin:
    def test_one_file_is_visible_and_stays(self, tmp_path: Path) -> None:
        """P3: that file under its name, nothing beside it."""
        user = tmp_path / "user"
        user.mkdir()
        (user / "auth.json").write_text("secret")
        (user / "config.toml").write_text("setting")
        with SessionFolders(around(tmp_path)) as session:
            link = session.link_login("auth.json", user / "auth.json")
            assert link == session.config / "auth.json"
            assert link.is_symlink()
            assert link.read_text() == "secret"
            assert [path.name for path in session.config.iterdir()] == ["auth.json"]
        assert (user / "auth.json").read_text() == "secret"

    def test_a_program_may_renew_it(self, tmp_path: Path) -> None:
        (tmp_path / "auth.json").write_text("old")
        with SessionFolders(around(tmp_path)) as session:
            session.link_login("auth.json", tmp_path / "auth.json").write_text("new")
        assert (tmp_path / "auth.json").read_text() == "new"

    @pytest.mark.parametrize("name", ["", ".", "..", "a/b", "/abs", "a\nb"])
    def test_a_name_is_one_segment(self, tmp_path: Path, name: str) -> None:
        (tmp_path / "auth.json").touch()
        with SessionFolders(around(tmp_path)) as session, pytest.raises(FileError) as caught:
            session.link_login(name, tmp_path / "auth.json")
        assert caught.value.code is FileCode.NAME_FORM

    def test_a_source_is_a_file(self, tmp_path: Path) -> None:
        os.mkfifo(tmp_path / "fifo")
        with SessionFolders(around(tmp_path)) as session:
            for source, code in (
                (tmp_path / "none", FileCode.MISSING),
                (tmp_path, FileCode.NOT_REGULAR),
                (tmp_path / "fifo", FileCode.NOT_REGULAR),
            ):
                with pytest.raises(FileError) as caught:
                    session.link_login("auth.json", source)
                assert caught.value.code is code

    def test_a_folder_can_be_shown_too(self, tmp_path: Path) -> None:
        """P3: where a program keeps its login in one; what it renews there stays."""
        (tmp_path / "oauth").mkdir()
        with SessionFolders(around(tmp_path)) as session:
            link = session.link_login("oauth", tmp_path / "oauth", folder=True)
            (link / "token").write_text("new")
            with pytest.raises(FileError) as caught:
                session.link_login("other", tmp_path / "oauth" / "token", folder=True)
            assert caught.value.code is FileCode.NOT_REGULAR
        assert (tmp_path / "oauth" / "token").read_text() == "new"

    def test_it_can_be_shown_deeper(self, tmp_path: Path) -> None:
        """P3: where the program looks for it, in folders that are private too."""
        (tmp_path / "auth.json").write_text("secret")
        with SessionFolders(around(tmp_path)) as session:
            for name in ("auth.json", "again.json"):
                link = session.link_login(name, tmp_path / "auth.json", below=("data", "program"))
                assert link == session.data / "program" / name
                assert link.read_text() == "secret"
            assert stat.S_IMODE((session.data / "program").stat().st_mode) == 0o700

    @pytest.mark.parametrize("below", [("..",), ("data", "../tmp"), ("",), ("data", "/etc")])
    def test_never_outside_the_session(self, tmp_path: Path, below: tuple[str, ...]) -> None:
        (tmp_path / "auth.json").touch()
        with SessionFolders(around(tmp_path)) as session, pytest.raises(FileError) as caught:
            session.link_login("auth.json", tmp_path / "auth.json", below=below)
        assert caught.value.code is FileCode.NAME_FORM

    def test_a_name_is_given_once(self, tmp_path: Path) -> None:
        (tmp_path / "one").touch()
        with SessionFolders(around(tmp_path)) as session:
            session.link_login("auth.json", tmp_path / "one")
            with pytest.raises(FileError) as caught:
                session.link_login("auth.json", tmp_path / "one")
            assert caught.value.code is FileCode.EXISTS_DIFFERENT


class TestManySessions:
    def test_do_not_meet(self, tmp_path: Path) -> None:
        """F41: each has its own, at the same time too."""
        seen: list[Path] = []

        def one() -> None:
            with SessionFolders(around(tmp_path)) as session:
                seen.append(session.parent)

        threads = [threading.Thread(target=one) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(set(seen)) == 8
        assert list(tmp_path.iterdir()) == []


class TestAFileOfOurs:
    def test_is_private_and_lies_in_data(self, tmp_path: Path) -> None:
        """P3: 0600, whatever the umask."""
        before = os.umask(0)
        try:
            with SessionFolders(around(tmp_path)) as session:
                path = session.publish("schema.json", b"{}")
                assert path == session.data / "schema.json"
                assert path.read_bytes() == b"{}"
                assert stat.S_IMODE(path.lstat().st_mode) == 0o600
        finally:
            os.umask(before)
        assert list(tmp_path.iterdir()) == []

    def test_is_written_once(self, tmp_path: Path) -> None:
        with SessionFolders(around(tmp_path)) as session:
            session.publish("schema.json", b"{}")
            with pytest.raises(FileError) as caught:
                session.publish("schema.json", b"[]")
        assert caught.value.code is FileCode.EXISTS_DIFFERENT

    def test_has_a_name_of_one_segment(self, tmp_path: Path) -> None:
        with SessionFolders(around(tmp_path)) as session, pytest.raises(FileError) as caught:
            session.publish("../schema.json", b"{}")
        assert caught.value.code is FileCode.NAME_FORM

    def test_is_not_written_through_a_link(self, tmp_path: Path) -> None:
        """P3: also when the folder itself was exchanged meanwhile."""
        (tmp_path / "elsewhere").mkdir(mode=0o700)
        with SessionFolders(around(tmp_path)) as session:
            session.data.rmdir()
            session.data.symlink_to(tmp_path / "elsewhere")
            with pytest.raises(RootError):
                session.publish("schema.json", b"{}")
        assert list((tmp_path / "elsewhere").iterdir()) == []

    def test_exists_inside_the_block_only(self, tmp_path: Path) -> None:
        session = SessionFolders(around(tmp_path))
        with pytest.raises(ValueError, match="inside"):
            session.publish("schema.json", b"{}")


def test_no_descriptor_stays_open(tmp_path: Path) -> None:
    fs = FaultFs(REAL.fs)
    with SessionFolders(replace(around(tmp_path), fs=fs)) as session:
        session.publish("schema.json", b"{}")
    assert fs.open_paths == []
