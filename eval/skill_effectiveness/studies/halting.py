"""How a run is told to end: the first request drains it, the second stops it (studies.md section 3)."""

from __future__ import annotations

from threading import Event


class Halt:
    """Asked by everything that could go on for long; told from a signal handler or another thread.

    Draining starts nothing and lets what runs finish; stopping also ends what runs.
    """

    def __init__(self) -> None:
        self._draining = Event()
        self._stopping = Event()

    def request(self) -> None:
        """Ask once more."""
        if self._draining.is_set():
            self._stopping.set()
        self._draining.set()

    def stop(self) -> None:
        """Ask as often as it takes."""
        self._draining.set()
        self._stopping.set()

    def draining(self) -> bool:
        """Whether nothing more is to be started."""
        return self._draining.is_set()

    def stopping(self) -> bool:
        """Whether what runs is to end now."""
        return self._stopping.is_set()
