"""What a call may have left behind: processes, folders of its session, changes in the user's home."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from skill_effectiveness.evidence.fsops import RealFs
from skill_effectiveness.evidence.tree import digest_tree
from tests.support.provider_calls import left_behind

if TYPE_CHECKING:
    from skill_effectiveness.evidence.surroundings import Surroundings


def carrying(text: str) -> list[int]:
    """Processes in whose environment a text stands."""
    found = []
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and text.encode() in (entry / "environ").read_bytes():
                found.append(int(entry.name))
        except OSError:
            continue  # it ended meanwhile, or is somebody else's
    return found


def nothing_left(around: Surroundings) -> None:
    """No folder of a session of these surroundings, and no process that was given one."""
    assert left_behind(around) == []
    assert carrying(around.environ["TMPDIR"] + "/") == []


def digest(folder: Path) -> str:
    """Everything below a folder, in one word."""
    return digest_tree(RealFs(), folder)
