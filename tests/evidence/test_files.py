"""Which files of a private folder may be read."""

from __future__ import annotations

import errno
import os
import socket
from typing import TYPE_CHECKING

import pytest

from skill_effectiveness.evidence.faults import FileCode, FileError
from skill_effectiveness.evidence.fsdoubles import FaultFs, Injection
from skill_effectiveness.evidence.fsops import RealFs
from tests.support.private import AS_NOBODY, child_output, folder_of_nobody, out_root

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from skill_effectiveness.evidence.root import PrivateRoot

TEMPORARY = ".f.0123456789abcdef.tmp"


@pytest.fixture
def root(tmp_path: Path) -> Iterator[PrivateRoot]:
    with out_root(tmp_path) as opened:
        opened.publish("f", b"content")
        yield opened


def refusal(root: PrivateRoot, name: str = "f", limit: int = 100) -> FileCode:
    with pytest.raises(FileError) as caught:
        root.read(name, limit)
    code = caught.value.code
    assert isinstance(code, FileCode)
    return code


def ending(name: str) -> Callable[[str], bool]:
    return lambda path: path.endswith(f"/{name}")


def reopened(tmp_path: Path, *injections: Injection) -> PrivateRoot:
    return out_root(tmp_path, FaultFs(RealFs(), *injections))


class TestWhatIsRead:
    def test_a_private_file_whole(self, root: PrivateRoot) -> None:
        root.publish("big", b"x" * 3_000_000)
        assert root.read("f") == b"content"
        assert root.read("big") == b"x" * 3_000_000

    def test_up_to_the_limit_only(self, root: PrivateRoot) -> None:
        assert root.read("f", 7) == b"content"
        assert refusal(root, limit=6) is FileCode.FILE_SIZE

    def test_a_growing_file_does_not_pass_the_limit(self, root: PrivateRoot, tmp_path: Path) -> None:
        def grow() -> None:
            with (root.path / "f").open("ab") as file:
                file.write(b"x" * 200)

        with reopened(tmp_path, Injection("read", before=grow)) as watched:
            assert refusal(watched) is FileCode.FILE_SIZE


class TestWhatIsRefused:
    def test_everything_that_is_no_regular_file_at_once(self, root: PrivateRoot, tmp_path: Path) -> None:
        (root.path / "link").symlink_to("f")
        (root.path / "dangling").symlink_to("none")
        (root.path / "dir").mkdir(mode=0o700)
        os.mkfifo(root.path / "fifo", 0o600)
        with socket.socket(socket.AF_UNIX) as unix:
            unix.bind(str(root.path / "s"))
        assert refusal(root, "link") is FileCode.FILE_SYMLINK
        assert refusal(root, "dangling") is FileCode.FILE_SYMLINK
        for name in ("dir", "fifo", "s"):
            assert refusal(root, name) is FileCode.NOT_REGULAR
        assert refusal(root, "none") is FileCode.MISSING
        # A device is not even opened.
        fs = FaultFs(RealFs(), opened := Injection("open_read", nth=0))
        with out_root(tmp_path, fs) as watched:
            refusal(watched, "fifo")
        assert opened.hits == 0

    @pytest.mark.parametrize("mode", [0o644, 0o640, 0o400, 0o700, 0o4600, 0o000])
    def test_every_mode_but_0600_which_stays(self, root: PrivateRoot, mode: int) -> None:
        (root.path / "f").chmod(mode)
        assert refusal(root) is FileCode.FILE_MODE
        assert (root.path / "f").stat().st_mode & 0o7777 == mode

    def test_a_foreign_owner(self, tmp_path: Path, root: PrivateRoot) -> None:
        def foreign(status: os.stat_result) -> os.stat_result:
            return os.stat_result((*status[:4], root.folder.fs.user() + 1, *status[5:]))

        for operation in ("lstat", "fstat"):
            with reopened(tmp_path, Injection(operation, about=ending("f"), change=foreign)) as watched:
                assert refusal(watched) is FileCode.FILE_OWNER

    def test_a_second_hard_link(self, root: PrivateRoot) -> None:
        """E61: a second name anywhere but at our own temporary means that others can write the file."""
        for name in ("other", ".f.0123.tmp", ".g.0123456789abcdef.tmp"):
            os.link(root.path / "f", root.path / name)
            assert refusal(root) is FileCode.FILE_LINKS
            (root.path / name).unlink()
        os.link(root.path / "f", root.path.parent / TEMPORARY)
        assert refusal(root) is FileCode.FILE_LINKS

    def test_a_third_hard_link_beside_our_own(self, root: PrivateRoot) -> None:
        os.link(root.path / "f", root.path / TEMPORARY)
        os.link(root.path / "f", root.path.parent / "elsewhere")
        assert refusal(root) is FileCode.FILE_LINKS

    def test_a_temporary_that_is_another_file(self, root: PrivateRoot) -> None:
        os.link(root.path / "f", root.path / "other")
        (root.path / TEMPORARY).write_bytes(b"content")
        assert refusal(root) is FileCode.FILE_LINKS

    def test_files_that_another_user_cannot_open(self) -> None:
        code = AS_NOBODY + (
            "import sys, pathlib\n"
            "from skill_effectiveness.evidence.faults import FileError\n"
            "from tests.support.private import out_root\n"
            "become_nobody()\n"
            "root = out_root(pathlib.Path(sys.argv[1]))\n"
            "root.publish('f', b'')\n"
            "(root.path / 'f').chmod(0)\n"
            "try: root.read('f')\n"
            "except FileError as error: print(error.code)\n"
        )
        with folder_of_nobody() as folder:
            assert child_output(code, folder) == "file_mode"

    @pytest.mark.usefixtures("root")
    def test_a_kernel_that_does_not_let_us(self, tmp_path: Path) -> None:
        for number, code in ((errno.EACCES, FileCode.NOT_READABLE), (errno.EIO, FileCode.IO_ERROR)):
            with reopened(tmp_path, Injection("open_read", number, about=ending("f"))) as watched:
                assert refusal(watched) is code


