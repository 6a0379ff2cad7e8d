"""Where every command of closeout ends: its own exit codes, one sentence on stderr, no traceback.

Source: closeout.md, sections 9, 11 and 16. Exit codes belong to their contract, so this is not `boundary`,
whose refusals end with 2: here only an invalid invocation does, and whatever is unforeseen blocks.
"""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING, Final

from skill_effectiveness.acceptance.closeout.errors import CloseoutError, UsageRefused
from skill_effectiveness.cli.contract_door import Contract, carry_out
from skill_effectiveness.cli.refusals import Refusal
from skill_effectiveness.evidence.faults import EvidenceError

if TYPE_CHECKING:
    from collections.abc import Sequence

    import typer

PROGRAM: Final = "closeout"


class ExitCode(IntEnum):
    """The closed exit codes of closeout; signals add 128+n."""

    ACCEPTED = 0
    REJECTED = 1
    USAGE = 2
    BLOCKED = 3


class _Closeout(Contract):
    program = PROGRAM
    product = "decision"
    consequence = ", so nothing is accepted"
    invalid = (UsageRefused,)
    invalid_exit = ExitCode.USAGE
    unforeseen_exit = ExitCode.BLOCKED

    def refused(self, error: Exception, words: Sequence[str]) -> int | None:
        """See `Contract`."""
        del words
        if not isinstance(error, CloseoutError | EvidenceError | Refusal):
            return None
        self.complain(str(error))
        return ExitCode.BLOCKED


def main(app: typer.Typer, arguments: Sequence[str] | None, called: str = PROGRAM) -> int:
    """Carry out one command line and turn whatever comes out of it into the exit code.

    Args:
        app: the application.
        arguments: the words after the program's name; `None`: the process's own.
        called: how the person reached it, for the usage text.
    """
    return carry_out(_Closeout(), app, arguments, called)
