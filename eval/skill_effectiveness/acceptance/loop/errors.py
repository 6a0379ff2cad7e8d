"""What ends a loop from outside: a refusal before anything ran, or a run about which nobody can say more.

Source: loop.md, sections 8 and 13.
"""

from __future__ import annotations


class LoopRefusedError(Exception):
    """Nothing ran; exit code 5. The text is one sentence for people."""


class AbortedError(Exception):
    """The run is neither passed nor failed; exit code 4. The text says why, after `aborted: `."""


class CleanupUncertainError(AbortedError):
    """A worktree could not be removed for certain; it stays, and its path is in the text."""


class EventNotWrittenError(AbortedError):
    """The log of the run could not be written, so nothing more is known to whoever reads it."""

    def __init__(self) -> None:
        super().__init__("event not written")
