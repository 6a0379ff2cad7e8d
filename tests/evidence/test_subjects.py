from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from skill_effectiveness.evidence.faults import FileCode, FileError
from skill_effectiveness.evidence.fsdoubles import FaultFs, Injection
from skill_effectiveness.evidence.fsops import RealFs
from skill_effectiveness.evidence.subjects import FolderSubjects, HeldSubjects

if TYPE_CHECKING:
    from pathlib import Path

FS = RealFs()


def test_held_subjects_are_the_bytes_given() -> None:
    held = {"a": b"x"}
    source = HeldSubjects(held)
    held["b"] = b"later"
    assert list(source.names()) == ["a"]
    assert b"".join(source.chunks("a")) == b"".join(source.chunks("a")) == b"x"
    with pytest.raises(FileError) as caught:
        source.chunks("b")
    assert caught.value.code is FileCode.MISSING


def test_a_folder_names_all_files_but_the_seal(tmp_path: Path) -> None:
    (tmp_path / "d" / "e").mkdir(parents=True)
    for name in ("seal.json", "a", "d/seal.json", "d/e/b"):
        (tmp_path / name).touch()
    source = FolderSubjects(FS, tmp_path, besides=["seal.json"])
    assert set(source.names()) == {"a", "d/seal.json", "d/e/b"}


def test_everything_odd_is_present_too(tmp_path: Path) -> None:
    """F48: an empty folder, a link and a FIFO cannot hide from a seal."""
    (tmp_path / "d" / "empty").mkdir(parents=True)
    (tmp_path / "top-empty").mkdir()
    (tmp_path / "link").symlink_to("/etc")
    os.mkfifo(tmp_path / "fifo")
    source = FolderSubjects(FS, tmp_path, besides=["seal.json"])
    assert set(source.names()) == {"d/empty/", "top-empty/", "link", "fifo"}


def test_chunks_of_a_nested_file(tmp_path: Path) -> None:
    (tmp_path / "d" / "e").mkdir(parents=True)
    (tmp_path / "d" / "e" / "b").write_bytes(b"abc" * 1_000_000)
    source = FolderSubjects(FS, tmp_path, besides=[])
    assert b"".join(source.chunks("d/e/b")) == b"abc" * 1_000_000


def test_no_link_on_the_way_is_followed(tmp_path: Path) -> None:
    """F48: neither a folder nor a file may be a link."""
    (tmp_path / "real").mkdir()
    (tmp_path / "real" / "f").touch()
    (tmp_path / "d").symlink_to("real")
    (tmp_path / "l").symlink_to("real/f")
    (tmp_path / "top").symlink_to("real")
    source = FolderSubjects(FS, tmp_path, besides=[])
    refused = (FileCode.NOT_REGULAR, FileCode.FILE_SYMLINK)
    for name in ("d/f", "l"):
        with pytest.raises(FileError) as caught:
            list(source.chunks(name))
        assert caught.value.code in refused
        assert caught.value.faults[0].where == name
    with pytest.raises(FileError) as caught:
        list(FolderSubjects(FS, tmp_path / "top", besides=[]).chunks("f"))
    assert caught.value.code in refused


@pytest.mark.parametrize("name", ["none", "none/f", "f/f"])
def test_a_missing_file(tmp_path: Path, name: str) -> None:
    (tmp_path / "f").touch()
    before = len(os.listdir("/proc/self/fd"))  # noqa: PTH208 - counting only
    with pytest.raises(FileError) as caught:
        list(FolderSubjects(FS, tmp_path, besides=[]).chunks(name))
    assert caught.value.faults[0].where == name
    assert len(os.listdir("/proc/self/fd")) == before  # noqa: PTH208 - counting only


def test_read_errors_have_a_code(tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(b"x")
    fs = FaultFs(FS, Injection("read", 5))
    with pytest.raises(FileError) as caught:
        list(FolderSubjects(fs, tmp_path, besides=[]).chunks("f"))
    assert caught.value.code is FileCode.IO_ERROR
