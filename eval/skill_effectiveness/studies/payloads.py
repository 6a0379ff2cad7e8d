"""What an arm gives its agent: skills, instruction files and hooks as one tree (studies.md section 1).

A payload lies before the agent as `skills/<name>/…`, `instructions/<file>` and `hooks/<file>`; the tree of
that, in this shape, is what a plan pins.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Final

from skill_effectiveness.evidence.canonical import digest_bytes
from skill_effectiveness.evidence.chunks import regular_file
from skill_effectiveness.evidence.faults import EvidenceError
from skill_effectiveness.evidence.fsops import read_all
from skill_effectiveness.evidence.yaml12 import YamlError, read_yaml
from skill_effectiveness.studies.errors import StudyCode, StudyError
from skill_effectiveness.studies.file_trees import (
    FILE_LIMIT,
    EntryKind,
    FileTree,
    HeldTree,
    TreeEntry,
    read_file,
    scan_input,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from skill_effectiveness.evidence.fsops import FileSystem
    from skill_effectiveness.studies.study_file import ArmContent

SKILL_FILE: Final = "SKILL.md"
_SKILL_NAME: Final = re.compile(r"[a-z0-9-]{1,64}")
_FILE_NAME: Final = re.compile(r"[A-Za-z0-9._-]{1,128}")
_FRONT_MATTER: Final = re.compile(r"---\n(.*?\n)---(\n|\Z)", re.DOTALL)
SKILLS: Final = "skills"
INSTRUCTIONS: Final = "instructions"
HOOKS: Final = "hooks"


@dataclass(frozen=True, slots=True)
class Skill:
    """One skill: its name, by its own word or its folder's, and the digest of its folder."""

    name: str
    tree: str


@dataclass(frozen=True, slots=True)
class NamedFile:
    """One instruction file or file of hooks."""

    name: str
    sha256: str


@dataclass(frozen=True, slots=True)
class Payload:
    """Everything that one arm adds.

    Attributes:
        skills: in the order of the study file.
        instructions: likewise.
        hooks: likewise.
        held: all of it as an agent is given it.
    """

    skills: tuple[Skill, ...]
    instructions: tuple[NamedFile, ...]
    hooks: tuple[NamedFile, ...]
    held: HeldTree

    @property
    def tree(self) -> FileTree:
        """The files of the payload."""
        return self.held.tree

    def texts(self) -> Iterator[str]:
        """The texts of the payload, for whoever has to look for them; other files are passed over."""
        for entry in self.tree.files:
            try:
                yield self.held.blob(entry).decode("utf-8")
            except UnicodeDecodeError:
                continue


def read_payload(fs: FileSystem, content: ArmContent, base: Path, where: str) -> Payload:
    """The payload of an arm.

    Args:
        fs: file operations.
        content: what the study file names.
        base: the folder of the study file, absolute.
        where: JSON pointer of the arm.

    Raises:
        StudyError: `input_missing`, `input_refused`.
    """
    reading = _Reading(fs, base)
    skills = [reading.skill(path, f"{where}/{SKILLS}/{index}") for index, path in enumerate(content.skills)]
    files = {
        kind: tuple(reading.file(path, kind, f"{where}/{kind}/{index}") for index, path in enumerate(given))
        for kind, given in ((INSTRUCTIONS, content.instructions), (HOOKS, content.hooks))
    }
    return Payload(tuple(skills), files[INSTRUCTIONS], files[HOOKS], reading.held())


class _Reading:
    """Collects the entries of a payload and the way to their files."""

    def __init__(self, fs: FileSystem, base: Path) -> None:
        self._fs = fs
        self._base = base
        self._entries: dict[str, TreeEntry] = {}
        self._ways: dict[str, Callable[[], bytes]] = {}

    def held(self) -> HeldTree:
        ways = dict(self._ways)
        return HeldTree(FileTree.of(self._entries.values()), lambda entry: ways[entry.path]())

    def skill(self, path: str, where: str) -> Skill:
        folder = self._base / path
        tree = scan_input(self._fs, folder, where)
        described = tree.find(SKILL_FILE)
        if described is None or described.kind is not EntryKind.FILE:
            raise _refused(where, f"this folder has no {SKILL_FILE}; name a skill's folder.")
        name = _skill_name(read_file(self._fs, folder, described), folder.name, where)
        self._add(SKILLS, TreeEntry(SKILLS, EntryKind.FOLDER), where, twice=True)
        for entry in tree.under(f"{SKILLS}/{name}"):
            self._add(entry.path, entry, where)
        for entry in tree.files:
            self._ways[f"{SKILLS}/{name}/{entry.path}"] = self._way(folder, entry)
        return Skill(name, tree.digest)

    def _way(self, folder: Path, entry: TreeEntry) -> Callable[[], bytes]:
        return lambda: read_file(self._fs, folder, entry)

    def file(self, path: str, kind: str, where: str) -> NamedFile:
        name = PurePosixPath(path).name
        if _FILE_NAME.fullmatch(name) is None:
            raise _refused(where, "this file's name is not of letters, digits, '.', '_' and '-'; rename it.")
        whole = self._base / path
        try:
            with regular_file(self._fs, None, str(whole), name) as fd:
                data = read_all(self._fs, fd, FILE_LIMIT, name)
        except EvidenceError as error:
            raise StudyError(StudyCode.INPUT_MISSING, where, error.faults[0].sentence) from error
        digest = digest_bytes(data)
        self._add(kind, TreeEntry(kind, EntryKind.FOLDER), where, twice=True)
        self._add(
            f"{kind}/{name}",
            TreeEntry(f"{kind}/{name}", EntryKind.FILE, size=len(data), sha256=digest),
            where,
        )
        self._ways[f"{kind}/{name}"] = lambda: data
        return NamedFile(name, digest)

    def _add(self, path: str, entry: TreeEntry, where: str, *, twice: bool = False) -> None:
        if path in self._entries and not twice:
            raise _refused(where, "an arm has two skills or files of this name; rename one.")
        self._entries[path] = entry


def _skill_name(data: bytes, folder: str, where: str) -> str:
    name = folder
    text = data.decode("utf-8", "replace").replace("\r\n", "\n")
    if (matter := _FRONT_MATTER.match(text)) is not None:
        try:
            said = read_yaml(matter[1].encode())
        except YamlError as error:
            raise _refused(
                where, f"the front matter of {SKILL_FILE} is not YAML 1.2: {error.reason}."
            ) from error
        if isinstance(said, dict) and "name" in said:
            name = str(said["name"])
    if _SKILL_NAME.fullmatch(name) is None:
        raise _refused(where, "a skill's name is of small letters, digits and '-'; rename it.")
    return name


def _refused(where: str, sentence: str) -> StudyError:
    return StudyError(StudyCode.INPUT_REFUSED, where, sentence)
