"""The files of a bundle wherever it lies, private or not, as those who verify it read them.

What was hashed is remembered up to a limit, so that what is judged afterwards is what was hashed, whatever
happens to the folder meanwhile; what is beyond the limit is hashed again when it is read.
"""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING, Final

from skill_effectiveness.evidence.canonical import digest_bytes, digest_chunks
from skill_effectiveness.evidence.faults import Fault, FileCode, FileError
from skill_effectiveness.evidence.fsops import read_public
from skill_effectiveness.evidence.pointer import printable
from skill_effectiveness.evidence.subjects import FolderSubjects
from skill_effectiveness.studies.bundle_form import ENVELOPE, ENVELOPE_LIMIT, FILE_LIMIT

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from skill_effectiveness.evidence.fsops import FileSystem

REMEMBERED: Final = 268_435_456
"""Bytes that are kept in memory of all files together."""

LARGEST_KEPT: Final = 4_194_304
"""Bytes of one file that is kept; copying larger ones would cost more than hashing them twice."""


class BundleFiles:
    """A folder as a reader of studies and as a source of a seal's subjects; links are never followed.

    Args:
        fs: file operations.
        folder: absolute.
    """

    def __init__(self, fs: FileSystem, folder: Path) -> None:
        self._fs = fs
        self._folder = folder
        self._inner = FolderSubjects(fs, folder, besides=(ENVELOPE,))
        self._present: tuple[str, ...] | None = None
        self._kept: dict[str, bytes] = {}
        self._room = REMEMBERED
        self.sizes: dict[str, int] = {}
        self.digests: dict[str, str] = {}

    @property
    def fs(self) -> FileSystem:
        """File operations."""
        return self._fs

    @property
    def path(self) -> Path:
        """The folder."""
        return self._folder

    def envelope(self) -> bytes:
        """The bytes of the seal.

        Raises:
            FileError: there is none, or it cannot be read.
        """
        return read_public(self._fs, self._folder / ENVELOPE, ENVELOPE_LIMIT)

    # As a source of subjects.

    def names(self, folder: str | None = None) -> tuple[str, ...]:
        """Everything present but the seal, sorted; of a folder, the names in it without hidden ones.

        Raises:
            FileError, TreeError: the folder cannot be walked.
        """
        if self._present is None:
            self._present = tuple(sorted(self._inner.names()))
        if folder is None:
            return self._present
        prefix = f"{folder}/"
        below = {name.removeprefix(prefix).split("/")[0] for name in self._present if name.startswith(prefix)}
        return tuple(sorted(name for name in below if name and not name.startswith(".")))

    def chunks(self, name: str) -> Iterator[bytes]:
        """The bytes of a file as they are read; its size is noted, and its bytes where there is room."""
        self._room += len(self._kept.pop(name, b""))
        held: list[bytes] | None = []
        size = 0
        for chunk in self._inner.chunks(name):
            size += len(chunk)
            if held is not None and size > min(self._room, LARGEST_KEPT):
                held = None
            if held is not None:
                held.append(chunk)
            yield chunk
        self.sizes[name] = size
        if held is not None:
            self._kept[name] = b"".join(held)
            self._room -= size

    # As a reader.

    def measured(self, name: str) -> tuple[int, str]:
        """Size and digest of a file.

        Raises:
            FileError: it is missing, no regular file, or cannot be read.
        """
        digest = digest_chunks(self.chunks(name))
        self.digests[name] = digest
        return self.sizes[name], digest

    def demand(self, name: str) -> bytes:
        """The bytes of a file that must be there.

        Raises:
            FileError: `missing`; as `read`.
        """
        data = self.read(name)
        if data is None:
            raise FileError(Fault(FileCode.MISSING, name, f"{printable(name)} is not in the bundle."))
        return data

    def read(self, path: str) -> bytes | None:
        """The bytes of a file; None where there is none.

        Raises:
            FileError: it is no regular file, cannot be read, is too large, or is not what was hashed.
        """
        if path not in self._kept:
            try:
                with closing(self._inner.chunks(path)) as chunks:
                    data = b"".join(_bounded(chunks, path))
            except FileError as error:
                if error.code is FileCode.MISSING:
                    return None
                raise
            known = self.digests.get(path)
            if known is not None and digest_bytes(data) != known:
                told = f"{printable(path)} changed while it was looked at; verify again."
                raise FileError(Fault(FileCode.IO_ERROR, path, told))
            return data
        return self._kept[path]


def _bounded(chunks: Iterable[bytes], path: str) -> Iterator[bytes]:
    size = 0
    for chunk in chunks:
        size += len(chunk)
        if size > FILE_LIMIT:
            told = f"{printable(path)} is larger than any file of a bundle."
            raise FileError(Fault(FileCode.FILE_SIZE, path, told))
        yield chunk
