"""A private root and the folders below it."""

from __future__ import annotations

import errno
import os
import stat
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from skill_effectiveness.evidence.faults import FileCode, FileError, RootCode, RootError
from skill_effectiveness.evidence.fsdoubles import FaultFs, Injection
from skill_effectiveness.evidence.fsops import RealFs
from skill_effectiveness.evidence.root import PrivateRoot, RootKind, state_path
from tests.support.private import child_output, out_root, surroundings

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def root(tmp_path: Path) -> Iterator[PrivateRoot]:
    with out_root(tmp_path.resolve()) as opened:
        yield opened


def refused_child(root: PrivateRoot, *segments: str, create: bool = False) -> tuple[RootCode, str]:
    with pytest.raises(RootError) as caught:
        root.child(*segments, create=create)
    fault = caught.value.faults[0]
    assert isinstance(fault.code, RootCode)
    return fault.code, fault.where


class TestRoot:
    def test_holds_one_descriptor_until_it_is_closed(self, tmp_path: Path) -> None:
        fs = FaultFs(RealFs())
        with out_root(tmp_path.resolve(), fs) as root:
            assert fs.open_paths == [str(root.path)]
            root.close()
            assert fs.open_paths == []
        assert fs.open_paths == []

    def test_cannot_be_used_after_it_was_closed(self, root: PrivateRoot) -> None:
        root.close()
        for use in (
            lambda: root.read("f"),
            lambda: root.publish("f", b""),
            root.names,
            lambda: root.child("a"),
        ):
            with pytest.raises(ValueError, match="closed"):
                use()

    def test_says_where_it_is_and_what_for(self, root: PrivateRoot, tmp_path: Path) -> None:
        assert root.path == tmp_path.resolve() / "root"
        assert root.kind is RootKind.OUT
        assert root.around.host == "host"

    def test_goes_on_when_its_path_is_taken_over(self, root: PrivateRoot, tmp_path: Path) -> None:
        """E14: after opening, everything happens in the folder that was checked, whatever its path leads to
        now.
        """
        root.path.rename(tmp_path / "moved")
        (tmp_path / "root").symlink_to("/etc")
        root.publish("f", b"x")
        assert (tmp_path / "moved" / "f").read_bytes() == b"x"

    def test_says_whether_its_path_still_leads_to_it(self, root: PrivateRoot, tmp_path: Path) -> None:
        """E19: by the checks that opening it made, a folder below included."""
        with root.child("below", create=True) as below:
            for place in (root, below):
                place.demand_in_place()
            root.path.chmod(0o755)
            self.is_out_of_place(root, RootCode.ROOT_MODE)
            root.path.chmod(0o700)
            moved = root.path.rename(tmp_path.resolve() / "moved")
            self.is_out_of_place(root, RootCode.ROOT_MISSING)
            self.is_out_of_place(below, RootCode.ROOT_MISSING)
            root.path.mkdir(mode=0o700)
            self.is_out_of_place(root, RootCode.ROOT_MISSING)
            root.path.rmdir()
            root.path.symlink_to(moved)
            self.is_out_of_place(root, RootCode.ROOT_SYMLINK)
            # The one link that may be followed is one that only the system can have made.
            self.is_out_of_place(below, RootCode.ROOT_SYMLINK, RootCode.ROOT_MISSING)

    @staticmethod
    def is_out_of_place(root: PrivateRoot, *codes: RootCode) -> None:
        before = os.listdir("/proc/self/fd")  # noqa: PTH208 - numbers, not paths
        with pytest.raises(RootError) as caught:
            root.demand_in_place()
        assert caught.value.code in codes
        assert os.listdir("/proc/self/fd") == before  # noqa: PTH208 - numbers, not paths

    def test_lists_everything_and_knows_what_is_there(self, root: PrivateRoot) -> None:
        root.publish("b", b"")
        (root.path / "a").symlink_to("nowhere")
        assert root.names() == ("a", "b")
        assert (root.exists("a"), root.exists("b"), root.exists("c")) == (True, True, False)

    def test_every_operation_takes_one_segment_only(self, root: PrivateRoot) -> None:
        for use in (
            lambda: root.read("../f"),
            lambda: root.exists("a/b"),
            lambda: root.remove(".."),
            lambda: root.replace("a/b", b""),
            lambda: root.publish("/f", b""),
            lambda: root.archive("../f", b""),
            lambda: root.child("..", create=True),
            lambda: root.child("a/b", create=True),
            lambda: root.child("a", "", create=True),
        ):
            with pytest.raises(FileError) as caught:
                use()
            assert caught.value.code is FileCode.NAME_FORM


