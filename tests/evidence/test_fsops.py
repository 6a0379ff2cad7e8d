"""File operations on the real kernel, and the three that serve places outside private roots."""

from __future__ import annotations

import errno
import os
import socket
import stat
from typing import TYPE_CHECKING

import pytest

from skill_effectiveness.evidence.faults import FileCode, FileError
from skill_effectiveness.evidence.fsdoubles import FaultFs, Injection
from skill_effectiveness.evidence.fsops import (
    Place,
    RealFs,
    _place,
    _unescaped,
    read_public,
    remove_tree,
    write_all,
    write_new_public,
)
from tests.support.private import AS_NOBODY, child_output, folder_of_nobody

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path.resolve()


class OneByteFs(RealFs):
    """Takes one byte per write."""

    def write(self, fd: int, data: bytes | memoryview) -> int:
        return super().write(fd, bytes(data[:1]))


class TestRealFs:
    def test_every_descriptor_is_close_on_exec(self, folder: Path) -> None:
        fs = RealFs()
        (folder / "f").write_bytes(b"x")
        parent = fs.open_dir(None, str(folder))
        opened = [
            parent,
            fs.open_dir(parent, ".", search=True),
            fs.open_read(parent, "f"),
            fs.open_update(parent, "f"),
            fs.create_exclusive(parent, "new"),
        ]
        assert [os.get_inheritable(fd) for fd in opened] == [False] * 5
        for fd in opened:
            fs.close(fd)

    def test_no_opening_follows_a_final_link(self, folder: Path) -> None:
        fs = RealFs()
        (folder / "real").mkdir()
        (folder / "file").write_bytes(b"")
        (folder / "to-dir").symlink_to("real")
        (folder / "to-file").symlink_to("file")
        parent = fs.open_dir(None, str(folder))
        for opening, name in (
            (fs.open_dir, "to-dir"),
            (fs.open_read, "to-file"),
            (fs.open_update, "to-file"),
            (fs.create_exclusive, "to-file"),
        ):
            with pytest.raises(OSError, match=r".") as caught:
                opening(parent, name)
            assert caught.value.errno in {errno.ELOOP, errno.ENOTDIR, errno.EEXIST}
        with pytest.raises(NotADirectoryError):
            fs.open_dir(parent, "to-dir", search=True)
        fs.close(parent)

    def test_short_writes_continue(self, folder: Path) -> None:
        fs = OneByteFs()
        fd = fs.create_exclusive(None, str(folder / "f"))
        write_all(fs, fd, b"abcdefgh")
        fs.close(fd)
        assert (folder / "f").read_bytes() == b"abcdefgh"

    def test_folder_mode_changes_without_following(self, folder: Path) -> None:
        (folder / "target").mkdir(mode=0o755)
        (folder / "link").symlink_to("target")
        (folder / "closed").mkdir(mode=0o000)
        fs = RealFs()
        parent = fs.open_dir(None, str(folder))
        with pytest.raises(OSError, match=r"."):
            fs.chmod_dir(parent, "link", 0o700)
        fs.chmod_dir(parent, "closed", 0o700)
        fs.close(parent)
        assert stat.S_IMODE((folder / "target").stat().st_mode) == 0o755
        assert stat.S_IMODE((folder / "closed").stat().st_mode) == 0o700

    def test_the_kernel_says_who_we_are(self) -> None:
        fs = RealFs()
        assert fs.user() == os.geteuid()
        assert fs.process_start(os.getpid()) == fs.process_start(os.getpid()) != ""
        assert fs.process_start(2**31 - 1) == ""
        assert len(fs.boot_id()) == 36

    def test_a_place_is_known_for_any_open_folder(self, folder: Path) -> None:
        fs = RealFs()
        (folder / "with blank").mkdir()
        outer = fs.open_dir(None, str(folder))
        inner = fs.open_dir(outer, "with blank", search=True)
        above, below = fs.place(outer), fs.place(inner)
        assert above is not None
        assert below == Place(above.device, f"{above.path}/with blank")
        fs.close(inner)
        fs.close(outer)