class TestRaces:
    def test_a_link_swapped_in_before_the_opening_is_not_followed(
        self, tmp_path: Path, root: PrivateRoot
    ) -> None:
        """E14: a file swapped for a link between check and use is not followed."""

        def swap() -> None:
            (root.path / "f").unlink()
            (root.path / "f").symlink_to("/etc/passwd")

        with reopened(tmp_path, Injection("open_read", about=ending("f"), before=swap)) as watched:
            assert refusal(watched) is FileCode.FILE_SYMLINK

    def test_a_file_replaced_under_a_reader_is_opened_again(self, tmp_path: Path, root: PrivateRoot) -> None:
        with reopened(
            tmp_path,
            Injection("fstat", about=ending("f"), before=lambda: root.replace("f", b"new")),
        ) as watched:
            assert watched.read("f") == b"new"

    def test_a_file_replaced_for_ever_is_given_up(self, tmp_path: Path, root: PrivateRoot) -> None:
        with reopened(
            tmp_path,
            Injection("fstat", nth=0, about=ending("f"), before=lambda: root.replace("f", b"new")),
        ) as watched:
            assert refusal(watched) is FileCode.FILE_LINKS
            assert isinstance(watched.folder.fs, FaultFs)
            assert watched.folder.fs.open_paths == [str(watched.path)]

    def test_a_publisher_that_drops_its_temporary_meanwhile(self, tmp_path: Path, root: PrivateRoot) -> None:
        """E61: the reader does not take a publication in progress for a foreign link."""
        os.link(root.path / "f", root.path / TEMPORARY)
        with reopened(tmp_path, Injection("listdir", before=(root.path / TEMPORARY).unlink)) as watched:
            assert watched.read("f") == b"content"


def test_a_crash_in_the_middle_of_a_publish_is_read_and_swept(root: PrivateRoot) -> None:
    """E61: link count 2 is read when the other name is our own temporary; sweep brings it back to 1."""
    os.link(root.path / "f", root.path / TEMPORARY)
    assert root.read("f") == b"content"
    assert root.sweep() == (TEMPORARY,)
    assert (root.path / "f").stat().st_nlink == 1
    assert root.read("f") == b"content"
