"""Folders as they are frozen: a list of what lies in them, whose digest names them (evidence.md section 3).

The list is the preimage of `evidence.tree.digest_tree`, so the digest of its canonical bytes is the tree's:
whoever has the list under its digest, and every file under its own, has the folder.
"""

from __future__ import annotations

import posixpath
import stat
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Final, NamedTuple, Self

from pydantic import BaseModel, ConfigDict, Field

from skill_effectiveness.evidence.canonical import digest_bytes, digest_chunks, dump
from skill_effectiveness.evidence.chunks import chunks_of, regular_file
from skill_effectiveness.evidence.documents import validate
from skill_effectiveness.evidence.errnos import reported
from skill_effectiveness.evidence.faults import EvidenceError
from skill_effectiveness.evidence.fsops import read_public
from skill_effectiveness.evidence.laying import lay_file, lay_folder, lay_link
from skill_effectiveness.evidence.pointer import printable
from skill_effectiveness.evidence.strict import LONE_SURROGATE, Profile, read_json
from skill_effectiveness.evidence.tree import walk_tree
from skill_effectiveness.studies.errors import StudyCode, StudyError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from pathlib import Path

    from skill_effectiveness.evidence.fsops import FileSystem
    from skill_effectiveness.evidence.tree import Found

FILE_LIMIT: Final = 67_108_864
"""Bytes of one file of an input."""

_EXECUTE: Final = stat.S_IXUSR | stat.S_IXGRP | stat.S_IXOTH


class EntryKind(StrEnum):
    """What lies under a name."""

    FILE = "file"
    FOLDER = "dir"
    LINK = "link"


class TreeEntry(NamedTuple):
    """One name below a folder.

    Attributes:
        path: relative, with forward slashes.
        executable: whether it has an execute bit.
        size: bytes of a file, else 0.
        sha256: digest text of a file's bytes, else None.
        target: of a link as recorded, else None.
    """

    path: str
    kind: EntryKind
    executable: bool = False
    size: int = 0
    sha256: str | None = None
    target: str | None = None

    def listed(self) -> dict[str, object]:
        """The entry as it stands in the list that is digested."""
        said: dict[str, object] = {"path": self.path, "kind": str(self.kind), "exec": self.executable}
        if self.kind is EntryKind.LINK:
            return said | {"target": self.target}
        return said | {"size": self.size, "sha256": self.sha256}


@dataclass(frozen=True, slots=True)
class FileTree:
    """Everything below one folder, sorted by path."""

    entries: tuple[TreeEntry, ...]

    @classmethod
    def of(cls, entries: Iterable[TreeEntry]) -> Self:
        """The tree of entries in any order."""
        return cls(tuple(sorted(entries)))

    @property
    def listing(self) -> bytes:
        """The canonical list, which is what an input of this digest holds."""
        return dump([entry.listed() for entry in self.entries])

    @property
    def digest(self) -> str:
        """As `evidence.tree.digest_tree` gives it."""
        return digest_bytes(self.listing)

    @property
    def files(self) -> tuple[TreeEntry, ...]:
        """The regular files alone."""
        return tuple(entry for entry in self.entries if entry.kind is EntryKind.FILE)

    def find(self, path: str) -> TreeEntry | None:
        """The entry of a path."""
        return next((entry for entry in self.entries if entry.path == path), None)

    def below(self, folder: str) -> FileTree:
        """What lies below a folder of the tree, with paths from there; empty when there is no such folder."""
        prefix = f"{folder}/"
        return FileTree(
            tuple(
                entry._replace(path=entry.path.removeprefix(prefix))
                for entry in self.entries
                if entry.path.startswith(prefix)
            )
        )

    def under(self, folder: str) -> tuple[TreeEntry, ...]:
        """The entries as they are when the whole tree lies in a folder of this path, that folder included."""
        moved = (entry._replace(path=f"{folder}/{entry.path}") for entry in self.entries)
        return (TreeEntry(folder, EntryKind.FOLDER), *moved)


class OddityKind(StrEnum):
    """Why a name cannot be frozen."""

    NOT_REGULAR = "not_regular"
    LINK_LEAVES = "link_leaves"
    NAME_NOT_UTF8 = "name_not_utf8"
    NAME_COLLISION = "name_collision"
    TOO_LARGE = "too_large"


ODDITY_SENTENCES: Final = {
    OddityKind.NOT_REGULAR: "is a FIFO, a socket or a device; take it out",
    OddityKind.LINK_LEAVES: "is a link that leads out of the folder; put the file itself there",
    OddityKind.NAME_NOT_UTF8: "has a name or target that is not UTF-8; rename it",
    OddityKind.NAME_COLLISION: "differs from another name in case alone; rename it",
    OddityKind.TOO_LARGE: f"is larger than {FILE_LIMIT} bytes; take it out",
}


