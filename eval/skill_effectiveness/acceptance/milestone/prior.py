"""What came before a round: a verdict that it continues, and what became of its findings.

Source: milestone.md, sections 4 and 7, Rounds.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from skill_effectiveness.acceptance.milestone.words import Word

if TYPE_CHECKING:
    from skill_effectiveness.acceptance.milestone.verdict import Verdict


@dataclass(frozen=True, slots=True)
class Prior:
    """A verdict that a round continues.

    Attributes:
        verdict: V.
        rerun: it is of an earlier run of the same plan, not of this one.
        corrected_from: the head it judged, where a correction of this run moved on from there.
    """

    verdict: Verdict
    rerun: bool = False

    @property
    def ids(self) -> frozenset[str]:
        """The ids that either pass may keep."""
        return frozenset(finding.id for finding in self.verdict.findings)


@dataclass(frozen=True, slots=True)
class RoundStart:
    """How a round is to begin.

    Attributes:
        number: 1, or 2 after the correction.
        milestone: the milestone it is about.
        run: the run.
        judged_head: the head at which the verdict before it was given.
        prior: what it continues.
    """

    number: int
    milestone: str
    run: str
    judged_head: str
    prior: Prior | None


def is_valid_start(start: RoundStart) -> bool:
    """Whether prior and number describe the continuation that a close makes."""
    prior = start.prior
    if start.number == 1:
        return prior is None or (prior.rerun and _unverified(prior, start))
    if start.number != 2 or prior is None or prior.rerun:  # noqa: PLR2004 - the correction's round
        return False
    verdict = prior.verdict
    same = (verdict.round, verdict.run, verdict.head) == (1, start.run, start.judged_head)
    return same and _unverified(prior, start)


def _unverified(prior: Prior, start: RoundStart) -> bool:
    verdict = prior.verdict
    return verdict.word is Word.NEEDS_CHANGES and verdict.milestone == start.milestone


def previous_crosscheck(prior: Verdict, now: Verdict) -> dict[str, Any]:
    """What the report says about the verdict of an earlier run, finding by finding."""
    return {
        "verdict": prior.plain(),
        "findings": [{"id": finding.id, "result": _result(finding.id, now)} for finding in prior.blocking],
    }


def _result(finding_id: str, now: Verdict) -> str:
    again = next((finding for finding in now.findings if finding.id == finding_id), None)
    if again is None:
        return "not_reported"
    return "blocking" if again.blocks else "follow_up"
