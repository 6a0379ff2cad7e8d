"""Findings: which block, and how those of two passes become one list.

Source: milestone.md, section 7, Answer and Merge.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Final

from pydantic import BaseModel, Field

from skill_effectiveness.acceptance.milestone.words import CLOSED, NO_NUL, FindingKind, Impact, Severity

if TYPE_CHECKING:
    from collections.abc import Iterable

_BLOCKING_SEVERITIES: Final = frozenset({Severity.P0, Severity.P1, Severity.P2})


class Finding(BaseModel):
    """One finding as a pass gives it."""

    model_config = CLOSED

    id: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,79}$")]
    kind: FindingKind
    severity: Severity
    impact: Impact | None
    file: Annotated[str, Field(max_length=4096, pattern=NO_NUL)]
    line: Annotated[int, Field(ge=0)]
    text: Annotated[str, Field(min_length=1, max_length=20_000, pattern=NO_NUL)]

    @property
    def blocks(self) -> bool:
        """Whether it keeps a crosscheck from being verified."""
        return self.severity in _BLOCKING_SEVERITIES or self.impact not in {None, Impact.MINOR_SEPARABLE}

    @property
    def follow_up(self) -> str:
        """The line by which one that does not block is carried."""
        return f"{self.id} [{self.severity}/{self.impact or 'none'}] {self.file}:{self.line} {self.text}"

    def plain(self) -> dict[str, Any]:
        """The finding as plain JSON values."""
        return self.model_dump(mode="json")


def merge(first: Iterable[Finding], second: Iterable[Finding]) -> tuple[Finding, ...]:
    """One finding per id out of those of pass A and those of pass B.

    File, line, text and kind are the first copy's, the severity is the higher one, and a blocking impact
    takes the place of one that does not block, or of none. Which pass ended first has no say.
    """
    merged: dict[str, Finding] = {}
    for finding in (*first, *second):
        held = merged.get(finding.id)
        merged[finding.id] = finding if held is None else _joined(held, finding)
    return tuple(merged.values())


def _joined(held: Finding, other: Finding) -> Finding:
    severity = min(held.severity, other.severity, key=lambda each: each.value)
    displaced = _impact_blocks(other.impact) and not _impact_blocks(held.impact)
    impact = other.impact if displaced else held.impact
    return held.model_copy(update={"severity": severity, "impact": impact})


def _impact_blocks(impact: Impact | None) -> bool:
    return impact not in {None, Impact.MINOR_SEPARABLE}
