"""What policy loading asks of the place where policy files lie: a working tree, or the objects of a commit.

Paths are repository-relative with forward slashes, without links among their folders (`policy_paths.resolve`
sees to that).
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterable


class EntryKind(StrEnum):
    """What a name in a tree is; `other` is a FIFO, a socket, a device or a submodule."""

    FILE = "file"
    FOLDER = "folder"
    LINK = "link"
    OTHER = "other"
    MISSING = "missing"


class Below(NamedTuple):
    """Something below a folder.

    Attributes:
        path: relative to that folder; a byte that is not UTF-8 shows as half a surrogate pair.
        kind: a folder is listed before what it holds.
    """

    path: str
    kind: EntryKind


class TreeUnreadableError(Exception):
    """Something in a tree is there and cannot be read; the text is a reason without a path."""


class PolicyTree(Protocol):
    """One tree. Every operation may raise `TreeUnreadableError`."""

    def kind(self, path: str) -> EntryKind:
        """What the name itself is."""

    def target(self, path: str) -> str:
        """The target of a link."""

    def read(self, path: str) -> bytes:
        """The bytes of a regular file."""

    def below(self, folder: str) -> Iterable[Below]:
        """Everything below a folder, no link followed."""
