"""Where every command of closedloop ends: its own exit codes, one sentence on stderr, no traceback.

Source: loop.md, sections 8 and 13. Exit codes belong to their contract, so this is neither `boundary` nor the
door of closeout: an invalid invocation ends with 5 here, and 1 is no outcome.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from skill_effectiveness.acceptance.loop.errors import LoopRefusedError
from skill_effectiveness.acceptance.loop.words import REFUSED_EXIT
from skill_effectiveness.cli import screen
from skill_effectiveness.cli.contract_door import Contract, carry_out
from skill_effectiveness.cli.refusals import Refusal
from skill_effectiveness.evidence.faults import EvidenceError

if TYPE_CHECKING:
    from collections.abc import Sequence

    import typer

PROGRAM: Final = "closedloop"
UNFORESEEN: Final = 1


class _ClosedLoop(Contract):
    program = PROGRAM
    consequence = ", which is no outcome"
    invalid_exit = REFUSED_EXIT
    unforeseen_exit = UNFORESEEN

    def refused(self, error: Exception, words: Sequence[str]) -> int | None:
        """See `Contract`; these sentences come as they are."""
        del words
        if not isinstance(error, LoopRefusedError | Refusal | EvidenceError):
            return None
        screen.complain(str(error))
        return REFUSED_EXIT

    def misused(self, message: str, usage: str, words: Sequence[str]) -> int:
        """See `Contract`; in one line."""
        del usage, words
        self.complain(f"{message}; see {PROGRAM} --help")
        return REFUSED_EXIT

    def unhearable(self) -> int:
        """See `Contract`."""
        return REFUSED_EXIT


def main(app: typer.Typer, words: Sequence[str], called: str) -> int:
    """Carry out one command line and turn whatever comes out of it into the exit code.

    Args:
        app: the application.
        words: the words after the program's name.
        called: how the person reached it, for the usage text.
    """
    return carry_out(_ClosedLoop(), app, words, called)
