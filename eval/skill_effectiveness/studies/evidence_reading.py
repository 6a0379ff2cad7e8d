"""What a study leaves, file by file, wherever it lies: in its folder or in a bundle of it.

Tables are built and verified from the same files by the same code; only how a file is had differs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from skill_effectiveness.evidence.faults import FileCode, FileError, RootCode, RootError

if TYPE_CHECKING:
    from skill_effectiveness.evidence.root import PrivateRoot


class StudyReader(Protocol):
    """The files of one study, by paths relative to its folder, with forward slashes."""

    def read(self, path: str) -> bytes | None:
        """The bytes of a file; None where there is none."""
        ...

    def names(self, folder: str) -> tuple[str, ...]:
        """What lies in a folder, sorted; nothing where there is no such folder."""
        ...


class RootReader:
    """The files of a study's own folder, which stays the caller's.

    Raises:
        RootError, FileError: by every question, when something is no private file or folder of ours.
    """

    def __init__(self, root: PrivateRoot) -> None:
        self._root = root

    def read(self, path: str) -> bytes | None:
        """See `StudyReader`."""
        *folders, name = path.split("/")
        try:
            if not folders:
                return self._root.read(name)
            with self._root.child(*folders) as folder:
                return folder.read(name)
        except RootError as error:
            if error.code is not RootCode.ROOT_MISSING:
                raise
        except FileError as error:
            if error.code is not FileCode.MISSING:
                raise
        return None

    def names(self, folder: str) -> tuple[str, ...]:
        """See `StudyReader`."""
        try:
            with self._root.child(*folder.split("/")) as found:
                return tuple(sorted(name for name in found.names() if not name.startswith(".")))
        except RootError as error:
            if error.code is not RootCode.ROOT_MISSING:
                raise
        return ()
