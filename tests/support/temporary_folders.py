"""Temporary folders in which no private folder can be made."""

from __future__ import annotations

import errno
from dataclasses import replace
from typing import TYPE_CHECKING

from skill_effectiveness.evidence.fsdoubles import FaultFs, Injection

if TYPE_CHECKING:
    from pathlib import Path

    from skill_effectiveness.evidence.surroundings import Surroundings

UNUSABLE = ("missing", "relative", "a file", "open to others", "not writable", "full")


def temporary_folder(around: Surroundings, place: Path, kind: str) -> Surroundings:
    """The same surroundings with an unusable folder at a place, named by TMPDIR."""
    told = replace(around, environ={**around.environ, "TMPDIR": str(place)})
    match kind:
        case "missing":
            return told
        case "relative":
            return replace(around, environ={**around.environ, "TMPDIR": f"no/{place.name}"})
        case "a file":
            place.touch()
            return told
        case "open to others":
            place.mkdir()
            place.chmod(0o777)
            return told
    place.mkdir()
    number = {"not writable": errno.EACCES, "full": errno.ENOSPC}[kind]
    refusing = Injection("mkdir", number, nth=0, about=lambda path: str(place) in path)
    return replace(told, fs=FaultFs(around.fs, refusing))
