"""Kimi: whether what lies above a working copy would enter a session that works in it.

Source: providers.md P13 and section 5; field-failures.md F31, F32. Facts were observed on Kimi Code 2.1.0.

The program takes the nearest folder with a `.git` for the project, the working folder where there is none.
From there down to the working folder it reads instructions, and at the top agents of which one may take the
place of its own; no setting turns that off. In a working copy that is a repository of its own this is what
the working copy says. One that lies in somebody else's repository would hear that one's owner.
"""

from __future__ import annotations

import stat
from pathlib import Path
from typing import TYPE_CHECKING, Final

from skill_effectiveness.evidence.errnos import reported
from skill_effectiveness.evidence.faults import EvidenceError, FileCode, FileError
from skill_effectiveness.evidence.fsops import read_public
from skill_effectiveness.providers.asking import CannotAskError
from skill_effectiveness.providers.calls import WarningCode

if TYPE_CHECKING:
    from skill_effectiveness.evidence.fsops import FileSystem

_MARK: Final = ".git"
_POINTER: Final = b"gitdir:"
_POINTER_BYTES: Final = 4096
_HEARD: Final = (".kimi-code", ".agents", "AGENTS.md", "agents.md")
"""What the program looks for in the folders of a project."""


def demand_own_project(fs: FileSystem, working_copy: Path) -> None:
    """Return only if no folder above a working copy would tell a session something.

    Raises:
        CannotAskError: one would.
        FileError: they cannot be looked at.
    """
    with reported("the working copy", reading=True):
        folder = Path(fs.resolve(str(working_copy)))
    if _is_top(fs, folder):
        return
    telling = False
    for above in folder.parents:
        telling = telling or any(_is_there(fs, above / name) for name in _HEARD)
        if telling and _is_there(fs, above / _MARK):
            sentence = (
                "The working copy lies in another repository, whose instructions this program would read; "
                "make it a repository of its own (git init), or move it elsewhere."
            )
            raise CannotAskError(WarningCode.SESSION_UNAVAILABLE, sentence)


def _is_top(fs: FileSystem, folder: Path) -> bool:
    """Whether the program would certainly look no further up than here."""
    try:
        with reported(_MARK, reading=True):
            mark = Path(fs.resolve(str(folder / _MARK)))
            mode = fs.lstat(None, str(mark)).st_mode
        return stat.S_ISDIR(mode) or read_public(fs, mark, _POINTER_BYTES).lstrip().startswith(_POINTER)
    except EvidenceError:
        return False


def _is_there(fs: FileSystem, path: Path) -> bool:
    try:
        with reported(path.name, reading=True):
            fs.lstat(None, str(path))
    except FileError as error:
        if error.code is FileCode.MISSING:
            return False
        raise
    return True
