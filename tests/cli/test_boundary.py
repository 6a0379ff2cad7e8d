"""Exit codes, one-line refusals and what machines are told."""

from __future__ import annotations

import io
import json
import os
import signal
import sys
from typing import TYPE_CHECKING, Any

import pytest
import typer

from skill_effectiveness.calibration.errors import (
    CalibrationCode,
    CalibrationError,
    ExaminationRefused,
    PairFault,
    PairRefused,
    RefusalCode,
)
from skill_effectiveness.cli import boundary, screen
from skill_effectiveness.cli.refusals import CommandCode, Refusal
from skill_effectiveness.evidence.faults import Fault, FileCode, FileError
from skill_effectiveness.execution import ExecutableCode, ExecutableError
from skill_effectiveness.protocol.errors import ProtocolCode, ProtocolError
from skill_effectiveness.providers import ProviderCode, ProviderError
from tests.support.commands import PREFIX, Said, no_traceback
from tests.support.private import surroundings

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

REFUSALS: list[tuple[Exception, dict[str, str]]] = [
    (Refusal(CommandCode.KEY_FORM, "No key."), {"code": "key_form"}),
    (
        CalibrationError(CalibrationCode.FIXTURE_INVALID, "Restore the file."),
        {"code": "fixture_invalid"},
    ),
    (FileError(Fault(FileCode.MISSING, "a/b", "a/b does not exist.")), {"code": "missing"}),
    (ExaminationRefused(RefusalCode.CANCELLED, "Stopped."), {"code": "cancelled"}),
    (
        ExaminationRefused(RefusalCode.BINDING_DIFFERS, "Another model.", field="model"),
        {"code": "binding_differs", "field": "model"},
    ),
    (
        ExaminationRefused(RefusalCode.FOLDER_UNUSABLE, "Mode.", field="attempts/r01-a1"),
        {"code": "folder_unusable"},
    ),
    (ExecutableError(ExecutableCode.NO_VERSION, "No version."), {"code": "no_version"}),
    (PairRefused(PairFault.DIFFERS, "result.json:/model", "It differs."), {"code": "value_differs"}),
    (
        ProtocolError(ProtocolCode.FIXTURE_INVALID, "fixtures/x.json", "Restore it."),
        {"code": "fixture_invalid"},
    ),
    (ProviderError(ProviderCode.INVALID_CALL, "No such form."), {"code": "invalid_call"}),
    (typer.BadParameter("no number."), {"code": "usage"}),
    (typer.Abort(), {"code": "nothing_entered"}),
    (EOFError(), {"code": "nothing_entered"}),
]
LOST = "The results could not be written to stdout; what was made stays. Make room, or redirect them."
REFUSAL_NAMES = [f"{type(error).__name__}-{told['code']}" for error, told in REFUSALS]


@pytest.fixture
def ran(home: Path, capsys: pytest.CaptureFixture[str]) -> Callable[..., Said]:
    def carry_out(command: Callable[[Sequence[str]], object], *words: str) -> Said:
        code = boundary.run(command, words, surroundings(environ={"HOME": str(home)}))
        return Said(int(code), *capsys.readouterr())

    return carry_out


def raising(error: BaseException) -> Callable[[Sequence[str]], object]:
    def command(_words: Sequence[str]) -> object:
        raise error

    return command


class TestAnswers:
    @pytest.mark.parametrize(
        ("answer", "code"),
        [
            (None, 0),
            (boundary.ExitCode.DONE, 0),
            (boundary.ExitCode.NOT_PASSED, 1),
            (1, 1),
            ("text", 0),
        ],
    )
    def test_what_a_command_answers_is_the_exit_code(
        self, ran: Callable[..., Said], answer: object, code: int
    ) -> None:
        assert ran(lambda _words: answer) == Said(code, "", "")

    def test_the_codes_are_closed(self) -> None:
        assert [code.value for code in boundary.ExitCode] == [0, 1, 2, 70]

    def test_the_words_reach_the_command(self, ran: Callable[..., Said]) -> None:
        seen: list[str] = []
        ran(seen.extend, "a", "--json")
        assert seen == ["a", "--json"]


