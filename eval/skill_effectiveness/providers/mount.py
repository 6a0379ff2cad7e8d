"""What an arm gives an agent: skills and instructions, and nothing else.

Source: providers.md P13 and sections 2 to 5; field-failures.md F31 to F33.

Each adapter lays a mount into the private folders of the session, or where its program cannot be led
otherwise, into the working copy. What a skill is called, what it holds and which of its files may be executed
stays as it is, so two arms differ in what they were given and in nothing that laying it did.
"""

from __future__ import annotations

import re
import stat
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from skill_effectiveness.evidence.chunks import regular_file
from skill_effectiveness.evidence.errnos import reported
from skill_effectiveness.evidence.faults import Fault, FileCode, FileError
from skill_effectiveness.evidence.fsops import demand_regular, read_all
from skill_effectiveness.evidence.laying import lay_file, lay_folder
from skill_effectiveness.evidence.pointer import printable
from skill_effectiveness.evidence.tree import walk_tree
from skill_effectiveness.providers.errors import ProviderCode, ProviderError

if TYPE_CHECKING:
    from pathlib import Path

    from skill_effectiveness.evidence.fsops import FileSystem
    from skill_effectiveness.evidence.tree import Found

SKILL_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
"""Names of skill folders that every program takes, and no command line can take for an option."""

SKILL_FILE: Final = "SKILL.md"
FILE_BYTES: Final = 16 * 1024 * 1024
"""Largest file of a skill."""


@dataclass(frozen=True, slots=True)
class Mount:
    """Everything of an arm's that the agent may see beside its task.

    Attributes:
        skills: absolute paths of skill folders; the last part of each is the skill's name, used once.
        instructions: text that stands before every task, as a user's own AGENTS.md would; `None` for none.

    Raises:
        ProviderError: `invalid_call`.
    """

    skills: tuple[Path, ...] = ()
    instructions: str | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        names = self.skill_names
        if not all(folder.is_absolute() for folder in self.skills):
            raise _invalid("a skill's folder is not named by an absolute path.")
        if not all(SKILL_NAME.fullmatch(name) for name in names):
            raise _invalid(f"a skill's folder has a name that is not of the form {SKILL_NAME.pattern}.")
        # Some programs fold names, and so do some file systems.
        if len({name.casefold() for name in names}) != len(names):
            raise _invalid("two skills have the same name; an agent could see one of them only.")
        if self.instructions is not None and not _is_text(self.instructions):
            raise _invalid("the instructions are blank or have no UTF-8 form; leave them out, or mend them.")

    @property
    def skill_names(self) -> tuple[str, ...]:
        """The names of the skills, in order."""
        return tuple(folder.name for folder in self.skills)


def lay_skills(fs: FileSystem, mount: Mount, target: Path) -> None:
    """Copy the skills of a mount, each under its name, into a folder that is there.

    A copy, because whoever works with a skill must not be able to change the arm's own.

    Args:
        fs: file operations.
        mount: what is given.
        target: absolute; a folder of the session's, in which no such name is taken.

    Raises:
        FileError: `missing`: a skill, or its SKILL.md, is not there; `not_regular`: something in it is a
            link, a FIFO, a socket or a device; or a code of reading or writing.
        TreeError: `too_deep`.
    """
    for skill in mount.skills:
        where = f"{SKILL_FILE} of the skill {skill.name}"
        with reported(where, reading=True):
            demand_regular(fs.lstat(None, str(skill / SKILL_FILE)), where)
        lay_folder(fs, target / skill.name)
        for found in walk_tree(fs, skill):
            _lay(fs, found, target / skill.name / found.path)


def _lay(fs: FileSystem, found: Found, goal: Path) -> None:
    where, mode = printable(found.path), found.status.st_mode
    if stat.S_ISDIR(mode):
        lay_folder(fs, goal)
        return
    if not stat.S_ISREG(mode):
        sentence = f"{where} of a skill is a link or no file at all; put the file itself there."
        raise FileError(Fault(FileCode.NOT_REGULAR, where, sentence))
    with reported(where, reading=True), regular_file(fs, found.parent, found.name, where) as fd:
        data = read_all(fs, fd, FILE_BYTES, where)
    lay_file(fs, goal, data, executable=bool(mode & stat.S_IXUSR))


def _is_text(text: str) -> bool:
    try:
        return bool(text.encode().strip())
    except UnicodeEncodeError:
        return False


def _invalid(sentence: str) -> ProviderError:
    return ProviderError(ProviderCode.INVALID_CALL, f"This call cannot be made: {sentence}")
