"""Folders that appear at once, and what an interrupted build leaves."""

from __future__ import annotations

import errno
import os
from typing import TYPE_CHECKING

import pytest

from skill_effectiveness.evidence.faults import FileCode, FileError, RootCode, RootError
from skill_effectiveness.evidence.folders import (
    build_of,
    make_durable,
    publish_folder,
    publish_tree,
    sweep_builds,
)
from skill_effectiveness.evidence.fsdoubles import FaultFs, Injection, RecordingFs
from skill_effectiveness.evidence.fsops import RealFs
from tests.support.private import content, listing, out_root, wrong_modes

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from skill_effectiveness.evidence.fsops import FileSystem

FILES = {"a.json": b"{}\n", ".b.lock": b""}


def build(folder: Path, fs: FileSystem | None = None, name: str = "x") -> None:
    with out_root(folder, fs) as root:
        publish_folder(root, name, files=FILES, folders=("out",))


def code(folder: Path, fs: FileSystem | None = None, name: str = "x") -> FileCode:
    with pytest.raises(FileError) as caught:
        build(folder, fs, name)
    assert isinstance(caught.value.code, FileCode)
    return caught.value.code


def test_holds_exactly_what_was_asked_for(tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        build(tmp_path)
    finally:
        os.umask(before)
    assert content(tmp_path / "root") == {f"x/{name}": data for name, data in FILES.items()}
    assert listing(tmp_path / "root") == ["x"]
    assert listing(tmp_path / "root/x/out") == []
    assert wrong_modes(tmp_path / "root") == []


def test_everything_is_durable_before_it_has_its_name(tmp_path: Path) -> None:
    fs = RecordingFs(RealFs())
    build(tmp_path, fs)
    steps = [step.operation for step in fs.steps]
    assert steps[-2:] == ["rename", "fsync_dir"]
    assert steps[-3] == "fsync_dir"
    assert steps.count("fsync") == sum(1 for data in FILES.values() if data)
    # The root's own folder, the build with its four names at once, and the root with the new one.
    assert steps.count("fsync_dir") == 3


TREE = {"a.txt": b"a", "deep/er/b.txt": b"b", "deep/c.txt": b"", "deep/d.txt": b"d", "z/e.txt": b"e"}


def tree(folder: Path, fs: FileSystem | None = None, files: Mapping[str, bytes] = TREE) -> None:
    with out_root(folder, fs) as root:
        publish_tree(root, "x", files=files.items(), folders=("out", "no/thing"))


def test_a_tree_holds_exactly_what_was_asked_for(tmp_path: Path) -> None:
    before = os.umask(0o277)
    try:
        tree(tmp_path)
    finally:
        os.umask(before)
    assert content(tmp_path / "root") == {f"x/{name}": data for name, data in TREE.items()}
    assert listing(tmp_path / "root/x") == ["a.txt", "deep", "no", "out", "z"]
    assert listing(tmp_path / "root/x/no") == ["thing"]
    assert wrong_modes(tmp_path / "root") == []


def test_every_folder_of_a_tree_is_synced_once_and_every_file_before_it(tmp_path: Path) -> None:
    """E53: nothing is renamed into place before all of it is durable."""
    out_root(tmp_path).close()
    fs = RecordingFs(RealFs())
    tree(tmp_path, fs)
    (build,) = {step.path for step in fs.steps if step.operation == "rename"}
    synced = [step.path.removeprefix(build) for step in fs.steps if step.operation == "fsync_dir"]
    assert sorted(synced[:-1]) == ["", "/deep", "/deep/er", "/no", "/z"]
    assert synced.index("/deep/er") < synced.index("/deep") < synced.index("")
    assert synced[-1] == str(tmp_path / "root")
    steps = [step.operation for step in fs.steps]
    assert steps[-2:] == ["rename", "fsync_dir"]
    first = steps.index("fsync_dir")
    written = [step.path.removeprefix(f"{build}/") for step in fs.steps[:first] if step.operation == "fsync"]
    assert written == ["a.txt", "deep/er/b.txt", "deep/d.txt", "z/e.txt"]
    assert "create_exclusive" not in steps[first:]


def test_an_empty_file_of_a_wrong_mode_is_synced(tmp_path: Path) -> None:
    """E16 E24: what was repaired after its creation is made durable with it."""
    out_root(tmp_path).close()
    fs, before = RecordingFs(RealFs()), os.umask(0o200)
    try:
        with out_root(tmp_path, fs) as root:
            publish_folder(root, "x", files={"empty": b""})
    finally:
        os.umask(before)
    steps = [step.operation for step in fs.steps if step.path.endswith("/empty")]
    assert steps == ["create_exclusive", "fchmod", "fsync"]


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (("a", "A"), FileCode.NAME_COLLISION),
        (("d/a", "d/A"), FileCode.NAME_COLLISION),
        (("d/a", "D/b"), FileCode.NAME_COLLISION),
        (("d/../a",), FileCode.NAME_FORM),
        (("/a",), FileCode.NAME_FORM),
        (("d/",), FileCode.NAME_FORM),
        (("d/.a.0123456789abcdef.tmp",), FileCode.NAME_FORM),
    ],
)
def test_names_in_a_tree_that_cannot_be_are_refused(
    tmp_path: Path, names: tuple[str, ...], expected: FileCode
) -> None:
    out_root(tmp_path).close()
    with pytest.raises(FileError) as caught:
        tree(tmp_path, files=dict.fromkeys(names, b"x"))
    assert caught.value.code is expected
    assert listing(tmp_path / "root") == []


