"""Where every command of milestone ends: its own exit codes, one typed code, no traceback.

Source: milestone.md, sections 12 and 14. Exit codes belong to their contract, so this is not `boundary`.
"""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING, Final

from skill_effectiveness.acceptance.milestone.errors import MilestoneError, Stopped
from skill_effectiveness.acceptance.milestone.words import Outcome
from skill_effectiveness.cli import screen
from skill_effectiveness.cli.contract_door import JSON, Contract, carry_out
from skill_effectiveness.cli.refusals import Refusal
from skill_effectiveness.evidence.faults import EvidenceError

if TYPE_CHECKING:
    from collections.abc import Sequence

    import typer

    from skill_effectiveness.acceptance.milestone.engines import Binder

PROGRAM: Final = "milestone"
READERS: Final = frozenset({"audit", "deliver"})
"""Verbs that have no other exit codes than 0, 1 and 2."""


class ExitCode(IntEnum):
    """The closed exit codes of milestone; signals add 128+n."""

    DONE = 0
    NOT_PASSED = 1
    REFUSED = 2
    HELD = 3
    INTEGRITY = 4


class _Milestone(Contract):
    program = PROGRAM
    invalid_exit = ExitCode.REFUSED
    unforeseen_exit = ExitCode.INTEGRITY

    def refused(self, error: Exception, words: Sequence[str]) -> int | None:
        """See `Contract`."""
        reads = bool(READERS.intersection(words[:1]))
        match error:
            case MilestoneError():
                exit_code = ExitCode.REFUSED if reads else error.code.exit
                return self._refuse(error.code.value, error.detail, str(error), words, exit_code)
            case Stopped():
                return told_stop(error, as_json=JSON in words)
            case Refusal() | EvidenceError():
                sentence = f"{error.code}: {error}"
                return self._refuse(str(error.code), "", sentence, words, ExitCode.REFUSED)
            case _:
                return None

    def misused(self, message: str, usage: str, words: Sequence[str]) -> int:
        """See `Contract`; machines are told too."""
        code = super().misused(f"usage: {message}", usage, words)
        if JSON in words:
            screen.results({"code": "usage", "detail": "", "status": "refused"}, as_json=True)
        return code

    def unforeseen(self, told: str, words: Sequence[str]) -> int:
        """See `Contract`; machines are told too."""
        sentence = f"internal: something unforeseen happened; {told}"
        return self._refuse("internal", "", sentence, words, self.unheard(words))

    def unheard(self, words: Sequence[str]) -> int:
        """See `Contract`; verbs that only read know no exit code for a broken store."""
        return ExitCode.REFUSED if READERS.intersection(words[:1]) else ExitCode.INTEGRITY

    def unhearable(self) -> int:
        """See `Contract`."""
        return ExitCode.REFUSED

    def _refuse(self, code: str, detail: str, sentence: str, words: Sequence[str], exit_code: int) -> int:
        """Say the one typed code, to machines as well if they asked."""
        self.complain(sentence)
        if JSON in words:
            screen.results({"code": code, "detail": detail, "status": "refused"}, as_json=True)
        return exit_code


def main(app: typer.Typer, arguments: Sequence[str] | None, called: str, binder: Binder | None) -> int:
    """Carry out one command line and turn whatever comes out of it into the exit code.

    Args:
        app: the application.
        arguments: the words after the program's name; `None`: the process's own.
        called: how the person reached it, for the usage text.
        binder: how engine profiles become adapters; `None`: by the registry.
    """
    return carry_out(_Milestone(), app, arguments, called, binder)


def told_stop(stopped: Stopped, *, as_json: bool) -> int:
    """Say how a verb was stopped, and answer its exit code."""
    stop = stopped.stop
    screen.complain(f"{PROGRAM}: {stopped}")
    if as_json:
        value = {"code": stop.code.value, "outcome": stop.outcome.value, "reason": stop.reason}
        screen.results({**stop.carries, **value}, as_json=True)
    return ExitCode.HELD if stop.outcome is Outcome.HELD else ExitCode.NOT_PASSED
