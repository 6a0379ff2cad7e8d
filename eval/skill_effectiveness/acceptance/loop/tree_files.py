"""Files of a repository by their relative paths: never outside of it, never in `.git`.

Source: loop.md, L17, L18, L49, L51.
"""

from __future__ import annotations

import stat
from pathlib import Path
from typing import TYPE_CHECKING, Final

from skill_effectiveness.evidence.faults import EvidenceError, FileCode, FileError
from skill_effectiveness.evidence.fsops import read_public

if TYPE_CHECKING:
    from skill_effectiveness.evidence.fsops import FileSystem

_GIT: Final = ".git"


class PathRefusedError(ValueError):
    """A path that leaves its root, enters `.git` or is none; the text says which."""


def segments(path: str) -> tuple[str, ...]:
    """The names along a relative path.

    Raises:
        PathRefusedError: it is absolute, empty, holds `.`, `..`, an empty name, NUL, or `.git`.
    """
    names = tuple(path.split("/"))
    if "\0" in path or any(name in {"", ".", ".."} for name in names):
        raise PathRefusedError("the path has to be relative, without empty names, dots and NUL")
    if _enters_git(names):
        raise PathRefusedError("the path enters .git")
    return names


def _enters_git(names: tuple[str, ...]) -> bool:
    return any(name.casefold() == _GIT for name in names)


class TreeFiles:
    """The files of one folder.

    Args:
        fs: file operations.
        root: absolute.
    """

    def __init__(self, fs: FileSystem, root: Path) -> None:
        self._fs = fs
        self._root = root

    def place(self, path: str, *, links: bool) -> Path | None:
        """Where a path leads; `None`: to nothing, outside, or into `.git`.

        Args:
            path: relative.
            links: whether links on the way are followed as long as they stay inside.

        Raises:
            PathRefusedError: see `segments`.
        """
        names = segments(path)
        try:
            root = Path(self._fs.resolve(str(self._root)))
            found = Path(self._fs.resolve(str(root.joinpath(*names))))
            self._fs.lstat(None, str(found))
        except (OSError, ValueError):
            return None
        if found == root.joinpath(*names):
            return found
        if not links or not found.is_relative_to(root) or _enters_git(found.relative_to(root).parts):
            return None
        return found

    def is_file(self, path: str) -> bool:
        """Whether a path leads to a regular file inside."""
        found = self.place(path, links=True)
        return found is not None and stat.S_ISREG(self._fs.lstat(None, str(found)).st_mode)

    def read(self, path: str, limit: int) -> bytes | None:
        """The bytes of a regular file inside, or `None` where there is none.

        Raises:
            PathRefusedError: see `segments`.
            FileError: it is longer than the limit or cannot be read.
        """
        found = self.place(path, links=True)
        if found is None or not stat.S_ISREG(self._fs.lstat(None, str(found)).st_mode):
            return None
        return read_public(self._fs, found, limit)


def context_text(files: TreeFiles, path: str, limit: int) -> str:
    """A context file, whole.

    Raises:
        PathRefusedError: the reason for which it cannot be used.
    """
    if files.place(path, links=True) is None:
        raise PathRefusedError("does not exist in the repository")
    if files.place(path, links=False) is None:
        raise PathRefusedError("is reached through a symbolic link")
    try:
        data = files.read(path, limit)
    except FileError as error:
        too_long = error.code is FileCode.FILE_SIZE
        raise PathRefusedError(
            f"is longer than {limit} bytes" if too_long else f"cannot be read ({error.code})"
        ) from error
    except EvidenceError as error:
        raise PathRefusedError(f"cannot be read ({error.code})") from error
    if data is None:
        raise PathRefusedError("is not a regular file")
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise PathRefusedError("is not UTF-8") from error
    if "\0" in text:
        raise PathRefusedError("holds a NUL character")
    return text