@pytest.mark.parametrize(
    ("operation", "mode", "about", "expected"),
    [
        ("fstat", 0o100777, "/a.txt", FileCode.FILE_MODE),
        ("fstat", 0o100777, "/deep/c.txt", FileCode.FILE_MODE),
        ("fstat", 0o040777, ".new", RootCode.ROOT_MODE),
        ("lstat", 0o040777, "/deep", RootCode.ROOT_MODE),
    ],
)
def test_a_file_system_without_modes_is_refused(
    tmp_path: Path, operation: str, mode: int, about: str, expected: FileCode | RootCode
) -> None:
    """E24: at any file and any folder of a tree."""

    def open_to_all(status: os.stat_result) -> os.stat_result:
        return os.stat_result((mode, *status[1:]))

    out_root(tmp_path).close()
    fs = FaultFs(
        RealFs(), Injection(operation, nth=0, change=open_to_all, about=lambda path: path.endswith(about))
    )
    with pytest.raises((FileError, RootError)) as caught:
        tree(tmp_path, fs)
    assert caught.value.code is expected
    assert listing(tmp_path / "root") == []


def test_content_that_cannot_be_had_leaves_no_name(tmp_path: Path) -> None:
    """E22: the error of whoever gives the content is the one that is heard."""

    def files() -> Iterator[tuple[str, bytes]]:
        yield "deep/a", b"x"
        raise LookupError

    out_root(tmp_path).close()
    with out_root(tmp_path) as root, pytest.raises(LookupError):
        publish_tree(root, "x", files=files())
    assert listing(tmp_path / "root") == []


@pytest.mark.parametrize("operation", ["mkdir", "create_exclusive", "write", "fsync", "fsync_dir", "rename"])
@pytest.mark.parametrize("nth", [1, 2, 3])
def test_a_fault_leaves_no_tree(tmp_path: Path, operation: str, nth: int) -> None:
    """E22: at any folder or file of it, and the same call goes through once the cause is gone."""
    out_root(tmp_path).close()
    fs = FaultFs(RealFs(), Injection(operation, errno.ENOSPC, nth=nth))
    if (operation, nth) in {("rename", 2), ("rename", 3)}:
        tree(tmp_path, fs)
        return
    with pytest.raises(FileError) as caught:
        tree(tmp_path, fs)
    assert caught.value.code is FileCode.NO_SPACE
    assert listing(tmp_path / "root") == []
    assert fs.open_paths == []
    tree(tmp_path)


