"""Keeping code that was compiled from verified sources, for the next start (bridge.md, section 3).

`launch.code_cache` reads; this writes, once an answer was given. Nothing depends on it: what cannot be kept
is compiled anew.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Final

from skill_effectiveness.evidence.faults import EvidenceError, FileCode, FileError
from skill_effectiveness.evidence.root import PrivateRoot, RootKind, state_path
from skill_effectiveness.evidence.writes import note
from skill_effectiveness.launch.code_cache import FOLDER, KEY, KEY_SIZE, seal

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from skill_effectiveness.evidence.surroundings import Surroundings

MOST: Final = 4_096
"""So many entries are kept; beyond that all but the key go, since each source that changed left one."""


def keep(fresh: Mapping[str, bytes], around: Surroundings, checkout: Path | None) -> None:
    """Write new entries into the state root."""
    if not fresh:
        return
    with (
        suppress(EvidenceError),
        PrivateRoot.create(state_path(around), RootKind.STATE, around=around, checkout=checkout) as state,
        state.child(FOLDER, create=True) as folder,
    ):
        key = _key(folder)
        names = folder.names()
        if len(names) + len(fresh) > MOST:
            for name in names:
                if name != KEY:
                    folder.remove(name)
        for name, code in fresh.items():
            note(folder.folder, name, seal(key, name, code) + code)


def _key(folder: PrivateRoot) -> bytes:
    """The cache's own key, made once.

    Raises:
        EvidenceError: it is no private file of ours, or cannot be made.
    """
    if not folder.exists(KEY):
        with suppress(FileError) as _:
            folder.publish(KEY, folder.around.entropy(KEY_SIZE))
    try:
        return folder.read(KEY, KEY_SIZE)
    except FileError as error:
        if error.code is FileCode.FILE_SIZE:
            folder.remove(KEY)
        raise
