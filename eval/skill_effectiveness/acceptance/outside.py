"""Whether a private store lies in a checkout: the work that is judged could reach it there.

Source: closeout.md section 10, outcome.md section 12, milestone.md section 12. Each contract refuses such a
store in its own words.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from skill_effectiveness.evidence.errnos import reported
from skill_effectiveness.evidence.faults import EvidenceError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from skill_effectiveness.evidence.surroundings import Surroundings


def lies_in_checkout(path: Path, around: Surroundings) -> bool:
    """Whether a place, or a folder above it, is the top of a checkout, whoever's.

    Both by the folders that its path names and by those that they lead to, where any of them is a link.

    Args:
        path: absolute; need not exist.
        around: the surroundings.

    Raises:
        FileError: that cannot be told.
    """
    return any(_is_there(folder / ".git", around) for folder in (path, *path.parents, *_led_to(path, around)))


def _led_to(path: Path, around: Surroundings) -> Iterator[Path]:
    """The folder that a path leads to and all above it; of one that is not there yet, those that are."""
    for folder in (path, *path.parents):
        if (found := _resolved(folder, around)) is not None:
            yield from (found, *found.parents)
            return


def _resolved(folder: Path, around: Surroundings) -> Path | None:
    try:
        with reported("the store", reading=True):
            return Path(around.fs.resolve(str(folder)))
    except EvidenceError as error:
        if _is_absence(error):
            return None
        raise


def _is_there(place: Path, around: Surroundings) -> bool:
    try:
        with reported("the store", reading=True):
            around.fs.lstat(None, str(place))
    except EvidenceError as error:
        if _is_absence(error):
            return False
        raise
    return True


def _is_absence(error: EvidenceError) -> bool:
    return isinstance(error.__cause__, FileNotFoundError | NotADirectoryError)