class Oddity(NamedTuple):
    """One name that cannot be frozen; its path is fit to be printed."""

    path: str
    kind: OddityKind

    def __str__(self) -> str:
        """A sentence without its end."""
        return f"{self.path} {ODDITY_SENTENCES[self.kind]}"


class Scanned(NamedTuple):
    """A folder that was looked at; with oddities it is no input."""

    tree: FileTree
    oddities: tuple[Oddity, ...]


def scan(fs: FileSystem, folder: Path) -> Scanned:
    """Everything below a folder; nothing but regular files is opened.

    Args:
        fs: file operations.
        folder: absolute; a link as its last segment is not followed.

    Raises:
        FileError, TreeError: as `evidence.tree.walk_tree`.
    """
    entries: list[TreeEntry] = []
    oddities: list[Oddity] = []
    folded: dict[str, str] = {}
    for found in walk_tree(fs, folder):
        looked = _looked_at(fs, found, folded)
        if isinstance(looked, Oddity):
            oddities.append(looked)
        else:
            entries.append(looked)
    return Scanned(FileTree.of(entries), tuple(oddities))


def scan_input(fs: FileSystem, folder: Path, where: str) -> FileTree:
    """A folder that a study file names.

    Args:
        fs: file operations.
        folder: absolute.
        where: how errors call it: a pointer of the study file.

    Raises:
        StudyError: `input_missing`, `input_refused`.
    """
    try:
        scanned = scan(fs, folder)
    except EvidenceError as error:
        raise StudyError(StudyCode.INPUT_MISSING, where, error.faults[0].sentence) from error
    if scanned.oddities:
        told = "; ".join(str(oddity) for oddity in scanned.oddities[:5])
        raise StudyError(StudyCode.INPUT_REFUSED, where, f"{told}.")
    return scanned.tree


def _looked_at(fs: FileSystem, found: Found, folded: dict[str, str]) -> TreeEntry | Oddity:
    where, mode = printable(found.path), found.status.st_mode
    if LONE_SURROGATE.search(found.name):
        return Oddity(where, OddityKind.NAME_NOT_UTF8)
    if folded.setdefault(found.path.casefold(), found.path) != found.path:
        return Oddity(where, OddityKind.NAME_COLLISION)
    if stat.S_ISDIR(mode):
        return TreeEntry(found.path, EntryKind.FOLDER)
    if stat.S_ISLNK(mode):
        return _link(fs, found, where)
    if stat.S_ISREG(mode) and found.status.st_size <= FILE_LIMIT:
        return _file(fs, found, where)
    return Oddity(where, OddityKind.TOO_LARGE if stat.S_ISREG(mode) else OddityKind.NOT_REGULAR)


def _link(fs: FileSystem, found: Found, where: str) -> TreeEntry | Oddity:
    with reported(where, reading=True):
        target = fs.readlink(found.parent, found.name)
    if LONE_SURROGATE.search(target):
        return Oddity(where, OddityKind.NAME_NOT_UTF8)
    if leaves(found.path, target):
        return Oddity(where, OddityKind.LINK_LEAVES)
    return TreeEntry(found.path, EntryKind.LINK, target=target)


def leaves(path: str, target: str) -> bool:
    """Whether a link at a path below a folder leads out of it, by its text alone.

    A target that climbs through another link could still leave, so `..` is taken only at the beginning, where
    every folder passed is one of the tree's own.
    """
    if target.startswith("/"):
        return True
    parts = target.split("/")
    climbing = [part == ".." for part in parts]
    if climbing != sorted(climbing, reverse=True):
        return True
    joined = posixpath.normpath(posixpath.join(posixpath.dirname(path), target))
    return joined == ".." or joined.startswith("../")


def _file(fs: FileSystem, found: Found, where: str) -> TreeEntry:
    size = 0
    with regular_file(fs, found.parent, found.name, where) as fd:
        executable = bool(fs.fstat(fd).st_mode & _EXECUTE)
        chunks = []
        for chunk in chunks_of(fs, fd):
            size += len(chunk)
            chunks.append(chunk)
        digest = digest_chunks(chunks)
    return TreeEntry(found.path, EntryKind.FILE, executable, size, digest)


def read_file(fs: FileSystem, folder: Path, entry: TreeEntry) -> bytes:
    """The bytes of a file of a scanned folder.

    Raises:
        StudyError: `plan_changed`: it is not what was scanned.
        FileError: it cannot be read.
    """
    data = read_public(fs, folder / entry.path, FILE_LIMIT)
    if digest_bytes(data) != entry.sha256:
        sentence = "this file changed while it was being read; try again."
        raise StudyError(StudyCode.PLAN_CHANGED, printable(entry.path), sentence)
    return data


