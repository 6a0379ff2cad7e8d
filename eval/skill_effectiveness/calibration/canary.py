"""Watching a licensed reviewer by known answers among its votes (calibration.md, section 9).

A canary is a vote whose answer is known, indistinguishable in form. The evidence against the licence starts
at 1 and is multiplied by p1/p0 for a right and by (1 - p1)/(1 - p0) for a wrong answer; once it reaches the
limit the licence is revoked for ever, and the votes after the last right canary are void: nobody can say
since when the reviewer was no longer the one that was licensed. All arithmetic is exact.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable

    from skill_effectiveness.protocol.policy import CanaryRule

START: Final = Fraction(1)


@dataclass(frozen=True, slots=True)
class CanaryAnswer:
    """One known answer among the votes of one reviewer.

    Attributes:
        position: place of the vote among all votes of this licence, canaries included, from 0.
        right: whether the answer was the known one.
    """

    position: int
    right: bool


@dataclass(frozen=True, slots=True)
class CanaryWatch:
    """What the canaries of one licence say so far.

    Attributes:
        evidence: e; exact.
        last_right: position of the last right canary; None when there was none.
        revoked_at: position of the canary at which the licence was revoked; None while it stands.
    """

    evidence: Fraction = START
    last_right: int | None = None
    revoked_at: int | None = None

    @property
    def revoked(self) -> bool:
        """Whether the licence is revoked."""
        return self.revoked_at is not None

    def counts(self, position: int) -> bool:
        """Whether the vote at this position counts.

        All votes do while the licence stands. Once it is revoked, only those up to its last right canary do.
        """
        return not self.revoked or (self.last_right is not None and position <= self.last_right)


def factors(rule: CanaryRule) -> tuple[Fraction, Fraction]:
    """What a right and a wrong answer multiply the evidence by.

    A frozen number means the decimal that was written, as in `figures.at_least`.
    """
    p0, p1 = Fraction(repr(rule.p0)), Fraction(repr(rule.p1))
    return p1 / p0, (1 - p1) / (1 - p0)


def watch(rule: CanaryRule, answers: Iterable[CanaryAnswer], since: CanaryWatch | None = None) -> CanaryWatch:
    """Go through the canaries of one licence in the order of their votes.

    Args:
        rule: that of the licence.
        answers: canaries, positions ascending.
        since: what was known before; nothing by default. What comes after a revocation changes nothing.

    Raises:
        ValueError: positions that do not ascend from 0.
    """
    right, wrong = factors(rule)
    limit = Fraction(repr(rule.limit))
    state, last = since or CanaryWatch(), -1
    for answer in answers:
        if answer.position <= last:
            raise ValueError("canaries are given in the order of their votes, each once")
        last = answer.position
        if state.revoked:
            continue
        evidence = state.evidence * (right if answer.right else wrong)
        state = CanaryWatch(
            evidence,
            answer.position if answer.right else state.last_right,
            answer.position if evidence >= limit else None,
        )
    return state
