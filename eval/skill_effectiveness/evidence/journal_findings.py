"""Collecting what is wrong with a journal, up to a limit."""

from __future__ import annotations

from typing import TYPE_CHECKING

from skill_effectiveness.evidence.journal_faults import Finding, Found
from skill_effectiveness.evidence.strict import MOST_FAULTS

if TYPE_CHECKING:
    from collections.abc import Iterator


class EnoughError(Exception):
    """So much is wrong that looking further tells nothing."""


class Findings:
    """What was found so far; one of a kind for each row."""

    def __init__(self) -> None:
        self._found: dict[tuple[Finding, int | None, int | None, str], Found] = {}
        self.warnings: list[Found] = []

    def add(
        self,
        finding: Finding,
        sentence: str,
        *,
        segment: int | None = None,
        seq: int | None = None,
        offset: int | None = None,
    ) -> None:
        """Note a finding, unless the same is known of the same row.

        Raises:
            EnoughError: there are 1,000.
        """
        place = sentence if seq is None else ""
        self._found.setdefault((finding, segment, seq, place), Found(finding, segment, seq, offset, sentence))
        if len(self._found) >= MOST_FAULTS:
            raise EnoughError

    def warn(self, finding: Finding, sentence: str, *, segment: int, seq: int, offset: int) -> None:
        """Note a warning; those beyond 1,000 are dropped."""
        if len(self.warnings) < MOST_FAULTS:
            self.warnings.append(Found(finding, segment, seq, offset, sentence))

    def __iter__(self) -> Iterator[Found]:
        return iter(self._found.values())

    def __len__(self) -> int:
        return len(self._found)