@pytest.mark.parametrize("taken", ["file", "folder", "link"])
def test_a_taken_name_stays(tmp_path: Path, taken: str) -> None:
    out_root(tmp_path).close()
    path = tmp_path / "root" / "x"
    {"file": path.touch, "folder": path.mkdir, "link": lambda: path.symlink_to("/etc")}[taken]()
    assert code(tmp_path) is FileCode.EXISTS_DIFFERENT
    assert listing(tmp_path / "root") == ["x"]


def test_names_that_collide_or_cannot_be_are_refused(tmp_path: Path) -> None:
    build(tmp_path)
    assert code(tmp_path, name="X") is FileCode.NAME_COLLISION
    assert code(tmp_path, name="..") is FileCode.NAME_FORM
    assert listing(tmp_path / "root") == ["x"]


@pytest.mark.parametrize("operation", ["mkdir", "create_exclusive", "write", "fsync", "fsync_dir", "rename"])
@pytest.mark.parametrize(
    ("number", "expected"),
    [(errno.ENOSPC, FileCode.NO_SPACE), (errno.EIO, FileCode.IO_ERROR), (errno.EROFS, FileCode.NOT_WRITABLE)],
)
def test_a_fault_leaves_no_name(tmp_path: Path, operation: str, number: int, expected: FileCode) -> None:
    """E22: and the same call goes through once the cause is gone."""
    out_root(tmp_path).close()
    fs = FaultFs(RealFs(), Injection(operation, number))
    assert code(tmp_path, fs) is expected
    assert listing(tmp_path / "root") == []
    build(tmp_path)


def test_leftovers_of_a_name_go(tmp_path: Path) -> None:
    token = "0123456789abcdef"
    out_root(tmp_path).close()
    top = tmp_path / "root"
    deep = top / f".x.{token}.new" / "out" / "more"
    deep.mkdir(parents=True)
    (deep / "file").write_bytes(b"x")
    (deep / "link").symlink_to("/etc")
    kept = [f".xy.{token}.new", f".x.{token[1:]}.new", f".x.{token}.tmp"]
    for name in kept:
        (top / name).mkdir()
    (top / f".x.{token[::-1]}.new").symlink_to("/etc")
    with out_root(tmp_path) as root:
        assert sweep_builds(root, "x") == (f".x.{token}.new",)
        assert sweep_builds(root, "x") == ()
    assert listing(top) == sorted([*kept, f".x.{token[::-1]}.new"])
    assert os.path.isdir("/etc")  # noqa: PTH112 - no link was followed


def test_a_leftover_deeper_than_any_build_stays(tmp_path: Path) -> None:
    out_root(tmp_path).close()
    name = ".x.0123456789abcdef.new"
    (tmp_path / "root" / name / "/".join("deeeeeeeeep")).mkdir(parents=True)
    with out_root(tmp_path) as root, pytest.raises(FileError) as caught:
        sweep_builds(root, "x")
    assert caught.value.code is FileCode.NOT_REGULAR


def test_says_whose_build_a_name_is() -> None:
    assert build_of(".sample-001.0123456789abcdef.new") == "sample-001"
    assert build_of(".sample-001.0123456789abcdef.tmp") is None
    assert build_of("sample-001") is None


def test_makes_names_durable_or_says_why_not(tmp_path: Path) -> None:
    fs = RecordingFs(RealFs())
    with out_root(tmp_path, fs) as root:
        make_durable(root)
    assert fs.steps[-1].operation == "fsync_dir"
    failing = FaultFs(RealFs(), Injection("fsync_dir", errno.EIO))
    with out_root(tmp_path, failing) as root, pytest.raises(FileError) as caught:
        make_durable(root)
    assert caught.value.code is FileCode.IO_ERROR
