"""Copies of folders that are not private."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from skill_effectiveness.evidence.copies import append_public, copy_public_tree
from skill_effectiveness.evidence.faults import FileCode, FileError
from skill_effectiveness.evidence.fsops import RealFs

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def source(tmp_path: Path) -> Path:
    folder = tmp_path / "source"
    (folder / "a" / "empty").mkdir(parents=True)
    (folder / "a" / "file").write_bytes(b"\x00\xff")
    (folder / "link").symlink_to("/etc/passwd")
    (folder / "loop").symlink_to(".")
    (tmp_path / "target").mkdir()
    return folder


def test_folders_files_and_links(source: Path, tmp_path: Path) -> None:
    """F48: a link is copied as a link, an empty folder is kept."""
    target = tmp_path / "target"
    copy_public_tree(RealFs(), source, target)
    assert (target / "a" / "file").read_bytes() == b"\x00\xff"
    assert list((target / "a" / "empty").iterdir()) == []
    assert (target / "link").readlink().as_posix() == "/etc/passwd"
    assert (target / "loop").readlink().as_posix() == "."


def test_a_special_file_is_not_opened(source: Path, tmp_path: Path) -> None:
    """F48: refused at once."""
    os.mkfifo(source / "pipe")
    with pytest.raises(FileError) as caught:
        copy_public_tree(RealFs(), source, tmp_path / "target")
    assert caught.value.code is FileCode.NOT_REGULAR


def test_nothing_is_overwritten(source: Path, tmp_path: Path) -> None:
    (tmp_path / "target" / "a").mkdir()
    with pytest.raises(FileError):
        copy_public_tree(RealFs(), source, tmp_path / "target")


def test_a_file_gets_longer(source: Path) -> None:
    append_public(RealFs(), source / "a" / "file", b"\n")
    assert (source / "a" / "file").read_bytes() == b"\x00\xff\n"
    with pytest.raises(FileError):
        append_public(RealFs(), source / "link", b"\n")
    with pytest.raises(FileError):
        append_public(RealFs(), source / "nothing", b"\n")
