"""Files that may be bound, and those that may not."""

from __future__ import annotations

import errno
import os
import socket
from pathlib import Path

import pytest

from skill_effectiveness.launch.trusted import (
    ManifestError,
    demand_trust,
    hash_file,
    hash_lone_file,
    list_files,
    read_file,
    read_lone_file,
)

# FIPS 180-2, appendix B.1.
ABC = "sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"


@pytest.fixture
def top(tmp_path: Path) -> Path:
    (tmp_path / "a" / "b").mkdir(parents=True)
    for folder in (tmp_path, tmp_path / "a", tmp_path / "a" / "b"):
        folder.chmod(0o755)
    file = tmp_path / "a" / "b" / "file"
    file.write_bytes(b"abc")
    file.chmod(0o644)
    return tmp_path


class TestATrustedFile:
    def test_is_hashed_whole(self, top: Path) -> None:
        assert hash_file(top, "a/b/file") == (ABC, 3)
        assert hash_lone_file(top / "a" / "b" / "file") == (ABC, 3)

    def test_is_read_whole(self, top: Path) -> None:
        assert read_file(top, "a/b/file") == b"abc"
        assert read_lone_file(top / "a" / "b" / "file") == b"abc"
        big = bytes(range(256)) * 10_000
        (top / "a" / "b" / "file").write_bytes(big)
        assert read_file(top, "a/b/file") == big

    def test_of_any_size(self, top: Path) -> None:
        # The digest of a million "a": FIPS 180-2, appendix B.3.
        (top / "a" / "b" / "file").write_bytes(b"a" * 1_000_000)
        digest = "sha256:cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0"
        assert hash_file(top, "a/b/file") == (digest, 1_000_000)

    @pytest.mark.parametrize("mode", [0o400, 0o600, 0o644, 0o755])
    def test_may_be_read_by_others(self, top: Path, mode: int) -> None:
        (top / "a" / "b" / "file").chmod(mode)
        assert hash_file(top, "a/b/file").sha256 == ABC

    def test_may_be_reached_through_a_linked_top(
        self, top: Path, tmp_path_factory: pytest.TempPathFactory
    ) -> None:
        link = tmp_path_factory.mktemp("elsewhere") / "link"
        link.symlink_to(top)
        assert hash_file(link, "a/b/file").sha256 == ABC

    def test_may_be_roots(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """B15: owned by the user or root."""
        monkeypatch.setattr(os, "geteuid", lambda: 12345)
        assert hash_lone_file(Path("/bin/sh").resolve()).size > 0


class TestAnUntrustedFile:
    @pytest.mark.parametrize("mode", [0o664, 0o646, 0o666, 0o620, 0o602])
    def test_others_may_write_it(self, top: Path, mode: int) -> None:
        """B15: group- or world-writable."""
        (top / "a" / "b" / "file").chmod(mode)
        with pytest.raises(ManifestError, match="a/b/file can be written by others"):
            hash_file(top, "a/b/file")
        for lone in (hash_lone_file, read_lone_file):
            with pytest.raises(ManifestError):
                lone(top / "a" / "b" / "file")
        with pytest.raises(ManifestError, match="a/b/file can be written by others"):
            read_file(top, "a/b/file")

    @pytest.mark.parametrize("folder", [".", "a", "a/b"])
    @pytest.mark.parametrize("mode", [0o775, 0o757, 0o1777])
    def test_others_may_replace_it(self, top: Path, folder: str, mode: int) -> None:
        """B15: a folder in which others can put another file is as bad."""
        (top / folder).chmod(mode)
        with pytest.raises(ManifestError, match="written by others"):
            hash_file(top, "a/b/file")

    def test_a_link(self, top: Path) -> None:
        """B15: also one that leads to a trusted file."""
        (top / "a" / "link").symlink_to("b/file")
        for use in (hash_file, read_file):
            with pytest.raises(ManifestError, match="a/link cannot be read"):
                use(top, "a/link")
        with pytest.raises(ManifestError):
            hash_lone_file(top / "a" / "link")

    def test_a_link_on_the_way(self, top: Path) -> None:
        (top / "c").symlink_to("a")
        with pytest.raises(ManifestError, match="c/b/file cannot be read"):
            hash_file(top, "c/b/file")

    def test_of_another_kind(self, top: Path) -> None:
        """B15: a FIFO does not keep anybody waiting."""
        os.mkfifo(top / "fifo", 0o600)
        with socket.socket(socket.AF_UNIX) as server:
            server.bind(str(top / "socket"))
        for name in ("fifo", "socket", "a"):
            with pytest.raises(ManifestError, match=name):
                hash_file(top, name)

    def test_that_is_missing(self, top: Path) -> None:
        for name in ("none", "none/file", "a/b/file/below"):
            with pytest.raises(ManifestError, match=name):
                hash_file(top, name)
        with pytest.raises(ManifestError):
            hash_file(top / "none", "file")

    def test_of_another_user(self) -> None:
        """B15: whoever else it belongs to."""
        other = os.geteuid() + 1
        status = os.stat_result((0o100644, 1, 1, 1, other, other, 3, 0, 0, 0))
        with pytest.raises(ManifestError, match="shown belongs to another user"):
            demand_trust(status, "shown")

    def test_that_cannot_be_opened(self, top: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        real = os.open

        def refuse(name: str, flags: int, *, dir_fd: int | None = None) -> int:
            if name == "file":
                raise PermissionError(13, "Permission denied")
            return real(name, flags, dir_fd=dir_fd)

        monkeypatch.setattr(os, "open", refuse)
        with pytest.raises(ManifestError, match=r"a/b/file cannot be read.*Permission denied"):
            hash_file(top, "a/b/file")

    @pytest.mark.parametrize("number", [errno.EMFILE, errno.ENFILE, errno.ENOMEM])
    def test_for_which_nothing_is_left(self, top: Path, monkeypatch: pytest.MonkeyPatch, number: int) -> None:
        """R6: whoever is told to install again does so in vain."""

        def refuse(_name: str, _flags: int, *, dir_fd: int | None = None) -> int:
            raise OSError(number, os.strerror(number), dir_fd)

        monkeypatch.setattr(os, "open", refuse)
        with pytest.raises(ManifestError, match=r"cannot be read.*ask again") as caught:
            hash_file(top, "a/b/file")
        assert "install" not in str(caught.value)

    def test_that_fails_in_the_middle(self, top: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        def fail(_number: int, _size: int) -> bytes:
            raise OSError(5, "Input/output error")

        monkeypatch.setattr(os, "read", fail)
        with pytest.raises(ManifestError, match="a/b/file cannot be read"):
            hash_file(top, "a/b/file")

    @pytest.mark.parametrize("name", ["", ".", "..", "../x", "a/../../x", "/etc/passwd", "a//b", "a/"])
    def test_a_name_that_leaves_the_folder(self, top: Path, name: str) -> None:
        with pytest.raises(ValueError, match="not a name below"):
            hash_file(top, name)

    def test_no_descriptor_stays_open(self, top: Path) -> None:
        before = set(os.listdir("/proc/self/fd"))  # noqa: PTH208 - numbers, not paths
        hash_file(top, "a/b/file")
        for name in ("none", "a/none", "a/b", "a/b/file/below"):
            with pytest.raises(ManifestError):
                hash_file(top, name)
        assert set(os.listdir("/proc/self/fd")) == before  # noqa: PTH208 - numbers, not paths


class TestAList:
    def test_at_any_depth_without_caches(self, top: Path) -> None:
        (top / "a" / "__pycache__").mkdir()
        for name in (
            "a/x.py",
            "a/b/y.py",
            "a/b/z.txt",
            "a/__pycache__/x.py",
            "a/__pycache__/x.cpython-311.pyc",
        ):
            (top / name).touch()
        assert list_files(top, "a", ".py") == ["a/b/y.py", "a/x.py"]

    def test_a_link_to_a_folder_is_refused(self, top: Path) -> None:
        """B15: it would hide code from the list."""
        (top / "a" / "link").symlink_to("b")
        with pytest.raises(ManifestError, match="a/link is a symbolic link"):
            list_files(top, "a", ".py")

    def test_errors_carry_the_name_that_the_caller_gives_its_folder(self, top: Path) -> None:
        """B15: what a manifest calls an entry is what its reader looks for."""
        (top / "a" / "link").symlink_to("b")
        with pytest.raises(ManifestError, match=r"^package/a/link is a symbolic link"):
            list_files(top, "a", ".py", "package/")
        with pytest.raises(ManifestError, match=r"^package/none cannot be read"):
            list_files(top, "none", ".py", "package/")
        with pytest.raises(ManifestError, match=r"^package/a/none cannot be read"):
            hash_file(top, "a/none", "package/a/none")

    def test_a_link_with_a_fitting_name_is_listed_and_so_refused_when_read(self, top: Path) -> None:
        (top / "a" / "x.py").symlink_to("b/file")
        assert list_files(top, "a", ".py") == ["a/x.py"]
        with pytest.raises(ManifestError):
            hash_file(top, "a/x.py")

    def test_a_missing_or_open_folder_is_refused(self, top: Path) -> None:
        with pytest.raises(ManifestError):
            list_files(top, "none", ".py")
        (top / "a" / "b").chmod(0o777)
        with pytest.raises(ManifestError):
            list_files(top, "a", ".py")
