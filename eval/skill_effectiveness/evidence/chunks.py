"""Reading a regular file of any size, a chunk at a time."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from skill_effectiveness.evidence.errnos import reported
from skill_effectiveness.evidence.fsops import closing, demand_regular

if TYPE_CHECKING:
    from collections.abc import Iterator

    from skill_effectiveness.evidence.fsops import FileSystem

CHUNK: Final = 1 << 18
"""Bytes; larger pieces cost more than they spare: each new one is memory that the kernel must map first."""


@contextmanager
def regular_file(fs: FileSystem, parent: int | None, name: str, where: str) -> Iterator[int]:
    """An open regular file; anything else is refused without opening it.

    Args:
        fs: file operations.
        parent: descriptor of the folder, or `None` when `name` is an absolute path.
        name: the name in that folder; a link there is not followed.
        where: how faults name the file.

    Raises:
        FileError: `missing`, `file_symlink`, `not_regular`, `not_readable`, `io_error`.
    """
    with reported(where, reading=True):
        demand_regular(fs.lstat(parent, name), where)
        with closing(fs, fs.open_read(parent, name)) as fd:
            # The name may have been given to something else since it was looked at.
            demand_regular(fs.fstat(fd), where)
            yield fd


def chunks_of(fs: FileSystem, fd: int) -> Iterator[bytes]:
    """The rest of an open file.

    Raises:
        OSError: the read failed.
    """
    while chunk := fs.read(fd, CHUNK):
        yield chunk


def file_chunks(fs: FileSystem, parent: int | None, name: str, where: str) -> Iterator[bytes]:
    """The bytes of a regular file; arguments and faults as `regular_file`."""
    with regular_file(fs, parent, name, where) as fd:
        yield from chunks_of(fs, fd)
