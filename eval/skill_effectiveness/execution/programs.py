"""Finding a program as a shell would, without one.

Source: closeout.md, section 10, step 3. A name with a slash is a path, from the working folder if relative;
any other is looked up in PATH, whose relative entries start at the working folder too.
"""

from __future__ import annotations

import stat
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

    from skill_effectiveness.evidence.surroundings import Surroundings

_STANDARD_PATH: Final = "/usr/local/bin:/usr/bin:/bin"


def find_program(name: str, folder: Path, around: Surroundings) -> Path | None:
    """The executable file behind the first word of an argument vector; `None` when there is none.

    Args:
        name: the word.
        folder: the working folder of what will be run, absolute.
        around: PATH and file operations.
    """
    return next((place for place in _places(name, folder, around) if _executable(place, around)), None)


def find_tool(name: str, around: Surroundings) -> Path | None:
    """A program of our own choosing, by its name in the absolute entries of PATH; `None` when there is none.

    A relative entry would let a repository put its own file in the place of the tool.
    """
    entries = around.environ.get("PATH", _STANDARD_PATH).split(":")
    places = (Path(entry, name) for entry in entries if entry.startswith("/"))
    return next((place for place in places if _executable(place, around)), None)


def _places(name: str, folder: Path, around: Surroundings) -> Iterator[Path]:
    if not name or "\0" in name:
        return
    if "/" in name:
        yield folder / name
        return
    for entry in around.environ.get("PATH", _STANDARD_PATH).split(":"):
        yield folder / entry / name


def _executable(place: Path, around: Surroundings) -> bool:
    fs = around.fs
    try:
        resolved = fs.resolve(str(place))
        return stat.S_ISREG(fs.lstat(None, resolved).st_mode) and fs.may_execute(None, resolved)
    except (OSError, ValueError):
        return False
