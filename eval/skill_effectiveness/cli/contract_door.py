"""The way out that programs with exit codes of their own share: one sentence on stderr, no traceback.

Source: closeout.md sections 9 and 16; outcome.md sections 12 and 14; milestone.md sections 12 and 14; loop.md
sections 8 and 13. What is common is here: the streams, the signals, and what a framework raises. Which code
something ends with is a `Contract`'s to say. `boundary` is the way out of everything else.
"""

from __future__ import annotations

import signal
import sys
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar, Final

import typer

from skill_effectiveness.cli import crash, screen
from skill_effectiveness.cli.door import surroundings
from skill_effectiveness.cli.interruption import Interruption
from skill_effectiveness.cli.refusals import usage_of
from skill_effectiveness.evidence.signals import Terminated
from skill_effectiveness.launch.privacy import close_to_others

if TYPE_CHECKING:
    from collections.abc import Sequence

JSON: Final = "--json"
_SIGNALLED: Final = 128


class Contract(ABC):
    """How one program ends.

    Attributes:
        program: its name, which every sentence starts with.
        product: what nobody would get without a stdout.
        consequence: what follows when something unforeseen happens, as the rest of a sentence.
        invalid: what commands raise about an invalid invocation.
        invalid_exit: the code for one.
        unforeseen_exit: the code for what is unforeseen, and for a stdout that is lost.
    """

    program: ClassVar[str]
    product: ClassVar[str] = "result"
    consequence: ClassVar[str] = ""
    invalid: ClassVar[tuple[type[Exception], ...]] = ()
    invalid_exit: ClassVar[int]
    unforeseen_exit: ClassVar[int]

    @abstractmethod
    def refused(self, error: Exception, words: Sequence[str]) -> int | None:
        """Say why a command was refused, and answer the exit code; `None`: the error is unforeseen.

        Args:
            error: what the command raised.
            words: after the program's name.
        """

    def misused(self, message: str, usage: str, words: Sequence[str]) -> int:
        """Say what is wrong with the invocation and how it is meant, and answer the exit code.

        Args:
            message: what is wrong, without a full stop.
            usage: how it is meant.
            words: after the program's name.
        """
        del words
        self.complain(message)
        for line in usage.splitlines():
            screen.complain(line)
        return self.invalid_exit

    def unforeseen(self, told: str, words: Sequence[str]) -> int:
        """Say that something unforeseen happened, and answer the exit code.

        Args:
            told: where it was recorded.
            words: after the program's name.
        """
        del words
        self.complain(f"something unforeseen happened{self.consequence}; {told}")
        return self.unforeseen_exit

    def unheard(self, words: Sequence[str]) -> int:
        """The exit code when stdout was lost."""
        del words
        return self.unforeseen_exit

    def unhearable(self) -> int:
        """The exit code when stdout is closed from the start, so that nothing is done."""
        return self.unforeseen_exit

    def complain(self, sentence: str) -> None:
        """One line on stderr."""
        screen.complain(f"{self.program}: {sentence}")


def carry_out(
    contract: Contract,
    app: typer.Typer,
    arguments: Sequence[str] | None,
    called: str,
    handed: object = None,
) -> int:
    """Carry out one command line and turn whatever comes out of it into the exit code; signals add 128+n.

    Args:
        contract: of the program.
        app: the application.
        arguments: the words after the program's name; `None`: the process's own.
        called: how the person reached it, for the usage text.
        handed: what commands find as the object of their context.
    """
    close_to_others()
    around = surroundings()
    words = list(sys.argv[1:] if arguments is None else arguments)
    if not screen.open_missing_streams(around.fs):
        contract.complain(f"stdout is closed, so nobody would get the {contract.product}; redirect it.")
        return contract.unhearable()
    screen.speak_plainly()
    interruption = Interruption(around.monotonic)
    with interruption.heard():
        try:
            interruption.arm()
            code = _printed(contract, app, words, called, handed)
            interruption.disarm()
        except Terminated as ended:
            interruption.disarm()
            code = _SIGNALLED + ended.signum
    return code


def _printed(contract: Contract, app: typer.Typer, words: Sequence[str], called: str, handed: object) -> int:
    """The exit code of everything but a signal."""
    try:
        with screen.guarded_stdout():
            code = _judged(contract, app, words, called, handed)
        screen.flush()
    except BrokenPipeError:
        screen.silence(sys.stdout)
        return _SIGNALLED + signal.SIGPIPE
    except screen.StdoutLostError as lost:
        screen.silence(sys.stdout)
        contract.complain(str(lost))
        return contract.unheard(words)
    return code


def _judged(contract: Contract, app: typer.Typer, words: Sequence[str], called: str, handed: object) -> int:
    command = typer.main.get_command(app)
    try:
        with command.make_context(called, list(words), obj=handed) as context:
            given = command.invoke(context)
    except (BrokenPipeError, screen.StdoutLostError):
        raise
    except KeyboardInterrupt:
        # Where the handlers are not ours, in a thread of somebody else's program.
        return _SIGNALLED + signal.SIGINT
    except typer.Exit as asked:
        return asked.exit_code
    except typer.TyperException as wrong:
        message = usage_of(wrong).rstrip(".")
        return contract.misused(message, _usage(command, words, called), words)
    except contract.invalid as wrong:
        return contract.misused(str(wrong), _usage(command, words, called), words)
    except (Exception, SystemExit) as error:  # noqa: BLE001 - the boundary: nothing may leave as a traceback
        return _told(contract, error, words)
    return int(given) if isinstance(given, int) else 0


def _told(contract: Contract, error: Exception | SystemExit, words: Sequence[str]) -> int:
    """The exit code of what a command raised."""
    code = None if isinstance(error, SystemExit) else contract.refused(error, words)
    return contract.unforeseen(crash.record(error, surroundings()), words) if code is None else code


def _usage(command: Any, words: Sequence[str], called: str) -> str:  # noqa: ANN401 - the framework keeps its types
    """How the command that the words name is meant."""
    context = command.make_context(called, [], resilient_parsing=True)
    for word in words:
        inner = getattr(command, "commands", {}).get(word)
        if inner is None:
            break
        command = inner
        context = command.make_context(word, [], parent=context, resilient_parsing=True)
    return str(context.get_usage())
