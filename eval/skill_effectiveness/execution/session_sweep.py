"""Removing the session folders of processes that were killed before they could do it themselves.

Source: providers.md P3; field-failures.md F10.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from skill_effectiveness.evidence.errnos import reported
from skill_effectiveness.evidence.faults import EvidenceError
from skill_effectiveness.evidence.fsops import closing
from skill_effectiveness.evidence.root import PrivateRoot, RootKind
from skill_effectiveness.execution.session import NAME_BYTES, PREFIX, base_folder, remove_session
from skill_effectiveness.execution.session_owner import MARK, MARK_BYTES, SessionOwner

if TYPE_CHECKING:
    from pathlib import Path

    from skill_effectiveness.evidence.surroundings import Surroundings

_NAME: Final = re.compile(rf"{PREFIX}[0-9a-f]{{{2 * NAME_BYTES}}}")


@dataclass(frozen=True, slots=True)
class SessionSweep:
    """What came of a sweep, in sessions whose process is gone.

    Attributes:
        removed: those whose folders are gone now.
        left: those of which something could not be removed.
    """

    removed: int
    left: int


def sweep_sessions(around: Surroundings, base: Path | None = None) -> SessionSweep:
    """Remove the folders of sessions whose process was killed; asked before the first call.

    Folders of living processes, of other users and hosts, and those without a mark that can be read stay.

    Args:
        around: the surroundings.
        base: where sessions lie; see `SessionFolders`.

    Raises:
        FileError: the base is missing or cannot be listed; nothing was removed.
    """
    folder = base_folder(around, base)
    fs = around.fs
    with reported("the temporary folder", reading=True), closing(fs, fs.open_dir(None, str(folder))) as fd:
        names = sorted(name for name in fs.listdir(fd) if _NAME.fullmatch(name))
    abandoned = [folder / name for name in names if _abandoned(folder / name, around)]
    removed = sum(_removed(path, around) for path in abandoned)
    return SessionSweep(removed, len(abandoned) - removed)


def _abandoned(path: Path, around: Surroundings) -> bool:
    try:
        with PrivateRoot.open(path, RootKind.REPO, around=around, checkout=None) as root:
            return SessionOwner.read(root.read(MARK, MARK_BYTES)).gone(around)
    except EvidenceError:
        # Another user's, gone meanwhile, or being made right now: no proof that nobody needs it.
        return False


def _removed(path: Path, around: Surroundings) -> bool:
    try:
        remove_session(around.fs, path)
    except EvidenceError:
        return False  # counted by the caller
    return True
