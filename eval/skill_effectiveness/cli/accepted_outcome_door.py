"""Where every command of accepted-outcome ends: its own exit codes, one sentence on stderr, no traceback.

Source: outcome.md, sections 12 and 14. With `--json` a refusal is one object on stdout too: its code and what
is safe for machines about it.
"""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING, Final

from skill_effectiveness.acceptance.outcome.errors import OutcomeError
from skill_effectiveness.cli import screen
from skill_effectiveness.cli.contract_door import JSON, Contract, carry_out
from skill_effectiveness.cli.refusals import Refusal
from skill_effectiveness.evidence.faults import EvidenceError

if TYPE_CHECKING:
    from collections.abc import Sequence

    import typer

PROGRAM: Final = "accepted-outcome"


class ExitCode(IntEnum):
    """The closed exit codes of accepted-outcome; signals add 128+n."""

    ACCEPTED = 0
    NOT_ACCEPTED = 1
    INPUT = 2
    UNDECIDABLE = 3
    NOT_APPLICABLE = 4


class UsageRefused(Exception):  # noqa: N818 - a refusal is an answer, not a defect
    """The invocation is invalid; nothing was touched."""


class _AcceptedOutcome(Contract):
    program = PROGRAM
    consequence = ", so nothing is decided"
    invalid = (UsageRefused,)
    invalid_exit = ExitCode.INPUT
    unforeseen_exit = ExitCode.UNDECIDABLE

    def refused(self, error: Exception, words: Sequence[str]) -> int | None:
        """See `Contract`."""
        match error:
            case OutcomeError():
                code, message, undecidable = error.code.value, error.message, error.undecidable
            case EvidenceError() | Refusal():
                code = message = str(error.code)
                undecidable = isinstance(error, EvidenceError)
            case _:
                return None
        self.complain(str(error))
        if JSON in words:
            screen.results({"error": code, "message": message}, as_json=True)
        return ExitCode.UNDECIDABLE if undecidable else ExitCode.INPUT


def main(app: typer.Typer, arguments: Sequence[str] | None, called: str = PROGRAM) -> int:
    """Carry out one command line and turn whatever comes out of it into the exit code.

    Args:
        app: the application.
        arguments: the words after the program's name; `None`: the process's own.
        called: how the person reached it, for the usage text.
    """
    return carry_out(_AcceptedOutcome(), app, arguments, called)
