"""The files by which git can be told to start programs or to look elsewhere, there or not.

Source: loop.md, L80, L83. Git reads its configuration from more places than those of the repository, and
configuration includes files: also files that do not exist yet, and files whose condition holds only later.
"""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

from skill_effectiveness.acceptance.loop.errors import AbortedError
from skill_effectiveness.execution.git import Git

if TYPE_CHECKING:
    from collections.abc import Iterator

    from skill_effectiveness.acceptance.loop.measured_tree import MeasuredTree
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
_OWN: Final = ("config.worktree", "commondir")
_SYSTEM: Final = "/etc/gitconfig"
_ORIGIN: Final = b"file:"
_INCLUDE: Final = "include"
_PATH: Final = "path"


def git_places(around: Surroundings, tree: MeasuredTree, repo: Path) -> tuple[Path, ...]:
    """All of them, absolute and in order.

    Args:
        around: the surroundings.
        tree: a working tree.
        repo: top of the working tree of the user, which may be another one of the same repository.

    Raises:
        AbortedError: git does not say where its configuration is.
    """
    places = {tree.common / name for name in _COMMON} | {repo / ".git"}
    own = {tree.git_folder, _git_folder(around, repo)}
    places |= {folder / name for folder in own for name in _OWN}
    places |= set(_of_people(around))
    home = _home(around)
    listed = tree.ask("config", "--list", "--includes", "--show-origin", "-z")
    found, waiting = _read(listed, tree.path, home)
    while waiting:
        place = waiting.pop()
        if place in found:
            continue
        found.add(place)
        # A file that is included under a condition that does not hold now, or that does not exist.
        with suppress(AbortedError):
            said = tree.ask("config", "--file", str(place), "--list", "-z")
            waiting |= set(_included(said.split(b"\0"), place, home))
    return tuple(sorted(places | found))


def _git_folder(around: Surroundings, repo: Path) -> Path:
    answered = Git(repo, around).ask("rev-parse", "--absolute-git-dir")
    if not answered.good:
        raise AbortedError("git does not say where it keeps this repository")
    return Path(answered.out.decode(errors="surrogateescape").removesuffix("\n"))


def _of_people(around: Surroundings) -> Iterator[Path]:
    """The files of the system and of the user, as git finds them."""
    environ, home = around.environ, _home(around)
    named = [environ.get("GIT_CONFIG_GLOBAL"), environ.get("GIT_CONFIG_SYSTEM"), _SYSTEM]
    if environ.get("XDG_CONFIG_HOME"):
        named.append(f"{environ['XDG_CONFIG_HOME']}/git/config")
    if home is not None:
        named += [f"{home}/.gitconfig", f"{home}/.config/git/config"]
    return (Path(name) for name in named if name is not None and name.startswith("/"))


def _home(around: Surroundings) -> Path | None:
    home = around.environ.get("HOME", "")
    return Path(home) if home.startswith("/") else None


def _read(listed: bytes, folder: Path, home: Path | None) -> tuple[set[Path], set[Path]]:
    """The files that settings came from, and those that they include."""
    fields = listed.split(b"\0")
    origins, settings = fields[::2], fields[1::2]
    found: set[Path] = set()
    included: set[Path] = set()
    for origin, setting in zip(origins, settings, strict=False):
        if origin.startswith(_ORIGIN):
            place = folder / origin.removeprefix(_ORIGIN).decode(errors="surrogateescape")
            found.add(place)
            included |= set(_included([setting], place, home))
    return found, included


def _included(settings: list[bytes], place: Path, home: Path | None) -> Iterator[Path]:
    for setting in settings:
        key, _, value = setting.decode(errors="surrogateescape").partition("\n")
        section, *_, name = key.split(".")
        if section.casefold().startswith(_INCLUDE) and name == _PATH and value:
            if value.startswith("~/"):
                yield from () if home is None else (home / value.removeprefix("~/"),)
            else:
                yield place.parent / value