@dataclass(frozen=True, slots=True)
class HeldTree:
    """A tree together with a way to its files.

    Attributes:
        tree: what there is.
        blob: the bytes of one of its files; raises as `read_file` or `inputs.Inputs.read`.
    """

    tree: FileTree
    blob: Callable[[TreeEntry], bytes]

    @classmethod
    def of_files(cls, files: Mapping[str, bytes]) -> Self:
        """A tree of these files, none of them executable, and of the folders they need."""
        held = dict(files)
        folders = {
            "/".join(parts[:depth])
            for parts in (path.split("/") for path in held)
            for depth in range(1, len(parts))
        }
        made = [TreeEntry(folder, EntryKind.FOLDER) for folder in folders]
        made += [
            TreeEntry(path, EntryKind.FILE, size=len(data), sha256=digest_bytes(data))
            for path, data in held.items()
        ]
        return cls(FileTree.of(made), lambda entry: held[entry.path])

    @classmethod
    def on_disk(cls, fs: FileSystem, folder: Path, tree: FileTree) -> Self:
        """A folder that was scanned and is read when its files are wanted."""
        return cls(tree, lambda entry: read_file(fs, folder, entry))

    def in_memory(self) -> HeldTree:
        """The same with every file read now, so that it outlives its folder."""
        held = {entry.path: self.blob(entry) for entry in self.tree.files}
        return HeldTree(self.tree, lambda entry: held[entry.path])

    def with_files(self, files: Mapping[str, bytes]) -> HeldTree:
        """The same with these files put over it; missing folders are made, and what was there gives way."""
        kept = [entry for entry in self.tree.entries if not _gives_way(entry, files)]
        folders = {entry.path for entry in kept}
        for path in files:
            parents = path.split("/")[:-1]
            for depth in range(1, len(parents) + 1):
                folder = "/".join(parents[:depth])
                if folder not in folders:
                    folders.add(folder)
                    kept.append(TreeEntry(folder, EntryKind.FOLDER))
        made = [
            TreeEntry(path, EntryKind.FILE, size=len(data), sha256=digest_bytes(data))
            for path, data in files.items()
        ]

        def blob(entry: TreeEntry) -> bytes:
            return files[entry.path] if entry.path in files else self.blob(entry)

        return HeldTree(FileTree.of([*kept, *made]), blob)

    def lay_down(self, fs: FileSystem, target: Path) -> None:
        """Write everything into an empty, existing folder that is nobody else's until this is done.

        Args:
            fs: file operations.
            target: absolute.

        Raises:
            StudyError, FileError: a file cannot be had, see `blob`; or it cannot be written.
        """
        for entry in self.tree.entries:
            path = target / entry.path
            if entry.kind is EntryKind.FOLDER:
                lay_folder(fs, path)
            elif entry.kind is EntryKind.LINK:
                lay_link(path, str(entry.target))
            else:
                lay_file(fs, path, self.blob(entry), executable=entry.executable)


def _gives_way(entry: TreeEntry, files: Mapping[str, bytes]) -> bool:
    """Whether an entry is, or is on the way of, a file that is put over it."""
    if entry.path in files or any(entry.path.startswith(f"{path}/") for path in files):
        return True
    on_the_way = any(path.startswith(f"{entry.path}/") for path in files)
    return on_the_way and entry.kind is not EntryKind.FOLDER


class _Listed(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    path: str = Field(min_length=1, max_length=4_096)
    kind: EntryKind
    exec: bool
    size: int | None = None
    sha256: str | None = Field(default=None, pattern=r"^sha256:[0-9a-f]{64}$")
    target: str | None = None


class _Listing(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    entries: tuple[_Listed, ...]


def read_listing(data: bytes) -> FileTree:
    """A tree out of its list.

    Raises:
        StudyError: `plan_changed`: not a list as `FileTree.listing` writes it, or one with a path that would
            leave the folder.
    """
    try:
        listing = validate(_Listing, {"entries": read_json(data, Profile.DOCUMENT)})
    except EvidenceError as error:
        raise _no_listing() from error
    tree = FileTree(
        tuple(
            TreeEntry(each.path, each.kind, each.exec, each.size or 0, each.sha256, each.target)
            for each in listing.entries
        )
    )
    if tree.listing != data or not _sound(tree):
        raise _no_listing()
    return tree


def _sound(tree: FileTree) -> bool:
    """Whether every name stands once, in a folder of the tree, and no link leaves it."""
    if len({entry.path for entry in tree.entries}) < len(tree.entries):
        return False
    folders = {""} | {entry.path for entry in tree.entries if entry.kind is EntryKind.FOLDER}
    for entry in tree.entries:
        parent, _, name = entry.path.rpartition("/")
        misplaced = parent not in folders or entry.path.startswith("/") or "\0" in entry.path
        if misplaced or name in {"", ".", ".."}:
            return False
        if entry.kind is EntryKind.LINK and (entry.target is None or leaves(entry.path, entry.target)):
            return False
        if (entry.kind is EntryKind.FILE) is (entry.sha256 is None):
            return False
    return True


def _no_listing() -> StudyError:
    sentence = "an input is no list of files as this program writes it; it was changed, so plan anew."
    return StudyError(StudyCode.PLAN_CHANGED, "inputs", sentence)
