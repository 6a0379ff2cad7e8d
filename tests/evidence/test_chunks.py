from __future__ import annotations

import errno
import os
import stat
from typing import TYPE_CHECKING

import pytest

from skill_effectiveness.evidence.chunks import CHUNK, file_chunks, regular_file
from skill_effectiveness.evidence.faults import FileCode, FileError
from skill_effectiveness.evidence.fsdoubles import FaultFs, Injection
from skill_effectiveness.evidence.fsops import RealFs, closing

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

FS = RealFs()


def open_descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))  # noqa: PTH208 - counting only


@pytest.mark.parametrize("size", [0, 1, CHUNK, CHUNK + 1])
def test_a_file_comes_in_chunks(tmp_path: Path, size: int) -> None:
    (tmp_path / "f").write_bytes(b"x" * size)
    chunks = list(file_chunks(FS, None, str(tmp_path / "f"), "f"))
    assert sum(map(len, chunks)) == size
    assert len(chunks) == -(-size // CHUNK)


def test_a_name_is_relative_to_its_folder(tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(b"abc")
    with closing(FS, FS.open_dir(None, str(tmp_path))) as folder:
        assert list(file_chunks(FS, folder, "f", "f")) == [b"abc"]


def test_nothing_but_a_regular_file_is_opened(tmp_path: Path) -> None:
    """F48: link, FIFO, folder and device are judged by name before anything is opened."""
    (tmp_path / "link").symlink_to("/etc/passwd")
    os.mkfifo(tmp_path / "fifo")
    opened = Injection("open_read", nth=0)
    fs = FaultFs(FS, opened)
    for path, code in {
        str(tmp_path / "link"): FileCode.FILE_SYMLINK,
        str(tmp_path / "fifo"): FileCode.NOT_REGULAR,
        str(tmp_path): FileCode.NOT_REGULAR,
        "/dev/null": FileCode.NOT_REGULAR,
    }.items():
        with pytest.raises(FileError) as caught:
            list(file_chunks(fs, None, path, "it"))
        assert (caught.value.code, caught.value.faults[0].where) == (code, "it")
    assert opened.hits == 0


@pytest.mark.parametrize(
    ("swap", "code"),
    [
        (lambda path: path.symlink_to("/etc/passwd"), FileCode.FILE_SYMLINK),
        (os.mkfifo, FileCode.NOT_REGULAR),
    ],
    ids=["link", "fifo"],
)
def test_a_name_swapped_before_the_opening_is_found(
    tmp_path: Path, swap: Callable[[Path], object], code: FileCode
) -> None:
    """F48: a file that became a link or a FIFO after the look is neither followed nor waited for."""
    path = tmp_path / "f"
    path.write_bytes(b"abc")

    def exchange() -> None:
        path.unlink()
        swap(path)

    before = open_descriptors()
    with pytest.raises(FileError) as caught:
        list(file_chunks(FaultFs(FS, Injection("open_read", before=exchange)), None, str(path), "f"))
    assert caught.value.code is code
    assert open_descriptors() == before


@pytest.mark.parametrize(
    ("operation", "number", "code"),
    [
        ("lstat", errno.ENOENT, FileCode.MISSING),
        ("open_read", errno.EACCES, FileCode.NOT_READABLE),
        ("read", errno.EIO, FileCode.IO_ERROR),
    ],
)
def test_kernel_errors_have_codes_and_leave_nothing_open(
    tmp_path: Path, operation: str, number: int, code: FileCode
) -> None:
    (tmp_path / "f").write_bytes(b"abc")
    before = open_descriptors()
    with pytest.raises(FileError) as caught:
        list(file_chunks(FaultFs(FS, Injection(operation, number)), None, str(tmp_path / "f"), "f"))
    assert caught.value.code is code
    assert open_descriptors() == before


def test_an_abandoned_file_is_closed(tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(b"x" * (2 * CHUNK))
    before = open_descriptors()
    chunks = file_chunks(FS, None, str(tmp_path / "f"), "f")
    next(chunks)
    assert open_descriptors() == before + 1
    chunks.close()  # type: ignore[attr-defined] # a generator
    assert open_descriptors() == before


def test_the_open_file_is_the_one_that_was_judged(tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(b"abc")
    with regular_file(FS, None, str(tmp_path / "f"), "f") as fd:
        assert stat.S_ISREG(FS.fstat(fd).st_mode)
