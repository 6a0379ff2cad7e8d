"""Folders as lists, and laying them down again."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from skill_effectiveness.evidence.canonical import dump
from skill_effectiveness.evidence.fsops import RealFs
from skill_effectiveness.evidence.tree import digest_tree
from skill_effectiveness.studies import file_trees
from skill_effectiveness.studies.errors import StudyCode, StudyError
from skill_effectiveness.studies.file_trees import (
    FileTree,
    HeldTree,
    Oddity,
    OddityKind,
    leaves,
    read_file,
    read_listing,
    scan,
    scan_input,
)
from tests.support.private import content
from tests.support.studies import write

if TYPE_CHECKING:
    from pathlib import Path

FS = RealFs()


def folder(top: Path) -> Path:
    """Files, an empty folder, an executable file and a link."""
    made = write(top / "in", {"a/b.txt": b"one", "a/c/d": b"", "z": b"\x00\xff"})
    (made / "empty").mkdir()
    (made / "z").chmod(0o755)
    (made / "a" / "link").symlink_to("../z")
    return made


class TestScanning:
    def test_the_digest_is_that_of_the_tree(self, tmp_path: Path) -> None:
        path = folder(tmp_path)
        scanned = scan(FS, path)
        assert scanned.oddities == ()
        assert scanned.tree.digest == digest_tree(FS, path)
        for part in ("a", "a/c", "empty"):
            assert scanned.tree.below(part).digest == digest_tree(FS, path / part)

    def test_odd_names(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(file_trees, "FILE_LIMIT", 10)
        path = write(tmp_path / "in", {"A": b"", "a": b"", "large": b"x" * 11})
        os.mkfifo(path / "fifo")
        (path / "link").symlink_to("/etc")
        (path / b"\xff".decode(errors="surrogateescape")).write_bytes(b"")
        assert set(scan(FS, path).oddities) == {
            Oddity("a", OddityKind.NAME_COLLISION),
            Oddity("large", OddityKind.TOO_LARGE),
            Oddity("fifo", OddityKind.NOT_REGULAR),
            Oddity("link", OddityKind.LINK_LEAVES),
            Oddity("\\udcff", OddityKind.NAME_NOT_UTF8),
        }
        with pytest.raises(StudyError) as caught:
            scan_input(FS, path, "/tasks")
        assert caught.value.code is StudyCode.INPUT_REFUSED

    @pytest.mark.parametrize(
        ("path", "target", "out"),
        [
            ("a/l", "b", False),
            ("a/l", "../b", False),
            ("a/l", "..", False),
            ("l", ".", False),
            ("a/l", "../../b", True),
            ("l", "..", True),
            ("l", "/a", True),
            ("a/l", "b/../c", True),
            ("a/l", "b/../../../c", True),
            ("a/b/l", "../../c", False),
        ],
    )
    def test_links(self, path: str, target: str, *, out: bool) -> None:
        assert leaves(path, target) is out

    def test_a_file_that_changes_is_noticed(self, tmp_path: Path) -> None:
        path = folder(tmp_path)
        entry = scan(FS, path).tree.find("z")
        assert entry is not None
        (path / "z").write_bytes(b"other")
        with pytest.raises(StudyError) as caught:
            read_file(FS, path, entry)
        assert caught.value.code is StudyCode.PLAN_CHANGED


class TestListing:
    def test_there_and_back(self, tmp_path: Path) -> None:
        tree = scan(FS, folder(tmp_path)).tree
        assert read_listing(tree.listing) == tree
        assert read_listing(FileTree(()).listing).entries == ()

    @pytest.mark.parametrize(
        "entry",
        [
            {"path": "../x", "kind": "dir", "exec": False, "size": 0, "sha256": None},
            {"path": "/x", "kind": "dir", "exec": False, "size": 0, "sha256": None},
            {"path": "a/b", "kind": "dir", "exec": False, "size": 0, "sha256": None},
            {"path": "..", "kind": "dir", "exec": False, "size": 0, "sha256": None},
            {"path": "a", "kind": "file", "exec": False, "size": 0, "sha256": None},
            {"path": "a", "kind": "file", "exec": False, "size": 0, "sha256": "sha256:x"},
            {"path": "a", "kind": "link", "exec": False, "target": "/etc"},
            {"path": "a", "kind": "fifo", "exec": False},
            {"path": "a", "kind": "dir", "exec": False, "size": 0, "sha256": None, "more": 1},
        ],
    )
    def test_what_would_leave_the_folder(self, entry: dict[str, object]) -> None:
        """A list that somebody wrote lays nothing down outside."""
        with pytest.raises(StudyError) as caught:
            read_listing(dump([entry]))
        assert caught.value.code is StudyCode.PLAN_CHANGED

    def test_a_name_stands_once(self) -> None:
        entry = {"path": "a", "kind": "dir", "exec": False, "size": 0, "sha256": None}
        with pytest.raises(StudyError):
            read_listing(dump([entry, entry]))

    @pytest.mark.parametrize("data", [b"", b"{}", b"[1]", b"[] ", b"null"])
    def test_what_is_no_list(self, data: bytes) -> None:
        with pytest.raises(StudyError):
            read_listing(data)


class TestLayingDown:
    def test_the_same_tree(self, tmp_path: Path) -> None:
        path, target = folder(tmp_path), tmp_path / "out"
        target.mkdir()
        held = HeldTree.on_disk(FS, path, scan(FS, path).tree)
        held.lay_down(FS, target)
        assert digest_tree(FS, target) == digest_tree(FS, path)
        again = held.in_memory()
        for name in ("a/b.txt", "z"):
            (path / name).unlink()
        second = tmp_path / "second"
        second.mkdir()
        again.lay_down(FS, second)
        assert content(second) == content(target)
