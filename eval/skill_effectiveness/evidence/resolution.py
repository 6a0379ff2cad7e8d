"""Where a path really leads: links resolved, in folders that need not exist any more.

Source: trials.md, section 5: a path that a tested agent touched counts after symbolic links. The last
segment is looked at once per question; folders on the way are remembered, so that 50,000 files of one folder
cost its walk once.
"""

from __future__ import annotations

import errno
import posixpath
import stat
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from skill_effectiveness.evidence.fsops import FileSystem

# As many as Linux follows (path_resolution(7)).
_MOST_LINKS: Final = 40
# What is not there, or below something that is no folder, cannot be a link.
_NOTHING_THERE: Final = frozenset({errno.ENOENT, errno.ENOTDIR, errno.ENAMETOOLONG})


def holds(folder: str, path: str) -> bool:
    """Whether a path is the folder or lies below it, as both are spelt: absolute, without `.` and `..`."""
    return path == folder or path.startswith(f"{folder.rstrip('/')}/")


class UnresolvedError(Exception):
    """Where a path leads cannot be told: too many links, or a folder that may not be searched."""


class PathResolver:
    """Resolves paths by the state of the file system now.

    Args:
        fs: file operations.

    Attributes:
        asked: how many paths were resolved so far.
    """

    def __init__(self, fs: FileSystem) -> None:
        self._fs = fs
        self._folders: dict[str, str] = {}
        self.asked = 0

    def resolve(self, path: str) -> str:
        """The absolute path without links, `.`, `..` and doubled slashes.

        Args:
            path: absolute; `..` is taken after the links before it, as the kernel does.

        Raises:
            UnresolvedError: nobody can tell.
        """
        self.asked += 1
        parent, _, name = path.rpartition("/")
        folder = self._folders.get(parent)
        if folder is None:
            folder = self._folders[parent] = self._walk("/", parent)
        return self._walk(folder, name)

    def _walk(self, start: str, path: str) -> str:
        """Where `path` leads from the resolved folder `start`."""
        here = start
        links = 0
        rest = path.split("/")[::-1]
        while rest:
            name = rest.pop()
            if name in {"", "."}:
                continue
            if name == "..":
                here = posixpath.dirname(here)
                continue
            there = f"{here.rstrip('/')}/{name}"
            target = self._link(there)
            if target is None:
                here = there
                continue
            links += 1
            if links > _MOST_LINKS:
                raise UnresolvedError
            if target.startswith("/"):
                here = "/"
            rest.extend(target.split("/")[::-1])
        return here

    def _link(self, path: str) -> str | None:
        """The target of a link; `None` for anything else, or nothing."""
        try:
            if not stat.S_ISLNK(self._fs.lstat(None, path).st_mode):
                return None
            return self._fs.readlink(None, path)
        except OSError as error:
            if error.errno in _NOTHING_THERE:
                return None
            raise UnresolvedError from error
