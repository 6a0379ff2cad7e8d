"""Where the files that a seal names are found.

Source: evidence.md, section 9, steps 8 and 9. `FolderSubjects` looks into a folder; `HeldSubjects` serves
bytes that were read before, for a caller that goes on to use exactly the bytes that were verified.
"""

from __future__ import annotations

import stat
from contextlib import ExitStack
from typing import TYPE_CHECKING, Protocol

from skill_effectiveness.evidence.chunks import file_chunks
from skill_effectiveness.evidence.errnos import reported
from skill_effectiveness.evidence.faults import Fault, FileCode, FileError
from skill_effectiveness.evidence.fsops import closing
from skill_effectiveness.evidence.tree import walk_tree

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable, Iterator, Mapping
    from pathlib import Path

    from skill_effectiveness.evidence.fsops import FileSystem


class SubjectSource(Protocol):
    """Things present, by relative name with forward slashes. Both operations may raise `EvidenceError`."""

    def names(self) -> Iterable[str]:
        """The name of everything present besides the seal itself."""

    def chunks(self, name: str) -> Iterator[bytes]:
        """The bytes of one of them, a chunk at a time, from the start at every call."""


class HeldSubjects:
    """Subjects whose bytes are in memory."""

    def __init__(self, held: Mapping[str, bytes]) -> None:
        self._held = dict(held)

    def names(self) -> Iterable[str]:
        """See `SubjectSource`."""
        return self._held

    def chunks(self, name: str) -> Iterator[bytes]:
        """See `SubjectSource`; raises `FileError` `missing`."""
        if name not in self._held:
            raise FileError(Fault(FileCode.MISSING, name, f"{name} does not exist."))
        return iter((self._held[name],))


class FolderSubjects:
    """Subjects in a folder; no link is followed and nothing but regular files is opened.

    Links, empty folders and everything else that is not a regular file count as present too (an empty folder
    with a slash behind its name), so a seal never covers a folder that holds them.

    Args:
        fs: file operations.
        folder: absolute; a link as its last segment is not followed.
        besides: relative names that do not count, such as that of the seal.
    """

    def __init__(self, fs: FileSystem, folder: Path, *, besides: Iterable[str]) -> None:
        self._fs = fs
        self._folder = folder
        self._besides = frozenset(besides)

    def names(self) -> Iterable[str]:
        """See `SubjectSource`; raises as `tree.walk_tree`."""
        names: set[str] = set()
        for found in walk_tree(self._fs, self._folder):
            # Whatever lies in a folder speaks for it; only an empty one stands for itself.
            names.discard(found.path.rpartition("/")[0] + "/")
            names.add(found.path + "/" if stat.S_ISDIR(found.status.st_mode) else found.path)
        return names - self._besides

    def chunks(self, name: str) -> Generator[bytes, None, None]:
        """See `SubjectSource`; raises as `chunks.file_chunks`."""
        *folders, last = name.split("/")
        with reported(name, reading=True), ExitStack() as opened:
            fd = opened.enter_context(closing(self._fs, self._fs.open_dir(None, str(self._folder))))
            for segment in folders:
                fd = opened.enter_context(closing(self._fs, self._fs.open_dir(fd, segment)))
            yield from file_chunks(self._fs, fd, last, name)