class TestPlace:
    def test_is_the_part_shown_plus_what_lies_below_the_mount(self) -> None:
        assert _place("8:1", "/", "/", "/home/me") == Place("8:1", "/home/me")
        assert _place("8:1", "/repo/sub", "/mnt", "/mnt/deep/er") == Place("8:1", "/repo/sub/deep/er")
        assert _place("8:1", "/repo/sub", "/mnt", "/mnt") == Place("8:1", "/repo/sub")
        assert _place("8:1", "/", "/", "/") == Place("8:1", "/")

    def test_is_unknown_when_the_mount_is_not_above(self) -> None:
        assert _place("8:1", "/", "/mnt", "/mnt2/x") is None

    def test_escapes_of_mountinfo_are_resolved(self) -> None:
        assert _unescaped(r"/a\040b\011c\134d") == "/a b\tc\\d"


class TestReadPublic:
    def test_reads_a_file_of_any_mode(self, folder: Path) -> None:
        (folder / "f").write_bytes(b"frozen")
        (folder / "f").chmod(0o644)
        assert read_public(RealFs(), folder / "f", 6) == b"frozen"

    def test_refuses_what_is_no_regular_file_at_once(self, folder: Path) -> None:
        (folder / "file").write_bytes(b"")
        (folder / "link").symlink_to("file")
        (folder / "dir").mkdir()
        os.mkfifo(folder / "fifo")
        with socket.socket(socket.AF_UNIX) as unix:
            unix.bind(str(folder / "s"))
        for name, code in (
            ("link", FileCode.FILE_SYMLINK),
            ("dir", FileCode.NOT_REGULAR),
            ("fifo", FileCode.NOT_REGULAR),
            ("s", FileCode.NOT_REGULAR),
            ("none", FileCode.MISSING),
        ):
            with pytest.raises(FileError) as caught:
                read_public(RealFs(), folder / name, 10)
            assert (caught.value.code, caught.value.faults[0].where) == (code, name)

    def test_refuses_more_than_the_limit(self, folder: Path) -> None:
        (folder / "f").write_bytes(b"1234567")
        with pytest.raises(FileError) as caught:
            read_public(RealFs(), folder / "f", 6)
        assert caught.value.code is FileCode.FILE_SIZE

    def test_judges_what_was_opened_not_only_the_name(self, folder: Path) -> None:
        (folder / "f").write_bytes(b"")
        os.mkfifo(folder / "fifo")

        def swap() -> None:
            (folder / "fifo").rename(folder / "f")

        with pytest.raises(FileError) as caught:
            read_public(FaultFs(RealFs(), Injection("open_read", before=swap)), folder / "f", 10)
        assert caught.value.code is FileCode.NOT_REGULAR

    def test_says_when_reading_is_not_allowed(self, folder: Path) -> None:
        (folder / "f").write_bytes(b"")
        with pytest.raises(FileError) as caught:
            read_public(FaultFs(RealFs(), Injection("open_read", errno.EACCES)), folder / "f", 10)
        assert caught.value.code is FileCode.NOT_READABLE


class TestWriteNewPublic:
    @pytest.mark.parametrize(("mask", "mode"), [(0o022, 0o644), (0o077, 0o600), (0o000, 0o644)])
    def test_the_umask_decides_who_reads_it(self, folder: Path, mask: int, mode: int) -> None:
        former = os.umask(mask)
        try:
            write_new_public(RealFs(), folder / "out", b"text")
        finally:
            os.umask(former)
        assert (folder / "out").read_bytes() == b"text"
        assert stat.S_IMODE((folder / "out").stat().st_mode) == mode

    def test_never_overwrites_and_never_follows(self, folder: Path) -> None:
        (folder / "taken").write_bytes(b"theirs")
        (folder / "link").symlink_to("nowhere")
        for name in ("taken", "link"):
            with pytest.raises(FileError) as caught:
                write_new_public(RealFs(), folder / name, b"theirs")
            assert caught.value.code is FileCode.EXISTS_DIFFERENT
        assert (folder / "taken").read_bytes() == b"theirs"
        assert not (folder / "nowhere").exists()

    @pytest.mark.parametrize("operation", ["write", "fsync"])
    def test_leaves_nothing_behind_on_a_fault(self, folder: Path, operation: str) -> None:
        with pytest.raises(FileError) as caught:
            write_new_public(FaultFs(RealFs(), Injection(operation, errno.ENOSPC)), folder / "out", b"x")
        assert caught.value.code is FileCode.NO_SPACE
        assert list(folder.iterdir()) == []

    def test_needs_its_folder(self, folder: Path) -> None:
        with pytest.raises(FileError) as caught:
            write_new_public(RealFs(), folder / "none" / "out", b"x")
        assert caught.value.code is FileCode.MISSING


