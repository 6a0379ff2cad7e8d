"""Frozen inputs of a study by their digests: `inputs/<64 hex>` (studies.md section 3).

A folder is held as its list (`file_trees`) under the tree's digest, and every file under its own; whatever an
order names can therefore be taken out, checked and laid down anywhere.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from skill_effectiveness.evidence.canonical import digest_bytes
from skill_effectiveness.evidence.faults import FileCode, FileError
from skill_effectiveness.studies.errors import StudyCode, StudyError
from skill_effectiveness.studies.file_trees import HeldTree, read_file, read_listing

if TYPE_CHECKING:
    from pathlib import Path

    from skill_effectiveness.evidence.fsops import FileSystem
    from skill_effectiveness.evidence.root import PrivateRoot
    from skill_effectiveness.studies.file_trees import FileTree

INPUTS: Final = "inputs"
_PREFIX: Final = "sha256:"


class Inputs:
    """The inputs below one study root, which stays the caller's."""

    def __init__(self, root: PrivateRoot) -> None:
        self._root = root

    def keep(self, data: bytes) -> str:
        """Keep bytes; the same bytes again are a no-op. Answers their digest.

        Raises:
            RootError, FileError: the folder is not private, or nothing can be written.
        """
        digest = digest_bytes(data)
        with self._root.child(INPUTS, create=True) as folder:
            folder.publish(digest.removeprefix(_PREFIX), data)
        return digest

    def keep_folder(self, fs: FileSystem, folder: Path, tree: FileTree) -> str:
        """Keep a folder that was scanned; every file is read anew and must be what it was.

        Raises:
            StudyError: `plan_changed`.
            RootError, FileError: as `keep`, or a file cannot be read.
        """
        for entry in tree.files:
            self.keep(read_file(fs, folder, entry))
        return self.keep(tree.listing)

    def keep_tree(self, tree: FileTree) -> str:
        """Keep the list of a part of a folder whose files are kept already."""
        return self.keep(tree.listing)

    def read(self, digest: str) -> bytes:
        """The bytes of a digest.

        Raises:
            StudyError: `plan_changed`: they are missing, or are other bytes.
            RootError, FileError: the folder or file is not private, or cannot be read.
        """
        try:
            with self._root.child(INPUTS) as folder:
                data = folder.read(digest.removeprefix(_PREFIX))
        except FileError as error:
            if error.code is not FileCode.MISSING:
                raise
            raise _changed("is missing") from error
        if digest_bytes(data) != digest:
            raise _changed("is no longer what it was")
        return data

    def tree(self, digest: str) -> FileTree:
        """The list of a folder; errors as `read`."""
        return read_listing(self.read(digest))

    def held(self, digest: str) -> HeldTree:
        """A folder of the inputs, to be laid down; errors as `read`, also when its files are read."""
        return HeldTree(self.tree(digest), lambda entry: self.read(str(entry.sha256)))


def _changed(told: str) -> StudyError:
    sentence = f"a frozen input {told}; restore the study's folder, or plan anew."
    return StudyError(StudyCode.PLAN_CHANGED, INPUTS, sentence)
