"""Which paths a policy may name, and where they lead inside a tree.

Source: closeout.md, section 3. Pure but for the questions it asks a `PolicyTree`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from skill_effectiveness.acceptance.closeout.tree import EntryKind
from skill_effectiveness.evidence.strict import LONE_SURROGATE

if TYPE_CHECKING:
    from skill_effectiveness.acceptance.closeout.tree import PolicyTree

PATH_BYTES: Final = 256
SKILL_FILE: Final = "SKILL.md"
_LINKS_MOST: Final = 40


def is_policy_path(path: str) -> bool:
    """Whether the text is a repository-relative path: the rules of section 3 on text alone."""
    return is_relative(path) and len(path.encode()) <= PATH_BYTES


def is_relative(path: str) -> bool:
    """Whether the text is a path that stays below where it starts, of any length."""
    return (
        not LONE_SURROGATE.search(path)
        and not path.startswith(("/", "~"))
        and "\\" not in path
        and "\0" not in path
        and all(segment not in {"", ".", ".."} for segment in path.split("/"))
    )


def is_skill_path(path: str) -> bool:
    """Whether the text is a repository-relative path of a `SKILL.md` in a folder."""
    return is_policy_path(path) and path.endswith(f"/{SKILL_FILE}")


@dataclass(frozen=True, slots=True)
class Resolved:
    """Where a path leads.

    Attributes:
        place: the path with the links among its folders replaced; `None` when it leaves the root, whether or
            not anything is there.
        kind: of what it names, a link included; `MISSING` when nothing is there.
        linked: whether a folder on the way is a link.
    """

    place: str | None
    kind: EntryKind
    linked: bool = False


def resolve(tree: PolicyTree, path: str) -> Resolved:
    """Follow a path through a tree; links among its folders are followed, one as its last segment is not.

    A link with an absolute target, or one that climbs above the root, leaves the repository.
    """
    waiting = path.split("/")
    done: list[str] = []
    links = 0
    while waiting:
        segment = waiting.pop(0)
        if segment in {"", "."}:
            continue
        if segment == "..":
            if not done:
                return Resolved(None, EntryKind.OTHER, linked=True)
            done.pop()
            continue
        here = "/".join([*done, segment])
        kind = tree.kind(here)
        if kind is EntryKind.LINK and waiting:
            links += 1
            target = tree.target(here)
            if links > _LINKS_MOST or target.startswith("/"):
                return Resolved(None, EntryKind.OTHER, linked=True)
            waiting = [*target.split("/"), *waiting]
            continue
        if kind is EntryKind.MISSING or (waiting and kind is not EntryKind.FOLDER):
            return Resolved(here, EntryKind.MISSING, linked=links > 0)
        done.append(segment)
    place = "/".join(done)
    return Resolved(place, tree.kind(place) if place else EntryKind.FOLDER, linked=links > 0)
