"""The application as a whole: help, usage, streams, interpreters."""

from __future__ import annotations

import ast
import os
import resource
import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING, Any

import pytest
import typer

from skill_effectiveness.cli import main as door
from tests.support.commands import (
    PREFIX,
    RUN,
    TABLE,
    Said,
    ended,
    environment,
    no_traceback,
    run,
    start,
    steers,
)
from tests.support.private import REPOSITORY, content
from tests.support.processes import wait_until

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

EXAMINATION = [
    "reviewer-calibration", "--provider", "simulated", "--model", "sim-1", "--reviewer-family", "simulated",
    "--accuracy", "1", "--out", "out",
]  # fmt: skip
HINT = "run 'make setup' and use .venv/bin/python run.py"


def commands(command: Any = None, words: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:  # noqa: ANN401 - of the framework
    """Every command and group by its words."""
    command = command or typer.main.get_command(door.app)
    yield words
    for name, below in getattr(command, "commands", {}).items():
        yield from commands(below, (*words, name))


COMMANDS = list(commands())
GROUPS: list[tuple[str, ...]] = [(), ("reviewers",), ("keys",)]


class TestHelp:
    def test_the_commands(self) -> None:
        assert set(COMMANDS) == {
            (), ("reviewer-calibration",), ("verify",), ("smoke",),
            ("provider-probe",), ("providers",), ("providers", "doctor"),
            ("active-control-freeze-candidate",), ("active-control-freeze-owner-reference",),
            ("active-control-prepare",), ("active-control-finalize",), ("active-control-verify",),
            ("active-control-measure",), ("active-control-measure-verify",),
            ("active-control-matched-call",), ("active-control-matched-call-verify",),
            ("reviewers",), ("reviewers", "score"), ("reviewers", "seal"), ("reviewers", "demo"),
            ("keys",), ("keys", "new"), ("keys", "show"), ("keys", "export"),
            ("journal",), ("journal", "verify"), ("journal", "repin"),
            ("study",), ("study", "init"), ("study", "check"), ("study", "plan"), ("study", "status"),
            ("study", "amend"), ("study", "run"), ("study", "watch"), ("study", "judge"),
            ("study", "report"), ("study", "seal"), ("study", "prove"), ("study", "demo"), ("study", "quick"),
            ("study", "import"), ("study", "import", "harbor"), ("study", "export"),
            ("study", "export", "inspect"),
            ("activation",), ("activation", "record"), ("activation", "show"), ("activation", "verify"),
            ("trials",), ("trials", "list"), ("trials", "show"), ("trials", "verify"),
            ("licence",), ("licence", "issue"), ("licence", "show"), ("licence", "check"),
            ("pair",), ("pair", "blind"), ("gate",), ("gate", "replicate"),
            ("arms",), ("arms", "freeze"), ("arms", "plan"),
            ("closeout",), ("closeout", "validate"), ("closeout", "run"), ("closeout", "decision"),
            ("closeout", "review"), ("closeout", "conformance"), ("closeout", "evidence"),
            ("closeout", "evidence", "add"),
            ("closedloop",), ("closedloop", "run"), ("closedloop", "runs"), ("closedloop", "status"),
            ("closedloop", "watch"),
            ("milestone",), ("milestone", "start"), ("milestone", "accept"), ("milestone", "gate"),
            ("milestone", "crosscheck"), ("milestone", "close"), ("milestone", "resume"),
            ("milestone", "status"), ("milestone", "report"), ("milestone", "audit"),
            ("milestone", "deliver"),
            ("accepted-outcome",), ("accepted-outcome", "contract"), ("accepted-outcome", "grade"),
            ("accepted-outcome", "submit"), ("accepted-outcome", "close"), ("accepted-outcome", "show"),
            ("accepted-outcome", "bound"), ("accepted-outcome", "attempt"),
            ("accepted-outcome", "attempt", "add"), ("accepted-outcome", "edge"),
            ("accepted-outcome", "edge", "add"), ("accepted-outcome", "reference"),
            ("accepted-outcome", "reference", "add"),
        }  # fmt: skip

    @pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
    def test_of_every_command(self, command: Callable[..., Said], words: tuple[str, ...]) -> None:
        said = command(*words, "--help")
        assert (said.code, said.err) == (0, "")
        assert said.out.startswith(f"Usage: {' '.join(('skill-effectiveness', *words))} ")
        assert steers(said.out) == []

    def test_no_variable_paints_it(self, home: Path) -> None:
        variables = dict.fromkeys(["FORCE_COLOR", "GITHUB_ACTIONS", "PY_COLORS", "TTY_COMPATIBLE"], "1")
        said = run(home, "--help", env=environment(home, **variables))
        assert said.code == 0
        assert steers(said.out) == []

    def test_every_option_says_what_it_is_for(self) -> None:
        for words in COMMANDS:
            found: Any = typer.main.get_command(door.app)
            for word in words:
                found = found.commands[word]
            assert found.help, words
            for parameter in found.params:
                assert parameter.help or parameter.name == "help", (words, parameter.name)

    @pytest.mark.parametrize("words", [(), ("study",)])
    def test_no_short_text_is_cut(self, command: Callable[..., Said], words: tuple[str, ...]) -> None:
        """Each stands whole on one line beside its command."""
        said = command(*words, "--help")
        assert "..." not in said.out.partition("Commands:")[2]
        found: Any = typer.main.get_command(door.app)
        for word in words:
            found = found.commands[word]
        lines = {line.strip() for line in said.out.splitlines()}
        for one in found.commands.values():
            assert any(line.endswith(one.short_help) for line in lines), one.name

    def test_the_gate_marks_what_it_needs(self, command: Callable[..., Said]) -> None:
        lines = command("gate", "--help").out.splitlines()
        assert [line.split()[0] for line in lines if line.endswith("[required]")] == [
            "--bundle", "--tasks", "--manifests", "--trials", "--out",
        ]  # fmt: skip

    def test_the_version(self, command: Callable[..., Said]) -> None:
        said = command("--version")
        assert (said.code, said.out, said.err) == (0, "skill-effectiveness 0.1.0\n", "")


USAGE = [
    (),
    ("nope",),
    ("--nope",),
    ("reviewers",),
    ("keys",),
    ("keys", "nope"),
    ("keys", "show"),
    ("keys", "show", "a", "b"),
    ("keys", "export", "a"),
    ("arms",),
    ("arms", "freeze", "arms/S0.json"),
    ("arms", "plan", "--out", "out"),
    ("gate",),
    ("gate", "--bundle", "b"),
    ("smoke", "--out", "out"),
    ("verify",),
    ("verify", "x"),
    ("verify", "x", "--pub"),
    ("reviewers", "score"),
    ("reviewers", "seal", "x", "--key", "k"),
    ("reviewers", "demo"),
    ("reviewer-calibration",),
    ("\x1b[2Knope\n",),
    ("--\u202enope",),
    ("verify", "x", "--pub=", "--x\x07"),
]


class TestUsage:
    @pytest.mark.parametrize("words", USAGE, ids=ascii)
    def test_one_line_and_exit_2(self, command: Callable[..., Said], words: tuple[str, ...]) -> None:
        """F21: whatever was typed."""
        said = command(*words)
        assert said.refusal.endswith(". See --help.")
        assert steers(said.err) == []

    @pytest.mark.parametrize(
        ("words", "told"),
        [
            (("providers", "docter"), "No such command 'docter'. Did you mean 'doctor'? See --help."),
            (
                ("reviewer-calibration", "--provider", "revue"),
                (
                    "Invalid value for '--provider': 'revue' is not one of "
                    "'codex', 'claude', 'opencode', 'kimi', 'simulated'. See --help."
                ),
            ),
        ],
    )
    def test_whole_sentences(self, command: Callable[..., Said], words: tuple[str, ...], told: str) -> None:
        """F21: no word of a framework's own, and one mark at an end."""
        assert command(*words).refusal == told

    # A last option without its value would take --json for it.
    @pytest.mark.parametrize("words", [words for words in USAGE if words[-1:] != ("--pub",)], ids=ascii)
    def test_machines_get_the_code(self, command: Callable[..., Said], words: tuple[str, ...]) -> None:
        said = command(*words, "--json")
        assert (said.code, said.out) == (2, '{"code":"usage","status":"refused"}\n')

    def test_words_that_are_not_utf_8(self, home: Path) -> None:
        """F21: of a file name from elsewhere."""
        said = run(home, b"verify", b"\xff\xfe", b"--pub", b"\x9b2J")  # type: ignore[arg-type]
        assert said.refusal
        assert steers(said.err) == []

    def test_a_variable_for_completion_changes_nothing(self, home: Path) -> None:
        variables = {"_SKILL_EFFECTIVENESS_COMPLETE": "source_bash", "_RUN_PY_COMPLETE": "source_bash"}
        assert run(home, "nope", env=environment(home, **variables)).refusal

    def test_nothing_is_written(self, command: Callable[..., Said], home: Path) -> None:
        for words in USAGE:
            command(*words)
        assert content(home) == {}


class TestStreams:
    @pytest.mark.parametrize("words", [["--help"], ["reviewers", "score", str(TABLE)], ["nope", "--json"]])
    def test_nobody_reads_stdout(self, home: Path, words: list[str]) -> None:
        """F54: exit 128 and SIGPIPE, without a word too many."""
        reader, writer = os.pipe()
        os.close(reader)
        process = start(home, *words, stdout=writer)
        os.close(writer)
        _out, err = process.communicate(timeout=60)
        assert process.returncode == 141
        assert no_traceback(Said(141, "", err.decode()))

    @pytest.mark.parametrize(
        "words",
        [["--version"], ["reviewers", "score", str(TABLE)], ["--help"], ["keys", "--help"]],
    )
    def test_stdout_is_full(self, home: Path, words: list[str]) -> None:
        with open("/dev/full", "w") as full:  # noqa: PTH123 - a device
            said = run(home, *words, stdout=full)
        assert said.code == 2
        assert said.refusal.startswith("The results could not be written to stdout")

    def test_nobody_reads_stderr(self, home: Path) -> None:
        """The exit code says it all the same."""
        reader, writer = os.pipe()
        os.close(reader)
        with open("/dev/full", "w") as full:  # noqa: PTH123 - a device
            codes = [run(home, "keys", "show", "lab", stderr=stream).code for stream in (writer, full)]
            passed = run(home, *EXAMINATION, stderr=writer)
        os.close(writer)
        assert codes == [2, 2]
        assert passed.code == 0
        assert passed.values["calibration_status"] == "pass"

    def test_streams_that_were_closed_at_start(self, home: Path) -> None:
        """No file of ours takes their number, and nothing lands in one."""
        said = run(home, *EXAMINATION, preexec_fn=lambda: close([0, 2]))
        assert (said.code, said.err) == (0, "")
        assert said.values["calibration_status"] == "pass"
        assert b"repeat 1 of" not in b"".join(content(home / "out").values())

    def test_stdout_was_closed_at_start(self, home: Path) -> None:
        said = run(home, "keys", "new", "lab", preexec_fn=lambda: close([1]))
        assert said.refusal.startswith("stdout is closed")
        assert content(home) == {}

    @pytest.mark.parametrize("closed", [[0], [2], [0, 2], [1], [0, 1], [1, 2], [0, 1, 2]], ids=str)
    def test_closed_at_start_where_there_is_no_null_device(self, home: Path, closed: list[int]) -> None:
        """One line where anybody can read it, and the exit code of a stdout that cannot be written."""
        said = run(home, "--version", code=NO_NULL_DEVICE, preexec_fn=lambda: close(closed))
        version, refusal = "skill-effectiveness 0.1.0\n", f"{PREFIX}stdout is closed"
        assert (said.code, said.out) == ((2, "") if 1 in closed else (0, version))
        lines = said.err.splitlines()
        assert [line[: len(refusal)] for line in lines] == ([refusal] if closed in ([1], [0, 1]) else [])

    @pytest.mark.parametrize(
        ("stream", "words", "code"),
        [("stdout", ["--help"], 2), ("stdout", ["--version"], 2), ("stderr", ["nope"], 2)],
    )
    def test_full_where_there_is_no_null_device(
        self, home: Path, stream: str, words: list[str], code: int
    ) -> None:
        """Also what the interpreter flushes at exit changes nothing."""
        with open("/dev/full", "w") as full:  # noqa: PTH123 - a device
            said = run(home, *words, code=NO_NULL_DEVICE, **{stream: full})
        assert (said.code, said.out) == (code, "")
        assert len(said.err.splitlines()) == (1 if stream == "stdout" else 0)

    def test_nothing_at_all_to_put_in_their_place(self, home: Path) -> None:
        no_pipe = "import os\ndef none(): raise OSError(24, 'many')\nos.pipe = none\n"
        said = run(
            home, "--version", code=("-c", no_pipe + WITHOUT_NULL_DEVICE), preexec_fn=lambda: close([0])
        )
        assert said.refusal.startswith("A standard stream is closed")

    def test_a_locale_without_these_letters(self, home: Path) -> None:
        """F21: results are UTF-8, sentences are spelled out, and nothing is an error."""
        plain = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0", "PYTHONIOENCODING": "ascii"}
        (home / "t.csv").write_text("pair_id,label,decision_ab,decision_ba,category\np,A>B,A>B,B>A,Straße\n")
        said = run(home, "reviewers", "score", "t.csv", env=environment(home, **plain))
        assert (said.code, said.err) == (0, "")
        assert "│ Straße " in said.out
        said = run(home, "verify", "Straße", "--pub", "Straße.pub", env=environment(home, **plain))
        assert said.refusal
        assert said.err.isascii()


# The command line on a machine without /dev/null.
WITHOUT_NULL_DEVICE = f"""
import os, runpy, sys
sys.path.insert(0, {str(REPOSITORY / "eval")!r})
from skill_effectiveness.evidence.fsops import RealFs
def opened(self, parent, name, real=RealFs.open_update):
    if name == os.devnull: raise FileNotFoundError(2, "none", name)
    return real(self, parent, name)
RealFs.open_update = opened
runpy.run_path({str(RUN)!r}, run_name="__main__")
"""
NO_NULL_DEVICE = ("-c", WITHOUT_NULL_DEVICE)


def close(numbers: list[int]) -> None:
    """Close standard streams in a child before it starts."""
    for number in numbers:
        os.close(number)


def test_no_core_file_can_hold_a_key(command: Callable[..., Said]) -> None:
    """evidence.md section 9; also for whatever is started later."""
    command("--version")
    assert resource.getrlimit(resource.RLIMIT_CORE) == (0, 0)


class TestInterpreters:
    def bare(self, home: Path, *code: str) -> Said:
        """What an interpreter without our dependencies says."""
        done = subprocess.run(  # noqa: S603 - this interpreter
            [sys.executable, "-S", *code], check=False, capture_output=True, text=True, env=environment(home)
        )
        return Said(done.returncode, done.stdout, done.stderr)

    def test_without_the_dependencies(self, home: Path) -> None:
        """One line that says what to do; exit 2, since 1 means something else."""
        said = self.bare(home, str(RUN), "--version")
        assert (said.code, said.out) == (2, "")
        assert said.err == f"{PREFIX}typer is not installed here; {HINT}\n"

    def test_older_than_3_11(self, home: Path) -> None:
        as_main = f"runpy.run_path({str(RUN)!r}, run_name='__main__')"
        old = f"import sys, runpy; sys.version_info = (3, 8, 10); {as_main}"
        said = self.bare(home, "-c", old)
        assert (said.code, said.err) == (2, f"{PREFIX}Python 3.11 or newer is needed; {HINT}\n")

    def test_an_old_one_can_read_the_file(self) -> None:
        ast.parse(RUN.read_text(encoding="utf-8"), feature_version=(3, 7))

    def test_ctrl_c_while_it_loads(self, home: Path) -> None:
        interrupted = (
            "import sys, runpy\n"
            "class Slow:\n"
            "    def find_spec(self, name, path=None, target=None):\n"
            "        if name.startswith('skill_effectiveness'):\n"
            "            raise KeyboardInterrupt\n"
            "sys.meta_path.insert(0, Slow())\n"
            f"runpy.run_path({str(RUN)!r}, run_name='__main__')\n"
        )
        assert self.bare(home, "-c", interrupted) == Said(130, "", "")

    def test_to_nobody(self, home: Path) -> None:
        """Without the dependencies, and without a stderr that takes the sentence."""
        code = ("-S", str(RUN))
        with open("/dev/full", "w") as full:  # noqa: PTH123 - a device
            assert run(home, code=code, stderr=full) == Said(2, "", "")
        assert run(home, code=code, preexec_fn=lambda: close([2])) == Said(2, "", "")

    def test_from_any_working_folder(self, home: Path) -> None:
        (home / "skill_effectiveness").mkdir()
        (home / "skill_effectiveness/__init__.py").write_text("raise SystemExit(99)")
        said = run(home, "--version")
        assert (said.code, said.out) == (0, "skill-effectiveness 0.1.0\n")


# Sends itself a signal when a module is asked for: while the program is being loaded, where we want it.
SIGNALLED = f"""
import os, runpy, sys
module, number = sys.argv[1], int(sys.argv[2])
class Signalling:
    def find_spec(self, name, path=None, target=None):
        if name == module:
            sys.meta_path.remove(self)
            os.kill(os.getpid(), number)
sys.meta_path.insert(0, Signalling())
sys.argv[1:] = sys.argv[3:]
runpy.run_path({str(RUN)!r}, run_name="__main__")
"""


class TestSignalsWhileItLoads:
    @pytest.mark.parametrize("number", [1, 2, 3, 15])
    @pytest.mark.parametrize(
        ("module", "words"),
        [
            ("skill_effectiveness", ["--version"]),
            ("skill_effectiveness.cli.main", ["--version"]),
            ("typer", ["--version"]),
            ("rich", ["--version"]),
            ("pydantic", ["study", "status", "nowhere"]),
            ("cryptography", ["study", "status", "nowhere"]),
            ("skill_effectiveness.studies.root", ["study", "status", "nowhere"]),
            ("skill_effectiveness.cli.smoke", ["smoke"]),
        ],
    )
    def test_end_it_with_128_and_n_and_no_word(
        self, home: Path, module: str, words: list[str], number: int
    ) -> None:
        """F54: whoever is being imported gets no exception to swallow, to turn into another or to print."""
        said = run(home, module, str(number), *words, code=("-c", SIGNALLED))
        assert said == Said(128 + number, "", "")

    def test_that_were_ignored_stay_ignored(self, home: Path) -> None:
        """As under nohup."""
        said = run(
            home, "typer", "1", "--version", code=("-c", SIGNALLED),
            preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN),
        )  # fmt: skip
        assert (said.code, said.out, said.err) == (0, "skill-effectiveness 0.1.0\n", "")

    @pytest.mark.parametrize("number", [2, 15])
    @pytest.mark.parametrize("moment", [0.0, 0.02, 0.05, 0.1, 0.2, 0.4])
    def test_at_any_moment_leave_one_line_at_most(self, home: Path, moment: float, number: int) -> None:
        """Before our first line runs, and after the last, the process may die of the signal itself."""
        process = start(home, "--version")
        handled = f"/proc/{process.pid}/status"
        mask = 1 << (signal.SIGTERM - 1)
        assert wait_until(lambda: bool(mask & int(content_of(handled, "SigCgt"), 16)))
        time.sleep(moment)
        process.send_signal(number)
        said = ended(process)
        assert said.code in ({128 + number} if moment < 0.1 else {128 + number, -number, 0})
        assert len(said.err.splitlines()) <= 1
        assert no_traceback(said)


def content_of(path: str, name: str) -> str:
    """One value of a process's status."""
    with open(path, encoding="ascii", errors="replace") as status:  # noqa: PTH123 - the kernel's
        return next(line.split()[1] for line in status if line.startswith(f"{name}:"))


def test_the_door_holds_no_logic() -> None:
    """run.py stays a door: no function, no class."""
    tree = ast.parse((REPOSITORY / "run.py").read_text(encoding="utf-8"))
    assert not [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.ClassDef)]