class TestChild:
    def test_is_made_private_and_durable(self, root: PrivateRoot) -> None:
        with root.child("a", "b", create=True) as child:
            assert child.path == root.path / "a" / "b"
            child.publish("f", b"x")
        assert [stat.S_IMODE((root.path / path).stat().st_mode) for path in ("a", "a/b")] == [0o700, 0o700]
        with root.child("a") as a, a.child("b") as b:
            assert b.read("f") == b"x"

    def test_closes_what_it_passed_through(self, tmp_path: Path) -> None:
        fs = FaultFs(RealFs())
        with out_root(tmp_path.resolve(), fs) as root:
            with root.child("a", "b", "c", create=True) as child:
                assert fs.open_paths == [str(root.path), str(child.path)]
            assert fs.open_paths == [str(root.path)]

    def test_that_is_missing(self, root: PrivateRoot) -> None:
        assert refused_child(root, "a") == (RootCode.ROOT_MISSING, "a")
        root.child("a", create=True).close()
        assert refused_child(root, "a", "b") == (RootCode.ROOT_MISSING, "a/b")

    def test_passes_the_same_checks(self, tmp_path: Path, root: PrivateRoot) -> None:
        """E13 E17: a folder below is no link, a folder, ours and exactly 0700, and keeps what is wrong with
        it.
        """
        (root.path / "real").mkdir(mode=0o700)
        (root.path / "link").symlink_to("real")
        (root.path / "file").write_bytes(b"")
        (root.path / "open").mkdir()
        (root.path / "open").chmod(0o755)
        for name, code in (
            ("link", RootCode.ROOT_SYMLINK),
            ("file", RootCode.ROOT_FORM),
            ("open", RootCode.ROOT_MODE),
        ):
            assert refused_child(root, name, create=True) == (code, name)
            assert refused_child(root, name, "below", create=True) == (code, name)
        assert stat.S_IMODE((root.path / "open").stat().st_mode) == 0o755

        def foreign(status: os.stat_result) -> os.stat_result:
            return os.stat_result((*status[:4], root.folder.fs.user() + 1, *status[5:]))

        fs = FaultFs(RealFs(), Injection("fstat", about=lambda path: path.endswith("/real"), change=foreign))
        with out_root(tmp_path.resolve(), fs) as watched:
            assert refused_child(watched, "real") == (RootCode.ROOT_OWNER, "real")
            assert fs.open_paths == [str(watched.path)]

    def test_swapped_for_a_link_is_not_followed(self, tmp_path: Path, root: PrivateRoot) -> None:
        """E14: a folder below that is swapped for a link between check and use is refused."""
        (root.path / "a").mkdir(mode=0o700)

        def swap() -> None:
            (root.path / "a").rmdir()
            (root.path / "a").symlink_to("/etc")

        fs = FaultFs(RealFs(), Injection("open_dir", about=lambda path: path.endswith("/a"), before=swap))
        with out_root(tmp_path.resolve(), fs) as watched:
            assert refused_child(watched, "a") == (RootCode.ROOT_SYMLINK, "a")

    def test_swapped_after_it_was_made_is_not_followed(self, tmp_path: Path, root: PrivateRoot) -> None:
        """E14: also where the first look found nothing."""

        def swap() -> None:
            (root.path / "a").rmdir()
            (root.path / "a").symlink_to("/etc")

        fs = FaultFs(
            RealFs(), Injection("open_dir", nth=2, about=lambda path: path.endswith("/a"), before=swap)
        )
        with out_root(tmp_path.resolve(), fs) as watched:
            assert refused_child(watched, "a", create=True) == (RootCode.ROOT_SYMLINK, "a")
            assert fs.open_paths == [str(watched.path)]

    @pytest.mark.parametrize(
        ("number", "code"), [(errno.EIO, FileCode.IO_ERROR), (errno.EMFILE, FileCode.IO_ERROR)]
    )
    def test_an_error_that_says_nothing_of_it_is_told_at_once(
        self, tmp_path: Path, root: PrivateRoot, number: int, code: FileCode
    ) -> None:
        """E22: a second try would hide it."""
        (root.path / "a").mkdir(mode=0o700)
        about = Injection("open_dir", number, about=lambda path: path.endswith("/a"))
        opened = Injection("open_dir", nth=0, about=lambda path: path.endswith("/a"))
        with out_root(tmp_path.resolve(), FaultFs(RealFs(), about, opened)) as watched:
            with pytest.raises(FileError) as caught:
                watched.child("a", create=True)
            assert caught.value.code is code
            assert opened.hits == 1

    def test_of_a_store_is_private_although_the_store_need_not_be(self, tmp_path: Path) -> None:
        (tmp_path / "store").mkdir()
        (tmp_path / "store").chmod(0o755)
        with PrivateRoot.open(
            tmp_path / "store", RootKind.STORE, around=surroundings(), checkout=None
        ) as store:
            with store.child("trial", create=True) as trial:
                trial.publish("f", b"")
            (store.path / "trial").chmod(0o755)
            assert refused_child(store, "trial") == (RootCode.ROOT_MODE, "trial")

    def test_names_collide_after_case_folding(self, root: PrivateRoot) -> None:
        root.child("Trial", create=True).close()
        with pytest.raises(FileError) as caught:
            root.child("trial", create=True)
        assert caught.value.code is FileCode.NAME_COLLISION

    def test_faults_below_are_named_from_the_root(self, root: PrivateRoot) -> None:
        """E58: `where` is relative to the root, never an absolute path."""
        with root.child("a", "b", create=True) as child, pytest.raises(FileError) as caught:
            child.read("f")
        assert caught.value.faults[0].where == "a/b/f"

    def test_needs_a_name(self, root: PrivateRoot) -> None:
        with pytest.raises(ValueError, match="name"):
            root.child()


