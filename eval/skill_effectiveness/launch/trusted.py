"""Reading files whose bytes are going to be bound: each once, through a descriptor, trusted or not at all.

Source: bridge.md sections 2 and 3; calibration.md section 3 (`runtime_manifest_unavailable`).
"""

from __future__ import annotations

import hashlib
import os
import stat
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

CHUNK: Final = 1 << 20
OTHERS_WRITE: Final = stat.S_IWGRP | stat.S_IWOTH


class ManifestError(Exception):
    """The running code cannot be bound; the text names the file, for people only."""

    code: Final = "runtime_manifest_unavailable"


class Hashed(NamedTuple):
    """What one file held at the one moment it was read."""

    sha256: str
    size: int


def hash_file(top: Path, relative: str) -> Hashed:
    """Hash a trusted regular file.

    Args:
        top: a folder; links on the way to it are followed once, and it is trusted as every folder below it.
        relative: forward-slashed name below it.

    Raises:
        ManifestError: a segment is missing, a link, of another kind, another user's, or writable by others.
    """
    *folders, name = relative.split("/")
    with (
        open_folders(top, folders, relative) as folder,
        opened(name, folder, os.O_NONBLOCK, relative) as file,
    ):
        status = os.fstat(file)
        if not stat.S_ISREG(status.st_mode):
            raise ManifestError(
                f"{relative} is not a regular file; restore it, or install the package again."
            )
        demand_trust(status, relative)
        return read_through(file, relative)


def list_files(top: Path, relative: str, suffix: str) -> list[str]:
    """The names below a folder, at any depth, that end in a suffix; sorted, relative to `top`, unread.

    Bytecode caches are left out. A link is listed when its name fits, and refused when it is read; a link that
    could lead into another folder is refused here.

    Raises:
        ManifestError: as `hash_file`.
    """
    found: list[str] = []
    waiting = [relative]
    while waiting:
        inside = waiting.pop()
        with open_folders(top, inside.split("/"), inside) as folder, os.scandir(folder) as entries:
            for entry in entries:
                path = f"{inside}/{entry.name}"
                if entry.name.endswith(suffix):
                    found.append(path)
                elif entry.is_symlink():
                    raise ManifestError(f"{path} is a symbolic link; put the real file or folder there.")
                elif entry.is_dir(follow_symlinks=False) and entry.name != "__pycache__":
                    waiting.append(path)
    return sorted(found)


@contextmanager
def open_folders(top: Path, folders: list[str], relative: str) -> Iterator[int]:
    """The innermost of some nested folders, each opened from the one above and trusted."""
    try:
        above = os.open(top, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError as error:
        raise unreadable(relative, error) from error
    try:
        demand_trust(os.fstat(above), str(top))
        for name in folders:
            with opened(name, above, os.O_DIRECTORY, relative) as below:
                demand_trust(os.fstat(below), relative)
                os.dup2(below, above, inheritable=False)
        yield above
    finally:
        os.close(above)


@contextmanager
def opened(name: str, folder: int, flags: int, relative: str) -> Iterator[int]:
    """One segment, opened for reading without following a link."""
    try:
        number = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | flags, dir_fd=folder)
    except OSError as error:
        raise unreadable(relative, error) from error
    try:
        yield number
    finally:
        os.close(number)


def demand_trust(status: os.stat_result, shown: str) -> None:
    """Demand that nobody but its owner can change it, and that its owner is the user or root.

    Raises:
        ManifestError: with the reason.
    """
    if status.st_uid not in (os.geteuid(), 0):
        raise ManifestError(f"{shown} belongs to another user; install the package as yourself.")
    if status.st_mode & OTHERS_WRITE:
        raise ManifestError(f"{shown} can be written by others; take group and world write permission away.")


def read_through(file: int, relative: str) -> Hashed:
    """Digest text and size of what an open file holds."""
    digest, size = hashlib.sha256(), 0
    try:
        while part := os.read(file, CHUNK):
            digest.update(part)
            size += len(part)
    except OSError as error:
        raise unreadable(relative, error) from error
    return Hashed(f"sha256:{digest.hexdigest()}", size)


def unreadable(relative: str, error: OSError) -> ManifestError:
    """The error for a file or folder that cannot be opened or read."""
    return ManifestError(
        f"{relative} cannot be read as a trusted file ({error.strerror}); restore it, or install the package again."
    )