class TestRefusals:
    @pytest.mark.parametrize(("error", "told"), REFUSALS, ids=REFUSAL_NAMES)
    def test_one_line_and_exit_2(
        self, ran: Callable[..., Said], error: Exception, told: dict[str, str]
    ) -> None:
        del told
        assert ran(raising(error), "verify").refusal.endswith(".")

    @pytest.mark.parametrize(("error", "told"), REFUSALS, ids=REFUSAL_NAMES)
    def test_machines_get_the_closed_code(
        self, ran: Callable[..., Said], error: Exception, told: dict[str, str]
    ) -> None:
        """E58: the code, and no path even where the sentence has one."""
        said = ran(raising(error), "verify", "--json")
        assert said.code == 2
        assert said.document == {"status": "refused", **told}
        assert said.out == json.dumps(said.document, sort_keys=True, separators=(",", ":")) + "\n"
        assert len(said.err.splitlines()) == 1

    def test_a_field_of_several_lines_stays_one_line(self, ran: Callable[..., Said]) -> None:
        """F21: of an error text that somebody else's program made."""
        error = ExaminationRefused(RefusalCode.REPEAT_FAILED, "It said\n\x1b[2Jpass.", field="x\x1b[1m")
        said = ran(raising(error), "--json")
        assert said.err == f"{PREFIX}It said\\x0a\\x1b[2Jpass.\n"
        assert said.out == '{"code":"repeat_failed","field":"x\\\\x1b[1m","status":"refused"}\n'


class TestUnforeseen:
    @pytest.mark.parametrize("error", [KeyError("secret"), SystemExit(1), MemoryError(), RecursionError()])
    def test_exit_70_and_one_line_that_names_the_crash_file(
        self, ran: Callable[..., Said], home: Path, error: BaseException
    ) -> None:
        said = ran(raising(error), "--json")
        assert (said.code, said.out) == (70, "")
        (line,) = said.err.splitlines()
        (file,) = (home / ".local/state/skill-effectiveness/crash").iterdir()
        assert line == f"{PREFIX}something unforeseen happened; the crash file {file} says where"
        assert no_traceback(said)

    def test_also_when_no_crash_file_can_be_written(self, ran: Callable[..., Said], home: Path) -> None:
        state = home / ".local/state/skill-effectiveness"
        state.mkdir(parents=True)
        state.chmod(0o755)
        said = ran(raising(KeyError("secret")))
        assert said.code == 70
        assert said.err == (
            f"{PREFIX}something unforeseen happened; no crash file could be written (root_mode)\n"
        )


class Gone(io.StringIO):
    """A stdout that fails."""

    def __init__(self, error: OSError) -> None:
        super().__init__()
        self.error = error

    def write(self, _text: str) -> int:
        raise self.error


class TestStdoutIsGone:
    @pytest.mark.parametrize(
        ("error", "code", "told"),
        [
            (BrokenPipeError(), 141, ""),
            (
                OSError(28, "No space left on device"),
                2,
                f"{PREFIX}{LOST}\n",
            ),
        ],
        ids=["reader left", "disk full"],
    )
    def test_results_that_nobody_gets(
        self, ran: Callable[..., Said], monkeypatch: pytest.MonkeyPatch, error: OSError, code: int, told: str
    ) -> None:
        monkeypatch.setattr(sys, "stdout", Gone(error))
        said = ran(lambda _words: screen.results({"a": 1}, as_json=False))
        assert (said.code, said.err) == (code, told)

    def test_a_refusal_that_machines_do_not_get(
        self, ran: Callable[..., Said], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(sys, "stdout", Gone(BrokenPipeError()))
        said = ran(raising(Refusal(CommandCode.KEY_FORM, "No key.")), "--json")
        assert (said.code, said.err) == (141, f"{PREFIX}No key.\n")


class TestSignals:
    @pytest.mark.parametrize("signum", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT])
    def test_exit_128_and_n_after_every_finally(self, ran: Callable[..., Said], signum: int) -> None:
        tidied: list[str] = []

        def command(_words: Sequence[str]) -> None:
            try:
                os.kill(os.getpid(), signum)
            finally:
                tidied.append("tidied")

        assert ran(command, "--json") == Said(128 + signum, "", "")
        assert tidied == ["tidied"]

    def test_ctrl_c_where_the_handlers_are_not_ours(self, ran: Callable[..., Said]) -> None:
        assert ran(raising(KeyboardInterrupt())).code == 130


def test_nothing_else_is_printed_on_the_way(ran: Callable[..., Said]) -> None:
    def command(_words: Sequence[str]) -> Any:  # noqa: ANN401 - a command may answer anything
        screen.results({"a": 1}, as_json=False)
        return 1

    assert ran(command) == Said(1, "a=1\n", "")
