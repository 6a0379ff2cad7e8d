"""Folders, files and links laid down where a program will work on them; nothing here is private evidence.

The caller owns the folder in which this happens, alone, until everything lies there. Nothing is ever
replaced: a name that is taken is an error.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Final

from skill_effectiveness.evidence.errnos import reported
from skill_effectiveness.evidence.faults import Fault, FileCode, FileError
from skill_effectiveness.evidence.fsops import closing, write_all
from skill_effectiveness.evidence.pointer import printable

if TYPE_CHECKING:
    from pathlib import Path

    from skill_effectiveness.evidence.fsops import FileSystem

_FILE: Final = 0o600
_PROGRAM: Final = 0o700


def lay_folder(fs: FileSystem, path: Path, mode: int = _PROGRAM) -> None:
    """Make a folder whose parent is there.

    Raises:
        FileError: `exists_different`: the name is taken; or the code of a kernel error.
    """
    with reported(printable(path.name)):
        try:
            fs.mkdir(None, str(path), mode)
        except FileExistsError as error:
            raise _taken(path) from error


def lay_link(path: Path, target: str) -> None:
    """Make a symbolic link; where it leads is not looked at.

    Raises:
        FileError: as `lay_folder`.
    """
    with reported(printable(path.name)):
        try:
            path.symlink_to(target)
        except FileExistsError as error:
            raise _taken(path) from error


def lay_file(fs: FileSystem, path: Path, data: bytes, *, executable: bool = False) -> None:
    """Write a file for its owner alone; not made durable, since it can be laid down again.

    Raises:
        FileError: as `lay_folder`.
    """
    with reported(printable(path.name)):
        try:
            fd = fs.create_exclusive(None, str(path), _PROGRAM if executable else _FILE)
        except FileExistsError as error:
            raise _taken(path) from error
        with closing(fs, fd):
            write_all(fs, fd, data)


def _taken(path: Path) -> FileError:
    where = printable(path.name)
    sentence = f"{where} exists already and is not replaced; use another name or move it away."
    return FileError(Fault(FileCode.EXISTS_DIFFERENT, where, sentence))


def lay_missing(fs: FileSystem, path: Path) -> tuple[Path, ...]:
    """Make a folder, and those above it, as far as they are not there; answers those that were made.

    Raises:
        FileError: as `lay_folder`, or a folder on the way cannot be looked at.
    """
    missing = []
    for folder in (path, *path.parents):
        if is_there(fs, folder):
            break
        missing.append(folder)
    for folder in reversed(missing):
        lay_folder(fs, folder)
    return tuple(reversed(missing))


def drop_file(fs: FileSystem, path: Path) -> None:
    """Take away a file that was laid.

    Raises:
        FileError: the code of a kernel error.
    """
    with reported(printable(path.name)):
        fs.unlink(None, str(path))


def drop_empty(fs: FileSystem, path: Path) -> None:
    """Take away a folder if nothing is in it; one that holds something, or cannot be removed, stays."""
    with suppress(OSError):
        fs.rmdir(None, str(path))


def name_laid(fs: FileSystem, laid: Path, target: Path) -> None:
    """Give a folder that was laid under another name beside it the name it is meant to have.

    Raises:
        FileError: as `lay_folder`.
    """
    if is_there(fs, target):
        raise _taken(target)
    with reported(printable(target.name)):
        fs.rename(None, str(laid), None, str(target))


def is_there(fs: FileSystem, folder: Path) -> bool:
    """Whether something has this name; a link at its end is not followed.

    Raises:
        FileError: it cannot be looked at.
    """
    with reported(printable(folder.name), reading=True):
        try:
            fs.lstat(None, str(folder))
        except (FileNotFoundError, NotADirectoryError):
            return False
    return True
