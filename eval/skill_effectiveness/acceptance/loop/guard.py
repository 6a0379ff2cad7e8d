"""What a worker must not change, measured from the files themselves.

Source: loop.md, L80: protected paths, the configuration file, and the hooks and configuration of git.
"""

from __future__ import annotations

import stat
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from skill_effectiveness.evidence.canonical import digest_chunks, digest_object
from skill_effectiveness.evidence.chunks import file_chunks
from skill_effectiveness.evidence.faults import EvidenceError
from skill_effectiveness.evidence.tree import digest_tree

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from skill_effectiveness.acceptance.loop.measured_tree import MeasuredTree
    from skill_effectiveness.evidence.fsops import FileSystem

_COMMON: Final = ("config", "config.worktree", "hooks", "info/attributes", "info/exclude", "info/grafts")
_OWN: Final = ("config.worktree",)


@dataclass(frozen=True, slots=True)
class Guard:
    """Places that have to stay as they are.

    Attributes:
        fs: file operations.
        places: absolute paths of files and folders, there or not.
    """

    fs: FileSystem
    places: tuple[Path, ...]

    def mark(self) -> str:
        """One digest of everything at these places."""
        return digest_object([_mark(self.fs, place) for place in self.places])


def guard_of(
    fs: FileSystem, tree: MeasuredTree, protected: Sequence[str], configuration: Path | None, repo: Path
) -> Guard:
    """The guard of a job.

    Args:
        fs: file operations.
        tree: where it works.
        protected: paths relative to the working tree.
        configuration: the file of the run, absolute.
        repo: the repository of the configuration.
    """
    places = [tree.path / path.removesuffix("/") for path in protected]
    if configuration is not None:
        places.append(configuration)
        if configuration.is_relative_to(repo) and tree.path != repo:
            places.append(tree.path / configuration.relative_to(repo))
    places += [tree.common / name for name in _COMMON]
    places += [tree.git_folder / name for name in _OWN if tree.git_folder != tree.common]
    return Guard(fs, tuple(places))


def _mark(fs: FileSystem, place: Path) -> list[str]:
    """Where a place really is, and what is there; what cannot be read is a word of its own."""
    try:
        folder = fs.resolve(str(place.parent)).encode(errors="surrogateescape").hex()
        return [folder, _content(fs, place)]
    except (FileNotFoundError, NotADirectoryError):
        return ["nothing"]
    except OSError:
        return ["unreadable"]
    except EvidenceError as error:
        return ["unreadable", str(error.code)]


def _content(fs: FileSystem, place: Path) -> str:
    mode = fs.lstat(None, str(place)).st_mode
    if stat.S_ISLNK(mode):
        return f"link {fs.readlink(None, str(place)).encode(errors='surrogateescape').hex()}"
    if stat.S_ISDIR(mode):
        return f"folder {digest_tree(fs, place)}"
    if not stat.S_ISREG(mode):
        return "special"
    kind = "program" if mode & stat.S_IXUSR else "file"
    return f"{kind} {digest_chunks(file_chunks(fs, None, str(place), place.name))}"
