"""The one place where the command line takes its surroundings from the air."""

from __future__ import annotations

import os
import re
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Final

from skill_effectiveness.cli.refusals import CommandCode, Refusal
from skill_effectiveness.evidence.faults import FileError
from skill_effectiveness.evidence.fsops import read_public
from skill_effectiveness.evidence.root import find_checkout
from skill_effectiveness.evidence.surroundings import Surroundings

if TYPE_CHECKING:
    from collections.abc import Sequence

# The second is the older place of D-Bus, of which the first may be a link.
MACHINE_ID_FILES: Final = (Path("/etc/machine-id"), Path("/var/lib/dbus/machine-id"))
_MACHINE_ID: Final = re.compile(r"[0-9a-f]{32}")
_MACHINE_ID_LIMIT: Final = 1_024

LONGEST_PATH: Final = 4_095
"""Bytes that Linux takes, without the zero at the end."""


@cache
def surroundings() -> Surroundings:
    """The surroundings of this process; every command passes them on."""
    return Surroundings.real()


@cache
def checkout() -> Path:
    """The source checkout of this program, which no folder for results may touch (evidence.md section 4)."""
    return find_checkout(surroundings().fs, Path(__file__))


def machine_id(places: Sequence[Path] = MACHINE_ID_FILES) -> str | None:
    """The operating system's id of this machine (machine-id(5)), or None where it has none that can be read.

    Machines made from one image may share it, so it is a declaration and no proof.
    """
    for place in places:
        try:
            text = read_public(surroundings().fs, place, _MACHINE_ID_LIMIT).decode("ascii").rstrip("\n")
        except (FileError, UnicodeDecodeError):
            continue
        if _MACHINE_ID.fullmatch(text) and text.strip("0"):
            return text
    return None


def absolute(path: str | Path) -> Path:
    """A path as the person meant it: relative ones start at the working folder, `..` is taken out.

    Only where no link stands before the `..`: behind one it means another folder than the one that was typed,
    so it stays, and a private folder is refused for it.

    Raises:
        Refusal: `working_folder_missing`, `path_too_long`.
    """
    whole = Path(path) if Path(path).is_absolute() else _working_folder() / path
    size = len(os.fsencode(whole))
    if size > LONGEST_PATH:
        raise Refusal(
            CommandCode.PATH_TOO_LONG,
            f"A path has {size} bytes, and the system takes {LONGEST_PATH} at most; choose a shorter one.",
        )
    return _without_steps_up(whole)


def _without_steps_up(whole: Path) -> Path:
    """The path without `..`, where taking it out of the text leads to the same folder."""
    parts = whole.parts
    if ".." not in parts:
        return whole
    behind = len(parts) - parts[::-1].index("..")
    typed, plain = str(Path(*parts[:behind])), str(_stepped_up(parts[:behind]))
    try:
        real = surroundings().fs.resolve(typed)
    except (OSError, ValueError):
        # Whoever opens it says what is wrong with it.
        return whole
    return Path(plain, *parts[behind:]) if real == plain else whole


def _stepped_up(parts: Sequence[str]) -> Path:
    """The path of an absolute one's parts in which each `..` takes the name before it away."""
    kept: list[str] = []
    for part in parts:
        if part != "..":
            kept.append(part)
        elif len(kept) > 1:
            kept.pop()
    return Path(*kept)


def _working_folder() -> Path:
    try:
        return Path.cwd()
    except OSError:
        raise Refusal(
            CommandCode.WORKING_FOLDER_MISSING,
            "The working folder does not exist any more; change to one that does, or give absolute paths.",
        ) from None
