"""Whether what was closed is what was planned.

Source: milestone.md, section 8. Every planned node landed in the range, and every commit in it belongs to a
planned node; the one correction of the close belongs to the close.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from skill_effectiveness.acceptance.milestone.words import NOT_JUDGED

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

EQUAL: Final = "equal: every planned node landed, and every commit belongs to one"
_SHOWN: Final = 12


@dataclass(frozen=True, slots=True)
class NodeLanding:
    """What is known of one planned node.

    Attributes:
        node: its id.
        landed: whether its accepted head is in the range, or was landed before the range and is inherited.
        commits: the commits that belong to it; `None`: unknown.
    """

    node: str
    landed: bool
    commits: Collection[str] | None


@dataclass(frozen=True, slots=True)
class AlignmentFacts:
    """What a range and its plan are made of.

    Attributes:
        commits: every commit of the closed range, newest first; `None`: unknown.
        nodes: the planned nodes.
        correction: the commits of the close's own correction.
    """

    commits: Sequence[str] | None
    nodes: Sequence[NodeLanding]
    correction: Collection[str] = ()


def judge_alignment(facts: AlignmentFacts) -> str:
    """One line."""
    if facts.commits is None or not facts.nodes or any(node.commits is None for node in facts.nodes):
        return NOT_JUDGED
    owned = set(facts.correction).union(*(node.commits or () for node in facts.nodes))
    absent = [node.node for node in facts.nodes if not node.landed]
    strange = [commit[:_SHOWN] for commit in facts.commits if commit not in owned]
    if not absent and not strange:
        return EQUAL
    parts = []
    if absent:
        parts.append(f"not landed: {', '.join(absent)}")
    if strange:
        parts.append(f"of no planned node: {', '.join(strange)}")
    return f"not equal: {'; '.join(parts)}"
