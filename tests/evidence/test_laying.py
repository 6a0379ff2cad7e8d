"""Laying down what a program will work on."""

from __future__ import annotations

import stat
from typing import TYPE_CHECKING

import pytest

from skill_effectiveness.evidence.faults import FileCode, FileError
from skill_effectiveness.evidence.fsops import RealFs
from skill_effectiveness.evidence.laying import is_there, lay_file, lay_folder, lay_link, name_laid

if TYPE_CHECKING:
    from pathlib import Path

FS = RealFs()


def mode(path: Path) -> int:
    return stat.S_IMODE(path.lstat().st_mode)


def test_each_kind(tmp_path: Path) -> None:
    lay_folder(FS, tmp_path / "a")
    lay_file(FS, tmp_path / "a" / "text", b"one")
    lay_file(FS, tmp_path / "a" / "run", b"two", executable=True)
    lay_link(tmp_path / "a" / "link", "text")
    assert (tmp_path / "a" / "link").read_bytes() == b"one"
    assert [mode(tmp_path / "a" / name) for name in (".", "text", "run")] == [0o700, 0o600, 0o700]


def test_nothing_is_replaced(tmp_path: Path) -> None:
    taken = tmp_path / "taken"
    taken.write_bytes(b"mine")
    for lay in (
        lambda: lay_folder(FS, taken),
        lambda: lay_link(taken, "elsewhere"),
        lambda: lay_file(FS, taken, b"other"),
    ):
        with pytest.raises(FileError) as caught:
            lay()
        assert caught.value.code is FileCode.EXISTS_DIFFERENT
    assert taken.read_bytes() == b"mine"


def test_a_name_at_the_end(tmp_path: Path) -> None:
    """What was laid under another name appears whole; a name that is taken stays, a dangling link too."""
    lay_folder(FS, tmp_path / ".new")
    lay_file(FS, tmp_path / ".new" / "text", b"one")
    (tmp_path / "taken").symlink_to("nowhere")
    with pytest.raises(FileError) as caught:
        name_laid(FS, tmp_path / ".new", tmp_path / "taken")
    assert caught.value.code is FileCode.EXISTS_DIFFERENT
    name_laid(FS, tmp_path / ".new", tmp_path / "free")
    assert (tmp_path / "free" / "text").read_bytes() == b"one"
    assert not is_there(FS, tmp_path / ".new")
    assert is_there(FS, tmp_path / "taken")
    assert not is_there(FS, tmp_path / "free" / "text" / "below")
