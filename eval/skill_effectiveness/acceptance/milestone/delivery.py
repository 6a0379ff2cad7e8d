"""Whether what was deferred to delivery has been fulfilled, as far as it can be observed.

Source: milestone.md, section 11. Open is pending, unreadable is unobserved, and neither is a pass.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from skill_effectiveness.acceptance.milestone.words import DeliveryWord

if TYPE_CHECKING:
    from collections.abc import Sequence


@dataclass(frozen=True, slots=True)
class Observation:
    """What was observed for one check of one criterion."""

    criterion: str
    kind: str
    ref: str | None
    word: DeliveryWord
    reason: str

    def plain(self) -> dict[str, Any]:
        """The observation as plain JSON values."""
        return {
            "criterion": self.criterion,
            "kind": self.kind,
            "ref": self.ref,
            "state": self.word.value,
            "reason": self.reason,
        }


@dataclass(frozen=True, slots=True)
class RemoteBranch:
    """What origin says about the target branch.

    Attributes:
        readable: whether it answered.
        tip: commit of the branch; `None`: there is no such branch.
        contains_head: whether the tip contains the closed head; `None`: the tip is not in the checkout.
    """

    readable: bool
    tip: str | None = None
    contains_head: bool | None = None


@dataclass(frozen=True, slots=True)
class Tracked:
    """What a tracker says about an issue or a tracking milestone; `None` is not observed."""

    state: str | None
    reason: str | None = None


def judge_push(head: str, remote: RemoteBranch) -> tuple[DeliveryWord, str]:
    """Judge `remote_push`."""
    if not remote.readable:
        return DeliveryWord.UNOBSERVED, "the remote cannot be read"
    if remote.tip is None:
        return DeliveryWord.PENDING, "the remote has no such branch"
    if remote.tip == head:
        return DeliveryWord.PASSED, "the tip is the closed head"
    if remote.contains_head is None:
        return DeliveryWord.UNOBSERVED, "the tip is not in the checkout; fetch it and look again"
    if remote.contains_head:
        return DeliveryWord.PASSED, "the tip contains the closed head"
    return DeliveryWord.PENDING, "the tip does not contain the closed head"


def judge_issues(issues: Sequence[tuple[str, Tracked]]) -> tuple[DeliveryWord, str]:
    """Judge `issues_closed` over every issue of the nodes."""
    if not issues:
        return DeliveryWord.UNOBSERVED, "no node names an issue"
    judged = [(name, *_issue(tracked)) for name, tracked in issues]
    word = worst([each for _, each, _ in judged])
    told = [f"{name} {reason}" for name, each, reason in judged if each is word]
    return word, "; ".join(told)


def _issue(tracked: Tracked) -> tuple[DeliveryWord, str]:
    if tracked.state is None:
        return DeliveryWord.UNOBSERVED, "cannot be read"
    if tracked.state != "closed":
        return DeliveryWord.PENDING, "is open"
    if tracked.reason is None:
        return DeliveryWord.UNOBSERVED, "is closed without a reason that can be read"
    if tracked.reason != "completed":
        return DeliveryWord.PENDING, f"is closed as {tracked.reason}"
    return DeliveryWord.PASSED, "is closed as completed"


def judge_milestone(tracked: Tracked) -> tuple[DeliveryWord, str]:
    """Judge `milestone_closed`."""
    if tracked.state is None:
        return DeliveryWord.UNOBSERVED, "the tracking milestone cannot be read"
    if tracked.state != "closed":
        return DeliveryWord.PENDING, "the tracking milestone is open"
    return DeliveryWord.PASSED, "the tracking milestone is closed"


def worst(words: Sequence[DeliveryWord]) -> DeliveryWord:
    """What several words come to: all must pass, and what is unobserved is told before what is pending."""
    for word in (DeliveryWord.UNOBSERVED, DeliveryWord.PENDING):
        if word in words:
            return word
    return DeliveryWord.PASSED if words else DeliveryWord.UNOBSERVED
