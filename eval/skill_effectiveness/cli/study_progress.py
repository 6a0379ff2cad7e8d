"""What a person who waits for a study is shown: totals of the whole study, never of an arm; on stderr."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from skill_effectiveness.cli import screen
from skill_effectiveness.cli.progress import LiveProgress

if TYPE_CHECKING:
    from skill_effectiveness.studies.status import StudyStatus

_LINES: Final = 20
"""Lines for a whole study where there is no terminal to paint on."""


class StudyProgress(LiveProgress):
    """An observer of one run.

    Args:
        name: of the study.
        slots: of its plan.
    """

    def __init__(self, name: str, slots: int) -> None:
        super().__init__(name, slots)
        self._slots = slots
        self._shown = -1

    def resumed(self, interrupted: int, kept: int, leftovers: int) -> None:
        """An earlier run was killed."""
        told = f"an earlier run was killed: {interrupted} attempts were interrupted, {kept} had finished"
        if leftovers:
            told += f", {leftovers} processes were left and have been ended"
        screen.complain(f"{self._label}: {told}")

    def resting(self, seconds: float) -> None:
        """The provider had trouble."""
        screen.complain(f"{self._label}: waiting {seconds:.0f} s before the next attempt")

    def progressed(self, status: StudyStatus) -> None:
        """Something ended."""
        tokens = "unknown" if status.known_tokens is None else f"{status.known_tokens:,}"
        state = f"{status.attempts} attempts, {tokens} tokens"
        if status.eta_seconds:
            state += f", about {status.eta_seconds:.0f} s left"
        if self._live is not None:
            self._live.update(self._task, completed=status.ended, state=screen.neutral(state))
        elif self._is_worth_a_line(status.ended):
            self._shown = status.ended
            screen.complain(f"{self._label}: {status.ended} of {self._slots} slots, {state}")

    def _is_worth_a_line(self, ended: int) -> bool:
        step = max(1, self._slots // _LINES)
        return ended != self._shown and (ended // step > self._shown // step or ended == self._slots)
