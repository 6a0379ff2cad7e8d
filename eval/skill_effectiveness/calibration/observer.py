"""What an examination tells whoever waits; the library itself never prints.

An observer is told words and numbers only: never a verdict, a prompt or a path. It must not raise; what it
raises ends the command like any other defect, with the durable state left resumable.
"""

from __future__ import annotations

from typing import Protocol


class Observer(Protocol):
    """Receives the steps of an examination in the order in which they happen."""

    def leftovers_found(self, processes: int, removed: int | None, left: int | None) -> None:
        """Killed runs left something; told before the first call, and not when there is nothing.

        Args:
            processes: calls' processes that nobody watches over; they are left alone.
            removed: session folders that were removed; None when they could not be looked for.
            left: session folders that could not be removed; likewise.
        """

    def repeat_started(self, repeat: int, of: int, attempt: int) -> None:
        """A repeat begins its attempt number `attempt`; both count from 1."""

    def repeat_kept(self, repeat: int, of: int) -> None:
        """A repeat has its sample and costs no call."""

    def call_started(self, timeout_seconds: int) -> None:
        """The one model call of a sample is about to start."""

    def call_ended(self, ending: str) -> None:
        """The call came back with this word of the provider room."""

    def published(self, calibration_status: str) -> None:
        """The pair is complete."""


class Silent:
    """The observer of a library call nobody watches."""

    def leftovers_found(self, processes: int, removed: int | None, left: int | None) -> None:
        """Say nothing."""

    def repeat_started(self, repeat: int, of: int, attempt: int) -> None:
        """Say nothing."""

    def repeat_kept(self, repeat: int, of: int) -> None:
        """Say nothing."""

    def call_started(self, timeout_seconds: int) -> None:
        """Say nothing."""

    def call_ended(self, ending: str) -> None:
        """Say nothing."""

    def published(self, calibration_status: str) -> None:
        """Say nothing."""
