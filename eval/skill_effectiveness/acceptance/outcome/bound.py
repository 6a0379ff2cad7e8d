"""How much work an issue buys, and how the work is named.

Source: outcome.md, section 10. The parser that grades the issue bounds the work too, so both agree on every
body.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from skill_effectiveness.acceptance.outcome.errors import OutcomeCode, OutcomeError
from skill_effectiveness.acceptance.outcome.sections import read_sections
from skill_effectiveness.acceptance.outcome.words import SECTIONS

if TYPE_CHECKING:
    from pydantic import JsonValue

SCOPED_MS: Final = 3_600_000
OTHER_MS: Final = 900_000
"""Milliseconds for an issue with all four sections, and for any other."""

BODY_BYTES: Final = 6_000


@dataclass(frozen=True, slots=True)
class WorkBound:
    """What may be spent on an issue.

    Attributes:
        milliseconds: of work.
        scoped: whether the issue has all four sections.
        missing: the sections that it lacks.
        branch: where the work goes.
        objective: what the agent is told.
    """

    milliseconds: int
    scoped: bool
    missing: tuple[str, ...]
    branch: str
    objective: str

    def to_json(self) -> dict[str, JsonValue]:
        """As plain values."""
        return {
            "milliseconds": self.milliseconds,
            "scoped": self.scoped,
            "missing": list(self.missing),
            "branch": self.branch,
            "objective": self.objective,
        }


def work_bound(repository: str, number: int, body: str, asked_ms: int | None = None) -> WorkBound:
    """The bound of an issue.

    Args:
        repository: of the issue.
        number: of the issue.
        body: its Markdown.
        asked_ms: what the caller asks for; it narrows the bound and never widens it.

    Raises:
        OutcomeError: `record_invalid`: no time at all is asked for.
    """
    if asked_ms is not None and asked_ms < 1:
        raise OutcomeError(OutcomeCode.RECORD_INVALID, "Ask for at least one millisecond of work.")
    sections = read_sections(body)
    most = SCOPED_MS if sections.scoped else OTHER_MS
    return WorkBound(
        milliseconds=most if asked_ms is None else min(most, asked_ms),
        scoped=sections.scoped,
        missing=tuple(name for name in SECTIONS if not getattr(sections, name)),
        branch=f"agent/issue-{number}",
        objective=_objective(repository, number, body),
    )


def _objective(repository: str, number: int, body: str) -> str:
    """The issue as an agent reads it; cut between two characters."""
    data = body.encode("utf-8")
    kept = data[:BODY_BYTES].decode("utf-8", "ignore")
    rest = "\n[the issue goes on]" if len(data) > BODY_BYTES else ""
    return f"Complete issue {number} of {repository}. Its text follows.\n\n{kept}{rest}"
