"""The installed commands, from the first line of their scripts to the command line."""

from __future__ import annotations

import signal
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from tests.support.commands import environment

if TYPE_CHECKING:
    from pathlib import Path

ENTRIES = {
    "run": "skill_effectiveness.cli.main",
    "run_closeout": "skill_effectiveness.cli.closeout",
    "run_accepted_outcome": "skill_effectiveness.cli.accepted_outcome",
    "run_milestone": "skill_effectiveness.cli.milestone",
}
"""The functions that the scripts call, and what each loads."""
SCRIPT = """
import sys
from importlib.abc import MetaPathFinder
class Finder(MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name == {module!r}:
            {body}
sys.meta_path.insert(0, Finder())
from skill_effectiveness.cli.entry import {entry}
sys.argv[0] = "installed"
sys.exit({entry}())
"""


def started(
    home: Path, entry: str, *words: str, body: str = "pass", ignored: bool = False
) -> subprocess.CompletedProcess[bytes]:
    """Run a script as an installer writes it; `body` happens when the command line begins to load."""
    script = SCRIPT.format(module=ENTRIES[entry], entry=entry, body=body)
    if ignored:
        script = f"import signal; signal.signal(signal.SIGHUP, signal.SIG_IGN)\n{script}"
    return subprocess.run(  # noqa: S603 - ours
        [sys.executable, "-c", script, *words],
        env=environment(home),
        cwd=home,
        capture_output=True,
        check=False,
    )


@pytest.mark.parametrize("entry", ENTRIES)
class TestLoading:
    @pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT])
    def test_a_signal_ends_it_without_a_word(
        self, tmp_path: Path, entry: str, number: signal.Signals
    ) -> None:
        """As `run.py` does."""
        done = started(tmp_path, entry, "--help", body=f"import signal; signal.raise_signal({int(number)})")
        assert (done.returncode, done.stdout, done.stderr) == (128 + number, b"", b"")

    def test_one_that_was_ignored_stays_ignored(self, tmp_path: Path, entry: str) -> None:
        raised = f"import signal; signal.raise_signal({int(signal.SIGHUP)})"
        done = started(tmp_path, entry, "--help", body=raised, ignored=True)
        assert done.returncode == 0

    @pytest.mark.parametrize(
        ("body", "told", "code"),
        [
            ("raise ModuleNotFoundError(name='typer')", b"typer is not installed here; ", 2),
            ("raise SyntaxError('secret')", b"the program cannot be loaded (SyntaxError); ", 70),
        ],
    )
    def test_what_cannot_be_loaded_is_told(
        self, tmp_path: Path, entry: str, body: str, told: bytes, code: int
    ) -> None:
        """One sentence, no traceback; `closeout` and `accepted-outcome` decide nothing, by contract."""
        own = {"run_closeout": b"closeout", "run_accepted_outcome": b"accepted-outcome"}
        program, code = (own[entry], 3) if entry in own else (b"skill_effectiveness_trial", code)
        if entry == "run_milestone":
            program, code = b"milestone", 2 if code == 2 else 4
        done = started(tmp_path, entry, "--help", body=body)
        assert (done.returncode, done.stdout) == (code, b"")
        assert done.stderr == program + b": " + told + b"install the package again\n"


@pytest.mark.parametrize(
    ("entry", "words", "code"),
    [
        ("run", ("--version",), 0),
        ("run", ("no-such",), 2),
        ("run_closeout", ("--help",), 0),
        ("run_accepted_outcome", ("--help",), 0),
        ("run_milestone", ("--help",), 0),
    ],
)
def test_the_command_line_takes_the_words(
    tmp_path: Path, entry: str, words: tuple[str, ...], code: int
) -> None:
    done = started(tmp_path, entry, *words)
    assert done.returncode == code, done.stderr
    assert bool(done.stdout) == (code == 0)
