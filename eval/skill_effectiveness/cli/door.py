"""The one place where the command line takes its surroundings from the air."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from skill_effectiveness.cli.refusals import CommandCode, Refusal
from skill_effectiveness.evidence.root import find_checkout
from skill_effectiveness.evidence.surroundings import Surroundings


@cache
def surroundings() -> Surroundings:
    """The surroundings of this process; every command passes them on."""
    return Surroundings.real()


@cache
def checkout() -> Path:
    """The source checkout of this program, which no folder for results may touch (evidence.md section 4)."""
    return find_checkout(surroundings().fs, Path(__file__))


def absolute(path: str | Path) -> Path:
    """A path as the person meant it: relative ones start at the working folder.

    Raises:
        Refusal: `working_folder_missing`.
    """
    if Path(path).is_absolute():
        return Path(path)
    try:
        return Path.cwd() / path
    except OSError:
        raise Refusal(
            CommandCode.WORKING_FOLDER_MISSING,
            "The working folder does not exist any more; change to one that does, or give absolute paths.",
        ) from None