class TestRemoveTree:
    def test_removes_links_without_following_them(self, folder: Path) -> None:
        (folder / "kept").mkdir()
        (folder / "kept" / "f").write_bytes(b"kept")
        tree = folder / "tree"
        (tree / "sub").mkdir(parents=True)
        (tree / "sub" / "up").symlink_to("../../kept")
        (tree / "to-file").symlink_to(folder / "kept" / "f")
        os.mkfifo(tree / "fifo")
        remove_tree(RealFs(), tree)
        assert not tree.exists()
        assert (folder / "kept" / "f").read_bytes() == b"kept"

    def test_is_quiet_when_nothing_is_there(self, folder: Path) -> None:
        remove_tree(RealFs(), folder / "none")
        remove_tree(RealFs(), folder / "none" / "deeper")

    def test_removes_a_link_in_the_place_of_the_folder(self, folder: Path) -> None:
        (folder / "kept").mkdir()
        (folder / "tree").symlink_to("kept")
        remove_tree(RealFs(), folder / "tree")
        assert [path.name for path in folder.iterdir()] == ["kept"]

    def test_a_swapped_folder_is_not_followed(self, folder: Path) -> None:
        (folder / "kept").mkdir()
        (folder / "kept" / "f").write_bytes(b"kept")
        (folder / "tree" / "sub").mkdir(parents=True)

        def swap() -> None:
            (folder / "tree" / "sub").rmdir()
            (folder / "tree" / "sub").symlink_to(folder / "kept")

        fs = FaultFs(RealFs(), Injection("open_dir", about=lambda path: path.endswith("/sub"), before=swap))
        with pytest.raises(FileError) as caught:
            remove_tree(fs, folder / "tree")
        assert caught.value.code is FileCode.NOT_REGULAR
        assert (folder / "kept" / "f").read_bytes() == b"kept"

    def test_deeper_than_the_limit_of_descriptors_and_of_recursion(self, folder: Path) -> None:
        fs = RealFs()
        (folder / "tree").mkdir()
        fd = fs.open_dir(None, str(folder / "tree"))
        for _ in range(1500):
            fs.mkdir(fd, "d")
            below = fs.open_dir(fd, "d")
            fs.close(fd)
            fd = below
        fs.close(fs.create_exclusive(fd, "bottom"))
        fs.close(fd)
        watching = FaultFs(fs)
        remove_tree(watching, folder / "tree")
        assert not (folder / "tree").exists()
        assert watching.open_paths == []

    def test_names_of_the_lifting_itself_are_no_obstacle(self, folder: Path) -> None:
        tree = folder / "tree"
        for name in ("lifted-0", "lifted-1/lifted-0/x", "a/lifted-1/y"):
            (tree / name).mkdir(parents=True)
        (tree / "a" / "lifted-2").write_bytes(b"")
        remove_tree(RealFs(), tree)
        assert not tree.exists()

    def test_names_that_are_not_utf8(self, folder: Path) -> None:
        (folder / "tree").mkdir()
        (folder / "tree" / "\udcff\udcfe").mkdir()
        remove_tree(RealFs(), folder / "tree")
        assert not (folder / "tree").exists()

    def test_says_what_stayed(self, folder: Path) -> None:
        (folder / "tree").mkdir()
        (folder / "tree" / "f").write_bytes(b"")
        with pytest.raises(FileError) as caught:
            remove_tree(FaultFs(RealFs(), Injection("unlink", errno.EPERM)), folder / "tree")
        assert (caught.value.code, caught.value.faults[0].where) == (FileCode.NOT_WRITABLE, "tree")

    def test_folders_without_permissions_of_an_ordinary_user(self) -> None:
        code = AS_NOBODY + (
            "import sys, pathlib\n"
            "from skill_effectiveness.evidence.fsops import RealFs, remove_tree\n"
            "become_nobody()\n"
            "tree = pathlib.Path(sys.argv[1]) / 'tree'\n"
            "(tree / 'a' / 'b' / 'c').mkdir(parents=True)\n"
            "(tree / 'a' / 'b' / 'f').write_bytes(b'')\n"
            "(tree / 'a' / 'b').chmod(0)\n"
            "(tree / 'a').chmod(0)\n"
            "tree.chmod(0o500)\n"
            "remove_tree(RealFs(), tree)\n"
            "print(tree.exists(), os.geteuid() != 0)\n"
        )
        with folder_of_nobody() as folder:
            assert child_output(code, folder) == "False True"
