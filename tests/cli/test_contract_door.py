"""The way out of the programs with exit codes of their own."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import pytest
import typer

from skill_effectiveness.cli import accepted_outcome, closedloop, closeout, door, milestone
from skill_effectiveness.cli.contract_door import Contract, carry_out
from skill_effectiveness.evidence.signals import Terminated

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A home folder, where a crash file may go."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("XDG_STATE_HOME", raising=False)
    monkeypatch.chdir(tmp_path)
    door.surroundings.cache_clear()
    yield tmp_path
    door.surroundings.cache_clear()


class Refused(Exception):  # noqa: N818 - as the contracts name it
    """What the program of these tests refuses."""


class Invalid(Exception):  # noqa: N818 - as the contracts name it
    """What its commands raise about their invocation."""


class Program(Contract):
    """A program with codes that no real one has."""

    program = "prog"
    consequence = ", so what"
    invalid = (Invalid,)
    invalid_exit = 31
    unforeseen_exit = 32

    def refused(self, error: Exception, words: Sequence[str]) -> int | None:
        """See `Contract`."""
        if not isinstance(error, Refused):
            return None
        self.complain(f"{error} {' '.join(words)}")
        return 33


def ended(work: Callable[[], object], capsys: pytest.CaptureFixture[str]) -> tuple[int, str, str]:
    """Exit code and both streams of a program whose command does this."""
    app = typer.Typer(add_completion=False)

    @app.command("do")
    def command() -> Any:  # noqa: ANN401 - whatever a command answers
        return work()

    @app.command("other")
    def other() -> None:
        """Make the first one a command among others."""

    code = carry_out(Program(), app, ["do"], "prog")
    return code, *capsys.readouterr()


def raising(error: BaseException) -> Callable[[], object]:
    def work() -> object:
        raise error

    return work


class TestEndings:
    @pytest.mark.parametrize(("given", "code"), [(None, 0), (0, 0), (7, 7), ("text", 0)])
    def test_what_a_command_answers(
        self, capsys: pytest.CaptureFixture[str], given: object, code: int
    ) -> None:
        assert ended(lambda: given, capsys) == (code, "", "")

    @pytest.mark.parametrize(
        ("error", "code", "says"),
        [
            (Refused("no"), 33, "prog: no do\n"),
            (Invalid("what"), 31, "prog: what\nUsage: prog do "),
            (ValueError("secret-canary"), 32, "prog: something unforeseen happened, so what; the crash file"),
            (SystemExit(5), 32, "prog: something unforeseen happened, so what; the crash file"),
            (KeyboardInterrupt(), 130, ""),
            (Terminated(15), 143, ""),
            (BrokenPipeError(), 141, ""),
        ],
    )
    def test_what_a_command_raises(
        self, capsys: pytest.CaptureFixture[str], error: BaseException, code: int, says: str
    ) -> None:
        """C45: one sentence, no traceback, nothing of what was being worked on."""
        found, out, err = ended(raising(error), capsys)
        assert (found, out) == (code, "")
        assert err.startswith(says)
        assert "Traceback" not in err
        assert "secret-canary" not in err


PROGRAMS = {
    "closeout": closeout,
    "accepted-outcome": accepted_outcome,
    "milestone": milestone,
    "closedloop": closedloop,
}


class TestThePrograms:
    @pytest.mark.parametrize(
        ("program", "code"), [("closeout", 3), ("accepted-outcome", 3), ("milestone", 4), ("closedloop", 1)]
    )
    def test_a_help_text_that_cannot_be_written(
        self,
        program: str,
        code: int,
        monkeypatch: pytest.MonkeyPatch,
        capsys: pytest.CaptureFixture[str],
    ) -> None:
        """C45: the framework writes it, and it is no defect of ours that there is no room."""
        with open("/dev/full", "w") as full:  # noqa: PTH123 - a device
            monkeypatch.setattr(sys, "stdout", full)
            assert PROGRAMS[program].main(["--help"], program) == code
        said = capsys.readouterr().err
        assert said.startswith(f"{program}: The results could not be written to stdout")
        assert "unforeseen" not in said

    @pytest.mark.parametrize(
        ("program", "code"), [("closeout", 2), ("accepted-outcome", 2), ("milestone", 2), ("closedloop", 5)]
    )
    def test_an_unknown_option(self, program: str, code: int, capsys: pytest.CaptureFixture[str]) -> None:
        """C45: the code of the contract, on stderr alone."""
        assert PROGRAMS[program].main(["--no-such-option"], program) == code
        said = capsys.readouterr()
        assert said.out == ""
        assert said.err != ""
