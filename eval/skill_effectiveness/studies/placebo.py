"""The generated placebo: as long as the skill, in its shape, and about something else (studies.md, head).

No model writes it. Text comes from the frozen bank, drawn by the digest of the payload that is imitated, so
the same payload gives the same bytes. Names of files tell something too: all but `SKILL.md` and those of
instruction files become numbers. What is no text (scripts, links, data, hooks) has no placebo; it is left out
and listed.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Final

from skill_effectiveness.evidence.canonical import digest_object
from skill_effectiveness.evidence.pointer import printable
from skill_effectiveness.studies.errors import StudyCode, StudyError
from skill_effectiveness.studies.file_trees import EntryKind, HeldTree
from skill_effectiveness.studies.payloads import (
    INSTRUCTIONS,
    SKILL_FILE,
    SKILLS,
    NamedFile,
    Payload,
    Skill,
)
from skill_effectiveness.studies.placebo_matter import UnwritableError
from skill_effectiveness.studies.placebo_prose import Prose
from skill_effectiveness.studies.placebo_text import alike, placebo_text

if TYPE_CHECKING:
    from skill_effectiveness.protocol.placebo_sentences import PlaceboSentences
    from skill_effectiveness.studies.file_trees import TreeEntry

PLACE: Final = "/arms/reference/placebo"
_TEXTS: Final = frozenset({".md", ".markdown", ".txt", ".rst"})
_DIGITS: Final = 8
_PREFIX: Final = "sha256:"


@dataclass(frozen=True, slots=True)
class Placebo:
    """A generated payload, and the paths of what it has no counterpart of."""

    payload: Payload
    left_out: tuple[str, ...]


def placebo_of(full: Payload, bank: PlaceboSentences) -> Placebo:
    """The placebo of an arm.

    Args:
        full: what it imitates.
        bank: every piece of its text.

    Raises:
        StudyError: `input_refused`: there is no text, or one whose form or size cannot be imitated.
        FileError: a file cannot be read.
    """
    making = _Making(full, bank)
    for skill in full.skills:
        making.skill(skill)
    for file in full.instructions:
        making.instruction(file)
    return making.placebo()


class _Making:
    """Collects the files of a placebo."""

    def __init__(self, full: Payload, bank: PlaceboSentences) -> None:
        self._full = full
        self._bank = bank
        self._seed = bytes.fromhex(full.tree.digest.removeprefix(_PREFIX))
        self._files: dict[str, bytes] = {}
        self._guides: list[str] = []
        self._taken: set[str] = set()

    def skill(self, skill: Skill) -> None:
        guide = f"guide-{_eight(skill)}"
        self._guides.append(guide)
        folder = f"{SKILLS}/{skill.name}/"
        naming = _Naming()
        for entry in self._full.tree.entries:
            path = entry.path.removeprefix(folder)
            if path == entry.path or entry.kind is EntryKind.FOLDER:
                continue
            described = path == SKILL_FILE
            text = self._text(entry, whatever=described)
            if text is None and described:
                raise _refused(
                    f"{printable(entry.path)} is no text, so there is no placebo of it; name files."
                )
            if text is None:
                continue
            name = path if described else naming.named(path)
            self._add(entry, f"{SKILLS}/{guide}/{name}", text, guide if described else None)

    def instruction(self, file: NamedFile) -> None:
        entry = self._full.tree.find(f"{INSTRUCTIONS}/{file.name}")
        text = None if entry is None else self._text(entry, whatever=True)
        if entry is not None and text is not None:
            self._add(entry, entry.path, text, None)

    def placebo(self) -> Placebo:
        if not self._files:
            raise _refused(
                "the arm full holds no text that a placebo could be like; name the arm's own files."
            )
        held = HeldTree.of_files(self._files)
        skills = [Skill(guide, held.tree.below(f"{SKILLS}/{guide}").digest) for guide in self._guides]
        instructions = [
            NamedFile(entry.path, str(entry.sha256)) for entry in held.tree.below(INSTRUCTIONS).files
        ]
        left_out = [
            printable(entry.path)
            for entry in self._full.tree.entries
            if entry.kind is not EntryKind.FOLDER and entry.path not in self._taken
        ]
        return Placebo(Payload(tuple(skills), tuple(instructions), (), held), tuple(left_out))

    def _text(self, entry: TreeEntry, *, whatever: bool) -> str | None:
        """The text of a file; None where it is none. `whatever` it is called and allowed to be."""
        if entry.kind is not EntryKind.FILE:
            return None
        suffix = PurePosixPath(entry.path).suffix.casefold()
        if not whatever and (entry.executable or suffix not in _TEXTS):
            return None
        data = self._full.held.blob(entry)
        if data.startswith(b"#!"):
            return None
        try:
            text = data.decode("utf-8")
        except UnicodeDecodeError:
            return None
        return None if "\0" in text else text

    def _add(self, entry: TreeEntry, path: str, text: str, guide: str | None) -> None:
        shown = printable(entry.path)
        try:
            made = placebo_text(text, Prose(self._bank, self._seed, f"placebo/{entry.path}"), guide)
        except UnwritableError as error:
            told = f"the front matter of {shown} is written in a form that cannot be imitated; write each"
            raise _refused(f"{told} value plainly behind its key, or name the arm's own files.") from error
        if not alike(text, made):
            raise _refused(
                f"{shown} has too little text for a placebo of its size; name the arm's own files."
            )
        self._taken.add(entry.path)
        self._files[path] = made.encode()


class _Naming:
    """Names that tell nothing: folders and files are numbered as they come."""

    def __init__(self) -> None:
        self._folders: dict[str, str] = {}
        self._files = 0

    def named(self, path: str) -> str:
        given = PurePosixPath(path)
        self._files += 1
        parts = [self._folder(str(parent)) for parent in reversed(given.parents[:-1])]
        return "/".join([*parts, f"text-{self._files}{given.suffix.casefold()}"])

    def _folder(self, path: str) -> str:
        return self._folders.setdefault(path, f"part-{len(self._folders) + 1}")


def _eight(skill: Skill) -> str:
    made = digest_object({"use": "placebo", "skill": skill.name, "tree": skill.tree})
    return made.removeprefix(_PREFIX)[:_DIGITS]


def _refused(sentence: str) -> StudyError:
    return StudyError(StudyCode.INPUT_REFUSED, PLACE, sentence)
