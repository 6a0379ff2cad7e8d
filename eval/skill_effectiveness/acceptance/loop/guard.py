"""What a worker must not change, measured from the files themselves.

Source: loop.md, L80: protected paths, the configuration file, and the hooks and configuration of git. The
latter are looked at before git is started again: a filter that a worker configured would run outside of its
supervision and with our environment.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from skill_effectiveness.acceptance.loop.git_places import git_places
from skill_effectiveness.acceptance.loop.marks import mark_of
from skill_effectiveness.evidence.canonical import digest_object

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from skill_effectiveness.acceptance.loop.measured_tree import MeasuredTree
    from skill_effectiveness.evidence.surroundings import Surroundings


@dataclass(frozen=True, slots=True)
class Guard:
    """Places that have to stay as they are.

    Attributes:
        around: the surroundings.
        places: absolute paths of files and folders, there or not.
        git: those by which git can be told to start programs, or to look elsewhere.
    """

    around: Surroundings
    places: tuple[Path, ...]
    git: tuple[Path, ...] = ()

    def mark(self) -> str:
        """One digest of everything at these places."""
        return digest_object([[mark_of(self.around, place) for place in self.places], self.git_mark()])

    def git_mark(self) -> str:
        """One digest of everything that git is led by; as long as it is the same, git may be started."""
        return digest_object([mark_of(self.around, place) for place in self.git])


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
    return Guard(around, tuple(places), git_places(around, tree, repo))
