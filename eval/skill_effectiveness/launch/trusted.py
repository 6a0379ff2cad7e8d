"""Reading files whose bytes are going to be bound: each once, through a descriptor, trusted or not at all.

Source: bridge.md sections 2 and 3; calibration.md section 3 (`runtime_manifest_unavailable`).
"""

from __future__ import annotations

import errno
import hashlib
import os
import stat
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final, NamedTuple

from skill_effectiveness.launch.faults import ManifestError
from skill_effectiveness.launch.ownership import demand_trust

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

__all__ = [
    "Hashed",
    "ManifestError",
    "demand_trust",
    "demand_trusted_folder",
    "hash_file",
    "hash_lone_file",
    "list_files",
    "read_file",
    "read_lone_file",
]

CHUNK: Final = 1 << 20
PASSING: Final = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOMEM})
"""What nothing of the installation is at fault for."""


class Hashed(NamedTuple):
    """What one file held at the one moment it was read."""

    sha256: str
    size: int


def hash_file(top: Path, relative: str, shown: str | None = None) -> Hashed:
    """Hash a trusted regular file in trusted folders.

    Args:
        top: a folder; links on the way to it are followed, and it has to be trusted like every folder below.
        relative: forward-slashed name below it.
        shown: how errors name the file; `relative` if not given.

    Raises:
        ManifestError: a segment is missing, a link, of another kind, another user's, or writable by others.
        ValueError: `relative` is no name below a folder.
    """
    shown = shown or relative
    with _file_below(top, relative, shown) as file:
        return read_through(file, shown)


def read_file(top: Path, relative: str) -> bytes:
    """The bytes of a trusted regular file in trusted folders; arguments and errors as `hash_file`."""
    with _file_below(top, relative, relative) as file:
        return b"".join(_chunks(file, relative))


def hash_lone_file(path: Path, shown: str | None = None) -> Hashed:
    """Hash a trusted regular file wherever it lies: its own owner and mode count, not those of its folder.

    Args:
        path: absolute.
        shown: how errors name the file; its name if not given.

    Raises:
        ManifestError: it is missing, a link, of another kind, another user's, or writable by others.
    """
    shown = shown or path.name
    with _lone_file(path, shown) as file:
        return read_through(file, shown)


def read_lone_file(path: Path) -> bytes:
    """The bytes of a trusted regular file wherever it lies; errors as `hash_lone_file`."""
    with _lone_file(path, path.name) as file:
        return b"".join(_chunks(file, path.name))


@contextmanager
def _file_below(top: Path, relative: str, shown: str) -> Iterator[int]:
    *folders, name = relative.split("/")
    if {"", ".", ".."} & {*folders, name}:
        raise ValueError(f"not a name below a folder: {relative!r}")
    with open_folders(top, folders, shown) as folder, _file_in(folder, name, shown) as file:
        yield file


@contextmanager
def _lone_file(path: Path, shown: str) -> Iterator[int]:
    with (
        opened(str(path.parent), None, os.O_DIRECTORY, shown, follow=True) as folder,
        _file_in(folder, path.name, shown) as file,
    ):
        yield file


@contextmanager
def _file_in(folder: int, name: str, shown: str) -> Iterator[int]:
    """One name in an open folder, opened when it is a trusted regular file; ManifestError otherwise."""
    # A FIFO must not keep us waiting for a writer.
    with opened(name, folder, os.O_NONBLOCK, shown) as file:
        status = os.fstat(file)
        if not stat.S_ISREG(status.st_mode):
            raise ManifestError(f"{shown} is not a regular file; restore it, or install the package again.")
        demand_trust(status, shown)
        yield file


def demand_trusted_folder(path: Path, shown: str) -> None:
    """Demand a folder in which nobody else can put another one in the place of what it holds.

    Args:
        path: absolute; links on the way to it are followed.
        shown: how errors name it.

    Raises:
        ManifestError: it is missing, no folder, another user's, or writable by others.
    """
    with opened(str(path), None, os.O_DIRECTORY, shown, follow=True) as folder:
        demand_trust(os.fstat(folder), shown)


def list_files(top: Path, relative: str, suffix: str, shown_top: str = "") -> list[str]:
    """The names below a folder, at any depth, that end in a suffix; sorted, relative to `top`, unread.

    Bytecode caches are left out. A link is listed when its name fits, and refused when it is read; any other
    link is refused here, because it could lead into another folder.

    Args:
        top: as in `hash_file`.
        relative: folder below it.
        suffix: end of a name.
        shown_top: what errors put before names below `top`.

    Raises:
        ManifestError: as `hash_file`.
    """
    found: list[str] = []
    waiting = [relative]
    while waiting:
        inside = waiting.pop()
        shown = f"{shown_top}{inside}"
        with open_folders(top, inside.split("/"), shown) as folder, os.scandir(folder) as entries:
            for entry in entries:
                path = f"{inside}/{entry.name}"
                if entry.name.endswith(suffix):
                    found.append(path)
                elif entry.is_symlink():
                    told = f"{shown}/{entry.name} is a symbolic link; put the real file or folder there."
                    raise ManifestError(told)
                elif entry.is_dir(follow_symlinks=False) and entry.name != "__pycache__":
                    waiting.append(path)
    return sorted(found)


@contextmanager
def open_folders(top: Path, folders: list[str], shown: str) -> Iterator[int]:
    """The innermost of some nested folders, each opened from the one above and trusted."""
    with opened(str(top), None, os.O_DIRECTORY, shown, follow=True) as above:
        demand_trust(os.fstat(above), f"the top folder of {shown}")
        for depth, name in enumerate(folders, 1):
            with opened(name, above, os.O_DIRECTORY, shown) as below:
                demand_trust(os.fstat(below), "/".join(folders[:depth]))
                os.dup2(below, above, inheritable=False)
        yield above


@contextmanager
def opened(name: str, folder: int | None, flags: int, shown: str, *, follow: bool = False) -> Iterator[int]:
    """One segment in an open folder, or a whole path, opened for reading; a link at its end is refused."""
    flags |= os.O_RDONLY | os.O_CLOEXEC | (0 if follow else os.O_NOFOLLOW)
    try:
        number = os.open(name, flags, dir_fd=folder)
    except OSError as error:
        raise unreadable(shown, error) from error
    try:
        yield number
    finally:
        os.close(number)


def read_through(file: int, shown: str) -> Hashed:
    """Digest text and size of what an open file holds."""
    digest, size = hashlib.sha256(), 0
    for part in _chunks(file, shown):
        digest.update(part)
        size += len(part)
    return Hashed(f"sha256:{digest.hexdigest()}", size)


def _chunks(file: int, shown: str) -> Iterator[bytes]:
    """What an open file holds, part by part."""
    try:
        while part := os.read(file, CHUNK):
            yield part
    except OSError as error:
        raise unreadable(shown, error) from error


def unreadable(shown: str, error: OSError) -> ManifestError:
    """The error for a file or folder that cannot be opened or read."""
    todo = "restore it, or install it again"
    if error.errno in PASSING:
        todo = "end other programs or raise the limits (ulimit -n), and ask again"
    return ManifestError(f"{shown} cannot be read as a trusted file ({error.strerror}); {todo}.")
