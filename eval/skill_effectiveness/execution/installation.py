"""What a program needs of its own to be started where nothing but the system is shown.

Source: trials.md section 5 (read roots); providers.md P13. Beside the program's file that is what a package
manager laid around it (the outermost `node_modules` it lies in), the interpreter that its first line names
with its own library, and other programs that it looks for on PATH. What a wrapper script of somebody's own
starts is not known here and has to be named by whoever wrote it.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from skill_effectiveness.evidence.chunks import regular_file
from skill_effectiveness.evidence.faults import FileError
from skill_effectiveness.execution.programs import find_tool

if TYPE_CHECKING:
    from collections.abc import Iterable

    from skill_effectiveness.evidence.surroundings import Surroundings

_FIRST_LINE: Final = 256
_MODULES: Final = "node_modules"
_MOST_INTERPRETERS: Final = 3
_LIBRARY: Final = ("bin", "lib", "lib64", "pyvenv.cfg")


class Installation(NamedTuple):
    """Where a program lies.

    Attributes:
        files: files and folders without links.
        links: paths by which some of them are called, and what each leads to.
    """

    files: tuple[Path, ...]
    links: tuple[tuple[Path, Path], ...]


def installation(program: Path, tools: Iterable[str], around: Surroundings) -> Installation:
    """What belongs to a program.

    Args:
        program: absolute; a file.
        tools: names of other programs that it starts; one that is not there is left out.
        around: files and PATH.
    """
    files: dict[Path, None] = {}
    links: dict[Path, Path] = {}
    waiting = [program, *(found for name in tools if (found := find_tool(name, around)) is not None)]
    left = len(waiting) + _MOST_INTERPRETERS
    interpreters: set[Path] = set()
    while waiting and left:
        left -= 1
        named = waiting.pop(0)
        try:
            resolved = Path(around.fs.resolve(str(named)))
        except (OSError, ValueError):
            continue
        if resolved != named:
            links[named] = resolved
        files[_package(resolved)] = None
        if named in interpreters:
            files |= dict.fromkeys(found for one in (named, resolved) for found in _library(one, around))
        interpreter = _interpreter(resolved, around)
        if interpreter is not None:
            interpreters.add(interpreter)
            waiting.append(interpreter)
    return Installation(tuple(files), tuple(links.items()))


def _package(file: Path) -> Path:
    """The outermost folder of packages that a file lies in; the file itself where it lies in none."""
    folders = [folder for folder in file.parents if folder.name == _MODULES]
    return folders[-1] if folders else file


def _library(interpreter: Path, around: Surroundings) -> list[Path]:
    """What lies around an interpreter and is its own; never the folder above, which may be a home."""
    if interpreter.parent.name != "bin":
        return []
    found = []
    for name in _LIBRARY:
        place = interpreter.parent.parent / name
        try:
            around.fs.lstat(None, str(place))
            found.append(Path(around.fs.resolve(str(place.parent))) / name)
        except OSError:
            continue
    return found


def _interpreter(file: Path, around: Surroundings) -> Path | None:
    """What the first line of a script names; None for anything else."""
    fs = around.fs
    try:
        with regular_file(fs, None, str(file), "a program") as fd:
            line, _, _ = fs.read(fd, _FIRST_LINE).partition(b"\n")
    except (FileError, OSError):
        return None
    if not line.startswith(b"#!"):
        return None
    words = line[2:].decode("utf-8", "replace").split()
    if not words or not words[0].startswith("/"):
        return None
    if Path(words[0]).name != "env":
        return Path(words[0])
    names = [word for word in words[1:] if not word.startswith("-") and "=" not in word]
    return find_tool(names[0], around) if names else None