class TestStatePath:
    def test_is_below_the_state_home(self) -> None:
        around = surroundings(environ={"XDG_STATE_HOME": "/state", "HOME": "/home/me"})
        assert state_path(around) == Path("/state/skill-effectiveness")

    @pytest.mark.parametrize("relative", ["", "state", "./state"])
    def test_is_below_home_when_the_state_home_is_not_absolute(self, relative: str) -> None:
        around = surroundings(environ={"XDG_STATE_HOME": relative, "HOME": "/home/me"})
        assert state_path(around) == Path("/home/me/.local/state/skill-effectiveness")

    def test_falls_back_on_the_password_database(self) -> None:
        class Known(RealFs):
            def user_home(self) -> str:
                return "/home/known"

        assert state_path(surroundings(Known())) == Path("/home/known/.local/state/skill-effectiveness")

    def test_needs_some_home(self) -> None:
        class Unknown(RealFs):
            def user_home(self) -> str:
                return ""

        with pytest.raises(RootError) as caught:
            state_path(surroundings(Unknown(), environ={"HOME": "relative"}))
        assert caught.value.code is RootCode.ROOT_FORM


def test_loads_with_the_standard_library_alone() -> None:
    """E59: importing strict, canonical, root, lock and pair loads no library; they come on first use."""
    code = (
        "import sys\n"
        "before = set(sys.modules)\n"
        "import skill_effectiveness.evidence.root, skill_effectiveness.evidence.canonical\n"
        "import skill_effectiveness.evidence.strict, skill_effectiveness.evidence.lock\n"
        "import skill_effectiveness.evidence.pair\n"
        "tops = {name.partition('.')[0] for name in set(sys.modules) - before}\n"
        "print(sorted(tops - sys.stdlib_module_names))\n"
    )
    assert child_output(code) == "['skill_effectiveness']"
    assert sys.version_info >= (3, 11)
