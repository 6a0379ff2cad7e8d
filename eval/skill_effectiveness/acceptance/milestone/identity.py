"""What a piece of evidence stood on: a commit, its tree, and whether the files were that tree.

Source: milestone.md, section 5.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Literal

from pydantic import BaseModel

from skill_effectiveness.acceptance.milestone.words import CLOSED


class Comparison(StrEnum):
    """How two identities stand to each other; `unavailable` verifies nothing."""

    SAME = "same"
    DIFFERENT = "different"
    UNAVAILABLE = "unavailable"


class Identity(BaseModel):
    """A source identity; all three facts are there exactly when it is resolved."""

    model_config = CLOSED

    state: Literal["resolved", "unavailable"]
    commit: str | None = None
    dirty: bool | None = None
    tree: str | None = None

    @classmethod
    def at(cls, commit: str, tree: str | None, *, dirty: bool) -> Identity:
        """The identity of a commit; unavailable where its tree is not known."""
        if tree is None:
            return UNAVAILABLE
        return cls(state="resolved", commit=commit, dirty=dirty, tree=tree)


UNAVAILABLE = Identity(state="unavailable")


def compare(pinned: Identity, found: Identity) -> Comparison:
    """Compare the clean identity of a pinned commit with another; a dirty tree is another tree."""
    if pinned.state != "resolved" or found.state != "resolved":
        return Comparison.UNAVAILABLE
    same = (pinned.commit, pinned.tree, pinned.dirty) == (found.commit, found.tree, found.dirty)
    return Comparison.SAME if same and pinned.dirty is False else Comparison.DIFFERENT
