"""Whether a loop has returned to a state that it had already been in. Pure.

Source: loop.md, section 8, limitCycle.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from skill_effectiveness.evidence.canonical import digest_object

if TYPE_CHECKING:
    from collections.abc import Sequence


class AttemptState(NamedTuple):
    """The state after an attempt that did not pass.

    Attributes:
        content: digest of the content of the repository.
        decision: digest of what every decider measured.
    """

    content: str
    decision: str


@dataclass(frozen=True, slots=True)
class Repetition:
    """Two attempts with one state.

    Attributes:
        earlier: number of the first of them.
        later: number of the second.
    """

    earlier: int
    later: int

    @property
    def period(self) -> int:
        """1: nothing moved; more: oscillation."""
        return self.later - self.earlier

    def __str__(self) -> str:
        return f"attempts {self.earlier} and {self.later} ended in one state (period {self.period})"


def decision_digest(words: Sequence[tuple[str, str]]) -> str:
    """One digest for the words that the deciders of an attempt measured, in their order."""
    return digest_object([list(pair) for pair in words])


class History:
    """The states of one loop, from attempt 1 on."""

    def __init__(self) -> None:
        self._seen: dict[AttemptState, int] = {}

    def repeated(self, attempt: int, state: AttemptState) -> Repetition | None:
        """Remember a state; the nearest earlier attempt that had it, if any."""
        earlier = self._seen.get(state)
        self._seen[state] = attempt
        return None if earlier is None else Repetition(earlier, attempt)
