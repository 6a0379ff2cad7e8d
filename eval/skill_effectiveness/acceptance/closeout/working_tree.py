"""The policy files of a working tree, as they lie there now.

Source: closeout.md, sections 3 and 10.
"""

from __future__ import annotations

import stat
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from skill_effectiveness.acceptance.closeout.errors import PolicyError
from skill_effectiveness.acceptance.closeout.tree import Below, EntryKind, TreeUnreadableError
from skill_effectiveness.evidence.errnos import reported
from skill_effectiveness.evidence.faults import EvidenceError
from skill_effectiveness.evidence.fsops import read_public
from skill_effectiveness.evidence.tree import walk_tree

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from skill_effectiveness.evidence.fsops import FileSystem

FILE_BYTES: Final = 67_108_864


class WorkingTree:
    """A `PolicyTree` over a folder.

    Raises:
        PolicyError: the root is not a directory.
    """

    def __init__(self, fs: FileSystem, root: Path) -> None:
        self._fs = fs
        self._root = root
        try:
            with reported("the policy root", reading=True):
                mode = fs.lstat(None, fs.resolve(str(root))).st_mode
        except EvidenceError:
            mode = 0
        if not stat.S_ISDIR(mode):
            raise PolicyError("policy root is not a directory")

    def kind(self, path: str) -> EntryKind:
        """See `PolicyTree`."""
        with _readable():
            try:
                with reported(path, reading=True):
                    return kind_of(self._fs.lstat(None, str(self._root / path)).st_mode)
            except EvidenceError as error:
                if isinstance(error.__cause__, FileNotFoundError | NotADirectoryError):
                    return EntryKind.MISSING
                raise

    def target(self, path: str) -> str:
        """See `PolicyTree`."""
        with _readable(), reported(path, reading=True):
            return self._fs.readlink(None, str(self._root / path))

    def read(self, path: str) -> bytes:
        """See `PolicyTree`."""
        with _readable():
            return read_public(self._fs, self._root / path, FILE_BYTES)

    def below(self, folder: str) -> Iterable[Below]:
        """See `PolicyTree`."""
        with _readable():
            found = walk_tree(self._fs, self._root / folder)
            return [Below(each.path, kind_of(each.status.st_mode)) for each in found]


def kind_of(mode: int) -> EntryKind:
    """The kind behind a mode."""
    kinds = ((stat.S_ISREG, EntryKind.FILE), (stat.S_ISDIR, EntryKind.FOLDER), (stat.S_ISLNK, EntryKind.LINK))
    return next((kind for test, kind in kinds if test(mode)), EntryKind.OTHER)


@contextmanager
def _readable() -> Iterator[None]:
    """Turn a fault of the file system into a reason without a path."""
    try:
        yield
    except EvidenceError as error:
        raise TreeUnreadableError(f"cannot be read ({error.code})") from error
