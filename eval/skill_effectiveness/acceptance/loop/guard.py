"""What a worker must not change, measured from the files themselves.

Source: loop.md, L80: protected paths, the configuration file, and the hooks and configuration of git. The
latter are looked at before git is started again: a filter that a worker configured would run outside of its
supervision and with our environment.
"""

from __future__ import annotations

import stat
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from skill_effectiveness.evidence.canonical import digest_chunks, digest_object
from skill_effectiveness.evidence.chunks import file_chunks
from skill_effectiveness.evidence.faults import EvidenceError
from skill_effectiveness.evidence.tree import digest_tree

if TYPE_CHECKING:
    from collections.abc import Sequence

    from skill_effectiveness.acceptance.loop.measured_tree import MeasuredTree
    from skill_effectiveness.evidence.fsops import FileSystem
    from skill_effectiveness.evidence.surroundings import Surroundings

_COMMON: Final = (
    "config",
    "config.worktree",
    "hooks",
    "info/attributes",
    "info/exclude",
    "info/grafts",
    "objects/info/alternates",
    "shallow",
)
_OWN: Final = ("config.worktree",)
_OF_PEOPLE: Final = (".gitconfig", ".config/git/config")
_ORIGIN: Final = b"file:"


@dataclass(frozen=True, slots=True)
class Guard:
    """Places that have to stay as they are.

    Attributes:
        fs: file operations.
        places: absolute paths of files and folders, there or not.
        git: those by which git can be told to start programs, or to look elsewhere.
    """

    fs: FileSystem
    places: tuple[Path, ...]
    git: tuple[Path, ...] = ()

    def mark(self) -> str:
        """One digest of everything at these places."""
        return digest_object([[_mark(self.fs, place) for place in self.places], self.git_mark()])

    def git_mark(self) -> str:
        """One digest of everything that git is led by; as long as it is the same, git may be started."""
        return digest_object([_mark(self.fs, place) for place in self.git])


def guard_of(
    around: Surroundings,
    tree: MeasuredTree,
    protected: Sequence[str],
    configuration: Path | None,
    repo: Path,
) -> Guard:
    """The guard of a job.

    Args:
        around: the surroundings.
        tree: where it works.
        protected: paths relative to the working tree.
        configuration: the file of the run, absolute.
        repo: the repository of the configuration.

    Raises:
        AbortedError: git does not say where its configuration is.
    """
    places = [tree.path / path.removesuffix("/") for path in protected]
    if configuration is not None:
        places.append(configuration)
        if configuration.is_relative_to(repo) and tree.path != repo:
            places.append(tree.path / configuration.relative_to(repo))
    git = {tree.common / name for name in _COMMON} | {tree.git_folder / name for name in _OWN}
    home = around.environ.get("HOME", "")
    git |= {Path(home) / name for name in _OF_PEOPLE if home.startswith("/")}
    # Files that these include are named too, so a new one shows in one of them.
    said = tree.ask("config", "--list", "--includes", "--show-origin", "-z").split(b"\0")
    origins = (field.removeprefix(_ORIGIN) for field in said if field.startswith(_ORIGIN))
    git |= {tree.path / origin.decode(errors="surrogateescape") for origin in origins}
    return Guard(around.fs, tuple(places), tuple(sorted(git)))


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
